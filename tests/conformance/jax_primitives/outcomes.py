"""Running one harness through jax.jit and through gcomp, and how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcomp.errors import GcompError, InternalError, UnsupportedError
from tests.conformance.jax_primitives.comparison import Difference, difference, is_nearer
from tests.conformance.jax_primitives.harness import arguments, harnesses

CLASSES = ("passed", "rounding", "wrong", "unsupported", "error", "crash", "timeout", "jax cannot")
"""`passed`: every bit is jax.jit's (any NaN is any other). `rounding`: floats within the tolerance of their group.
A result that
is further from jax.jit's counts as rounding where jax.jit of wide elements says that it is the better of the two.
`wrong`: other results. `unsupported`: gcomp refuses, and says why. `error`: any other exception. `crash`: the process
died. `timeout`: it had to be ended. `jax cannot`: jax.jit raises; nobody is held to those."""


@dataclass(frozen=True)
class Outcome:
    """How a harness ended."""

    kind: str
    detail: str = ""


def run_case(name: str, target: str) -> Outcome:
    """Run a harness both ways and compare."""
    import jax

    harness, args = harnesses()[name], arguments(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = [np.asarray(x) for x in jax.tree.leaves(jax.jit(harness.dyn_fun)(*args))]
        except Exception as error:
            return Outcome("jax cannot", _first(error))
        try:
            found = compiled(harness.dyn_fun, args, target)
        except UnsupportedError as error:
            return Outcome("unsupported", _first(error))
        except Exception as error:
            return Outcome("error", f"{type(error).__name__}: {_first(error)}")
    match difference(found, wanted, harness, args):
        case None:
            return Outcome("passed")
        case Difference(text, rounding):
            rounding = rounding or is_nearer(found, wanted, _exact(harness.dyn_fun, args))
            return Outcome("rounding" if rounding else "wrong", text)


def _exact(function: Any, args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The results for the same numbers in f64 or complex128; nothing where the function does not take these."""
    import jax

    wide = {"f": np.float64, "c": np.complex128}
    try:
        found = jax.jit(function)(*(x.astype(wide.get(x.dtype.kind, x.dtype)) for x in map(np.asarray, args)))
    except Exception:
        return []
    return [np.asarray(x) for x in jax.tree.leaves(found)]


def compiled(function: Any, args: Sequence[Any], target: str) -> list[np.ndarray[Any, Any]]:
    """The flat results of a function through gcomp."""
    import jax

    import gcomp

    return [np.asarray(x) for x in jax.tree.leaves(gcomp.jit(function, target=target)(*args))]


def _first(error: BaseException) -> str:
    """An error's message in one line; of gcomp's refusals, why."""
    if isinstance(error, GcompError) and not isinstance(error, InternalError) and error.why:
        return str(error.why)[:300]
    return " / ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]
