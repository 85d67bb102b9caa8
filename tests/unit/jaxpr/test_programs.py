"""Programs of jax.numpy, jax.nn and jax.scipy as users write them, in all element types, with pytrees."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest

from .agreement import Group, agree, together

RNG = np.random.default_rng(1)
X = RNG.standard_normal((3, 4)).astype(np.float32)
I = RNG.integers(-9, 9, (3, 4)).astype(np.int32)


class Pair(NamedTuple):
    left: Any
    right: Any


SORTING: Group = {
    "sort": jnp.sort,
    "sort descending": lambda x: jnp.sort(x, axis=0, descending=True),
    "argsort": jnp.argsort,
    "lexsort": lambda x: jnp.lexsort((x[0], x[1])),
    "top_k": lambda x: jax.lax.top_k(x, 2),
    "median": jnp.median,
    "quantile": lambda x: jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1),
    "unique": lambda x: jnp.unique(jnp.round(x), size=12),
    "nonzero": lambda x: jnp.nonzero(x > 0, size=12, fill_value=-1),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x[0]), x[1]),
    "histogram": lambda x: jnp.histogram(x, bins=4),
    "digitize": lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])),
    "interp": lambda x: jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), jnp.array([2.0, 5.0, 4.0])),
    "argmax": lambda x: (jnp.argmax(x), jnp.argmin(x, axis=1)),
    "bincount": lambda x: jnp.bincount(jnp.abs(x.astype(int)).ravel(), length=5),
    "cumsum": lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), jax.lax.cummax(x, 1), jax.lax.cumlogsumexp(x, 1)),
    "gradient": jax.grad(lambda x: (jnp.sort(x, axis=1) * jnp.arange(4)).sum()),
}
INDEXING: Group = {
    "rows": lambda x: x[jnp.array([2, 0, -1])],
    "mask": lambda x: x.at[np.array([True, False, True])].set(0),
    "add": lambda x: x.at[jnp.array([0, 0, 5]), 1].add(1.0),
    "drop": lambda x: x.at[7].set(9.0, mode="drop"),
    "fill": lambda x: x.at[jnp.array([1, 8])].get(mode="fill", fill_value=-1),
    "minimum": lambda x: x.at[:, 1::2].min(0.0),
    "dynamic slice": lambda x: jax.lax.dynamic_slice(x, (x[0, 0].astype(int), 1), (2, 2)),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "roll": lambda x: jnp.roll(x, (1, 2), (0, 1)),
    "diagonals": lambda x: (jnp.diag(x[0]), jnp.diagonal(x), jnp.tril(x), jnp.trace(x)),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0]), 2),
    "pad": lambda x: [jnp.pad(x, 1, mode=m) for m in ("constant", "edge", "reflect", "wrap")],
    "select": lambda x: jnp.select([x > 1, x > 0], [x, x * 2], -1),
    "piecewise": lambda x: jnp.piecewise(x, [x < 0, x > 1], [jnp.abs, 2.0, lambda v: v**2]),
    "gradient": jax.grad(lambda x: x[jnp.array([0, 0, 2]), 1].sum() + x.at[0].multiply(3.0).sum()),
}
CONTRACTIONS: Group = {
    "einsum": lambda x: [jnp.einsum("ij,kj->ik", x, x), jnp.einsum("ij,ij->", x, x), jnp.einsum("ij->j", x)],
    "three": lambda x: jnp.einsum("ij,jk,kl->il", x, x.T, x),
    "tensordot": lambda x: jnp.tensordot(x, x, 2),
    "kron": lambda x: jnp.kron(x, x),
    "outer": lambda x: jnp.outer(x[0], x[1]),
    "vdot": lambda x: jnp.vdot(x, x),
    "convolve": lambda x: [jnp.convolve(x[0], x[1], m) for m in ("full", "same", "valid")],
    "correlate2d": lambda x: jsp.signal.correlate2d(x, x[:2, :2], mode="same"),
    "precise": lambda x: jnp.matmul(x, x.T, precision="highest", preferred_element_type=jnp.float32),
    "batched": lambda x: jax.vmap(lambda a: a @ x.T)(x),
    "gradient": jax.grad(lambda x: jnp.tanh(x @ x.T).sum()),
}
NETWORKS: Group = {
    "activations": lambda x: [f(x) for f in (jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.nn.elu, jax.nn.softplus,
                                             jax.nn.selu, jax.nn.mish, jax.nn.hard_swish, jax.nn.log_sigmoid)],
    "softmax": lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x), jax.nn.logsumexp(x, axis=1)),
    "masked softmax": lambda x: jax.nn.softmax(x, where=x > 0),
    "one_hot": lambda x: jax.nn.one_hot(jnp.arange(3), 4),
    "standardize": lambda x: jax.nn.standardize(x),
    "attention": lambda x: jax.nn.dot_product_attention(*[x.reshape(1, 3, 2, 2)] * 3, is_causal=True),
    "glu": jax.nn.glu,
    "resize": lambda x: [jax.image.resize(x, (5, 7), m) for m in ("nearest", "linear", "cubic", "lanczos3")],
    "pool": lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (1, 2), "SAME"),
    "gradients": jax.grad(lambda x: jax.nn.relu(x).sum() + jax.nn.gelu(x).sum() + jax.nn.logsumexp(x)),
}  # fmt: skip
STATISTICS: Group = {
    "moments": lambda x: (x.mean(), x.var(0), x.std(1), jnp.cov(x), jnp.corrcoef(x)),
    "nan": lambda x: (jnp.nanmean(x.at[0, 0].set(jnp.nan)), jnp.nan_to_num(x / 0), jnp.nanmax(x)),
    "norm": lambda x: (jsp.stats.norm.cdf(x), jsp.stats.norm.logpdf(x), jsp.stats.norm.ppf(jax.nn.sigmoid(x))),
    "polynomials": lambda x: (jnp.polyval(x[0], x[1]), jnp.polyder(x[0])),
    "trapezoid": jnp.trapezoid,
    "ranks": lambda x: jsp.stats.rankdata(x),
    "map_coordinates": lambda x: jsp.ndimage.map_coordinates(x, [x[:2] + 1, x[1:] + 1], order=1),
    "spectrum": lambda x: jsp.signal.stft(x[0], nperseg=4),
    "detrend": lambda x: jsp.signal.detrend(x),
}
INTEGERS: Group = {
    "division": lambda i: (i // 3, i % 3, jnp.divmod(i, -4), jax.lax.div(i, i * 0 + 3), jax.lax.rem(i, i * 0 + 3)),
    "bits": lambda i: (i & 5, i | 3, i ^ 1, ~i, i << 2, i >> 1, jax.lax.clz(i), jax.lax.population_count(i)),
    "powers": lambda i: (i**3, jnp.power(2, jnp.abs(i)), jnp.sign(i), jnp.abs(i)),
    "sums": lambda i: (i.sum(), i.prod(), i.max(), (i > 0).any(), (i > 0).all(1), jnp.count_nonzero(i)),
    "gcd": lambda i: jnp.gcd(i, 6),
    "packed": lambda i: jnp.packbits(i > 0),
    "unpacked": lambda i: jnp.unpackbits(i.astype(jnp.uint8)),
    "views": lambda i: (jax.lax.bitcast_convert_type(i, jnp.float32), i.view(jnp.int16)),
    "floats": lambda i: (i / 2, jnp.sqrt(jnp.abs(i)), jnp.mean(i), i * 0.5),
}
TREES: Group = {
    "dict": lambda x: {"b": x, "a": {"c": x + 1}},
    "namedtuple": lambda x: Pair(x, None),
    "none": lambda x: (None, [x, (), {}]),
    "mapped": lambda x: jax.tree.map(lambda v: v * 2, {"p": Pair(x, [x, x])}),
    "same twice": lambda x: (x, x),
    "constants": lambda x: (1, 2.5, np.arange(3), True),
}
GROUPS: dict[str, tuple[Group, Any]] = {
    "sorting": (SORTING, X),
    "indexing": (INDEXING, X),
    "contractions": (CONTRACTIONS, X),
    "networks": (NETWORKS, X),
    "statistics": (STATISTICS, X),
    "integers": (INTEGERS, I),
    "trees": (TREES, X),
}


@pytest.mark.parametrize("name", GROUPS)
def test_functions(name: str) -> None:
    rows, x = GROUPS[name]
    agree(together(rows), x, ulps=32)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_functions_under_x64(name: str) -> None:
    rows, x = GROUPS[name]
    rows = {name: f for name, f in rows.items() if name not in SINGLE}
    with jax.enable_x64(True):
        agree(together(rows), x.astype(np.float64 if x.dtype == np.float32 else np.int64), ulps=32)


SINGLE = ("attention",)
"""What JAX computes in f32 on the way, whatever it is given: its softmax here."""

ELEMENTS = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int8", "uint16", "uint64", "bool",
            "complex64", "complex128", "float64")  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS)
def test_element_types(element: str) -> None:
    def f(x: Any) -> Any:
        wide = x.astype(jnp.float32) if x.dtype != jnp.bool_ else x
        moved = x.T.reshape(2, 6)[::-1], jnp.concatenate([x, x]), jnp.where(x == x[0], x, x[::-1]), x[1:, ::2]
        made = (
            x.astype(jnp.complex64),
            x.astype(jnp.bool_),
            x.astype(jnp.int32),
            jnp.zeros_like(x),
            jnp.float32(2) + wide,
        )
        if x.dtype == jnp.bool_:
            return moved, made, x ^ ~x
        return moved, made, x * x + x, x - 1, x == 1

    with jax.enable_x64(True):
        agree(f, np.abs(I).astype(jnp.dtype(element)))


@pytest.mark.parametrize("element", ["bfloat16", "float16"])
def test_a_network_in_a_narrow_type(element: str) -> None:
    def f(x: Any) -> Any:
        y = jax.nn.gelu(x @ x.T + 1)
        return jax.nn.softmax(y), y.mean(), y.sum(0), jnp.max(y, 1)

    agree(f, X.astype(jnp.dtype(element)), ulps=4)


def test_trees_as_arguments() -> None:
    def f(p: Any, q: Any) -> Any:
        return Pair(p["w"] + q[0], {"n": q[1], "s": p["b"].sum()})

    agree(f, {"w": X, "b": I}, (X, None))
    agree(jax.value_and_grad(lambda p: (p["w"] ** 2).sum() + p["v"].left.sum()), {"w": X, "v": Pair(X, None)})
