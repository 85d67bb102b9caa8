"""Caches of code: what is in them was written by the user, and is whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gcomp.errors import UsageError
from gcomp.runtime.folders import CACHE, Cache

STORE = Cache("things", 1000)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the entries, with one."""
    monkeypatch.setenv(CACHE, str(tmp_path / "caches"))
    STORE.store("name", b"some", b"thing")
    return STORE.path()


def test_what_is_kept_is_found(place: Path) -> None:
    assert STORE.load("name") == b"something" and STORE.load("other") is None
    assert (place.stat().st_mode & 0o777, (place / "name").stat().st_mode & 0o777) == (0o700, 0o600)
    assert sorted(path.name for path in place.iterdir()) == ["name"]


@pytest.mark.parametrize("damage", [lambda d: d[:-1] + b"!", lambda d: d[:-1], lambda d: d[:7], lambda d: b""])
def test_what_does_not_hold_together_is_no_entry(damage, place: Path) -> None:
    path = place / "name"
    path.write_bytes(damage(path.read_bytes()))
    assert STORE.load("name") is None
    STORE.store("name", b"new")
    assert STORE.load("name") == b"new"


def test_an_entry_that_others_can_write_is_none(place: Path) -> None:
    (place / "name").chmod(0o622)
    assert STORE.load("name") is None


def test_an_entry_is_never_a_link_nor_a_pipe(place: Path, tmp_path: Path) -> None:
    (place / "name").rename(tmp_path / "elsewhere")
    (place / "name").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(place / "pipe")
    assert STORE.load("name") is None and STORE.load("pipe") is None


def test_what_others_could_read_is_closed_to_them(place: Path) -> None:
    place.chmod(0o755)
    assert STORE.load("name") == b"something"
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_can_write_is_refused(inner: bool, place: Path) -> None:
    (place if inner else place.parent).chmod(0o777)
    with pytest.raises(UsageError, match="not safe"):
        STORE.load("name")


@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_is_a_link_is_refused(inner: bool, place: Path, tmp_path: Path) -> None:
    folder = place if inner else place.parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="not safe"):
        STORE.load("name")


def test_the_users_own_place_is_left_alone_where_it_is_not_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    STORE.store("name", b"thing")
    assert STORE.load("name") == b"thing" and STORE.path() == tmp_path / "gcomp" / "things"
    (tmp_path / "gcomp").chmod(0o777)
    assert STORE.load("name") is None


def test_nothing_is_kept_where_caches_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    STORE.store("name", b"thing")
    STORE.trim()
    assert STORE.load("name") is None and not list(tmp_path.iterdir())


def test_the_least_recently_used_go_and_so_does_what_was_never_finished(place: Path) -> None:
    for number in range(3):
        STORE.store(str(number), bytes(300))
        os.utime(place / str(number), (number + 10**9, number + 10**9))
    (place / ".1234.tmp").write_bytes(b"half")
    os.utime(place / ".1234.tmp", (1, 1))
    (place / ".5678.tmp").write_bytes(b"half")
    assert STORE.load("0") is not None
    STORE.trim()
    assert sorted(path.name for path in place.iterdir()) == [".5678.tmp", "0", "2", "name"]


def test_a_full_disk_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    STORE.store("other", b"thing")
    assert sorted(path.name for path in place.iterdir()) == ["name"]


def test_an_entry_begins_with_its_hash(place: Path) -> None:
    data = (place / "name").read_bytes()
    assert data == hashlib.sha256(b"something").digest() + b"something"
