"""Matrices and transforms: batches pass through, and what is solved or transformed stays whole."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(
    hlo.CholeskyOp, hlo.FftOp, hlo.SortOp, chlo.TopKOp,
    hlo.BatchNormInferenceOp, hlo.BatchNormTrainingOp, hlo.BatchNormGradOp,
)  # fmt: skip
def whole(op: Operation, draft: Draft) -> None:
    """As the maps show; along other dimensions an element may need all others, and the result lies as the operand."""
    draft.positions(Kind.NEED_REPLICATION, equal=True)


@rules(hlo.TriangularSolveOp)
def triangular_solve(op: hlo.TriangularSolveOp, draft: Draft) -> None:
    """Batches, and the right hand sides, are solved one by one."""
    for dim in range(len(draft.shapes[0]) - 2):
        draft.tie([(0, dim), (1, dim), draft.result(dim)])
    whole(op, draft)
