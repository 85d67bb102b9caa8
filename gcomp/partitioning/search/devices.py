"""What a search knows of devices and of the links between them: a small file, or one of a few by name.

name = "eight GPUs"

[device]
flops = 6.0e13             # a second, on f32
narrow_flops = 9.9e14      # on 16-bit floats and narrower ones
bandwidth = 3.35e12        # bytes of memory a second
memory = 8.0e10            # bytes

[link]                     # between neighbours along an axis: any, or one by name
bandwidth = 4.5e11         # bytes a second
latency = 2.0e-6           # seconds
[links.data]
bandwidth = 5.0e10
latency = 1.0e-5
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcomp.errors import UsageError, suggest
from gcomp.records import record
from gcomp.sharding import Mesh, check_mesh


@record
class Link:
    """What connects neighbours along an axis of a mesh: bytes a second, and seconds before the first one."""

    bandwidth: float
    latency: float


@record
class Devices:
    """One device, and its links: flops and bytes a second, and bytes of memory."""

    name: str
    flops: float
    narrow_flops: float
    bandwidth: float
    memory: float
    link: Link
    links: tuple[tuple[str, Link], ...] = ()

    def link_of(self, axis: str) -> Link:
        """The link along an axis."""
        return dict(self.links).get(axis, self.link)


KNOWN: Mapping[str, Devices] = {
    d.name: d
    for d in (
        Devices("h100", 6.0e13, 9.9e14, 3.35e12, 8.0e10, Link(4.5e11, 2.0e-6)),
        Devices("a100", 1.95e13, 3.12e14, 2.0e12, 8.0e10, Link(3.0e11, 2.0e-6)),
        Devices("cpu", 1.0e11, 1.0e11, 2.0e10, 1.6e10, Link(1.0e10, 1.0e-5)),
    )
}
"""Public figures of a few, by name."""


def devices_named(text: str) -> Devices:
    """Devices by name, or from a file. UsageError where there is neither, or the file is wrong."""
    if text in KNOWN:
        return KNOWN[text]
    path = Path(text)
    if not path.is_file():
        raise UsageError(
            f"there are no devices {text!r}", why="it is neither a name nor a file", fix=suggest(text, KNOWN)
        )
    try:
        return _parsed(tomllib.loads(path.read_text("utf-8")), path.stem)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path} does not describe devices", why=f"{type(error).__name__}: {error}",
            fix="it has [device] with flops, bandwidth and memory, and [link] with bandwidth and latency",
        ) from error  # fmt: skip


def mesh_named(text: str) -> Mesh:
    """The mesh of a text like `data=2,model=4`, the major axis first. UsageError for any other text."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip().isidentifier() and size.strip().isdigit() for name, _, size in pairs):
        raise UsageError(f"{text!r} is no mesh", fix="write axes and their sizes, as in data=2,model=4")
    mesh = Mesh.of((name.strip(), int(size)) for name, _, size in pairs)
    if why := check_mesh(mesh):
        raise UsageError(f"{text!r} is no mesh", why=why)
    return mesh


def _parsed(said: Mapping[str, Any], name: str) -> Devices:
    device = said["device"]
    flops = _positive(device, "flops")
    return Devices(
        str(said.get("name", name)),
        flops,
        _positive(device, "narrow_flops") if "narrow_flops" in device else flops,
        _positive(device, "bandwidth"),
        _positive(device, "memory"),
        _link(said["link"]),
        tuple([(axis, _link(link)) for axis, link in said.get("links", {}).items()]),
    )


def _link(said: Mapping[str, Any]) -> Link:
    return Link(_positive(said, "bandwidth"), float(said["latency"]))


def _positive(said: Mapping[str, Any], key: str) -> float:
    value = float(said[key])
    if not value > 0:
        raise ValueError(f"{key} is {value}")
    return value
