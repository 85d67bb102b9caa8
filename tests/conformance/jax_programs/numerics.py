"""Sorting, indexing, transforms, linear algebra, random numbers, and element types."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from tests.conformance.jax_programs.table import integers, normal, positive_definite, program


@program(normal(4, 9), integers(0, 5, 9))
def sorts(x: Any, keys: Any) -> Any:
    """Sorts in both orders, by several keys, stable, and their gradients"""
    gradient = jax.grad(lambda v: jnp.sum(jnp.sort(v) * jnp.arange(9)))(x[0])
    both = jnp.sort(x, axis=0, descending=True), jnp.argsort(x, axis=1), jnp.lexsort((x[0], keys))
    return both, lax.sort((keys, x[0], x[1]), num_keys=2), jnp.median(x, 1), jnp.quantile(x, 0.3), gradient


@program(normal(4, 9), integers(0, 9, 20))
def selections(x: Any, keys: Any) -> Any:
    """Top-k, arg max, unique, search and counts"""
    found = lax.top_k(x, 3), jnp.argmax(x, 1), jnp.argmin(x), jnp.unique(keys, size=12, fill_value=-1)
    return found, jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.bincount(keys, length=9), jnp.histogram(x, 5)


@program(normal(6, 4), integers(-2, 8, 5))
def scatters(x: Any, rows: Any) -> Any:
    """`at[].set`, `add`, `max`, `multiply`, with places that are out of range"""
    return {
        "set": x.at[1:3, ::2].set(0),
        "add": x.at[rows].add(1.0),
        "max": x.at[rows, 1].max(0.5),
        "multiply": x.at[:, rows % 4].multiply(2.0),
        "dropped": x.at[rows + 3].set(7.0, mode="drop"),
        "masked": x.at[np.arange(6) % 2 == 0].set(-1.0),
        "apply": x.at[rows % 6].apply(jnp.tanh),
        "gradient": jax.grad(lambda v: jnp.sum(v.at[rows].add(v[:5]) ** 2))(x),
    }


@program(normal(6, 4), integers(-2, 8, 3, 2))
def gathers(x: Any, rows: Any) -> Any:
    """Indexing by arrays, slices, masks and new axes, in all modes"""
    filled = x.at[rows].get(mode="fill", fill_value=-1), x.at[rows].get(mode="clip"), jnp.take(x, rows, 0, mode="wrap")
    mixed = x[rows % 6, 1], x[:, None, rows[0] % 4], x[jnp.array([True, False] * 3)[:4].argmax(), ::-1]
    return filled, mixed, jnp.take_along_axis(x, jnp.argsort(x, 1), 1), jax.grad(lambda v: v[rows % 6].sum())(x)


@program(normal(48, 4), integers(0, 6, 48))
def segments(x: Any, ids: Any) -> Any:
    """Sums, products and extremes by segments, and a graph's messages"""
    messages = jax.ops.segment_sum(x[ids] * x, ids, 6)
    return messages, jax.ops.segment_max(x, ids, 7), jax.ops.segment_min(x, ids, 7), jax.ops.segment_prod(x, ids, 6)


@program(normal(4, 16), normal(3, 8, 6))
def transforms(x: Any, images: Any) -> Any:
    """Fourier transforms of all kinds, and convolution by them"""
    spectrum = jnp.fft.fft(x), jnp.fft.ifft(x), jnp.fft.rfft(x, 12), jnp.fft.irfft(jnp.fft.rfft(x))
    two = jnp.fft.fft2(images), jnp.fft.fftshift(jnp.fft.rfftn(images, axes=(0, 2)), axes=1), jnp.fft.hfft(x)
    return spectrum, two, jsp.signal.fftconvolve(x, x[::-1], mode="same"), jsp.fft.dct(x)


@program(normal(2, 3, 4), normal(4, 5), normal(3, 5, 2))
def einsums(x: Any, y: Any, z: Any) -> Any:
    """Contractions: batches, traces, outer products, ellipses, three operands"""
    return (
        jnp.einsum("bij,jk->bik", x, y), jnp.einsum("...j,jk->...", x, y), jnp.einsum("bij,jk,ikl->bl", x, y, z),
        jnp.einsum("bii->bi", x[:, :, :3]), jnp.einsum("bij->jb", x), jnp.einsum("i,j->ij", y[0], y[1]),
        jnp.tensordot(x, y, 1), jnp.kron(y, y[:2]), jnp.vdot(y, y),
    )  # fmt: skip


@program(positive_definite(6), normal(6, 3), ulps=256)
def cholesky_solve(a: Any, b: Any) -> Any:
    """Cholesky factors, solutions by them, and gradients"""
    factor = jsp.linalg.cho_factor(a)
    lower = jnp.linalg.cholesky(jnp.stack([a, a + jnp.eye(6)]))
    gradient = jax.grad(lambda a: jnp.linalg.cholesky(a).sum())(a)
    return factor[0], lower, jsp.linalg.cho_solve(factor, b), jsp.linalg.solve_triangular(lower[0].T, b), gradient


