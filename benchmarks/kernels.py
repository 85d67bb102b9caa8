"""Kernels and memory of the benchmark models: how many kernels, what they move, the plan's peak and its bound.

    python -m benchmarks.kernels [--workloads all] [--steps all] [--machine sm_90] [--seconds 10] [--out DIR]

For each model and training step: ops before and kernels after fusion, by kind; bytes moved and microseconds by the cost
model; the most bytes alive in the frontend's order and in the order that was found; the arena, its gap to that bound,
and how long fusion, ordering and planning took. Outputs are counted, but those that lie in donated inputs. Beside it
stand two others' figures for the CPU: the temporaries that XLA reserves, outputs not counted, and the high-water mark
of ONNX Runtime's arena in a run, outputs counted, above what it held before (its profiler's `mem_in_use_peak`, without
memory patterns, which would reserve all at once).

For training steps a second table says what rematerialization makes of budgets of 3/4 and 1/2 of the ordered peak.

Exits 1 where a plan lies more than 1 % above its bound and is not proven optimal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import Report, publish
from benchmarks.training_steps import STEPS
from benchmarks.workloads import Workload, select
from gcomp.analysis.fusion.decide import decide
from gcomp.analysis.liveness import liveness, most_alive
from gcomp.analysis.machines import MACHINES, machine_named
from gcomp.analysis.work import Nominal
from gcomp.driver import compile as compile_model
from gcomp.ir.buffer import arena
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.measuring.timing import machine
from gcomp.memory.assign import assign
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.plan_memory import problem_of
from gcomp.passes.memory.rematerialize import within_budget
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline
from gcomp.sources import import_model

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
    onnxruntime: int | None = None

    @property
    def gap(self) -> float:
        """How far the arena lies above the most bytes alive."""
        return self.peak / self.bound - 1 if self.bound else 0.0


def timed(program: Program, passes: str) -> float:
    """The seconds that passes take on a program."""
    start = time.perf_counter()
    PassManager(parse_pipeline(passes)).run(program)
    return time.perf_counter() - start


def plan(name: str, program: Program, machine_name: str, seconds: float) -> tuple[Planned, list[Budget]]:
    """Cut, order and place one program; and what budgets would do to it."""
    timed(program, TO_FUSION)
    decisions = decide(program.block, Nominal(program.ranges), machine_named(machine_name))
    made = [decisions.kernel(group) for group in decisions.kernels()]
    ops = program.op_count()
    spent = {"fuse": timed(program, f"fuse{{target={machine_name}}}")}
    given = most_alive(liveness(program), program.ranges)
    spent["order"] = timed(program, "order-for-memory")
    budgets = [Budget.of(name, program, share, machine_name) for share in SHARES]
    spent["plan"] = timed(program, f"plan-memory{{seconds={seconds}}}")
    found = liveness(program)
    proof = assign(problem_of(found.planned, program.ranges), seconds=0.0)
    kinds = Counter(op.kind_name for op in program.ops() if isinstance(op, LaunchOp))
    bound, peak = most_alive(found, program.ranges), arena(program.module) or 0
    planned = Planned(
        name, ops, dict(kinds), sum(k.moved_bytes for k in made), 1e6 * sum(k.seconds for k in made), given,
        bound, peak, peak <= proof.lower_bound, spent,
    )  # fmt: skip
    return planned, budgets


SHARES = (0.75, 0.5)
"""The budgets that are tried, as shares of the most bytes alive."""


@dataclass
class Budget:
    """What a budget makes of a program that is ordered."""

    model: str
    budget: int
    peak: int
    again: int
    microseconds: float
    seconds: float

    @staticmethod
    def of(name: str, program: Program, share: float, machine_name: str) -> Budget:
        """Keep a copy of a program within a share of the most bytes that are alive in it."""
        budget = int(share * most_alive(liveness(program), program.ranges))
        start = time.perf_counter()
        report = within_budget(program.clone(), budget, machine_named(machine_name))
        spent = time.perf_counter() - start
        return Budget(name, budget, report.after, len(report.again), 1e6 * report.seconds, spent)


def onnxruntime_peak(workload: Workload) -> int:
    """The high-water mark of ONNX Runtime's arena in a run, above what is in use before its first kernel."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.enable_mem_pattern = True, False
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(str(workload.onnx_path("dynamo")), options, ["CPUExecutionProvider"])
        inputs = workload.inputs(np.random.default_rng(0))
        session.run(None, {port.name: inputs[port.name] for port in session.get_inputs()})
        events = json.loads(Path(session.end_profiling()).read_text())
    found = [event["args"] for event in events if "mem_in_use_peak" in event.get("args", {})]
    before = int(found[0]["mem_bytes_in_use"]) - int(found[0]["mem_in_use_delta"])
    peaks = [int(args["mem_in_use_peak"]) for args in found]
    # What loading the model needed may be more than the run: then the run's own bytes count.
    own = max(int(args["mem_bytes_in_use"]) for args in found)
    return (max(peaks) if max(peaks) > peaks[0] else own) - before


