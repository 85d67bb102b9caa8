"""Triton: kernels for GPUs, compiled ahead of time for each architecture that a target names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcomp.exactness import Numerics
from gcomp.runtime.engine import Ability
from gcomp.runtime.executor import Array, Executor, StatefulExecutor
from gcomp.targets.base import Report, Target

if TYPE_CHECKING:
    from gcomp.ir.program import Program
    from gcomp.runtime.plan import Plan


class Triton(Target):
    """`triton:sm_90`, or several architectures in one artifact: `triton:sm_80,sm_90`."""

    family = "triton"
    samples = ("triton:sm_90",)
    abilities = frozenset({Ability.STATE, Ability.TUNING, Ability.MEMORY_BUDGET, Ability.LAUNCHES, Ability.PROFILE})
    reasons = {Ability.THREADS: "a GPU's kernels have threads of their own"}

    @property
    def machine(self) -> str:
        return self.variants[0]

    def pipeline(self, memory_budget: int | None = None, numerics: Numerics = "standard") -> str:
        from gcomp.passes.pipelines import PLANNED, TO_FUSION, within_budget

        found = f"{TO_FUSION},drop-barriers,library-to-host,{PLANNED}"
        return found if memory_budget is None else within_budget(found, memory_budget, self.machine)

    def lower(self, program: Program, *, report: Report, tuned: Path | None = None) -> Plan:
        from gcomp.lowering.triton.lower import lower
        from gcomp.lowering.triton.tuning import read_for

        return lower(
            program,
            self.name,
            progress=lambda done, total: report(f"compiling kernels: {done} of {total}"),
            tuned=None if tuned is None else read_for(tuned, self.name),
        )

    def executor(self, plan: Plan, weights: Mapping[str, Array]) -> Executor:
        from gcomp.runtime.cuda.executor import CudaExecutor

        return CudaExecutor(plan, weights)

    def launch_plans(self, text: str, where: str) -> Mapping[str, Any]:
        from gcomp.runtime.cuda.plan import from_text

        return from_text(text, where)

    def stateful_executor(self, plan: Plan, weights: Mapping[str, Array]) -> StatefulExecutor:
        from gcomp.runtime.cuda.resident import ResidentExecutor

        return ResidentExecutor(plan, weights)


TARGET = Triton
