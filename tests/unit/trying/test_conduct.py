"""A pass that loops, writes files, changes global state or throws a coin is told apart, and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcomp.ir.program import Program
from gcomp.trying.conduct import PROGRAMS, conduct_of
from gcomp.trying.hanging import hangs_on, reduce_hanging
from tests.unit.trying import odd_passes as odd

FEW = PROGRAMS[:16]


def test_a_fine_pass_has_no_faults() -> None:
    found = conduct_of(odd.Fine(), FEW)
    assert not found.faults and found.programs == len(FEW)


def test_a_pass_that_raises_is_the_judges_to_tell() -> None:
    assert not conduct_of(odd.Raises(), FEW).faults


def test_a_pass_that_does_not_end_is_named_with_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.trying.conduct._SECONDS", 0.4)
    found = conduct_of(odd.Loops(), FEW)
    assert "does not end" in found.faults["hangs"] and found.hanging in FEW


def test_the_program_on_which_it_does_not_end_is_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.trying.hanging._ENDS", 0.1)
    text = """
func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>) -> tensor<3xi32> {
  %0 = stablehlo.not %x : tensor<3xi32>
  %1 = stablehlo.add %0, %y : tensor<3xi32>
  %2 = stablehlo.multiply %1, %x : tensor<3xi32>
  %3 = stablehlo.not %2 : tensor<3xi32>
  return %3 : tensor<3xi32>
}"""
    assert hangs_on(odd.Spins(), Program.parse(text)) and not hangs_on(odd.Fine(), Program.parse(text))
    monkeypatch.setattr("gcomp.testing.fuzz.directed.program_of", lambda step, number: Program.parse(text))
    case = reduce_hanging(odd.Spins(), 7, tmp_path, 20)
    assert case is not None and case.kind == "hangs" and case.ops == 2
    assert hangs_on(odd.Spins(), Program.parse(Path(case.path).read_text("utf-8")))
    assert reduce_hanging(odd.Fine(), 7, tmp_path, 20) is None


def test_a_slow_pass_is_named() -> None:
    assert "is slow: " in conduct_of(odd.Slow(), FEW[:2]).faults["slow"]


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
