"""`gcomp try`, on a few models and for a few seconds: what each stage finds, the verdict, and what is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gcomp.cli.app import app
from gcomp.cli.try_screen import stage_lines
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named
from gcomp.trying.findings import load, verdict
from gcomp.trying.misses import misses_in
from gcomp.trying.models import Model, models_in
from gcomp.trying.stages import STAGES, Options, Trial
from gcomp.trying.subject import subject_of
from tests.unit.trying import odd_passes

ODD = str(Path(odd_passes.__file__))
SMALL = ("onnx/forest", "jax/nerf")


def tried(what: str | None, folder: Path, only: tuple[str, ...], **said: object) -> Trial:
    """A pass after some stages."""
    given = {key: said.pop(key) for key in ("pipeline", "against", "chosen") if key in said}
    options = Options(seconds=20, jobs=1, only=only, folder=folder, wanted=SMALL, **said)
    trial = Trial(subject_of(what, **given), options)
    assert list(trial.run())
    return trial


@pytest.mark.parametrize(("name", "word", "why"), [
    ("odd-fine", "right", "1 of 1 rewrites proved"),
    ("odd-raises", "wrong", "raises an exception"),
    ("odd-breaks", "wrong", "the verifier refuses"),
])  # fmt: skip
def test_the_verdict_tells_kinds_of_passes_apart(name: str, word: str, why: str, tmp_path: Path) -> None:
    trial = tried(ODD, tmp_path, ("proofs", "programs", "reduction"), chosen=[name])
    said = verdict(trial.found)
    assert (said.word, why in said.why) == (word, True), said
    if word == "wrong":
        case = trial.found.correct.counterexamples[0]
        assert case.ops <= 3 and Path(case.path).exists()


def test_what_a_wrong_pass_changes_is_not_asked(tmp_path: Path) -> None:
    trial = tried(ODD, tmp_path, STAGES[2:], chosen=["odd-raises"])
    assert {"places", "changes", "worth"} <= trial.found.left_out.keys()
    assert not trial.found.changes


def test_a_pass_of_the_pipeline_is_compared_with_the_pipeline_without_it(tmp_path: Path) -> None:
    trial = tried("expand-chlo", tmp_path, ("changes", "worth"))
    assert all(step.name != "expand-chlo" for step in trial.subject.before)
    assert trial.subject.after == tuple(parse_pipeline(target_named("cpu").pipeline()))
    assert len(trial.found.changes) + len(trial.found.skipped) == len(SMALL)
    assert [one.model for one in trial.found.worth] == [c.model for c in trial.found.firing if not c.same]


def test_two_pipelines(tmp_path: Path) -> None:
    whole = target_named("cpu").pipeline()
    trial = tried(None, tmp_path, ("changes",), pipeline=whole, against=whole.replace("dot-rows,", ""))
    assert trial.found.name == "+dot-rows"
    assert [step.name for step in trial.subject.tried] == ["dot-rows"]
    assert all(not change.error for change in trial.found.changes)


def test_every_place_of_the_pipeline_is_tried_and_the_best_taken(tmp_path: Path) -> None:
    trial = tried("raise-softmax,canonicalize", tmp_path, ("places", "changes"))
    places = trial.found.places
    assert places and trial.subject.place == places[0].at
    assert [place.gain for place in places] == sorted(place.gain for place in places)
    assert trial.found.place == trial.subject.describe_place(places[0].at)


def test_nearest_misses_name_the_one_condition(tmp_path: Path) -> None:
    program = Program.parse("""
func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %0 = stablehlo.not %x : tensor<3xi32>
  %1 = stablehlo.not %0 : tensor<3xi32>
  return %1 : tensor<3xi32>
}""")
    (miss,) = misses_in(program, [odd_passes.Thrice()])
    assert miss.rewrite == "odd-not-thrice" and miss.count == 1
    assert miss.condition == "an operand is an input, not stablehlo.not"


def test_models_that_cannot_be_read_are_listed_and_stop_nothing(tmp_path: Path) -> None:
    own = tmp_path / "models"
    own.mkdir()
    (own / "broken.onnx").write_bytes(b"no model")
    (own / "fine.mlir").write_text("""
