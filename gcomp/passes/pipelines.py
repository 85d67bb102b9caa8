"""The pipelines of targets. The only place where passes meet."""

from __future__ import annotations

from gcomp.analysis.machines import MACHINES
from gcomp.errors import UsageError

_OPEN = "infer-shapes,inline-composites,expand-chlo"
GRAPH = "canonicalize,cse,fold-constants,fold-batch-norm,fold-constants,canonicalize,cse,dce"
"""What every target runs on the graph level, after `_OPEN`."""

RAISE = (
    "infer-shapes,fold-constants,canonicalize,cse,"
    "raise-activations,raise-softmax,raise-norms,raise-rotary,raise-attention,cse,dce"
)
"""For targets that use composites by name, and to see what a model is made of. XLA's CPU backend uses none."""

_REAL = "decompose,complex-to-pairs,view-as-real"
"""GPUs have no library of functions, and no complex type."""

TO_FUSION = f'inline,{RAISE},fold-batch-norm,inline-composites{{keep="gcomp.attention"}},expand-chlo,{_REAL},{GRAPH}'
"""What comes before kernels: attention stays a composite, which makes a kernel; all else is found by fusion itself.
Memory is planned for whole programs: calls are opened first. Batch normalizations are folded while they are ops."""

_PLACES = "plan-memory"
PLANNED = f"fuse,order-for-memory,{_PLACES}"
KERNELS = f"{TO_FUSION},{PLANNED}"
"""From a graph to kernels with places in one arena."""

_CPU_INTEGERS = "quantized-products,integer-products,quanta-in-f32"
"""Before constants are folded: these look for the widening of weights that are stored in 8 bits. Sums of quanta take as
long as sums of the numbers that they stand for, or less, and are exact."""

_CPU = (
    "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,"
    "conv-to-arithmetic,window-to-arithmetic,dot-weight-layout,guard-max-shift"
)
"""Convolutions with channels last; then what the CPU backend runs faster as arithmetic, or in another layout."""

_FINISH = "fold-constants,canonicalize,cse,dce"

PIPELINES: dict[str, str] = {
    "xla:cpu": f"{_OPEN},{_CPU_INTEGERS},{GRAPH},{_CPU},{_FINISH}",
    "triton": f"{TO_FUSION},drop-barriers,library-to-host,{PLANNED}",
}
"""Target, or the part of it before the colon -> pipeline text."""


def pipeline_for(target: str, memory_budget: int | None = None) -> str:
    """The pipeline of a target; within a budget of bytes, kernels may run again before memory is planned.

    UsageError for an unknown target, and for a budget where the target plans its memory itself.
    """
    found = PIPELINES.get(target) or PIPELINES.get(target.partition(":")[0])
    if found is None or not target.partition(":")[2]:
        raise UsageError(
            f"there is no target {target!r}", fix="the targets are: xla:cpu, and triton:sm_90 and the like for GPUs"
        )
    if memory_budget is None:
        return found
    if not found.endswith(_PLACES):
        raise UsageError(
            f"{target} takes no memory budget",
            why="XLA plans memory itself",
            fix="compile for a GPU, as in triton:sm_90",
        )
    machine = target.partition(":")[2].partition(",")[0]
    options = " ".join([f"budget={memory_budget}", *([f'target="{machine}"'] if machine in MACHINES else [])])
    return found.removesuffix(_PLACES) + f"rematerialize{{{options}}},{_PLACES}"
