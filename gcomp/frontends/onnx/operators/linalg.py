"""Importers of linear algebra: determinants."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.reduction import arg_extremum
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, shape_of


@imports("Det", since=11)
def determinant(ctx: NodeContext) -> Results:
    """Det: of square matrices (..., M, M)."""
    b, batch = ctx.b, ctx.shape()[:-2]
    matrices = square_matrices(ctx)
    if shape_of(matrices)[-1] == 1:
        return [b.reshape(matrices, batch)]
    return [b.reshape(ctx.wide(matrices, lambda x: _by_elimination(b, x)), batch)]


def square_matrices(ctx: NodeContext) -> SSAValue:
    """The input (..., M, M) as (B, M, M)."""
    shape, rank = ctx.shape(), ctx.rank()
    if rank < 2:
        ctx.invalid(f"its input has rank {rank}", "matrices are expected")
    size = shape[-1] if isinstance(shape[-1], int) else shape[-2]
    square = ctx.restate(ctx[0], {rank - 2: size, rank - 1: size})
    return ctx.b.reshape(square, (dims.product(shape[:-2]), size, size))


def _by_elimination(b: Builder, x: SSAValue) -> SSAValue:
    """The determinants (B,) of matrices (B, M, M): the product of the pivots of an LU decomposition.

    Each step takes the largest element of a column as its pivot. A column of zeros has the pivot 0, which makes the
    determinant 0 and eliminates nothing.
    """
    (batch, size, _), element = shape_of(x), element_of(x)
    zero, one, total = b.constant(0, "i64"), b.constant(1, "i64"), b.dim(size)
    nothing, unit = b.full((), 0, element), b.full((), 1, element)
    places = b.iota((batch, size), 1)

    def along(v: SSAValue, axis: int) -> SSAValue:
        """(B, M) in the shape of the matrices, its numbers along rows (1) or columns (2)."""
        return b.broadcast(v, (batch, size, size), (0, axis))

    def row(v: SSAValue, here: SSAValue) -> SSAValue:
        """The row of each matrix that is marked in (B, M)."""
        return b.reduce(hlo.AddOp, b.select(along(here, 1), v, nothing), [1])

    def step(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        at, rest, product = args
        here, below = b.compare(places, at, "EQ"), b.compare(places, at, "GT")
        column = b.reduce(hlo.AddOp, b.select(along(here, 2), rest, nothing), [2])
        done = b.compare(places, at, "LT")
        candidates = b.select(done, b.full((), -1, element), b.emit(hlo.AbsOp, column))
        best = arg_extremum(b, candidates, 1, largest=True, last=False)
        chosen = b.compare(places, b.reshape(best, (batch, 1)), "EQ")
        pivots, first = row(rest, chosen), row(rest, here)
        pivot = b.reduce(hlo.AddOp, b.select(here, pivots, nothing), [1])
        swapped = b.select(along(chosen, 1), along(first, 2), rest)
        column = b.reduce(hlo.AddOp, b.select(along(here, 2), swapped, nothing), [2])
        divisor = b.select(b.compare(pivot, nothing, "EQ"), unit, pivot)
        factors = b.select(below, b.divide(column, b.reshape(divisor, (batch, 1))), nothing)
        reduced = b.subtract(swapped, b.multiply(along(factors, 1), along(pivots, 2)))
        signed = b.select(b.compare(best, at, "NE"), b.emit(hlo.NegateOp, pivot), pivot)
        return [b.add(at, one), reduced, b.multiply(product, signed)]

    carried = [zero, x, b.full((batch,), 1, element)]
    types = [v.type for v in carried]
    regions = (b.region(types, lambda args: [b.compare(args[0], total, "LT")]), b.region(types, step))
    return b.emit_all(hlo.WhileOp, *carried, regions=regions)[2]
