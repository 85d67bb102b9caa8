"""Ops that say the same in a simpler way say it: identities, inverses, and compositions of data movement.

Rules are bit-identical (E0); floating-point identities hold for every value, signed zeros and infinities included
(`x - 0` is `x`, but `x + 0` is not when `x` is `-0`), and may change only a NaN's payload (E1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_float, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Var
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, Rewrite, apply_rewrites

Ints = tuple[int, ...]

x, y, p = Var("x"), Var("y"), Var("p")


def _integral(x: SSAValue) -> bool:
    return is_integer(dtype_text(tensor_of(x)))


def _same_type(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type


def _boolean(x: SSAValue) -> bool:
    return dtype_text(tensor_of(x)) == "i1"


def _floating(x: SSAValue) -> bool:
    return is_float(dtype_text(tensor_of(x)))


def _number(x: SSAValue) -> bool:
    return _integral(x) or _floating(x)


def _has_sign(x: SSAValue) -> bool:
    return dtype_text(tensor_of(x)) != "f8E8M0FNU"  # the negative of a number is NaN there


def _identity(p: Ints) -> bool:
    return p == tuple(range(len(p)))


def _composed(p: Ints, q: Ints) -> Ints:
    """The permutation that does `p` and then `q`; also where the dimensions of a broadcast by `p` go under `q`."""
    return tuple(p[i] for i in q)


def _found(p: Ints, d: Ints) -> Ints:
    """Where a transpose by `p` puts the dimensions `d`."""
    return tuple(p.index(i) for i in d)


def _kept_in_place(x: SSAValue, root: SSAValue, p: Ints) -> bool:
    return _same_type(x, root) and _identity(p)


def _same_dimensions(p: Ints, q: Ints) -> bool:
    return sorted(p) == sorted(q)


INVERSES = (
    Rule("negate-of-negate", Op(hlo.NegateOp, Op(hlo.NegateOp, x)), x, where=Calc(_has_sign)),
    Rule("not-of-not", Op(hlo.NotOp, Op(hlo.NotOp, x)), x),
)

IDEMPOTENT = tuple(
    Rule(f"{name}-idempotent", Op(op, x, x), x, exactness=exactness)
    for name, op, exactness in (
        ("and", hlo.AndOp, Exactness.E0), ("or", hlo.OrOp, Exactness.E0),
        ("maximum", hlo.MaximumOp, Exactness.E1), ("minimum", hlo.MinimumOp, Exactness.E1),
    )
)  # fmt: skip

ARITHMETIC = (
    Rule("add-integer-zero", Op(hlo.AddOp, x, Const(value=0), commutes=True), x, where=Calc(_integral)),
    Rule("add-minus-zero", Op(hlo.AddOp, x, Const(value=-0.0), commutes=True), x, where=Calc(_floating),
         exactness=Exactness.E1, doc="x + (-0) is x for every x, -0 included"),
    Rule("subtract-zero", Op(hlo.SubtractOp, x, Const(value=0)), x, where=Calc(_number),
         exactness=Exactness.E1, doc="x - (+0) is x for every x, -0 included"),
    Rule("multiply-by-one", Op(hlo.MultiplyOp, x, Const(value=1), commutes=True), x, where=Calc(_number),
         exactness=Exactness.E1),
    Rule("multiply-integer-by-zero", Op(hlo.MultiplyOp, x, Const(value=0), commutes=True), Const(value=0),
         where=Calc(_integral)),
    Rule("divide-by-one", Op(hlo.DivideOp, x, Const(value=1)), x, where=Calc(_number), exactness=Exactness.E1),
    Rule("subtract-integer-self", Op(hlo.SubtractOp, x, x), Const(value=0), where=Calc(_integral)),
    Rule("xor-self", Op(hlo.XorOp, x, x), Const(value=0)),
    Rule("and-true", Op(hlo.AndOp, x, Const(value=True), commutes=True), x, where=Calc(_boolean)),
    Rule("and-false", Op(hlo.AndOp, x, Const(value=False), commutes=True), Const(value=False)),
    Rule("or-true", Op(hlo.OrOp, x, Const(value=True), commutes=True), Const(value=True), where=Calc(_boolean)),
    Rule("or-false", Op(hlo.OrOp, x, Const(value=False), commutes=True), x),
    Rule("select-same", Op(hlo.SelectOp, p, x, x), x),
    Rule("select-true", Op(hlo.SelectOp, Const(value=True), x, y), x),
    Rule("select-false", Op(hlo.SelectOp, Const(value=False), x, y), y),
)  # fmt: skip

MOVEMENT = (
    Rule("transpose-of-transpose",
         Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
         Op(hlo.TransposeOp, x, permutation=Calc(_composed))),
    Rule("transpose-identity", Op(hlo.TransposeOp, x, permutation=Attr("p")), x, where=Calc(_identity)),
    Rule("transpose-of-broadcast",
         Op(hlo.TransposeOp, Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("d")), permutation=Attr("p")),
         Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Calc(_found))),
    Rule("reshape-of-reshape", Op(hlo.ReshapeOp, Op(hlo.ReshapeOp, x)), Op(hlo.ReshapeOp, x)),
    Rule("reshape-identity", Op(hlo.ReshapeOp, x), x, where=Calc(_same_type)),
    Rule("broadcast-of-broadcast",
         Op(hlo.BroadcastInDimOp, Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("q")),
            broadcast_dimensions=Attr("p")),
         Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Calc(_composed))),
    Rule("broadcast-identity", Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("p")), x,
         where=Calc(_kept_in_place)),
    Rule("convert-identity", Op(hlo.ConvertOp, x), x, where=Calc(_same_type)),
    Rule("reverse-of-reverse", Op(hlo.ReverseOp, Op(hlo.ReverseOp, x, dimensions=Attr("p")), dimensions=Attr("q")), x,
         where=Calc(_same_dimensions)),
    Rule("reverse-nothing", Op(hlo.ReverseOp, x, dimensions=()), x),
    Rule("concatenate-one", Op(hlo.ConcatenateOp, x), x),
)  # fmt: skip


class FullSlice(Pattern):
    """A slice that takes every element is its operand."""

    name = "slice-all"
    roots = (hlo.SliceOp,)

    def rewrite(self, op: hlo.SliceOp, b: Builder) -> Sequence[SSAValue] | None:
        starts, limits = sizes_of(op.start_indices), sizes_of(op.limit_indices)
        whole = limits == shape_of(op.operand) and all(s == 0 for s in starts)
        return [op.operand] if whole and all(s == 1 for s in op.value("strides")) else None


class SliceOfSlice(Pattern):
    """`x[a:b:s][c:d:t]` is `x[a + c*s : a + (d-1)*s + 1 : s*t]`."""

    name = "slice-of-slice"
    roots = (hlo.SliceOp,)

    def rewrite(self, op: hlo.SliceOp, b: Builder) -> Sequence[SSAValue] | None:
        if not (isinstance(op.operand, OpResult) and isinstance(inner := op.operand.op, hlo.SliceOp)):
            return None
        if any(not isinstance(s, int) or s == 0 for s in shape_of(op.result)):
            return None
        outer = zip(sizes_of(op.start_indices), shape_of(op.result), op.value("strides"), strict=True)
        starts: list[Size] = []
        limits: list[Size] = []
        strides: list[int] = []
        for (c, count, t), a, s in zip(outer, sizes_of(inner.start_indices), inner.value("strides"), strict=True):
            starts.append(a + c * s)
            strides.append(s * t)
            limits.append(starts[-1] + (count - 1) * s * t + 1)
        return [b.slice(inner.operand, starts, limits, strides)]


class EmptyPad(Pattern):
    """A pad by nothing is its operand."""

    name = "pad-nothing"
    roots = (hlo.PadOp,)

    def rewrite(self, op: hlo.PadOp, b: Builder) -> Sequence[SSAValue] | None:
        amounts = (*sizes_of(op.edge_padding_low), *sizes_of(op.edge_padding_high), *op.value("interior_padding"))
        return [op.operand] if all(a == 0 for a in amounts) else None


class ReshapeOfUnitDims(Pattern):
    """A transpose that only moves dimensions of size 1 is a reshape."""

    name = "transpose-of-unit-dims"
    roots = (hlo.TransposeOp,)

    def rewrite(self, op: hlo.TransposeOp, b: Builder) -> Sequence[SSAValue] | None:
        shape, permutation = shape_of(op.operand), op.value("permutation")
        moved = [q for q in permutation if shape[q] != 1]
        if moved != sorted(moved) or list(permutation) == list(range(rank_of(op.operand))):
            return None
        return [b.reshape(op.operand, shape_of(op.result))]


class TransposeIntoDot(Pattern):
    """A dot of a transposed operand reads the operand as it is, by other dimension numbers.

    The result lists free dimensions in the operand's order, so the transpose must keep theirs.
    """

    name = "transpose-into-dot"
    roots = (hlo.DotGeneralOp,)

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        d = op.dimensions
        lhs = self._absorbed(op.lhs, d.lhs_batching_dimensions, d.lhs_contracting_dimensions)
        rhs = self._absorbed(op.rhs, d.rhs_batching_dimensions, d.rhs_contracting_dimensions)
        if lhs is None and rhs is None:
            return None
        left, lhs_batching, lhs_contracting = lhs or (op.lhs, d.lhs_batching_dimensions, d.lhs_contracting_dimensions)
        right, rhs_batching, rhs_contracting = rhs or (op.rhs, d.rhs_batching_dimensions, d.rhs_contracting_dimensions)
        numbers = DotDimensions(lhs_batching, rhs_batching, lhs_contracting, rhs_contracting)
        properties: dict[str, Any] = {**op.properties, "dot_dimension_numbers": numbers}
        return [b.emit(hlo.DotGeneralOp, left, right, types=(op.result.type,), **properties)]

    def _absorbed(self, value: SSAValue, batching: Ints, contracting: Ints) -> tuple[SSAValue, Ints, Ints] | None:
        if not (isinstance(value, OpResult) and isinstance(value.op, hlo.TransposeOp)):
            return None
        permutation: Ints = value.op.value("permutation")
        free = [p for i, p in enumerate(permutation) if i not in batching and i not in contracting]
        if free != sorted(free):
            return None
        return value.op.operand, _composed(permutation, batching), _composed(permutation, contracting)


RULES: tuple[Rewrite, ...] = (
    *INVERSES, *IDEMPOTENT, *ARITHMETIC, *MOVEMENT, FullSlice(), SliceOfSlice(), EmptyPad(), ReshapeOfUnitDims(),
    TransposeIntoDot(),
)  # fmt: skip


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Apply the rules above to a fixed point."""

    name: ClassVar[str] = "canonicalize"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, RULES, context)
