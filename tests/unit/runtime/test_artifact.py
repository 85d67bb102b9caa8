"""Artifacts as a whole: same bytes for the same input, and no damage goes unnoticed."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gcomp.errors import ArtifactError, GcompError, UsageError
from gcomp.runtime.archive import write_archive
from gcomp.runtime.artifact import MANIFEST, WEIGHTS, open_artifact, write_artifact
from gcomp.runtime.manifest import FORMAT_VERSION, MemorySpec, SymbolSpec, parse_manifest
from tests.unit.runtime.artifacts import ARRAYS, MEMBERS, manifest_for, specs_of, write_sample


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcomp"
    write_sample(path)
    return path


@pytest.mark.parametrize("verify", [False, True])
def test_what_is_written_is_read(verify: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.gcomp"
    manifest = write_sample(path)
    with open_artifact(path, verify=verify) as artifact:
        assert artifact.manifest == manifest
        assert {name: bytes(artifact.member(name)) for name in MEMBERS} == MEMBERS
        weights = artifact.weights
    assert weights is not None
    assert {name: array.tobytes() for name, array in weights.items()} == {
        name: array.tobytes() for name, array in ARRAYS.items()
    }


def test_an_artifact_may_have_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "a.gcomp"
    write_artifact(path, manifest_for(()), {}, {})
    with open_artifact(path) as artifact:
        assert artifact.weights is None


def test_bytes_depend_neither_on_the_path_nor_on_the_hash_seed(written: Path, tmp_path: Path) -> None:
    code = "import sys; from tests.unit.runtime.artifacts import write_sample; write_sample(sys.argv[1])"
    for seed in ("1", "2"):
        other = tmp_path / f"other-{seed}"
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        subprocess.run([sys.executable, "-c", code, other], check=True, env=environment)
        assert other.read_bytes() == written.read_bytes()


@pytest.mark.parametrize("verify", [False, True])
def test_no_flipped_byte_and_no_truncation_goes_unnoticed(verify: bool, written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    broken = tmp_path / "broken"
    # Every byte with `verify`; without, a sample of each region.
    for place in range(0, len(whole), 1 if verify else 5):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        broken.write_bytes(flipped)
        with pytest.raises(ArtifactError):
            artifact = open_artifact(broken, verify=verify)
            assert not verify, f"byte {place}"
            assert artifact.weights is not None
            artifact.weights.verify()
    for length in range(0, len(whole), 37):
        broken.write_bytes(whole[:length])
        with pytest.raises(ArtifactError):
            open_artifact(broken, verify=verify)


def test_without_verify_damaged_weights_are_refused_when_used(written: Path, tmp_path: Path) -> None:
    with open_artifact(written) as artifact:
        data = bytes(artifact.member(WEIGHTS))
    whole = written.read_bytes()
    place = whole.index(data) + data.rindex(ARRAYS["w"].tobytes())
    broken = tmp_path / "broken"
    broken.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
    with open_artifact(broken) as artifact:
        assert artifact.weights is not None
        assert artifact.weights["scalar"] == 3
        with pytest.raises(ArtifactError):
            artifact.weights["w"]
    with pytest.raises(ArtifactError):
        open_artifact(broken, verify=True)


def _raw_members(path: Path) -> dict[str, bytes]:
    with open_artifact(path) as artifact:
        return {name: bytes(artifact.member(name)) for name in artifact.archive.names()}


@pytest.mark.parametrize(
    "change",
    [
        lambda members: {**members, "extra": b""},
        lambda members: {"extra": b"", **members},
        lambda members: {name: data for name, data in members.items() if name != MANIFEST},
        lambda members: {name: data for name, data in members.items() if name != WEIGHTS},
        lambda members: {name: data for name, data in members.items() if name != "plan.json"},
        lambda members: dict(reversed(members.items())),
        lambda members: {**members, "plan.json": b'{"steps":[1]}'},
        lambda members: {**members, MANIFEST: members[MANIFEST] + b"\n"},
        lambda members: {**members, MANIFEST: b"{}"},
        lambda members: {**members, MANIFEST: b""},
    ],
)
def test_well_formed_archives_that_are_no_artifacts_are_refused(change: Any, written: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_archive(other, list(change(_raw_members(written)).items()))
    with pytest.raises(ArtifactError):
        open_artifact(other)


def test_another_format_version_is_named(written: Path, tmp_path: Path) -> None:
    members = _raw_members(written)
    members[MANIFEST] = members[MANIFEST].replace(f'"format_version":{FORMAT_VERSION}'.encode(), b'"format_version":99')
    other = tmp_path / "other"
    write_archive(other, list(members.items()))
    with pytest.raises(ArtifactError, match="format version 99"):
        open_artifact(other)


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": "alias", "value": 1},
        {"inputs": "donated", "value": False},
        {"inputs": "dtype", "value": "float"},
        {"inputs": "dims", "value": ("seq",)},
        {"inputs": "dims", "value": ("batch*",)},
        {"inputs": "dims", "value": ("-1",)},
        {"weights": "argument", "value": 2},
        {"weights": "argument", "value": 0},  # an input, which has no state
        {"inputs": "state", "value": 0},  # a state of no fixed shape
        {"inputs": "state", "value": 1},
        {"weights": "sha256", "value": "F" * 64},
        {"weights": "dims", "value": (-1,)},
    ],
)
def test_manifests_that_contradict_themselves_are_refused(change: dict[str, Any]) -> None:
    manifest = manifest_for(specs_of(ARRAYS))
    (table, field), value = next(iter(change.items())), change["value"]
    rows = getattr(manifest, table)
    bad = dataclasses.replace(manifest, **{table: (dataclasses.replace(rows[0], **{field: value}), *rows[1:])})
    with pytest.raises(ArtifactError, match="not valid"):
        parse_manifest(bad.to_json(), "test")


@pytest.mark.parametrize(
    "fields",
    [
        {"symbols": {"batch": SymbolSpec(64, 1, 1)}},
        {"symbols": {"batch": SymbolSpec(-1, 1, 1)}},
        {"symbols": {"batch": SymbolSpec(1, 1, 0)}},
        {"symbols": {}},
        {"memory": MemorySpec(None, "16*other", "test")},
        {"memory": MemorySpec(-1, None, "test")},
    ],
)
def test_manifests_with_impossible_sizes_are_refused(fields: dict[str, Any]) -> None:
    bad = dataclasses.replace(manifest_for(()), **fields)
    with pytest.raises(ArtifactError, match="not valid"):
        parse_manifest(bad.to_json(), "test")


@pytest.mark.parametrize(
    ("manifest", "members", "arrays"),
    [
        (manifest_for(()), {MANIFEST: b""}, {}),
        (manifest_for(()), {}, ARRAYS),
        (manifest_for(specs_of(ARRAYS)), {}, {}),
        (dataclasses.replace(manifest_for(()), result=float("nan")), {}, {}),
        (dataclasses.replace(manifest_for(()), result="\ud800"), {}, {}),
        (dataclasses.replace(manifest_for(()), segments=({"x": {1}},)), {}, {}),
    ],
)
def test_parts_that_do_not_agree_are_not_written(manifest: Any, members: Any, arrays: Any, tmp_path: Path) -> None:
    with pytest.raises(GcompError) as caught:
        write_artifact(tmp_path / "a", manifest, members, arrays)
    assert isinstance(caught.value, (UsageError, ArtifactError))
    assert list(tmp_path.iterdir()) == []


def test_errors_say_what_where_why_and_what_next(written: Path) -> None:
    written.write_bytes(written.read_bytes()[:-1])
    with pytest.raises(ArtifactError) as caught:
        open_artifact(written)
    error = caught.value
    assert all((error.what, error.where, error.why, error.fix))
    assert str(written) in str(error)
