"""How near kernels come to what the machine does at best: multiply-adds and copied bytes, measured in the same run.

    python -m benchmarks.roofline [--workloads all] [--threads 1] [--out DIR]

For each model: the time of its kernels, the part of it in kernels that arithmetic bounds and their share of the peak of
multiply-adds, and the part in those that memory bounds and their share of the copy bandwidth. Kernels whose operands
lie in caches may have more than all of it. A page for each model shows its kernels under the roofline.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gcomp
from benchmarks.report import Report, publish
from benchmarks.workloads import Workload, select
from gcomp.analysis.machines import Machine, machine_named
from gcomp.cli.inspecting import measured_machine
from gcomp.measuring.timing import machine as describe_machine
from gcomp.report.costs import costs_of, plans_of
from gcomp.report.page import view_page
from gcomp.report.roofline import Point, measured_by_text, points, roofline_view
from gcomp.runtime.cpu.variants import this_machine

COLUMNS = ("model", "kernels us", "Gflop/s", "GB/s", "in arithmetic", "of its peak", "in memory", "of its bandwidth")


def measure(workload: Workload, threads: int) -> tuple[list[Point], Machine]:
    """The kernels of a workload with their measured times, and the machine as it was then."""
    model = gcomp.compile(workload.onnx_path("dynamo"), target="cpu", threads=threads)
    inputs: dict[str, Any] = dict(workload.inputs(np.random.default_rng(0)))
    named = {port.name: inputs[port.name] for port in model.inputs}
    (plan,) = plans_of(model)
    costs = costs_of(plan, {})
    measured = measured_by_text(costs, model.profile(**named))
    machine = measured_machine(machine_named(this_machine()), threads)
    return points([replace(cost, rate=machine.wide_contraction) for cost in costs], measured), machine


def row(name: str, found: list[Point], machine: Machine) -> list[str]:
    """The line of the table for a model."""
    parts: list[str] = []
    for bound in ("arithmetic", "memory"):
        those = [p for p in found if (p.bound(machine) == bound)]
        seconds = sum(p.count * p.seconds for p in those)
        least = sum(p.count * p.roof(machine) for p in those)
        parts += [f"{1e6 * seconds:,.0f} us", f"{100 * least / seconds:.0f} %" if seconds else "-"]
    total = sum(p.count * p.seconds for p in found)
    return [
        name, f"{1e6 * total:,.0f}", f"{machine.wide_contraction / 1e9:.0f}", f"{machine.bandwidth / 1e9:.0f}", *parts,
    ]  # fmt: skip


def main() -> None:
    """Measure, print and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[list[str]] = []
    folder = options.out or Path(tempfile.mkdtemp(prefix="roofline-"))
    folder.mkdir(parents=True, exist_ok=True)
    for workload in select(options.workloads):
        found, machine = measure(workload, options.threads)
        rows.append(row(workload.name, found, machine))
        page = view_page(f"Roofline of {workload.name} on {machine.name}", roofline_view(found, machine))
        (folder / f"{workload.name}.roofline.html").write_text(page, "utf-8")
    title = f"shares of the measured peaks, {options.threads} thread{'s' * (options.threads > 1)}"
    publish("roofline", [Report(title, COLUMNS, rows)], {"machine": describe_machine(), "rows": rows}, folder)


if __name__ == "__main__":
    main()
