"""docs/guides/adding_a_target.md tells the truth: a package made to its letter is a target of gcomp at every door."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "adding_a_target.md").read_text("utf-8")
MODEL = """func.func @main(%x: tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]> {
  %w = "stablehlo.constant"() <{value = dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>}> : () -> tensor<1x3xf32>
  %y = "stablehlo.exponential"(%x) : (tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]>
  func.return %y : tensor<?x3xf32, ["n", "3"]>
}
"""


def block(language: str) -> str:
    """The only code block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.M | re.S)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's package, as installing it would leave it, and a model."""
    made = tmp_path_factory.mktemp("toy")
    (made / "toy_target").mkdir()
    (made / "toy_target" / "__init__.py").write_text(block("python"), "utf-8")
    project = tomllib.loads(block("toml"))["project"]
    info = made / "toy_target-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    ((group, entries),) = project["entry-points"].items()
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]), "utf-8")
    (made / "model.mlir").write_text(MODEL, "utf-8")
    return made


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    python = [sys.executable, "-c", "from gcomp.cli.app import main; main()"]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([*python, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_what_the_page_says_must_pass(folder: Path) -> None:
    for line in re.findall(r"^gcomp (.*)$", block("console"), flags=re.M):
        found = run(folder, *shlex.split(line))
        assert found.returncode == 0, f"gcomp {line}\n{found.stdout}{found.stderr}"


def test_fuzzing_holds_it_to_the_reference(folder: Path) -> None:
    found = run(folder, "fuzz", "--target", "numpy:float", "--programs", "20", "--jobs", "1")
    assert found.returncode == 0, found.stdout + found.stderr


def test_what_it_cannot_do_is_refused_by_name(folder: Path) -> None:
    found = run(folder, "compile", "model.mlir", "-t", "numpy:float", "--dim", "n=1..8", "--buckets", "n=4,8")
    assert found.returncode == 1
    assert "there are no buckets on the target numpy:float" in found.stderr and "compile for xla:cpu" in found.stderr


@pytest.mark.parametrize("option", ["--memory-budget 1MiB", "--tuned tuned.json"])
def test_an_option_that_the_class_says_nothing_of_is_refused(option: str, folder: Path) -> None:
    found = run(folder, "compile", "model.mlir", "-t", "numpy:float", *option.split())
    assert found.returncode == 2 and "on the target numpy:float" in found.stderr


def test_it_is_listed_where_a_name_is_wrong(folder: Path) -> None:
    found = run(folder, "compile", "model.mlir", "-t", "numpi:float")
    assert found.returncode == 2 and "numpy:float" in found.stderr
