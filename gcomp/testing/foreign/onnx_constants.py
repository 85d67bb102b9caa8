# pyright: basic
"""Constants of ONNX models that are to be mutated: as raw bytes, and in place of inputs that hold axes and the like."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

_MOST, _KEPT, _SCALARS = 64, 0.15, 0.5


def raw(model: ModelProto) -> None:
    """Keep all constants as raw bytes, which the mutators know."""
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    for tensor in tensors:
        if tensor.data_type != TensorProto.STRING and not tensor.HasField("raw_data"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))


def fix_inputs(chance: Random, model: ModelProto, inputs: Mapping[str, Any]) -> None:
    """Make constants of inputs that hold axes, shapes and the like: gcomp must know them when it compiles."""
    values = list(model.graph.input)
    for value in values[1:]:
        array = inputs.get(value.name)
        if not isinstance(array, np.ndarray) or array.size > _MOST or chance.random() < _KEPT:
            continue
        if array.dtype.kind in "iub" or (array.ndim == 0 and chance.random() < _SCALARS):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            model.graph.input.remove(value)


__all__ = ["fix_inputs", "raw"]
