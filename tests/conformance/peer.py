"""Compares a compiled model with ONNX Runtime, and both with float64 where that is known.

The error of an output is its greatest absolute difference over the greatest magnitude of what is expected: of the
output's scale, not element by element, for sums of many terms cancel. Integers and booleans are exactly equal.
NaN and infinity stand in the same places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

if TYPE_CHECKING:
    from gcomp.runtime.model import Model

Array = np.ndarray[Any, Any]

TOLERANCE: Mapping[str, float] = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Dtype -> the error that two right evaluations may have between them: a few hundred roundings of the type."""


class Peer:
    """A model in ONNX Runtime, on one thread; with `fused=False` as it is written, node by node."""

    def __init__(self, source: str | bytes, *, fused: bool = True) -> None:
        import onnxruntime as ort

        ort.set_default_logger_severity(4)
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if not fused:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.inputs = tuple(i.name for i in self._session.get_inputs())

    def __call__(self, arrays: Mapping[str, Array]) -> list[Array]:
        return self._session.run(None, {name: arrays[name] for name in self.inputs})


def error(got: Array, want: Array) -> float:
    """The error of `got`; infinite where it is of another shape or kind, or special values stand elsewhere."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return float("inf")
    if want.dtype.kind not in "fc":
        return 0.0 if bool(np.array_equal(got, want)) else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    special = np.array_equal(a[~finite], b[~finite], equal_nan=True)
    if not special or not bool(np.isfinite(a[finite]).all()):
        return float("inf")
    if not finite.any():
        return 0.0
    difference, scale = float(np.abs(a - b, where=finite, out=np.zeros_like(a)).max()), float(np.abs(b[finite]).max())
    return difference / scale if scale else difference


def errors(got: Sequence[Array], want: Sequence[Array]) -> float:
    """The greatest error of several outputs."""
    if len(got) != len(want):
        return float("inf")
    return max((error(a, b) for a, b in zip(got, want, strict=True)), default=0.0)


def tolerance(outputs: Sequence[Array]) -> float:
    """The tolerance of the narrowest type among the outputs."""
    return max((TOLERANCE.get(str(o.dtype), 0.0) for o in outputs), default=0.0)


def agrees(ours: float, peers: float | None, exact: float | None, allowed: float) -> bool:
    """Whether a result is right.

    `ours` is the difference from ONNX Runtime, `exact` our error against float64 and `peers` that of ONNX Runtime.
    Where a model amplifies roundings, so that both lie apart, ours may be at most twice as far from float64.
    """
    return ours <= allowed or (peers is not None and exact is not None and exact <= 2 * peers < 100 * allowed)


def host_steps(model: Model) -> list[str]:
    """The host functions that a compiled model calls, one for each step."""
    from gcomp.runtime.plan import HostStep

    return [step.function for step in model.plan.steps if isinstance(step, HostStep)]


def node_count(source: Path) -> int:
    """The nodes of a model, those of its functions and subgraphs included."""
    model = onnx.load(source, load_external_data=False)
    return _nodes(model.graph.node) + sum(_nodes(f.node) for f in model.functions)


def _nodes(nodes: Sequence[onnx.NodeProto]) -> int:
    return sum(1 + sum(_nodes(a.g.node) for a in node.attribute if a.HasField("g")) for node in nodes)