@program(normal(5, 5), normal(5, 2), ulps=1024)
def solutions(a: Any, b: Any) -> Any:
    """Solutions, inverses and determinants by LU, and gradients"""
    solved = jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a), jsp.linalg.lu(a)
    return solved, jax.grad(lambda a: jnp.linalg.solve(a, b).sum())(a), jsp.linalg.expm(a * 0.1)


@program(normal(6, 4), normal(6), ulps=1024)
def orthogonal_factors(a: Any, b: Any) -> Any:
    """QR in both forms, least squares, and gradients"""
    full = jnp.linalg.qr(a, mode="complete")
    return jnp.linalg.qr(a), full, jnp.linalg.lstsq(a, b)[0], jax.grad(lambda a: jnp.linalg.qr(a)[1].sum())(a)


@program(positive_definite(5), normal(5, 5), ulps=4096)
def eigenvalues(a: Any, b: Any) -> Any:
    """Eigenvalues of symmetric and of general matrices, and gradients"""
    gradient = jax.grad(lambda a: jnp.linalg.eigvalsh(a)[-1])(a)
    return jnp.linalg.eigh(a), jnp.linalg.eigvals(b), gradient, jnp.linalg.matrix_power(a, 3)


@program(normal(6, 4), ulps=4096)
def singular_values(a: Any) -> Any:
    """SVD, pseudo-inverse, rank, norms, and gradients"""
    svd = jnp.linalg.svd(a, full_matrices=False)
    nuclear = jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum())(a)
    return svd, jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a), jnp.linalg.norm(a, 2), jnp.linalg.cond(a), nuclear


SAMPLERS = {
    "ball": lambda k: jax.random.ball(k, 3, shape=(4,)),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (8,)),
    "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (8,)),
    "binomial": lambda k: jax.random.binomial(k, 10, 0.3, (8,)),
    "bits": lambda k: jax.random.bits(k, (4,), "uint8"),
    "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0), shape=(8,)),
    "cauchy": lambda k: jax.random.cauchy(k, (8,)),
    "chisquare": lambda k: jax.random.chisquare(k, 3.0, shape=(8,)),
    "choice": lambda k: jax.random.choice(k, 9, (4,), replace=False),
    "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(3), (4,)),
    "double_sided_maxwell": lambda k: jax.random.double_sided_maxwell(k, 0.0, 1.0, (8,)),
    "exponential": lambda k: jax.random.exponential(k, (8,)),
    "f": lambda k: jax.random.f(k, 3.0, 5.0, (8,)),
    "gamma": lambda k: jax.random.gamma(k, 2.5, (8,)),
    "generalized_normal": lambda k: jax.random.generalized_normal(k, 1.5, (8,)),
    "geometric": lambda k: jax.random.geometric(k, 0.3, (8,)),
    "gumbel": lambda k: jax.random.gumbel(k, (8,)),
    "laplace": lambda k: jax.random.laplace(k, (8,)),
    "loggamma": lambda k: jax.random.loggamma(k, 0.5, (8,)),
    "logistic": lambda k: jax.random.logistic(k, (8,)),
    "lognormal": lambda k: jax.random.lognormal(k, shape=(8,)),
    "maxwell": lambda k: jax.random.maxwell(k, (8,)),
    "multinomial": lambda k: jax.random.multinomial(k, 10.0, jnp.ones(4) / 4),
    "multivariate_normal": lambda k: jax.random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3), (4,)),
    "normal": lambda k: jax.random.normal(k, (8,)),
    "orthogonal": lambda k: jax.random.orthogonal(k, 3),
    "pareto": lambda k: jax.random.pareto(k, 2.0, (8,)),
    "permutation": lambda k: jax.random.permutation(k, 9),
    "poisson": lambda k: jax.random.poisson(k, 4.0, (8,)),
    "rademacher": lambda k: jax.random.rademacher(k, (8,)),
    "randint": lambda k: jax.random.randint(k, (8,), -5, 100),
    "rayleigh": lambda k: jax.random.rayleigh(k, 2.0, (8,)),
    "t": lambda k: jax.random.t(k, 4.0, (8,)),
    "triangular": lambda k: jax.random.triangular(k, 0.0, 0.3, 1.0, (8,)),
    "truncated_normal": lambda k: jax.random.truncated_normal(k, -1.0, 2.0, (8,)),
    "uniform": lambda k: jax.random.uniform(k, (8,), jnp.bfloat16),
    "wald": lambda k: jax.random.wald(k, 1.0, (8,)),
    "weibull_min": lambda k: jax.random.weibull_min(k, 1.0, 2.0, (8,)),
}


@program(integers(3, 4), ulps=64)
def samplers(seed: Any) -> Any:
    """All samplers of `jax.random`, each by a key of its own"""
    keys = jax.random.split(jax.random.key(seed), len(SAMPLERS))
    return {name: sample(key) for (name, sample), key in zip(SAMPLERS.items(), keys, strict=True)}


