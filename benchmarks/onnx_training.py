"""Trainings from ONNX files, beside torch's eager mode, and their steps beside jax.jit's.

    python -m benchmarks.onnx_training [--steps 300] [--rounds 15] [--threads 1] [--write]

The network of `examples/digits`, an LSTM and a transformer of two layers are exported by torch before their training.
`gcomp.train_step` trains them from their files; torch trains its modules on the same batches. As in
`benchmarks.training`, eager runs whose batches have other orders, and whose weights start at the floats next to those,
show how far rounding alone takes a curve apart. The step is timed beside the same step written in JAX, under `jax.jit`
with donated arguments: loss, gradients, optax's update, running statistics. The exit status is 1 where a curve or a
time is off its bar. `--write` renews docs/generated/onnx_training.md and .svg.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.measuring.timing import interleave, machine, pin, ratio

Array = np.ndarray[Any, Any]
DOCS = Path(__file__).parents[1] / "docs"
SAMPLES = Path(__file__).parents[1] / "examples" / "digits" / "heldout.npz"
BATCH, HELD_OUT = 32, 72
ORDERS = (1, 2, 3, 4)
ALLOWED = 4.0
FLOOR = 1e-6
BAR = 1.0
OPTIMIZERS = {"AdamW": "adamw:lr=2e-3,weight_decay=0.01", "SGD": "sgd:lr=0.05,momentum=0.9"}


@dataclass(frozen=True)
class Result:
    """One training: curves of losses, accuracies, and the step's time and memory beside JAX's."""

    network: str
    optimizer: str
    eager: list[float]
    compiled: list[float]
    others: list[list[float]]
    accuracy: tuple[float, float]
    """On samples that were held out: torch's, and that of the ONNX file written with the trained parameters."""
    milliseconds: tuple[float, float]
    ratio: Any
    bytes: tuple[int, int]

    @property
    def gaps(self) -> list[float]:
        """At each step, how far the compiled loss is from the eager one."""
        return _gaps(self.compiled, self.eager)

    @property
    def noise(self) -> list[float]:
        """At each step, how far eager losses are from each other."""
        return [max(found) for found in zip(*(_gaps(other, self.eager) for other in self.others), strict=True)]

    @property
    def apart(self) -> float:
        """The greatest gap over the greatest noise."""
        return max(self.gaps) / max(*self.noise, FLOOR)


def _gaps(found: Sequence[float], wanted: Sequence[float]) -> list[float]:
    return [abs(x - y) / abs(y) for x, y in zip(found, wanted, strict=True)]


def data() -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Images and labels to learn from, and others."""
    with np.load(SAMPLES) as file:
        images, labels = file["images"], file["labels"]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def batches(steps: int, order: int = 0) -> list[tuple[Array, Array]]:
    """The batches of a training; each order has the same ones, with other rows first."""
    (images, labels), _ = data()
    chosen, shuffled = np.random.default_rng(1), np.random.default_rng(100 + order)
    found: list[tuple[Array, Array]] = []
    for _ in range(steps):
        rows = chosen.choice(len(images), BATCH, replace=False)
        rows = shuffled.permutation(rows) if order else rows
        found.append((images[rows], labels[rows]))
    return found


def in_torch(network: str, steps: int, order: int = 0) -> tuple[list[float], Any]:
    """The losses of a training in eager mode, and the trained module."""
    import torch

    from benchmarks.learning.exported import NETWORKS, made

    own = NETWORKS[network]
    module = made(network).train(own.train_mode)
    parameters = list(module.parameters())
    if order:
        _nudge(parameters, order)
    rules: dict[str, Callable[[], Any]] = {
        "AdamW": lambda: torch.optim.AdamW(parameters, 2e-3, weight_decay=0.01),
        "SGD": lambda: torch.optim.SGD(parameters, 0.05, momentum=0.9),
    }
    rule, losses = rules[own.optimizer](), list[float]()
    for images, labels in batches(steps, order):
        rule.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(torch.from_numpy(images)), torch.from_numpy(labels))
        loss.backward()
        rule.step()
        losses.append(float(loss.detach()))
    return losses, module.eval()


def _nudge(parameters: Sequence[Any], seed: int) -> None:
    """Move every weight to the float next to it: other libraries round functions otherwise, too."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            signs = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.copy_(torch.nextafter(parameter, signs * torch.inf))


