"""Kernels and memory of the benchmark models: how many kernels, what they move, the plan's peak and its bound.

    python -m benchmarks.kernels [--workloads all] [--machine sm_90] [--seconds 10] [--out DIR]

For each model: ops before and kernels after fusion, by kind; bytes moved and microseconds by the cost model; the most
bytes alive in the frontend's order and in the order that was found; the arena, its gap to that bound, and how long
fusion, ordering and planning took. Beside it stand the temporaries that XLA allocates for the same model on the CPU,
outputs not counted there. Exits 1 where a plan lies more than 1 % above its bound and is not proven optimal.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Report, publish
from benchmarks.timing import machine
from benchmarks.workloads import Workload, select
from gcomp.analysis.fusion.decide import decide
from gcomp.analysis.liveness import liveness, most_alive
from gcomp.analysis.machines import MACHINES, machine_named
from gcomp.analysis.work import Nominal
from gcomp.driver import compile as compile_model
from gcomp.driver import import_model
from gcomp.ir.buffer import arena
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.memory.assign import assign
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.plan_memory import problem_of
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline

GAP = 0.01


@dataclass
class Planned:
    """One model's figures, in bytes and seconds."""

    model: str
    ops: int
    kernels: dict[str, int]
    moved: int
    microseconds: float
    given_bound: int
    bound: int
    peak: int
    optimal: bool
    seconds: dict[str, float]
    xla_temporaries: int | None = None

    @property
    def gap(self) -> float:
        """How far the arena lies above the most bytes alive."""
        return self.peak / self.bound - 1 if self.bound else 0.0


def timed(program: Program, passes: str) -> float:
    """The seconds that passes take on a program."""
    start = time.perf_counter()
    PassManager(parse_pipeline(passes)).run(program)
    return time.perf_counter() - start


def plan(workload: Workload, machine_name: str, seconds: float) -> Planned:
    """Cut, order and place one model."""
    program = import_model(str(workload.onnx_path("dynamo")))
    timed(program, TO_FUSION)
    decisions = decide(program.block, Nominal(program.ranges), machine_named(machine_name))
    made = [decisions.kernel(group) for group in decisions.kernels()]
    ops = program.op_count()
    spent = {"fuse": timed(program, f"fuse{{target={machine_name}}}")}
    given = most_alive(liveness(program), program.ranges)
    spent["order"] = timed(program, "order-for-memory")
    spent["plan"] = timed(program, f"plan-memory{{seconds={seconds}}}")
    found = liveness(program)
    proof = assign(problem_of(found, program.ranges), seconds=0.0)
    kinds = Counter(op.kind_name for op in program.ops() if isinstance(op, LaunchOp))
    bound, peak = most_alive(found, program.ranges), arena(program.module) or 0
    return Planned(
        workload.name, ops, dict(kinds), sum(k.moved_bytes for k in made), 1e6 * sum(k.seconds for k in made), given,
        bound, peak, peak <= proof.lower_bound, spent,
    )  # fmt: skip


def xla_temporaries(workload: Workload) -> int:
    """The bytes of temporaries that XLA reserves for the model on the CPU."""
    return compile_model(str(workload.onnx_path("dynamo")), target="xla:cpu").memory().temporary_bytes


def table(rows: list[Planned], title: str) -> Report:
    """The figures as text."""
    columns = ["model", "ops", "kernels", "MB moved", "us (model)", "MB alive as given", "MB alive", "arena MB", "gap",
               "XLA temporaries MB", "fuse s", "order s", "plan s"]  # fmt: skip
    cells = [
        [
            row.model,
            str(row.ops),
            str(sum(row.kernels.values())),
            f"{row.moved / 1e6:.1f}",
            f"{row.microseconds:.0f}",
            *[f"{size / 1e6:.2f}" for size in (row.given_bound, row.bound, row.peak)],
            "optimal" if row.optimal else f"{100 * row.gap:.2f} %",
            "-" if row.xla_temporaries is None else f"{row.xla_temporaries / 1e6:.2f}",
            *[f"{row.seconds[name]:.2f}" for name in ("fuse", "order", "plan")],
        ]
        for row in rows
    ]
    kinds = [f"{row.model}: {', '.join(f'{n} {kind}' for kind, n in sorted(row.kernels.items()))}" for row in rows]
    return Report(title, columns, cells, kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all", help="comma-separated names, or all")
    parser.add_argument("--machine", default="sm_90", choices=list(MACHINES))
    parser.add_argument("--seconds", type=float, default=10.0, help="for the search of offsets, per model")
    parser.add_argument("--no-xla", action="store_true", help="leave XLA's temporaries out: they need a compilation")
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    rows: list[Planned] = []
    for workload in select(options.workloads):
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        rows.append(plan(workload, options.machine, options.seconds))
        if not options.no_xla:
            rows[-1].xla_temporaries = xla_temporaries(workload)
    report = table(rows, f"Kernels for {options.machine}, and their memory")
    data = {"machine": machine(), "target": options.machine, "rows": [asdict(row) for row in rows]}
    publish("kernels", [report], data, options.out)
    sys.exit(any(not row.optimal and row.gap > GAP for row in rows))


if __name__ == "__main__":
    main()
