"""Doors of kernels and of derivatives: one op alone may not be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcomp.autodiff import trips
from gcomp.errors import UnsupportedError
from gcomp.lowering.tiles.schedules import Step
from gcomp.lowering.triton.source import KernelSource
from gcomp.testing.fuzz import Coverage, Plan, tile
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.doors import door_of

PLAN = Plan.of(what="tile")
PLAIN = range(6, 160, 8)
"""Numbers of programs of one op."""


def test_a_kernel_of_one_op_may_not_be_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(step: Step) -> KernelSource:
        raise UnsupportedError("nothing is printed", why="nothing is printed")

    monkeypatch.setattr(tile, "print_kernel", refuse)
    found = next(f for n in PLAIN if (f := door_of("tile").attempt(n, PLAN.size, Coverage())) is not None)
    assert found.key[1] == "refused"
    path = write_case(found, PLAN, tmp_path)
    assert "refused: nothing is printed" in path.read_text()
    assert "refused: nothing is printed" in door_of("tile").again(path, found.number)


def test_kernels_of_one_op_are_taken() -> None:
    found = [door_of("tile").attempt(n, PLAN.size, Coverage()) for n in PLAIN]
    assert [one.message for one in found if one is not None] == []


def test_a_derivative_of_one_op_may_not_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    door = door_of("autodiff")
    numbers = [n for n in range(1, 16 * 400, 16) if door.topic(n) == "while"]
    assert all(door.attempt(n, 15, Coverage()) is None for n in numbers)

    def nothing(*_: object) -> None:
        """No bound is known of any loop."""

    monkeypatch.setattr(trips, "_bound", nothing)
    found = [one for n in numbers if (one := door.attempt(n, 15, Coverage())) is not None]
    assert {one.key[1] for one in found} == {"refused"}
