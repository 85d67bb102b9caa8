"""The doors of `gcomp fuzz --what`, by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from gcomp.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from gcomp.testing.fuzz.door import Door

PASSES = "passes"
"""What is fuzzed where nothing is said; it is no door of this table, as its options are its own."""


_MODULES = {
    "frontend": ("frontend", "Frontend"),
    "onnx": ("frontend", "Onnx"),
    "jaxpr": ("frontend", "Jaxpr"),
    "torch": ("frontend", "Torch"),
    "autodiff": ("autodiff", "Autodiff"),
    "padding": ("padding", "Padding"),
    "memory": ("memory", "Memory"),
    "indexing": ("indexing", "Indexing"),
    "tile": ("tile", "Tile"),
    "printed": ("printed", "Printed"),
    "runtime": ("runtime", "Runtime"),
}
"""Name -> its module and its class: loaded when it is asked for. A frontend alone is a part of `frontend`."""

OF_PASSES = {"vjp": "autodiff", "jvp": "autodiff", "pad-dims": "padding"}
"""Passes that make another program: what their door is."""


def door_names() -> list[str]:
    """What `--what` takes."""
    return [PASSES, *_MODULES]


@cache
def door_of(name: str) -> Door:
    """The door of a name. UsageError for another name, UnsupportedError where it cannot be tried here."""
    if name not in _MODULES:
        raise UsageError(f"there is no {name!r} to fuzz", fix=f"--what is one of {', '.join(door_names())}")
    module, kind = _MODULES[name]
    door: Door = getattr(import_module(f"gcomp.testing.fuzz.{module}"), kind)()
    if why := door.missing():
        raise UnsupportedError(f"{name} cannot be fuzzed here", why=why)
    return door
