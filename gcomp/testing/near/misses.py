"""Making a near miss: some edits, types inferred anew, and only what the verifier takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from math import prod

import numpy as np
from xdsl.utils.exceptions import VerifyException

from gcomp.dims import DimError
from gcomp.errors import GcompError
from gcomp.ir.composites import by_name
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, static_shape
from gcomp.passes.judging import structure
from gcomp.testing.generate.choices import Choices
from gcomp.testing.near.edits import EDITS, Edit, Scene
from gcomp.testing.near.sites import near
from gcomp.testing.near.types import settle

_TRIES = 12
_MORE = 0.35
"""How often one change more is made."""
_MOST_ELEMENTS = 4000
_FAULTS = (
    GcompError, VerifyException, DimError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError,
    AssertionError, NotImplementedError, RecursionError,
)  # fmt: skip
"""What an edit raises where it does not suit a program."""


def near_miss(program: Program, places: Sequence[int], choices: Choices) -> Program | None:
    """A valid program that differs a little, at ops of some places or near them; None where no try gave one.

    The program stays as it is.
    """
    before = structure(program)
    for _ in range(_TRIES):
        candidate = program.clone()
        with np.errstate(all="ignore"):
            try:
                if not _edit(candidate, places, choices):
                    continue
                candidate.verify()
                by_name(candidate)  # a name that says nothing of its operands is not valid, either
            except _FAULTS:
                continue
        if structure(candidate) != before and _small(candidate):
            return candidate
    return None


def _edit(program: Program, places: Sequence[int], choices: Choices) -> bool:
    scene = Scene(program, near(program, places), choices)
    table, totals = _table()
    while True:
        if not table[choices.weighted(totals)](scene):
            return False
        settle(program)
        if not choices.flag(_MORE):
            return True
        # What was erased is no place for another change.
        left = set(program.ops())
        scene.ops = [op for op in scene.ops if op in left] or scene.ops


@lru_cache(maxsize=1)
def _table() -> tuple[list[Edit], list[float]]:
    for module in ("whole", "related", "reductions"):
        import_module(f"gcomp.testing.near.{module}")  # they register their edits
    return [edit for edit, _ in EDITS], [float(t) for t in np.cumsum([weight for _, weight in EDITS])]


def _small(program: Program) -> bool:
    """Whether its values are small enough to be computed."""
    shapes = [static_shape(r) for op in program.ops() for r in op.results if is_tensor(r.type)]
    return all(shape is None or prod(shape) <= _MOST_ELEMENTS for shape in shapes)


__all__ = ["near_miss"]
