"""A model's inputs and outputs: which are the program's, their types, and the symbols in their shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import onnx_ir

from gcomp import dims
from gcomp.dims import Dim, DimError, Range, Ranges, Size
from gcomp.dtypes import TEXTS
from gcomp.errors import InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.values import ELEMENTS, Array
from gcomp.ir.types import Tensor, tensor

DimSpec: TypeAlias = "int | str | tuple[int, int]"
"""What a caller may say about a symbol: its size, or its range as `"1..64"` or `(1, 64)`."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST = 64
_RESERVED = {"_", "mod", "min", "max", "floordiv", "ceildiv"}


class Input(NamedTuple):
    """An input of the program."""

    name: str
    type: Tensor
    value: onnx_ir.Value


@dataclass(frozen=True)
class Signature:
    """The program's inputs, and the ranges of the symbols in their shapes."""

    inputs: Sequence[Input]
    ranges: Ranges

    @staticmethod
    def of(model: onnx_ir.Model, where: str, given: Mapping[str, DimSpec], constants: Mapping[str, Array]) -> Signature:
        """The signature of a model. Inputs that are initializers, or in `constants`, are no inputs of the program."""
        graph = model.graph
        values = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in constants]
        names = _Names(values, where)
        sizes, ranges = _given(given, names, where)
        inputs = [Input(str(v.name), _type(v, names, sizes, where), v) for v in values]
        names.check_given(given)
        return Signature(inputs, Ranges(ranges))

    def outputs(self, graph: onnx_ir.Graph) -> Iterator[tuple[str, onnx_ir.Value]]:
        """The program's outputs: names and values."""
        for value in graph.outputs:
            yield str(value.name), value


def constant_inputs(
    graph: onnx_ir.Graph, constants: Mapping[str, Array], where: str
) -> Iterator[tuple[onnx_ir.Value, Array]]:
    """The inputs for which the caller gave constants. Raises UsageError where they do not fit."""
    inputs = {str(v.name): v for v in graph.inputs}
    for name, array in constants.items():
        value = inputs.get(name)
        if value is None or not isinstance(value.type, onnx_ir.TensorType):
            raise UsageError(
                f"The model has no input `{name}`.", where=where, why=f"Its inputs are {', '.join(inputs)}."
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
        self._taken: set[str] = set()
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
        return size if isinstance(size, Dim) and dims.symbols_of(size) <= self._taken else None

    def fresh(self, text: str) -> Dim:
        """A new symbol, named like `text`."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", text)[:_LONGEST]
        base = f"d{base}" if not _NAME.match(base) or base in _RESERVED else base
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return dims.symbol(name)

    def check_given(self, given: Mapping[str, DimSpec]) -> None:
        """Raises UsageError for a name that no input has as a dim."""
        unknown = [name for name in given if name not in self.sizes and name not in self._taken]
        if unknown:
            known = ", ".join(sorted({*self.sizes, *self._taken})) or "none"
            raise UsageError(
                f"No input has a symbolic dim `{unknown[0]}`.",
                where=self._where,
                why=f"The model's symbolic dims are: {known}.",
                fix="Check the names given in `dims`.",
            )


def _text_of(dim: int | onnx_ir.SymbolicDim) -> str:
    return "" if isinstance(dim, int) else str(dim.value or "")


def _type(value: onnx_ir.Value, names: _Names, bound: Mapping[str, Size], where: str) -> Tensor:
    place = f"{where}: input `{value.name}`"
    kind = value.type
    if not isinstance(kind, onnx_ir.TensorType):
        raise UnsupportedError(
            f"The input `{value.name}` is {'of no stated type' if kind is None else 'not a tensor'}.",
            where=place,
            why=f"its type is {kind}; gcomp's programs take tensors.",
        )
    if kind.dtype not in ELEMENTS:
        raise UnsupportedError(
            f"The input `{value.name}` holds {kind.dtype.name}.", where=place, why="gcomp computes on numbers."
        )
    if value.shape is None:
        raise UnsupportedError(
            f"The rank of the input `{value.name}` is not stated.",
            where=place,
            why="gcomp compiles for known ranks.",
            fix="State the input's shape in the model; dims may be symbolic.",
        )
    shape: list[Size] = []
    for i, dim in enumerate(value.shape):
        if isinstance(dim, int):
            if dim < 0:
                raise InvalidModelError(f"Dim {i} of the input `{value.name}` is {dim}.", where=place)
            shape.append(dim)
        elif dim.value:
            shape.append(dims.substitute(names.sizes[str(dim.value)], bound))
        else:
            shape.append(dims.substitute(names.fresh(f"{value.name}_dim{i}"), bound))
    return tensor(shape, ELEMENTS[kind.dtype])


def _given(given: Mapping[str, DimSpec], names: _Names, where: str) -> tuple[dict[str, Size], dict[str, Range]]:
    """What the caller said about symbols: sizes to put in their place, and ranges."""
    sizes: dict[str, Size] = {}
    ranges: dict[str, Range] = {}
    for name, spec in given.items():
        size = names.sizes.get(name)
        symbol = str(size) if isinstance(size, Dim) else name
        try:
            allowed = _range(spec)
        except (DimError, TypeError, ValueError) as error:
            raise UsageError(
                f"The range of the dim `{name}` is not one: {spec!r}.",
                where=where,
                why=str(error),
                fix='Write a size (4), a range ("1..64") or a pair (1, 64).',
            ) from None
        if allowed.lo == allowed.hi:
            sizes[symbol] = allowed.lo
        else:
            ranges[symbol] = allowed
    return sizes, ranges


def _range(spec: DimSpec) -> Range:
    if isinstance(spec, bool):
        raise TypeError("a bool is not a size")
    if isinstance(spec, int):
        return Range(spec, spec)
    return dims.parse_range(spec) if isinstance(spec, str) else Range(*spec)
