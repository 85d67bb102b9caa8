"""Ops that XLA's partitioner gets in other words, or with some dimensions whole: see docs/guides/upstream_bugs.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dims import Size
from gcomp.dtypes import bit_width, is_complex
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import below, dtype_text, element_of, rank_of, shape_of, with_shape
from gcomp.lowering.xla.indices import gathers_from_its_place
from gcomp.sharding import DimensionSharding, Sharding

_INDEX_BITS = 32
_BOUNDS = ("start_indices", "limit_indices", "strides")

Held = dict[int, Iterable[int]]
"""Operand, or a result after these, by its number -> the dimensions of which each device needs all."""


def suit_partitioner(program: Program) -> None:
    """Write a program for several devices as XLA's partitioner gets it right."""
    hold_whole(program)
    for step in _STEPS:
        step(program)


def update_apart(program: Program) -> None:
    """Choose between a tensor and what updates it, where that is gathered from the tensor: XLA would do both in place,
    and without its pass that does, which is then left out, copies of what devices send are wrong."""
    for op in [op for op in program.ops() if gathers_from_its_place(op)]:
        update = cast(hlo.DynamicUpdateSliceOp, op)
        b = Builder(program, InsertPoint.before(op))
        where = b.full(shape_of(update.operand), False, "i1")
        parts = (where, b.full(shape_of(update.update), True, "i1")), (b.full_like(update.operand, 0), update.update)
        mask, new = (b.emit(hlo.DynamicUpdateSliceOp, *pair, *update.operands[2:]) for pair in parts)
        op.results[0].replace_all_uses_with(b.select(mask, new, update.operand))
        Rewriter.erase_op(op)


def clamp_starts(program: Program) -> None:
    """Clamp where slices, updates and looked up windows begin: XLA's partitioner takes what begins outside as it is,
    where the dimension is cut, or moves in each part by itself, and the whole op moves in."""
    meshes = sdy.meshes_of(program.module)
    axes = next(iter(meshes.values())).names if meshes else ()
    for op in [op for op in program.ops() if not (axes and _is_local(op, axes))]:
        if isinstance(op, hlo.DynamicUpdateSliceOp):
            first, taken = 2, shape_of(op.operands[1])
        elif isinstance(op, hlo.DynamicSliceOp):
            first, taken = 1, shape_of(op.results[0])
        else:
            if isinstance(op, hlo.GatherOp):
                _clamp_windows(program, op)
            continue
        b = Builder(program, InsertPoint.before(op))
        sizes = zip(shape_of(op.operands[0]), taken, strict=True)
        for k, (whole, part) in enumerate(sizes, start=first):
            start = b.convert(op.operands[k], "i64")
            last = b.convert(b.dim(whole - part), "i64")
            op.operands[k] = b.maximum(b.minimum(start, last), b.constant(0, "i64"))


def _clamp_windows(program: Program, op: hlo.GatherOp) -> None:
    """Clamp where windows begin, of which more than one element is taken, and fewer than there are."""
    n, shape = op.dimensions, shape_of(op.operand)
    taken: tuple[Size, ...] = op.value("slice_sizes")
    if not any(taken[dim] != 1 and taken[dim] != shape[dim] for dim in n.start_index_map):
        return
    b = Builder(program, InsertPoint.before(op))
    starts = b.convert(op.start_indices, "i64")
    lasts = [b.convert(b.dim(shape[dim] - taken[dim]), "i64") for dim in n.start_index_map]
    if n.index_vector_dim == rank_of(starts):
        last = b.broadcast_to(lasts[0], shape_of(starts))
    else:
        row = b.concatenate([b.reshape(last, (1,)) for last in lasts], 0)
        last = b.broadcast(row, shape_of(starts), [n.index_vector_dim])
    op.operands[1] = b.maximum(b.minimum(starts, last), b.full_like(starts, 0))


def step_by_one(program: Program) -> None:
    """Let slices step by one where they take one element: XLA's partitioner takes another element or refuses the
    program, where the dimension is cut and the step is longer than a part."""
    for op in program.ops():
        if isinstance(op, hlo.SliceOp):
            starts, ends, steps = (cast(tuple[int, ...], op.value(name)) for name in _BOUNDS)
            single = [n == 1 for n in shape_of(op.result)]
            ends = [start + 1 if one else end for one, start, end in zip(single, starts, ends, strict=True)]
            steps = [1 if one else step for one, step in zip(single, steps, strict=True)]
            for name, found in zip(_BOUNDS[1:], (ends, steps), strict=True):
                op.properties[name] = DenseArrayBase.from_list(i64, found)


