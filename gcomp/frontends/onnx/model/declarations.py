"""The types that graphs declare of their inputs and outputs, against what stands for them."""

from __future__ import annotations

import onnx_ir

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx.model.containers import AnyValue, NamesValue, OptionalValue, SequenceValue, type_text
from gcomp.frontends.onnx.model.values import ELEMENTS


def as_declared(found: AnyValue, declared: onnx_ir.Value, what: str, where: str) -> AnyValue:
    """A value as its place declares it: one that is no optional fills a place for optionals.

    Raises InvalidModelError where the declared type is another. Places without a type take anything; declared shapes
    are not looked at, as exporters state them for the first iteration of a loop only.
    """
    kind = declared.type
    if isinstance(kind, onnx_ir.OptionalType) and not isinstance(found, OptionalValue | NamesValue):
        found = OptionalValue(found, found.element, isinstance(found, SequenceValue))
    if kind is None or kind.dtype == onnx_ir.DataType.UNDEFINED or type_text(found) == declared_type_text(kind):
        return found
    raise InvalidModelError(
        f"The {what} is {type_text(found)}.", where=where, why=f"The graph declares {declared_type_text(kind)}."
    )


def declared_type_text(kind: onnx_ir.TypeProtocol) -> str:
    """A declared type as ONNX's schemas write it: `seq(tensor(float))`."""
    match kind:
        case onnx_ir.OptionalType():
            return f"optional({declared_type_text(kind.elem_type)})"
        case onnx_ir.SequenceType():
            return f"seq({declared_type_text(kind.elem_type)})"
        case onnx_ir.SparseTensorType():
            return f"sparse_tensor({kind.dtype.name.lower()})"
        case _:
            return f"tensor({kind.dtype.name.lower()})"


def declared_element(value: onnx_ir.Value) -> str | None:
    """The element type text of a declared type; None where there is none, or it is no number type."""
    return None if value.type is None else ELEMENTS.get(value.type.dtype)
