"""The archive: valid zip, canonical bytes, all-or-nothing writes, and refusal of everything else."""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.errors import ArtifactError, UsageError
from gcomp.runtime import zipform
from gcomp.runtime.archive import Archive, Stream, write_archive
from gcomp.runtime.zipform import Entry

MEMBERS = [("plan.json", b"{}"), ("empty", b""), ("kernel-1.cubin", bytes(range(100)))]

_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,8}(\.[a-z]{1,3})?", fullmatch=True)
_members = st.lists(st.tuples(_names, st.binary(max_size=300)), unique_by=lambda member: member[0].lower(), max_size=6)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcomp"
    write_archive(path, MEMBERS)
    return path


@settings(max_examples=60, deadline=None)
@given(members=_members)
def test_what_is_written_is_read_and_is_a_valid_zip(
    members: list[tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "roundtrip.gcomp"
    write_archive(path, members)
    with Archive(path) as archive:
        assert [(name, bytes(archive.member(name))) for name in archive.names()] == members
        for name in archive.names():
            archive.check(name)
    with zipfile.ZipFile(path) as peer:
        assert peer.testzip() is None
        assert [(info.filename, peer.read(info)) for info in peer.infolist()] == members
        assert all(info.compress_type == zipfile.ZIP_STORED for info in peer.infolist())
        assert all(info.date_time == (1980, 1, 1, 0, 0, 0) for info in peer.infolist())


def test_member_data_is_aligned(written: Path) -> None:
    whole = written.read_bytes()
    with Archive(written) as archive:
        for name in archive.names():
            data = bytes(archive.member(name))
            assert not data or whole.index(data) % zipform.ALIGNMENT == 0


def test_unzip_accepts_it(written: Path) -> None:
    if shutil.which("unzip") is None:
        pytest.skip("needs the program `unzip`")
    assert subprocess.run(["unzip", "-tqq", written], capture_output=True, check=False).returncode == 0


def test_same_members_make_the_same_bytes(written: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.zip"
    pieces = [(name, Stream(len(data), [data[i : i + 1] for i in range(len(data))])) for name, data in MEMBERS]
    write_archive(other, iter(pieces))
    assert other.read_bytes() == written.read_bytes()


def test_members_outlive_the_archive(written: Path) -> None:
    with Archive(written) as archive:
        view = archive.member("plan.json")
    assert bytes(view) == b"{}"


def test_every_structural_byte_and_every_truncation_is_checked(written: Path, tmp_path: Path) -> None:
    whole = bytearray(written.read_bytes())
    broken = tmp_path / "broken"
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        broken.write_bytes(flipped)
        with pytest.raises(ArtifactError), Archive(broken) as archive:
            for name in archive.names():
                archive.check(name)
        broken.write_bytes(whole[:place])
        with pytest.raises(ArtifactError):
            Archive(broken)
    for junk in (b"\0", b"x" * 100, bytes(whole)):
        for content in (junk + whole, whole + junk):
            broken.write_bytes(content)
            with pytest.raises(ArtifactError):
                Archive(broken)


def _foreign(names: tuple[str, ...] = ("a",), compression: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=compression) as file:
        file.comment = comment
        for name in names:
            file.writestr(name, b"data" * 100)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage" * 100,
        b"PK\x05\x06" + bytes(17),
        _foreign(),
        _foreign(compression=zipfile.ZIP_DEFLATED),
        _foreign(comment=b"hello"),
        _foreign(names=("a", "A")),
        _foreign(names=("../a",)),
        _foreign(names=("/etc/passwd",)),
        _foreign(names=("é",)),
    ],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ArtifactError):
        Archive(path)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".a", "a..b", "a\\b", "c:", "a b", "a\0", "é", "a\n", "x" * 201])
