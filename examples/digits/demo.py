"""Compile a digit classifier with gcomp and hold it against ONNX Runtime on images it has never seen.

    python examples/digits/demo.py

Exits 1 if the compiled model is less than 95 % accurate or classifies any image differently from ONNX Runtime.
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

HERE = Path(__file__).resolve().parent
MODEL = HERE / "digits.onnx"
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


def main() -> int:
    with np.load(HERE / "heldout.npz") as heldout:
        images, labels = heldout["images"], heldout["labels"]
    table = Table(title=f"gcomp: digits.onnx, {len(images)} held-out images", show_header=False)
    failures: list[str] = []

    # The first compilation of a process loads the packages of ONNX and xDSL in its steps: the second one's times are
    # gcomp's own. XLA compiles once: the first model is not made ready to run.
    first, model = [
        gcomp.compile(str(MODEL), target="xla:cpu", dims={"batch": (1, 512)}, prepare=ready) for ready in (False, True)
    ]
    (probabilities,) = model(images)
    guesses = probabilities.argmax(axis=1)
    accuracy = float(np.mean(guesses == labels))
    table.add_row("accuracy", f"{accuracy:.2%}")
    if accuracy < MIN_ACCURACY:
        failures.append(f"accuracy {accuracy:.2%} is below {MIN_ACCURACY:.0%}")

    contenders: dict[str, Classifier] = {"gcomp": lambda given: model(given)[0]}
    if (peer := onnx_runtime()) is None:
        skipped = "[bold red]SKIPPED: onnxruntime is not installed[/] (pip install onnxruntime)"
        table.add_row("agreement with ONNX Runtime", skipped)
    else:
        contenders["ONNX Runtime"] = peer
        expected = peer(images)
        disagreements = int(np.sum(guesses != expected.argmax(axis=1)))
        difference = np.abs(probabilities - expected).max()
        table.add_row(
            "agreement with ONNX Runtime", f"max abs difference {difference:.1e}, {disagreements} labels differ"
        )
        if disagreements:
            failures.append(f"{disagreements} images are classified differently from ONNX Runtime")

    phases = ("import", "passes", "emission")
    timings = {phase: f"{1e3 * model.timings[phase]:.0f} ms" for phase in (*phases, "xla")}
    table.add_row("compile time", ", ".join(f"{phase} {spent}" for phase, spent in timings.items()))
    loading = 1e3 * sum(first.timings[phase] - model.timings[phase] for phase in phases)
    table.add_row("first compilation", f"{max(loading, 0):.0f} ms more: it loads packages")
    for count in (1, len(images)):
        medians = interleaved_medians(contenders, images[:count])
        shown = ", ".join(f"{name} {1e3 * seconds:.3f} ms" for name, seconds in medians.items())
        table.add_row(f"run time, batch {count}", f"{shown} (medians of {ROUNDS}, interleaved)")

    with tempfile.TemporaryDirectory() as scratch:
        artifact = Path(scratch) / "digits.gcomp"
        model.save(artifact)
        table.add_row("artifact", f"{megabytes(artifact.stat().st_size)} ({megabytes(MODEL.stat().st_size)} of ONNX)")
        (reloaded,) = gcomp.load(artifact)(images)
        same = np.array_equal(reloaded, probabilities)
        table.add_row("artifact, loaded again", "same bits" if same else "[bold red]different output[/]")
        if not same:
            failures.append("the saved artifact gives a different output")

    memory = model.memory(batch=len(images))
    table.add_row(f"memory, batch {len(images)}", f"{megabytes(memory.total_bytes)} ({memory.source})")

    console = Console()
    console.print(table)
    for failure in failures:
        console.print(f"[bold red]FAILED:[/] {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
