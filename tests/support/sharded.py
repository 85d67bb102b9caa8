"""Functions of JAX for a mesh of eight devices, which a process that has them runs (`tests.support.devices`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Array = Any
BOTH = ("data", "model")


def mesh(order: tuple[int, ...] = ()) -> Mesh:
    """Eight devices, four along `data` and two along `model`, in an order of their own if one is given."""
    devices = np.array([jax.devices()[i] for i in order or range(8)]).reshape(4, 2)
    return Mesh(devices, BOTH, axis_types=(AxisType.Auto, AxisType.Auto))


def mapped(function: Any, ins: Any, outs: Any, axes: tuple[str, ...] = BOTH, check: bool = True) -> Any:
    """A function for each device, on the mesh."""

    def run(*args: Array) -> Any:
        options = {"mesh": mesh(), "in_specs": ins, "out_specs": outs, "axis_names": set(axes), "check_vma": check}
        return jax.shard_map(function, **options)(*args)

    return run


def placed(x: Array, *spec: Any) -> Array:
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*spec)))


def nested(x: Array, w: Array) -> Array:
    """A computation along one axis inside of one along the other."""

    def inner(y: Array, v: Array) -> Array:
        return lax.psum(jnp.sin(y @ v), "model")

    def outer(y: Array, v: Array) -> Array:
        here = jax.sharding.get_abstract_mesh()
        along = jax.shard_map(
            inner, mesh=here, in_specs=(P(None, "model"), P("model")), out_specs=P(), axis_names={"model"}
        )
        return along(y, v) + lax.pmean(y, "data")

    return mapped(outer, (P("data"), P()), P("data"), ("data",))(x, w)


def looped(x: Array, w: Array) -> Array:
    """A ring: in each round, every device passes on what it has."""

    def each(y: Array, v: Array) -> Array:
        def round(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            total, passed = state
            return total + jnp.tanh(passed @ v), lax.ppermute(passed, "data", [(k, (k + 1) % 4) for k in range(4)])

        return lax.fori_loop(0, 3, round, (y * 0, y))[0]

    return mapped(each, (P(BOTH), P()), P(BOTH), check=False)(x, w)


def constrained(x: Array, w: Array) -> Array:
    """No manual computation: values that lie where they are told."""
    h = placed(jnp.tanh(x @ w), "data", P.UNCONSTRAINED)
    return placed(h @ w.T, "data", "model") * 2 + placed(x.sum(1, keepdims=True), BOTH)


@dataclass(frozen=True)
class Case:
    """A function of two f32 arrays of 8x8, and whether it has a derivative."""

    function: Callable[[Array, Array], Any]
    differentiable: bool = True


CASES: dict[str, Case] = {
    "sum": Case(mapped(lambda x, w: lax.psum(jnp.sin(x @ w), "data"), (P("data"), P()), P())),
    "sum of an axis": Case(mapped(lambda x, w: lax.psum(jnp.sin(x @ w), "data"), (P("data"), P()), P(), ("data",))),
    "sum of a product": Case(
        mapped(lambda x, w: lax.psum(x @ w, "model"), (P("data", "model"), P("model")), P("data"))
    ),
    "mean of all": Case(mapped(lambda x, w: lax.pmean((x @ w) ** 2, BOTH), (P(BOTH), P()), P())),
    "largest": Case(mapped(lambda x, w: lax.pmax(x * w, BOTH), (P("data"), P("data")), P(), BOTH), False),
    "least": Case(mapped(lambda x, w: lax.pmin(x * w, "model"), (P("model"), P("model")), P(), BOTH, False), False),
    "gathered": Case(
        mapped(
            lambda x, w: jnp.sin(lax.all_gather(x, "model", axis=1, tiled=True) @ w),
            (P("data", "model"), P()), P("data"), check=False,
        )
    ),
    "gathered as one more dimension": Case(
        mapped(lambda x, w: lax.all_gather(x * w, "data"), (P("data"), P("data")), P(None, None), check=False)
    ),
    "scattered": Case(
        mapped(
            lambda x, w: jnp.sin(lax.psum_scatter(x @ w, "model", scatter_dimension=1, tiled=True)),
            (P("data", "model"), P("model")), P("data", "model"),
        )
    ),
    "exchanged": Case(
        mapped(
            lambda x, w: jnp.sin(lax.all_to_all(x, "model", 0, 1, tiled=True)) + w.sum(),
            (P("data", "model"), P()), P(BOTH),
        )
    ),
    "exchanged in place": Case(
        mapped(
            lambda x, w: lax.all_to_all(x, "model", 1, 1, tiled=True) * w, (P("data", "model"), P("data", "model")),
            P("data", "model"),
        )
    ),
    "permuted": Case(
        mapped(
            lambda x, w: jnp.sin(lax.ppermute(x, "data", [(0, 1), (1, 2)])) * x + w,
            (P("data", "model"), P("data", "model")), P("data", "model"),
        )
    ),
    "numbered": Case(
        mapped(
            lambda x, w: x * lax.axis_index("data") + w * lax.axis_index("model") + lax.axis_index(BOTH),
            (P("data"), P("data")), P(BOTH), check=False,
        )
    ),
    "nested": Case(nested, False),  # JAX's own gradient of it does not lower
    "looped": Case(looped),
    "constrained": Case(constrained),
    "reduced in integers": Case(
        mapped(lambda x, w: lax.psum((x * 8).astype(jnp.int32), BOTH), (P(BOTH), P()), P()), False
    ),
}  # fmt: skip


def operands() -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(7)
    return tuple(rng.normal(size=(8, 8)).astype(np.float32) for _ in range(4))


def evaluated(name: str) -> dict[str, Any]:
    """By JAX, on the devices: the program's text, its results, and products with its derivative forward and back."""
    function, (x, w, tx, tw) = CASES[name].function, operands()
    told: dict[str, Any] = {"text": jax.jit(function, keep_unused=True).lower(x, w).as_text()}
    result = jax.jit(function)(x, w)
    told["result"] = np.asarray(result)
    if CASES[name].differentiable:
        cotangent = np.random.default_rng(9).normal(size=result.shape).astype(np.float32)
        told["cotangent"] = cotangent
        told["back"] = [np.asarray(g) for g in jax.jit(lambda x, w: jax.vjp(function, x, w)[1](cotangent))(x, w)]
        told["forward"] = np.asarray(jax.jit(lambda *v: jax.jvp(function, v[:2], v[2:])[1])(x, w, tx, tw))
    return told
