"""Pieces of pipelines, which targets put together (`gcomp.targets`). The only place where passes meet."""

from __future__ import annotations

from gcomp.analysis.machines import MACHINES

OPEN = "infer-shapes,inline-composites,expand-chlo"
GRAPH = (
    "canonicalize,cse,fold-constants,fold-batch-norm,fold-constants,merge-convolutions,"
    "fold-constants,canonicalize,cse,dce"
)
"""What every target runs on the graph level, after `OPEN`."""

RAISE = (
    "infer-shapes,fold-constants,canonicalize,cse,"
    "raise-activations,raise-softmax,raise-norms,raise-rotary,raise-attention,cse,dce"
)
"""For targets that use composites by name, and to see what a model is made of. XLA's CPU backend uses none."""

_REAL = "decompose,complex-to-pairs,view-as-real"
"""GPUs have no library of functions, and no complex type."""

TO_SHARDING = f"inline,{OPEN},decompose,{GRAPH}"
"""What comes before plans for several devices: ops that have rules, and no calls."""

TO_FUSION = f'inline,{RAISE},fold-batch-norm,inline-composites{{keep="gcomp.attention"}},expand-chlo,{_REAL},{GRAPH}'
"""What comes before kernels: attention stays a composite, which makes a kernel; all else is found by fusion itself.
Memory is planned for whole programs: calls are opened first. Batch normalizations are folded while they are ops."""

_PLACES = "plan-memory"
PLANNED = f"fuse,order-for-memory,{_PLACES}"
KERNELS = f"{TO_FUSION},{PLANNED}"
"""From a graph to kernels with places in one arena."""


def planned_pipeline(machine: str, panels: str) -> str:
    """From a graph to kernels with places in one arena, cut by the model of a machine; weights in another's panels."""
    packed = f'pack-convolution-weights{{target="{panels}"}}'
    return f'fuse{{target="{machine}"}},{packed},order-for-memory,{_PLACES}{{slots=true}}'


FINISH = "fold-constants,canonicalize,cse,dce"
"""What may be left to do after rewrites for one target."""


def within_budget(pipeline: str, memory_budget: int, machine: str) -> str:
    """A pipeline that ends with a plan of memory, within a budget of bytes: kernels may run again before it is made.

    What that costs is said by the model of a machine, if there is one.
    """
    options = " ".join([f"budget={memory_budget}", *([f'target="{machine}"'] if machine in MACHINES else [])])
    before, places, after = pipeline.rpartition(_PLACES)
    return f"{before}rematerialize{{{options}}},{places}{after}"


def around_fusion(pipeline: str) -> tuple[str, str]:
    """The passes of a pipeline before kernels are made, and those that make them, without what plans their memory; none
    where it makes no kernels."""
    before, _, after = pipeline.rpartition(",fuse")
    return (before, f"fuse{after}".partition(",order-for-memory")[0]) if before else (TO_FUSION, "")
