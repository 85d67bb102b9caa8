"""The folders that transform, their modules, and the front doors that judge each: commands of `gcomp`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gcomp
from gcomp.passes.registry import all_passes
from gcomp.testing.fuzz.doors import door_names, judge_of

Command = tuple[str, ...]

FUZZ: Command = ("fuzz",)


@dataclass(frozen=True)
class Folder:
    """Modules that do one thing. `doors` judge them; those of a module of passes are its own passes' in their place."""

    name: str
    doors: tuple[Command, ...]
    files: tuple[str, ...] = ("**/*.py",)
    leave_out: tuple[str, ...] = ()
    is_passes: bool = False

    def modules(self, root: Path) -> dict[str, str]:
        """The sources in a checkout, by module."""
        top = root / "gcomp"
        paths = sorted({path for pattern in self.files for path in (top / self.name).glob(pattern)})
        return {
            _module(path.relative_to(root)): path.read_text("utf-8")
            for path in paths
            if path.name != "__init__.py" and path.name not in self.leave_out
        }


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def is_open(command: Command) -> bool:
    """Whether there is such a command."""
    return "--what" not in command or command[command.index("--what") + 1] in door_names()


def _what(name: str, *others: Command) -> tuple[Command, ...]:
    """The door of a name, or the commands that there were before it; none where there is neither."""
    door = (*FUZZ, "--what", name)
    return (door,) if is_open(door) else others


_TILE: Command = (*FUZZ, "--target", "tile")
_PAIRS: Command = (*FUZZ, "--pass", "complex-to-pairs")
_PLANS: Command = (*FUZZ, "--pipeline", "inline,fuse,order-for-memory,rematerialize,plan-memory")
_SIZES = ("plan.py", "buckets.py", "bucketed.py", "checks.py", "template.py", "signature.py", "inputs.py",
          "xla/padded.py")  # fmt: skip
"""Of the runtime, what computes sizes and plans."""

FOLDERS = (
    Folder("passes", (FUZZ,), ("*/*.py", "rewriting.py", "composing.py", "inlining.py", "flow.py"), is_passes=True),
    Folder("decompositions", ((*FUZZ, "--pass", "decompose"), (*FUZZ, "--pass", "expand-chlo"), _PAIRS)),
    Folder("autodiff", _what("autodiff")),
    Folder("padding", _what("padding")),
    Folder("pairs", (_PAIRS,)),
    Folder("memory", _what("memory", _PLANS)),
    Folder("analysis/indexing", (*_what("indexing"), *_what("tile", _TILE))),
    Folder("analysis/fusion", (*_what("fusion"), (*FUZZ, "--pass", "fuse"), *_what("tile", _TILE))),
    Folder("lowering/xla", ((*FUZZ, "--target", "xla:cpu"), *_what("runtime"))),
    Folder("lowering/tiles", (*_what("tile", _TILE), *_what("printed"), *_what("machine"))),
    Folder("lowering/llvm", (*_what("machine"), *_what("processor")), leave_out=("codegen.py", "threads.py")),
    Folder("lowering/triton", (*_what("tile", _TILE), *_what("printed")),
           leave_out=("aot.py", "cache.py", "package.py", "process.py", "worker.py", "timing.py", "tuning.py",
                      "hsaco.py")),  # reads AMD's code objects: what it says can be judged on such a device alone
    Folder("frontends/onnx", (*_what("onnx"), *_what("files")), leave_out=("backend.py",)),
    Folder("frontends/jaxpr", _what("jaxpr")),
    Folder("frontends/fx", (*_what("torch"), *_what("files"))),
    Folder("runtime", _what("runtime"), _SIZES),
    Folder("runtime/cpu", _what("processor")),
    Folder("targets", _what("processor"), ("cpu.py",)),
)  # fmt: skip


def doors_of(folder: Folder, module: str) -> Sequence[Command]:
    """The doors that judge a module."""
    if not folder.is_passes:
        first = judge_of(Path(gcomp.__file__).parents[1] / f"{module.replace('.', '/')}.py")
        doors = folder.doors if first is None else ((*FUZZ, *first), *folder.doors)
        return [*dict.fromkeys(doors)]
    named = [name for name, cls in all_passes().items() if cls.__module__ == module] or list(_users(module))
    return [(*FUZZ, "--pass", name) for name in named[:_MOST]] or folder.doors


_MOST = 2
"""Of the passes that use a module which has none, so many judge it: the time is shared."""


@cache
def _users(module: str) -> tuple[str, ...]:
    """The passes whose modules import from one."""
    return tuple(name for name, cls in all_passes().items() if module in set(_imports(cls.__module__)))


def _imports(module: str) -> Iterator[str]:
    import sys

    source = Path(str(sys.modules[module].__file__)).read_text("utf-8")
    yield from re.findall(r"^from (\S+) import", source, re.M)
