"""Small models with one tensor in each of the places where ONNX can keep one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from gcomp.frontends.onnx.model.reading import all_graphs, tensor_array

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
RAW = VALUES.tobytes()


def inline(name: str = "w", array: np.ndarray[Any, Any] = VALUES) -> TensorProto:
    return numpy_helper.from_array(array, name)


def external(location: str, name: str = "w", **entries: object) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=VALUES.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


# --- models with one tensor in each of the places where ONNX can keep one


def model_of(nodes: list[onnx.NodeProto], output: str = "y", **graph: Any) -> onnx.ModelProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    made = helper.make_graph(nodes, "main", [flag], [value], **graph)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def in_initializer(tensor: TensorProto) -> onnx.ModelProto:
    return model_of([helper.make_node("Identity", ["w"], ["y"])], initializer=[tensor])


def in_attribute(tensor: TensorProto) -> onnx.ModelProto:
    return model_of([helper.make_node("Constant", [], ["y"], value=tensor)])


def _branch(name: str, tensor: TensorProto) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Identity", ["w"], [f"{name}_y"])], name, [], [value], [tensor])


def in_subgraph(tensor: TensorProto) -> onnx.ModelProto:
    branches = {"then_branch": _branch("then", inline()), "else_branch": _branch("else", tensor)}
    return model_of([helper.make_node("If", ["flag"], ["y"], **branches)])


def in_function(tensor: TensorProto) -> onnx.ModelProto:
    body = [helper.make_node("Constant", [], ["out"], value=tensor)]
    function = helper.make_function("local", "f", [], ["out"], body, [helper.make_opsetid("", 21)])
    model = model_of([helper.make_node("f", [], ["y"], domain="local")])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def in_subgraph_of_function(tensor: TensorProto) -> onnx.ModelProto:
    branches = {"then_branch": _branch("then", inline()), "else_branch": _branch("else", tensor)}
    body = [helper.make_node("If", ["c"], ["out"], **branches)]
    function = helper.make_function("local", "f", ["c"], ["out"], body, [helper.make_opsetid("", 21)])
    model = model_of([helper.make_node("f", ["flag"], ["y"], domain="local")])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def in_sparse_initializer(tensor: TensorProto) -> onnx.ModelProto:
    indices = inline("indices", np.arange(6).reshape(6, 1))
    sparse = onnx.SparseTensorProto(values=tensor, indices=indices, dims=[9])
    return model_of([helper.make_node("Identity", ["w"], ["y"])], sparse_initializer=[sparse])


def in_sparse_attribute(tensor: TensorProto) -> onnx.ModelProto:
    indices = inline("indices", np.arange(6).reshape(6, 1))
    node = helper.make_node("Constant", [], ["y"])
    sparse = onnx.SparseTensorProto(values=tensor, indices=indices, dims=[9])
    node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse)
    return model_of([node])


DENSE = [in_initializer, in_attribute, in_subgraph, in_function, in_subgraph_of_function]
SPARSE = [in_sparse_initializer, in_sparse_attribute]


def tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    for graph in all_graphs(model):
        for value in graph.initializers.values():
            assert value.const_value is not None
            yield value.const_value
        for node in graph:
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.TENSOR:
                    yield attribute.as_tensor()
                elif attribute.type == ir.AttributeType.TENSORS:
                    yield from attribute.as_tensors()


def arrays(model: ir.Model) -> list[np.ndarray[Any, Any]]:
    return [tensor_array(tensor, "test") for tensor in tensors(model)]


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path