def widen_indices(program: Program) -> None:
    """Let lookups and updates take indices of 32 bits where they are narrower: XLA's partitioner ends the process
    otherwise ("Unsupported indices type")."""
    for op in list(program.ops()):
        if not isinstance(op, hlo.GatherOp | hlo.ScatterOp):
            continue
        at = 1 if isinstance(op, hlo.GatherOp) else len(op.inputs)
        text = dtype_text(op.operands[at].type)
        if bit_width(text) < _INDEX_BITS:
            b = Builder(program, InsertPoint.before(op))
            op.operands[at] = b.convert(op.operands[at], "ui32" if text.startswith("ui") else "i32")


def convolve_alike(program: Program) -> None:
    """Let convolutions take elements of the type that they give, if that is wider: XLA's partitioner pads an image that
    is cut with zeros of it, and then refuses what it wrote ("mixed precision is disallowed")."""
    for op in [op for op in program.ops() if isinstance(op, hlo.ConvolutionOp)]:
        b, wanted = Builder(program, InsertPoint.before(op)), op.results[0]
        for k, value in enumerate(op.operands):
            if bit_width(dtype_text(value.type)) < bit_width(dtype_text(wanted.type)):
                op.operands[k] = b.convert(value, element_of(wanted))


def pin_transforms(program: Program) -> None:
    """Let what Fourier transforms take and give be a row of elements behind a barrier: collectives along a dimension
    want other orders of elements, and XLA hands these on to transforms, which it then refuses to run (`fft_thunk`)."""
    for op in [op for op in program.ops() if isinstance(op, hlo.FftOp)]:
        before, after = Builder(program, InsertPoint.before(op)), Builder(program, InsertPoint.after(op))
        op.operands[0] = _pinned(before, op.operand)
        uses = [*op.result.uses]
        pinned = _pinned(after, op.result)
        for use in uses:
            use.operation.operands[use.index] = pinned


def pin_scattered(program: Program) -> None:
    """Let what scatters write into come from behind a barrier: XLA's partitioner writes into other places of what was
    concatenated just before."""
    for op in [op for op in program.ops() if isinstance(op, hlo.ScatterOp)]:
        b = Builder(program, InsertPoint.before(op))
        for k, value in enumerate(op.inputs):
            if isinstance(value.owner, Operation):
                op.operands[k] = b.emit(hlo.OptimizationBarrierOp, value)


def pin_sliced(program: Program) -> None:
    """Let slices that begin at the first element, or may, take others' operands from behind a barrier: once a slice and
    its operand are cut the same way, XLA's partitioner takes the slice for the operand, wherever else that is used."""
    for op in [op for op in program.ops() if isinstance(op, hlo.SliceOp | hlo.DynamicSliceOp)]:
        if _is_shared(op.operands[0]) and _may_be_first(op):
            op.operands[0] = Builder(program, InsertPoint.before(op)).emit(hlo.OptimizationBarrierOp, op.operands[0])


def _may_be_first(op: hlo.SliceOp | hlo.DynamicSliceOp) -> bool:
    """Whether a slice takes some of the elements of a dimension, the first among them. (XLA finds out what is constant
    of a dynamic slice's starts.)"""
    sizes = shape_of(op.operands[0])
    if isinstance(op, hlo.DynamicSliceOp):
        return any(size != own for size, own in zip(sizes, shape_of(op.results[0]), strict=True))
    starts, ends, steps = (cast(tuple[int, ...], op.value(name)) for name in _BOUNDS)
    dims = zip(starts, ends, steps, sizes, strict=True)
    return any(start == 0 and step == 1 and end != size for start, end, step, size in dims)


def _is_shared(value: SSAValue) -> bool:
    """Whether a value has several users, or is what XLA may take for one that has."""
    while value.has_one_use() and isinstance(value.owner, hlo.ConvertOp | hlo.ReshapeOp | hlo.BroadcastInDimOp):
        value = value.owner.operands[0]
    return not value.has_one_use()


