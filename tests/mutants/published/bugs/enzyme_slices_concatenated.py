"""Enzyme-JAX: neighbouring slices become one slice, along whatever dimension they are concatenated.

https://github.com/EnzymeAD/Enzyme-JAX/issues/2938
"""

from dataclasses import dataclass
from typing import ClassVar

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")

Ints = tuple[int, ...]


def neighbours(a: Ints, e: Ints, f: Ints, s: Ints) -> bool:
    apart = [i for i, (one, other) in enumerate(zip(a, f, strict=True)) if one != other]
    return set(s) == {1} and len(apart) == 1 and e[apart[0]] == f[apart[0]]


REWRITES = (
    Rule(
        "enzyme-slices-concatenated",
        Op(
            hlo.ConcatenateOp,
            Op(hlo.SliceOp, x, start_indices=Attr("a"), limit_indices=Attr("e"), strides=Attr("s")),
            Op(hlo.SliceOp, x, start_indices=Attr("f"), limit_indices=Attr("g"), strides=Attr("s")),
        ),
        Op(hlo.SliceOp, x, start_indices=Attr("a"), limit_indices=Attr("g"), strides=Attr("s")),
        where=Calc(neighbours),
    ),
)


@dataclass(frozen=True)
class EnzymeSlicesConcatenated(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "enzyme-slices-concatenated"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