def in_jax(network: str) -> tuple[Callable[[Array, Array], Any], Callable[[], int]]:
    """The same step under jax.jit: what runs it, and what says how many bytes it takes."""
    import jax
    import jax.numpy as jnp
    import optax

    from benchmarks.learning.exported import NETWORKS, made

    own, module = NETWORKS[network], made(network)
    rule = {"AdamW": optax.adamw(2e-3, weight_decay=0.01), "SGD": optax.sgd(0.05, momentum=0.9)}[own.optimizer]

    def loss(params: Any, state: Any, x: Any, y: Any) -> Any:
        logits, following = own.apply(params, state, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), following

    def step(params: Any, state: Any, moments: Any, x: Any, y: Any) -> Any:
        (value, following), grads = jax.value_and_grad(loss, has_aux=True)(params, state, x, y)
        updates, moments = rule.update(grads, moments, params)
        return optax.apply_updates(params, updates), following, moments, value

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    params = {name: jnp.asarray(value.detach().numpy()) for name, value in module.named_parameters()}
    state = {n: jnp.asarray(v.numpy()) for n, v in module.named_buffers() if v.is_floating_point()}
    held: list[Any] = [params, state, rule.init(params)]

    def run(images: Array, labels: Array) -> Any:
        held[0], held[1], held[2], value = compiled(held[0], held[1], held[2], images, labels)
        return float(value)

    def memory() -> int:
        (images, labels), *_ = batches(1)
        stats: Any = compiled.lower(*held, images, labels).compile().memory_analysis()
        return (
            stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
            - stats.alias_size_in_bytes
        )  # fmt: skip

    return run, memory


def train(network: str, steps: int, rounds: int) -> Result:
    """A training from its ONNX file, all it is compared with, and the times of a step."""
    import onnx

    import gcomp
    from benchmarks.learning.exported import NETWORKS, export, made

    own = NETWORKS[network]
    with tempfile.TemporaryDirectory() as folder:
        path, trained = Path(folder) / "model.onnx", Path(folder) / "trained.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            export(made(network), path)
        names = {name for name, _ in made(network).named_parameters()}
        frozen = [t.name for t in onnx.load(path).graph.initializer if t.name not in names and "running" not in t.name]
        model = gcomp.train_step(
            path, optimizer=OPTIMIZERS[own.optimizer], freeze=[n for n in frozen if _is_float(path, n)],
            train_mode=own.train_mode, dims={"batch": BATCH},
        )  # fmt: skip
        compiled = [float(model(images, labels)) for images, labels in batches(steps)]
        gcomp.write_parameters(path, model.state, trained)
        _, (images, labels) = data()
        (logits,) = gcomp.compile(trained)(images)
    eager, module = in_torch(network, steps)
    others = [in_torch(network, steps, order)[0] for order in ORDERS]
    import torch

    with torch.no_grad():
        guesses = module(torch.from_numpy(images)).numpy().argmax(1)
    run, memory = in_jax(network)
    batch = batches(1)[0]
    timings = interleave({"gcomp": lambda: float(model(*batch)), "jax": lambda: run(*batch)}, rounds)
    return Result(
        network, own.optimizer, eager, compiled, others,
        (float(np.mean(guesses == labels)), float(np.mean(logits.argmax(1) == labels))),
        (float(np.median(timings["gcomp"].wall)) * 1e3, float(np.median(timings["jax"].wall)) * 1e3),
        ratio(timings["gcomp"].wall, timings["jax"].wall), (model.memory().total_bytes, memory()),
    )  # fmt: skip


