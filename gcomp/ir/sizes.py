"""The sizes that an op's types and properties say, and the same op in other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_attr, sizes_of
from gcomp.ir.types import is_tensor, map_dims, retype, shape_of

_DIM = "gcomp.dim"
_ATTRIBUTES = "composite_attributes"
"""The property of a composite that has attributes of the op which it stands for."""


def change_sizes(op: Operation, change: Callable[[Size], Size]) -> bool:
    """Apply `change` to the symbolic sizes of an op's results, of its regions' arguments, and of its properties.

    Returns whether that made a difference.
    """
    changed = False
    for value in _values(op):
        if (type := map_dims(value.type, change)) != value.type:
            retype(value, type)
            changed = True
    properties = _changed(op.properties, change)
    if isinstance(given := op.properties.get(_ATTRIBUTES), DictionaryAttr):
        properties[_ATTRIBUTES] = DictionaryAttr({**given.data, **_changed(given.data, change)})
    if op.name == _DIM:
        size = dims.parse(cast(StringAttr, op.properties["size"]).data)
        properties["size"] = StringAttr(str(change(size)))
    for name, attr in properties.items():
        changed |= op.properties[name] != attr
        op.properties[name] = attr
    return changed


def _changed(attributes: Mapping[str, Attribute], change: Callable[[Size], Size]) -> dict[str, Attribute]:
    """Those of the attributes that hold symbolic sizes, in other sizes."""
    return {
        name: sizes_attr([change(size) for size in sizes_of(cast(Attribute, attr))])
        for name in SIZE_PROPERTIES if isinstance(attr := attributes.get(name), ArrayAttr)
    }  # fmt: skip


def sizes_in(op: Operation) -> Iterator[Size]:
    """The sizes of an op and of all in its regions, in their order."""
    for inner in op.walk():
        for value in _values(inner):
            if is_tensor(value.type):
                yield from shape_of(value)
        for name in SIZE_PROPERTIES:
            if isinstance(attr := inner.properties.get(name), ArrayAttr):
                yield from sizes_of(cast(Attribute, attr))
        if inner.name == _DIM:
            yield dims.parse(cast(StringAttr, inner.properties["size"]).data)


def _values(op: Operation) -> Iterator[SSAValue]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
    yield from op.results


__all__ = ["change_sizes", "sizes_in"]
