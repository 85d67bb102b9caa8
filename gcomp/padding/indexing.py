"""Indexing at run-time places: bounds are the true ones, and no padding is a place to write to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.structures import GatherDimensions, ScatterDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of
from gcomp.padding.layouts import extent
from gcomp.padding.sweep import Padded, Sweep, refuse
from gcomp.padding.table import pads

FAR = 1 << 30
"""A place outside of every tensor, with any offset in a window; 32 bits hold it."""


def _wide(sweep: Sweep, indices: SSAValue) -> SSAValue:
    """Indices in 64 bits, so that bounds and places outside are numbers of their type."""
    text = dtype_text(indices.type)
    return indices if bit_width(text) == 64 else sweep.b.convert(indices, "i64")


def _last(sweep: Sweep, op: Any, whole: Size, part: Size) -> SSAValue:
    """The last place in a dimension where a part of it fits. Refuses parts that would not in the padded one."""
    if not sweep.sizes.grows(whole - part):
        refuse(sweep, op, f"a part of {part} out of {whole} does not fit everywhere in a longer dimension")
    return sweep.lengths.true(whole - part)


def _clamp(
    sweep: Sweep, op: Any, starts: Sequence[SSAValue], shape: Sequence[Size], parts: Sequence[Size]
) -> list[SSAValue]:
    """The starts of a slice, of which those along padded dimensions are clamped to their true bounds."""
    b = sweep.b
    if not any(sweep.sizes.touches(whole - part) for whole, part in zip(shape, parts, strict=True)):
        return list(starts)
    found: list[SSAValue] = []
    for start, whole, part in zip(starts, shape, parts, strict=True):
        value = _wide(sweep, start)
        if sweep.sizes.touches(whole - part):
            element = dtype_text(value.type)
            last = b.convert(_last(sweep, op, whole, part), element)
            value = b.maximum(b.minimum(value, last), b.constant(0, element))
        found.append(value)
    return found


@pads("placed", hlo.DynamicSliceOp)
def dynamic_slice(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """The last start is where the slice ends with the true elements."""
    parts = sizes_of(op.slice_sizes)
    shape = [extent(f) for f in operands[0].layout]
    cut = [i for i in range(len(shape)) if parts[i] != shape[i]]
    x = sweep.compact(operands[0], cut)
    starts = _clamp(sweep, op, [s.value for s in operands[1:]], shape, parts)
    value = sweep.b.emit(hlo.DynamicSliceOp, x.value, *starts, slice_sizes=parts)
    return [Padded(value, tuple([(parts[i],) if i in cut else f for i, f in enumerate(x.layout)]))]


@pads("placed", hlo.DynamicUpdateSliceOp)
def dynamic_update_slice(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """As a slice; padding of the update leaves what is there."""
    b, (x, update) = sweep.b, operands[:2]
    shape, parts = [extent(f) for f in x.layout], [extent(f) for f in update.layout]
    cut = [i for i in range(len(shape)) if parts[i] != shape[i]]
    x, update = sweep.compact(x, cut), sweep.compact(update, cut)
    if any(x.layout[i] != update.layout[i] for i in range(len(shape)) if i not in cut):
        x, update = sweep.compact(x), sweep.compact(update)
    starts = _clamp(sweep, op, [s.value for s in operands[2:]], shape, parts)
    value = update.value
    mask = sweep.lengths.mask(update.layout, cut)
    if mask is not None:
        value = b.select(mask, value, b.emit(hlo.DynamicSliceOp, x.value, *starts, slice_sizes=parts))
    return [Padded(b.emit(hlo.DynamicUpdateSliceOp, x.value, value, *starts), x.layout)]


def _coordinates(sweep: Sweep, indices: SSAValue, axis: int, numbers: Sequence[SSAValue]) -> SSAValue:
    """A number for each coordinate of index vectors, in their shape and element type."""
    b, shape, element = sweep.b, shape_of(indices), dtype_text(indices.type)
    converted = [b.convert(n, element) for n in numbers]
    if axis == len(shape):
        return b.broadcast(converted[0], shape, ())
    vector = b.concatenate([b.reshape(n, (1,)) for n in converted], 0)
    return b.broadcast(vector, shape, (axis,))


@pads("placed", hlo.GatherOp, hlo.DynamicGatherOp)
def gather(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Starts are clamped to where slices end with the true elements."""
    n: GatherDimensions = op.dimensions
    b, sizes = sweep.b, sweep.sizes
    x, starts = operands[:2]
    if isinstance(op, hlo.DynamicGatherOp):
        refuse(sweep, op, "its slice sizes are run-time values", "run the pass canonicalize first")
    parts = sizes_of(op.slice_sizes)
    shape = [extent(f) for f in x.layout]
    cut = [i for i in range(len(shape)) if parts[i] != shape[i] and i not in n.operand_batching_dims]
    x = sweep.compact(x, cut)
    pairs = list(zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True))
    if any(x.layout[i] != starts.layout[j] for i, j in pairs):
        x, starts = sweep.compact(x), sweep.compact(starts)
    indices = starts.value
    if any(sizes.touches(shape[i] - parts[i]) for i in n.start_index_map):
        indices = _wide(sweep, indices)
        last = [_last(sweep, op, shape[i], parts[i]) for i in n.start_index_map]
        bound = _coordinates(sweep, indices, n.index_vector_dim, last)
        indices = b.maximum(b.minimum(indices, bound), b.full_like(indices, 0))
    padded = any(map(sizes.is_padded, starts.layout))
    value = b.emit(
        hlo.GatherOp, x.value, indices, dimension_numbers=n, slice_sizes=parts,
        indices_are_sorted=bool(op.value("indices_are_sorted")) and not padded,
    )  # fmt: skip
    return [Padded(value, _gather_layout(value, n, x, starts, parts, cut))]


