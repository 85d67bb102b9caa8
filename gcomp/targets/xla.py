"""XLA through JAX, on processors and on GPUs: programs are exported as StableHLO, and compiled when they are loaded."""

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

_SUITED: Mapping[str, str] = {
    "cpu": "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,"
    "conv-to-arithmetic,window-to-arithmetic,dot-weight-layout,guard-max-shift",
    "cuda": "guard-max-shift",
}
"""By device: convolutions with channels last, and what XLA's CPU backend runs faster as arithmetic, or in another
layout; on GPUs it chooses layouts itself. Both multiply and add in one step, which `guard-max-shift` guards against."""

_MACHINES: Mapping[str, str] = {"cpu": "cpu", "cuda": "sm_90"}


class Xla(Target):
    """`xla:cpu`, and `xla:cuda` on the GPUs that jaxlib's plugin for CUDA finds."""

    family = "xla"
    samples = ("xla:cpu", "xla:cuda")
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
    lacking = {"cuda": frozenset({Ability.THREADS, Ability.PROFILE})}
    reasons = {
        Ability.MEMORY_BUDGET: "XLA plans memory itself",
        Ability.TUNING: "XLA chooses its kernels itself",
        Ability.LAUNCHES: "XLA makes the kernels when the model is loaded",
        Ability.THREADS: "a GPU's kernels have threads of their own",
        Ability.PROFILE: "XLA's profiler of GPUs is not read; use JAX's own",
    }

    def accepts(self) -> bool:
        return len(self.variants) == 1 and self.variants[0] in _SUITED

    @property
    def _device(self) -> str:
        return self.variants[0]

    @property
    def machine(self) -> str:
        return _MACHINES[self._device]

    def pipeline(self, memory_budget: int | None = None, numerics: Numerics = "standard") -> str:
        from gcomp.passes.pipelines import FINISH, GRAPH, OPEN

        return f"{OPEN},{_INTEGERS},{GRAPH},{_SUITED[self._device]},{FINISH}"

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

            return MeshExecutor(plan, weights, self._device)
        from gcomp.runtime.xla.executor import XlaExecutor

        return XlaExecutor(plan, weights, self._device)

    def stateful_executor(self, plan: Plan, weights: Mapping[str, Array]) -> StatefulExecutor:
        if plan.mesh:
            from gcomp.runtime.xla.mesh import MeshExecutor

            return MeshExecutor(plan, weights, self._device)
        from gcomp.runtime.xla.resident import ResidentExecutor

        return ResidentExecutor(plan, weights, self._device)

    def padded_executor(self, plan: Plan, weights: Mapping[str, Array], signature: Signature) -> PaddedExecutor:
        from gcomp.runtime.xla.padded import PaddedExecutor

        return PaddedExecutor(plan, weights, signature, self._device)

    def set_threads(self, count: int) -> None:
        from gcomp.runtime.xla.options import use_threads

        use_threads(count)


TARGET = Xla
