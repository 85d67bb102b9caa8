"""Files are written whole or not at all, and what killed processes left is removed: nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.cli.options import write_file
from gcomp.runtime.replacing import replacing
from gcomp.runtime.safetensors import write_arrays

KILLED = """
import os, pathlib, signal, sys
from gcomp.runtime.replacing import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
MODEL = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}"""
HEX = "0123456789abcdef"
NOT_OURS = (
    f".other.bin.{HEX}.tmp",
    ".x.bin.tmp",
    f".x.bin.{HEX}.tmp.old",
    f"x.bin.{HEX}.tmp",
    f".x.bin.{HEX[:15]}g.tmp",
)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def left(target: Path) -> Path:
    """What a process leaves that is killed while it writes a file."""
    before = names(target.parent)
    assert subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False, timeout=60).returncode < 0
    (found,) = names(target.parent) - before
    return target.with_name(found)


@pytest.mark.parametrize("kind", ["a model", "arrays", "a page"])
def test_what_a_killed_process_left_is_removed_by_the_next_write(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    rest = left(target)
    assert target.read_bytes() == b"old"
    for name in NOT_OURS:
        (tmp_path / name).write_bytes(b"somebody's")
    (tmp_path / f".x.bin.{HEX[::-1]}.tmp").symlink_to(tmp_path / NOT_OURS[0])
    expected = names(tmp_path) - {rest.name}
    if kind == "a model":
        gcomp.compile("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n return %x : tensor<2xf32>\n}").save(
            target
        )
    elif kind == "arrays":
        write_arrays(target, {"a": np.ones(2)})
    else:
        write_file(target, b"new")
    assert target.read_bytes() != b"old"
    assert names(tmp_path) == expected


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    with replacing(target) as first:
        first.write(b"first")
        (beside,) = names(tmp_path)
        with replacing(target) as second:
            second.write(b"second")
            assert beside in names(tmp_path)
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first" and names(tmp_path) == {"x.bin"}


def test_a_failure_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    with pytest.raises(KeyError), replacing(target) as file:
        file.write(b"new")
        raise KeyError
    assert target.read_bytes() == b"old" and names(tmp_path) == {"x.bin"}


def test_a_file_that_is_taken_away_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, taken = os.open, list[str]()

    def open_and_lose(path: Path, *rest: int, **keywords: int) -> int:
        descriptor = opened(path, *rest, **keywords)
        if str(path).endswith(".tmp") and not taken:
            taken.append(str(path))
            os.unlink(path)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    with replacing(tmp_path / "x.bin") as file:
        file.write(b"new")
    assert taken and (tmp_path / "x.bin").read_bytes() == b"new" and names(tmp_path) == {"x.bin"}