def _gather_layout(
    value: SSAValue, n: Any, x: Padded, starts: Padded, parts: Sequence[Size], cut: Sequence[int]
) -> Any:
    """The result's layout: that of the indices, and of the operand where slices are whole."""
    batch = iter([f for j, f in enumerate(starts.layout) if j != n.index_vector_dim])
    dropped = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    offsets = iter([(parts[i],) if i in cut else f for i, f in enumerate(x.layout) if i not in dropped])
    return tuple([next(offsets if i in n.offset_dims else batch) for i in range(rank_of(value))])


@pads("neutral", hlo.ScatterOp)
def scatter(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Updates that are padding are sent to a place outside, and so left out; what falls into padding does no harm."""
    n: ScatterDimensions = op.dimensions
    b, sizes, count = sweep.b, sweep.sizes, len(op.inputs)
    inputs, starts, updates = operands[:count], operands[count], operands[count + 1 :]
    inputs, updates = [sweep.compact(x) for x in inputs], [sweep.compact(x) for x in updates]
    starts = sweep.compact(starts)
    shape, update = shape_of(op.inputs[0]), shape_of(op.updates[0])
    fixed = {*n.inserted_window_dims, *n.input_batching_dims}
    window = dict(zip(n.update_window_dims, [i for i in range(len(shape)) if i not in fixed], strict=True))
    for u, i in window.items():
        if sizes.touches(update[u]) and (i in n.scatter_dims_to_operand_dims or update[u] != shape[i]):
            refuse(sweep, op, f"it puts windows of a padded size, {update[u]}, into a dimension of size {shape[i]}")
    at = [j for j in range(len(starts.layout)) if j != n.index_vector_dim]
    padded = [j for j in at if sizes.is_padded(starts.layout[j])]
    indices = starts
    # Updates of a batch that is padding go to padding of that batch.
    if loose := [j for j in padded if j not in n.scatter_indices_batching_dims]:
        if not n.scatter_dims_to_operand_dims:
            refuse(sweep, op, "its updates have no index that could point outside")
        wide = _wide(sweep, starts.value)
        far = np.asarray(FAR).astype(np.int64 if dtype_text(wide.type) == "i64" else np.uint64)
        indices = replace(starts, value=sweep.lengths.kept(wide, starts.layout, loose, b.constant(far)))
    values = sweep.around(op, [*(x.value for x in inputs), indices.value, *(x.value for x in updates)])
    if padded:
        made: Any = values[0].owner
        for name in ("indices_are_sorted", "unique_indices"):
            made.properties[name] = BoolAttr.from_bool(False)
    return [Padded(v, x.layout) for v, x in zip(values, inputs, strict=True)]
