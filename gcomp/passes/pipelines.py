"""The pipelines of targets. The only place where passes meet."""

from __future__ import annotations

from gcomp.errors import UsageError

GRAPH = "infer-shapes,inline-composites,canonicalize,cse,fold-batch-norm,fold-constants,canonicalize,cse,dce"
"""What every target runs on the graph level."""

_CPU = (
    "conv-channels-last,sink-transposes,canonicalize,sink-transposes,canonicalize,conv-to-arithmetic,dot-weight-layout"
)
_FINISH = "fold-constants,canonicalize,cse,dce"

PIPELINES: dict[str, str] = {
    "none": "infer-shapes",
    "xla:cpu": f"{GRAPH},{_CPU},{_FINISH}",
    "xla:cuda": f"{GRAPH},{_FINISH}",
    "xla:tpu": f"{GRAPH},{_FINISH}",
}
"""Target -> pipeline text."""


def pipeline_for(target: str) -> str:
    """The pipeline of a target. UsageError for an unknown one."""
    if target not in PIPELINES:
        known = ", ".join(t for t in PIPELINES if t != "none")
        raise UsageError(f"there is no target {target!r}", fix=f"the targets are: {known}")
    return PIPELINES[target]
