"""The parts of complex values, and of their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, OpResult, SSAValue

from gcomp.dtypes import is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import Tensor, dtype_text, is_tensor, real_element, with_element

Pair = tuple[SSAValue, SSAValue]
"""The real and the imaginary part."""


def holds_complex(value: SSAValue | Attribute) -> bool:
    """Whether a value, or a type, is a tensor of complex numbers."""
    type = value.type if isinstance(value, SSAValue) else value
    return is_tensor(type) and is_complex(dtype_text(type))


def part_type(value: SSAValue | Attribute) -> Tensor:
    """The type of either part of a tensor of complex numbers; of another tensor, its own."""
    return with_element(value, real_element(value))


def parts(b: Builder, value: SSAValue) -> Pair:
    """Both parts of a value of complex numbers; what was put together of parts is not taken apart."""
    if isinstance(value, OpResult) and isinstance(value.op, hlo.ComplexOp):
        return value.op.lhs, value.op.rhs
    return b.emit(hlo.RealOp, value), b.emit(hlo.ImagOp, value)


def join_parts(b: Builder, pair: Pair) -> SSAValue:
    """The complex numbers of two parts."""
    return b.emit(hlo.ComplexOp, *pair)


def spread(b: Builder, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values, of which each that is complex is its parts, one after the other."""
    return [part for v in values for part in (parts(b, v) if holds_complex(v) else (v,))]


def spread_types(types: Sequence[Attribute]) -> list[Attribute]:
    """The types of values that are spread."""
    return [t for type in types for t in ((part_type(type),) * 2 if holds_complex(type) else (type,))]


def gather_parts(b: Builder, values: Sequence[SSAValue], types: Sequence[Attribute]) -> list[SSAValue]:
    """Values of types, from those that they were spread into."""
    rest = iter(values)
    return [join_parts(b, (next(rest), next(rest))) if holds_complex(type) else next(rest) for type in types]


def each_part(b: Builder, operands: Sequence[SSAValue], compute: Callable[[list[SSAValue]], SSAValue]) -> SSAValue:
    """Complex numbers whose either part `compute` gives of the same part of the complex operands."""
    halves: Any = [parts(b, v) if holds_complex(v) else (v, v) for v in operands]
    first, second = ([half[k] for half in halves] for k in range(2))
    return join_parts(b, (compute(first), compute(second)))