def test_names_that_are_paths_are_refused_both_ways(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(ArtifactError):
        write_archive(path, [(name, b"")])
    assert os.listdir(tmp_path) == []


def test_names_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        write_archive(tmp_path / "a", [("Plan", b""), ("plan", b"")])


def test_things_that_are_no_files_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, tmp_path / "missing", tmp_path / "nul\0"):
        with pytest.raises(ArtifactError):
            Archive(path)
    for path in (tmp_path, pipe, tmp_path / "missing" / "a"):
        with pytest.raises(ArtifactError):
            write_archive(path, MEMBERS)


def test_a_missing_member_is_an_artifact_error(written: Path) -> None:
    with Archive(written) as archive, pytest.raises(ArtifactError, match="no member `x`"):
        archive.member("x")


def test_members_over_4_gib_use_zip64(tmp_path: Path) -> None:
    # A sparse file: the form is the writer's, the checksum is left out, and no 5 GiB are written.
    entries = [Entry("large", 5 << 30, 0), Entry("small", 4, zlib.crc32(b"data"))]
    placed = list(zipform.place_all(entries))
    directory = zipform.central_directory(placed)
    path = tmp_path / "large.gcomp"
    with path.open("wb") as file:
        for member, data in zip(placed, (b"", b"data"), strict=True):
            file.seek(member.start)
            file.write(zipform.local_header(member.entry, member.start))
            file.seek(member.data)
            file.write(data)
        file.seek(placed[-1].end)
        file.write(directory + zipform.end_records(2, placed[-1].end, len(directory)))
    with Archive(path) as archive:
        assert len(archive.member("large")) == 5 << 30
        archive.check("small")
    with zipfile.ZipFile(path) as peer:
        assert [info.file_size for info in peer.infolist()] == [5 << 30, 4]
        assert peer.read("small") == b"data"


# --- writing is all or nothing


def test_a_stream_of_the_wrong_size_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_archive(tmp_path / "a", [("x", Stream(3, [b"four"]))])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failing_system_calls_leave_the_old_file(call: str, written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = written.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(ArtifactError, match="could not be written"):
        write_archive(written, [("new", b"new")])
    monkeypatch.undo()
    assert written.read_bytes() == old
    assert os.listdir(written.parent) == [written.name]


def test_a_full_disk_at_any_byte_leaves_the_old_file(written: Path) -> None:
    old = written.read_bytes()
    new = [("new", bytes(200_000))]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for size in range(0, 200_000, 997):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
            try:
                with pytest.raises(ArtifactError):
                    write_archive(written, new)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert written.read_bytes() == old
            assert os.listdir(written.parent) == [written.name]
    finally:
        signal.signal(signal.SIGXFSZ, handler)


_KILLED = """
import os, signal, sys
from gcomp.runtime.archive import Stream, write_archive
path, old = sys.argv[1], open(sys.argv[1], "rb").read()
new = [("new", [b"piece"] * 8)]
write_archive(path + ".new", new)
expected = open(path + ".new", "rb").read()
seen = set()
for point in range(14):
    counter = 0
    def step(call, *args):
        global counter
        counter += 1
        if counter == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args)
    child = os.fork()
    if child == 0:
        for name in ("fsync", "replace"):
            setattr(os, name, (lambda call: lambda *args: step(call, *args))(getattr(os, name)))
        pieces = (step(lambda: b"piece") for _ in range(8))
        write_archive(path, [("new", Stream(40, pieces))])
        os._exit(0)
    os.waitpid(child, 0)
    now = open(path, "rb").read()
    assert now in (old, expected), point
    seen.add(now == expected)
    open(path, "wb").write(old)
assert seen == {False, True}
"""


def test_being_killed_at_any_point_leaves_the_old_or_the_new_file(written: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(written)], check=True)


def test_the_new_file_replaces_what_a_link_names(written: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(written)
    write_archive(link, [("new", b"")])
    assert link.is_symlink()
    with Archive(written) as archive:
        assert archive.names() == ("new",)
