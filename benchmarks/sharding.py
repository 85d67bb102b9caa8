"""Plans for several devices: what the search finds, beside plans made by hand, over the corpus and several meshes.

    python -m benchmarks.sharding [--meshes data=2,model=4 ...] [--memory 0.5] [--models NAME ...] [--json FILE]

For each architecture of the corpus on each mesh: the predicted time, how far from the best it is at most, how long the
search took, and the times of data parallelism, Megatron's tensor parallelism and fully sharded data parallelism, each
the best plan of its kind. The models are small, and so are the devices, so that work and messages are to each other
about as large models on large devices. `--memory` is a part of what the model takes on one device.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table
from xdsl.ir import SSAValue

from gcomp.analysis.work import Nominal
from gcomp.corpus.entries import entry
from gcomp.corpus.store import Member, corpus
from gcomp.dims import Ranges, symbols_of
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import Devices, Link, mesh_named
from gcomp.partitioning.search.layouts import Network
from gcomp.partitioning.search.planning import moments, plan_of
from gcomp.partitioning.search.problem import Problem
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import TO_SHARDING
from gcomp.passes.registry import parse_pipeline

MESHES = ("data=8", "model=8", "data=2,model=4", "data=4,model=2")
SMALL = Devices("small", 1e9, 1e9, 1e9, 1e12, Link(1e9, 1e-7))
_LARGEST = 16
"""What symbolic sizes are, at most."""


def opened(member: Member) -> Program:
    """A model of the corpus with numbers for sizes, as plans take it."""
    program = member.program()
    names = {n for port in program.inputs() for size in port.shape for n in symbols_of(size)}
    nominal = Nominal(Ranges({n: program.ranges[n] for n in names}))
    sizes = {str(n): min(nominal.size(size), _LARGEST) for port in program.inputs() for size in port.shape
             for n in symbols_of(size) if str(size) == n}  # fmt: skip
    bound = program.bind(sizes) if sizes else program
    PassManager(parse_pipeline(TO_SHARDING)).run(bound)
    return bound


def weights_of(member: Member, program: Program) -> Collection[SSAValue]:
    """The arguments that are weights: of a function of JAX, the leaves of its first argument, where that is a tree."""
    if not member.name.startswith("jax/"):
        return ()
    first = entry(member.name).make()[1][0]
    return program.block.args[: len(jax.tree.leaves(first))] if isinstance(first, dict | list | tuple) else ()


def measured(member: Member, mesh: str, part: float | None, limit: float) -> dict[str, Any]:
    """A row: the plan of the search, and those by hand."""
    program, on = opened(member), mesh_named(mesh)
    problem = Problem.of(program, Network(on, SMALL))
    whole = max(sum(problem.nominal.bytes(v) for v in live) for live in moments(problem))
    memory = None if part is None else part * whole
    started = time.monotonic()
    found: dict[str, Any] = {"model": member.name, "mesh": mesh, "ops": program.op_count()}
    try:
        plan = plan_of(program, on, SMALL, memory=memory, limit=limit)
    except UnsupportedError as error:
        return found | {"refused": str(error).splitlines()[0]}
    found |= {"search": time.monotonic() - started, "seconds": plan.seconds, "gap": plan.gap, "peak": plan.peak / whole}
    for name, kind in BY_HAND.items():
        try:
            other = plan_of(program, on, SMALL, memory=memory, kind=kind, weights=weights_of(member, program))
            found[name] = other.seconds / plan.seconds if plan.seconds else 1.0
        except UnsupportedError:
            found[name] = None
    return found


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What holds of all rows."""
    solved = [row for row in rows if "seconds" in row]
    lines = [
        f"{len(solved)} of {len(rows)} have a plan; gaps of at most 2 %: {sum(r['gap'] <= 0.02 for r in solved)}; "
        f"longest search {max((r['search'] for r in solved), default=0):.1f} s"
    ]
    for name in BY_HAND:
        ratios = [row[name] for row in solved if row[name] is not None]
        lines.append(
            f"{name}: fits {len(ratios)} times, worse than the search {sum(r > 1.001 for r in ratios)} times, better "
            f"{sum(r < 0.999 for r in ratios)} times"
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print a table, and what holds of all; 1 if a plan by hand is better than the search's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshes", nargs="+", default=list(MESHES))
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--memory", type=float, default=None)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args(arguments)
    console = Console(width=140)
    rows: list[dict[str, Any]] = []
    for member in corpus(options.models).members:
        for mesh in options.meshes:
            rows.append(measured(member, mesh, options.memory, options.limit))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    table = Table("model", "mesh", "ops", "predicted", "gap", "search", *BY_HAND)
    for row in rows:
        if "refused" in row:
            table.add_row(row["model"], row["mesh"], str(row["ops"]), row["refused"])
            continue
        others = ["does not fit" if row[name] is None else f"{row[name]:.2f} x" for name in BY_HAND]
        table.add_row(row["model"], row["mesh"], str(row["ops"]), f"{row['seconds'] * 1e6:.3g} us",
                      f"{row['gap']:.2%}", f"{row['search']:.1f} s", *others)  # fmt: skip
    console.print(table)
    print("\n".join(summary(rows)))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1), "utf-8")
    return int(any((row.get(name) or 1.0) < 0.99 for row in rows for name in BY_HAND))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
