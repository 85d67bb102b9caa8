"""The left operand of a product lies row by row: one that lies otherwise is transposed before it is read.

A product on processors reads its left operand element by element along what it sums over. Where these are not
neighbours, as after convolutions whose channels come first, each program would gather the same elements anew. The
transpose is an op of its own, that whoever computes the operand may write its results by (fusion decides). So this
comes after `canonicalize`, which folds transposes into products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x, y = Var("x"), Var("y")


def _order(x: SSAValue, d: DotDimensions) -> tuple[int, ...]:
    """The operand's dimensions in the order of rows: batches, what is free, what is summed over."""
    return (*d.lhs_batching_dimensions, *d.lhs_free(rank_of(x)), *d.lhs_contracting_dimensions)


def _in_rows(x: SSAValue, d: DotDimensions) -> DotDimensions:
    """The product of the transposed operand."""
    batches, summed = len(d.lhs_batching_dimensions), len(d.lhs_contracting_dimensions)
    rank = rank_of(x)
    return d._replace(
        lhs_batching_dimensions=tuple(range(batches)), lhs_contracting_dimensions=tuple(range(rank - summed, rank))
    )


def _lies_across(x: SSAValue, d: DotDimensions) -> bool:
    """Whether neighbours in memory belong to different rows."""
    shape = shape_of(x)
    last = max((k for k, n in enumerate(shape) if n != 1), default=0)
    return last not in d.lhs_contracting_dimensions and any(shape[k] != 1 for k in d.lhs_contracting_dimensions)


IN_ROWS = Rule(
    "dot-rows",
    Op(hlo.DotGeneralOp, x, y, dot_dimension_numbers=Attr("d")),
    Op(hlo.DotGeneralOp, Op(hlo.TransposeOp, x, permutation=Calc(_order)), y, like="root",
       dot_dimension_numbers=Calc(_in_rows)),
    profit=Calc(_lies_across),
)  # fmt: skip
"""Transpose a left operand whose neighbours in memory belong to different rows."""


@dataclass(frozen=True)
class DotRows(Pass):
    """Lay out the left operands of products row by row."""

    name: ClassVar[str] = "dot-rows"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (IN_ROWS,), context)
