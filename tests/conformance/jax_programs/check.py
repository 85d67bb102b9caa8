"""One program through `gcomp.jit` and `jax.jit`: how far the results are from each other, and what compiling cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import gcomp
from gcomp.frontends.jaxpr import trace
from gcomp.frontends.jaxpr.importer import Importer
from tests.conformance.jax_programs.table import Program

T = TypeVar("T")


@dataclass(frozen=True)
class Costs:
    """CPU seconds, over all threads: on a shared machine those of the clock say little."""

    equations: int
    """Those of JAX's definitions of primitives by others, and of jaxprs inside of others, counted too."""
    importing: float
    compiling: float
    """By gcomp: tracing, import, passes, emission, XLA."""
    jax: float
    """By jax.jit: tracing, lowering, XLA."""


def error(program: Program) -> float:
    """The greatest difference from jax.jit, in units in the last place of the largest number of its array.

    Called, and as a compiled model. Infinite where anything else differs: types, trees, integers, keys, NaNs.
    """
    function, args = program.make()
    wanted = jax.jit(function)(*args)
    jitted = gcomp.jit(function)
    found = jitted(*args)
    if jax.tree.structure(found) != jax.tree.structure(wanted):
        return np.inf
    flat = jitted.model(*args).flat([np.asarray(x) for x in jax.tree.leaves(args)])
    pairs = [
        *zip(_arrays(found), _arrays(wanted), strict=True),
        *zip(map(np.asarray, flat), _arrays(wanted), strict=True),
    ]
    return max((_ulps(x, y) for x, y in pairs), default=0.0)


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(jax.random.key_data(x) if _is_key(x) else x) for x in jax.tree.leaves(tree)]


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jax.dtypes.prng_key)


def _ulps(found: np.ndarray, wanted: np.ndarray) -> float:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return np.inf
    if not jnp.issubdtype(wanted.dtype, jnp.inexact):
        return 0.0 if np.array_equal(found, wanted) else np.inf
    wide = np.complex128 if np.iscomplexobj(wanted) else np.float64
    x, y = found.astype(wide), wanted.astype(wide)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        return np.inf
    difference = np.abs(x[finite] - y[finite]).max(initial=0)
    scale = np.abs(y[finite]).max(initial=0) * float(jnp.finfo(wanted.dtype).eps)
    return float(difference / scale) if scale else 0.0 if difference == 0 else np.inf


# ---- what it costs --------------------------------------------------------------------------------------------------


def costs(program: Program) -> Costs:
    """Compile a program by both."""
    function, args = program.make()
    traced = trace(function, args)
    equations = _equations_imported(traced.program)
    importing = min(_timed(traced.program)[1] for _ in range(3))
    jax.clear_caches()
    theirs = _timed(lambda: jax.jit(function).lower(*args).compile())[1]
    jax.clear_caches()
    ours = _timed(lambda: gcomp.compile(function, *args))[1]
    return Costs(equations, importing, ours, theirs)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def _equations_imported(work: Callable[[], object]) -> int:
    """How many equations are imported while `work` runs."""
    count, inline = 0, Importer.inline

    def counting(self: Importer, jaxpr: Any, *rest: Any) -> Any:
        nonlocal count
        count += len(jaxpr.eqns)
        return inline(self, jaxpr, *rest)

    with mock.patch.object(Importer, "inline", counting):
        work()
    return count
