"""Calls of LAPACK by the names under which jaxlib registers it. Other custom calls have no meaning here."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.lapack import settings
from gcomp.ir.locations import where
from gcomp.reference.numpy.lapack import lapack, routine_of
from gcomp.reference.table import UNMODELLED, Scope, Value, meaning


@meaning(hlo.CustomCallOp)
def custom_call(op: hlo.CustomCallOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The results of a routine of LAPACK's for each matrix of a batch."""
    target: str = op.value("call_target_name")
    if routine_of(target) is None:
        raise UnsupportedError(f"{op.name} has no reference meaning", where=where(op), why=UNMODELLED[type(op)])
    types = [(scope.shape(r), scope.dtype(r)) for r in op.results]
    return lapack(*args, types=types, target=target, **settings(op))
