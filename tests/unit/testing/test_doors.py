"""Doors of `gcomp fuzz --what`: what is right is not blamed; a wrong rule is found, named and made small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gcomp.autodiff import table as derivatives
from gcomp.autodiff.rows import ROWS
from gcomp.cli.app import app
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.padding.reduction import NEUTRAL
from gcomp.testing.fuzz import Coverage, Found, Limits, Plan, fuzz
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.door import NOTHING_WRONG
from gcomp.testing.fuzz.doors import door_names, door_of

Patch = Callable[[pytest.MonkeyPatch], object]


def _not_reversed(patch: pytest.MonkeyPatch) -> None:
    """What is reversed gets the cotangent of another place."""
    row = ROWS[hlo.ReverseOp]
    assert isinstance(row, derivatives.Linear)
    patch.setitem(ROWS, hlo.ReverseOp, derivatives.Linear(lambda b, op, g, i: g, row.operands))


def _maximum_above_0(patch: pytest.MonkeyPatch) -> None:
    """Of negative numbers, a maximum along a padded dimension is 0."""
    patch.setitem(NEUTRAL, hlo.MaximumOp, lambda _: 0)


PLANTED: dict[str, tuple[Patch, int, str]] = {
    "autodiff": (_not_reversed, 110, "stablehlo.reverse"),
    "padding": (_maximum_above_0, 40, "stablehlo.reduce"),
}
"""A door, a mistake of what it is about, from which program on it is looked for, and what is to be named."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_is_found_named_and_made_small(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    patch, first, blamed = PLANTED[name]
    with monkeypatch.context() as patched:
        patch(patched)
        plan = Plan.of(what=name)
        found = _first_found(plan, first, blamed)
        path = write_case(found, plan, tmp_path, seconds=10)
        text = path.read_text("utf-8")
        assert text.startswith(f"// RUN: gcomp fuzz --what {name} --case %s --seed {found.number} | filecheck %s")
        assert f"at fault: {blamed}" in text
        assert text.count("stablehlo.") <= 6
        assert _judged(name, path, found.number) == (1, False)
    assert _judged(name, path, found.number) == (0, True)


def _first_found(plan: Plan, first: int, blamed: str) -> Found:
    """The first failure that is blamed on a component, of some programs."""
    found = (door_of(plan.what).attempt(number, plan.size, Coverage()) for number in range(first, first + 60))
    return next(one for one in found if one is not None and one.key[-1] == blamed)


def _judged(name: str, path: Path, number: int) -> tuple[int, bool]:
    result = CliRunner().invoke(app, ["fuzz", "--what", name, "--case", str(path), "--seed", str(number)])
    return result.exit_code, NOTHING_WRONG in result.output


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_right_is_not_blamed(name: str) -> None:
    outcome = fuzz(Plan.of(what=name), Limits(programs=50), seed=1)
    assert not outcome.failures, "\n".join(found.message for found in outcome.failures.values())
    assert outcome.coverage.judged > 25
    assert outcome.coverage.rules


def test_passes_that_make_another_program_have_their_door() -> None:
    assert Plan.of(("vjp",)).what == Plan.of(pipeline="jvp").what == "autodiff"
    assert Plan.of(pipeline="pad-dims").what == "padding"
    for refused in (("vjp", "cse"), ("thread-prints",)):
        with pytest.raises(UsageError, match="another program"):
            Plan.of(refused)
    with pytest.raises(UsageError, match="no 'nothing' to fuzz"):
        Plan.of(what="nothing")
    with pytest.raises(UsageError, match="excludes"):
        Plan.of(("cse",), what="autodiff")


def test_the_doors_have_all_a_planted_mistake() -> None:
    known: set[Any] = set(door_names()) - {"passes"}
    assert known == set(PLANTED)
