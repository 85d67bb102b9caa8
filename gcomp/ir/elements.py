"""Constant tensor data as an attribute, `dense<...>`, with splats that stay splats.

xDSL's own dense attribute expands `dense<1.0> : tensor<100000000xf32>` to 100 million Python floats. `ElementsAttr`
keeps the bytes of one element for a splat, and the bytes of all otherwise. Text is MLIR's: decimal where it reads
back to the same bits, hexadecimal for NaN and infinity, one hexadecimal string for large non-splat data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BytesAttr, Float80Type, Float128Type
from xdsl.ir import BuiltinAttribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_integer, real_of, text_of
from gcomp.ir.location_text import LocationsParser
from gcomp.ir.types import Tensor, dtype_text, is_tensor, static_shape, tensor

Array = np.ndarray[Any, Any]

_LITERAL_LIMIT = 256
"""Non-splat data of more elements than this prints as one hexadecimal string where MLIR packs it in whole bytes."""


def _storage(type: Tensor) -> str:
    """The text of the type that elements are stored as: their own, and `i64` for an index."""
    text = dtype_text(type)
    return "i64" if text == "index" else text


@irdl_attr_definition
class ElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """`dense<...> : tensor<...>`: `data` holds every element, or one element for a splat, little-endian."""

    name = "gcomp.dense"
    type: Tensor
    data: BytesAttr

    @classmethod
    def of(cls, value: Any, type: Tensor | None = None) -> ElementsAttr:
        """The attribute for an array (of the array's own type by default); a scalar with a shaped `type` is a splat."""
        array = np.asarray(value) if type is None else np.asarray(value, dtype=dtype_of(_storage(type)))
        type = type or tensor(array.shape, text_of(array.dtype))
        if array.ndim and array.shape != static_shape(type):
            raise VerifyException(f"an array of shape {list(array.shape)} does not fit {type}")
        return cls(type, BytesAttr(_compact(array)))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return dtype_of(_storage(self.type))

    @property
    def is_splat(self) -> bool:
        """Whether one element stands for all (a tensor of one element is a splat too)."""
        return len(self.data.data) == self.dtype.itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        """The static shape."""
        return self.type.get_shape()

    def splat(self) -> Any:
        """The one element of a splat, as a NumPy scalar."""
        return np.frombuffer(self.data.data, self.dtype)[0]

    def array(self) -> Array:
        """The data as a read-only array; a splat is a broadcast view, so it costs nothing."""
        shape = self.shape
        if self.is_splat:
            return np.ndarray(shape, self.dtype, self.data.data, strides=(0,) * len(shape))
        return np.frombuffer(self.data.data, self.dtype).reshape(shape)

    def verify(self) -> None:
        if static_shape(self.type) is None:
            raise VerifyException("dense data needs a static shape")
        count, size = math.prod(self.shape), len(self.data.data)
        if size not in (self.dtype.itemsize, count * self.dtype.itemsize) or (count == 0) != (size == 0):
            raise VerifyException(f"dense data has {size} bytes, which does not fit {self.type}")

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f"dense<{''.join(_literal(self))}> : ")
        printer.print_attribute(self.type)


