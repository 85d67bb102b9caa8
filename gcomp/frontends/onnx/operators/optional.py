"""Optionals, resolved while the model is imported: whether there is an element is always known."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.containers import NamesValue, OptionalValue, SequenceValue, type_text
from gcomp.frontends.onnx.model.declarations import declared_type_text
from gcomp.frontends.onnx.model.values import Value


@imports("Optional")
def optional(ctx: NodeContext) -> Results:
    """Optional: an optional that holds the operand, or one of a stated type that holds nothing."""
    kind = _stated_type(ctx)
    if not ctx.has(0):
        if kind is None:
            ctx.invalid("it has neither an input nor the attribute type", "an empty optional has a type")
        return [OptionalValue(None, ctx.element_text(int(kind.dtype)), isinstance(kind, onnx_ir.SequenceType))]
    value = ctx.any_value(0)
    if isinstance(value, OptionalValue):
        ctx.invalid("its input is an optional", "optionals hold tensors or sequences")
    if kind is not None and declared_type_text(kind) != type_text(value):
        ctx.invalid(f"its input is {type_text(value)}", f"the attribute type says {declared_type_text(kind)}")
    if isinstance(value, NamesValue):
        ctx.unsupported("its input holds strings, and gcomp computes on numbers")
    return [OptionalValue(value, value.element, isinstance(value, SequenceValue))]


def _stated_type(ctx: NodeContext) -> onnx_ir.TypeProtocol | None:
    attr = ctx.attribute("type")
    if attr is None:
        return None
    stated: Any = attr.value
    kind: onnx_ir.TypeProtocol | None = stated.type if isinstance(stated, onnx_ir.TypeAndShape) else None
    match kind:
        case onnx_ir.TensorType() | onnx_ir.SequenceType(elem_type=onnx_ir.TensorType()):
            return kind
        case _:
            ctx.invalid("the attribute type is neither a tensor nor a sequence of tensors", f"it is {kind}")


@imports("OptionalHasElement")
def optional_has_element(ctx: NodeContext) -> Results:
    """OptionalHasElement: i1[], false for an empty optional and for no input; tensors and sequences are elements."""
    value = ctx.any_value(0) if ctx.has(0) else None
    empty = value is None or (isinstance(value, OptionalValue) and value.content is None)
    return [Value.constant(np.asarray(not empty))]


@imports("OptionalGetElement")
def optional_get_element(ctx: NodeContext) -> Results:
    """OptionalGetElement: what an optional holds; tensors and sequences are their own elements."""
    value = ctx.any_value(0)
    if not isinstance(value, OptionalValue):
        return [value]
    if value.content is None:
        ctx.invalid("its optional holds nothing", "there is no element to get")
    return [value.content]