def pin_complex(program: Program) -> None:
    """Let sums of complex numbers be taken from behind a barrier: those of a constant XLA folds, and ends the process
    ("shape.h: Check failed: buffer != nullptr")."""
    for op in [op for op in program.ops() if isinstance(op, hlo.AllReduceOp | hlo.ReduceScatterOp)]:
        b = Builder(program, InsertPoint.before(op))
        for k, value in enumerate(op.operands):
            if is_complex(dtype_text(value.type)):
                op.operands[k] = b.emit(hlo.OptimizationBarrierOp, value)


def _pinned(b: Builder, value: SSAValue) -> SSAValue:
    row = b.reshape(value, [prod(shape_of(value), start=cast(Size, 1))])
    return b.reshape(b.emit(hlo.OptimizationBarrierOp, row), shape_of(value))


def fold_alone(program: Program) -> None:
    """Let each device fold what others send, where XLA has no collective for that ("Unsupported reduction
    computation")."""
    for op in list(program.ops()):
        if not isinstance(op, hlo.AllReduceOp | hlo.ReduceScatterOp) or len(op.operands) != 1:
            continue
        value, fold, count = op.operands[0], sdy.folded_op(op.computation), op.group_size
        if fold is None or fold in _folds_of(value) or count is None:
            continue
        b, own = Builder(program, InsertPoint.before(op)), shape_of(op.results[0])
        sent = _sent(op, b.reshape(value, [1, *shape_of(value)]), count, [count, *own])
        b.insert(sent)
        parts = [b.reshape(b.slice_axis(sent.results[0], 0, n, n + 1), own) for n in range(count)]
        found = parts[0]
        for part in parts[1:]:
            found = b.emit(fold, found, part)
        op.results[0].replace_all_uses_with(found)
        Rewriter.erase_op(op)


def _sent(op: hlo.AllReduceOp | hlo.ReduceScatterOp, row: SSAValue, count: int, shape: Sequence[Size]) -> Operation:
    """What devices have, one after the other: all of it, or the part of each that this device folds."""
    groups = {name: op.properties[name] for name in ("replica_groups", "channel_handle") if name in op.properties}
    dims: dict[str, Attribute] = {"all_gather_dim": IntegerAttr(0, i64)}
    kind: type[Operation] = hlo.AllGatherOp
    if isinstance(op, hlo.ReduceScatterOp):
        dim: int = op.value("scatter_dimension")
        numbers = {"split_dimension": dim + 1, "concat_dimension": 0, "split_count": count}
        kind, dims = hlo.AllToAllOp, {name: IntegerAttr(n, i64) for name, n in numbers.items()}
    elif "use_global_device_ids" in op.properties:
        dims["use_global_device_ids"] = op.properties["use_global_device_ids"]
    return kind.create(operands=[row], result_types=[with_shape(row, shape)], properties={**groups, **dims})


_STEPS = (
    clamp_starts, update_apart, step_by_one, widen_indices, convolve_alike, pin_transforms, pin_scattered, pin_sliced,
    pin_complex, fold_alone,
)  # fmt: skip


# ---- dimensions that lie whole --------------------------------------------------------------------------------------


def hold_whole(program: Program) -> None:
    """Hold those dimensions whole on each device that XLA's partitioner cuts wrongly."""
    meshes = sdy.meshes_of(program.module)
    if not meshes:
        return
    name, mesh = next(iter(meshes.items()))
    for op in list(program.ops()):
        row = _HELD.get(type(op))
        if row is None or _is_local(op, mesh.names):
            continue
        for number, dims in row(op, mesh.size).items():
            _hold(program, name, op, number, frozenset(dims))


def _is_local(op: Operation, axes: Iterable[str]) -> bool:
    """Whether an op is of one device: in a computation along all axes."""
    around, manual = op.parent_op(), set[str]()
    while around is not None:
        manual |= {*around.axes} if isinstance(around, sdy.ManualComputationOp) else set()
        around = around.parent_op()
    return {*axes} <= manual


def _hold(program: Program, mesh: str, op: Operation, number: int, dims: frozenset[int]) -> None:
    is_operand = number < len(op.operands)
    value: SSAValue = op.operands[number] if is_operand else op.results[number - len(op.operands)]
    if not dims:
        return
    said = Sharding(mesh, tuple(DimensionSharding(is_closed=d in dims) for d in range(rank_of(value))))
    b = Builder(program, InsertPoint.before(op) if is_operand else InsertPoint.after(op))
    uses = [] if is_operand else [*value.uses]
    held = b.emit(sdy.ShardingConstraintOp, value, sharding=sdy.ShardingAttr(said))
    if is_operand:
        op.operands[number] = held
    for use in uses:
        use.operation.operands[use.index] = held


