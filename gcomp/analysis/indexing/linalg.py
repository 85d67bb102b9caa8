"""Linear algebra and Fourier transforms: whole matrices, triangles of them, and whole transformed dimensions."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.types import shape_of


@maps(hlo.CholeskyOp)
def cholesky(op: hlo.CholeskyOp) -> list[Maps]:
    """Elements of the named triangle read all of it (one bad pivot spoils the matrix), the others are 0."""
    shape = shape_of(op.a)
    own, ranging = coordinates(shape), Ranging()
    n = shape[-1]
    row, column = ranging(n), ranging(n)
    sides = ((own[-2], own[-1]), (row, column)) if op.value("lower") else ((own[-1], own[-2]), (column, row))
    conditions = tuple([Condition(below - right, 0, n) for below, right in sides])
    return [[simplify(IndexingMap(shape, shape, (*own[:-2], row, column), tuple(ranging.sizes), conditions))]]


@maps(hlo.TriangularSolveOp)
def triangular_solve(op: hlo.TriangularSolveOp) -> list[Maps]:
    """An unknown depends on those before it: on their equations, and their right hand sides."""
    domain, shape = shape_of(op.b), shape_of(op.a)
    n, left, lower = shape[-1], op.value("left_side"), op.value("lower")
    own = coordinates(domain)
    step = own[-2] if left else own[-1]
    turned = (op.value("transpose_a") != "NO_TRANSPOSE") == left
    forward = lower != turned
    ranging = Ranging()
    equation = ranging(n)
    known = (equation, own[-1]) if left else (own[-2], equation)
    order = Condition(step - equation if forward else equation - step, 0, n)
    b = IndexingMap(domain, domain, (*own[:-2], *known), tuple(ranging.sizes), (order,))
    unknown = ranging(n)
    least: Size = 1 if op.value("unit_diagonal") else 0
    done = Condition(equation - unknown if forward else unknown - equation, least, n)
    entry = (unknown, equation) if turned else (equation, unknown)
    a = IndexingMap(domain, shape, (*own[:-2], *entry), tuple(ranging.sizes), (order, done))
    return [[simplify(a), simplify(b)]]


@maps(hlo.FftOp)
def fft(op: hlo.FftOp) -> list[Maps]:
    """Every element along the transformed dimensions, which are the last ones."""
    domain, shape = shape_of(op.result), shape_of(op.operand)
    kept, ranging = len(shape) - len(sizes_of(op.fft_length)), Ranging()
    indices = (*coordinates(domain)[:kept], *[ranging(size) for size in shape[kept:]])
    return [[IndexingMap(domain, shape, indices, tuple(ranging.sizes))]]
