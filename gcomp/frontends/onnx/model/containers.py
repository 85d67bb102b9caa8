"""What ONNX's names stand for that are no tensors: sequences, optionals, strings. Their structure is known at import.

A sequence is a list of values of one element type, whose shapes may differ; an optional is a tensor, a sequence or
nothing. Programs take and return tensors only, so both are taken apart into their tensors (`leaves`) wherever they
cross the border of a program or of a region, and put together again on the other side (`rebuilt`). Strings are the
model's own, and what is computed is which one: positions in a list of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from gcomp.frontends.onnx.model.values import ELEMENTS, Value


@dataclass(frozen=True, eq=False)
class SequenceValue:
    """A list of tensors of one element type (its text); their shapes may differ."""

    items: tuple[Value, ...]
    element: str


@dataclass(frozen=True, eq=False)
class OptionalValue:
    """A tensor, a sequence (where `of_sequence`) or nothing, of an element type."""

    content: Value | SequenceValue | None
    element: str
    of_sequence: bool


@dataclass(frozen=True, eq=False)
class NamesValue:
    """A tensor of strings: positions (i64) among names that the model has."""

    positions: Value
    names: tuple[str, ...]
    element: str = "string"


AnyValue: TypeAlias = "Value | SequenceValue | OptionalValue | NamesValue"


_TYPE_TEXTS = {text: f"tensor({dtype.name.lower()})" for dtype, text in ELEMENTS.items()}
"""Element type text -> the type's name in ONNX's schemas."""


def kind_of(value: AnyValue) -> str:
    """What a value is, for people."""
    match value:
        case Value():
            return "a tensor"
        case SequenceValue():
            return "a sequence"
        case OptionalValue():
            return "an optional"
        case NamesValue():
            return "a tensor of strings"


def type_text(value: AnyValue) -> str:
    """A value's type as ONNX's schemas write it: `seq(tensor(float))`."""
    text = "tensor(string)" if isinstance(value, NamesValue) else _TYPE_TEXTS.get(value.element, value.element)
    if isinstance(value, SequenceValue) or (isinstance(value, OptionalValue) and value.of_sequence):
        text = f"seq({text})"
    return f"optional({text})" if isinstance(value, OptionalValue) else text


def structure_of(value: AnyValue) -> tuple[object, ...]:
    """What two values must share to be the same but for their tensors."""
    match value:
        case Value():
            return ("tensor",)
        case SequenceValue(items, element):
            return ("sequence", element, len(items))
        case OptionalValue(content, element, of_sequence):
            return ("optional", element, of_sequence, () if content is None else structure_of(content))
        case NamesValue(_, names):
            return ("names", names)


def leaves(value: AnyValue) -> Iterator[Value]:
    """The tensors of a value, in order."""
    match value:
        case Value():
            yield value
        case SequenceValue(items):
            yield from items
        case OptionalValue(content):
            yield from () if content is None else leaves(content)
        case NamesValue(positions):
            yield positions


def rebuilt(value: AnyValue, tensors: Iterator[Value]) -> AnyValue:
    """A value like another, of other tensors."""
    match value:
        case Value():
            return next(tensors)
        case SequenceValue(items, element):
            return SequenceValue(tuple(next(tensors) for _ in items), element)
        case OptionalValue(content, element, of_sequence):
            if content is None:
                return value
            inner = rebuilt(content, tensors)
            assert not isinstance(inner, OptionalValue | NamesValue)
            return OptionalValue(inner, element, of_sequence)
        case NamesValue(_, names):
            return NamesValue(next(tensors), names)


def rebuilt_all(values: Iterable[AnyValue], tensors: Iterable[Value]) -> list[AnyValue]:
    """Values like others, of other tensors."""
    remaining = iter(tensors)
    return [rebuilt(value, remaining) for value in values]


def leaf_names(name: str, value: AnyValue) -> list[str]:
    """The names of a value's tensors as inputs or outputs of a program: `x.0`, `x.1` for a sequence `x`."""
    match value:
        case Value():
            return [name]
        case SequenceValue(items):
            return [f"{name}.{i}" for i in range(len(items))]
        case OptionalValue(content):
            return [] if content is None else leaf_names(name, content)
        case NamesValue():
            return [name]


def result_structure(values: Iterable[AnyValue]) -> Any:
    """How a program's results become lists and None again (see `gcomp.runtime.structure`); None for plain tensors."""
    every, count = list(values), 0
    parts: list[Any] = []
    for value in every:
        width = sum(1 for _ in leaves(value))
        parts.append(_arrange(value, count))
        count += width
    return None if all(isinstance(value, Value | NamesValue) for value in every) else {"tuple": parts}


def _arrange(value: AnyValue, first: int) -> Any:
    match value:
        case Value():
            return first
        case SequenceValue(items):
            return {"list": list(range(first, first + len(items)))}
        case OptionalValue(content):
            return None if content is None else _arrange(content, first)
        case NamesValue():
            return first
