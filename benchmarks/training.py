"""Trainings with steps that gcomp compiles, beside eager ones: the curves of their losses.

    python -m benchmarks.training [--steps 200] [--jobs 2] [--write]

An MLP, a small residual network with batch norm, and a transformer of two layers learn digits, by SGD with momentum
and by AdamW: in JAX with optax, under `gcomp.jit` with donated arguments, and in torch by `torch.compile`. Every order
of a batch gives the same sums in another order: how far eager runs of other orders come apart is the noise that gcomp's
curve is held to. The exit status is 1 where it is further off. `--write` renews docs/generated/training.md and
docs/generated/training.svg.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.learning import in_jax, in_torch, plot
from benchmarks.report import Report, describe
from gcomp.measuring.timing import machine

DOCS = Path(__file__).parents[1] / "docs"
Curve = Callable[[str, str, str, int, int], list[float]]
KINDS: tuple[tuple[str, Curve, str, str], ...] = (
    ("JAX", in_jax.curve, "eager", "gcomp"),
    ("torch", in_torch.curve, "eager", "gcomp"),
    ("torch, optimizer too", in_torch.curve, "aot_eager", "gcomp, optimizer too"),
)
"""What trains, what it is compared with, and how it is compiled."""
ORDERS = (1, 2, 3, 4)
"""The other orders of batches that the noise is taken from."""
ALLOWED = 4.0
"""How many times the noise, which is the greatest of a few samples, a gap may be. Below `FLOOR` it is always right."""
FLOOR = 1e-6


@dataclass(frozen=True)
class Training:
    """One training, eager and compiled."""

    title: tuple[str, str, str]
    eager: list[float]
    compiled: list[float]
    others: list[list[float]]
    """Eager too, with batches in other orders."""

    @property
    def gaps(self) -> list[float]:
        """At each step, how far the compiled loss is from the eager one."""
        return gaps(self.compiled, self.eager)

    @property
    def noise(self) -> list[float]:
        """At each step, how far eager losses are from each other."""
        return [max(found) for found in zip(*(gaps(other, self.eager) for other in self.others), strict=True)]

    @property
    def ratio(self) -> float:
        """The greatest gap over the greatest noise."""
        return max(self.gaps) / max(*self.noise, FLOOR)


def gaps(found: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """Relative differences, step by step."""
    return [abs(x - y) / abs(y) for x, y in zip(found, wanted, strict=True)]


def train(kind: tuple[str, Curve, str, str], network: str, optimizer: str, steps: int) -> Training:
    """All curves of one training."""
    door, curve, eager, compiled = kind
    runs = [curve(network, optimizer, eager, steps, order) for order in (0, *ORDERS)]
    return Training((door, network, optimizer), runs[0], curve(network, optimizer, compiled, steps, 0), runs[1:])


def table(trainings: Sequence[Training]) -> Report:
    """The greatest gaps beside the noise."""
    rows = [
        (
            *t.title, f"{t.eager[0]:.3f}", f"{t.eager[-1]:.3f}", f"{t.compiled[-1]:.3f}", f"{max(t.gaps):.1e}",
            f"{max(t.noise):.1e}", f"{t.ratio:.2f}",
        )
        for t in trainings
    ]  # fmt: skip
    columns = (
        "door",
        "network",
        "optimizer",
        "first loss",
        "last, eager",
        "last, gcomp",
        "gap",
        "noise",
        "gap / noise",
    )
    return Report(f"Trainings of {len(trainings[0].eager)} steps", columns, rows)


def page(trainings: Sequence[Training]) -> str:
    """docs/generated/training.md."""
    return f"""# Training

Written by `python -m benchmarks.training --write`; do not edit.

An MLP, a small residual network with batch norm, and a transformer of two layers that predicts the next pixel, trained
on images of digits in batches of 32. In JAX the step (loss, gradients, optax's update) is under `gcomp.jit`, with
donated arguments, and eager is op by op. In torch forward and backward are compiled, by
`torch.compile(backend="gcomp")`, beside torch's eager mode; "optimizer too" compiles the optimizer's step as well, and
is compared with `aot_eager`, which runs op by op what torch.compile captures: captured AdamW computes its corrections
of bias in f32, where Python's numbers are f64.

`gap`: the greatest relative difference of a step's loss from eager's. `noise`: that of eager runs from each other,
whose batches have other orders ({len(ORDERS)} of them): the same sums in another order. A gap of more than
{ALLOWED:g} times the noise fails (below {FLOOR:g} none does).

{describe(machine())}
{table(trainings).markdown()}
![The curves](training.svg)
"""


def main() -> int:
    """The exit status is 1 where a curve is further from eager's than roundings explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help="renew docs/generated/training.md and .svg")
    options = parser.parse_args()
    tasks = [(kind, n, o, options.steps) for kind in KINDS for n in in_jax.NETWORKS for o in in_jax.OPTIMIZERS]
    trainings: list[Training] = []
    # The networks are small: each process is faster with one thread than all of them with several.
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for future in [pool.submit(train, *task) for task in tasks]:
            trainings.append(found := future.result())
            print(*found.title, f"gap {max(found.gaps):.1e}, noise {max(found.noise):.1e}", flush=True)
    table(trainings).show()
    if options.write:
        panels = [plot.Panel(" ".join(t.title), t.eager, t.compiled, t.noise, t.gaps) for t in trainings]
        (DOCS / "generated/training.md").write_text(page(trainings), encoding="utf-8")
        (DOCS / "generated/training.svg").write_text(plot.svg(panels), encoding="utf-8")
    return 1 if any(t.ratio > ALLOWED for t in trainings) else 0


if __name__ == "__main__":
    sys.exit(main())
