"""Source locations: where each op comes from, kept through every rewrite and shown in every error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation

UNKNOWN = UnknownLoc()

MAX_PARTS = 16
"""How many places a fused location names."""


def named_location(name: str, inside: LocationAttr | None = None) -> LocationAttr:
    """The location of something with a name (an ONNX node, a weight)."""
    return NameLoc(StringAttr(name), NoneAttr() if inside is None else inside)


def fuse(locations: Iterable[LocationAttr], most: int | None = MAX_PARTS) -> LocationAttr:
    """One location for an op that stands for several: each distinct known part once, in order, up to `most`.

    What a thousand nodes share names the first few of them: more would make rewriting quadratic.
    """
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        for part in _parts(location):
            parts[part] = None
            if len(parts) == most:
                return FusedLoc(tuple(parts), NoneAttr())
    if not parts:
        return UNKNOWN
    return next(iter(parts)) if len(parts) == 1 else FusedLoc(tuple(parts), NoneAttr())


def _parts(location: Attribute) -> Iterator[LocationAttr]:
    if isinstance(location, FusedLoc):
        for part in cast("ArrayAttr[Attribute]", location.locations).data:
            yield from _parts(part)
    elif not isinstance(location, UnknownLoc):
        yield cast(LocationAttr, location)


def parts(location: Attribute) -> Iterator[Attribute]:
    """A location and all inside it, the outer before the inner."""
    pending = [location]
    while pending:
        part = pending.pop()
        yield part
        match part:
            case NameLoc():
                pending.append(part.location)
            case CallSiteLoc():
                pending += [part.caller, part.callee]
            case FusedLoc():
                pending += reversed(cast("ArrayAttr[Attribute]", part.locations).data)
            case _:
                pass


def places(location: Attribute) -> list[str]:
    """What a location is made of, for people."""
    return [text for part in _parts(location) if (text := describe(part))]


def describe(location: Attribute) -> str:
    """A location for people: `node 'conv1'`, `train.py:12:4`; empty when unknown."""
    match location:  # the most frequent first
        case NameLoc():
            inner = describe(location.location)
            return location.desc.data + (f" ({inner})" if inner else "")
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}:{location.column.data}"
        case CallSiteLoc():
            return f"{describe(location.callee)}, called at {describe(location.caller)}"
        case FusedLoc():
            texts = places(location)
            return " + ".join(texts[:4]) + (f" + {len(texts) - 4} more" if len(texts) > 4 else "")
        case _:
            return ""


def where(op: Operation) -> str:
    """An op for an error message: its name, and its location or the nearest known one around it."""
    around: Operation | None = op
    while around is not None:
        if text := describe(around.location):
            return f"{op.name} at {text}"
        around = around.parent_op()
    return op.name
