"""Sort by a comparator region."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.ir import stablehlo as hlo
from gcomp.reference.numpy import sorting
from gcomp.reference.table import Scope, Value, meaning


@meaning(hlo.SortOp)
def sort(op: hlo.SortOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The operands, permuted together."""
    comparator = scope.body(op.comparator)
    return sorting.sort(args, comparator=lambda *values: comparator(*values)[0], **scope.properties(op))