def _compact(array: Array) -> bytes:
    """The bytes of an array, or of one element when all elements have the same bits."""
    raw, item = np.ascontiguousarray(array).tobytes(), array.dtype.itemsize
    return raw[:item] if len(raw) > item and raw == raw[:item] * (len(raw) // item) else raw


def _literal(attr: ElementsAttr) -> Iterator[str]:
    flat, text = np.frombuffer(attr.data.data, attr.dtype), _storage(attr.type)
    if attr.is_splat:
        yield _scalar(flat[0], text)
    elif flat.size > _LITERAL_LIMIT and bit_width(text) % 8 == 0:
        yield f'"0x{attr.data.data.hex().upper()}"'
    elif flat.size:
        yield from _nest([_scalar(x, text) for x in flat], attr.shape)


def _nest(items: list[str], shape: tuple[int, ...]) -> Iterator[str]:
    if not shape:
        yield items[0]
        return
    step = len(items) // shape[0]
    yield "["
    for i in range(shape[0]):
        yield ", " if i else ""
        yield from _nest(items[i * step : (i + 1) * step], shape[1:])
    yield "]"


def _scalar(value: Any, text: str) -> str:
    if text == "i1":
        return "true" if value else "false"
    if is_complex(text):
        return f"({_float(value.real, real_of(text))},{_float(value.imag, real_of(text))})"
    return str(int(value)) if is_integer(text) else _float(value, text)


def _float(value: Any, text: str) -> str:
    number = float(value)
    if not math.isfinite(number):
        bits = int.from_bytes(np.asarray(value).tobytes(), "little")
        return f"0x{bits:0{(bit_width(text) + 3) // 4}X}"
    # The shortest text of a float32 reads back to it; every narrower float is exactly a float64, and so is its text.
    literal = str(np.float32(value)) if text == "f32" else repr(number)
    mantissa, _, exponent = literal.partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _encode(literal: str, text: str) -> bytes:
    """The little-endian bytes of one scalar literal of the element type `text`. ValueError if it does not fit."""
    dtype = dtype_of(text)
    literal = {"true": "1", "false": "0"}.get(literal, literal)
    hexadecimal = literal.lstrip("-").startswith("0x")
    if text == "i1":
        return b"\1" if int(literal, 0) else b"\0"
    if not is_integer(text) and not hexadecimal:
        if not set(literal) & set(".eE"):
            raise ValueError(f"{literal} is an integer; write {literal}.0")
        # float16 and wider round once from the decimal; narrower types round from float64, which is exact enough
        # because a decimal halfway between two of their values is itself a float64.
        return np.asarray(np.float32(literal) if text == "f32" else float(literal)).astype(dtype).tobytes()
    if len(literal) > 40:
        raise ValueError(f"a literal of {len(literal)} characters")
    value, bits = int(literal, 16 if hexadecimal else 10), bit_width(text)
    if not is_integer(text):
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{literal} is wider than {bits} bits")
        return value.to_bytes(dtype.itemsize, "little")
    if not (0 if text[0] == "u" else -(1 << (bits - 1))) <= value < 1 << bits:
        raise ValueError(f"{literal} is out of range")
    if text[0] == "i" and value >= 1 << (bits - 1):
        value -= 1 << bits
    return np.array([value], np.int64 if value < 0 else np.uint64).astype(dtype).tobytes()


class ElementsParser(LocationsParser):
    """xDSL's parser, reading `dense<...>` as `ElementsAttr`."""

    def _parse_optional_builtin_type(self) -> TypeAttribute | None:
        type = super()._parse_optional_builtin_type()
        if isinstance(type, Float80Type | Float128Type):
            self.raise_error(f"{type} is no element type here")  # xDSL reads numbers of it, and cannot print them
        return type

    @classmethod
    def within(cls, parser: Parser) -> ElementsParser:
        """This parser at the place where another one stands; xDSL's own tools start with a plain one."""
        if isinstance(parser, ElementsParser):
            return parser
        here = cls(parser.ctx, "")
        vars(here).update(vars(parser))
        return here

    def _parse_builtin_dense_attr(self) -> Any:
        packed: str | None = None
        values: list[tuple[str, ...]] = []
        shape: list[int] | None = [0]
        self.parse_punctuation("<")
        if self.parse_optional_punctuation(">") is None:
            packed = self.parse_optional_str_literal()
            shape = self._parse_elements(values) if packed is None else None
            self.parse_punctuation(">")
        self.parse_punctuation(":")
        type = self.parse_type()
        if not is_tensor(type) or (sizes := static_shape(type)) is None:
            self.raise_error("dense data needs a tensor type of static shape")
        try:
            if packed is not None:
                data = bytes.fromhex(packed.removeprefix("0x"))
            else:
                data = self._encode_elements(values, _storage(type))
                if shape is not None and tuple(shape) != sizes and (values or math.prod(sizes)):
                    self.raise_error(f"dense data of shape {shape} does not fit {type}")
            dtype = dtype_of(_storage(type))
            if math.prod(sizes) and len(data) > dtype.itemsize and len(data) % dtype.itemsize == 0:
                data = _compact(np.frombuffer(data, dtype)) if len(data) == math.prod(sizes) * dtype.itemsize else data
            return ElementsAttr(type, BytesAttr(data if math.prod(sizes) else b""))
        except (ValueError, OverflowError, KeyError, VerifyException) as error:
            self.raise_error(f"dense data does not fit {type}: {error}")

    def _encode_elements(self, values: list[tuple[str, ...]], text: str) -> bytes:
        parts = 2 if is_complex(text) else 1
        if any(len(v) != parts for v in values):
            raise ValueError(f"each element of {text} has {parts} part(s)")
        return b"".join([_encode(part, real_of(text)) for v in values for part in v])

    def _parse_elements(self, values: list[tuple[str, ...]]) -> list[int] | None:
        """Append the scalars of a (nested) literal to `values`; return its shape, None for a bare scalar."""
        if self.parse_optional_punctuation("[") is None:
            values.append(self._parse_element())
            return None
        shapes: list[list[int] | None] = []
        while self.parse_optional_punctuation("]") is None:
            if shapes:
                self.parse_punctuation(",")
            shapes.append(self._parse_elements(values))
            if shapes[-1] != shapes[0]:
                self.raise_error("dense literal is ragged")
        return [len(shapes), *((shapes[0] if shapes else None) or [])]

    def _parse_element(self) -> tuple[str, ...]:
        if self.parse_optional_punctuation("(") is None:
            return (self._parse_number(),)
        real = self._parse_number()
        self.parse_punctuation(",")
        imaginary = self._parse_number()
        self.parse_punctuation(")")
        return real, imaginary

    def _parse_number(self) -> str:
        for word in ("true", "false"):
            if self.parse_optional_keyword(word) is not None:
                return word
        sign = "-" if self.parse_optional_punctuation("-") is not None else ""
        for kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT):
            if (token := self._parse_optional_token(kind)) is not None:
                return sign + token.text
        self.raise_error("expected a number")
