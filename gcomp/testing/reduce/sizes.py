"""Smaller shapes: a size becomes a smaller one wherever it stands, and what follows from it is inferred anew.

Sizes that are equal are taken to be the same dimension, so that what must agree still agrees. Symbolic sizes stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode, sizes_attr, sizes_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import is_tensor, rank_of, retype, shape_of, static_shape, with_shape
from gcomp.testing.reduce.reducer import Edit

Mapped = dict[int, int]
_ROUNDS = 12
_MOST_PAIRS = 64
_Place = tuple[tuple[Size, ...], int]
"""A shape and one of its dimensions."""


class _Follows(Exception):
    """A size turns out to follow from those that are changed: begin again with it."""

    def __init__(self, old: int, new: int) -> None:
        super().__init__()
        self.old, self.new = old, new


def sizes_in(program: Program) -> list[int]:
    """The sizes above 1 that the program's values have, the largest first."""
    found = {s for op in program.ops() for v in _values(op) if is_tensor(v.type) for s in shape_of(v)}
    return sorted((s for s in found if isinstance(s, int) and s > 1), reverse=True)


def shrinkings(program: Program) -> list[Edit]:
    """Edits that make sizes smaller: each, the largest first, by much and then by little; then all at once."""
    sizes = sizes_in(program)
    edits: list[Edit] = []
    for size in sizes:
        targets = [t for t in dict.fromkeys((1, 2, 3, size // 2, size - 1)) if 0 < t < size]
        edits += [_to(size, t, local) for t in targets for local in (False, True)]
    if sizes and sizes[0] > 2:
        edits += [_all_to(2), _all_to(3)]
    return [*edits, *_axis_shrinkings(program)]


def _axis_shrinkings(program: Program) -> list[Edit]:
    """Edits that make one dimension size 1, for sizes that are equal and not the same: of all inputs of a rank, and of
    the inputs, constants and broadcasts of a shape, or of two shapes (those that a dot sums over)."""
    shapes = {shape_of(v) for v in _free_values(program) if is_tensor(v.type)}
    places = [(s, i) for s in sorted(shapes, key=str) for i, n in enumerate(s) if isinstance(n, int) and n > 1]
    ranks = dict.fromkeys((len(s), i, s[i]) for s, i in places)
    pairs = [pair for pair in combinations(places, 2) if pair[0][0][pair[0][1]] == pair[1][0][pair[1][1]]]
    return [
        *(_axis_to_one(*found) for found in ranks), *(_axes_to_one(found) for found in places),
        *(_axes_to_one(*pair) for pair in pairs[:_MOST_PAIRS]),
    ]  # fmt: skip


def _free_values(program: Program) -> list[SSAValue]:
    """Inputs, and the results of constants and broadcasts: what no operand gives its shape."""
    made = [r for op in program.ops() if isinstance(op, hlo.ConstantOp | hlo.BroadcastInDimOp) for r in op.results]
    return [*program.block.args, *made]


def _axis_to_one(rank: int, axis: int, size: Size) -> Edit:
    def edit(program: Program) -> bool:
        args = [v for v in program.block.args if is_tensor(v.type) and rank_of(v) == rank]
        return _shrunk_along(program, {v: [axis] for v in args if shape_of(v)[axis] == size}, program.block.args)

    return edit


def _axes_to_one(*places: _Place) -> Edit:
    def edit(program: Program) -> bool:
        tensors = [v for v in _free_values(program) if is_tensor(v.type)]
        axes = {v: [i for shape, i in places if shape_of(v) == shape] for v in tensors}
        given = {v: found for v, found in axes.items() if found}
        return _shrunk_along(program, given, [*program.block.args, *given])

    return edit


def _shrunk_along(program: Program, axes: Mapping[SSAValue, Sequence[int]], given: Sequence[SSAValue]) -> bool:
    original = program.clone()
    for value, ones in axes.items():
        retype(value, with_shape(value, [1 if i in ones else s for i, s in enumerate(shape_of(value))]))
    try:
        _rewrite(program, original, {}, local=True, given=list(given))
    except _Follows:
        return False  # Something would be empty.
    return True


def _to(size: int, target: int, local: bool) -> Edit:
    return lambda p: shrink(p, {size: target}, local=local)


def _all_to(least: int) -> Edit:
    return lambda p: shrink(p, {s: least for s in sizes_in(p) if s > least}, free=True)


def shrink(program: Program, mapping: Mapping[int, int], *, free: bool = False, local: bool = False) -> bool:
    """Change sizes in place, and those that follow.

    A size that turns out to follow from a changed one is changed wherever it stands, unless `local`. `free` lets what
    follows overrule the mapping.
    """
    original = program.clone()
    known = dict(mapping)
    for _ in range(_ROUNDS):
        try:
            _rewrite(program, original, known, local)
            return True
        except _Follows as follows:
            if known.get(follows.old, follows.new) != follows.new and not free:
                return False
            if follows.new == 0 and follows.old != 0:
                return False  # An empty tensor is no simpler: it hides what is computed.
            if known.get(follows.old) == follows.new:
                return False
            known[follows.old] = follows.new
            program.module = original.module.clone()
    return False


def _values(op: Operation) -> list[SSAValue]:
    return [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]


def _rewrite(program: Program, original: Program, mapping: Mapped, local: bool, given: Sequence[SSAValue] = ()) -> None:
    """Map the sizes of all values, adapt what holds sizes, and infer again; _Follows where that changes another."""
    old = [v.type for op in original.ops() for v in _values(op)]
    new = [v for op in program.ops() for v in _values(op)]
    declared = dict(zip(new, old, strict=True))
    for value, type in declared.items():
        if value not in given:
            retype(value, _map_type(type, mapping))
    weights: dict[str, str] = {}
    for op in list(program.ops()):
        if isinstance(op, hlo.ConstantOp):
            array = op.elements_attr.array()
            op.properties["value"] = _elements(array, static_shape(op.output) or ())
        elif isinstance(op, WeightOp):
            _shrink_weight(program, op, weights)
        elif isinstance(op, GraphOp):
            _adapt(op, declared, mapping)
            _infer(op, declared, mapping, local)
    for function in program.functions():
        function.update_function_type()


def _map_type(type: Attribute, mapping: Mapped) -> Attribute:
    if not is_tensor(type):
        return type
    return with_shape(type, [mapping.get(s, s) if isinstance(s, int) else s for s in shape_of(type)])


def _elements(array: np.ndarray[Any, Any], shape: Sequence[int]) -> ElementsAttr:
    """The first elements in each dimension."""
    part = array[tuple(slice(0, n) for n in shape)]
    return ElementsAttr.of(np.broadcast_to(part, shape))


def _shrink_weight(program: Program, op: WeightOp, done: dict[str, str]) -> None:
    shape = static_shape(op.result)
    if op.symbol not in program.weights or shape is None or program.weights[op.symbol].shape == shape:
        return
    name = done.get(op.symbol)
    if name is None:
        part = program.weights[op.symbol][tuple(slice(0, n) for n in shape)]
        name = done[op.symbol] = program.weights.add(op.symbol, part)
    op.properties["weight"] = SymbolRefAttr(name)


# ---- fewer dimensions ----

_ELEMENTWISE = (UnaryOp, BinaryOp, hlo.ConvertOp, hlo.CompareOp, hlo.SelectOp, hlo.ClampOp, hlo.ConstantOp)
_MOVES = (hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.TransposeOp)


def to_scalars(program: Program) -> bool:
    """Make every tensor of one element a scalar, in place, where all tensors are such and all ops know scalars."""
    ops = [op for op in program.block.ops if op is not program.returned]
    values = [v for v in (*program.block.args, *(r for op in ops for r in op.results)) if is_tensor(v.type)]
    if not all(isinstance(op, (*_ELEMENTWISE, *_MOVES, hlo.DotGeneralOp)) for op in ops):
        return False
    if any(static_shape(v) is None or math.prod(shape_of(v)) != 1 for v in values) or not any(map(rank_of, values)):
        return False
    for value in values:
        retype(value, with_shape(value, ()))
    for op in ops:
        if isinstance(op, hlo.ConstantOp):
            op.properties["value"] = _elements(op.elements_attr.array().reshape(()), ())
        elif isinstance(op, hlo.DotGeneralOp):
            op.properties["dot_dimension_numbers"] = encode("dot_dimension_numbers", DotDimensions())
        elif isinstance(op, _MOVES):
            op.results[0].replace_all_uses_with(op.operands[0])
            Rewriter.erase_op(op)
    program.main.update_function_type()
    return True


# ---- what holds sizes ----


def _adapt(op: GraphOp, declared: Mapping[SSAValue, Attribute], mapping: Mapped) -> None:
    """Bring the properties that hold sizes inside the operand's new sizes."""
    if isinstance(op, hlo.SliceOp):
        _adapt_slice(op, declared)
    elif (attr := op.properties.get("slice_sizes")) is not None and op.operands:
        before, now = shape_of(declared[op.operands[0]]), shape_of(op.operands[0])
        sizes = [
            size if not isinstance(size, int) or not isinstance(n, int) else n if size == b else min(size, n)
            for size, b, n in zip(sizes_of(attr), before, now, strict=True)
        ]
        op.properties["slice_sizes"] = sizes_attr(sizes)


def _adapt_slice(op: hlo.SliceOp, declared: Mapping[SSAValue, Attribute]) -> None:
    before, now = shape_of(declared[op.operand]), shape_of(op.operand)
    starts, limits = list(sizes_of(op.start_indices)), list(sizes_of(op.limit_indices))
    for i, (b, n) in enumerate(zip(before, now, strict=True)):
        start, limit = starts[i], limits[i]
        if b == n or not (isinstance(start, int) and isinstance(limit, int) and isinstance(n, int)):
            continue
        taken = limit - start
        limits[i] = n if limit == b else min(limit, n)
        starts[i] = min(start, max(0, cast(int, limits[i]) - min(taken, 1)))
    op.properties["start_indices"], op.properties["limit_indices"] = sizes_attr(starts), sizes_attr(limits)


def _infer(op: GraphOp, declared: Mapping[SSAValue, Attribute], mapping: Mapped, local: bool) -> None:
    if isinstance(op, hlo.ReshapeOp):
        _infer_reshape(op, declared, mapping, local)
    elif op.INFERS:
        for result, type in zip(op.results, op.infer(), strict=True):
            _settle(result, type, declared, local)
    elif isinstance(op, hlo.ConvolutionOp):
        _settle(op.result, with_shape(op.result, op.result_shape()), declared, local)
    elif isinstance(op, hlo.DotGeneralOp):
        _settle(op.result, with_shape(op.result, dot_shape(op)), declared, local)
    elif local and op.operands and op.results:
        _follow_operand(op, declared)


def dot_shape(op: hlo.DotGeneralOp) -> list[Size]:
    """The sizes of a dot's result, which follow from its operands'."""
    d, lhs, rhs = op.dimensions, shape_of(op.lhs), shape_of(op.rhs)
    free = [*(lhs[i] for i in d.lhs_free(len(lhs))), *(rhs[i] for i in d.rhs_free(len(rhs)))]
    return [*(lhs[i] for i in d.lhs_batching_dimensions), *free]


def _follow_operand(op: GraphOp, declared: Mapping[SSAValue, Attribute]) -> None:
    """Where a declared shape is the operand's, or a broadcast of it, it changes with the operand."""
    operand, result = op.operands[0], op.results[0]
    if not (is_tensor(operand.type) and is_tensor(result.type)):
        return
    before, now, shape = shape_of(declared[operand]), shape_of(operand), list(shape_of(result))
    if isinstance(op, hlo.BroadcastInDimOp):
        for old, new, target in zip(before, now, op.value("broadcast_dimensions"), strict=True):
            if old != 1 and shape[target] == old:
                shape[target] = new
    elif tuple(shape) == before:
        shape = list(now)
    retype(result, with_shape(result, shape))


def _settle(value: SSAValue, inferred: Attribute, declared: Mapping[SSAValue, Attribute], local: bool) -> None:
    """Give a value its inferred type; a size that the mapping does not explain must change everywhere."""
    if is_tensor(inferred) and is_tensor(value.type) and rank_of(inferred) == rank_of(value):
        for old, now, size in zip(shape_of(declared[value]), shape_of(value), shape_of(inferred), strict=True):
            # Dimensions of size 1 are not one dimension: what becomes of this one concerns no other.
            follows = isinstance(old, int) and isinstance(size, int) and now != size and old != 1
            if follows and (not local or size == 0):
                raise _Follows(cast(int, old), cast(int, size))
    retype(value, inferred)


def _infer_reshape(op: hlo.ReshapeOp, declared: Mapping[SSAValue, Attribute], mapping: Mapped, local: bool) -> None:
    """A reshape must keep the number of elements: some size of the result follows from the operand's."""
    source, shape = static_shape(op.operand), static_shape(op.result)
    if source is None or shape is None or math.prod(source) == math.prod(shape):
        return
    old = cast("tuple[int, ...]", static_shape(declared[op.result]))
    total = math.prod(source)
    for i in sorted(range(len(shape)), key=lambda i: (old[i] in mapping, -old[i])):
        rest = math.prod(s for j, s in enumerate(shape) if j != i)
        if rest and total % rest == 0 and old[i] > 1:
            if not local:
                raise _Follows(old[i], total // rest)
            retype(op.result, with_shape(op.result, [total // rest if j == i else s for j, s in enumerate(shape)]))
            return
    raise ValueError("the elements do not fit")
