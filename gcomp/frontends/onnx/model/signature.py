"""A model's inputs: which are the program's, their types and structure, and the symbols in their shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import onnx_ir

from gcomp import dims
from gcomp.dims import Dim, DimError, DimSpec, Range, Ranges, Size
from gcomp.dtypes import TEXTS
from gcomp.errors import InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.model.containers import AnyValue, OptionalValue, SequenceValue, leaf_names
from gcomp.frontends.onnx.model.input_structures import Kind, Row, Structure, check_names, rows
from gcomp.frontends.onnx.model.values import ELEMENTS, Array, Value
from gcomp.ir.types import Tensor, map_dims, tensor
from gcomp.records import record

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST = 64
_RESERVED = {"_", "mod", "min", "max", "floordiv", "ceildiv"}


class Input(NamedTuple):
    """An input of the program."""

    name: str
    type: Tensor


class Argument(NamedTuple):
    """An input of the model's graph, and the inputs of the program that it is made of."""

    value: onnx_ir.Value
    form: AnyValue
    """A value of its structure; the tensors in it stand for the program's."""
    types: Sequence[Tensor]


@record
class Signature:
    """The arguments of the model, and the ranges of the symbols in their shapes."""

    arguments: Sequence[Argument]
    ranges: Ranges

    @staticmethod
    def of(
        model: onnx_ir.Model,
        where: str,
        given: Mapping[str, DimSpec],
        constants: Mapping[str, Array],
        structures: Mapping[str, Structure],
    ) -> Signature:
        """The signature of a model. Inputs that are initializers, or in `constants`, are no inputs of the program."""
        graph = model.graph
        values = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in constants]
        names = _Names([v for v in values if isinstance(v.type, onnx_ir.TensorType)], where)
        check_names(structures, values, where)
        arguments = [_argument(v, names, structures, where) for v in values]
        sizes, ranges = _given_symbols(given, names, where)
        names.check_given(given)
        # A model says nothing of how small its dims may be: its nodes do, by the constraints that they bring.
        ranges |= {symbol: Range(0) for symbol in sorted(names.taken - ranges.keys() - sizes.keys())}
        bound = [a._replace(types=[cast(Tensor, _bind(t, sizes)) for t in a.types]) for a in arguments]
        return Signature(bound, Ranges(ranges))

    @property
    def inputs(self) -> list[Input]:
        """The program's inputs."""
        return [
            Input(name, type)
            for value, form, types in self.arguments
            for name, type in zip(leaf_names(str(value.name), form), types, strict=True)
        ]


def _bind(type: Tensor, sizes: Mapping[str, Size]) -> Any:
    return map_dims(type, lambda size: dims.substitute(size, sizes)) if sizes else type


def _argument(value: onnx_ir.Value, names: _Names, structures: Mapping[str, Structure], where: str) -> Argument:
    place = f"{where}: input `{value.name}`"
    element = _element(value, place)
    kind = Kind.of(value)
    if kind is None:
        return Argument(value, Value(element, None, None), [_type(value, names, element, where)])
    shapes = rows(value, kind, structures, where)
    items = tuple(Value(element, None, None) for _ in shapes or ())
    form: AnyValue
    if kind.of_sequence:
        form = SequenceValue(items, element)
        form = OptionalValue(None if shapes is None else form, element, True) if kind.optional else form
    else:
        form = OptionalValue(items[0] if items else None, element, False)
    labels = leaf_names(str(value.name), form)
    types = [tensor(_sizes(s, names, label, place), element) for s, label in zip(shapes or (), labels, strict=True)]
    return Argument(value, form, types)


def constant_inputs(
    graph: onnx_ir.Graph, constants: Mapping[str, Array], where: str
) -> Iterator[tuple[onnx_ir.Value, Array]]:
    """The inputs for which the caller gave constants. Raises UsageError where they do not fit."""
    inputs = {str(v.name): v for v in graph.inputs}
    for name, array in constants.items():
        value = inputs.get(name)
        if value is None or not isinstance(value.type, onnx_ir.TensorType):
            raise UsageError(
                f"The model has no input `{name}` that is a tensor.",
                where=where,
                why=f"Its inputs are {', '.join(inputs)}.",
            )
        dtype = ELEMENTS.get(value.type.dtype)
        if TEXTS.get(array.dtype) != dtype or (value.shape is not None and len(value.shape) != array.ndim):
            raise UsageError(
                f"The constant for the input `{name}` does not fit.",
                where=where,
                why=f"It is {array.dtype} of rank {array.ndim}; the input is {value.type} {value.shape}.",
            )
        yield value, array


