"""Eigenvalues, singular values and the exponential of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.linalg import batch_of, by_kind, extents, identity_like, is_empty, like, matrix
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import lapack
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.lapack import status, valid
from gcomp.ir.types import dtype_text, element_of, rank_of, real_element, shape_of, tensor


@imports("_linalg_eigh")
def eigh(ctx: NodeContext) -> Results:
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian matrices."""
    b, a = ctx.b, matrix(ctx, "A")
    n, wanted = extents(a)[0], bool(ctx.arg("compute_v", True))
    values = tensor((*batch_of(a), n), real_element(a))
    nothing = b.full((0,), 0, element_of(a))
    if is_empty(a):
        return [b.full(shape_of(values), 0, element_of(values)), a if wanted else nothing]
    types = [like(a, (n, n)), values, status(batch_of(a))]
    config = {"mode": "V" if wanted else "N", "uplo": str(ctx.arg("UPLO", "L")).upper()}
    *results, info = lapack.call(b, by_kind(a, "syevd", "heevd"), [a], types, {0: 0}, **config)
    vectors, found = valid(b, info, results)
    return [found, vectors if wanted else nothing]


@imports("linalg_eig", "linalg_eigvals", "_linalg_eigvals")
def eig(ctx: NodeContext) -> Results:
    """Eigenvalues and right eigenvectors; the values alone."""
    b, a = ctx.b, matrix(ctx, "A" if ctx.arg("A") is not None else "self")
    n, wanted, element = extents(a)[0], ctx.operator == "aten::linalg_eig", ctx.out_dtype()
    if is_empty(a):
        return [b.full((*batch_of(a), n), 0, element), b.full(shape_of(a), 0, element)][: 1 + wanted]
    real = not is_complex(dtype_text(a.type))
    vectors = tensor(shape_of(a), element)
    types = [*[like(a, (n,))] * (1 + real), vectors, vectors, status(batch_of(a))]
    *found, _, right, info = lapack.call(b, "geev", [a], types, compute_left="N", compute_right="V" if wanted else "N")
    values = b.emit(hlo.ComplexOp, *found) if real else found[0]
    return valid(b, info, [values, *[right] * wanted])


@imports("_linalg_svd")
def svd(ctx: NodeContext) -> Results:
    """Left singular vectors, singular values in descending order, and right ones; empty where not asked for."""
    b, a = ctx.b, matrix(ctx, "A")
    (m, n), full = extents(a), bool(ctx.arg("full_matrices", False))
    wanted, k = bool(ctx.arg("compute_uv", True)), min(m, n)
    real, nothing = real_element(a), b.full((0,), 0, element_of(a))
    left, right = (m, n) if full and wanted else (k, k)
    if is_empty(a):
        parts = [
            b.slice(identity_like(b, a, max(shape)), [0] * rank_of(a), (*batch_of(a), *shape))
            for shape in ((m, left), (right, n))
        ]
        values = b.full((*batch_of(a), k), 0, real)
        return [parts[0], values, parts[1]] if wanted else [nothing, values, nothing]
    types = [
        like(a, (m, n)),
        tensor((*batch_of(a), k), real),
        like(a, (m, left)),
        like(a, (right, n)),
        status(batch_of(a)),
    ]
    mode = ("A" if full else "S") if wanted else "N"
    routine = "gesvd" if ctx.arg("driver") == "gesvd" else "gesdd"
    _, *results, info = lapack.call(b, routine, [a], types, {0: 0}, mode=mode)
    values, u, v = valid(b, info, results)
    return [u, values, v] if wanted else [nothing, values, nothing]


# ---- the exponential ------------------------------------------------------------------------------------------------


@imports("linalg_matrix_exp")
def exponential(ctx: NodeContext) -> Results:
    """exp(a) = exp(a / 2^s)^(2^s), with s so large that Taylor's series of the inner one is short."""
    b, a = ctx.b, matrix(ctx, "self")
    if is_empty(a):
        return a
    real, n, rank = real_element(a), extents(a)[0], rank_of(a)
    unit = identity_like(b, a, n)
    norm = b.reduce(hlo.MaximumOp, b.reduce(hlo.AddOp, b.emit(hlo.AbsOp, a), [rank - 2]), [rank - 2])
    # Degree 18 is exact to the last place below these norms.
    reach = 3.01 if dtype_text(real) == "f32" else 1.09
    rounds = b.emit(hlo.LogOp, b.divide(norm, b.full_like(norm, reach)))
    rounds = b.emit(hlo.CeilOp, b.divide(rounds, b.full_like(norm, math.log(2))))
    rounds = b.maximum(rounds, b.full_like(rounds, 0))
    # Of what is infinite or NaN there is nothing to be halved.
    rounds = b.select(b.emit(hlo.IsFiniteOp, rounds), rounds, b.full_like(rounds, 0))
    scale = b.emit(hlo.PowerOp, b.full_like(rounds, 2), b.emit(hlo.NegateOp, rounds))
    small = b.multiply(a, b.broadcast(b.convert(scale, element_of(a)), shape_of(a), range(rank - 2)))
    found = unit
    for k in range(18, 0, -1):
        found = b.add(unit, b.divide(b.matmul(small, found), b.full_like(a, k)))
    return _square(b, found, rounds)


def _square(b: Builder, x: SSAValue, rounds: SSAValue) -> SSAValue:
    """Matrices squared so many times each."""
    scalar = tensor((), element_of(rounds))

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.reduce(hlo.OrOp, b.compare(args[0], rounds, "LT"), range(rank_of(rounds)))]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        at, made = args
        more = b.broadcast(b.compare(at, rounds, "LT"), shape_of(made), range(rank_of(rounds)))
        return [b.add(at, b.scalar_like(at, 1)), b.select(more, b.matmul(made, made), made)]

    types = [scalar, x.type]
    regions = [b.region(types, condition), b.region(types, body)]
    return b.emit_all(hlo.WhileOp, b.scalar_like(rounds, 0), x, regions=regions)[1]
