"""Processors: tile programs become machine code, ahead of time, for each kind of processor that a target names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcomp.exactness import Numerics
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from gcomp.runtime.engine import Ability
from gcomp.runtime.executor import Array, Executor, StatefulExecutor
from gcomp.targets.base import Report, Target

if TYPE_CHECKING:
    from gcomp.analysis.accounts import Account
    from gcomp.ir.program import Program
    from gcomp.runtime.plan import Plan

_BYTES = 'inline,infer-shapes,quantized-products{form="bytes"},integer-products{form="bytes"}'
"""Quantized values are multiplied as bytes: while the widening of weights that are stored in 8 bits is still seen."""

_LAYOUTS = (
    "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,"
    "conv-dilation-apart,conv-to-arithmetic{{max-features=15}},window-to-arithmetic{{rows=true}},conv-padding-apart,"
    'cse,fold-constants,{choice}pack-dot-weights{{target="{panels}"}},dot-weight-layout'
)
"""Convolutions with channels last, transposed ones by phases, depthwise ones as sums of products, weights as products
read them: in panels. Equal views of a weight that layers share become one (`cse`), which can be folded."""

_CHOICES: Mapping[Numerics, str] = {
    "exact": "",
    "standard": 'choose-convolutions{{target="{panels}"}},',
    "fast": 'choose-convolutions{{target="{panels}" factor=8}},',
}
"""Class of numerics -> the passes that choose how sums are computed."""


class Cpu(Target):
    """`cpu:x86-64-v3`, or several kinds of processors in one artifact: `cpu:x86-64-v3,x86-64-v4`.

    `cpu` is the kind of this machine's processor.
    """

    family = "cpu"
    samples = ("cpu",)
    abilities = frozenset({
        Ability.STATE, Ability.LOOKING, Ability.MEMORY_BUDGET, Ability.THREADS, Ability.LAUNCHES, Ability.PROFILE,
        Ability.NUMERICS, Ability.TUNING,
    })  # fmt: skip
    reasons = {
        Ability.BUCKETS: "sizes are arguments of its code, which runs any size without padding",
    }

    @classmethod
    def full_name(cls, name: str) -> str:
        return f"{cls.family}:{this_machine()}" if name == cls.family else name

    def accepts(self) -> bool:
        return set(self.variants) <= VARIANTS.keys() and len(set(self.variants)) == len(self.variants)

    @property
    def machine(self) -> str:
        return self.variants[0]

    def pipeline(self, memory_budget: int | None = None, numerics: Numerics = "standard") -> str:
        from gcomp.passes.pipelines import FINISH, TO_FUSION, planned_pipeline, within_budget

        # What several kinds of processors read is stored once, as suits any.
        panels = self.machine if len(self.variants) == 1 else self.family
        kernels = f"drop-barriers,library-to-host,dot-rows,fold-constants,{planned_pipeline(self.machine, panels)}"
        layouts = _LAYOUTS.format(panels=panels, choice=_CHOICES[numerics].format(panels=panels))
        graph = f"{_BYTES},{TO_FUSION},fold-scales"
        found = f"{graph},{layouts},{FINISH},{kernels}"
        return found if memory_budget is None else within_budget(found, memory_budget, self.machine)

    def get_ready(self) -> None:
        from gcomp.lowering.llvm.codegen import prepare

        prepare()

    def lower(self, program: Program, *, report: Report, tuned: Path | None = None) -> Plan:
        from gcomp.lowering.llvm.lower import lower
        from gcomp.lowering.llvm.tuning import read_for

        results = None if tuned is None else read_for(tuned, self.variants)
        return lower(program, self.name, [VARIANTS[name] for name in self.variants], progress=report, tuned=results)

    def code_texts(self, program: Program) -> Mapping[str, str]:
        from gcomp.lowering.llvm.lower import code_texts

        return code_texts(program, VARIANTS[self.variants[0]])

    def accounts(self, program: Program) -> Sequence[Account]:
        from gcomp.lowering.llvm.accounts import accounts

        return accounts(program, VARIANTS[self.variants[0]])

    def join(self, plan: Plan, program: Program, aside: Plan, shown: Program) -> Plan:
        from gcomp.lowering.beside import beside
        from gcomp.lowering.llvm.lower import rename_images

        moved, texts = rename_images(aside, "aside")
        return beside(plan, moved, program.weights, shown.weights, texts)

    def executor(self, plan: Plan, weights: Mapping[str, Array]) -> Executor:
        from gcomp.runtime.cpu.executor import CpuExecutor

        return CpuExecutor(plan, weights)

    def launch_plans(self, text: str, where: str) -> Mapping[str, Any]:
        from gcomp.runtime.cpu.plan import from_text

        return from_text(text, where)

    def stateful_executor(self, plan: Plan, weights: Mapping[str, Array]) -> StatefulExecutor:
        from gcomp.runtime.cpu.resident import ResidentExecutor

        return ResidentExecutor(plan, weights)

    def set_threads(self, count: int) -> None:
        from gcomp.runtime.cpu.threads import check_count

        check_count(count)


TARGET = Cpu
