"""Every different kernel of the benchmark models as tile programs, in the evaluator, beside the reference; no GPU.

    python -m benchmarks.gpu_kernels [--workloads all] [--target triton:sm_90] [--out DIR]

Each model is cut into kernels as for the target, and run in the reference on random inputs. The tile programs of a
kernel, in the configuration that is chosen for the target, get what the reference has computed so far, and are held to
what the graph means within the kernel's class (docs/guides/tiles.md); launches of equal layers share a kernel, which
runs once. Exits 1 if a kernel is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from benchmarks.report import Report, publish
from benchmarks.workloads import Workload, select
from gcomp.errors import GcompError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.triton.aot import Compiler
from gcomp.lowering.triton.choose import GpuKernels, choose
from gcomp.lowering.triton.targets import parse_target
from gcomp.measuring.timing import machine
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import PLANNED
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.contract import Mismatch
from gcomp.sources import import_model
from gcomp.targets.base import target_named
from gcomp.testing.tiles import TileChecker

Array = np.ndarray[Any, Any]


@dataclass
class Checked:
    """One model's figures."""

    model: str
    launches: int = 0
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    """Different kernels, by kind."""
    wrong: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def row(self) -> list[str]:
        """A row of the table."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        numbers = self.launches, sum(self.kinds.values()), len(self.wrong), round(self.seconds)
        return [self.model, *map(str, numbers), kinds]


class _Once(TileChecker):
    """Checks the first launch of each form, in the configuration that is chosen for it."""

    def __init__(
        self, program: Program, chosen: Mapping[Hashable, GpuKernels], checked: Checked, bar: Progress
    ) -> None:
        super().__init__(program, self._told, lambda op: chosen[form_of(op)].scheduled)
        self._seen: set[Hashable] = set()
        self._checked, self._bar = checked, bar
        self._task = bar.add_task(checked.model, total=len(chosen))

    def _told(self, op: LaunchOp, mismatches: Sequence[Mismatch]) -> None:
        if mismatches:
            self._checked.wrong.append(f"{op.kind_name} {op.label_name}: {'; '.join(map(str, mismatches))}")

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        """Run a launch whose form is new as tile programs too."""
        if (form := form_of(op)) in self._seen:
            return
        self._seen.add(form)
        kinds = self._checked.kinds
        kinds[op.kind_name] = kinds.get(op.kind_name, 0) + 1
        self._bar.update(self._task, description=f"{self._checked.model}: {op.label_name[:32]}")
        try:
            super().check(op, args, sizes, expected)
        except GcompError as error:
            self._checked.wrong.append(f"{op.kind_name} {op.label_name}: {error}")
        self._bar.advance(self._task)


def checked(workload: Workload, target: str, compiler: Compiler, bar: Progress) -> Checked:
    """Run a model's kernels."""
    started, found = time.perf_counter(), Checked(workload.name)
    program = import_model(str(workload.onnx_path("dynamo")))
    pipeline = f"{target_named('triton:sm_90').pipeline().removesuffix(PLANNED)}fuse"
    PassManager(parse_pipeline(pipeline)).run(program)
    launches = [op for op in program.ops() if isinstance(op, LaunchOp)]
    (on,) = parse_target(target)
    chosen = choose(launches, program.ranges, on, compiler)
    given = workload.inputs(np.random.default_rng(0))
    found.launches = len(launches)
    _Once(program, chosen, found, bar).run([given[port.name] for port in program.inputs()])
    found.seconds = time.perf_counter() - started
    return found


def main() -> int:
    """Check, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--target", default="triton:sm_90", help="one architecture")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the results; the cache if not given")
    options = parser.parse_args()
    with Compiler() as compiler, Progress() as bar:
        results = [checked(workload, options.target, compiler, bar) for workload in select(options.workloads)]
    columns = ("model", "launches", "kernels", "wrong", "seconds", "kinds")
    wrong = [f"{one.model}: {text}" for one in results for text in one.wrong]
    report = Report(f"Kernels for {options.target} in the evaluator", columns, [one.row for one in results], wrong)
    data = {"machine": machine(), "target": options.target, "models": [asdict(one) for one in results]}
    publish("gpu_kernels", [report], data, options.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
