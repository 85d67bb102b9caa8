"""Dense linear algebra: what XLA:CPU leaves to LAPACK is a call of the same routines; what JAX defines, its definition.

A matrix that a routine cannot factor gives NaN, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_narrow_float
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports, imports_definitions
from gcomp.ir import lapack
from gcomp.ir import stablehlo as hlo
from gcomp.ir.lapack import status, valid
from gcomp.ir.types import Tensor, real_element, shape_of, tensor, tensor_of

_linalg: Any = import_module("jax._src.lax.linalg")

# ---- what JAX defines -----------------------------------------------------------------------------------------------

_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "cholesky_update": _linalg._cholesky_update_jax_fn,
    "lu_pivots_to_permutation": _linalg._generic_lu_pivots_to_permutation,
    "qr": _linalg._qr_lowering,
    "symmetric_product": _linalg._symmetric_product_jax_fn,
}
"""Primitive -> the JAX function of the operands and parameters that it stands for."""

imports_definitions(_DEFINITIONS)


@imports("custom_linear_solve")
def custom_linear_solve(ctx: EqnContext) -> Results:
    """The user's solver, on its constants and the right-hand sides. The other functions are for gradients."""
    lengths, jaxprs = ctx.params["const_lengths"], ctx.params["jaxprs"]
    start = lengths.matvec + lengths.vecmat
    constants = ctx.operands[start : start + lengths.solve]
    return ctx.inline(jaxprs.solve, [*constants, *ctx.operands[sum(lengths) :]])


# ---- types ----------------------------------------------------------------------------------------------------------


def _batch(ctx: EqnContext) -> tuple[Size, ...]:
    return ctx.shape()[:-2]


def _outputs(ctx: EqnContext) -> list[Tensor]:
    return [ctx.out_type(i) for i in range(len(ctx.eqn.outvars))]


def _by_kind(ctx: EqnContext, real: str, other: str) -> str:
    """The name of a routine, which differs for complex numbers."""
    return other if is_complex(ctx.dtype()) else real


def _triangle(lower: bool) -> str:
    return "L" if lower else "U"


# ---- factorizations -------------------------------------------------------------------------------------------------


@imports("cholesky")
def cholesky(ctx: EqnContext) -> Results:
    """The lower triangular factor; what is above it is not zero yet."""
    a, info = lapack.call(ctx.b, "potrf", ctx.operands, [ctx.out_type(), status(_batch(ctx))], {0: 0}, uplo="L")
    return valid(ctx.b, info, [a])


@imports("lu")
def lu(ctx: EqnContext) -> Results:
    """Both factors in one matrix, the rows that were exchanged, and the permutation that they make.

    A singular matrix has a factorization too.
    """
    factors, pivots, _ = _outputs(ctx)
    lu, rows, info = lapack.call(ctx.b, "getrf", ctx.operands, [factors, pivots, status(_batch(ctx))], {0: 0})
    rows = ctx.b.subtract(rows, ctx.b.full_like(rows, 1))
    permutation = ctx.trace(
        _linalg._generic_lu_pivots_to_permutation, rows, avals=[ctx.out_aval(1)],
        permutation_size=ctx.aval().shape[-2],
    )  # fmt: skip
    return [*valid(ctx.b, info, [lu], "GE"), rows, *permutation]


@imports("geqrf")
def geqrf(ctx: EqnContext) -> Results:
    """R, with Householder's vectors below it, and their factors."""
    return lapack.call(ctx.b, "geqrf", ctx.operands, _outputs(ctx), {0: 0})


@imports("geqp3")
def geqp3(ctx: EqnContext) -> Results:
    """As geqrf, of the matrix with its columns exchanged, and the order of the columns."""
    return lapack.call(ctx.b, "geqp3", ctx.operands, _outputs(ctx), {0: 0, 1: 1})


@imports("householder_product")
def householder_product(ctx: EqnContext) -> Results:
    """Q from Householder's vectors and their factors."""
    return lapack.call(ctx.b, _by_kind(ctx, "orgqr", "ungqr"), ctx.operands, _outputs(ctx), {0: 0})


