"""Host steps: the functions of `gcomp.reference.numpy.host`, whose results bind symbols."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcomp.ir.host import HostOp
from gcomp.ir.printing import PrintOp
from gcomp.reference.numpy.host import call_host
from gcomp.reference.numpy.printing import render
from gcomp.reference.table import Scope, Value, meaning


@meaning(HostOp)
def host(op: HostOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The function's results; the sizes that they have are bound from here on."""
    if op.value("function") == "print_line":
        scope.write(render(op.keywords["format"], args[1:]))
        return [np.asarray(args[0] + np.int32(1))]
    types = lambda: [(scope.shape(r), scope.dtype(r)) for r in op.results]  # noqa: E731
    results = call_host(op.value("function"), args, op.keywords, types)
    scope.bind(op, [np.shape(r) for r in results])
    return results


@meaning(PrintOp)
def print_(op: PrintOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Writes the line; one that is threaded counts it."""
    threaded = bool(op.results)
    scope.write(render(op.value("format"), args[1:] if threaded else args))
    return [np.asarray(args[0] + np.int32(1))] if threaded else []
