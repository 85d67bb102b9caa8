"""The files here are tests, by gcomp's own pytest plugin; one without a RUN line is a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> None:
    if file_path.suffix == ".mlir" and b"// RUN: " not in file_path.read_bytes():
        raise pytest.UsageError(f"{file_path} has no RUN line")
