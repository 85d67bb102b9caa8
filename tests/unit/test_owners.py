"""Whose a line of code is does not depend on what folders are called (`gcomp.owners`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest

import gcomp
from gcomp.owners import is_foreign, is_own, is_users, line_of

PACKAGE = Path(gcomp.__file__).parent
ROOT = PACKAGE.parent
INSTALLED = Path(sysconfig.get_paths()["purelib"])
PYTHON = Path(sysconfig.get_paths()["stdlib"])

JIT = "tests/unit/jaxpr/test_jit.py::test_python_deciding_by_a_traced_value_is_refused_with_the_line"
DECIDED_BY_PATHS = [
    JIT,
    "tests/unit/jaxpr/test_jit.py::test_a_primitive_without_importer_is_named_with_its_line",
    "tests/unit/frontends/python/test_graph.py",
    "tests/unit/frontends/python/test_functions.py::test_changed_state_is_refused",
    "tests/unit/frontends/python/test_functions.py::test_too_many_traces_warn",
    "tests/filetests/gcomp/printing.mlir",
]
"""Tests of what is decided by paths: users' lines, locations in text, what is rewritten, files that are named."""


@pytest.mark.parametrize("name", ["gcomp", "gcomp_models", "jax", "torch", "gcomp.d", "Maß und Zahl"])
def test_users_files_are_the_users_whatever_their_folders_are_called(name: str) -> None:
    for file in (f"/home/u/{name}/model.py", f"{PACKAGE}{name}/model.py", f"{PYTHON}{name}/model.py"):
        assert is_users(file) and is_foreign(file, f"{INSTALLED}/jax"), file


def test_installed_files_are_their_librarys() -> None:
    assert is_own(str(PACKAGE / "ops.py")) and not is_users(str(PACKAGE / "ops.py"))
    assert not is_users(os.__file__) and not is_foreign(os.__file__)
    library = str(INSTALLED / "flax" / "core.py")
    assert not is_users(library) and is_foreign(library) and not is_foreign(library, str(INSTALLED / "flax"))


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    for folder in ("real", "link"):
        assert not is_foreign(str(tmp_path / "real" / "a.py"), str(tmp_path / folder))


def _calls(function: Callable[[], object]) -> None:
    function()


def _raised(file: str) -> BaseException:
    calls = FunctionType(_calls.__code__.replace(co_filename=file), globals())
    with pytest.raises(ZeroDivisionError) as caught:
        calls(lambda: 1 / 0)
    return caught.value


def test_a_tracebacks_line_is_the_users_else_the_innermost_of_a_library() -> None:
    trace = _raised(str(INSTALLED / "flax" / "core.py")).__traceback__
    assert trace is not None and trace.tb_next is not None
    assert "test_owners.py" in (line_of(trace) or "")
    trace.tb_next.tb_next = None  # the library's frame is the innermost
    assert "test_owners.py" in (line_of(trace) or "")
    assert line_of(trace.tb_next) == f"{INSTALLED}/flax/core.py:{_calls.__code__.co_firstlineno + 1}"
    assert line_of(trace.tb_next, str(INSTALLED / "flax")) is None


def _run(folder: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_a_copy_of_the_checkout_in_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "jax" / "torch" / "Maß und Zahl" / "gcomp"
    for name in ("gcomp", "tests", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    run = _run(folder, DECIDED_BY_PATHS)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_link_to_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "gcomp").symlink_to(ROOT, target_is_directory=True)
    run = _run(tmp_path / "gcomp", [JIT])
    assert run.returncode == 0, run.stdout + run.stderr
