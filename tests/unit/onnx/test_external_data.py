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

import gcomp
from gcomp.cli import main
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.model.reading import read_model
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


# ---- links that the user allows ----


def hub(place: Path) -> tuple[Path, Path]:
    """A cache as Hugging Face's, where models and their data are links to blobs: its folder, and a model's path."""
    cache = place / "hub"
    blobs, snapshot = cache / "blobs", cache / "snapshots" / "1"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "data").write_bytes(RAW)
    saved(blobs, in_initializer(external("w.bin"))).rename(blobs / "model")
    (snapshot / "w.bin").symlink_to("../../blobs/data")
    (snapshot / "model.onnx").symlink_to("../../blobs/model")
    return cache, snapshot / "model.onnx"


def test_links_into_a_folder_that_the_user_names_are_followed(tmp_path: Path) -> None:
    cache, path = hub(tmp_path)
    with pytest.raises(InvalidModelError, match="--allow-links"):
        read_model(path)
    for named in (cache, cache / "blobs", tmp_path):
        with gcomp.allow_links(named):
            assert read_model(path) is not None
    with pytest.raises(InvalidModelError, match="symbolic link"):
        read_model(path)
    with pytest.raises(UsageError, match="no folder"), gcomp.allow_links(tmp_path / "none"):
        pass


@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_outside_of_the_allowed_folders_is_opened(trick: Callable[[Path, Path], str], tmp_path: Path) -> None:
    """A folder that is allowed lets nothing else in: no neighbour whose name begins alike, and not what it links to."""
    folder, allowed = tmp_path / "model", tmp_path / "secret"
    folder.mkdir()
    allowed.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(RAW)
    (allowed / "out.bin").symlink_to(secret)
    path = saved(folder, in_initializer(external(trick(folder, secret))))
    with gcomp.allow_links(allowed):
        with never_opened(secret), pytest.raises(InvalidModelError):
            read_model(path)
        (folder / "to.bin").symlink_to(allowed / "out.bin")
        path = saved(folder, in_initializer(external("to.bin")))
        with never_opened(secret), pytest.raises(InvalidModelError):
            read_model(path)


def test_special_files_are_not_opened_in_an_allowed_folder(tmp_path: Path) -> None:
    cache, path = hub(tmp_path)
    (cache / "blobs" / "data").unlink()
    os.mkfifo(cache / "blobs" / "data")
    with gcomp.allow_links(cache), pytest.raises(InvalidModelError, match="pipe"):
        read_model(path)


def test_the_command_line_allows_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache, path = hub(tmp_path)
    (tmp_path / "m.mlir").write_text("module {}")
    for code, arguments in (
        (1, ["opt", str(path)]), (0, ["opt", str(path), "--allow-links", str(cache)]), (1, ["opt", str(path)]),
        (2, ["opt", str(path), "--allow-links", str(tmp_path / "none")]),
        (2, ["opt", str(tmp_path / "m.mlir"), "--allow-links", str(cache)]),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["gcomp", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == code and (not code or "--allow-links" in capfd.readouterr().err)
