"""Control flow: scan, while, cond and switch, nested, batched, and differentiated."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .agreement import Function, agree

X = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
I = np.arange(3, dtype=np.int32)
C = np.array([1.0, -2.0], np.float32)


def _sums(x: Any, **options: Any) -> Any:
    return lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(2), x, **options)


def _fibonacci(n: Any) -> Any:
    return lax.fori_loop(0, n, lambda _, p: (p[1], p[0] + p[1]), (0, 1))[0]


def _collatz(n: Any) -> Any:
    return lax.while_loop(
        lambda s: s[0] > 1, lambda s: (jnp.where(s[0] % 2, 3 * s[0] + 1, s[0] // 2), s[1] + 1), (n, 0)
    )


def _branch(i: Any, x: Any, count: int) -> Any:
    return lax.switch(i, [lambda x, k=k: x * k + 1 for k in range(count)], x)


def _newton(x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda _, y: 0.5 * (y + x / y), jnp.ones_like(x))


@jax.custom_jvp
def _clipped(x: Any) -> Any:
    return jnp.clip(x, 0, 1)


_clipped.defjvp(lambda x, t: (_clipped(*x), 3 * t[0]))


@jax.custom_vjp
def _doubled(x: Any) -> Any:
    return 2 * x


_doubled.defvjp(lambda x: (_doubled(x), x), lambda x, g: (g * x,))

SCANS: dict[str, tuple[Function, Any]] = {
    "scan": (_sums, X),
    "reversed": (lambda x: _sums(x, reverse=True), X),
    "unrolled": (lambda x: _sums(x, unroll=2), X),
    "unrolled reversed": (lambda x: _sums(x, unroll=3, reverse=True), X),
    "of no steps": (_sums, X[:0]),
    "without carry": (lambda x: lax.scan(lambda _, row: (None, row**2), None, x), X),
    "without results": (lambda x: lax.scan(lambda c, row: (c @ C + row, None), jnp.zeros(2), x), X),
    "without input": (lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, length=4), X),
    "map": (lambda x: lax.map(jnp.cumsum, x), X),
    "map by blocks": (lambda x: lax.map(lambda r: r * 2, x, batch_size=2), X),
    "nested": (lambda x: lax.scan(lambda c, row: lax.scan(lambda d, v: (d * v + 1, d), c, row), 1.0, x), X),
    "of a pytree": (lambda x: lax.scan(lambda c, r: ({"a": c["a"] + r[0]}, (r[1], None)), {"a": 0.0}, (x[:, 0], x)), X),
    "int8 carry": (lambda i: lax.scan(lambda c, v: (c * v + 1, c), jnp.int8(3), i.astype(jnp.int8)), I),
    "bool carry": (lambda i: lax.scan(lambda c, v: (~c, c & (v > 0)), True, i), I),
    "complex carry": (lambda x: lax.scan(lambda c, v: (c * (v[0] + 1j), c), 1 + 0j, x), X),
    "bf16 carry": (lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(2, jnp.bfloat16), x.astype(jnp.bfloat16)), X),
    "key carry": (
        lambda i: lax.scan(lambda c, v: (jax.random.fold_in(c, v), jax.random.bits(c)), jax.random.key(0), i),
        I,
    ),
    "vmap": (jax.vmap(lambda r: lax.scan(lambda c, v: (c + v, c), 0.0, r)), X),
    "grad": (jax.grad(lambda x: _sums(x)[1].sum()), X),
    "grad reversed": (jax.grad(lambda x: jnp.sin(_sums(x, reverse=True)[1]).sum()), X),
    "checkpointed": (jax.grad(lambda x: lax.scan(jax.checkpoint(lambda c, r: (jnp.sin(c) + r, c)), C, x)[1].sum()), X),
    "associative": (lambda x: lax.associative_scan(jnp.multiply, x + 1), X),
    "associative reversed": (lambda x: lax.associative_scan(jnp.maximum, x, reverse=True, axis=1), X),
}
LOOPS: dict[str, tuple[Function, Any]] = {
    "fori": (_fibonacci, np.int32(10)),
    "fori of no steps": (_fibonacci, np.int32(-3)),
    "while": (_collatz, np.int32(27)),
    "while of a batch": (jax.vmap(_collatz), I + 1),
    "carry of a batch only": (jax.vmap(lambda v: lax.fori_loop(0, 4, lambda i, c: c * v + i, 1)), I),
    "bounds of a batch": (jax.vmap(_fibonacci), I * 3),
    "captured": (
        lambda x: lax.while_loop(lambda y: y.sum() < x.sum() * C.size, lambda y: y + jnp.abs(x @ C), x[:, 0]),
        X,
    ),
    "nested": (lambda x: lax.fori_loop(0, 3, lambda i, y: lax.fori_loop(0, i, lambda j, z: z * 2 + j, y), x), X),
    "jvp": (lambda x: jax.jvp(_newton, (x + 1,), (x,)), X),
    "grad": (jax.grad(lambda x: _newton(x + 1).sum()), X),
}
BRANCHES: dict[str, tuple[Function, Any]] = {
    "cond": (lambda x: lax.cond(x.sum() > 3, jnp.sin, lambda y: y + C, x), X),
    "cond of nothing": (lambda x: lax.cond(x[0, 0] > 3, lambda: 1, lambda: 2), X),
    "cond without results": (lambda x: (lax.cond(x[0, 0] > 3, lambda: None, lambda: None), x), X),
    **{
        f"switch of {n}": (lambda i, n=n: [_branch(i[0] + k, 2.0, n) for k in (-4, 0, 1, 3, 9)], I) for n in range(1, 6)
    },
    "out of range": (lambda i: [lax.cond_p.bind(i[0] + k, *[], branches=_CONSTANTS) for k in (-7, 0, 1, 2, 50)], I),
    "of a batch": (jax.vmap(lambda r: lax.cond(r[0] > 0.6, jnp.sin, jnp.cos, r)), X),
    "switch of a batch": (jax.vmap(lambda i: _branch(i, 2.0, 3)), I),
    "batch in the branches": (jax.vmap(lambda r: lax.cond(C[0] > 0, jnp.sin, jnp.cos, r)), X),
    "nested": (lambda x: lax.cond(x[0, 1] > 0, lambda: lax.cond(x[1, 1] > 9, lambda: x, lambda: x * 2), lambda: -x), X),
    "in a scan": (lambda i: lax.scan(lambda c, v: (lax.cond(v > 1, lambda: c * 3, lambda: c + 1), c), 1, i), I),
    "in a loop": (
        lambda i: lax.fori_loop(0, 5, lambda k, c: lax.switch(k % 3, [lambda: c + 1, lambda: c * i, lambda: -c]), i),
        I,
    ),
    "grad": (jax.grad(lambda x: lax.cond(x.sum() > 3, jnp.sin, jnp.cos, x).sum()), X),
    "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), X),
    "platform of a batch": (jax.vmap(lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos)), X),
}
DERIVATIVES: dict[str, tuple[Function, Any]] = {
    "custom_jvp": (lambda x: (_clipped(x), jax.jvp(_clipped, (x,), (x,))), X),
    "custom_jvp batched": (jax.vmap(jax.grad(lambda x: _clipped(x).sum())), X),
    "custom_vjp": (lambda x: (_doubled(x), jax.grad(lambda y: _doubled(y).sum())(x)), X),
    "custom_vjp batched": (jax.vmap(jax.grad(lambda x: _doubled(x).sum())), X),
    "jacfwd": (jax.jacfwd(lambda x: jnp.sin(x @ C) ** 2), X),
    "jacrev": (jax.jacrev(lambda x: jnp.tanh(x @ C)), X),
    "hessian": (jax.hessian(lambda x: (x**3).sum() + jnp.prod(x + 1)), X[0]),
    "linearize": (lambda x: jax.linearize(jnp.sin, x)[1](x), X),
    "vjp of nothing": (jax.grad(lambda x: jnp.floor(x).sum() + lax.stop_gradient(x).sum()), X),
    "integers' tangents": (lambda i: jax.jvp(lambda a, b: a * b, (2.0, i), (1.0, np.zeros(3, jax.dtypes.float0))), I),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), X),
    "nested jit": (lambda x: jax.jit(lambda y: jax.jit(jnp.sin)(y) + y)(x), X),
}
_CONSTANTS = tuple(jax.make_jaxpr(lambda k=k: k)() for k in (10, 20, 30))
KINDS = {"scan": SCANS, "loop": LOOPS, "branch": BRANCHES, "derivative": DERIVATIVES}
ROWS = {f"{kind}: {name}": row for kind, rows in KINDS.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", ROWS)
def test_control_flow(name: str) -> None:
    function, argument = ROWS[name]
    agree(function, argument)
