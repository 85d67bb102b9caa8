"""The pipelines of targets. The only place where passes meet."""

from __future__ import annotations

from gcomp.errors import UsageError

_OPEN = "infer-shapes,inline-composites"
GRAPH = "canonicalize,cse,fold-batch-norm,fold-constants,canonicalize,cse,dce"
"""What every target runs on the graph level, after `_OPEN`."""

_CPU_INTEGERS = "integer-products"
"""Before constants are folded: it looks for the widening of weights that are stored in 8 bits. `quantized-products`,
which makes more integers, does not pay on this target (docs/benchmarks.md)."""

_CPU = (
    "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,"
    "conv-to-arithmetic,window-to-arithmetic,dot-weight-layout"
)
"""Convolutions with channels last; then what the CPU backend runs faster as arithmetic, or in another layout."""

_FINISH = "fold-constants,canonicalize,cse,dce"

PIPELINES: dict[str, str] = {"xla:cpu": f"{_OPEN},{_CPU_INTEGERS},{GRAPH},{_CPU},{_FINISH}"}
"""Target -> pipeline text."""


def pipeline_for(target: str) -> str:
    """The pipeline of a target. UsageError for an unknown one."""
    if target not in PIPELINES:
        raise UsageError(f"there is no target {target!r}", fix=f"the targets are: {', '.join(PIPELINES)}")
    return PIPELINES[target]