@imports("ormqr")
def ormqr(ctx: EqnContext) -> Results:
    """A matrix times Q, or its adjoint, from either side."""
    left, transpose = bool(ctx.params["left"]), bool(ctx.params["transpose"])
    routine = _by_kind(ctx, "ormqr", "unmqr")
    return lapack.call(ctx.b, routine, ctx.operands, _outputs(ctx), {2: 0}, left=left, transpose=transpose)


@imports("hessenberg")
def hessenberg(ctx: EqnContext) -> Results:
    """A similar matrix with zeros below the first subdiagonal, and how it was made."""
    n = ctx.shape()[-1]
    if not isinstance(n, int):
        ctx.unsupported("its matrices have a symbolic size, which LAPACK is told as a number", "use a fixed size")
    types = [*_outputs(ctx), status(_batch(ctx))]
    *results, info = lapack.call(ctx.b, "gehrd", ctx.operands, types, {0: 0}, low=1, high=n)
    return valid(ctx.b, info, results)


@imports("tridiagonal")
def tridiagonal(ctx: EqnContext) -> Results:
    """A similar tridiagonal matrix of a Hermitian one, and how it was made."""
    types, uplo = [*_outputs(ctx), status(_batch(ctx))], _triangle(ctx.params["lower"])
    *results, info = lapack.call(ctx.b, _by_kind(ctx, "sytrd", "hetrd"), ctx.operands, types, {0: 0}, uplo=uplo)
    return valid(ctx.b, info, results)


# ---- eigenvalues and singular values --------------------------------------------------------------------------------


@imports("eigh")
def eigh(ctx: EqnContext) -> Results:
    """Eigenvectors and eigenvalues, in ascending order, of Hermitian matrices."""
    _check_subset(ctx, ctx.aval().shape[-1])
    if str(ctx.params.get("algorithm")).endswith(("JACOBI", "QDWH")):
        ctx.unsupported("JAX has this algorithm on other devices only", "leave `implementation` out")
    types, uplo = [*_outputs(ctx), status(_batch(ctx))], _triangle(ctx.params["lower"])
    routine = _by_kind(ctx, "syevd", "heevd")
    *results, info = lapack.call(ctx.b, routine, ctx.operands, types, {0: 0}, mode="V", uplo=uplo)
    return valid(ctx.b, info, results)


def _check_subset(ctx: EqnContext, count: Any) -> None:
    if ctx.params.get("subset_by_index") not in (None, (0, count)):
        ctx.unsupported("LAPACK's routine computes all values, not a subset", "leave subset_by_index out, and slice")


@imports("eig")
def eig(ctx: EqnContext) -> Results:
    """Eigenvalues, and left and right eigenvectors where they are asked for."""
    if str(ctx.params.get("implementation")).endswith(("CUSOLVER", "MAGMA")):
        ctx.unsupported("it is for another device", "leave `implementation` out")
    left, right = ctx.params["compute_left_eigenvectors"], ctx.params["compute_right_eigenvectors"]
    vectors = tensor(ctx.shape(), ctx.out_dtype())
    real = not is_complex(ctx.dtype())
    parts = [tensor(ctx.out_shape(), ctx.dtype())] * 2 if real else [ctx.out_type()]
    types = [*parts, vectors, vectors, status(_batch(ctx))]
    *found, on_left, on_right, info = lapack.call(
        ctx.b, "geev", ctx.operands, types, compute_left="V" if left else "N", compute_right="V" if right else "N"
    )
    eigenvalues = ctx.b.emit(hlo.ComplexOp, *found) if real else found[0]
    return valid(ctx.b, info, [eigenvalues, *[on_left] * left, *[on_right] * right])


@imports("schur")
def schur(ctx: EqnContext) -> Results:
    """A similar (quasi-)triangular matrix, and the unitary one that makes it."""
    if ctx.params["sort_eig_vals"]:
        ctx.unsupported("JAX has no sorted Schur form on CPUs", "leave the sorting out")
    wanted, a, batch = bool(ctx.params["compute_schur_vectors"]), tensor_of(ctx[0]), _batch(ctx)
    values = [tensor(ctx.shape()[:-1], ctx.dtype())] * (1 if is_complex(ctx.dtype()) else 2)
    types = [a, a, *values, status(batch), status(batch)]
    form, vectors, *_, info = lapack.call(
        ctx.b, "gees", ctx.operands, types, {0: 0}, mode="V" if wanted else "N", sort="N"
    )
    return valid(ctx.b, info, [form, *[vectors] * wanted])


