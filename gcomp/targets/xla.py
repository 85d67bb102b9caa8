"""XLA through JAX: programs are exported as StableHLO, and compiled when they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gcomp.exactness import Numerics
from gcomp.runtime.buckets import PaddedExecutor
from gcomp.runtime.engine import Ability
from gcomp.runtime.executor import Array, Executor, StatefulExecutor
from gcomp.targets.base import Report, Target

if TYPE_CHECKING:
    from gcomp.ir.program import Program
    from gcomp.runtime.plan import Plan
    from gcomp.runtime.signature import Signature

_INTEGERS = "quantized-products,integer-products,quantized-values-in-f32"
"""Before constants are folded: these look for the widening of weights that are stored in 8 bits. Sums of quantized
values take as long as sums of the numbers that they stand for, or less, and are exact."""

_CPU = (
    "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,"
    "conv-to-arithmetic,window-to-arithmetic,dot-weight-layout,guard-max-shift"
)
"""Convolutions with channels last; then what the CPU backend runs faster as arithmetic, or in another layout."""


class Xla(Target):
    """`xla:cpu`."""

    family = "xla"
    samples = ("xla:cpu",)
    abilities = frozenset(
        {
            Ability.BUCKETS,
            Ability.MESH,
            Ability.STATE,
            Ability.LOOKING,
            Ability.THREADS,
            Ability.COMPILES_WHEN_LOADED,
            Ability.PROFILE,
        }
    )
    reasons = {
        Ability.MEMORY_BUDGET: "XLA plans memory itself",
        Ability.TUNING: "XLA chooses its kernels itself",
        Ability.LAUNCHES: "XLA makes the kernels when the model is loaded",
    }

    def accepts(self) -> bool:
        return self.variants == ("cpu",)

    @property
    def machine(self) -> str:
        return "cpu"

    def pipeline(self, memory_budget: int | None = None, numerics: Numerics = "standard") -> str:
        from gcomp.passes.pipelines import FINISH, GRAPH, OPEN

        return f"{OPEN},{_INTEGERS},{GRAPH},{_CPU},{FINISH}"

    def lower(self, program: Program, *, report: Report, tuned: Path | None = None) -> Plan:
        from gcomp.lowering.xla import lower

        return lower(program, self.name)

    def join(self, plan: Plan, program: Program, aside: Plan, shown: Program) -> Plan:
        from gcomp.lowering.beside import beside

        texts = {name: f"aside{i or ''}.mlir" for i, name in enumerate(aside.texts)}
        return beside(plan, aside, program.weights, shown.weights, texts)

    def executor(self, plan: Plan, weights: Mapping[str, Array]) -> Executor:
        if plan.mesh:
            from gcomp.runtime.xla.mesh import MeshExecutor

            return MeshExecutor(plan, weights, *self.variants)
        from gcomp.runtime.xla.executor import XlaExecutor

        return XlaExecutor(plan, weights, *self.variants)

    def stateful_executor(self, plan: Plan, weights: Mapping[str, Array]) -> StatefulExecutor:
        if plan.mesh:
            from gcomp.runtime.xla.mesh import MeshExecutor

            return MeshExecutor(plan, weights, *self.variants)
        from gcomp.runtime.xla.resident import ResidentExecutor

        return ResidentExecutor(plan, weights, *self.variants)

    def padded_executor(self, plan: Plan, weights: Mapping[str, Array], signature: Signature) -> PaddedExecutor:
        from gcomp.runtime.xla.padded import PaddedExecutor

        return PaddedExecutor(plan, weights, signature, *self.variants)

    def set_threads(self, count: int) -> None:
        from gcomp.runtime.xla.options import use_threads

        use_threads(count)


TARGET = Xla
