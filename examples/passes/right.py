"""Ten passes that are right: `gcomp try examples/passes/right.py --pass NAME` says so of each.

Each is one rule, over what its first line names; the wrong ones beside them in docs/generated/gallery.md look no worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.dtypes import is_integer
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

Ints = tuple[int, ...]
x, y, p = Var("x"), Var("y"), Var("p")


@dataclass(frozen=True)
class Example(Pass):
    """A pass of one rule."""

    RULE: ClassVar[Rule]

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (self.RULE,), context)


NOT_OF_NOT = Rule("right-not-of-not", Op(hlo.NotOp, Op(hlo.NotOp, x)), x)


@dataclass(frozen=True)
class NotOfNot(Example):
    """`~~x` is `x`."""

    name: ClassVar[str] = "right-not-of-not"
    RULE = NOT_OF_NOT


NOTS_OF_AND = Rule(
    "right-nots-of-and", Op(hlo.AndOp, Op(hlo.NotOp, x), Op(hlo.NotOp, y)), Op(hlo.NotOp, Op(hlo.OrOp, x, y))
)


@dataclass(frozen=True)
class NotsOfAnd(Example):
    """`~x & ~y` is `~(x | y)`."""

    name: ClassVar[str] = "right-nots-of-and"
    RULE = NOTS_OF_AND


AND_TAKES_OR = Rule("right-and-takes-or", Op(hlo.AndOp, x, Op(hlo.OrOp, x, y, commutes=True), commutes=True), x)


@dataclass(frozen=True)
class AndTakesOr(Example):
    """`x & (x | y)` is `x`."""

    name: ClassVar[str] = "right-and-takes-or"
    RULE = AND_TAKES_OR


XOR_TWICE = Rule("right-xor-twice", Op(hlo.XorOp, Op(hlo.XorOp, x, y), y), x)


@dataclass(frozen=True)
class XorTwice(Example):
    """`(x ^ y) ^ y` is `x`."""

    name: ClassVar[str] = "right-xor-twice"
    RULE = XOR_TWICE


NOT_OF_EQUAL = Rule(
    "right-not-of-equal",
    Op(hlo.NotOp, Op(hlo.CompareOp, x, y, comparison_direction="EQ", compare_type=Attr("t"))),
    Op(hlo.CompareOp, x, y, comparison_direction="NE", compare_type=Attr("t")),
)


@dataclass(frozen=True)
class NotOfEqual(Example):
    """`~(x == y)` is `x != y`, for NaN too."""

    name: ClassVar[str] = "right-not-of-equal"
    RULE = NOT_OF_EQUAL


SELECT_SAME = Rule("right-select-same", Op(hlo.SelectOp, p, x, x), x)


@dataclass(frozen=True)
class SelectSame(Example):
    """A choice between a value and itself is the value."""

    name: ClassVar[str] = "right-select-same"
    RULE = SELECT_SAME


def composed(p: Ints, q: Ints) -> Ints:
    """The permutation that does `p` and then `q`."""
    return tuple(p[i] for i in q)


TRANSPOSE_TWICE = Rule(
    "right-transpose-twice",
    Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
    Op(hlo.TransposeOp, x, permutation=Calc(composed)),
)


@dataclass(frozen=True)
class TransposeTwice(Example):
    """Two transposes are one."""

    name: ClassVar[str] = "right-transpose-twice"
    RULE = TRANSPOSE_TWICE


def one_of_them(p: Ints, q: Ints) -> Ints:
    """The dimensions that are in one of two lists, and not in both."""
    return tuple(sorted({*p} ^ {*q}))


REVERSE_TWICE = Rule(
    "right-reverse-twice",
    Op(hlo.ReverseOp, Op(hlo.ReverseOp, x, dimensions=Attr("p")), dimensions=Attr("q")),
    Op(hlo.ReverseOp, x, dimensions=Calc(one_of_them)),
)


@dataclass(frozen=True)
class ReverseTwice(Example):
    """Two reversals are one, of the dimensions that only one of them reverses."""

    name: ClassVar[str] = "right-reverse-twice"
    RULE = REVERSE_TWICE


RESHAPE_TWICE = Rule("right-reshape-twice", Op(hlo.ReshapeOp, Op(hlo.ReshapeOp, x)), Op(hlo.ReshapeOp, x))


@dataclass(frozen=True)
class ReshapeTwice(Example):
    """A reshape of a reshape is one."""

    name: ClassVar[str] = "right-reshape-twice"
    RULE = RESHAPE_TWICE


SUBTRACT_FROM_SUM = Rule(
    "right-subtract-from-sum", Op(hlo.SubtractOp, Op(hlo.AddOp, x, y), y), x,
    where=Calc(lambda x: is_integer(dtype_text(x.type))),
)  # fmt: skip


@dataclass(frozen=True)
class SubtractFromSum(Example):
    """`(x + y) - y` is `x`, for integers, whose sums wrap around."""

    name: ClassVar[str] = "right-subtract-from-sum"
    RULE = SUBTRACT_FROM_SUM
