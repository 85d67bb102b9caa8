"""Public models with trained weights: imported, compiled, run, and compared with ONNX Runtime.

    python -m tests.conformance.real_models [NAME] [--models FOLDER]

The models are data beside the project (see SOURCE.md in their folder), not part of it: what is absent is skipped, and
said to be; with none at all the exit status is 77. Inputs are seeded. Where dims are symbolic, several sizes are run.
Recurrent models run for 20 steps: each engine gets its own states back. A result is right if it differs from ONNX
Runtime's by at most 2e-5 of the output's scale in f32 (20 times that where states are fed back), or if its error
against float64 is at most twice ONNX Runtime's. Of a quantized model, results lie at most two steps of an 8-bit output
apart from ONNX Runtime's without its fusions (with them it differs from the model as it is written by more, as the last
column says), or are as near as those to the reference interpreter's, which sums quantized values exactly: in f32 sums
of thousands of terms some end on the other side of the middle between two quantized values, and later layers amplify
that. The evaluation in float64 is the reference interpreter's, on the program as imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import gcomp
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.wider import interpret_wider
from gcomp.targets.base import target_named
from tests.conformance import peer

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parents[3] / "shared" / "data" / "models"
SKIPPED = 77
STEPS = 20
"""How often a recurrent model is run."""


@dataclass(frozen=True)
class RealModel:
    """A model, the sizes that it is run at, its states (input -> output that is fed back), and fixed inputs."""

    name: str
    sizes: Sequence[Mapping[str, int]] = ({},)
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    fixed: Mapping[str, Array] = field(default_factory=dict[str, Array])
    scale: float = 1.0
    quantized: bool = False


MODELS = (
    RealModel("mnist", scale=255.0),
    RealModel("dtln_1", states={"input_3": "tf_op_layer_stack_2"}),
    RealModel(
        "silero_vad_16k_op15",
        sizes=({"batch": 1, "sequence": 576}, {"batch": 3, "sequence": 576}, {"batch": 2, "sequence": 640}),
        states={"state": "stateN"},
        fixed={"sr": np.array(16000, np.int64)},
    ),
    RealModel("ultraface_rfb_320_raw"),
    RealModel("ultraface_rfb_320_raw_qdq", quantized=True),
)


@dataclass
class Row:
    """What the table says of a model."""

    name: str
    opset: int = 0
    nodes: int = 0
    ops: int = 0
    host: int = 0
    runs: int = 0
    error: float = 0.0
    absolute: float = 0.0
    ours: float | None = None
    theirs: float | None = None
    fused: float | None = None
    why: str = ""


def check(spec: RealModel, path: Path) -> Row:
    """Import, compile and run a model at all its sizes."""
    proto = onnx.load(path)
    opset = next(o.version for o in proto.opset_import if not o.domain)
    row = Row(spec.name, opset, peer.node_count(path))
    try:
        row.ops = _ops_after_passes(gcomp.import_model(str(path)))
        model = gcomp.compile(str(path))
        row.host = len(peer.host_steps(model))
        for sizes in spec.sizes:
            _compare(row, spec, model, path, sizes)
    except GcompError as error:
        row.why = " / ".join(str(error).splitlines())[:300]
    return row


def _ops_after_passes(program: Program) -> int:
    PassManager(parse_pipeline(target_named("xla:cpu").pipeline())).run(program)
    return sum(1 for _ in program.block.ops)


def _compare(row: Row, spec: RealModel, model: Any, path: Path, sizes: Mapping[str, int]) -> None:
    session = peer.Peer(str(path), fused=not spec.quantized)
    names = [o.name for o in model.outputs]
    program = gcomp.import_model(str(path))
    # A wider evaluation would round other numbers to other quantized values: that is no better, but another program.
    exactly = interpret if spec.quantized else interpret_wider
    rng = np.random.default_rng(7)
    states: list[dict[str, Array]] = [{}, {}, {}]
    for step in range(STEPS if spec.states else 1):
        fresh = {i.name: _input(spec, i, sizes, rng) for i in model.inputs}
        fed = [{**fresh, **kept} for kept in states]
        got = [np.asarray(o) for o in model(**fed[0])]
        want = session(fed[1])
        row.runs += 1
        row.error = max(row.error, peer.errors(got, want))
        if spec.quantized:
            row.fused = peer.errors(peer.Peer(str(path))(fed[1]), want)
        row.absolute = max(row.absolute, *(float(np.abs(a - b).max()) for a, b in zip(got, want, strict=True)))
        exact = exactly(program, [fed[2][i.name] for i in model.inputs])
        row.ours = max(row.ours or 0.0, peer.errors(got, exact))
        row.theirs = max(row.theirs or 0.0, peer.errors(want, exact))
        states[2] = {name: exact[names.index(out)].astype(np.float32) for name, out in spec.states.items()}
        for kept, results in ((states[0], got), (states[1], want)):
            kept.update({name: results[names.index(out)] for name, out in spec.states.items()})
        if not _right(row, spec, want):
            row.why = f"wrong at {dict(sizes)}, step {step}: error {row.error:.2g}"
            return


def _right(row: Row, spec: RealModel, want: Sequence[Array]) -> bool:
    allowed = peer.tolerance(want) * (STEPS if spec.states else 1)
    if spec.quantized:
        allowed = QUANTIZED
    return peer.agrees(row.error, row.theirs, row.ours, allowed)


QUANTIZED = 2 / 255
"""Two steps of an 8-bit output: sums of another order round to another side now and then."""


def _input(spec: RealModel, port: Any, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    if port.name in spec.fixed:
        return spec.fixed[port.name]
    shape = [sizes[d] if d in sizes else int(d) for d in port.dims]
    if port.name in spec.states:
        return np.zeros(shape, np.float32)
    return (spec.scale * rng.random(shape)).astype(np.float32)


# ---- the table -------------------------------------------------------------------------------------------------------

COLUMNS = (
    "model", "opset", "nodes", "ops after passes", "host steps", "runs", "max abs error", "error",
    "from float64: gcomp", "from float64: ORT", "",
)  # fmt: skip


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the table and a summary line."""
    table = Table(*COLUMNS)
    for row in rows:
        counts = (row.opset, row.nodes, row.ops, row.host, row.runs)
        numbers = (row.absolute, row.error, row.ours, row.theirs)
        cells = (*map(str, counts), *("" if n is None else f"{n:.1e}" for n in numbers))
        apart = "" if row.fused is None else f" (ORT's fusions lie {row.fused:.1e} apart)"
        table.add_row(row.name, *cells, (row.why or "matches") + apart, style="red" if row.why else None)
    console.print(table)
    console.print(f"{sum(not row.why for row in rows)} of {len(rows)} real models match")


def main() -> int:
    """Check the models whose names contain the argument."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="a part of the names")
    parser.add_argument("--models", type=Path, default=FOLDER, help="the folder with the models")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    rows: list[Row] = []
    for spec in MODELS:
        path = options.models / f"{spec.name}.onnx"
        if options.pattern not in spec.name:
            continue
        if not path.exists():
            console.print(f"SKIPPED {spec.name}: {path} is absent", style="bold yellow")
            continue
        rows.append(check(spec, path))
    if not rows:
        console.print("SKIPPED, no real model was checked", style="bold yellow")
        return SKIPPED
    show(rows, console)
    return 1 if any(row.why for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
