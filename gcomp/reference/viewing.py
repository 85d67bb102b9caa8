"""Complex numbers as pairs of real ones, and back."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.ir import viewing
from gcomp.reference.numpy.complexes import view_as_complex, view_as_real
from gcomp.reference.table import Scope, Value, meaning


@meaning(viewing.ViewAsRealOp)
def to_pairs(op: viewing.ViewAsRealOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Both parts along a last dimension."""
    return (scope.data(view_as_real(args[0])),)


@meaning(viewing.ViewAsComplexOp)
def to_complex(op: viewing.ViewAsComplexOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The numbers of the pairs."""
    return (scope.data(view_as_complex(args[0])),)