func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %0 = stablehlo.not %x : tensor<3xi32>
  %1 = stablehlo.not %0 : tensor<3xi32>
  return %1 : tensor<3xi32>
}""")
    trial = tried(ODD, tmp_path, ("places", "changes", "worth"), chosen=["odd-fine"], own=own)
    assert "broken.onnx" in trial.found.skipped
    fired = {change.model: change for change in trial.found.firing}
    assert fired["fine.mlir"].applications == {"odd-not-twice": 1}
    # Others would have done the same: there is nothing to time.
    assert fired["fine.mlir"].same and not trial.found.worth
    assert "other passes would have done" in verdict(trial.found).worth


def test_a_folder_without_models_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model"):
        list(models_in(tmp_path))
    assert Model("x", tmp_path).is_own


def test_the_command_stores_compares_and_writes_a_page(tmp_path: Path) -> None:
    words = ["try", ODD, "--pass", "odd-fine", "--stage", "proofs", "--stage", "changes", "--corpus", "onnx/forest"]
    for _ in range(2):
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path), "--seconds", "10"])
        assert done.exit_code == 0, done.output
    assert load("odd-fine-2", tmp_path)["name"] == "odd-fine"
    assert "odd-fine" in (tmp_path / "odd-fine-1.html").read_text("utf-8")
    done = CliRunner().invoke(app, ["try", "--compare", "odd-fine-1", "odd-fine-2", "-o", str(tmp_path)])
    assert done.exit_code == 0 and "rewrites proved" in done.output
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path), "--seconds", "10", "--json"])
    assert json.loads(done.stdout)["correct"]["rules"][0]["status"] == "proved"


def test_interrupted_it_says_what_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Trial, models: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "_programs", stop)
    words = ["try", ODD, "--pass", "odd-fine", "--stage", "proofs", "--stage", "programs", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert "interrupted during programs" in done.output and "odd-not-twice: proved" in done.output


def test_models_that_were_skipped_for_one_reason_are_one_line(tmp_path: Path) -> None:
    trial = tried("dot-rows", tmp_path, ("changes",))
    trial.found.skipped = {"a": "no time", "b": "no time", "c": "it is broken"}
    said = [str(line) for line in stage_lines("changes", trial)]
    assert "  skipped a, b: no time" in said and "  skipped c: it is broken" in said


def test_a_pass_that_does_not_end_is_wrong_and_its_case_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcomp.trying.conduct._SECONDS", 0.4)
    trial = tried(ODD, tmp_path, ("conduct", "programs", "reduction"), chosen=["odd-spins"])
    said = verdict(trial.found)
    assert said.word == "wrong" and "does not end" in said.why and trial.found.left_out["programs"]
    case = trial.found.correct.counterexamples[0]
    assert case.kind == "hangs" and Path(case.path).exists() and '-p "odd-spins"' in case.command


def test_another_target_is_asked_about(tmp_path: Path) -> None:
    words = ["try", ODD, "--pass", "odd-fine", "--stage", "changes", "--corpus", "jax/nerf", "--target", "triton:sm_90"]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path), "--seconds", "20", "--json"])
    data = json.loads(done.stdout)
    assert data["target"] == "triton:sm_90" and not data["skipped"], data["skipped"]


def test_what_was_asked_and_not_answered_in_time_is_not_taken_for_unasked(tmp_path: Path) -> None:
    trial = tried(ODD, tmp_path, ("proofs",), chosen=["odd-fine"])
    assert "was not asked" in verdict(trial.found).why
    trial.found.seconds["programs"] = 1.0
    assert "no program was judged in the time" in verdict(trial.found).why
