"""Models for the search: a block of a transformer, and its gradients, traced from JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline

OPEN = "infer-shapes,inline,inline-composites,expand-chlo,canonicalize,cse,fold-constants,canonicalize,cse,dce"


def _norm(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def _layer(x: Any, p: dict[str, Any], heads: int) -> Any:
    batch, length, width = x.shape
    h = _norm(x)
    q, k, v = ((h @ p[w]).reshape(batch, length, heads, width // heads) for w in ("q", "k", "v"))
    scores = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", q, k) * 0.3)
    x = x + jnp.einsum("bhst,bthd->bshd", scores, v).reshape(batch, length, width) @ p["o"]
    return x + jax.nn.relu(_norm(x) @ p["up"]) @ p["down"]


def transformer(
    layers: int, batch: int = 8, length: int = 16, width: int = 32, heads: int = 4, *, gradients: bool = False
) -> Program:
    """A transformer as a program: for each layer the arguments down, k, o, q, up, v, then the input."""
    wide = 4 * width
    one = {**{w: jnp.zeros((width, width)) for w in "qkvo"}, "up": jnp.zeros((width, wide)),
           "down": jnp.zeros((wide, width))}  # fmt: skip

    def forward(weights: Any, x: Any) -> Any:
        for p in weights:
            x = _layer(x, p, heads)
        return x

    def loss(weights: Any, x: Any) -> Any:
        return (forward(weights, x) ** 2).sum()

    function = jax.value_and_grad(loss) if gradients else forward
    exported = jax.export.export(jax.jit(function))([one] * layers, jnp.zeros((batch, length, width)))
    program = Program.parse(exported.mlir_module())
    PassManager(parse_pipeline(OPEN)).run(program)
    return program
