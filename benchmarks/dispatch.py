"""What a call costs before anything is computed: gcomp beside `jax.jit` and TorchInductor, on ten small inputs.

    python -m benchmarks.dispatch --rounds 21

The competitors take turns; each round gives a ratio, of which the median and its 95 % interval are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

CALLS = 2000


def jax_calls() -> dict[str, Callable[[], object]]:
    """A sum of ten vectors, by both."""
    import jax
    import jax.numpy as jnp

    import gcomp

    xs = [jnp.full((4,), float(i)) for i in range(10)]

    def total(*values: jax.Array) -> jax.Array:
        return sum(values[1:], values[0])

    ours, theirs = gcomp.jit(total), jax.jit(total)
    return {"gcomp": lambda: ours(*xs), "peer": lambda: theirs(*xs)}


def torch_calls() -> dict[str, Callable[[], object]]:
    """A sum of ten vectors, by both."""
    import torch

    xs = [torch.full((4,), float(i)) for i in range(10)]

    def total(*values: torch.Tensor) -> torch.Tensor:
        return sum(values[1:], values[0])

    ours, theirs = torch.compile(total, backend="gcomp"), torch.compile(total, backend="inductor")
    return {"gcomp": lambda: ours(*xs), "peer": lambda: theirs(*xs)}


PEERS = {"jax.jit": jax_calls, "TorchInductor": torch_calls}


def seconds(call: Callable[[], object]) -> float:
    """Of one call."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by order statistics."""
    ordered, n = sorted(values), len(values)
    reach = round(0.98 * n**0.5)
    return ordered[max(0, n // 2 - reach)], ordered[min(n - 1, n // 2 + reach)]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="dispatch overhead")
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    table = Table("peer", "gcomp, us", "peer, us", "ratio")
    for name, make in PEERS.items():
        calls = make()
        for call in calls.values():
            seconds(call)
        times = [{who: seconds(call) for who, call in calls.items()} for _ in range(rounds)]
        ratios = [t["gcomp"] / t["peer"] for t in times]
        low, high = interval(ratios)
        medians = [f"{statistics.median(t[who] for t in times) * 1e6:.1f}" for who in ("gcomp", "peer")]
        table.add_row(name, *medians, f"{statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]")
    Console().print(table)


if __name__ == "__main__":
    main()
