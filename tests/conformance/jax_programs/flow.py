"""Control flow, scans, and derivatives of all kinds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.ode import odeint
from jax.scipy.sparse.linalg import cg

from tests.conformance.jax_programs.table import integers, normal, positive_definite, program


@program(normal(5) ** 2 + 1)
def while_loop(a: Any) -> Any:
    """Square roots by Newton's method, until they are exact enough"""

    def step(state: Any) -> Any:
        x, count = state
        return 0.5 * (x + a / x), count + 1

    return lax.while_loop(lambda s: (jnp.abs(s[0] ** 2 - a).max() > 1e-4) & (s[1] < 50), step, (a, 0))


@program(normal(8) ** 2 + 1)
def batched_while(a: Any) -> Any:
    """A while loop under vmap: each element has its own number of steps"""

    def halve(x):
        return lax.while_loop(lambda s: s[0] > 0.1, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))

    return jax.vmap(halve)(a)


@program(normal(4), normal(4, 4))
def cond(x: Any, m: Any) -> Any:
    """Branches by a condition, in a batch too, and their gradients"""

    def branch(p, v):
        return lax.cond(p, lambda v: jnp.sin(v) @ m, lambda v: v * 2.0, v)

    batch = jax.vmap(branch)(x > 0, jnp.stack([x] * 4))
    return branch(x.sum() > 0, x), batch, jax.grad(lambda v: branch(v.sum() < 0, v).sum())(x)


@program(normal(4), integers(-3, 9, 6))
def switch(x: Any, index: Any) -> Any:
    """Branches by an index, which may be out of range"""
    branches = [jnp.sin, jnp.cos, lambda v: v[::-1], lambda v: v.at[0].set(9.0)]
    return lax.switch(index[0], branches, x), jax.vmap(lambda i: lax.switch(i, branches, x))(index)


@program(normal(6, 6), integers(4, 5))
def fori_loop(m: Any, count: Any) -> Any:
    """Loops of fixed and of given lengths"""
    power = lax.fori_loop(0, 5, lambda i, v: v @ m / jnp.linalg.norm(v @ m) + i, jnp.ones(6))
    return power, lax.fori_loop(1, count, lambda i, v: v.at[i].set(v[i - 1] * 2), jnp.ones(6))


@program(normal(8, 3))
def scans(xs: Any) -> Any:
    """Scans: reversed, unrolled, of pytrees, inside of each other"""

    def inner(total: Any, x: Any) -> Any:
        return lax.scan(lambda t, v: (t + v, t * v), total, x)

    def step(c, x):
        return ({"sum": c["sum"] + x["row"], "n": c["n"] + 1}, (c["sum"], x["index"] * c["n"]))

    tree = {"row": xs, "index": jnp.arange(8)}
    return (
        lax.scan(step, {"sum": jnp.zeros(3), "n": 0}, tree, reverse=True),
        lax.scan(lambda c, x: (c * 0.5 + x, c), jnp.zeros(3), xs, unroll=3),
        lax.scan(inner, jnp.float32(1), xs),
    )


@program(normal(16, 4), normal(16, 4, scale=0.5))
def associative_scan(a: Any, b: Any) -> Any:
    """A linear recurrence and a running maximum, in parallel"""

    def combine(left, right):
        return (left[0] * right[0], right[0] * left[1] + right[1])

    gates = jax.nn.sigmoid(a)
    return lax.associative_scan(combine, (gates, b)), lax.associative_scan(jnp.maximum, a, reverse=True, axis=1)


@program(normal(12, 4), ulps=64)
def checkpointed_gradient(xs: Any) -> Any:
    """Gradients through a scan of checkpointed steps with branches"""

    @jax.checkpoint
    def step(c: Any, x: Any) -> Any:
        c = lax.cond(x.sum() > 0, lambda v: jnp.tanh(v + x), lambda v: v * x, c)
        return c, jnp.sum(c**2)

    return jax.grad(lambda xs: lax.scan(step, jnp.ones(4), xs)[1].sum())(xs)


@jax.custom_jvp
def log1pexp(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return log1pexp(*primals), tangents[0] * (1 - 1 / (1 + jnp.exp(primals[0])))


@program(normal(3, 5))
def custom_jvp(x: Any) -> Any:
    """A function that defines its own tangents, forwards, backwards and in a batch"""
    return log1pexp(x), jax.jvp(log1pexp, (x,), (x * 2,)), jax.vmap(jax.vmap(jax.grad(log1pexp)))(x)


@jax.custom_vjp
def clip_gradient(x: Any) -> Any:
    return x * 2


clip_gradient.defvjp(lambda x: (x * 2, x), lambda saved, g: (jnp.clip(g * saved, -0.5, 0.5),))


@program(normal(3, 5))
def custom_vjp(x: Any) -> Any:
    """A function that defines its own gradients"""
    return clip_gradient(x), jax.grad(lambda v: (clip_gradient(v) ** 2).sum())(x)


@program(normal(5), normal(5, 5), ulps=64)
def derivatives(x: Any, m: Any) -> Any:
    """Jacobians, a Hessian, products with them, and a linearization"""

    def f(v):
        return jnp.tanh(m @ v) * v

    def g(v):
        return jnp.sum(f(v) ** 2)

    _, linear = jax.linearize(f, x)
    _, pullback = jax.vjp(f, x)
    return jax.jacfwd(f)(x), jax.jacrev(f)(x), jax.hessian(g)(x), linear(x), pullback(x)


@program(normal(4, 6), normal(6, 3))
def batches(x: Any, w: Any) -> Any:
    """vmap over axes of several arguments, and gradients for each example"""
    example = jax.vmap(jax.grad(lambda w, row: jnp.sum(jnp.sin(row @ w))), (None, 0))(w, x)
    outer = jax.vmap(jax.vmap(lambda a, b: a * jnp.sum(b), (0, None)), (None, 1), out_axes=1)(x, w)
    return example, outer, jax.vmap(lambda i: lax.dynamic_slice(x, (i, 1), (2, 3)))(jnp.arange(3))


@program(positive_definite(6), normal(6), ulps=4096)
def implicit_derivatives(a: Any, b: Any) -> Any:
    """Conjugate gradients, differentiated by `custom_linear_solve`"""

    def solve(a, b):
        return cg(lambda v: a @ v, b, tol=1e-6)[0]

    return solve(a, b), jax.grad(lambda b: solve(a, b).sum())(b)


@program(normal(2), ulps=4096)
def differential_equation(start: Any) -> Any:
    """`odeint` of a pendulum, and gradients by its adjoint"""

    def swing(y, t, k):
        return jnp.stack([y[1], -k * jnp.sin(y[0])])

    def solve(y, k):
        return odeint(swing, y, jnp.linspace(0.0, 1.0, 5), k)

    return solve(start, 2.0), jax.grad(lambda k: solve(start, k)[-1, 0])(2.0)
