"""The harness that asks gcomp's commands about changed sources: what it leaves out, and whom it believes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.mutants.changes import Change, meaning
from tests.mutants.front_doors.doors import Answer, Scratch
from tests.mutants.front_doors.folders import FOLDERS, doors_of
from tests.mutants.front_doors.trying import ALIVE, FOUND, KILLED, Controls, try_mutant

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x: int | str = 1", "x: int & str = 1"),
        ("def f(x: 'a') -> 1: return x", "def f(x: 'b') -> 2: return x"),
        ("def f():\n  'a'\n  return 1", "def f():\n  'b'\n  return 1"),
        ("raise E('a', 1)", "raise E('b', 2)"),
        ("assert x, 1", "assert x, 2"),
        ("__all__ = [*a]", "__all__ = []"),
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)"),
        ("@dataclass(frozen=True)\nclass A: ...", "@dataclass(frozen=False)\nclass A: ..."),
        ("if TYPE_CHECKING:\n  import a", "if TYPE_CHECKING:\n  import b"),
    ],
)
def test_what_cannot_alter_meaning_is_no_change(before: str, after: str) -> None:
    assert meaning(before) == meaning(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x=1): return x", "def f(x=2): return x"),
        ("x: int = 1", "x: int = 2"),
        ("if a: raise E('a')", "if not a: raise E('a')"),
        ("raise E('a')", "raise F('a')"),
        ("assert x", "assert not x"),
        ("f(a, size=1)", "f(a, size=2)"),
    ],
)
def test_what_runs_differently_is_a_change(before: str, after: str) -> None:
    assert meaning(before) != meaning(after)


def test_every_folder_has_modules_and_every_module_a_door() -> None:
    for folder in FOLDERS:
        modules = folder.modules(ROOT)
        assert modules, folder.name
        assert all(doors_of(folder, module) or not folder.doors for module in modules)


@pytest.mark.slow
def test_a_mistake_is_found_and_a_change_of_style_lives(tmp_path: Path) -> None:
    folder, module = FOLDERS[0], "gcomp.passes.graph.dce"
    source = folder.modules(ROOT)[module]
    wrong = source.replace("if is_dead(op):", "if not is_dead(op):")
    right = f"{source}\nNOBODY_READS_IT = 1\n"
    scratch, controls = Scratch(ROOT, tmp_path / "copy"), Controls(Scratch(ROOT, tmp_path / "clean"))
    changes = [Change(module, "", 1, "", "", changed) for changed in (wrong, right)]
    verdicts = [try_mutant(scratch, controls, folder, change, 0, 4.0) for change in changes]
    assert verdicts[0].how == FOUND
    assert verdicts[1].how == ALIVE
    assert verdicts[1].programs > 0


def test_a_command_that_somebody_ends_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Answer({}, 0, 1.0, -signal.SIGKILL, "")
    monkeypatch.setattr(Scratch, "ask", lambda *_, **__: ended)
    monkeypatch.setattr(Controls, "known", lambda *_: set[object]())
    scratch, module = Scratch(ROOT, tmp_path), "gcomp.passes.graph.dce"
    change = Change(module, "", 1, "", "", FOLDERS[0].modules(ROOT)[module])
    verdict = try_mutant(scratch, Controls(scratch), FOLDERS[0], change, 0, 4.0)
    assert verdict.how == KILLED
    assert not verdict.is_found
