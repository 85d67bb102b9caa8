"""A function's gradient and tangent by gcomp, against JAX's, in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gcomp.gradients import grad, jvp
from gcomp.reference.interpreter import interpret
from gcomp.sources import import_model

Array = np.ndarray[Any, Any]


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """One real number of all that a function returns, in which each element has a weight of its own."""

    def loss(*args: Any) -> Any:
        total = jnp.zeros((), jnp.float64)
        for k, x in enumerate(jax.tree.leaves(function(*args))):
            angles = jnp.arange(x.size, dtype=jnp.float64).reshape(x.shape) + k
            if jnp.iscomplexobj(x):
                total = total + jnp.sum(jnp.real(x * jnp.exp(1j * angles)))
            elif jnp.issubdtype(x.dtype, jnp.floating):
                total = total + jnp.sum(x * jnp.cos(angles))
        return total

    return loss


Run = Callable[[Callable[..., Any], Sequence[Array]], Sequence[Any]]
"""Computes a function of arrays: the leaves of its results."""


def by_xla(function: Callable[..., Any], args: Sequence[Array]) -> Sequence[Any]:
    """As JAX computes it, op by op: it takes a second, most of which is spent in compilers."""
    return jax.tree.leaves(function(*args))


def by_reference(function: Callable[..., Any], args: Sequence[Array]) -> Sequence[Any]:
    """What JAX traces, gradients by its own rules included, computed by the reference: 30 times as fast."""
    return interpret(import_model(function, *args), args)


def compare(
    function: Callable[..., Any], args: Sequence[Array], *, rtol: float = 1e-7, atol: float = 1e-9, run: Run = by_xla
) -> None:
    """Hold reverse and forward mode against JAX's. AssertionError where they differ."""
    loss, places = loss_of(function), tuple(range(len(args)))
    program = import_model(loss, *args)
    numbers = np.random.default_rng(1)
    directions = [_like(numbers, x) for x in args]
    expected = run(jax.grad(loss, argnums=places), args)
    for x, y in zip(interpret(grad(program), args), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)

    def along(*values: Any) -> Any:
        return jax.jvp(loss, values[: len(args)], values[len(args) :])[1]

    tangent = interpret(jvp(program), [*args, *directions])[-1]
    np.testing.assert_allclose(tangent, run(along, [*args, *directions])[0], rtol=rtol, atol=atol)


def compare_second(function: Callable[..., Any], args: Sequence[Array]) -> None:
    """The gradient of a sum over the gradient, which differentiates what reverse mode has built."""
    loss, places = loss_of(function), tuple(range(len(args)))
    first = grad(import_model(loss, *args))
    names = [port.name for port in first.inputs()]
    total: list[Array] | None = None
    for k, port in enumerate(first.outputs()):
        second = grad(first, of=port.name, wrt=names)
        angles = np.arange(int(np.prod(np.asarray(args[k]).shape))).reshape(args[k].shape)
        weight = np.exp(1j * angles) if np.iscomplexobj(args[k]) else np.cos(angles)
        asks = len(second.inputs()) > len(args)
        found = interpret(second, [*args, *([weight] if asks else [])])
        found = found if asks else [x * weight for x in found]
        total = found if total is None else [x + y for x, y in zip(total, found, strict=True)]

    def inner(*values: Any) -> Any:
        parts = jax.grad(loss, argnums=places)(*values)
        angles = [jnp.arange(x.size).reshape(x.shape) for x in values]
        weights = [jnp.exp(1j * a) if jnp.iscomplexobj(x) else jnp.cos(a) for x, a in zip(values, angles, strict=True)]
        return sum(jnp.real(jnp.sum(x * w)) for x, w in zip(parts, weights, strict=True))

    expected: Sequence[Any] = jax.grad(inner, argnums=places)(*args)
    for x, y in zip(total or [], expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8)


def _like(numbers: np.random.Generator, x: Array) -> Array:
    drawn = numbers.standard_normal(x.shape)
    return np.asarray(drawn + 1j * numbers.standard_normal(x.shape) if np.iscomplexobj(x) else drawn)