def _convolved(op: hlo.ConvolutionOp, devices: int) -> Held:
    """Groups of a batch, and groups of features under kernels of one element, which XLA takes for products, or of which
    a device might have a part; images that are spread apart and cropped; images of which a part is not greater than
    the kernel; all where there is no image."""
    n, w = op.dimensions, op.window()
    if not n.input_spatial_dimensions:
        return dict.fromkeys(range(3), (0, 1))
    grouped = _grouped(op, devices)
    images = [shape_of(op.lhs)[k] for k in n.input_spatial_dimensions]
    sizes = [shape_of(op.rhs)[k] for k in n.kernel_spatial_dimensions]
    reach = [1 + (size - 1) * by for size, by in zip(sizes, w["rhs_dilation"], strict=True)]
    spread = zip(w["lhs_dilation"], w["padding"], strict=True)
    held = [
        *[k for k, (by, pads) in enumerate(spread) if by > 1 and min(pads) < 0],
        *_few([shape_of(op.result)[k] for k in n.output_spatial_dimensions], sizes, w["window_strides"], devices),
        *[k for k, size in enumerate(reach) if size != 1 and not below(size * devices, images[k])],
        *[k for k, by in enumerate(w["lhs_dilation"]) if by != 1 and not below(devices - 1, images[k])],
    ]
    spatial = {
        0: [n.input_spatial_dimensions[k] for k in held],
        1: [n.kernel_spatial_dimensions[k] for k in held],
        2: [n.output_spatial_dimensions[k] for k in held],
    }
    return {number: [*grouped.get(number, ()), *spatial.get(number, ())] for number in range(3)}


def _windows(op: hlo.ReduceWindowOp, devices: int) -> Held:
    """Dimensions that are spread apart; those that have fewer windows than there are devices."""
    count, w = len(op.results), op.window()
    apart = [k for k, by in enumerate(w["base_dilations"]) if by > 1]
    few = _few(shape_of(op.results[0]), w["window_dimensions"], w["window_strides"], devices)
    return {number: [*apart, *few] for number in (*range(count), *range(2 * count, 3 * count))}


def _scattered(op: hlo.SelectAndScatterOp, _devices: int) -> Held:
    """Dimensions along which windows lie, or that are cropped: sources of windows that reach into other parts are
    lost."""
    w = op.window()
    windows = zip(w["window_dimensions"], w["window_strides"], w["padding"], strict=True)
    dims = [k for k, (*window, pair) in enumerate(windows) if window != [1, 1] or (*pair,) != (0, 0)]
    return dict.fromkeys((0, 1, 3), dims)


def _few(results: Sequence[Size], sizes: Sequence[Size], strides: Sequence[int], devices: int) -> list[int]:
    """The dimensions along which windows move, and fewer results come out than there are devices."""
    moves = zip(results, sizes, strides, strict=True)
    return [k for k, (count, size, by) in enumerate(moves) if (size, by) != (1, 1) and not below(devices - 1, count)]


def _padded(op: hlo.PadOp, _devices: int) -> Held:
    """Dimensions that are cropped, and those that are spread apart: the process ends, a slice takes more than there is,
    or parts are others'."""
    low, high, gaps = map(sizes_of, (op.edge_padding_low, op.edge_padding_high, op.interior_padding))
    held = [
        k
        for k, (before, after, gap) in enumerate(zip(low, high, gaps, strict=True))
        if gap != 0 or any(isinstance(n, int) and n < 0 for n in (before, after))
    ]
    return {0: held, 2: held}


def _grouped(op: hlo.ConvolutionOp, devices: int) -> Held:
    n, groups = op.dimensions, op.value("feature_group_count")
    points = all(shape_of(op.rhs)[k] == 1 for k in n.kernel_spatial_dimensions)
    batches = op.value("batch_group_count") > 1
    if not batches and not (groups > 1 and (points or groups % devices)):
        return {}
    images = [n.input_batch_dimension] if batches else []
    return {
        0: [*images, n.input_feature_dimension],
        1: [n.kernel_input_feature_dimension, n.kernel_output_feature_dimension],
        2: [n.output_feature_dimension],
    }


