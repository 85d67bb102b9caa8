"""Attributes that differ a little: a number by one, two in another order, another word, one fewer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects import builtin as bi
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Data

from gcomp.dims import DimError, Size
from gcomp.ir.attributes import sizes_attr, sizes_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.enums import WordAttr
from gcomp.ir.types import dtype_text, tensor
from gcomp.reference.values import edge_pool
from gcomp.testing.generate.choices import Choices

Numbers = tuple[Any, ...]


def alter(attr: Attribute, choices: Choices) -> Attribute | None:
    """Another attribute of the same kind, near this one; None where there is none."""
    make = next((make for kind, make in _WAYS.items() if isinstance(attr, kind)), None)
    found = None if make is None else make(attr, choices)
    return None if found == attr else found


def _word(attr: WordAttr, choices: Choices) -> Attribute:
    return type(attr)(choices.chosen([word for word in attr.words if word != attr.data]))


def _integer(attr: IntegerAttr[Any], choices: Choices) -> Attribute:
    if attr.type == bi.i1:
        return IntegerAttr(0 if attr.value.data else 1, bi.i1)
    return IntegerAttr(_number(attr.value.data, choices), attr.type)


def _number(value: int, choices: Choices) -> int:
    return choices.chosen((value + 1, value - 1, value + 1, value - 1, 0, 1, 2, -1, -value, 2 * value))


def _float(attr: FloatAttr[Any], choices: Choices) -> Attribute:
    value = attr.value.data
    others = (float(np.nextafter(np.float32(value), np.float32(np.inf))), 2 * value, 0.0, -value, 1.0, value / 2)
    return FloatAttr(choices.chosen(others), attr.type)


def _dense(attr: DenseArrayBase[Any], choices: Choices) -> Attribute | None:
    if attr.elt_type == bi.i1:
        flags = [bool(v) for v in attr.get_values()]
        if not flags:
            return None
        at = choices.integer(0, len(flags) - 1)
        return DenseArrayBase.from_list(bi.i1, [f != (i == at) for i, f in enumerate(flags)])
    return DenseArrayBase.from_list(attr.elt_type, list(_numbers(tuple(attr.get_values()), choices)))


def _numbers(values: Numbers, choices: Choices) -> Numbers:
    """A list of numbers with one changed, two exchanged, one dropped or added, or in another order."""
    count = len(values)
    kind = choices.weighted(_KINDS)
    if not count or kind == 4:
        return (*values, choices.chosen((0, 1, 2, *range(count))))
    at = choices.integer(0, count - 1)
    if kind == 0:
        return (*values[:at], _number(values[at], choices), *values[at + 1 :])
    if kind == 1 and count > 1:
        other = (at + choices.integer(1, count - 1)) % count
        exchanged = list(values)
        exchanged[at], exchanged[other] = exchanged[other], exchanged[at]
        return tuple(exchanged)
    if kind == 2:
        return (*values[:at], *values[at + 1 :])
    if kind == 3:
        return choices.chosen((values[::-1], tuple(sorted(values)), (*values[1:], values[0]), (values[at],) * count))
    return tuple([v + choices.chosen((1, -1)) for v in values])


_KINDS = [5.0, 8.5, 10.0, 12.0, 13.0, 13.7]


def _sizes(attr: ArrayAttr[Any], choices: Choices) -> Attribute | None:
    """Sizes, one of them symbolic, with one changed by one, or by another of them; or the elements of any list."""
    if not attr.data:
        return None
    at = choices.integer(0, len(attr.data) - 1)
    if all(isinstance(a, StringAttr) for a in attr.data):
        try:
            sizes: list[Size] = list(sizes_of(attr))
        except DimError:
            return None
        sizes[at] = choices.chosen((sizes[at] + 1, sizes[at] - 1, 1, 0, *sizes))
        return sizes_attr(sizes)
    other = alter(attr.data[at], choices)
    return None if other is None else ArrayAttr([*attr.data[:at], other, *attr.data[at + 1 :]])


def _entries(attr: DictionaryAttr, choices: Choices) -> Attribute | None:
    if not attr.data:
        return None
    name = choices.chosen(list(attr.data))
    if choices.flag(0.1):
        return DictionaryAttr({key: value for key, value in attr.data.items() if key != name})
    other = alter(attr.data[name], choices)
    return None if other is None else DictionaryAttr({**attr.data, name: other})


def _record(attr: Data[Any], choices: Choices) -> Attribute | None:
    """A record of numbers and lists of them, with one field changed, or two lists exchanged."""
    value: Any = attr.data
    if not isinstance(value, tuple) or not hasattr(cast(Any, value), "_fields"):
        return None
    record = cast(Any, value)
    fields: list[Any] = list(record)
    at = choices.integer(0, len(fields) - 1)
    alike = [i for i, f in enumerate(fields) if i != at and isinstance(f, tuple) and isinstance(fields[at], tuple)]
    if alike and choices.flag(0.25):
        other = choices.chosen(alike)
        fields[at], fields[other] = fields[other], fields[at]
    elif isinstance(fields[at], tuple) and all(isinstance(v, int) for v in cast("Numbers", fields[at])):
        fields[at] = _numbers(cast("Numbers", fields[at]), choices)
    elif isinstance(fields[at], int):
        fields[at] = _number(fields[at], choices)
    else:
        return None
    return cast(Any, type(attr))(type(record)(*fields))


def elements(attr: ElementsAttr, choices: Choices) -> Attribute | None:
    """Data with an element changed, or all of them: by the least there is, in sign, to 0, 1, an infinity, a limit."""
    array = np.array(attr.array())
    if not array.size:
        return None
    everywhere = attr.is_splat and choices.flag(0.7)
    at = ... if everywhere else np.unravel_index(choices.integer(0, array.size - 1), array.shape)
    with np.errstate(all="ignore"):
        array[at] = _near(array[at], dtype_text(attr.type), choices)
    return ElementsAttr.of(array, attr.type)


def _near(value: Any, text: str, choices: Choices) -> Any:
    dtype = np.asarray(value).dtype
    if text == "i1":
        return ~np.asarray(value)
    if dtype.kind in "iu" or "int" in dtype.name:
        bits = np.iinfo(dtype) if dtype.kind in "iu" else None
        others = [value + dtype.type(1), value - dtype.type(1), 0, 1, dtype.type(0) - value]
        return choices.chosen([*others, *([bits.min, bits.max] if bits is not None else [])])
    last = (
        np.asarray(value).view(f"u{dtype.itemsize}") if dtype.itemsize in (1, 2, 4, 8) and dtype.kind != "c" else None
    )
    edge = choices.chosen(list(edge_pool(text)))
    others = [
        -value,
        0,
        1,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        value + dtype.type(1),
        value * dtype.type(2),
        edge,
        edge,
        edge,
    ]
    if last is not None and choices.flag():
        step = np.asarray(choices.chosen((1, -1))).astype(last.dtype)
        return (last + step).view(dtype)
    return choices.chosen(others)


def pairs(attr: ElementsAttr, choices: Choices) -> Attribute | None:
    """Small whole numbers in a table, such as paddings: one of them by one, or a row turned round."""
    array = np.array(attr.array())
    if not array.size or dtype_text(attr.type) != "i64":
        return None
    at = np.unravel_index(choices.integer(0, array.size - 1), array.shape)
    if array.ndim == 2 and choices.flag(0.3):
        row = at[0]
        array[row] = choices.chosen((array[row][::-1], -array[row], array[row] + np.array([1, -1])))
    else:
        array[at] = _number(int(array[at]), choices)
    return ElementsAttr.of(array, tensor(array.shape, "i64"))


_WAYS: dict[type[Attribute], Callable[[Any, Choices], Attribute | None]] = {
    WordAttr: _word, IntegerAttr: _integer, FloatAttr: _float, DenseArrayBase: _dense, ElementsAttr: pairs,
    ArrayAttr: _sizes, DictionaryAttr: _entries, Data: _record,
}  # fmt: skip


__all__ = ["alter", "elements"]
