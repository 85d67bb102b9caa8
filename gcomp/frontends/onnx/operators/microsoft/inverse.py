"""Importers of com.microsoft: matrix inverses."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.linalg import square_matrices
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.reduction import arg_extremum
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, shape_of


@contrib("Inverse", "X:T")
def inverse(ctx: NodeContext) -> Results:
    """Inverse: of square matrices (..., M, M); of one that has none, infinities and NaNs."""
    b, matrices = ctx.b, square_matrices(ctx)
    inverses = ctx.wide(matrices, lambda x: _by_elimination(b, x))
    return [b.reshape(inverses, (*ctx.shape()[:-2], *shape_of(matrices)[1:]))]


def _by_elimination(b: Builder, x: SSAValue) -> SSAValue:
    """The inverses of matrices (B, M, M): Gauss and Jordan's elimination beside the identity.

    Each step takes the largest element that is left in a column as its pivot, and clears the column elsewhere.
    """
    (batch, size, _), element = shape_of(x), element_of(x)
    zero, one, total = b.constant(0, "i64"), b.constant(1, "i64"), b.dim(size)
    nothing = b.full((), 0, element)
    places, full = b.iota((batch, size), 1), (batch, size, 2 * size)

    def marked(v: SSAValue, rows: SSAValue) -> SSAValue:
        """The row (B, N) of each (B, M, N) that is marked in (B, M)."""
        return b.reduce(hlo.AddOp, b.select(b.broadcast(rows, shape_of(v), (0, 1)), v, nothing), [1])

    def step(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        at, rest = args
        here, done = b.compare(places, at, "EQ"), b.compare(places, at, "LT")
        here_column = b.broadcast(b.compare(b.iota((2 * size,), 0), at, "EQ"), full, (2,))
        column = b.reduce(hlo.AddOp, b.select(here_column, rest, nothing), [2])
        candidates = b.select(done, b.full((), -1, element), b.emit(hlo.AbsOp, column))
        best = arg_extremum(b, candidates, 1, largest=True, last=False)
        chosen = b.compare(places, b.reshape(best, (batch, 1)), "EQ")
        pivots, first = marked(rest, chosen), marked(rest, here)
        pivot = b.reduce(hlo.AddOp, b.select(chosen, column, nothing), [1])
        swapped = b.select(b.broadcast(chosen, full, (0, 1)), b.broadcast(first, full, (0, 2)), rest)
        column = b.reduce(hlo.AddOp, b.select(here_column, swapped, nothing), [2])
        scaled = b.divide(pivots, b.broadcast(pivot, (batch, 2 * size), (0,)))
        cleared = b.subtract(swapped, b.multiply(b.broadcast(column, full, (0, 1)), b.broadcast(scaled, full, (0, 2))))
        return [b.add(at, one), b.select(b.broadcast(here, full, (0, 1)), b.broadcast(scaled, full, (0, 2)), cleared)]

    rows, columns = b.iota((batch, size, size), 1), b.iota((batch, size, size), 2)
    identity = b.convert(b.compare(rows, columns, "EQ"), element)
    carried = [zero, b.concatenate([x, identity], 2)]
    types = [v.type for v in carried]
    regions = (b.region(types, lambda args: [b.compare(args[0], total, "LT")]), b.region(types, step))
    done = b.emit_all(hlo.WhileOp, *carried, regions=regions)[1]
    return b.slice_axis(done, 2, size, 2 * size)
