"""Ops that say the same in a simpler way say it: identities, inverses, and compositions of data movement.

Rules are bit-identical (E0); floating-point identities hold for every value, signed zeros and infinities included
(`x - 0` is `x`, but `x + 0` is not when `x` is `-0`), and may change only a NaN's payload (E1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dims import Range, Ranges, Size, symbols_of
from gcomp.dtypes import is_float, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import converted_type, dtype_text, shape_of, tensor_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Rewrite, apply_rewrites

Ints = tuple[int, ...]
Sizes = tuple[Size, ...]

x, y, p = Var("x"), Var("y"), Var("p")


def _integral(x: SSAValue) -> bool:
    return is_integer(dtype_text(tensor_of(x)))


def _same_type(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type


def _boolean(x: SSAValue) -> bool:
    return dtype_text(tensor_of(x)) == "i1"


def _number(x: SSAValue) -> bool:
    return _integral(x) or is_float(dtype_text(tensor_of(x)))


def _has_sign(x: SSAValue) -> bool:
    return dtype_text(tensor_of(x)) != "f8E8M0FNU"  # the negative of a number is NaN there


def _identity(p: Ints) -> bool:
    return p == tuple(range(len(p)))


def _compose(p: Ints, q: Ints) -> Ints:
    """The permutation that does `p` and then `q`; also where the dimensions of a broadcast by `p` go under `q`."""
    return tuple(p[i] for i in q)


def _find_dims(p: Ints, d: Ints) -> Ints:
    """Where a transpose by `p` puts the dimensions `d`."""
    return tuple(p.index(i) for i in d)


def _stays_in_place(x: SSAValue, root: SSAValue, p: Ints) -> bool:
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
    Rule("add-minus-zero", Op(hlo.AddOp, x, Const(value=-0.0), commutes=True), x,
         exactness=Exactness.E1, doc="x + (-0) is x for every x, -0 included"),
    Rule("subtract-zero", Op(hlo.SubtractOp, x, Const(value=0)), x,
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
         Op(hlo.TransposeOp, x, permutation=Calc(_compose))),
    Rule("transpose-identity", Op(hlo.TransposeOp, x, permutation=Attr("p")), x, where=Calc(_identity)),
    Rule("transpose-of-broadcast",
         Op(hlo.TransposeOp, Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("d")), permutation=Attr("p")),
         Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Calc(_find_dims))),
    Rule("reshape-of-reshape", Op(hlo.ReshapeOp, Op(hlo.ReshapeOp, x)), Op(hlo.ReshapeOp, x)),
    Rule("reshape-identity", Op(hlo.ReshapeOp, x), x, where=Calc(_same_type)),
    Rule("broadcast-of-broadcast",
         Op(hlo.BroadcastInDimOp, Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("q")),
            broadcast_dimensions=Attr("p")),
         Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Calc(_compose))),
    Rule("broadcast-identity", Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("p")), x,
         where=Calc(_stays_in_place)),
    Rule("convert-of-broadcast",
         Op(hlo.ConvertOp, Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("d"))),
         Op(hlo.BroadcastInDimOp, Op(hlo.ConvertOp, x, type=Calc(converted_type)), broadcast_dimensions=Attr("d")),
         doc="a zero point is converted once, not for each element"),
    Rule("convert-identity", Op(hlo.ConvertOp, x), x, where=Calc(_same_type)),
    Rule("reverse-of-reverse", Op(hlo.ReverseOp, Op(hlo.ReverseOp, x, dimensions=Attr("p")), dimensions=Attr("q")), x,
         where=Calc(_same_dimensions)),
    Rule("reverse-nothing", Op(hlo.ReverseOp, x, dimensions=()), x),
    Rule("concatenate-one", Op(hlo.ConcatenateOp, x), x),
)  # fmt: skip


def _takes_all(x: SSAValue, a: Sizes, b: Sizes, s: Ints) -> bool:
    return b == shape_of(x) and all(i == 0 for i in a) and all(i == 1 for i in s)


def _start_of_slices(a: Sizes, s: Ints, c: Sizes) -> Sizes:
    return tuple(i + k * j for i, j, k in zip(a, s, c, strict=True))


def _stride_of_slices(s: Ints, t: Ints) -> Ints:
    return tuple(i * j for i, j in zip(s, t, strict=True))


def _limit_of_slices(root: SSAValue, a: Sizes, s: Ints, c: Sizes, t: Ints) -> Sizes:
    ranges = zip(_start_of_slices(a, s, c), shape_of(root), _stride_of_slices(s, t), strict=True)
    return tuple(start + (count - 1) * stride + 1 for start, count, stride in ranges)


def _at_least_one(size: Size) -> bool:
    if isinstance(size, int):
        return size > 0
    names = symbols_of(size)
    return "_" not in names and Ranges(dict.fromkeys(names, Range(0))).less_equal(1, size) is True


def _takes_any(root: SSAValue) -> bool:
    return all(map(_at_least_one, shape_of(root)))


def _adds_nothing(low: Sizes, high: Sizes, gap: Ints) -> bool:
    return all(amount == 0 for amount in (*low, *high, *gap))


def _moves_units_only(x: SSAValue, p: Ints) -> bool:
    """Whether a permutation keeps the order of all dimensions whose size is not 1; it is not the identity."""
    moved = [q for q in p if shape_of(x)[q] != 1]
    return moved == sorted(moved) and not _identity(p)


def _keeps_free_order(p: Ints, used: Ints) -> bool:
    """Whether a transpose keeps the order of a dot's free dimensions, which is that of the result's."""
    free = [q for i, q in enumerate(p) if i not in used]
    return free == sorted(free)


def _keeps_lhs_order(p: Ints, d: DotDimensions) -> bool:
    return _keeps_free_order(p, (*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions))


def _keeps_rhs_order(p: Ints, d: DotDimensions) -> bool:
    return _keeps_free_order(p, (*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions))


def _lhs_composed(p: Ints, d: DotDimensions) -> DotDimensions:
    batching, contracting = _compose(p, d.lhs_batching_dimensions), _compose(p, d.lhs_contracting_dimensions)
    return d._replace(lhs_batching_dimensions=batching, lhs_contracting_dimensions=contracting)


def _rhs_composed(p: Ints, d: DotDimensions) -> DotDimensions:
    batching, contracting = _compose(p, d.rhs_batching_dimensions), _compose(p, d.rhs_contracting_dimensions)
    return d._replace(rhs_batching_dimensions=batching, rhs_contracting_dimensions=contracting)


def _slice(of: Term, start: str, limit: str, stride: str) -> Op:
    return Op(hlo.SliceOp, of, start_indices=Attr(start), limit_indices=Attr(limit), strides=Attr(stride))


def _dot(lhs: Term, rhs: Term, dimensions: Attr | Calc, like: str = "") -> Op:
    return Op(hlo.DotGeneralOp, lhs, rhs, dot_dimension_numbers=dimensions, like=like)


_VIEW = Op(hlo.TransposeOp, x, permutation=Attr("p"))
_PAD = Op(hlo.PadOp, x, y, edge_padding_low=Attr("low"), edge_padding_high=Attr("high"), interior_padding=Attr("gap"))

WINDOWS = (
    Rule("slice-all", _slice(x, "a", "b", "s"), x, where=Calc(_takes_all)),
    Rule("slice-of-slice", _slice(_slice(x, "a", "b", "s"), "c", "d", "t"),
         Op(hlo.SliceOp, x, start_indices=Calc(_start_of_slices), limit_indices=Calc(_limit_of_slices),
            strides=Calc(_stride_of_slices)),
         where=Calc(_takes_any),
         doc="`x[a:b:s][c:d:t]` is `x[e : e + (n-1)*s*t + 1 : s*t]`: n elements from e = a + c*s"),
    Rule("pad-nothing", _PAD, x, where=Calc(_adds_nothing)),
    Rule("transpose-of-unit-dims", _VIEW, Op(hlo.ReshapeOp, x), where=Calc(_moves_units_only)),
    Rule("transpose-into-dot-lhs", _dot(_VIEW, y, Attr("d")), _dot(x, y, Calc(_lhs_composed), like="root"),
         where=Calc(_keeps_lhs_order)),
    Rule("transpose-into-dot-rhs", _dot(y, _VIEW, Attr("d")), _dot(y, x, Calc(_rhs_composed), like="root"),
         where=Calc(_keeps_rhs_order)),
)  # fmt: skip


RULES: tuple[Rewrite, ...] = (*INVERSES, *IDEMPOTENT, *ARITHMETIC, *MOVEMENT, *WINDOWS)


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Apply the rules above to a fixed point."""

    name: ClassVar[str] = "canonicalize"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, RULES, context)
