"""JAX programs as users write them: name, function, example arguments.

    @program(normal(8, 16), normal(16, 4))
    def linear(x, w):
        return x @ w

Importing the families (`networks`, `flow`, `numerics`, `libraries`) fills `PROGRAMS`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Made = tuple[Function, tuple[Any, ...]]

FAMILIES = ("networks", "flow", "numerics", "libraries")
PROGRAMS: dict[str, Program] = {}


@dataclass(frozen=True)
class Program:
    """A function with its example arguments, made when they are needed."""

    name: str
    what: str
    make: Callable[[], Made]
    ulps: float
    """How far floats may be from jax.jit's, in units in the last place of the largest number of their array."""
    needs: str
    """A package that it is written with, besides JAX."""

    @property
    def missing(self) -> bool:
        """Whether what it needs is absent."""
        return bool(self.needs) and importlib.util.find_spec(self.needs) is None


def program(*args: Any, ulps: float = 16) -> Callable[[Function], Function]:
    """A function is a program, of these example arguments."""

    def register(function: Function) -> Function:
        _add(function, lambda: (function, args), ulps, "")
        return function

    return register


def makes_program(needs: str, ulps: float = 16) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """A function makes a program and its arguments by a package that may be absent."""

    def register(make: Callable[[], Made]) -> Callable[[], Made]:
        _add(make, make, ulps, needs)
        return make

    return register


def _add(named: Callable[..., Any], make: Callable[[], Made], ulps: float, needs: str) -> None:
    name = named.__name__
    assert name not in PROGRAMS and named.__doc__, name
    PROGRAMS[name] = Program(name, named.__doc__.strip().rstrip("."), make, ulps, needs)


def programs() -> dict[str, Program]:
    """All programs by name."""
    for family in FAMILIES:
        importlib.import_module(f"tests.conformance.jax_programs.{family}")
    return PROGRAMS


# ---- example arguments ----------------------------------------------------------------------------------------------


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal f32 numbers, the same for each shape."""
    return (scale * np.random.default_rng([7, *shape]).standard_normal(shape)).astype(np.float32)


def weight(*shape: int) -> np.ndarray:
    """Normal numbers that keep the scale of what they are multiplied with."""
    return normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    """Uniform i32 integers, `high` excluded."""
    return np.random.default_rng([low & 0xFF, high, *shape]).integers(low, high, shape).astype(np.int32)


def positive_definite(n: int) -> np.ndarray:
    """A well-conditioned symmetric positive definite matrix."""
    x = normal(n, n)
    return (x @ x.T / n + np.eye(n)).astype(np.float32)
