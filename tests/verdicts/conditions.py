"""Passes that are right but for a condition: one that they lack, or that asks for something else.

Each is of a kind of its own: a constant's limits, a size that is not known, an element type, an attribute, the order of
attributes, a comparator in a region, a write before a read, an operand with a second user.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import is_float, is_integer
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, shape_of
from gcomp.passes.rewriting import Pattern, constant_value
from tests.verdicts.wrong import maker_of, pass_of


class DivideByPower(Pattern):
    """x / c is x * (1 / c) for powers of two: not where 1 / c overflows."""

    name = "divide-by-power"
    roots = (hlo.DivideOp,)

    def rewrite(self, op: hlo.DivideOp, b: Builder) -> Sequence[SSAValue] | None:
        text, known = dtype_text(op.result.type), constant_value(op.rhs)
        if known is None or not known.size or (known != known.flat[0]).any() or not is_float(text):
            return None
        value = float(known.flat[0])
        if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
            return None
        with np.errstate(all="ignore"):
            inverse = np.asarray(1 / known.flat[0]).astype(known.dtype)
        return [b.multiply(op.lhs, b.full_like(op.lhs, inverse))]


class ReverseOne(Pattern):
    """A reverse of dimensions of size 1 does nothing: it takes the least size of each for its size."""

    name = "reverse-of-one"
    roots = (hlo.ReverseOp,)

    def rewrite(self, op: hlo.ReverseOp, b: Builder) -> Sequence[SSAValue] | None:
        shape = shape_of(op.operand)
        least = [b.program.ranges.bounds(shape[d])[0] for d in op.value("dimensions")]
        return [op.operand] if all(low == 1 for low in least) else None


class NegativeBelow(Pattern):
    """-x < 0 is x > 0: not for the least of the integers, nor for those without a sign."""

    name = "negative-below-zero"
    roots = (hlo.CompareOp,)

    def rewrite(self, op: hlo.CompareOp, b: Builder) -> Sequence[SSAValue] | None:
        inner, zero = maker_of(op.lhs), constant_value(op.rhs)
        if not isinstance(inner, hlo.NegateOp) or zero is None or not zero.size or zero.any():
            return None
        if op.comparison_direction.data != "LT" or not is_integer(dtype_text(op.lhs.type)):
            return None
        return [b.compare(inner.operand, op.rhs, "GT")]


class PadTwice(Pattern):
    """A pad of a pad pads by both: not where the inner one cuts off what the outer one fills."""

    name = "pad-of-pad"
    roots = (hlo.PadOp,)

    def rewrite(self, op: hlo.PadOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.operand)
        if not isinstance(inner, hlo.PadOp) or any(inner.value("interior_padding") + op.value("interior_padding")):
            return None
        if inner.padding_value is not op.padding_value:
            return None
        low, high = (
            [x + y for x, y in zip(sizes_of(inner.properties[k]), sizes_of(op.properties[k]), strict=True)]
            for k in ("edge_padding_low", "edge_padding_high")
        )
        return [b.pad(inner.operand, op.padding_value, low, high)]


class TransposeTwice(Pattern):
    """A transpose of a transpose is one, whose permutation is composed the wrong way round."""

    name = "transpose-of-transpose"
    roots = (hlo.TransposeOp,)

    def rewrite(self, op: hlo.TransposeOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.operand)
        if not isinstance(inner, hlo.TransposeOp):
            return None
        first, then = inner.value("permutation"), op.value("permutation")
        shape, composed = shape_of(inner.operand), [then[i] for i in first]
        fits = tuple(shape[i] for i in composed) == shape_of(op.result)
        return [b.transpose(inner.operand, composed)] if fits else None


class SortDown(Pattern):
    """Sorting downwards is sorting upwards and then reversing: not where unequal elements compare equal."""

    name = "sort-down"
    roots = (hlo.SortOp,)

    def rewrite(self, op: hlo.SortOp, b: Builder) -> Sequence[SSAValue] | None:
        block = op.comparator.block
        compare = block.first_op
        if len(op.inputs) != 1 or not isinstance(compare, hlo.CompareOp) or tuple(compare.operands) != block.args:
            return None
        if compare.comparison_direction.data != "GT" or compare.next_op is not block.last_op:
            return None
        copy = op.clone()
        first = copy.comparator.block.first_op
        assert isinstance(first, hlo.CompareOp)
        first.properties["comparison_direction"] = encode("comparison_direction", "LT")
        b.insert(copy)
        return [
            b.emit(hlo.ReverseOp, copy.results[0], dimensions=[op.value("dimension") % len(shape_of(op.inputs[0]))])
        ]


class ReadBeside(Pattern):
    """What is read beside a write is what was there before: starts are clamped, so it may not be beside."""

    name = "read-beside-write"
    roots = (hlo.DynamicSliceOp,)

    def rewrite(self, op: hlo.DynamicSliceOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.operand)
        if not isinstance(inner, hlo.DynamicUpdateSliceOp):
            return None
        for size, read, write in zip(shape_of(inner.update), op.start_indices, inner.start_indices, strict=True):
            here, there = constant_value(read), constant_value(write)
            if here is not None and there is not None and isinstance(size, int) and int(here) >= int(there) + size:
                return [b.emit(hlo.DynamicSliceOp, inner.operand, *op.start_indices, slice_sizes=op.slice_sizes)]
        return None


class NotOfCompare(Pattern):
    """The opposite of a comparison of integers, which it changes in place: others may read it."""

    name = "not-of-compare"
    roots = (hlo.NotOp,)

    def rewrite(self, op: hlo.NotOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.operand)
        if not isinstance(inner, hlo.CompareOp) or not is_integer(dtype_text(inner.lhs.type)):
            return None
        opposite = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
        direction = opposite[inner.comparison_direction.data]
        inner.properties["comparison_direction"] = encode("comparison_direction", direction)
        return [inner.result]


DIVIDE_BY_POWER, REVERSE_ONE, NEGATIVE = pass_of(DivideByPower()), pass_of(ReverseOne()), pass_of(NegativeBelow())
PAD_TWICE, TRANSPOSE_TWICE, SORT_DOWN = pass_of(PadTwice()), pass_of(TransposeTwice()), pass_of(SortDown())
READ_BESIDE, NOT_OF_COMPARE = pass_of(ReadBeside()), pass_of(NotOfCompare())
