"""One model written in six styles (examples/styles/models.py): what each costs to compile, to run, and in memory.

    python -m benchmarks.styles [--rounds 31] [--write]

Runs are timed side by side on NumPy inputs, as ratios to jax.jit of the same function; compiling is the median of five
times, from the style's own source to something that runs. Memory is what XLA reserves for intermediate values, and for
eager mode the peak of NumPy's allocations. `--write` renews the table in docs/guides/static_and_dynamic.md.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
import torch

import gcomp
from benchmarks.report import Report, describe
from examples.styles import models
from gcomp.ir.program import Program
from gcomp.measuring.timing import interleave, machine, ratio

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "static_and_dynamic.md"
BEGIN, END = "<!-- table: python -m benchmarks.styles --write -->\n", "<!-- end of table -->\n"
COMPILATIONS = 5
"""How often a style is compiled; the first time pays for imports, and does not count."""


def sources() -> dict[str, Callable[[], Program]]:
    """Style -> what makes its program, from nothing."""
    x = models.example()

    def graph() -> Program:
        session, _, logits = models.as_graph()
        return session.program(logits)

    return {
        "function": lambda: gcomp.function(models.classify.__wrapped__).program(x),
        "graph": graph,
        "JAX": lambda: gcomp.import_model(models.in_jax, x),
        "torch": lambda: gcomp.import_model(models.in_torch(), torch.from_numpy(x)),
        "ONNX": lambda: gcomp.import_model(models.in_onnx()),
    }


def compiled(make: Callable[[], Program]) -> tuple[float, float, gcomp.Model]:
    """Seconds to make the program, seconds to compile it, and the model."""
    tracing, compiling = list[float](), list[float]()
    model: gcomp.Model | None = None
    for _ in range(COMPILATIONS + 1):
        started = time.perf_counter()
        program = make()
        traced = time.perf_counter()
        model = gcomp.compile(program)
        tracing.append(traced - started)
        compiling.append(time.perf_counter() - traced)
    assert model is not None
    return median(tracing[1:]), median(compiling[1:]), model


def peak_of(call: Callable[[], object]) -> int:
    """The bytes that a call has allocated at once, at most."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(rounds: int) -> Report:
    """The table."""
    made = {style: compiled(make) for style, make in sources().items()}
    x = models.example()
    jitted = jax.jit(models.in_jax)
    runs: dict[str, Callable[[], Any]] = {"jax.jit": lambda: np.asarray(jitted(x))} | dict(models.runs())
    timings = interleave(runs, rounds)
    counts = {style: sum(models.kernels(program()).values()) for style, program in sources().items()}
    rows: list[list[str]] = []
    for style in models.runs():
        together = str(ratio(timings[style].wall, timings["jax.jit"].wall))
        if style not in made:
            peak = peak_of(lambda: models.at_once(x))
            rows.append([style, "-", "-", "-", together, f"{peak / 1024:,.0f}"])
            continue
        tracing, compiling, model = made[style]
        temporary = model.memory().temporary_bytes / 1024
        rows.append(
            [style, str(counts[style]), f"{tracing * 1e3:.1f}", f"{compiling * 1e3:.0f}", together, f"{temporary:,.0f}"]
        )
    columns = ["style", "GPU kernels", "source to program, ms", "compiling, ms", "run / jax.jit", "memory, KiB"]
    return Report("One model, six styles", columns, rows)


def main() -> None:
    """Measure, print, and write on demand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--write", action="store_true", help="renew the table in docs/guides/static_and_dynamic.md")
    options = parser.parse_args()
    report = measured(options.rounds)
    report.show()
    if options.write:
        text = PAGE.read_text("utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        table = report.markdown().split("\n\n", 1)[1]
        PAGE.write_text(f"{before}{BEGIN}{describe(machine())}\n{table}{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
