"""gcomp's pytest plugin, registered by entry point: textual tests of passes, and the fixture `fuzz_pass`.

Files `*.mlir` with a line `// RUN: gcomp opt %s ...` are tests (`gcomp.testing.filetests`).

    def test_my_pass(fuzz_pass):
        fuzz_pass(MyPass())

`--gcomp-programs` says how many programs the fixture tries, `--gcomp-seed` which. pytest imports this module in every
session of every project, so it imports nothing of gcomp before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest

if TYPE_CHECKING:
    from gcomp.testing.check import Step
    from gcomp.testing.filetests import FileRun

_MARK = b"gcomp opt %s"


class FuzzPass(Protocol):
    """Tries a pass on generated programs; fails the test with a reduced program where it is wrong."""

    def __call__(self, step: Step, programs: int | None = None, *, seed: int | None = None) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many programs, and which."""
    group = parser.getgroup("gcomp", "testing compiler passes")
    group.addoption("--gcomp-programs", type=int, default=200, help="programs that fuzz_pass tries (200)")
    group.addoption("--gcomp-seed", type=int, default=0, help="which programs fuzz_pass tries (0)")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Textual tests. Other tools' .mlir files are left alone."""
    if file_path.suffix != ".mlir" or _MARK not in file_path.read_bytes():
        return None
    return _make_node(MlirFile, parent, path=file_path)


def _make_node(kind: Any, parent: pytest.Collector, **keywords: Any) -> Any:
    """A node of pytest's tree: its own constructor is not for calling."""
    return kind.from_parent(parent, **keywords)


class MlirFile(pytest.File):
    """A file of textual tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each RUN line."""
        from gcomp.testing.filetests import runs_in

        for number, run in enumerate(runs_in(self.path.read_text("utf-8"))):
            yield _make_node(MlirTest, self, name=f"run{number}", run=run)


class MlirTest(pytest.Item):
    """One RUN line."""

    def __init__(self, *, run: FileRun, **keywords: Any) -> None:
        cast(Any, super()).__init__(**keywords)
        self.run = run

    def runtest(self) -> None:
        """Run it."""
        self.run.run(self.path)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.path, 0, f"{self.path.name}::{self.name}"


@pytest.fixture
def fuzz_pass(request: pytest.FixtureRequest) -> FuzzPass:
    """A function that tries a pass, the name of one, or a pipeline on generated programs."""
    options = request.config

    def run(step: Step, programs: int | None = None, *, seed: int | None = None) -> None:
        from gcomp.testing.search import find_counterexample

        count = cast(int, options.getoption("--gcomp-programs")) if programs is None else programs
        which = cast(int, options.getoption("--gcomp-seed")) if seed is None else seed
        found = find_counterexample(step, count, seed=which)
        if found is not None:
            pytest.fail(str(found), pytrace=False)

    return run