@imports("svd")
def svd(ctx: EqnContext) -> Results:
    """Singular values in descending order, and the singular vectors where they are asked for."""
    algorithm, shape = str(ctx.params.get("algorithm")), ctx.aval().shape
    if algorithm.endswith(("JACOBI", "POLAR")):
        ctx.unsupported("JAX has this algorithm on other devices only", "leave `algorithm` out")
    vectors, full = bool(ctx.params["compute_uv"]), ctx.params["full_matrices"] is not False
    if 0 in shape[-2:]:
        return ctx.trace(_linalg._empty_svd, full_matrices=ctx.params["full_matrices"], compute_uv=vectors)
    _check_subset(ctx, shape[-2] if shape[-2] == ctx.out_aval().shape[-1] else shape[-1])
    routine = "gesvd" if algorithm.endswith("QR") else "gesdd"
    mode = ("A" if full else "S") if vectors else "N"
    types = [tensor_of(ctx[0]), *_svd_types(ctx, full=full), status(_batch(ctx))]
    _, *results, info = lapack.call(ctx.b, routine, ctx.operands, types, {0: 0}, mode=mode)
    return valid(ctx.b, info, results if vectors else results[:1])


def _svd_types(ctx: EqnContext, *, full: bool) -> Sequence[Tensor]:
    """The types of the values and vectors, which the routine has room for even where nobody asks for them."""
    *batch, m, n = ctx.shape()
    least = ctx.out_shape()[-1]
    left, right = (m, n) if full else (least, least)
    element = ctx.dtype()
    values = tensor((*batch, least), real_element(ctx[0]))
    return values, tensor((*batch, m, left), element), tensor((*batch, right, n), element)


# ---- solvers --------------------------------------------------------------------------------------------------------


@imports("triangular_solve")
def triangular_solve(ctx: EqnContext) -> Results:
    """x with op(a) x = b, or x op(a) = b."""
    a, b = ctx.operands
    params = ctx.params
    adjoint = params["conjugate_a"] and params["transpose_a"]
    if params["conjugate_a"] and not adjoint:
        a = _conjugate(ctx, a)
    if is_narrow_float(ctx.dtype()):
        transpose = "TRANSPOSE" if params["transpose_a"] else "NO_TRANSPOSE"
        return ctx.b.emit(
            hlo.TriangularSolveOp, a, b, left_side=bool(params["left_side"]), lower=bool(params["lower"]),
            unit_diagonal=bool(params["unit_diagonal"]), transpose_a=transpose,
        )  # fmt: skip
    return lapack.call(
        ctx.b, "trsm", [a, b], _outputs(ctx), {1: 0},
        side="L" if params["left_side"] else "R",
        uplo=_triangle(params["lower"]),
        trans_x="C" if adjoint else "T" if params["transpose_a"] else "N",
        diag="U" if params["unit_diagonal"] else "N",
    )  # fmt: skip


def _conjugate(ctx: EqnContext, x: SSAValue) -> SSAValue:
    b = ctx.b
    if not is_complex(ctx.dtype()):
        return x
    return b.emit(hlo.ComplexOp, b.emit(hlo.RealOp, x), b.emit(hlo.NegateOp, b.emit(hlo.ImagOp, x)))


@imports("tridiagonal_solve")
def tridiagonal_solve(ctx: EqnContext) -> Results:
    """x with a x = b for a tridiagonal a, given as its three diagonals."""
    b = tensor_of(ctx[3])
    if ctx.params.get("perturb_singular"):
        return lapack.call_target(ctx.b, "tridiagonal_solve_perturbed_ffi", ctx.operands, [b])
    types = [*map(tensor_of, ctx.operands), status(shape_of(ctx[3])[:-2])]
    shared = dict(enumerate(range(len(ctx))))
    *_, x, info = lapack.call(ctx.b, "gtsv", ctx.operands, types, shared)
    return valid(ctx.b, info, [x])
