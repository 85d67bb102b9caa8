"""What a pass does to NaN, zeros, overflow, empty tensors and symbolic sizes, in words: seen on programs it changes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gcomp.dims import symbols_of
from gcomp.dtypes import is_complex, is_float
from gcomp.errors import GcompError
from gcomp.passes.base import Pass, PassContext
from gcomp.reference.planned import runner
from gcomp.testing.fuzz import directed

Array = np.ndarray[Any, Any]

_NUMBERS = 4000
_MOST = 150


@dataclass
class Values:
    """Counts of elements by what became of them, and of programs by what they have."""

    programs: int = 0
    elements: Counter[str] = field(default_factory=Counter[str])
    changed: Counter[str] = field(default_factory=Counter[str])
    types: Counter[str] = field(default_factory=Counter[str])
    symbolic: int = 0
    empty: int = 0
    empty_differ: int = 0

    def words(self) -> dict[str, str]:
        """A sentence for each of what people ask."""
        if not self.programs:
            return {}
        said = {
            "NaN": self._kind("nan", ("NaN becomes a number", "a number becomes NaN", "the bits of a NaN change")),
            "-0": self._kind("zero", ("the sign of a zero changes", "a zero becomes another number")),
            "overflow": self._kind("infinity", ("infinity becomes a number", "a number becomes infinite")),
            "other numbers": self._kind("number", ("a number changes by rounding", "a number becomes another")),
            "empty tensors": f"changed {self.empty} programs at sizes of 0; "
            + (f"{self.empty_differ} results differ" if self.empty_differ else "results have the same shapes")
            if self.empty
            else "no program that it changes was run at sizes of 0",
            "symbolic sizes": f"changed {self.symbolic} of {self.programs} programs with them"
            if self.symbolic
            else f"changed none of {self.programs} programs with them",
            "element types": ", ".join(name for name, _ in self.types.most_common()),
        }
        return said

    def _kind(self, kind: str, ways: tuple[str, ...]) -> str:
        met = self.elements[kind]
        found = [f"{way} ({self.changed[way]} of {met} times)" for way in ways if self.changed[way]]
        if found:
            return "; ".join(found)
        return f"kept, {met} times of {met}" if met else "was not met"


def values_of(step: Pass, seconds: float) -> Values:
    """Run programs before and after a pass on edge values, and count what became of the elements."""
    found, end = Values(), time.monotonic() + seconds
    for number in range(_NUMBERS):
        if found.programs >= _MOST or time.monotonic() > end:
            break
        with suppress(GcompError, Exception):  # what fails is the judge's to tell
            _look(step, number, found)
    return found


def _look(step: Pass, number: int, found: Values) -> None:
    program = directed.program_of(step, number)
    after = program.clone()
    context = PassContext()
    if not step.run(after, context) or (context.known and not context.applications):
        return
    after.verify()
    found.programs += 1
    ports = program.inputs()
    found.symbolic += any(symbols_of(size) for port in ports for size in port.shape)
    found.types.update({port.dtype for port in program.outputs()})
    first, second = runner(program, max_steps=directed.STEPS), runner(after, max_steps=directed.STEPS)
    was_empty = False
    for given in directed.sets_of(step, program, number):
        arrays = given.arrays
        with np.errstate(all="ignore"):
            pairs = list(zip(first.run(arrays), second.run(arrays), strict=True))
        for (was, now), port in zip(pairs, program.outputs(), strict=True):
            if was.size == 0 or any(a.size == 0 for a in arrays):
                was_empty = True
                found.empty_differ += was.shape != now.shape or was.tobytes() != now.tobytes()
            elif is_float(port.dtype) and not is_complex(port.dtype) and was.shape == now.shape:
                for kind, way, count in _compared(was, now):
                    (found.changed if way else found.elements)[way or kind] += count
    found.empty += was_empty


def _compared(was: Array, now: Array) -> Iterator[tuple[str, str, int]]:
    """Kinds of elements, and how they changed (empty: how many there are of the kind)."""
    bits = was.view(f"u{was.dtype.itemsize}") != now.view(f"u{now.dtype.itemsize}")
    with np.errstate(all="ignore"):
        wide, other = was.astype(np.float64), now.astype(np.float64)
        nan, nan_now = np.isnan(wide), np.isnan(other)
        inf, inf_now = np.isinf(wide), np.isinf(other)
        zero = wide == 0
        close = np.abs(wide - other) <= 1e-2 * np.maximum(np.abs(wide), np.abs(other))
    number = ~nan & ~inf & ~zero
    for kind, where in (("nan", nan), ("zero", zero), ("infinity", inf), ("number", number)):
        yield kind, "", int(where.sum())
    for way, where in (
        ("NaN becomes a number", nan & ~nan_now),
        ("a number becomes NaN", ~nan & nan_now),
        ("the bits of a NaN change", nan & nan_now & bits),
        ("the sign of a zero changes", zero & (other == 0) & bits),
        ("a zero becomes another number", zero & (other != 0) & ~nan_now),
        ("infinity becomes a number", inf & ~inf_now & ~nan_now),
        ("a number becomes infinite", ~inf & ~nan & inf_now),
        ("a number changes by rounding", number & bits & close & ~nan_now & ~inf_now),
        ("a number becomes another", number & bits & ~close & ~nan_now & ~inf_now),
    ):
        if count := int(where.sum()):
            yield "", way, count


__all__ = ["Values", "values_of"]
