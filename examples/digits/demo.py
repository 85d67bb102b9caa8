"""Compile a digit classifier for both targets of processors, and hold it against ONNX Runtime on unseen images.

    python examples/digits/demo.py

Exits 1 if a compiled model is less than 95 % accurate or classifies any image differently from ONNX Runtime.
Without onnxruntime (a development extra) the comparison is left out, and the table says so.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import gcomp
from gcomp.runtime.model import Model

HERE = Path(__file__).resolve().parent
MODEL = HERE / "digits.onnx"
TARGETS = ("cpu", "xla:cpu")
ROWS = ("accuracy", "beside ONNX Runtime", "artifact", "artifact, loaded again", "memory, all images", "compile time")
MIN_ACCURACY = 0.95
ROUNDS = 200

Classifier = Callable[[np.ndarray], np.ndarray]


def interleaved_medians(contenders: dict[str, Classifier], images: np.ndarray) -> dict[str, float]:
    """Median seconds of each contender over `images`, called in turn so that all meet the same machine."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, classify in contenders.items():
            start = time.perf_counter()
            classify(images)
            seconds[name].append(time.perf_counter() - start)
    return {name: median(samples[ROUNDS // 10 :]) for name, samples in seconds.items()}  # less the warm-up


def onnx_runtime() -> Classifier | None:
    """The model in ONNX Runtime, or None where that is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.force_spinning_stop", "1")  # no spinning into the next contender's time
    session = onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return lambda images: session.run(None, {"images": images})[0]


def megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


def compiled(target: str) -> Model:
    """The model for a target, compiled a second time: the first time its steps load packages."""
    _, model = [
        gcomp.compile(str(MODEL), target=target, dims={"batch": (1, 512)}, prepare=ready) for ready in (False, True)
    ]
    return model


def judged(model: Model, images: np.ndarray, labels: np.ndarray, expected: np.ndarray | None) -> tuple[list[str], ...]:
    """What the table says of a model's results on the images, and what is wrong with them."""
    (probabilities,) = model(images)
    guesses, failures = probabilities.argmax(axis=1), list[str]()
    accuracy = float(np.mean(guesses == labels))
    if accuracy < MIN_ACCURACY:
        failures.append(f"accuracy {accuracy:.2%} is below {MIN_ACCURACY:.0%}")
    agreement = "[bold red]SKIPPED: onnxruntime is not installed[/] (pip install onnxruntime)"
    if expected is not None:
        disagreements = int(np.sum(guesses != expected.argmax(axis=1)))
        agreement = f"within {np.abs(probabilities - expected).max():.1e}, {disagreements} labels differ"
        if disagreements:
            failures.append(f"{disagreements} images are classified differently from ONNX Runtime")
    with tempfile.TemporaryDirectory() as scratch:
        artifact = Path(scratch) / "digits.gcomp"
        model.save(artifact)
        size = megabytes(artifact.stat().st_size)
        same = np.array_equal(gcomp.load(artifact)(images)[0], probabilities)
    if not same:
        failures.append("the saved artifact gives a different output")
    memory = model.memory(batch=len(images))
    return [
        f"{accuracy:.2%}", agreement, f"{size} ({megabytes(MODEL.stat().st_size)} of ONNX)",
        "same bits" if same else "[bold red]different output[/]", f"{megabytes(memory.total_bytes)} ({memory.source})",
    ], failures  # fmt: skip


def main() -> int:
    with np.load(HERE / "heldout.npz") as heldout:
        images, labels = heldout["images"], heldout["labels"]
    peer = onnx_runtime()
    contenders: dict[str, Classifier] = {} if peer is None else {"ONNX Runtime": peer}
    rows: dict[str, list[str]] = {name: [] for name in ROWS}
    failures: list[str] = []
    for target in TARGETS:
        model = compiled(target)
        contenders[target] = lambda given, model=model: model(given)[0]
        cells, wrong = judged(model, images, labels, None if peer is None else peer(images))
        steps = [f"{phase} {1e3 * seconds:.0f} ms" for phase, seconds in model.timings.items() if seconds]
        for row, cell in zip(rows.values(), [*cells, ", ".join(steps)], strict=True):
            row.append(cell)
        failures += [f"{target}: {why}" for why in wrong]

    table = Table("", *TARGETS, title=f"gcomp: digits.onnx, {len(images)} held-out images")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    for count in (1, len(images)):
        medians = interleaved_medians(contenders, images[:count])
        others = f", ONNX Runtime {1e3 * medians['ONNX Runtime']:.3f} ms" if peer is not None else ""
        table.add_row(f"run time, batch {count}", *(f"{1e3 * medians[target]:.3f} ms{others}" for target in TARGETS))

    console = Console()
    console.print(table)
    for failure in failures:
        console.print(f"[bold red]FAILED:[/] {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
