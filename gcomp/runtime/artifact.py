"""An artifact as a whole: its archive, its manifest, and the rule for when each member is checked."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gcomp.errors import ArtifactError, UsageError
from gcomp.records import record
from gcomp.runtime.archive import Archive, Stream, beside, bytes_of, damage_error, stream_of, write_archive
from gcomp.runtime.manifest import Manifest, MemberSpec, check_manifest, parse_manifest
from gcomp.runtime.strict_json import MAX_BYTES, JsonError
from gcomp.runtime.weights import Array, Weights, weights_stream

if TYPE_CHECKING:
    from typing_extensions import Buffer

MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"


def write_artifact(
    path: str | os.PathLike[str],
    manifest: Manifest,
    members: Mapping[str, Buffer | Sequence[Buffer]],
    weights: Mapping[str, Array],
) -> Manifest:
    """Writes an artifact and returns its manifest with the table of members filled in.

    `weights` holds the arrays that `manifest.weights` describes. Everything is hashed while it is written, so
    no weight is read or held twice. Raises ArtifactError if the file cannot be written, UsageError if the
    parts do not agree.
    """
    if reserved := {MANIFEST, WEIGHTS}.intersection(members):
        raise UsageError(f"Members may not be named {sorted(reserved)}.")
    if {spec.name for spec in manifest.weights} != set(weights):
        raise UsageError("The manifest's table of weights does not name the arrays given.")
    streams = {name: stream_of(content) for name, content in members.items()}
    if weights:
        streams[WEIGHTS] = weights_stream(manifest.weights, weights)
    writer = _Writer(manifest, streams)
    write_archive(path, writer.members())
    return writer.manifest


class _Writer:
    """Yields the members in order, hashing them on their way; the manifest with the hashes comes last."""

    def __init__(self, manifest: Manifest, streams: Mapping[str, Stream]) -> None:
        self.manifest = manifest
        self._streams = streams

    def members(self) -> Iterator[tuple[str, Stream]]:
        specs: dict[str, MemberSpec] = {}
        for name, stream in sorted(self._streams.items()):
            digest = hashlib.sha256()
            yield name, Stream(stream.size, self._hashed(stream, digest.update))
            specs[name] = MemberSpec(stream.size, digest.hexdigest())
        self.manifest = dataclasses.replace(self.manifest, members=specs)
        try:
            check_manifest(self.manifest)
        except JsonError as error:
            raise UsageError("The manifest contradicts itself.", why=str(error)) from error
        text = self.manifest.to_json()
        # What can be written must be readable.
        parse_manifest(text, MANIFEST)
        yield MANIFEST, Stream(len(text), [text])

    def _hashed(self, stream: Stream, update: Callable[[memoryview], None]) -> Iterator[memoryview]:
        for buffer in stream.buffers:
            view = bytes_of(buffer)
            with beside(lambda view=view: update(view), view):
                yield view


@record
class Artifact:
    """An open artifact. Closing it lets go of the file; arrays that were handed out stay valid."""

    archive: Archive
    manifest: Manifest
    weights: Weights | None

    def member(self, name: str) -> memoryview:
        """The bytes of a member, read-only, without a copy."""
        return self.archive.member(name)

    def close(self) -> None:
        self.archive.close()

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_artifact(path: str | os.PathLike[str], *, verify: bool = False) -> Artifact:
    """Opens an artifact and checks it: each weight when it is first used, every other byte now.

    With `verify`, the weights too are checked now. Raises ArtifactError if the file cannot be read, or
    differs in any way from what was written.
    """
    archive = Archive(path)
    try:
        manifest = _read_manifest(archive)
        for name, spec in manifest.members.items():
            if len(archive.member(name)) != spec.size:
                raise damage_error(archive.path, f"`{name}` has another size than its manifest says")
            if verify or name != WEIGHTS:
                _check_member(archive, name, spec)
        weights = None
        if WEIGHTS in manifest.members:
            weights = Weights(archive.member(WEIGHTS), manifest.weights, archive.path)
            if verify:
                weights.verify()
        elif manifest.weights:
            raise damage_error(archive.path, "its weights are missing")
    except BaseException:
        archive.close()
        raise
    return Artifact(archive, manifest, weights)


def _check_member(archive: Archive, name: str, spec: MemberSpec) -> None:
    archive.check(name)
    if archive.sha256(name) != spec.sha256:
        raise damage_error(archive.path, f"`{name}` does not match its SHA-256")


def _read_manifest(archive: Archive) -> Manifest:
    names = archive.names()
    if not names or names[-1] != MANIFEST:
        raise damage_error(archive.path, "it does not end with a manifest")
    if len(archive.member(MANIFEST)) > MAX_BYTES:
        raise ArtifactError("The artifact's manifest is too large.", where=archive.path)
    archive.check(MANIFEST)
    manifest = parse_manifest(bytes(archive.member(MANIFEST)), f"{archive.path}: {MANIFEST}")
    if list(names[:-1]) != sorted(manifest.members):
        raise damage_error(archive.path, "its members are not those that its manifest lists")
    return manifest
