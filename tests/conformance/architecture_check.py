"""Imports, compiles and runs one exported architecture, and compares it with ONNX Runtime; runs in a worker."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance import peer

Array = np.ndarray[Any, Any]


@dataclass
class Outcome:
    """How far a model came: `stage` is the last that succeeded, `why` says what stopped it."""

    name: str
    exporter: str
    stage: str = "exported"
    why: str = ""
    against_peer: float | None = None
    against_float64: float | None = None
    peer_against_float64: float | None = None
    host: list[str] = field(default_factory=list[str])
    sizes: int = 0
    notes: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str:
        """How it ended, as cases of other suites do."""
        if self.stage in ("matched", "missing"):
            return "passed" if self.match_dims else "not exported"
        return "unsupported" if self.why.startswith("UnsupportedError") else "wrong or crashed"

    @property
    def detail(self) -> str:
        """Why it did not come further."""
        return self.why

    @property
    def match_dims(self) -> bool:
        """Whether every result was right."""
        return self.stage == "matched"


EXPORT_DIFFERS = 1e-2
"""An error of ONNX Runtime against torch's float64 result that no roundings explain: the exporter changed the model."""
STAGES = ("missing", "exported", "imported", "compiled", "ran", "matched")


def check(path: Path, name: str, exporter: str, target: str) -> Outcome:
    """Import, compile, run with both sets of sizes, compare."""
    import gcomp
    from gcomp.errors import GcompError

    outcome = Outcome(name, exporter)
    saved = np.load(path.parent / f"{name}.npz")
    try:
        program = gcomp.import_model(str(path))
        outcome.stage = "imported"
        model = gcomp.compile(program, target=target)
        outcome.stage, outcome.host = "compiled", peer.host_steps(model)
        for case in range(2):
            if not _compare(outcome, model, path, saved, case):
                return outcome
        outcome.stage = "matched"
    except GcompError as error:
        outcome.why = f"{type(error).__name__}: {_joined(error, path)}"
        if outcome.stage == "exported" and _invalid(path, saved):
            outcome.stage, outcome.why = "missing", f"not a valid export, ONNX Runtime refuses it too: {outcome.why}"
    except Exception as error:
        outcome.why = f"crash: {type(error).__name__}: {str(error)[:300]}"
    return outcome


def _invalid(path: Path, saved: Mapping[str, Array]) -> bool:
    """Whether ONNX Runtime does not run the model either, at the sizes that it was exported with."""
    arrays = {k.partition(".")[2]: saved[k] for k in saved if k.startswith("in0.")}
    try:
        peer.Peer(str(path))(arrays)
    except Exception:
        return True
    return False


def _compare(outcome: Outcome, model: Any, path: Path, saved: Mapping[str, Array], case: int) -> bool:
    """Run one case. Whether to go on: results that are right, or that nobody can tell."""
    arrays = {k.partition(".")[2]: saved[k] for k in saved if k.startswith(f"in{case}.")}
    wide = [saved[f"out{case}.{i}"] for i in range(len(saved)) if f"out{case}.{i}" in saved]
    want = _peer(outcome, path, arrays, case)
    if want is None and case:
        return True  # the export is one for the example's sizes only, or not a model that ONNX Runtime takes
    got = list(model(**{spec.name: arrays[spec.name] for spec in model.inputs}))
    outcome.stage = "ran"
    exact = peer.errors(got, wide) if wide else None
    theirs = peer.errors(want, wide) if want is not None and wide else None
    ours = peer.errors(got, want) if want is not None else exact
    if ours is None:
        outcome.why = "nothing to compare with: ONNX Runtime refuses the model, and torch has no float64 result"
        return False
    outcome.against_peer = max(outcome.against_peer or 0.0, ours)
    if exact is not None and theirs is not None and theirs < EXPORT_DIFFERS:
        outcome.against_float64 = max(outcome.against_float64 or 0.0, exact)
        outcome.peer_against_float64 = max(outcome.peer_against_float64 or 0.0, theirs)
    elif theirs is not None:
        outcome.notes.append(f"not torch's model: at sizes {case} ONNX Runtime is as far from torch as gcomp")
    if not peer.agrees(ours, theirs, exact, peer.tolerance(want if want is not None else got)):
        shapes = [f"{a.dtype}{list(a.shape)}" for a in got], [f"{a.dtype}{list(a.shape)}" for a in want or wide]
        outcome.why = f"wrong at sizes {case}: error {ours:.2g} against ONNX Runtime"
        outcome.why += f", {theirs} of ONNX Runtime and {exact} against float64" if exact is not None else ""
        outcome.why += f"; {shapes[0]}, expected {shapes[1]}" if shapes[0] != shapes[1] else ""
        return False
    outcome.sizes += 1
    return True


def _peer(outcome: Outcome, path: Path, arrays: Mapping[str, Array], case: int) -> list[Array] | None:
    try:
        return peer.Peer(str(path))(arrays)
    except Exception as error:
        outcome.notes.append(f"ONNX Runtime refuses sizes {case}: {_joined(error, path)[:160]}")
        return None


def _joined(error: Exception, path: Path) -> str:
    """The error in one line, without the folder that the model lies in."""
    text = str(error).replace(str(path), path.name)
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())[:600]


def main(path: str, name: str, exporter: str, target: str) -> int:
    """Print the outcome as one line of JSON."""
    outcome = check(Path(path), name, exporter, target)
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
