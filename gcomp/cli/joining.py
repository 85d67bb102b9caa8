"""Several processes that run one artifact for a mesh: how a command takes part."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from gcomp.errors import GcompError, InternalError, UsageError
from gcomp.runtime.artifact import MANIFEST, open_artifact
from gcomp.runtime.plan import steps_from_json


@contextmanager
def taking_part(artifact: Path, coordinator: str | None, processes: int, number: int, seconds: int) -> Generator[None]:
    """Join the other processes; what fails then ends this one at once. Alone, where there is no coordinator.

    Raises UsageError where the artifact is for one device, or the others are not there in time.
    """
    if coordinator is None:
        if processes > 1 or number:
            raise UsageError("processes find each other at a coordinator", fix="give --coordinator HOST:PORT")
        yield
        return
    from gcomp.runtime.xla.joining import Member, end_at_once, join

    member = Member(coordinator, processes, number, seconds)
    member.address()
    join(member, *_mesh_of(artifact))
    try:
        yield
    except GcompError as error:
        end_at_once(2 if isinstance(error, UsageError) else 3 if isinstance(error, InternalError) else 1)
        raise


def _mesh_of(path: Path) -> tuple[str, int, str]:
    """Of which platform and how many devices an artifact is for, and a digest of all that it holds."""
    if path.suffix != ".gcomp":
        fix = "compile it first: gcomp compile MODEL --mesh data=4 --sharding x=data"
        raise UsageError(f"{path} is not an artifact", why="all processes run one", fix=fix)
    with open_artifact(path) as artifact:
        _, returned = steps_from_json(artifact.manifest.segments, str(path))
        digest = hashlib.sha256(artifact.member(MANIFEST)).hexdigest()
    if not returned.mesh:
        raise UsageError(f"{path} is for one device", fix="compile it with --mesh data=4 --sharding x=data")
    platform = artifact.manifest.target.partition(":")[2]
    return platform, math.prod(axis.size for axis in returned.mesh), digest


__all__ = ["taking_part"]
