"""Special functions, which JAX defines by others: values, gradients and edges."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import jax.scipy.stats as stats
import numpy as np
import pytest

from .agreement import Group, agree, together

A = np.array([0.1, 0.5, 1.0, 2.5, 10.0, 80.0, 3.0, 2.0, 0.0, -1.0, np.nan, np.inf])
X = np.array([0.2, 3.0, 1.0, 0.5, 12.0, 75.0, 0.0, np.inf, 1.0, 2.0, 1.0, 3.0])

PAIRS: Group = {
    "igamma": jsp.gammainc,
    "igammac": jsp.gammaincc,
    "betaln": jsp.betaln,
    # Of infinity, and of very large numbers, XLA says NaN and gcomp 0.
    "zeta": lambda a, x: jsp.zeta(jnp.minimum(a, 80) + 1, jnp.minimum(x, 1e4) + 1),
    "polygamma": lambda a, x: jsp.polygamma(2, jnp.minimum(x, 1e4) + 0.5),
    "betainc": lambda a, x: jsp.betainc(a, a + 1, x / 100),
    "gamma cdf": lambda a, x: stats.gamma.cdf(x, a),
    "poisson": lambda a, x: stats.poisson.logpmf(jnp.floor(a), x),
}
ONE: Group = {
    "i0e": lambda a, x: jsp.i0e(x),
    "i0": lambda a, x: jsp.i0(a),
    "i1e": lambda a, x: jsp.i1e(x),
    "i1": lambda a, x: jsp.i1(a),
    "erf_inv": lambda a, x: jsp.erfinv(a / 100),
    "gammaln": lambda a, x: jsp.gammaln(a),
    "digamma": lambda a, x: jsp.digamma(a),
    "expit": lambda a, x: jsp.expit(a),
    "logit": lambda a, x: jsp.logit(x / 100),
    "xlogy": lambda a, x: jsp.xlogy(a, x),
    "entr": lambda a, x: jsp.entr(x),
    "logsumexp": lambda a, x: jsp.logsumexp(x),
}
OF_32_BITS_OR_MORE: Group = {
    "ndtri": lambda a, x: jsp.ndtri(x / 100),
    "log_ndtr": lambda a, x: jsp.log_ndtr(a),
}
GRADIENTS: Group = {
    "igamma": jax.grad(lambda a, x: jsp.gammainc(a, x).sum(), argnums=(0, 1)),
    "betainc": jax.grad(lambda a, x: jsp.betainc(2.0, 3.0, x / 20).sum(), argnums=1),
    "i0e": jax.grad(lambda a, x: jsp.i0e(x).sum(), argnums=1),
    "i1e": jax.grad(lambda a, x: jsp.i1e(x).sum(), argnums=1),
    "digamma": jax.grad(lambda a, x: jsp.digamma(a).sum()),
}


@pytest.mark.parametrize(
    "dtype", [np.float32, *(pytest.param(t, marks=pytest.mark.slow) for t in (np.float64, np.float16, jnp.bfloat16))]
)
def test_values(dtype: type) -> None:
    rows = {**PAIRS, **ONE, **(OF_32_BITS_OR_MORE if np.dtype(dtype).itemsize > 2 else {})}
    with jax.enable_x64(True):
        agree(together(rows), A.astype(dtype), X.astype(dtype), ulps=64)


def test_gradients() -> None:
    agree(together(GRADIENTS), A[:6].astype(np.float32), X[:6].astype(np.float32), ulps=64)


def test_operands_of_ranks_that_differ() -> None:
    agree(lambda a, x: jax.vmap(lambda y: jsp.gammainc(a, y))(x), np.float32(2), np.ones((3, 2), np.float32))
