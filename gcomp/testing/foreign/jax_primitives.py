# pyright: basic
"""JAX functions by primitives: element types, modes and primitives that JAX's own harnesses leave out, at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import export, lax
from jax.experimental import sparse
from jax.lax import linalg

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Drawn = tuple[Callable[..., Any], list[Array]]
Maker = Callable[[Rng], Drawn]

MAKERS: dict[str, Maker] = {}
"""Kinds of functions by their names, which are those of primitives."""


def maker(function: Maker) -> Maker:
    """Register a kind of functions by its name."""
    MAKERS[function.__name__] = function
    return function


def name_of(number: int) -> str:
    """The kind of functions of a number."""
    return [*MAKERS][number % len(MAKERS)]


def function_of(number: int) -> tuple[str, Callable[..., Any], list[Array]]:
    """The function of a number, by the name of its kind, and arguments."""
    turn, kind = divmod(number, len(MAKERS))
    name = [*MAKERS][kind]
    return name, *MAKERS[name](np.random.default_rng([turn, kind]))


def whole(rng: Rng, *shape: int, dtype: Any = np.float64) -> Array:
    """Small whole numbers, some of which are equal."""
    if np.dtype(dtype).kind == "c":
        return (rng.integers(-2, 3, shape) + 1j * rng.integers(-2, 3, shape)).astype(dtype)
    return rng.integers(0 if np.dtype(dtype).kind in "ub" else -3, 4, shape).astype(dtype)


def real(rng: Rng, *shape: int, dtype: Any = np.float64) -> Array:
    """Ordinary numbers, with imaginary parts where the type has some."""
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


def pick(rng: Rng, *items: Any) -> Any:
    """One of some items."""
    return items[int(rng.integers(len(items)))]


def number_type(rng: Rng) -> Any:
    """A type of numbers, complex ones too."""
    return pick(rng, np.float32, np.float64, np.int32, np.int64, np.uint8, np.int16, np.complex64, np.complex128)


# ---- elementwise -------------------------------------------------------------------------------------------------


@maker
def max_min_of_types(rng: Rng) -> Drawn:
    dtype = number_type(rng)
    return pick(rng, lax.max, lax.min), [whole(rng, 6, dtype=dtype), whole(rng, 6, dtype=dtype)]


@maker
def comparison(rng: Rng) -> Drawn:
    dtype, name = number_type(rng), pick(rng, "eq", "ne", "lt", "le", "gt", "ge")
    name = pick(rng, "eq", "ne") if np.dtype(dtype).kind == "c" else name
    return getattr(lax, name), [whole(rng, 6, dtype=dtype), whole(rng, 6, dtype=dtype)]


@maker
def convert_element_type(rng: Rng) -> Drawn:
    to = pick(rng, jnp.bool_, jnp.int8, jnp.uint32, jnp.float16, jnp.bfloat16, jnp.float32, jnp.int64, jnp.complex64)
    x = pick(rng, whole(rng, 8, dtype=number_type(rng)), np.array([0.0, -0.0, 0.4, -0.6, 1.5, -2.5, 100.25]))
    return lambda a: a.astype(to), [x]


@maker
def powers(rng: Rng) -> Drawn:
    n = int(rng.integers(-4, 6))
    f = pick(rng, lambda x, y: lax.integer_pow(x, n), lambda x, y: lax.exp2(x), lambda x, y: lax.pow(x * x + 1, y),
             lambda x, y: lax.pow(x, lax.round(y).astype(jnp.int32)), lambda x, y: lax.square(x))  # fmt: skip
    return f, [real(rng, 5) + 3, real(rng, 5)]


@maker
def rounding(rng: Rng) -> Drawn:
    method = pick(rng, lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN)
    return lambda x: lax.round(x, method), [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.2, 7.9])]


@maker
def sign(rng: Rng) -> Drawn:
    dtype = number_type(rng)
    return pick(rng, lax.sign, lax.abs, lax.neg if np.dtype(dtype).kind != "u" else lax.sign), [
        whole(rng, 7, dtype=dtype)]  # fmt: skip


@maker
def parts_of_complex(rng: Rng) -> Drawn:
    x = real(rng, 5, dtype=pick(rng, np.complex64, np.complex128))
    return pick(rng, jnp.conj, lax.real, lax.imag, lambda a: lax.conj(a.real), lambda a: lax.complex(a.imag, a.real),
                lambda a: a * a / (a + 3), jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, lax.rsqrt), [x]  # fmt: skip


@maker
def clamp(rng: Rng) -> Drawn:
    low, high = np.sort(rng.integers(-3, 4, 2))
    dtype = pick(rng, np.float32, np.int32, np.uint8)
    x = whole(rng, 3, 4, dtype=dtype)
    bounds = [np.asarray(np.maximum(v, 0) if dtype is np.uint8 else v).astype(dtype) for v in (low, high)]
    if rng.integers(2):
        bounds = [np.full(x.shape, v, dtype) for v in bounds]
    return lax.clamp, [bounds[0], x, bounds[1]]


@maker
def select_n(rng: Rng) -> Drawn:
    cases = [whole(rng, 4) for _ in range(int(rng.integers(1, 5)))]
    which = rng.integers(0, len(cases), 4) if len(cases) != 2 else rng.integers(0, 2, 4) > 0
    if len(cases) == 1:
        which = np.zeros(4, np.int32)
    return lax.select_n, [which.astype(np.bool_ if len(cases) == 2 else np.int32), *cases]


@maker
def narrow_bits(rng: Rng) -> Drawn:
    to = pick(rng, np.int8, np.uint16, np.float32, np.int64)
    return lambda x: lax.bitcast_convert_type(x, to), [real(rng, 2, 2, dtype=np.float32)
        if np.dtype(to).itemsize <= 4 else real(rng, 3, 2, dtype=np.float32)]  # fmt: skip


# ---- movement and indexing ----------------------------------------------------------------------------------------


@maker
def split(rng: Rng) -> Drawn:
    axis = int(rng.integers(2))
    return pick(rng, lambda x: lax.split(x, (1, 0, 3) if axis else (2, 2), axis), lambda x: [*x], jnp.unstack,
                lambda x: jnp.unstack(x, axis=axis)), [whole(rng, 4, 4)]  # fmt: skip


@maker
def stack(rng: Rng) -> Drawn:
    axis = int(rng.integers(3))
    return pick(rng, lambda x, y: jnp.stack([x, y, x], axis), lambda x, y: jnp.tile(x, (2, 1, axis + 1)),
                lambda x, y: lax.tile(x, (axis + 1, 2)), lambda x, y: lax.concatenate([x, y, y], axis % 2)), [
        whole(rng, 2, 3), whole(rng, 2, 3)]  # fmt: skip


@maker
def pad(rng: Rng) -> Drawn:
    amounts = [tuple(v) for v in rng.integers((-1, -1, 0), (3, 3, 3), (2, 3)).tolist()]
    dtype = number_type(rng)
    return lambda x, v: lax.pad(x, v, amounts), [whole(rng, 4, 3, dtype=dtype), whole(rng, dtype=dtype)]


@maker
def gather(rng: Rng) -> Drawn:
    mode = pick(rng, "clip", "fill", "promise_in_bounds")
    low, high = (0, 4) if mode == "promise_in_bounds" else (-6, 9)
    kind = pick(rng, np.int32, np.int64, np.uint8, np.uint64, np.int8, np.uint32)
    rows = rng.integers(max(low, 0) if np.dtype(kind).kind == "u" else low, high, (2, 2)).astype(kind)
    if np.dtype(kind) == np.uint64 and mode == "clip":
        rows[0, 0] = 2**64 - 3
    numbers = lax.GatherDimensionNumbers((0, 2), (1,), (0, 1))
    return pick(
        rng, lambda x, i: x.at[i].get(mode=mode), lambda x, i: x.at[:, i[0] % 3].get(mode=mode),
        lambda x, i: jnp.take_along_axis(x[:, :2], i, 0, mode=mode),
        lambda x, i: lax.gather(jnp.stack([x, x * 2]), i, numbers, (2, 1, 2), mode=mode),
        lambda x, i: x.at[i, (i + 1) % 3].get(mode=mode, fill_value=7),
    ), [whole(rng, 4, 3), rows]  # fmt: skip


@maker
def scatter(rng: Rng) -> Drawn:
    mode, way = pick(rng, "clip", "drop", "promise_in_bounds"), pick(rng, "set", "add", "multiply", "min", "max")
    kind = pick(rng, np.int32, np.int64, np.uint8, np.int8, np.uint64)
    high, low = (4, 0) if mode == "promise_in_bounds" else (7, 0 if np.dtype(kind).kind == "u" else -6)
    rows = np.unique(rng.integers(low, high, 3)).astype(kind)
    if mode == "clip" and way == "set":
        rows = rows[:1]
    dtype = pick(rng, np.float64, np.int32, np.complex64)
    way = pick(rng, "add", "set") if dtype is np.complex64 else way

    def function(x: Any, i: Any, u: Any) -> Any:
        return getattr(x.at[i], way)(u[: len(rows)], mode=mode)

    return function, [whole(rng, 4, 3, dtype=dtype), rows, whole(rng, 3, 3, dtype=dtype)]


@maker
def dynamic_slices(rng: Rng) -> Drawn:
    kind = pick(rng, np.int32, np.uint8, np.int64, np.uint32)
    start = rng.integers(0 if np.dtype(kind).kind == "u" else -4, 6, 2).astype(kind)
    return pick(rng, lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 1)),
                lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 3, (i[0], i[1])),
                lambda x, i: lax.dynamic_index_in_dim(x, i[0], 1)), [whole(rng, 4, 3), start]  # fmt: skip


# ---- folds, windows, order ---------------------------------------------------------------------------------------


@maker
def reduce(rng: Rng) -> Drawn:
    axes = tuple(pick(rng, (0,), (1,), (0, 1), ()))
    dtype = pick(rng, np.int32, np.float64)
    init, many = pick(rng, (0, lambda x, y: x + y + x * y), (-9, jnp.maximum), (9, lambda x, y: jnp.where(x < y, x, y)))
    if rng.integers(2):
        return lambda x: lax.reduce(x, x.dtype.type(init), many, axes), [whole(rng, 3, pick(rng, 1, 3), dtype=dtype)]

    def both(a: Any, b: Any) -> Any:
        better = a[0] > b[0]
        return jnp.where(better, a[0], b[0]), jnp.where(better, a[1], b[1])

    return lambda x, y: lax.reduce((x, y + x * 0), (x.dtype.type(-9), y.dtype.type(0)), both, axes), [
        rng.permutation(12).reshape(3, 4).astype(dtype), whole(rng, 3, 4, dtype=dtype)]  # fmt: skip


@maker
def reduce_precision(rng: Rng) -> Drawn:
    bits = int(rng.integers(2, 9)), int(rng.integers(1, 11))
    return lambda x: lax.reduce_precision(x, *bits), [real(rng, 6, dtype=pick(rng, np.float32, np.float64))]


@maker
def extremes(rng: Rng) -> Drawn:
    dtype, axis = number_type(rng), int(rng.integers(2))
    dtype, of = np.float32 if np.dtype(dtype).kind == "c" else dtype, pick(rng, np.int32, np.uint8)
    return pick(rng, lambda x: jnp.argmax(x, axis), lambda x: jnp.argmin(x, axis), lambda x: x.max(axis),
                lambda x: x.min(axis), lambda x: lax.argmax(x, axis, of)), [
        whole(rng, 3, 4, dtype=dtype)]  # fmt: skip


@maker
def cumulative(rng: Rng) -> Drawn:
    axis, back = int(rng.integers(2)), bool(rng.integers(2))
    f = pick(rng, lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)
    dtype = np.float64 if f is lax.cumlogsumexp else pick(rng, np.float64, np.int32, np.int8)
    return lambda x: f(x, axis, reverse=back), [whole(rng, pick(rng, 3, 1, 0), 5, dtype=dtype)]


@maker
def reduce_window(rng: Rng) -> Drawn:
    size, step = tuple(rng.integers(1, 4, 2).tolist()), tuple(rng.integers(1, 3, 2).tolist())
    pads = tuple(map(tuple, rng.integers(0, 3, (2, 2)).tolist()))
    base, gap = tuple(rng.integers(1, 3, 2).tolist()), tuple(rng.integers(1, 3, 2).tolist())
    dtype = pick(rng, np.float64, np.int32)
    init, f = pick(rng, (0, lax.add), (1, lax.mul), (-99, lax.max), (99, lax.min), (0, lambda a, b: a + b + a * b))
    start = np.asarray(init).astype(dtype)
    return lambda x: lax.reduce_window(x, start, f, size, step, pads, base, gap), [whole(rng, 5, 6, dtype=dtype)]


@maker
def gradients_of_windows(rng: Rng) -> Drawn:
    size, step = tuple(rng.integers(1, 4, 2).tolist()), tuple(rng.integers(1, 4, 2).tolist())
    mode = pick(rng, "SAME", "VALID", ((1, 0), (0, 2)))
    init, f = pick(rng, (-np.inf, lax.max), (np.inf, lax.min), (0.0, lax.add))

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, init, f, size, step, mode)

    x = rng.permutation(30).reshape(5, 6).astype(np.float64)
    return pick(rng, jax.grad(lambda a: (pooled(a) ** 2).sum()), lambda a: jax.jvp(pooled, (a,), (a * a,)),
                jax.grad(lambda a: jax.jvp(pooled, (a,), (a * a,))[1].sum())), [x]  # fmt: skip


@maker
def sort(rng: Rng) -> Drawn:
    dtype, axis, keys = number_type(rng), int(rng.integers(2)), int(rng.integers(1, 3))
    x, y = whole(rng, 4, 3, dtype=dtype), whole(rng, 4, 3, dtype=pick(rng, np.int32, np.float64))
    if np.dtype(dtype).kind == "f":
        x[0, 0], x[1, 1], x[2, 2] = pick(rng, np.nan, -0.0, np.inf), 0.0, -0.0
    return lambda a, b: lax.sort((a, b, a), dimension=axis, num_keys=keys, is_stable=True), [x, y]


@maker
def top_k(rng: Rng) -> Drawn:
    k, axis = int(rng.integers(0, 5)), int(rng.choice([-1, 0, 1]))
    x = whole(rng, 3, 4, dtype=pick(rng, np.float32, np.int32, np.uint8))
    distinct = rng.permutation(12).reshape(3, 4).astype(np.float32)
    if rng.integers(2):
        return lambda a: lax.top_k(a, k), [x]
    f = pick(rng, lax.approx_max_k, lax.approx_min_k)
    return lambda a: f(a, min(max(k, 1), 3), reduction_dimension=axis, recall_target=1.0), [distinct]


# ---- contraction --------------------------------------------------------------------------------------------------


@maker
def convolution(rng: Rng) -> Drawn:
    spatial = int(rng.integers(1, 3))
    order = rng.permutation(spatial + 2)
    layouts = ["".join("NCDHW"[i] if i < 2 else "HW"[i - 2] for i in rng.permutation(spatial + 2)) for _ in range(2)]
    kernel_layout = "".join("OI"[i] if i < 2 else "HW"[i - 2] for i in order)
    groups, of_batch = pick(rng, (1, 1), (2, 1), (1, 2))
    dtype = pick(rng, np.float64, np.float32, np.int32, np.complex128)
    sizes = {"N": 2 * of_batch, "C": 2 * groups, "H": 6, "W": 5}
    kernel = {"O": 2 * groups * of_batch, "I": 2, "H": 2, "W": 3}
    pads = [tuple(p) for p in rng.integers(-1, 3, (spatial, 2)).tolist()]
    strides, low, high = (tuple(rng.integers(1, 3, spatial).tolist()) for _ in range(3))
    words = {
        "window_strides": strides, "padding": pads, "lhs_dilation": low, "rhs_dilation": high,
        "dimension_numbers": (layouts[0], kernel_layout, layouts[1]), "feature_group_count": groups,
        "batch_group_count": of_batch,
    }  # fmt: skip
    x = whole(rng, *(sizes[c] for c in layouts[0]), dtype=dtype)
    w = whole(rng, *(kernel[c] for c in kernel_layout), dtype=dtype)
    return lambda a, b: lax.conv_general_dilated(a, b, **words), [x, w]


@maker
def dot(rng: Rng) -> Drawn:
    left, right = pick(rng, (np.float32, np.float32), (np.int8, np.int8), (np.float64, np.float32),
                       (np.float16, np.float16), (np.int32, np.float32), (np.complex64, np.complex64))  # fmt: skip
    wanted = pick(
        rng, None, None, np.complex128 if left is np.complex64 else np.int32 if left is np.int8 else np.float64
    )
    algorithm = pick(rng, None, "highest", ("default", "high"), lax.DotAlgorithmPreset.DEFAULT)
    if left is np.float32 and right is np.float32 and wanted is None:
        algorithm = pick(rng, algorithm, lax.DotAlgorithmPreset.F32_F32_F32, lax.DotAlgorithmPreset.BF16_BF16_F32_X3)
    numbers = pick(rng, (((2,), (1,)), ((0,), (0,))), (((0, 2), (0, 1)), ((), ())))
    return lambda x, y: lax.dot_general(x, y, numbers, algorithm, wanted), [
        whole(rng, 2, 3, 4, dtype=left), whole(rng, 2, 4, 3, dtype=right)]  # fmt: skip


@maker
def ragged_dot(rng: Rng) -> Drawn:
    sizes = rng.multinomial(int(rng.integers(0, 7)), [0.3, 0.3, 0.4]).astype(np.int32)
    if rng.integers(2):
        return lax.ragged_dot, [whole(rng, 6, 4), whole(rng, 3, 4, 2), sizes]
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    return lambda x, y, s: lax.ragged_dot_general(x, y, s, numbers), [whole(rng, 6, 4), whole(rng, 6, 2), sizes]


@maker
def scaled_dot(rng: Rng) -> Drawn:
    a, b = whole(rng, 1, 2, 32, dtype=np.float32), whole(rng, 1, 32, 3, dtype=np.float32)
    s, t = (np.exp2(rng.integers(-2, 3, shape)).astype(np.float32) for shape in ((1, 2, 2), (1, 4, 3)))
    return lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, preferred_element_type=jnp.float32), [
        a, b, s, t]  # fmt: skip


@maker
def sparse_arrays(rng: Rng) -> Drawn:
    x, y = whole(rng, 4, 3), whole(rng, 3, 2)
    return pick(rng, lambda a, b: sparse.BCOO.fromdense(a, nse=12) @ b,
                lambda a, b: sparse.BCSR.fromdense(a, nse=12) @ b,
                lambda a, b: sparse.bcoo_transpose(sparse.BCOO.fromdense(a, nse=12), permutation=(1, 0)).todense(),
                ), [x, y]  # fmt: skip


# ---- linear algebra ----------------------------------------------------------------------------------------------


def _matrices(rng: Rng) -> list[Array]:
    dtype = pick(rng, np.float64, np.complex128)
    a, r = real(rng, 2, 4, 4, dtype=dtype), real(rng, 2, 5, 3, dtype=dtype)
    return [a, a @ np.conj(np.swapaxes(a, -1, -2)) + 4 * np.eye(4), r]


@maker
def factors(rng: Rng) -> Drawn:
    whole_or_not, lower, left = (bool(v) for v in rng.integers(0, 2, 3))
    return pick(
        rng, lambda a, d, r: linalg.qr(r, pivoting=True, full_matrices=whole_or_not), lambda a, d, r: linalg.lu(a * 0),
        lambda a, d, r: linalg.ormqr(r, jnp.ones((2, 3), r.dtype), r if left else r.mT, left=left, transpose=lower),
        lambda a, d, r: linalg.householder_product(r, jnp.ones((2, 3), r.dtype)), lambda a, d, r: linalg.hessenberg(a),
        lambda a, d, r: linalg.tridiagonal(d, lower=lower), lambda a, d, r: linalg.cholesky(-d),
        lambda a, d, r: linalg.schur(a, compute_schur_vectors=lower), lambda a, d, r: linalg.lu(r if left else r.mT),
        lambda a, d, r: linalg.cholesky(d if left else d.mT, symmetrize_input=lower),
        lambda a, d, r: linalg.qr(r.mT, full_matrices=whole_or_not),
    ), _matrices(rng)  # fmt: skip


@maker
def spectra(rng: Rng) -> Drawn:
    yes, other = (bool(v) for v in rng.integers(0, 2, 2))
    count = int(rng.integers(0, 3))
    return pick(
        rng, lambda a, d, r: linalg.eigh(a, lower=yes, symmetrize_input=False)[1],
        lambda a, d, r: linalg.eig(a, compute_left_eigenvectors=yes, compute_right_eigenvectors=other),
        lambda a, d, r: linalg.svd(r if other else r.mT, full_matrices=yes),
        lambda a, d, r: linalg.svd(r if other else r.mT, compute_uv=False, full_matrices=False, subset_by_index=(0, 3)),
        lambda a, d, r: linalg.svd(r, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR),
        lambda a, d, r: linalg.svd(r[:, :count], full_matrices=yes),
        lambda a, d, r: linalg.eigh(d, subset_by_index=(0, 4))[1],
    ), _matrices(rng)  # fmt: skip


@maker
def solving(rng: Rng) -> Drawn:
    flags = [bool(v) for v in rng.integers(0, 2, 5)]
    words = dict(zip(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), flags, strict=True))
    return pick(
        rng, lambda a, d, r: jnp.linalg.solve(a, d), lambda a, d, r: jnp.linalg.slogdet(a),
        lambda a, d, r: linalg.triangular_solve(d, r.mT[:, :, :4] if not flags[0] else a, **words),
        lambda a, d, r: jsl.cho_solve(jsl.cho_factor(d[0]), a[0]), lambda a, d, r: jnp.linalg.matrix_power(a, 5),
        lambda a, d, r: linalg.tridiagonal_solve(a[0, 0].real, d[0, 0].real + 9, a[0, 1].real, d[0].real),
        lambda a, d, r: linalg.tridiagonal_solve(
            a[0, 0].real, d[0, 0].real + 9, a[0, 1].real, d[0].real, perturb_singular=True),
        lambda a, d, r: linalg.symmetric_product(a.real, d.real, alpha=2.0, beta=0.5),
        lambda a, d, r: lax.custom_linear_solve(lambda v: d[0] @ v, a[0], lambda f, b: jnp.linalg.inv(d[0]) @ b),
    ), _matrices(rng)  # fmt: skip


# ---- control, calls, chance --------------------------------------------------------------------------------------


@maker
def control(rng: Rng) -> Drawn:
    n = int(rng.integers(0, 5))
    return pick(
        rng, jax.vmap(lambda x, y: lax.while_loop(lambda c: c[0] < y, lambda c: (c[0] + 1, c[1] * 2), (x, y))),
        jax.vmap(lambda x, y: lax.cond(x > y, lambda: x * 2, lambda: y - x)),
        lambda x, y: lax.cond((x > y).any(), lambda: x, lambda: y), lambda x, y: lax.switch(n - 1, [
            lambda: x, lambda: y, lambda: x * y]),
        lambda x, y: lax.switch(lax.convert_element_type(x[0], jnp.int32), [lambda: x, lambda: y, lambda: x * y]),
        lambda x, y: lax.platform_dependent(x, y, cpu=lambda a, b: a - b, default=lambda a, b: a + b),
        lambda x, y: lax.platform_dependent(x, y, tpu=lambda a, b: a - b, default=lambda a, b: a + b * 2),
        lambda x, y: lax.fori_loop(n, 4, lambda i, c: c * 2 + y[i], x),
        lambda x, y: lax.scan(lambda c, v: (c + v[0], (c, v[1])), 0.0, (x, y), reverse=bool(n % 2), unroll=1 + n % 3),
        lambda x, y: lax.scan(lambda c, v: ((c[1], c[0] + v), v), (x, y), None if n > 9 else x),
        lambda x, y: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + y), (0, x)),
        jax.vmap(lambda x, y: lax.while_loop(lambda c: c < 9, lambda c: abs(c) * 2 + y * y + 1, x)),
        lambda x, y: lax.associative_scan(lambda a, b: a * 2 + b, x),
    ), [whole(rng, 4), whole(rng, 4)]  # fmt: skip


@jax.custom_jvp
def _known(x: Any) -> Any:
    return jnp.sin(x) * 2


_known.defjvp(lambda primals, tangents: (_known(*primals), tangents[0]))


@maker
def calls(rng: Rng) -> Drawn:
    return pick(
        rng, lambda x, y: lax.optimization_barrier((x, y)), lambda x, y: lax.stop_gradient(x) * y,
        lambda x, y: jax.grad(lambda v: (_known(v) * y).sum())(x), lambda x, y: jax.jit(lambda a, b: (b, a - b))(y, x),
        lambda x, y: jax.checkpoint(lambda a: jnp.tanh(a) * y)(x), lambda x, y: jax.named_call(jnp.add, name="f")(x, y),
        lambda x, y: jax.grad(lambda v: jax.checkpoint(lambda a: jnp.tanh(a) * y)(v).sum())(x),
        lambda x, y: jnp.copy(x), lambda x, y: lax.composite(lambda a, b: a * 2 + b, "my.op")(x, y),
        lambda x, y: (x, x, y, 3.0, x * 0),
        lambda x, y: jax.device_put(x) + y, lambda x, y: jnp.vectorize(lambda a, b: a - b)(x[:, None], y),
        lambda x, y: lax.psum(x * y, ()), lambda x, y: jax.vmap(lambda a: lax.psum(a, "i"), axis_name="i")(x),
        lambda x, y: lax.full_like(x, 3), lambda x, y: x + np.float32(2), lambda x, y: 2.5 * x + np.arange(4),
    ), [whole(rng, 4), whole(rng, 4)]  # fmt: skip


@maker
def chance(rng: Rng) -> Drawn:
    kind, algorithm = pick(rng, "threefry2x32", "rbg", "unsafe_rbg"), pick(rng, *lax.RandomAlgorithm)
    r = jax.random

    def key(n: Any) -> Any:
        return r.key(n, impl=kind)

    return pick(
        rng, lambda n: r.uniform(key(n), (3,)), lambda n: r.normal(key(n), (2, 2)),
        lambda n: r.bits(key(n), (5,), "uint8"), lambda n: r.gamma(key(n), 2.0, (2,)),
        lambda n: r.key_data(r.fold_in(key(n), 7)), lambda n: r.key_data(r.split(key(n), (2, 3))),
        lambda n: r.permutation(key(n), 6), lambda n: r.bernoulli(key(n), 0.3, (8,)),
        lambda n: r.key_data(r.split(key(n), 4)[jnp.array([3, 0, -1])]), lambda n: r.randint(key(n), (4,), -3, 9),
        lambda n: jax.vmap(lambda k: r.uniform(k, (2,)))(r.split(key(n), 3)),
        lambda n: r.bits(key(n), (2,), "uint64"), lambda n: r.truncated_normal(key(n), -1, 2, (3,)),
        lambda n: r.key_data(jnp.where(n > 2, key(n), key(n + 1))), lambda n: key(n) == key(n * n),
        lambda n: r.key_data(lax.fori_loop(0, 3, lambda i, k: r.fold_in(k, i), key(n))),
        lambda n: r.choice(key(n), 5, (3,)),
        lambda n: lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32) + n.astype(jnp.uint32), (3, 2), jnp.uint32,
                                        algorithm),
        lambda n: r.key_data(jnp.stack([key(n), key(n + 1)]).reshape(2, 1).T),
    ), [np.asarray(rng.integers(0, 5))]  # fmt: skip


# ---- symbols -----------------------------------------------------------------------------------------------------


def with_symbols(args: list[Array], rng: Rng) -> list[Any]:
    """The types of arguments, with symbols for some of their sizes: equal ones have the same, since JAX does not always
    ask whether symbols agree."""
    scope = export.SymbolicScope()
    # Integers without a sign may be the state of a generator, which has a length of its own.
    known = {n for x in args if x.dtype.kind == "u" for n in x.shape}
    chosen = {n for n in sorted({n for x in args for n in x.shape} - known) if n > 1 and rng.random() < _SYMBOLIC}
    found: list[Any] = []
    for x in args:
        names = [f"n{n}" if n in chosen else str(n) for n in x.shape]
        shape = export.symbolic_shape(", ".join(names), scope=scope) if names else ()
        found.append(jax.ShapeDtypeStruct(shape, x.dtype))
    return found


_SYMBOLIC = 0.5
"""How many sizes become symbols."""
