"""Functions: those that a model brings along, and those that ONNX's own definitions of operators contain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import onnx
import onnx_ir

from gcomp.dims import Dim
from gcomp.frontends.onnx.engine import schemas
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import ELEMENTS, Value


def domain_of(domain: str) -> str:
    """A domain's name; ONNX's own has two."""
    return "" if domain == "ai.onnx" else domain


class FunctionTable:
    """The model's functions, by domain, name and overload."""

    def __init__(self, model: onnx_ir.Model) -> None:
        self._model = model
        self._table = {(domain_of(d), name, overload): f for (d, name, overload), f in model.functions.items()}

    def find(self, node: onnx_ir.Node) -> onnx_ir.Function | None:
        """The function that a node calls, or None."""
        return self._table.get((domain_of(node.domain), node.op_type, node.overload)) if self._table else None

    def opsets(self, function: onnx_ir.Function, default: Mapping[str, int]) -> dict[str, int]:
        """The opset versions that a function's body is written for."""
        return dict(default) | {domain_of(d): v for d, v in function.opset_imports.items()}

    def reachable(self) -> Iterator[onnx_ir.Function]:
        """The functions that the model's graph calls, directly or through others, once each."""
        seen: dict[onnx_ir.Function, None] = {}
        pending: list[onnx_ir.Graph] = [self._model.graph]
        while pending and self._table:
            for node in pending.pop().all_nodes():
                function = self.find(node)
                if function is not None and function not in seen:
                    seen[function] = None
                    pending.append(function.graph)
        yield from seen


@lru_cache(1024)
def has_body(domain: str, operator: str, version: int) -> bool:
    """Whether ONNX defines the operator by a function over other operators."""
    schema = schemas.schema_of(domain, operator, version)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def body_of(ctx: NodeContext, domain: str) -> onnx_ir.Function:
    """The function that ONNX defines the node's operator by, for the node's inputs and attributes."""
    schema = schemas.schema_of(domain, ctx.op_type, ctx.opset)
    if schema.has_function:
        return _plain_body(domain, ctx.op_type, ctx.opset)
    node = onnx_ir.serde.serialize_node(ctx.node)
    del node.attribute[:]
    for name in ctx.node.attributes:
        if (attr := ctx.attribute(name)) is not None:
            node.attribute.append(onnx_ir.serde.serialize_attribute(_rename(attr, name)))
    types = [_type_text(v) for v in ctx.values]
    versions = [int(v) for v in schema.context_dependent_function_opset_versions if v <= ctx.opset]
    version = max(versions, default=ctx.opset)
    body: bytes = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    if not body:
        ctx.unsupported("ONNX's definition of the operator does not cover this form of it")
    return _deserialize(body, domain, version)


def _rename(attr: onnx_ir.Attr, name: str) -> onnx_ir.Attr:
    return attr if attr.name == name else onnx_ir.Attr(name, attr.type, attr.value)


@lru_cache(256)
def defaults_of(domain: str, operator: str, version: int) -> dict[str, onnx_ir.Attr]:
    """The defaults that ONNX states for an operator's attributes."""
    schema = schemas.schema_of(domain, operator, version)
    protos = {name: a.default_value for name, a in schema.attributes.items()}
    return {name: onnx_ir.serde.deserialize_attribute(p) for name, p in protos.items() if p.type}


@lru_cache(256)
def _plain_body(domain: str, operator: str, version: int) -> onnx_ir.Function:
    schema = schemas.schema_of(domain, operator, version)
    versions = [int(v) for v in schema.function_opset_versions if v <= version]
    chosen = max(versions, default=int(schema.since_version))
    body: bytes = schema.get_function_with_opset_version(chosen)
    return _deserialize(body, domain, chosen)


def _deserialize(body: bytes, domain: str, version: int) -> onnx_ir.Function:
    proto = onnx.FunctionProto()
    proto.ParseFromString(body)
    if not proto.opset_import:
        proto.opset_import.append(onnx.helper.make_opsetid(domain, version))
    # A context-dependent body leaves out results that its node does not name, so nothing reads what stands for them.
    produced = {*proto.input, *(name for node in proto.node for name in node.output)}
    for name in proto.output:
        if name not in produced:
            proto.node.append(onnx.helper.make_node("Identity", [proto.input[0]], [name]))
    return onnx_ir.serde.deserialize_function(proto)


def _type_text(value: AnyValue | None) -> bytes:
    if not isinstance(value, Value):  # absent: operators on sequences and optionals have importers
        return onnx.TypeProto().SerializeToString()
    dtype = next(d for d, text in ELEMENTS.items() if text == value.element)
    shape = [str(s) if isinstance(s, Dim) else s for s in value.shape]
    return onnx.helper.make_tensor_type_proto(int(dtype), shape).SerializeToString()
