"""Attributes and types as export text: StableHLO as jaxlib reads it, with holes for symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute

from gcomp.dims import Size
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.stablehlo.asynchronous import FutureType
from gcomp.ir.types import Tensor, dtype_text, shape_of
from gcomp.runtime.template import hole

_PLAIN = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}


def string_text(text: str) -> str:
    """A string literal; `{{`, which would read as a hole, is written with an escape."""
    data = text.encode("utf-8")
    escaped = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:02X}" for byte in data)
    return f'"{_without_holes(escaped)}"'


def _without_holes(text: str) -> str:
    # Outside holes, two braces in a row occur only inside string literals, where an escape means the same.
    return text.replace("{{", "\\7B\\7B")


def sizes_text(sizes: Sequence[Size]) -> str:
    """Sizes separated by commas, with holes."""
    return ", ".join([hole(size) for size in sizes])


class Texts:
    """The texts of attributes and types, each made once."""

    def __init__(self) -> None:
        self._types: dict[Attribute, str] = {}
        self._attributes: dict[Attribute, str] = {}
        # Types are interned, so most look-ups need no hash of the whole type; the value keeps the key's id in use.
        self._by_id: dict[int, tuple[Attribute, str]] = {}

    def type(self, type: Attribute) -> str:
        """A type: `tensor<{{2*batch}}x3xf32>`."""
        if (found := self._by_id.get(id(type))) is not None:
            return found[1]
        text = self._types.get(type)
        if text is None:
            text = self._types[type] = _type_text(type)
        self._by_id[id(type)] = (type, text)
        return text

    def attribute(self, name: str, attr: Attribute) -> str:
        """The property or attribute `name`."""
        if isinstance(attr, ElementsAttr):
            return str(attr)
        if name in SIZE_PROPERTIES and isinstance(attr, ArrayAttr):
            return f"array<i64: {sizes_text(sizes_of(cast(Attribute, attr)))}>"
        return self._cached(attr)

    def _cached(self, attr: Attribute) -> str:
        text = self._attributes.get(attr)
        if text is None:
            text = self._attributes[attr] = _attribute_text(attr)
        return text


def _type_text(type: Attribute) -> str:
    if isinstance(type, TupleType):
        return f"tuple<{', '.join(map(_type_text, type.types.data))}>"
    if isinstance(type, FutureType):
        return f"!{type.name}<{', '.join(map(_type_text, type.types.data))}>"
    if not isinstance(type, TensorType):
        return str(type)
    tensor = cast(Tensor, type)
    return f"tensor<{''.join([f'{hole(size)}x' for size in shape_of(tensor)])}{dtype_text(tensor)}>"


def _attribute_text(attr: Attribute) -> str:
    if isinstance(attr, StringAttr):
        return string_text(attr.data)
    if isinstance(attr, DenseArrayBase):
        return str(cast("DenseArrayBase[Any]", attr))
    return _without_holes(str(attr))
