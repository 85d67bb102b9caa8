"""The arrays of a call: pytrees flattened, and keys as the integers that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcomp.frontends.jaxpr.avals import is_key
from gcomp.frontends.jaxpr.jax_api import as_weak, jax, tree_util


def flat(tree: Any) -> list[Any]:
    """The leaves of a pytree."""
    return tree_util.tree_leaves(tree)


def is_traced(leaves: Sequence[Any]) -> bool:
    """Whether JAX is tracing through the call: for a gradient, a batch, or another function's jaxpr."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def arrays(leaves: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """The leaves as jax arrays of their traced types; a key's integers."""
    return [
        jax.random.key_data(leaf) if is_key(aval.dtype) else jax.numpy.asarray(leaf, aval.dtype)
        for leaf, aval in zip(leaves, avals, strict=True)
    ]


def results(tree: Any, values: Sequence[Any], avals: Sequence[Any]) -> Any:
    """The results in their pytree, with all that their types say."""
    return tree_util.tree_unflatten(tree, [_result(value, aval) for value, aval in zip(values, avals, strict=True)])


def _result(value: Any, aval: Any) -> Any:
    if is_key(aval.dtype):
        return jax.random.wrap_key_data(value, impl=aval.dtype._impl.name)
    return as_weak(value) if aval.weak_type else value


def has_keys(avals: Sequence[Any]) -> bool:
    """Whether any of the types is that of keys."""
    return any(is_key(aval.dtype) for aval in avals)
