"""Reductions: parts of a sum are combined by the reducer; windows need the edges of neighbours."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from gcomp.dtypes import is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules

_NOT_OF_COMPLEX = (hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp)
"""What has no unit among complex numbers that are NaN or infinite in one part: a product with 1 makes NaN of infinity,
and the greater of two, one of which is NaN, is the second."""


def combiner(applied: type[Operation] | None, value: SSAValue) -> str | None:
    """What combines the parts of a fold of such values by an op; None where nothing does."""
    if applied is None or (applied in _NOT_OF_COMPLEX and is_complex(dtype_text(value.type))):
        return None
    return applied.name.partition(".")[2]


@rules(hlo.ReduceOp)
def reduce(op: hlo.ReduceOp, draft: Draft) -> None:
    """The reducer and the init values form a monoid (the specification demands it), so that parts may be combined."""
    applied = applied_op(op.body)
    draft.reducer = "body" if applied is None else combiner(applied, op.inputs[0])


@rules(hlo.ReduceWindowOp)
def windows(op: hlo.ReduceWindowOp, draft: Draft) -> None:
    """A part of the windows reaches into the neighbours' parts."""
    draft.positions(Kind.PERMUTATION)


@rules(hlo.SelectAndScatterOp)
def selections(op: hlo.SelectAndScatterOp, draft: Draft) -> None:
    """As of windows; windows of one element read nothing, and are as many as there are elements."""
    window = op.window()
    sides = zip(window["window_dimensions"], window["window_strides"], window["padding"], strict=True)
    for dim, (width, stride, pair) in enumerate(sides):
        if width == stride == 1 and (*pair,) == (0, 0):
            draft.tie([(0, dim), (1, dim), draft.result(dim)])
    draft.positions(Kind.PERMUTATION)
