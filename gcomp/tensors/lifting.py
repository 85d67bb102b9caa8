"""Operands as users pass them become SSA values: in which builder, and of which element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Dim
from gcomp.dtypes import is_complex, text_of
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text
from gcomp.tensors.eager import Eager, eager, known_value
from gcomp.tensors.operation import VOCABULARY
from gcomp.tensors.promotion import check_scalar, common, default_of
from gcomp.tensors.tensor import Array, ArrayLike, Tensor, tensors_in
from gcomp.tensors.tracing import OPEN, Trace, leak_error


def builder_of(*operands: ArrayLike) -> Builder:
    """The builder for an operation on these: that of the open trace; of the operands' own; else the eager one."""
    own = {t.builder: t.builder.kind for one in operands for t in tensors_in(one) if isinstance(t.builder, Trace)}
    active = OPEN.traces[-1] if OPEN.traces else None
    builder = active or next(iter(own), None)
    for trace, kind in own.items():
        if trace is not builder or trace.closed:
            raise leak_error(kind)
    return builder or eager()


def lift_operands(*operands: ArrayLike, b: Builder | None = None) -> tuple[Builder, list[SSAValue]]:
    """The operands, each of its own element type; in the builder `b`, if there are others beside them."""
    b = b or builder_of(*operands)
    return b, [_value(b, one) for one in operands]


def promote_operands(*operands: ArrayLike, b: Builder | None = None) -> tuple[Builder, list[SSAValue]]:
    """The operands in their common element type."""
    b = b or builder_of(*operands)
    ready = [_ready(one) for one in operands]
    text = _common(ready)
    return b, [_convert(b, one, text) for one in ready]


def common_text(*operands: ArrayLike) -> str:
    """The operands' common element type."""
    return _common([_ready(one) for one in operands])


def is_weak(*operands: ArrayLike) -> bool:
    """Whether a result of these operands is a weak tensor: one or more are, and the others are Python numbers."""
    weak = [isinstance(one, Tensor) and one.weak for one in operands]
    return any(weak) and all(w or isinstance(one, bool | int | float) for w, one in zip(weak, operands, strict=True))


def tensor(x: ArrayLike) -> Tensor:
    """One operand as a tensor of its builder."""
    b, (value,) = lift_operands(x)
    return Tensor(b, value, weak=isinstance(x, Tensor) and x.weak)


# ---- one operand ----------------------------------------------------------------------------------------------------


def _ready(x: ArrayLike) -> Tensor | Array | bool | int | float | complex | Dim:
    """An operand as a tensor, an array, a Python number or a symbolic size."""
    if isinstance(x, Tensor | Dim) or type(x) in (bool, int, float, complex):
        return cast(Any, x)
    rows = cast("Sequence[ArrayLike]", x)
    if isinstance(x, list | tuple) and any(True for _ in tensors_in(rows)):
        return VOCABULARY["stack"](rows)
    return array_of(rows)


def array_of(x: object) -> Array:
    """An array of something that is one for NumPy. UsageError for what has no element type here."""
    try:
        array = np.asarray(x)
        text_of(array.dtype)
    except (KeyError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else f"it is a {type(x).__name__}"
        raise UsageError(
            "an operand is no tensor", why=why, fix="pass tensors, arrays, numbers, or lists of these"
        ) from None
    return array


def _common(operands: Sequence[Any]) -> str:
    strong, weak = list[str](), list[str]()
    for one in operands:
        if isinstance(one, Tensor):
            (weak if one.weak else strong).append(one.element)
        elif isinstance(one, np.ndarray):
            strong.append(text_of(cast(Array, one).dtype))
        else:
            weak.append("i64" if isinstance(one, Dim) else default_of(one))
    return common(tuple(strong), tuple(weak))


def _convert(b: Builder, x: Any, text: str) -> SSAValue:
    if isinstance(x, Tensor):
        return cast_value(b, _of(b, x), text)
    if isinstance(x, Dim):
        return cast_value(b, b.dim(x), text)
    if isinstance(x, np.ndarray):
        return cast_value(b, _constant(b, cast(Array, x)), text)
    return _constant(b, check_scalar(x, text))


def _value(b: Builder, x: ArrayLike) -> SSAValue:
    ready = _ready(x)
    return _convert(b, ready, _common([ready]))


def _constant(b: Builder, array: Array) -> SSAValue:
    # The user may go on to change the array.
    return known_value(np.array(array)) if isinstance(b, Eager) else b.constant(np.array(array))


def _of(b: Builder, x: Tensor) -> SSAValue:
    return b.admit(x.value) if isinstance(b, Trace) else x.value


def cast_value(b: Builder, value: SSAValue, text: str) -> SSAValue:
    """A value in another element type: to boolean by "is not 0", from complex by the real part."""
    own = dtype_text(value.type)
    if own == text:
        return value
    if text == "i1":
        return b.compare(value, b.full_like(value, 0), "NE")
    if is_complex(own) and not is_complex(text):
        value = b.emit(hlo.RealOp, value)
    return b.convert(value, text)


def truth(b: Builder, value: SSAValue) -> SSAValue:
    """Which elements are not 0 (NaN is not)."""
    return value if dtype_text(value.type) == "i1" else b.compare(value, b.full_like(value, 0), "NE")
