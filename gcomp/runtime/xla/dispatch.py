"""Calling compiled functions as fast as JAX calls its own: through the very dispatcher of `jax.jit`, in C++.

It flattens the arguments, looks their types up, and runs the executable that `miss` gave for these types. Only where
there is none does Python run: `miss` computes the results, and may say how to do without it the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from gcomp.runtime.xla.client import Executable, jaxlib

_pxla: Any = import_module("jax._src.interpreters.pxla")
_tree_util: Any = import_module("jax._src.tree_util")

CAPACITY = 1024
"""How many types of arguments one function keeps executables for."""

Miss = Callable[..., tuple[Any, "FastPath | None"]]
"""Computes a call's results; says how calls of the same types are run, if the dispatcher can do that."""


class FastPath:
    """What the dispatcher needs to run an executable whose parameters are the flat arguments, in order."""

    def __init__(self, executable: Executable, out_tree: Any, avals: Sequence[Any], arguments: int) -> None:
        sharding = executable.sharding
        self.data: Any = _pxla.MeshExecutableFastpathData(
            executable.loaded,
            out_tree,
            [sharding] * arguments,
            [sharding] * len(avals),
            list(avals),
            [False] * len(avals),
            [True] * arguments,
            [None] * arguments,
            [],
        )


def list_structure(length: int) -> Any:
    """The structure of results that are a list."""
    return _tree_util.tree_structure([0] * length)


def dispatcher(
    function: Callable[..., Any], miss: Miss, static_argnums: Sequence[int], static_argnames: Sequence[str]
) -> Callable[..., Any]:
    """A callable with the signature of `function`. Under `jax.disable_jit` it calls the function itself."""

    def missed(*args: Any, **keywords: Any) -> tuple[Any, Any, bool]:
        results, path = miss(*args, **keywords)
        return results, None if path is None else path.data, False

    return jaxlib.pjit(
        getattr(function, "__name__", "function"),
        function,
        missed,
        tuple(static_argnums),
        tuple(static_argnames),
        object(),
        _tree_util.dispatch_registry,
        _pxla.cc_shard_arg,
        jaxlib.PjitFunctionCache(capacity=CAPACITY),
    )
