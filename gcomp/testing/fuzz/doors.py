"""The doors of `gcomp fuzz --what`, by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import gcomp
from gcomp.errors import UnsupportedError, UsageError
from gcomp.passes.registry import all_passes

if TYPE_CHECKING:
    from gcomp.testing.fuzz.door import Door

PASSES = "passes"
"""What is fuzzed where nothing is said; it is no door of this table, as its options are its own."""


_MODULES = {
    "frontend": ("frontend", "Frontend"),
    "onnx": ("frontend", "Onnx"),
    "jaxpr": ("frontend", "Jaxpr"),
    "torch": ("frontend", "Torch"),
    "files": ("frontend", "Files"),
    "autodiff": ("autodiff", "Autodiff"),
    "padding": ("padding", "Padding"),
    "memory": ("memory", "Memory"),
    "indexing": ("indexing", "Indexing"),
    "fusion": ("fusion", "Fusion"),
    "tile": ("tile", "Tile"),
    "printed": ("printed", "Printed"),
    "machine": ("machine", "MachineDoor"),
    "runtime": ("runtime", "Runtime"),
    "processor": ("processor", "Processor"),
    "mesh": ("mesh", "OnMesh"),
}
"""Name -> its module and its class: loaded when it is asked for. A frontend alone is a part of `frontend`."""

OF_PASSES = {"vjp": "autodiff", "jvp": "autodiff", "pad-dims": "padding"}
"""Passes that make another program: what their door is."""

OF_FOLDERS: Mapping[str, str] = {
    "decompositions": "--pass decompose", "decompositions/scan.py": "--what autodiff",
    "pairs": "--pass complex-to-pairs", "analysis/fusion": "--what fusion",
    "analysis/indexing": "--what indexing", "autodiff": "--what autodiff", "padding": "--what padding",
    "memory": "--what memory", "passes/memory": "--what memory", "lowering/xla": "--target xla:cpu",
    "lowering/tiles": "--what tile", "lowering/triton": "--what tile", "lowering/llvm": "--what machine",
    "lowering/tiles/expanding": "--what machine",
    **{f"lowering/llvm/{name}": "--what processor" for name in (
        "clibrary", "codegen.py", "elf.py", "emitter.py", "entry.py", "image.py", "lower.py", "moving.py", "process.py",
        "relocations.py", "sizes.py", "threads.py",
    )},
    "frontends/onnx": "--what onnx",
    "frontends/jaxpr": "--what jaxpr", "frontends/fx": "--what torch", "frontends/fx/files.py": "--what files",
    "runtime": "--what runtime",
    "runtime/cpu": "--what processor", "targets": "--what processor",
    "partitioning": "--what mesh", "passes/sharding": "--what mesh",
}  # fmt: skip
"""What judges the folders (and some files) of gcomp that transform: the option of `gcomp fuzz`, where none is given."""


def judge_of(path: Path) -> tuple[str, str] | None:
    """What judges a file of gcomp, as an option and its value: the first of its passes, or what its folder says."""
    for name, step in all_passes().items():
        module = sys.modules.get(step.__module__)
        if module is not None and Path(str(module.__file__)).resolve() == path and step.keeps_meaning:
            return "--pass", name
    for folder in (path, *path.parents):
        if path.is_relative_to(_PACKAGE) and (words := OF_FOLDERS.get(folder.relative_to(_PACKAGE).as_posix())):
            option, value = words.split()
            return option, value
        if folder == _PACKAGE:
            return None
    return None


_PACKAGE = Path(gcomp.__file__).resolve().parent


def door_names() -> list[str]:
    """What `--what` takes."""
    return [PASSES, *_MODULES]


@cache
def door_of(name: str) -> Door:
    """The door of a name. UsageError for another name, UnsupportedError where it cannot be tried here.

    `machine:aarch64` is that of machine code for another processor.
    """
    plain, _, processor = name.partition(":")
    if plain not in _MODULES or (processor and plain != "machine"):
        raise UsageError(f"there is no {name!r} to fuzz", fix=f"--what is one of {', '.join(door_names())}")
    module, kind = _MODULES[plain]
    made = getattr(import_module(f"gcomp.testing.fuzz.{module}"), kind)
    door: Door = made(processor) if processor else made()
    if why := door.missing():
        raise UnsupportedError(f"{name} cannot be fuzzed here", why=why)
    return door
