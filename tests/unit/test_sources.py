"""Sources: the first frontend that accepts one imports it, and what it cannot use is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import sources
from gcomp.errors import UsageError

TEXT = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
}
"""


@pytest.mark.parametrize("suffix", [".onnx", ".mlir", ".pt2", ".jax_export", ".gcomp", ""])
def test_files_take_no_example_arguments(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="example arguments are for functions"):
        gcomp.import_model(tmp_path / f"model{suffix}", np.ones(3))


@pytest.mark.parametrize("source", [TEXT, b"", object()])
def test_texts_and_bytes_take_none_either(source: Any) -> None:
    with pytest.raises(UsageError, match="example arguments are for functions"):
        gcomp.import_model(source, np.ones(3))


def test_frontends_of_other_packages_are_not_looked_for_where_one_of_ours_accepts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    theirs = sources.Frontend("theirs", lambda s: s.value == 7, lambda s: gcomp.Program.parse(TEXT))

    def found(group: str) -> list[Any]:
        asked.append(group)
        return [type("Entry", (EntryPoint,), {"load": lambda self: theirs})("theirs", "a:b", group)]

    monkeypatch.setattr(sources, "entry_points", found)
    gcomp.import_model(TEXT)
    assert asked == []
    assert [port.name for port in gcomp.import_model(7).inputs()] == ["input0"]
    assert asked == ["gcomp.frontends"]
