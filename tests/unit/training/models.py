"""Small ONNX models for training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def model(text: str, weights: Mapping[str, Array], opset: int = 18) -> onnx.ModelProto:
    """The model of a graph's text (`g (float[n,3] x) => (float[n,2] y) {...}`), with initializers."""
    found = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    found.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items())
    onnx.checker.check_model(found)
    return found


def draw(*shape: int) -> Array:
    """Normally distributed numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


MLP_WEIGHTS: dict[str, Array] = {"w1": draw(4, 8), "b1": draw(8), "w2": draw(8, 3), "b2": draw(3)}
MLP = model(
    """g (float[n, 4] x) => (float[n, 3] logits) {
        a = MatMul(x, w1)
        b = Add(a, b1)
        c = Tanh(b)
        d = MatMul(c, w2)
        logits = Add(d, b2)
    }""",
    MLP_WEIGHTS,
)
X, Y = draw(6, 4), np.array([0, 2, 1, 1, 0, 2])


def batches(count: int, size: int = 6) -> Sequence[tuple[Array, Array]]:
    """Inputs and classes for the MLP."""
    rng = np.random.default_rng(8)
    return [(rng.standard_normal((size, 4)).astype(np.float32), rng.integers(0, 3, size)) for _ in range(count)]
