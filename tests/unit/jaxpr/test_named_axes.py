"""Collectives over axes that `vmap` names are reductions and moves; what is for devices is refused with its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import gcomp
from gcomp.errors import UnsupportedError

from .agreement import Group, agree, together

X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 4, 2)
INTEGERS = np.arange(16, dtype=np.int32).reshape(4, 4)

COLLECTIVES: Group = {
    "psum": lambda x: lax.psum(x, "i"),
    "psum of a tree": lambda x: lax.psum({"a": x, "b": 2}, "i"),
    "pmean": lambda x: lax.pmean(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "all_gather tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all tiled": lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    "axis_index": lambda x: x + lax.axis_index("i"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "psum_scatter tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "in a scan": lambda x: lax.scan(lambda c, y: (c + lax.psum(y, "i"), lax.pmax(c, "i")), x[0], x),
    "in a jit": lambda x: jax.jit(lambda y: lax.psum(y, "i") + lax.axis_index("i"))(x),
    "gradient": lambda x: jax.grad(lambda y: jnp.sum(jnp.sin(y) * lax.pmean(y, "i")))(x),
}


def test_collectives_over_a_named_axis() -> None:
    agree(jax.vmap(together(COLLECTIVES), axis_name="i"), X)
    agree(jax.vmap(together(COLLECTIVES), in_axes=1, out_axes=0, axis_name="i"), X)


def test_integers_and_narrow_floats() -> None:
    named = {name: COLLECTIVES[name] for name in ("psum", "pmax", "pmin", "all_gather", "psum_scatter")}
    for x in (INTEGERS, INTEGERS.astype(np.uint8), jnp.asarray(INTEGERS, jnp.bfloat16), INTEGERS > 5):
        agree(jax.vmap(together({n: f for n, f in named.items() if x.dtype != bool or n != "psum_scatter"}),
                       axis_name="i"), x)  # fmt: skip


def test_nested_axes() -> None:
    def inner(x: Any) -> Any:
        both = lax.psum(x, ("i", "j")), lax.pmean(x, "j"), lax.pmax(x, ("j", "i"))
        return (
            *both,
            lax.psum(lax.axis_index("j") * x, "i"),
            lax.all_gather(lax.ppermute(x, "j", [(0, 1), (1, 0)]), "i"),
        )

    for options in ({}, {"in_axes": 1}):
        agree(jax.vmap(jax.vmap(inner, axis_name="i"), axis_name="j", **options), X.reshape(2, 2, 8))


def test_batch_norm_of_equinox() -> None:
    import equinox as eqx

    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(input_size=4, axis_name="batch", mode="batch")

    def step(x: Any, state: Any) -> Any:
        normalized, after = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
        return normalized, jax.tree.leaves(after)

    agree(lambda x: step(x, state), np.linspace(-1, 3, 24, dtype=np.float32).reshape(6, 4))


# ---- what is for several devices ------------------------------------------------------------------------------------

MESH = Mesh(np.array(jax.devices()[:1]), ("d",))
SHARDING = NamedSharding(MESH, PartitionSpec("d"))


def summed(x: Any) -> Any:
    return lax.psum(x, "d")


SHARDED = jax.shard_map(summed, mesh=MESH, in_specs=PartitionSpec("d"), out_specs=PartitionSpec())


@pytest.mark.parametrize(
    "function",
    [
        SHARDED,
        jax.pmap(summed, axis_name="d"),
        lambda x: lax.with_sharding_constraint(x, SHARDING),
        lambda x: jax.device_put(x, SHARDING) * 2,
        lambda x: jax.jit(summed_of, in_shardings=SHARDING)(x),
        lambda x: jax.jit(summed_of, out_shardings=SHARDING)(x),
    ],
)
def test_targets_of_one_device_refuse_what_is_for_more(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="several devices are not run on the target cpu"):
        gcomp.jit(function)(np.ones((1, 3), np.float32))


def summed_of(x: Any) -> Any:
    return jnp.sum(x, 1)


def test_placing_on_the_device_itself_is_not_refused() -> None:
    agree(lambda x: jax.device_put(jax.device_put(x), jax.devices()[0]) + 1, X)


def test_shardings_that_jax_writes_itself_are_not_refused() -> None:
    """A Hessian has them, on a mesh without axes."""
    agree(jax.hessian(lambda x: jnp.sum(jnp.sin(x))), X)


@pytest.mark.parametrize("option", ["device", "backend", "compiler_options"])
def test_options_of_jax_jit_that_gcomp_has_not_are_refused(option: str) -> None:
    with pytest.raises(UnsupportedError, match=option) as caught:
        gcomp.jit(summed_of, **{option: None})
    assert __file__ in str(caught.value.where)
    with pytest.raises(TypeError, match="unexpected keyword argument 'in_sharding'"):
        gcomp.jit(in_sharding=SHARDING)