class _Names:
    """ONNX's dim names -> sizes. A name that is no symbol of gcomp's gets one like it; no two become one."""

    def __init__(self, values: Sequence[onnx_ir.Value], where: str) -> None:
        self.sizes: dict[str, Size] = {}
        self.own: dict[str, list[Dim]] = {}
        """Names of dims of sequences' elements -> the symbols of all elements: each element has its own size."""
        self.taken: set[str] = set()
        """The symbols."""
        self._where = where
        texts = dict.fromkeys(text for v in values for d in v.shape or () if (text := _text_of(d)))
        for text in texts:
            if _NAME.match(text) and text not in _RESERVED:
                self.sizes[text] = self.fresh(text)
        for text in texts:
            if text not in self.sizes:
                formula = self._formula(text)
                self.sizes[text] = self.fresh(text) if formula is None else formula

    def _formula(self, text: str) -> Size | None:
        """The formula that a name such as `past + 1` is, if all its symbols are inputs' dims on their own."""
        try:
            size = dims.parse(text)
        except DimError:
            return None
        return size if isinstance(size, Dim) and dims.symbols_of(size) <= self.taken else None

    def fresh(self, text: str) -> Dim:
        """A new symbol, named like `text`."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", text)[:_LONGEST]
        base = f"d{base}" if not _NAME.match(base) or base in _RESERVED else base
        name, count = base, 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        return dims.symbol(name)

    def of_element(self, text: str, label: str) -> Dim:
        """A new symbol for a dim of a sequence's element."""
        symbol = self.fresh(f"{label}_{text}")
        self.own.setdefault(text, []).append(symbol)
        return symbol

    def size_named(self, name: str) -> Size:
        """The size that a caller means by a name: that of the model's, or a new symbol."""
        if name not in self.sizes:
            self.sizes[name] = self.fresh(name)
        return self.sizes[name]

    def check_given(self, given: Mapping[str, DimSpec]) -> None:
        """Raises UsageError for a name that no input has as a dim."""
        unknown = [name for name in given if name not in {*self.sizes, *self.own, *self.taken}]
        if unknown:
            known = ", ".join(sorted({*self.sizes, *self.own, *self.taken})) or "none"
            raise UsageError(
                f"No input has a symbolic dim `{unknown[0]}`.",
                where=self._where,
                why=f"The model's symbolic dims are: {known}.",
                fix="Check the names given in `dims`.",
            )


_NO_NAMES = frozenset({"?", "None"})
"""What exporters write for a size that they do not know: two of them are two sizes. Some write -1."""


def _text_of(dim: int | onnx_ir.SymbolicDim) -> str:
    """The name of a symbolic dim; empty where it has none."""
    text = "" if isinstance(dim, int) else str(dim.value or "")
    return "" if text in _NO_NAMES else text


def _sizes(row: Row, names: _Names, label: str, place: str) -> list[Size]:
    """The sizes of an element of a sequence, or of what an optional holds."""
    sizes: list[Size] = []
    for i, size in enumerate(row):
        if isinstance(size, int):
            if size < 0:
                raise InvalidModelError(f"Dim {i} of the elements of `{label}` is {size}.", where=place)
            sizes.append(size)
        elif isinstance(size, str):
            sizes.append(names.size_named(size))
        else:
            text = f"dim{i}" if size is None else str(size.value)
            sizes.append(names.of_element(text, label))
    return sizes


def _element(value: onnx_ir.Value, place: str) -> str:
    """The element type of an input's tensors. Raises UnsupportedError when there is none."""
    kind = value.type
    if kind is None or (Kind.of(value) is None and not isinstance(kind, onnx_ir.TensorType)):
        raise UnsupportedError(
            f"The input `{value.name}` is {'of no stated type' if kind is None else f'a {kind}'}.",
            where=place,
            why="gcomp imports inputs that are tensors, sequences of tensors, or optional ones of these",
        )
    if kind.dtype not in ELEMENTS:
        raise UnsupportedError(
            f"The input `{value.name}` holds {kind.dtype.name}.", where=place, why="gcomp computes on numbers."
        )
    return ELEMENTS[kind.dtype]


def _type(value: onnx_ir.Value, names: _Names, element: str, where: str) -> Tensor:
    place = f"{where}: input `{value.name}`"
    if value.shape is None:
        raise UnsupportedError(
            f"The rank of the input `{value.name}` is not stated.",
            where=place,
            why="gcomp compiles for known ranks.",
            fix="State the input's shape in the model; dims may be symbolic.",
        )
    shape: list[Size] = []
    for i, dim in enumerate(value.shape):
        if isinstance(dim, int) and dim >= 0:
            shape.append(dim)
        elif text := _text_of(dim):
            shape.append(names.sizes[text])
        else:
            shape.append(names.fresh(f"{value.name}_dim{i}"))
    return tensor(shape, element)


def _given_symbols(given: Mapping[str, DimSpec], names: _Names, where: str) -> tuple[dict[str, Size], dict[str, Range]]:
    """What the caller said about symbols: sizes to put in their place, and ranges."""
    sizes: dict[str, Size] = {}
    ranges: dict[str, Range] = {}
    for name, spec in given.items():
        size = names.sizes.get(name)
        symbols = [str(size) if isinstance(size, Dim) else name] if name not in names.own or size is not None else []
        symbols += map(str, names.own.get(name, ()))
        try:
            allowed = dims.range_of(spec)
        except DimError as error:
            raise UsageError(
                f"The range of the dim `{name}` is not one: {spec!r}.",
                where=where,
                why=str(error),
                fix='Write a size (4), a range ("1..64") or a pair (1, 64).',
            ) from None
        if allowed.lo == allowed.hi:
            sizes.update(dict.fromkeys(symbols, allowed.lo))
        else:
            ranges.update(dict.fromkeys(symbols, allowed))
    return sizes, ranges
