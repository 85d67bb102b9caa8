"""What the README shows works: its Python and its commands, on the digits model."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with model.onnx and eight images in x.npy."""
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


MODELS = """import jax.numpy as jnp

def make_model():
    return jnp.tanh, (jnp.ones(3),)
"""


def block_after(heading: str) -> str:
    """The first code block after a heading."""
    found = re.search(rf"^## {heading}\n.*?^```\w*\n(.*?)^```$", README, flags=re.M | re.S)
    assert found is not None
    return found[1]


def test_the_python_runs(folder: Path) -> None:
    (folder / "example.py").write_text(block_after("Python"), "utf-8")
    left = runpy.run_path(str(folder / "example.py"), {"x": np.load("x.npy")})
    assert np.array_equal(left["y"], left["named"]["probabilities"])
    assert (folder / "model.gcomp").exists()


def test_the_jax_example_runs(folder: Path) -> None:
    (folder / "example.py").write_text(block_after("JAX"), "utf-8")
    left = runpy.run_path(str(folder / "example.py"))
    assert float(left["loss"]) == 1 and (folder / "linear.gcomp").exists()


def test_the_torch_example_runs(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")
    (folder / "example.py").write_text(block_after("PyTorch"), "utf-8")
    runpy.run_path(str(folder / "example.py"))


def test_the_commands_run(folder: Path) -> None:
    (folder / "models.py").write_text(MODELS, "utf-8")
    for line in block_after("Command line").splitlines():
        program, *arguments = shlex.split(line)
        command = [str(Path(sys.executable).parent / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert program == "gcomp" and done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert np.load("y.npy").shape == (8, 10)


def test_documents_that_are_named_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} names {target}"