def _is_float(path: Path, name: str) -> bool:
    from gcomp.frontends.onnx.model.writing import initializer_types

    return initializer_types(path)[name].kind == "f"


def curves(results: Sequence[Result]) -> Any:
    """How the curves compare."""
    from benchmarks.report import Report

    rows = [
        (
            r.network, r.optimizer, f"{r.eager[0]:.3f}", f"{r.eager[-1]:.4f}", f"{r.compiled[-1]:.4f}",
            f"{max(r.gaps):.1e}", f"{max(r.noise):.1e}", f"{r.apart:.2f}", f"{r.accuracy[0]:.1%}",
            f"{r.accuracy[1]:.1%}",
        )
        for r in results
    ]  # fmt: skip
    columns = ("network", "optimizer", "first loss", "last, torch", "last, gcomp", "gap", "noise", "gap / noise",
               "accuracy, torch", "accuracy, gcomp")  # fmt: skip
    return Report(f"Trainings of {len(results[0].eager)} steps", columns, rows)


def costs(results: Sequence[Result], threads: int) -> Any:
    """How the steps' times and memory compare."""
    from benchmarks.report import Report

    rows = [
        (r.network, f"{r.milliseconds[0]:.2f}", f"{r.milliseconds[1]:.2f}", str(r.ratio), f"{r.bytes[0] / 1e6:.2f}",
         f"{r.bytes[1] / 1e6:.2f}")
        for r in results
    ]  # fmt: skip
    columns = ("network", "ms, gcomp", "ms, jax.jit", "gcomp / jax.jit", "peak MB, gcomp", "peak MB, jax.jit")
    return Report(f"Steps of {BATCH} samples, {threads} thread{'s' if threads > 1 else ''}", columns, rows)


def page(results: Sequence[Result], threads: int) -> str:
    """docs/generated/onnx_training.md."""
    from benchmarks.report import describe

    return f"""# Training from ONNX files

Written by `python -m benchmarks.onnx_training --write`; do not edit.

The network of `examples/digits` (batch norm in training), an LSTM and a transformer of two layers, exported by torch
before their training, learn {len(data()[0][1])} images of digits in batches of {BATCH}: by `gcomp.train_step` from
their ONNX files ([train_step.md](../guides/train_step.md)), and in torch's eager mode. `gap` and `noise` are those of
[training.md](training.md): how far gcomp's losses are from eager's, and eager's from each other when batches have other
orders and weights start at the floats next to those. More than {ALLOWED:g} times the noise fails. Accuracy is that on
{HELD_OUT} images held out; gcomp's is that of
the ONNX file that `gcomp.write_parameters` writes.

{describe(machine())}
{curves(results).markdown()}
![The curves](onnx_training.svg)

The time of a step, with the batch in NumPy arrays and the loss back in Python, beside the same step written in JAX
under `jax.jit` with donated parameters, moments and statistics. Peak memory is XLA's own account of each: arguments,
outputs and temporaries, less what outputs share with donated arguments.

{costs(results, threads).markdown()}"""


def main() -> int:
    """The exit status is 1 where a curve or a time is off its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--network", action="append", help="only these")
    parser.add_argument("--write", action="store_true", help="renew docs/generated/onnx_training.md and .svg")
    options = parser.parse_args()
    pin(options.threads)
    import torch

    from benchmarks.learning import plot
    from benchmarks.learning.exported import NETWORKS

    torch.set_num_threads(options.threads)
    results = [train(network, options.steps, options.rounds) for network in options.network or NETWORKS]
    curves(results).show()
    costs(results, options.threads).show()
    if options.write:
        panels = [plot.Panel(f"{r.network} {r.optimizer}", r.eager, r.compiled, r.noise, r.gaps) for r in results]
        (DOCS / "generated/onnx_training.md").write_text(page(results, options.threads), encoding="utf-8")
        (DOCS / "generated/onnx_training.svg").write_text(plot.svg(panels), encoding="utf-8")
    return 1 if any(r.apart > ALLOWED or r.ratio.low > BAR for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
