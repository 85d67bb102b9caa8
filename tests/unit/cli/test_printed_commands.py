"""What a command prints as the next step runs as it stands: no printed `gcomp ...` is a wrong use or crashes gcomp."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.passes.registry import all_passes
from gcomp.testing.targets import TargetCheck, TargetFailure
from tests.unit.cli.commands import Cli, Result, all_commands
from tests.verdicts import WRONG, Wrong

FILE = Path(__file__).parents[2] / "verdicts" / "wrong.py"
MODEL, LOADED = "a model.mlir", ("--load", "the passes/wrong.py")
CRASH = '''
from dataclasses import dataclass
from typing import ClassVar

from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class Raises(Pass):
    """Raises, after what comes before it."""

    name: ClassVar[str] = "raises-always"

    def run(self, program: Program, context: PassContext) -> bool:
        raise KeyError("no such thing")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with wrong passes, in a path that a shell splits."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "the passes").mkdir()
    shutil.copy(FILE, tmp_path / "the passes" / "wrong.py")
    (tmp_path / "crash it.py").write_text(CRASH)
    known = set(all_passes())
    yield tmp_path
    for name in set(all_passes()) - known:
        all_passes().pop(name)  # type: ignore[attr-defined]


def printed(*texts: str) -> list[list[str]]:
    """The words of every command in texts, without the pipes of RUN lines."""
    commands = "|".join(all_commands())
    found: dict[str, None] = {}
    for text in texts:
        for line in re.findall(rf"\bgcomp ((?:{commands}) [^\n]*)", text):
            found[line.split(" | ")[0].strip()] = None
    return [shlex.split(line) for line in found]


def _filled(word: str, path: Path) -> str:
    return str(path) if word in ("%s", "FILE") else word.replace("%S", str(path.parent))


def run_all(cli: Cli, result: Result, *files: Path) -> int:
    """Run what was printed, and what files say of themselves; how many commands that were."""
    lines = printed(result.out, result.err)
    for path in files:
        head = path.read_text("utf-8").splitlines()[0]
        lines += [[_filled(word, path) for word in words] for words in printed(head)]
    for words in lines:
        done = cli(*words)
        # A reduced case of a wrong pass shows what is wrong.
        expected = (1,) if "--check-each" in words else (0, 1)
        assert done.code in expected, f"gcomp {shlex.join(words)}: {done.code}\n{done.err}"
    return len(lines)


@pytest.mark.parametrize("wrong", WRONG[:3], ids=lambda wrong: wrong.name)
def test_bisect_and_reduce_of_a_wrong_pass(cli: Cli, folder: Path, wrong: Wrong) -> None:
    (folder / MODEL).write_text(wrong.program)
    sizes = [word for name, size in wrong.sizes.items() for word in ("--dim", f"{name}={size}")]
    kept = 'canonicalize,inline-composites{keep="gcomp.attention"},' + wrong.name
    found = cli("bisect", MODEL, "-p", kept, *LOADED, *sizes)
    assert found.code == 1, found.err
    assert run_all(cli, found) == 2
    (small,) = folder.glob("*.reduced.mlir")
    assert run_all(cli, Result(0, "", ""), small) == 1


def test_the_program_of_a_crash(cli: Cli, folder: Path) -> None:
    (folder / MODEL).write_text(WRONG[0].program)
    (folder / "out").mkdir()
    pipeline = 'inline-composites{keep="gcomp.attention"},raises-always'
    compiling = ("compile", MODEL, "-o", "out/o.gcomp")
    for command in (("opt", MODEL), compiling, (*compiling, "-t", "cpu")):
        failed = cli(*command, "-p", pipeline, "--load", "crash it.py")
        assert failed.code == 1 and "no such thing" in failed.err
        (written,) = folder.rglob("*.crash.mlir")
        (words,) = printed(written.read_text().splitlines()[0])
        again = cli(*words)
        assert again.code == 1 and "no such thing" in again.err, again.err
        written.unlink()
        for left in folder.rglob("*.crash.mlir"):
            left.unlink()


def test_what_fuzzing_finds(cli: Cli, folder: Path) -> None:
    found = cli("fuzz", "--pass", "subtract-self", "--programs", "40", "--seconds", "1", "-o", "found here", *LOADED)
    files = sorted((folder / "found here").glob("*.mlir"))
    assert found.code == 1 and files
    assert run_all(cli, found, *files) >= len(files)


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_a_target_that_computes_something_else(
    target: str, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / MODEL).write_text(WRONG[1].program)
    monkeypatch.setattr(TargetCheck, "failure", lambda *_, **__: TargetFailure("meaning", "it adds"))
    kept = () if target == "cpu" else ("-p", 'inline-composites{keep="gcomp.attention"}')
    found = cli("bisect", MODEL, "--dim", "n=1..64", "--run-target", "-t", target, *kept)
    (words,) = printed(found.out)
    assert found.code == 1 and words[:2] == ["reduce", MODEL] and words[-2:] == ["--dim", "n=1..64"]
    assert words[words.index("--target") + 1] == target
    assert run_all(cli, found) == 1
    (small,) = folder.glob("*.reduced.mlir")
    assert run_all(cli, Result(0, "", ""), small) == 1


@pytest.mark.parametrize(("kind", "command"), [("meaning", "compile"), ("bits", "bisect")])
def test_what_a_target_is_found_to_do_wrong(
    kind: str, command: str, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the command that compares what was wrong."""
    (folder / MODEL).write_text(WRONG[0].program)
    monkeypatch.setattr(TargetCheck, "failure", lambda *_, **__: TargetFailure(kind, "it adds"))
    found = cli("reduce", MODEL, "--target", "cpu", "-o", "small.mlir")
    assert found.code == 0, found.err
    (words,) = printed((folder / "small.mlir").read_text().splitlines()[0])
    assert words[:4] == [command, "%s", "--target", "cpu"]
    assert run_all(cli, Result(0, "", ""), folder / "small.mlir") == 1


def test_a_model_where_an_artifact_is_asked_for(cli: Cli, folder: Path) -> None:
    (folder / MODEL).write_text(WRONG[0].program)
    found = cli("inspect", MODEL)
    assert found.code == 2 and "'a model.mlir'" in found.err and "'a model.gcomp'" in found.err
