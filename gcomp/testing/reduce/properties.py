"""Simpler properties of ops: strides of 1, paddings of 0, fewer dimensions, and nothing where nothing is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Attribute

from gcomp.ir.attributes import sizes_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.testing.reduce.reducer import Edit
from gcomp.testing.reduce.sizes import shrink


def simplifications(program: Program, index: int) -> list[Edit]:
    """Edits that make the properties of an op simpler: zeros and ones, or nothing where it may be left out."""
    op = properties_of(program)[index]
    edits: list[Edit] = []
    definitions = op.get_irdl_definition().properties
    for name, attr in op.properties.items():
        for simpler in _SIMPLER.get(name, _nothing)(attr):
            edits.append(lambda p, n=name, a=simpler: _set_property(p, index, n, a, local=False))
            edits.append(lambda p, n=name, a=simpler: _set_property(p, index, n, a, local=True))
        if name in _OPTIONAL and name in definitions:
            edits.append(lambda p, n=name: _set_property(p, index, n, definitions[n].default_value, local=True))
    if op.attributes:
        edits.append(lambda p: _clear_attributes(p, index))
    return edits


def properties_of(program: Program) -> list[GraphOp]:
    """The ops that may have properties to simplify."""
    return [op for op in program.ops() if isinstance(op, GraphOp)]


def property_op_count(program: Program) -> int:
    """How many ops may have properties to simplify."""
    return len(properties_of(program))


_OPTIONAL = ("precision_config", "algorithm", "result_accuracy", "window_reversal", "indices_are_sorted",
             "unique_indices", "channel_handle")  # fmt: skip


def _nothing(attr: Attribute) -> Sequence[Attribute]:
    return ()


def _all(value: int) -> Callable[[Attribute], Sequence[Attribute]]:
    def simpler(attr: Attribute) -> Sequence[Attribute]:
        count = len(sizes_of(attr)) if not isinstance(attr, ElementsAttr) else 0
        same = DenseArrayBase.from_list(i64, [value] * count)
        return () if not count or same == attr else (same,)

    return simpler


def _without_one(attr: Attribute) -> Sequence[Attribute]:
    """The list without one of its elements."""
    values = [v for v in sizes_of(attr) if isinstance(v, int)]
    return [DenseArrayBase.from_list(i64, values[:i] + values[i + 1 :]) for i in range(len(values))]


def _zero_elements(attr: Attribute) -> Sequence[Attribute]:
    if not isinstance(attr, ElementsAttr) or not attr.array().any():
        return ()
    return (ElementsAttr.of(np.zeros(attr.shape, attr.dtype), attr.type),)


_SIMPLER: dict[str, Callable[[Attribute], Sequence[Attribute]]] = {
    **dict.fromkeys(("strides", "window_strides", "base_dilations", "window_dilations", "lhs_dilation", "rhs_dilation",
                     "window_dimensions"), _all(1)),
    **dict.fromkeys(("start_indices", "edge_padding_low", "edge_padding_high", "interior_padding"), _all(0)),
    "dimensions": _without_one,
    "padding": _zero_elements,
}  # fmt: skip


def _set_property(program: Program, index: int, name: str, value: Attribute | None, *, local: bool) -> bool:
    op = properties_of(program)[index]
    if op.properties.get(name) == value:
        return False
    if value is None:
        del op.properties[name]
    else:
        op.properties[name] = value
    return shrink(program, {}, local=local)


def _clear_attributes(program: Program, index: int) -> bool:
    properties_of(program)[index].attributes.clear()
    return True
