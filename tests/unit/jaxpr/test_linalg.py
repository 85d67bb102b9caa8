"""Linear algebra: the calls of LAPACK, batched, empty, singular; and what JAX builds of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax.lax import linalg

import gcomp
from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr import import_jax
from gcomp.reference.interpreter import interpret

from .agreement import Group, agree, together

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
SWEPT = [np.float32, np.complex128, *(pytest.param(t, marks=pytest.mark.slow) for t in (np.float64, np.complex64))]


def matrices(dtype: Any, *shape: int) -> Any:
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def definite(dtype: Any, *shape: int) -> Any:
    x = matrices(dtype, *shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(shape[-1])).astype(dtype)


# Of square matrices `a`, definite ones `d`, and rectangular ones `r`; all in batches of two.
FACTORS: Group = {
    "cholesky": lambda a, d, r: linalg.cholesky(d),
    "not definite": lambda a, d, r: linalg.cholesky(-d),
    "lu": lambda a, d, r: linalg.lu(a),
    "lu tall": lambda a, d, r: linalg.lu(r),
    "lu wide": lambda a, d, r: linalg.lu(r.mT),
    "singular": lambda a, d, r: linalg.lu(a * 0),
    "qr": lambda a, d, r: linalg.qr(r, full_matrices=False),
    "qr full": lambda a, d, r: linalg.qr(r, full_matrices=True),
    "qr wide": lambda a, d, r: linalg.qr(r.mT, full_matrices=False),
    "qr pivoted": lambda a, d, r: linalg.qr(r, pivoting=True),
    "ormqr": lambda a, d, r: linalg.ormqr(r, jnp.ones((2, 3), r.dtype), r, left=True, transpose=True),
    "householder": lambda a, d, r: linalg.householder_product(r, jnp.ones((2, 3), r.dtype)),
    "hessenberg": lambda a, d, r: linalg.hessenberg(a),
    "tridiagonal": lambda a, d, r: linalg.tridiagonal(d),
    "tridiagonal upper": lambda a, d, r: linalg.tridiagonal(d, lower=False),
}
SPECTRA: Group = {
    "eigh": lambda a, d, r: linalg.eigh(d),
    "eigh upper": lambda a, d, r: linalg.eigh(a, lower=False, symmetrize_input=False),
    "eig": lambda a, d, r: linalg.eig(a),
    "eig right": lambda a, d, r: linalg.eig(a, compute_left_eigenvectors=False),
    "eigenvalues": lambda a, d, r: jnp.linalg.eigvals(a),
    "svd": lambda a, d, r: linalg.svd(r),
    "svd thin": lambda a, d, r: linalg.svd(r.mT, full_matrices=False),
    "singular values": lambda a, d, r: linalg.svd(r, compute_uv=False),
    "svd by qr": lambda a, d, r: linalg.svd(r, algorithm=linalg.SvdAlgorithm.QR),
    "svd of nan": lambda a, d, r: linalg.svd(r * np.nan),
    "schur": lambda a, d, r: linalg.schur(a),
    "schur form": lambda a, d, r: linalg.schur(a, compute_schur_vectors=False),
}
BUILT: Group = {
    "solve": lambda a, d, r: jnp.linalg.solve(a, d),
    "inv": lambda a, d, r: jnp.linalg.inv(a),
    "det": lambda a, d, r: jnp.linalg.det(a),
    "slogdet": lambda a, d, r: jnp.linalg.slogdet(a),
    "pinv": lambda a, d, r: jnp.linalg.pinv(r),
    "lstsq": lambda a, d, r: jnp.linalg.lstsq(r[0], r[1])[0],
    "matrix_power": lambda a, d, r: jnp.linalg.matrix_power(a, 5),
    "norm": lambda a, d, r: jnp.linalg.norm(a[0], 2),
    "cond": lambda a, d, r: jnp.linalg.cond(a),
    "cho_solve": lambda a, d, r: jsl.cho_solve(jsl.cho_factor(d[0]), a[0]),
    "lu_solve": lambda a, d, r: jsl.lu_solve(jsl.lu_factor(a[0]), d[0]),
    "vmap": jax.vmap(lambda a, d, r: jnp.linalg.solve(d, a)),
}
GRADIENTS: Group = {
    "solve": jax.grad(lambda a, d, r: jnp.linalg.solve(a, d).sum(), argnums=(0, 1)),
    "cholesky": jax.grad(lambda a, d, r: jnp.linalg.cholesky(d).sum(), argnums=1),
    "eigh": jax.grad(lambda a, d, r: jnp.linalg.eigh(d)[0].sum(), argnums=1),
    "svd": jax.grad(lambda a, d, r: jnp.linalg.svd(r, full_matrices=False)[1].sum(), argnums=2),
    "qr": jax.grad(lambda a, d, r: jnp.linalg.qr(r)[0].sum(), argnums=2),
    "det": jax.grad(lambda a, d, r: jnp.linalg.det(a).sum()),
}
OF_REALS: Group = {
    "symmetric_product": lambda a, d, r: linalg.symmetric_product(a, d, alpha=2.0, beta=0.5),
    "cholesky_update": lambda a, d, r: linalg.cholesky_update(jnp.triu(d[0]), a[0, 0]),
    "expm": lambda a, d, r: jsl.expm(a[0]),
    "sqrtm": lambda a, d, r: jsl.sqrtm(d[0]),
    "polar": lambda a, d, r: jsl.polar(r[0]),
    "eigh_tridiagonal": lambda a, d, r: jsl.eigh_tridiagonal(a[0, 0], a[0, 1, 1:], eigvals_only=True),
}


def square_and_tall(dtype: Any) -> list[Any]:
    return [matrices(dtype, 2, 4, 4), definite(dtype, 2, 4, 4), matrices(dtype, 2, 5, 3)]


@pytest.mark.parametrize("dtype", SWEPT)
@pytest.mark.parametrize("rows", [FACTORS, SPECTRA], ids=["factors", "spectra"])
def test_calls_of_lapack_give_what_jax_calls(rows: Group, dtype: Any) -> None:
    with jax.enable_x64(True):
        agree(together(rows), *square_and_tall(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_functions_built_of_them(dtype: Any) -> None:
    with jax.enable_x64(True):
        agree(together(BUILT), *square_and_tall(dtype), ulps=512)


def test_gradients() -> None:
    with jax.enable_x64(True):
        agree(together(GRADIENTS), *square_and_tall(np.float64), ulps=512)


def test_functions_of_reals() -> None:
    agree(together(OF_REALS), *square_and_tall(np.float32), ulps=512)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solves_with_all_flags(dtype: Any) -> None:
    def every(a: Any, b: Any) -> list[Any]:
        return [
            linalg.triangular_solve(
                a,
                b if left else b.mT,
                left_side=left,
                lower=lower,
                transpose_a=transpose,
                conjugate_a=conjugate,
                unit_diagonal=unit,
            )
            for left in (True, False)
            for lower in (True, False)
            for transpose in (True, False)
            for conjugate in (True, False)
            for unit in (True, False)
        ]

    with jax.enable_x64(True):
        agree(every, definite(dtype, 2, 4, 4), matrices(dtype, 2, 4, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solves(dtype: Any) -> None:
    def solve(x: Any, y: Any) -> Any:
        return linalg.tridiagonal_solve(x, x + 3, x, y), linalg.tridiagonal_solve(x[0], x[0] * 0, x[0], y[0])

    with jax.enable_x64(True):
        agree(solve, matrices(dtype, 2, 4), matrices(dtype, 2, 4, 3))


EMPTY: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "cholesky": (linalg.cholesky, (0, 0)),
    "no matrices": (linalg.cholesky, (0, 3, 3)),
    "lu": (linalg.lu, (2, 0, 3)),
    "qr": (linalg.qr, (3, 0)),
    "eigh": (linalg.eigh, (0, 0)),
    "svd": (linalg.svd, (3, 0)),
    "thin svd": (lambda x: linalg.svd(x, full_matrices=False), (0, 3)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_matrices(name: str) -> None:
    function, shape = EMPTY[name]
    agree(function, np.zeros(shape, np.float32))


def test_a_solver_of_the_users() -> None:
    def solve(a: Any, b: Any) -> Any:
        return jax.lax.custom_linear_solve(lambda x: a @ x, b, lambda _, y: jnp.linalg.inv(a) @ y, symmetric=True)

    a, b = definite(np.float32, 3, 3), matrices(np.float32, 3)
    agree(solve, a, b, ulps=64)
    agree(jax.grad(lambda b: solve(a, b).sum()), b, ulps=64)


LEFT_OPEN = {"svd of nan"}
"""SciPy refuses some matrices that JAX answers with NaN."""

REFUSED = {
    "subset": (lambda x: linalg.eigh(x, subset_by_index=(0, 2)), "not a subset"),
    "subset of svd": (lambda x: linalg.svd(x, full_matrices=False, subset_by_index=(0, 2)), "not a subset"),
    "jacobi": (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.JACOBI), "other devices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_jax_has_on_other_devices_is_refused_with_a_reason(name: str) -> None:
    function, why = REFUSED[name]
    with pytest.raises(UnsupportedError, match=why):
        import_jax(function, definite(np.float32, 4, 4))


def test_what_jax_cannot_decide_of_a_symbol_is_refused_with_a_reason() -> None:
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(UnsupportedError, match="inconclusive"):
        import_jax(lambda x: linalg.qr(x, full_matrices=False), jax.ShapeDtypeStruct((n, 3), np.float32))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_reference_solves_tridiagonal_systems(size: int) -> None:
    args = [np.float32([[9] * size]), np.float32([[3] * size]), np.float32([[1] * size]), np.ones((1, size, 2), "f")]
    (found,) = interpret(import_jax(linalg.tridiagonal_solve, *args), args)
    np.testing.assert_allclose(found, linalg.tridiagonal_solve(*args), rtol=1e-5)


def test_a_batch_of_symbolic_size() -> None:
    (n,) = jax.export.symbolic_shape("n")
    model = gcomp.compile(import_jax(linalg.cholesky, jax.ShapeDtypeStruct((n, 3, 3), np.float32)))
    for count in (1, 4):
        a = definite(np.float32, count, 3, 3)
        np.testing.assert_array_equal(model(a), linalg.cholesky(a))


@pytest.mark.parametrize("dtype", SWEPT)
@pytest.mark.parametrize("rows", [FACTORS, SPECTRA], ids=["factors", "spectra"])
def test_the_reference_knows_the_calls(rows: Group, dtype: Any) -> None:
    wanted_rows = {name: rows[name] for name in rows.keys() - LEFT_OPEN}
    arrays = square_and_tall(dtype)
    with jax.enable_x64(True):
        function = together(wanted_rows)
        got, wanted = interpret(import_jax(function, *arrays), arrays), jax.jit(function)(*arrays)
    for x, (path, y) in zip(got, jax.tree.leaves_with_path(wanted), strict=True):
        close = float(np.sqrt(np.finfo(y.dtype).eps)) if np.issubdtype(y.dtype, np.inexact) else 0
        np.testing.assert_allclose(x, y, rtol=close, atol=close, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_triangular_systems_in_narrow_floats(dtype: Any) -> None:
    a, b = np.tri(4, dtype=np.float32) + np.eye(4, dtype=np.float32), np.ones((4, 2), np.float32)
    functions = {
        "lower": lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        "transposed": lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        "unit": lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=True),
    }
    agree(together(functions), a.astype(dtype), b.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_tridiagonal_systems_that_may_be_singular(n: int, dtype: Any) -> None:
    """Rows are exchanged as jaxlib does, and a pivot that is 0 is moved by as much."""
    rng = np.random.default_rng(n)
    lower, middle, upper, right = (
        (rng.integers(-4, 5, shape) * (1 + (1j if np.dtype(dtype).kind == "c" else 0))).astype(dtype)
        for shape in ((n,), (n,), (n,), (n, 2))
    )

    def solved(a: Any, b: Any, c: Any, d: Any) -> Any:
        return linalg.tridiagonal_solve(a, b, c, d, perturb_singular=True)

    with jax.enable_x64(True):
        for diagonal in (middle + 9, middle, np.where(np.arange(n) == n // 2, 0, middle).astype(dtype), middle * 0):
            args = lower, diagonal, upper, right
            expected = np.asarray(solved(*args))
            program = import_jax(solved, *args)
            for found in (
                interpret(program, list(args))[0], gcomp.compile(program)(*args),
                gcomp.compile(program, target="xla:cpu")(*args),
            ):  # fmt: skip
                size = np.abs(expected).max()
                np.testing.assert_allclose(np.asarray(found) / size, expected / size, atol=300 * np.finfo(dtype).eps)
