"""Reductions: parts of a sum are combined by the reducer; windows need the edges of neighbours."""

from __future__ import annotations

from gcomp.dtypes import is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(hlo.ReduceOp)
def reduce(op: hlo.ReduceOp, draft: Draft) -> None:
    """The reducer and the init values form a monoid (the specification demands it), so that parts may be combined; of
    complex products it does not hold where one is NaN or infinite in one part."""
    applied = applied_op(op.body)
    if applied is hlo.MultiplyOp and is_complex(dtype_text(op.inputs[0].type)):
        return
    draft.reducer = "body" if applied is None else applied.name.partition(".")[2]


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
