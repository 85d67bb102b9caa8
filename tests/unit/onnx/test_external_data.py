"""External data: it is mapped from the model's folder, and nothing outside that folder is ever opened."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.reading import read_model
from tests.unit.onnx.tensor_models import (
    DENSE,
    RAW,
    SPARSE,
    VALUES,
    arrays,
    external,
    in_initializer,
    saved,
)

# --- nothing outside the folder is opened


class _Watch:
    """Sees every opening and every mapping in this process, by audit hook, and openings of one inode, by inotify."""

    def __init__(self) -> None:
        self.is_on = False
        self.opened: list[tuple[str, int]] = []
        self.mapped: list[os.stat_result] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.is_on and event == "open" and isinstance(args[0], (str, bytes)):
            self.opened.append((os.fsdecode(args[0]), args[2]))
        elif self.is_on and event == "mmap.__new__" and args[0] >= 0:
            self.mapped.append(os.fstat(args[0]))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self.opened.clear()
        self.mapped.clear()
        gc.collect()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


WATCH = _Watch()


@contextlib.contextmanager
def never_opened(path: Path) -> Iterator[None]:
    """Asks the kernel whether the file was opened, under whatever name."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert watch >= 0
    opened = 0x20
    assert libc.inotify_add_watch(watch, os.fsencode(path), opened) >= 0
    try:
        yield
        with pytest.raises(BlockingIOError):
            os.read(watch, 4096)
    finally:
        os.close(watch)


def _absolute(folder: Path, secret: Path) -> str:
    return str(secret)


def _parent(folder: Path, secret: Path) -> str:
    return f"../{secret.name}"


def _hidden_parent(folder: Path, secret: Path) -> str:
    (folder / "sub").mkdir()
    return f"sub/../../{secret.name}"


def _symlink(folder: Path, secret: Path) -> str:
    (folder / "w.bin").symlink_to(secret)
    return "w.bin"


def _symlinked_folder(folder: Path, secret: Path) -> str:
    (folder / "sub").symlink_to(secret.parent)
    return f"sub/{secret.name}"


def _hardlink(folder: Path, secret: Path) -> str:
    (folder / "w.bin").hardlink_to(secret)
    return "w.bin"


TRICKS = [_absolute, _parent, _hidden_parent, _symlink, _symlinked_folder, _hardlink]


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("place", [*DENSE, *SPARSE])
def test_nothing_outside_the_folder_is_opened(
    place: Callable[[TensorProto], onnx.ModelProto], trick: Callable[[Path, Path], str], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(RAW)
    path = saved(folder, place(external(trick(folder, secret))))
    with never_opened(secret), WATCH.watching(), pytest.raises(GcompError) as caught:
        read_model(path)
    expected = UnsupportedError if place in SPARSE else InvalidModelError
    assert isinstance(caught.value, expected)
    assert caught.value.where is not None
    assert WATCH.mapped == []
    for name, flags in WATCH.opened:
        # The model and its folder by path; all else by one plain name in an open folder, never through a link.
        if name not in (str(path), str(folder)):
            assert "/" not in name
            assert name not in (".", "..")
            assert flags & os.O_NOFOLLOW


def test_the_watch_sees_what_is_opened(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(RAW)
    path = saved(tmp_path, in_initializer(external("w.bin")))
    with WATCH.watching():
        read_model(path)
    assert ("w.bin" in [name for name, _ in WATCH.opened]) and len(WATCH.mapped) == 1
    with pytest.raises(pytest.fail.Exception), never_opened(tmp_path / "w.bin"):
        read_model(path)


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return "pipe"


def _directory(folder: Path) -> str:
    (folder / "sub").mkdir()
    return "sub"


def _file_as_folder(folder: Path) -> str:
    (folder / "file").write_bytes(RAW)
    return "file/w.bin"


@pytest.mark.parametrize(
    "location",
    [_pipe, _directory, _file_as_folder, "", ".", "..", "missing", "a\0b", "..\\x", "C:x", "/dev/zero", "x" * 5000],
)
def test_odd_locations_are_refused(location: str | Callable[[Path], str], tmp_path: Path) -> None:
    name = location if isinstance(location, str) else location(tmp_path)
    with pytest.raises(InvalidModelError):
        read_model(saved(tmp_path, in_initializer(external(name))))


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 1},
        {"offset": len(RAW)},
        {"offset": 10**17},
        {"offset": 10**30},
        {"offset": -1},
        {"offset": "1e3"},
        {"offset": "٣"},
        {"length": 0},
        {"length": len(RAW) - 4},
        {"length": len(RAW) + 4},
        {"__class__": "x"},
        {"checksum": "0" * 40},
    ],
)
def test_malformed_references_are_refused(entries: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(RAW)
    with pytest.raises(InvalidModelError):
        read_model(saved(tmp_path, in_initializer(external("w.bin", **entries))))


def test_checksums_are_checked(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(RAW)
    sha1 = subprocess.run(["sha1sum", tmp_path / "w.bin"], capture_output=True, text=True, check=True).stdout[:40]
    assert arrays(read_model(saved(tmp_path, in_initializer(external("w.bin", checksum=sha1)))))


def test_external_data_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(RAW)
    proto = in_initializer(external("w.bin"))
    for source in (proto, proto.SerializeToString()):
        with pytest.raises(InvalidModelError, match="no folder"):
            read_model(source)
        assert np.array_equal(arrays(read_model(source, folder=tmp_path))[0], VALUES)
