"""Published bugs of other compilers: wrong rewrites, each a pass in a file of its own, and wrong rows of an importer.

The first line of a file says whose the bug is and what it does, the addresses below it where it was published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.front_doors.folders import Command

FOLDER = Path(__file__).with_name("bugs")
SITE = "https://github.com/"


@dataclass(frozen=True)
class Published:
    """A bug: its project, where it was published, what it does, and the command that must find it.

    `edit` is a module of gcomp's, words of it and others in their place, where the bug is no pass of its own.
    """

    name: str
    project: str
    sources: tuple[str, ...]
    about: str
    door: Command
    edit: tuple[str, str, str] | None = None


def published() -> list[Published]:
    """All of them."""
    return [*(_of_file(path) for path in sorted(FOLDER.glob("[a-z]*.py"))), *EDITS]


def _of_file(path: Path) -> Published:
    text = path.read_text("utf-8").split('"""')[1]
    project, _, about = text.splitlines()[0].partition(": ")
    name = path.stem.replace("_", "-")
    sources = tuple(re.findall(r"https://\S+", text))
    return Published(name, project, sources, about, ("fuzz", "--pass", name, "--load", str(path)))


_IMPORT: Command = ("fuzz", "--what", "onnx")
_NORMS: Command = ("fuzz", "--pass", "raise-norms")
_ONNX, _RAISING = "gcomp.frontends.onnx.operators", "gcomp.passes.raising"

EDITS = (
    Published(
        "ort-norm-takes-any-scale", "ONNX Runtime", (f"{SITE}microsoft/onnxruntime/issues/25855",),
        "a factor is taken for the scale of a norm, also where it varies along other dimensions.", _NORMS,
        (f"{_RAISING}.raise_norms", "if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:",
         "if not bare.ordered:"),
    ),
    Published(
        "tvm-gather-negative-index", "TVM", (f"{SITE}apache/tvm/issues/19436", f"{SITE}apache/tvm/issues/19531"),
        "Gather passes negative indices on as they are.", _IMPORT,
        (f"{_ONNX}.indexing", "indices = ctx[1] if nonnegative(ctx, 1) else wrap_indices(b, ctx[1], size)",
         "indices = ctx[1]"),
    ),
    Published(
        "tvm-gather-elements-negative-index", "TVM", (f"{SITE}apache/tvm/issues/20217",),
        "GatherElements passes negative indices on as they are.", _IMPORT,
        (f"{_ONNX}.indexing", "indices = wrap_indices(ctx.b, ctx[1], ctx.shape()[axis])\n    return [take_along",
         "indices = ctx[1]\n    return [take_along"),
    ),
    Published(
        "tvm-gather-nd-negative-index", "TVM", (f"{SITE}apache/tvm/issues/20217",),
        "GatherND passes negative indices on as they are.", _IMPORT,
        (f"{_ONNX}.indexing", "indices = _wrap_vectors(b, indices, [shape[i] for i in indexed])", "pass"),
    ),
    Published(
        "tvm-one-hot-negative-index", "TVM", (f"{SITE}apache/tvm/issues/20217",),
        "OneHot takes a negative index for one that is out of range.", _IMPORT,
        (f"{_ONNX}.shape", "wrapped = b.select(b.compare(positions, b.constant(0, \"i64\"), \"LT\"), "
         "b.add(positions, b.dim(depth)), positions)", "wrapped = positions"),
    ),
    Published(
        "ort-average-of-cut-windows", "ONNX Runtime", (f"{SITE}microsoft/onnxruntime/pull/16752",),
        "with ceil_mode, a window that reaches beyond the padding is divided by its whole size.", _IMPORT,
        (f"{_ONNX}.pooling", "if not windows.ceil and (counted or not padded):", "if counted or not padded:"),
    ),
)  # fmt: skip
"""Bugs that are a few words of gcomp's own source."""
