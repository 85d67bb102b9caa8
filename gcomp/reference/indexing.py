"""Scatter; the other indexing ops are generic."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.ir import stablehlo as hlo
from gcomp.reference.numpy import indexing
from gcomp.reference.table import Scope, Value, meaning, result_dtypes


@meaning(hlo.ScatterOp)
def scatter(op: hlo.ScatterOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The inputs, updated by the body."""
    count = len(op.inputs)
    return indexing.scatter(
        args[:count],
        args[count],
        args[count + 1 :],
        update_computation=scope.body(op.update_computation),
        dtypes=result_dtypes(op.update_computation, scope),
        indices_are_sorted=op.value("indices_are_sorted"),
        unique_indices=op.value("unique_indices"),
        **op.dimensions._asdict(),
    )
