"""Gradients of programs with symbolic sizes: made once, they are JAX's at every size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from gcomp.gradients import grad, jvp
from gcomp.reference.interpreter import interpret
from gcomp.sources import import_model

Shape = tuple[int | str, ...]


def _scan(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, a: (jnp.tanh(c @ w + a), c), jnp.zeros(4), x, reverse=True)


CASES: dict[str, tuple[Callable[..., Any], tuple[Shape, ...]]] = {
    "norm": (lambda x: (x - x.mean(0)) / x.std(0), (("n", 3),)),
    "broadcast": (lambda x, v: x * v[None, :] + v.sum(), (("n", "m"), ("m",))),
    "views": (lambda x: jnp.concatenate([x, x[1:] * 2, jnp.pad(x[::2], ((1, 2), (0, 0)))], 0), (("n", 3),)),
    "scan": (_scan, (("n", 4), (4, 4))),
    "product": (lambda x: x.prod(0), (("n", 3),)),
    "running product": (lambda x: jnp.cumprod(x, 0), (("n", 3),)),
    "sort": (lambda x: jnp.sort(x, 0), (("n", 3),)),
    "convolution": (lambda x, k: lax.conv_general_dilated(x, k, (2,), [(1, 1)]), ((2, 3, "n"), (4, 3, 3))),
    "pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"), (("n",),)),
    "gather": (lambda x: x[jnp.array([0, 2, 2])], (("n", 3),)),
}


@pytest.fixture(autouse=True)
def _in_f64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_serves_all_sizes(name: str) -> None:
    function, shapes = CASES[name]

    def loss(*args: Any) -> Any:
        return sum((jnp.sum(jnp.sin(x) * x) for x in jax.tree.leaves(function(*args))), 0.0)

    symbols = dict(zip("nm", export.symbolic_shape("n, m"), strict=True))
    specs = [jax.ShapeDtypeStruct(tuple(symbols.get(str(d), d) for d in shape), jnp.float64) for shape in shapes]
    program = import_model(loss, *specs)
    back, forth = grad(program), jvp(program)
    numbers = np.random.default_rng(0)
    for sizes in ({"n": 5, "m": 3}, {"n": 4, "m": 1}):
        concrete = [tuple(sizes.get(str(d), d) for d in shape) for shape in shapes]
        args, directions = ([np.asarray(numbers.standard_normal(s)) for s in concrete] for _ in range(2))
        expected, tangent = (
            jax.grad(loss, argnums=tuple(range(len(args)))),
            jax.jvp(loss, tuple(args), tuple(directions)),
        )
        for x, y in zip(interpret(back, args), expected(*args), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(interpret(forth, [*args, *directions])[-1], tangent[1], rtol=1e-7, atol=1e-9)