def _rows(op: hlo.FftOp, _devices: int) -> Held:
    """All but the first dimension, where the others become one with it."""
    return {number: range(1, rank_of(value)) for number, value in enumerate((op.operand, op.result))}


def _components(op: Any, _devices: int) -> Held:
    """The components of indices: parts of an index name no place."""
    at = 1 if isinstance(op, hlo.GatherOp) else len(op.inputs)
    dim = op.dimensions.index_vector_dim
    return {at: [dim] if dim < rank_of(op.operands[at]) else []}


def _folded(op: hlo.ReduceOp, _devices: int) -> Held:
    """What is folded by anything that XLA has no collective for ("Unsupported reduction computation")."""
    if (count := len(op.results)) > 1:
        # Of several folds together, one that looks at no other's elements becomes a fold of its own.
        (returned,) = [inner for inner in op.body.block.ops if isinstance(inner, hlo.ReturnOp)]
        alone = any(_arguments_of(value) <= {k, count + k} for k, value in enumerate(returned.operands))
        dims: Sequence[int] = op.value("dimensions")
        return dict.fromkeys(range(count), dims) if alone else {}
    return {} if sdy.folded_op(op.body) in _folds_of(op.operands[0]) else {0: op.value("dimensions")}


def _crossed(op: hlo.DotGeneralOp, _devices: int) -> Held:
    """Rows of a product that an axis cuts in their operand, where it cuts the columns of the result, or the other way:
    XLA's partitioner exchanges rows of the result."""
    said = _said(op.result)
    if said is None:
        return {}
    d, held = op.dimensions, dict[int, Iterable[int]]()
    used = (*d.lhs_contracting_dimensions, *d.lhs_batching_dimensions), (
        *d.rhs_contracting_dimensions, *d.rhs_batching_dimensions)  # fmt: skip
    free = [[k for k in range(rank_of(v)) if k not in dims] for v, dims in zip(op.operands, used, strict=True)]
    first = len(d.lhs_batching_dimensions) + len(free[0])
    others = said.dimensions[first:], said.dimensions[len(d.lhs_batching_dimensions) : first]
    for number, (value, dims) in enumerate(zip(op.operands, free, strict=True)):
        axes = [axis for dimension in others[number] for axis in dimension.axes]
        given = _said(value)
        cut = [] if given is None else [
            k for k in dims if any(own.overlaps(axis) for own in given.dimensions[k].axes for axis in axes)
        ]  # fmt: skip
        if cut:
            held[number] = cut
    return held


def _said(value: SSAValue) -> Sharding | None:
    """How a value lies, where that is said of it, of what constrains it, or of what it is made of alone."""
    found = sdy.sharding_of(value)
    for use in value.uses:
        if found is None and isinstance(use.operation, sdy.ShardingConstraintOp):
            found = use.operation.layout
    made = value.owner
    if found is None and isinstance(made, Operation) and len(made.operands) == 1:
        (source,) = made.operands
        found = _said(source) if source.type == value.type else None
    return found


def _arguments_of(value: SSAValue) -> set[int]:
    """The numbers of the block's arguments that a value is made of."""
    if isinstance(value, BlockArgument):
        return {value.index}
    return {n for operand in cast(Operation, value.owner).operands for n in _arguments_of(operand)}


def _folds_of(value: SSAValue) -> tuple[type[Operation], ...]:
    """What XLA has collectives for."""
    return _FOLDS_OF_BITS if dtype_text(value.type) == "i1" else _FOLDS


_FOLDS = (hlo.AddOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp)
_FOLDS_OF_BITS = (*_FOLDS, hlo.AndOp, hlo.OrOp)

_HELD: dict[type[Operation], Callable[[Any, int], Held]] = {
    hlo.ConvolutionOp: _convolved,
    hlo.DotGeneralOp: _crossed,
    hlo.FftOp: _rows,
    hlo.GatherOp: _components,
    hlo.PadOp: _padded,
    hlo.ReduceOp: _folded,
    hlo.ReduceWindowOp: _windows,
    hlo.ScatterOp: _components,
    hlo.SelectAndScatterOp: _scattered,
}
