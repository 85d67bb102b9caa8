"""Exports an architecture with torch.export, compiles it, and compares it with torch itself; runs in a worker.

No file lies between: the exported program is compiled. Results are compared with the module's own in float32, and both
with the module's in float64.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from gcomp.errors import GcompError
from tests.conformance import peer
from tests.conformance.architecture_check import Outcome
from tests.conformance.architecture_export import Flat, build, expected, inputs
from tests.conformance.architecture_table import ARCHITECTURES, Architecture

Array = np.ndarray[Any, Any]


def check(arch: Architecture, mode: str, target: str) -> Outcome:
    """Export, compile, run with the sizes of the export and, where sizes are dynamic, with others; compare.

    `mode` is dynamic, where sizes that have names stay symbolic, or static, where every size is the example's.
    """
    import gcomp

    outcome = Outcome(arch.name, mode, "missing")
    model = Flat(build(arch), arch).eval()
    try:
        exported = export(copy.deepcopy(model), arch, mode)  # some keep what they compute, which is fake here
    except Exception as error:
        outcome.why = f"not exported: {type(error).__name__}: {_joined(error)}"
        return outcome
    try:
        outcome.stage = "exported"
        program = gcomp.import_model(exported)
        outcome.stage = "imported"
        compiled = gcomp.compile(program, target=target)
        outcome.stage, outcome.host = "compiled", peer.host_steps(compiled)
        saved = expected(model, arch)
        for case, sizes in enumerate((arch.example, arch.other)[: 2 if mode == "dynamic" else 1]):
            args = [torch.from_numpy(array) for array in inputs(arch, sizes, case).values()]
            if case and _refused(exported, args):
                outcome.notes.append("torch's exported program takes the sizes of the export only")
            elif not _compare(outcome, model, compiled, args, saved, case):
                return outcome
        outcome.stage = "matched"
    except GcompError as error:
        outcome.why = f"{type(error).__name__}: {_joined(error)}"
    except Exception as error:
        outcome.why = f"crash: {type(error).__name__}: {str(error)[:300]}"
    return outcome


def export(model: torch.nn.Module, arch: Architecture, mode: str) -> Any:
    """The exported program."""
    args = tuple(torch.from_numpy(a) for a in inputs(arch, arch.example, 0).values())
    auto = torch.export.Dim.AUTO
    dynamic = [{i: auto for i, s in enumerate(spec.shape) if isinstance(s, str)} for spec in arch.inputs.values()]
    with torch.no_grad():
        return torch.export.export(model, args, dynamic_shapes=(tuple(dynamic),) if mode == "dynamic" else None)


def _refused(exported: Any, args: Sequence[Any]) -> bool:
    """Whether the exported program itself, run by torch, refuses these arguments."""
    try:
        with torch.no_grad():
            exported.module()(*args)
    except Exception:
        return True
    return False


def _compare(
    outcome: Outcome, model: Any, compiled: Any, args: Sequence[Any], saved: Mapping[str, Array], case: int
) -> bool:
    with torch.no_grad():
        want = [t.numpy() for t in model(*args)]
    results: Sequence[Any] = compiled(*args)
    got = [t.numpy() for t in results]
    outcome.stage = "ran"
    wide = [saved[f"out{case}.{i}"] for i in range(len(saved)) if f"out{case}.{i}" in saved]
    ours = peer.errors(got, want)
    exact, theirs = (peer.errors(got, wide), peer.errors(want, wide)) if wide else (None, None)
    outcome.against_peer = max(outcome.against_peer or 0.0, ours)
    if exact is not None and theirs is not None:
        outcome.against_float64 = max(outcome.against_float64 or 0.0, exact)
        outcome.peer_against_float64 = max(outcome.peer_against_float64 or 0.0, theirs)
    if not peer.agrees(ours, theirs, exact, peer.tolerance(want)):
        shapes = [f"{a.dtype}{list(a.shape)}" for a in got], [f"{a.dtype}{list(a.shape)}" for a in want]
        outcome.why = f"wrong at sizes {case}: error {ours:.2g} against torch, {theirs} of torch and {exact} of gcomp"
        outcome.why += f" against float64; {shapes[0]}, expected {shapes[1]}" if shapes[0] != shapes[1] else ""
        return False
    outcome.sizes += 1
    return True


def _joined(error: Exception) -> str:
    return " / ".join(line.strip() for line in str(error).splitlines() if line.strip())[:600]


def main(name: str, mode: str, target: str) -> int:
    """Print the outcome as one line of JSON."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    arch = next(a for a in ARCHITECTURES if a.name == name)
    sys.stdout.write(json.dumps(asdict(check(arch, mode, target))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
