"""Training steps as programs: loss, gradients and the optimizer's update, traced in JAX, parameters given away.

Those of the trainings of `benchmarks.training`, and of the benchmark models, which learn by stochastic gradient descent
with momentum that the sum of squares of what they return be small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.learning import in_jax
from benchmarks.learning.data import batches
from benchmarks.workloads import WORKLOADS
from gcomp.ir.program import Program
from gcomp.sources import import_model

Tree = Any


def learning(network: str, optimizer: str = "AdamW") -> Program:
    """The step of a training of `benchmarks.training`."""
    make, loss, prepare = in_jax.NETWORKS[network]
    rule = in_jax.OPTIMIZERS[optimizer]()

    def step(params: Tree, state: Tree, moments: Tree, x: Any, y: Any) -> Any:
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, x, y)
        updates, moments = rule.update(grads, moments, params)
        return jax.tree.map(lambda p, u: p + u, params, updates), state, moments, value

    params, state = jax.tree.map(jnp.asarray, make(np.random.default_rng(0)))
    images, labels = next(iter(batches(1, 0)))
    return _given_away(step, 3, params, state, rule.init(params), jnp.asarray(prepare(images)), jnp.asarray(labels))


def descent(name: str) -> Program:
    """A step of a benchmark model's parameters in floating point."""
    workload = WORKLOADS[name]
    apply, params = workload.jax_fn()
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, params))
    inputs = [jnp.asarray(x) for x in workload.inputs(np.random.default_rng(0)).values()]

    def loss(leaves: list[Any], inputs: list[Any]) -> Any:
        named = dict(zip((given.name for given in workload.declared), inputs, strict=True))
        return sum(jnp.sum(jnp.square(y)) for y in apply(jax.tree.unflatten(structure, leaves), **named))

    def step(leaves: list[Any], moments: list[Any], inputs: list[Any]) -> Any:
        value, grads = jax.value_and_grad(loss)(leaves, inputs)
        moments = [0.9 * m + g for m, g in zip(moments, grads, strict=True)]
        return [p - 1e-3 * m for p, m in zip(leaves, moments, strict=True)], moments, value

    return _given_away(step, 2, leaves, [jnp.zeros_like(x) for x in leaves], inputs)


def _given_away(step: Callable[..., Any], count: int, *args: Any) -> Program:
    """The program of a function whose first arguments, so many, are donated."""
    program = import_model(step, *args)
    number = len(jax.tree.leaves(args[:count]))
    program.donate({port.name for port in program.inputs()[:number]})
    return program


STEPS: Mapping[str, Callable[[], Program]] = {
    "digits MLP step": partial(learning, "MLP"),
    "digits ResNet step": partial(learning, "ResNet"),
    "digits transformer step": partial(learning, "transformer"),
    **{f"{name} step": partial(descent, name) for name in ("mlp", "lstm", "llama", "unet", "mobilenetv2", "resnet50")},
}
"""Name -> what makes the program."""
