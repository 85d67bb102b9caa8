"""Twenty wrong passes and ten right ones: `python -m tests.gallery` asks `gcomp try` about each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.mutants.published.catalog import FOLDER, published

ROOT = Path(__file__).parents[2]
RIGHT = ROOT / "examples" / "passes" / "right.py"

WRONG = (
    "xla-log-of-exp", "xla-sqrt-of-square", "xla-divide-by-sqrt", "xla-nested-update", "xla-pad-into-reduce-window",
    "xla-dynamic-slice-of-dynamic-slice", "tvm-divide-to-multiply", "tvm-quotient-of-sum", "tvm-scale-before-relu",
    "tvm-constants-gathered", "tvm-cast-to-bool-removed", "tvm-remainder-of-multiple", "inductor-zero-times",
    "inductor-half-cast-removed", "inductor-addmm-factors", "onnx-consecutive-transposes", "onnx-pad-into-pool",
    "ort-cast-to-integer-removed", "mlir-true-is-minus-one", "iree-sign-of-nan",
)  # fmt: skip
"""Published bugs of XLA, TVM, Inductor, ONNX's optimizer, ONNX Runtime, MLIR and IREE."""


@dataclass(frozen=True)
class Exhibit:
    """A pass: its file and name, what it does, where it comes from, and whether it is right."""

    name: str
    file: Path
    about: str
    source: str
    is_right: bool


def exhibits() -> list[Exhibit]:
    """All thirty, the wrong ones first."""
    known = {one.name: one for one in published()}
    wrong = [
        Exhibit(name, FOLDER / f"{name.replace('-', '_')}.py", known[name].about, known[name].sources[0], False)
        for name in WRONG
    ]
    return [*wrong, *_right()]


def _right() -> list[Exhibit]:
    from gcomp.passes.registry import all_passes, load_passes

    found = []
    for name in load_passes(RIGHT):
        about = (all_passes()[name].__doc__ or "").strip()
        if name.startswith("right-"):
            found.append(Exhibit(name, RIGHT, about, "", True))
    return found
