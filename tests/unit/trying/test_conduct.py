"""A pass that loops, writes files, changes global state or throws a coin is told apart, and named."""

from __future__ import annotations

import pytest

from gcomp.trying.conduct import PROGRAMS, conduct_of
from tests.unit.trying import odd_passes as odd

FEW = PROGRAMS[:16]


def test_a_fine_pass_has_no_faults() -> None:
    found = conduct_of(odd.Fine(), FEW)
    assert not found.faults and found.programs == len(FEW)


def test_a_pass_that_raises_is_the_judges_to_tell() -> None:
    assert not conduct_of(odd.Raises(), FEW).faults


def test_a_pass_that_does_not_end_is_named_with_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.trying.conduct._SECONDS", 0.4)
    assert "does not end" in conduct_of(odd.Loops(), FEW).faults["hangs"]


def test_a_file_that_is_written_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert list(conduct_of(odd.Writes(), FEW).faults.values()) == [f"writes a file: {tmp_path}/odd.txt"]


def test_global_state_that_is_changed_is_named() -> None:
    said = list(conduct_of(odd.Remembers(), FEW).faults.values())
    assert any(one.startswith("changes SEEN of its module") for one in said)
    assert any(one.startswith("changes os.environ") for one in said)


def test_chance_is_named() -> None:
    faults = conduct_of(odd.Random()).faults
    assert "random" in faults and "state the state of random" in faults
