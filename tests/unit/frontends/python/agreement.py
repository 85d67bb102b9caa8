"""What one operation gives at once, traced and in NumPy: the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from gcomp.exactness import Exactness
from gcomp.frontends.python.function import Traceable
from gcomp.ops.creation import asarray
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import interpret
from gcomp.tensors import trees
from gcomp.tensors.tensor import Tensor

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
NUMBERS = (*INTEGERS, *FLOATS)
REALS = ("bool", *NUMBERS)
ALL = (*REALS, "complex64", "complex128")
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (5,)), ((0, 3), (1, 3)), ((), ()),
)  # fmt: skip
"""Shapes that broadcast."""


def array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, edges: bool = True) -> Array:
    """Random elements of a type; among those of floats zeros, infinities and NaN."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        small = rng.integers(-9 if kind.kind == "i" else 0, 10, shape).astype(kind)
        info = np.iinfo(kind)
        extreme = rng.choice(np.array([info.min, info.max, 0, 1], kind), shape)
        return np.where(rng.random(shape) < (0.2 if edges else 0), extreme, small).astype(kind)
    values = (rng.standard_normal(shape) * 3).astype(kind)
    if kind.kind == "c":
        return (values + 1j * rng.standard_normal(shape)).astype(kind)
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -0.5]), shape).astype(kind)
    return np.where(rng.random(shape) < (0.25 if edges else 0), special, values).astype(kind)


def at_once(function: Function, *args: Any) -> list[Array]:
    """The leaves of what a function gives on tensors that are known."""
    leaves = trees.flatten(function(*(asarray(a) if isinstance(a, np.ndarray) else a for a in args)))[0]
    assert all(isinstance(leaf, Tensor) for leaf in leaves)
    return [leaf.numpy() for leaf in leaves]


def traced(function: Function, *args: Any) -> list[Array]:
    """The leaves of what a function's program gives in the reference interpreter."""
    traceable = Traceable(function, {})
    call = traceable.call(args, {})
    found = traceable.trace(call)
    assert found.program is not None
    return trees.flatten(found.results(interpret(found.program, found.inputs(call))))[0]


def agree(function: Function, expected: Function, *args: Any, exact: bool = True, roundings: float = 4.0) -> None:
    """A function gives the same bits at once and traced, and NumPy's values: exactly, or within its class."""
    once = at_once(function, *args)
    for a, b in zip(once, [t.numpy() for t in traced(function, *args)], strict=True):
        assert not compare(a, b, Exactness.E0)
    with np.errstate(all="ignore"):
        wanted = expected(*args)
        wide = None if exact else expected(*(_widened(a) for a in args))
    parts = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    wider = parts if wide is None else list(wide) if isinstance(wide, tuple | list) else [wide]
    for got, want, more in zip(once, parts, wider, strict=True):
        inexact = want.dtype.kind in "fcV" and not exact
        exactness, more = (Exactness.E2, np.asarray(more)) if inexact else (Exactness.E1, None)
        problems = compare(np.asarray(want), got, exactness, wider=more, roundings=roundings)
        assert not problems, "\n".join(map(str, problems[:3]))


def _widened(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biu":
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


BF16 = np.dtype(ml_dtypes.bfloat16)