@program(integers(3, 4))
def random_keys(seed: Any) -> Any:
    """Keys made, split, folded, cloned, batched; typed ones and raw ones; dropout"""
    key = jax.random.key(seed)
    many = jax.random.split(jax.random.fold_in(key, 7), (2, 3))
    raw = jax.random.PRNGKey(seed)
    kept = jax.random.bernoulli(raw, 0.8, (4, 4))
    other = jax.random.normal(jax.random.key(seed, impl="rbg"), (4,))
    return many, jax.vmap(jax.vmap(jax.random.uniform))(many), raw, jnp.where(kept, 1 / 0.8, 0.0), other


@program(normal(4, 8), normal(8, 4))
def mixed_precision(x: Any, w: Any) -> Any:
    """bf16 and f16 products that are summed in f32, and a scaled loss"""
    low, half = x.astype(jnp.bfloat16), w.astype(jnp.float16)
    wide = jnp.matmul(low, w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    scaled = jax.grad(lambda h: (jnp.matmul(x.astype(jnp.float16), h) * 128).sum().astype(jnp.float32))(half)
    return wide, low.sum(), (low * 2).mean(0), scaled / 128, jax.nn.softmax(low)


@program(normal(4, 8), normal(8, 4))
def float8_product(x: Any, w: Any) -> Any:
    """A product in fp8, with scales, and conversions to each fp8 type"""
    limit = float(jnp.finfo(jnp.float8_e4m3fn).max)
    sx, sw = jnp.abs(x).max() / limit, jnp.abs(w).max() / limit
    qx, qw = (x / sx).astype(jnp.float8_e4m3fn), (w / sw).astype(jnp.float8_e4m3fn)
    product = lax.dot(qx, qw, preferred_element_type=jnp.float32) * sx * sw
    return product, qx, [x.astype(t).astype(jnp.float32) for t in (jnp.float8_e5m2, jnp.float8_e4m3b11fnuz)]


@program(integers(-8, 8, 4, 8), normal(4, 1), normal(3, 4))
def int4_weights(stored: Any, scale: Any, x: Any) -> Any:
    """Weights in int4, dequantized by row, and arithmetic that wraps around"""
    packed = stored.astype(jnp.int4)
    # Not int8, before which XLA does not wrap around (docs/guides/upstream_bugs.md).
    return x @ (packed.astype(jnp.float32) * scale), (packed + packed).astype(jnp.int32), stored.astype(jnp.uint4)


@program(normal(3, 4), normal(4, 3))
def complex_numbers(x: Any, y: Any) -> Any:
    """Complex arithmetic, functions, products and gradients"""
    z = lax.complex(x, y.T)
    gradient = jax.grad(lambda z: jnp.abs(jnp.sin(z) @ y).sum())(z)
    return z @ z.conj().T, jnp.exp(z), jnp.sqrt(z), jnp.angle(z), z**2 / (z + 1), gradient


@program(normal(3, 8))
def special_functions(x: Any) -> Any:
    """Functions of jax.scipy.special and densities of jax.scipy.stats"""
    u = jax.nn.sigmoid(x)
    special = jsp.special.erf(x), jsp.special.gammaln(u), jsp.special.digamma(u), jsp.special.betainc(2.0, 3.0, u)
    more = jsp.special.logsumexp(x, 1), jsp.special.i0e(x), jsp.special.zeta(2 + u, 1.0), jsp.special.ndtri(u)
    return special, more, jsp.stats.norm.logpdf(x), jsp.stats.gamma.cdf(u, 2.0), jsp.stats.poisson.logpmf(3, u)


@program(normal(2, 8, 8, 3), normal(5, 5))
def images(x: Any, kernel: Any) -> Any:
    """Resizing, interpolation and filters"""
    resized = jax.image.resize(x, (2, 12, 5, 3), "bilinear"), jax.image.resize(x, (2, 4, 4, 3), "cubic")
    places = jnp.stack([jnp.linspace(0, 6, 5), jnp.linspace(1, 5, 5)])
    filtered = jsp.signal.convolve2d(x[0, :, :, 0], kernel, mode="same")
    return resized, jsp.ndimage.map_coordinates(x[0, :, :, 0], places, order=1, mode="nearest"), filtered


@program(integers(-100, 100, 12), integers(1, 9, 12))
def integer_arithmetic(x: Any, y: Any) -> Any:
    """Division, remainders, shifts, bits and wrapping, in several widths"""
    narrow = x.astype(jnp.int8) * y.astype(jnp.int8), x.astype(jnp.uint16) - jnp.uint16(1000)
    bits = x & y, x ^ y, ~x, x << (y % 5), x >> 1, lax.shift_right_logical(x, y % 5), lax.population_count(x)
    return x // y, x % y, lax.rem(x, y), divmod(x, y), jnp.gcd(x, y), narrow, bits, lax.bitcast_convert_type(x, "f4")


@program(normal(6, 5))
def cumulative(x: Any) -> Any:
    """Cumulative sums, products, extremes and differences, both ways, and gradients"""
    forward = jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 0)
    return forward, lax.cumsum(x, reverse=True), jnp.diff(x, axis=1), jax.grad(lambda v: jnp.cumprod(v).sum())(x[0])
