"""Asking ONNX's own shape inference whether a node contradicts its inputs.

An importer that fails on a node, where it took the node to be as ONNX demands, asks here before it blames itself.
"""

from __future__ import annotations

from typing import Any, cast

import onnx
import onnx.checker
import onnx.shape_inference
import onnx_ir

from gcomp.dims import Dim
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.schemas import schema_of
from gcomp.frontends.onnx.model.values import ELEMENTS, Value

_NUMBERS = {text: int(dtype) for dtype, text in ELEMENTS.items()}


def contradiction(ctx: NodeContext, domain: str) -> str | None:
    """Why ONNX refuses the node with these inputs, or None where it does not, or has no opinion."""
    schema = schema_of(domain, ctx.op_type, ctx.opset)
    if schema is None:
        return None
    node = onnx_ir.to_proto(ctx.node)
    del node.attribute[:]
    node.attribute.extend(onnx_ir.to_proto(a) for name in ctx.node.attributes if (a := ctx.attribute(name)) is not None)
    types: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for i, value in enumerate(ctx.values):
        if not isinstance(value, Value):
            continue
        node.input[i] = f"input_{i}"
        sizes = [str(s) if isinstance(s, Dim) else s for s in value.shape]
        types[node.input[i]] = onnx.helper.make_tensor_type_proto(_NUMBERS[value.element], sizes)
        if value.small and not value.symbolic:
            data[node.input[i]] = onnx.numpy_helper.from_array(cast(Any, value.known))
    try:
        cast(Any, onnx.shape_inference).infer_node_outputs(schema, node, types, data)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        return str(error).splitlines()[0][:300]
    except (RuntimeError, TypeError, ValueError):
        return None
    return None