def xla_temporaries(source: str | Program) -> int:
    """The bytes of temporaries that XLA reserves for a program on the CPU."""
    return compile_model(source, target="xla:cpu").memory().temporary_bytes


def table(rows: list[Planned], title: str) -> Report:
    """The figures as text."""
    columns = ["model", "ops", "kernels", "MB moved", "us (model)", "MB alive as given", "MB alive", "arena MB", "gap",
               "XLA MB", "ONNX Runtime MB", "fuse s", "order s", "plan s"]  # fmt: skip
    cells = [
        [
            row.model,
            str(row.ops),
            str(sum(row.kernels.values())),
            f"{row.moved / 1e6:.1f}",
            f"{row.microseconds:.0f}",
            *[f"{size / 1e6:.2f}" for size in (row.given_bound, row.bound, row.peak)],
            "optimal" if row.optimal else f"{100 * row.gap:.2f} %",
            *["-" if n is None else f"{n / 1e6:.2f}" for n in (row.xla_temporaries, row.onnxruntime)],
            *[f"{row.seconds[name]:.2f}" for name in ("fuse", "order", "plan")],
        ]
        for row in rows
    ]
    kinds = [f"{row.model}: {', '.join(f'{n} {kind}' for kind, n in sorted(row.kernels.items()))}" for row in rows]
    return Report(title, columns, cells, kinds)


def budget_table(budgets: list[Budget], rows: list[Planned]) -> Report:
    """What budgets do, as text."""
    planned = {row.model: row for row in rows}
    columns = ["model", "MB alive", "budget MB", "reached MB", "kernels again", "us more (model)", "of", "seconds"]
    cells = [
        [
            b.model, f"{planned[b.model].bound / 1e6:.2f}", f"{b.budget / 1e6:.2f}", f"{b.peak / 1e6:.2f}",
            str(b.again), f"{b.microseconds:.0f}", f"{planned[b.model].microseconds:.0f}", f"{b.seconds:.1f}",
        ]
        for b in budgets
    ]  # fmt: skip
    return Report("Rematerialization of training steps", columns, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all", help="comma-separated names, all or none")
    parser.add_argument("--steps", default="all", help="comma-separated names of training steps, all or none")
    parser.add_argument("--machine", default="sm_90", choices=list(MACHINES))
    parser.add_argument("--seconds", type=float, default=10.0, help="for the search of offsets, per model")
    parser.add_argument("--no-others", action="store_true", help="leave out XLA and ONNX Runtime")
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    rows: list[Planned] = []
    budgets: list[Budget] = []
    for workload in select(options.workloads) if options.workloads != "none" else ():
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        path = str(workload.onnx_path("dynamo"))
        rows.append(plan(workload.name, import_model(path), options.machine, options.seconds)[0])
        if not options.no_others:
            rows[-1].xla_temporaries = xla_temporaries(path)
            rows[-1].onnxruntime = onnxruntime_peak(workload)
    for name in steps(options.steps):
        print(f"{name} ...", file=sys.stderr, flush=True)
        program = STEPS[name]()
        row, found = plan(name, program.clone(), options.machine, options.seconds)
        rows.append(row)
        budgets += found
        if not options.no_others:
            rows[-1].xla_temporaries = xla_temporaries(program)
    reports = [table(rows, f"Kernels for {options.machine}, and their memory")]
    reports += [budget_table(budgets, rows)] if budgets else []
    data = {"machine": machine(), "target": options.machine, "rows": [asdict(row) for row in rows]}
    publish("kernels", reports, data | {"budgets": [asdict(b) for b in budgets]}, options.out)
    sys.exit(any(not row.optimal and row.gap > GAP for row in rows))


def steps(names: str) -> list[str]:
    """The training steps of a comma-separated list."""
    chosen = {"all": list(STEPS), "none": list[str]()}.get(names, names.split(","))
    if unknown := [name for name in chosen if name not in STEPS]:
        sys.exit(f"unknown training step {', '.join(unknown)}; there are: {', '.join(STEPS)}")
    return chosen


if __name__ == "__main__":
    main()
