"""torch's types in gcomp's: element types, sizes with their symbols, and tensors as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.errors import UnsupportedError
from gcomp.frontends.fx import guards
from gcomp.frontends.fx.torch_api import torch
from gcomp.ir.types import Tensor, tensor

Array = np.ndarray[Any, Any]

ELEMENTS: Mapping[Any, str] = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
}
_NOT_NUMPYS: Mapping[Any, tuple[Any, Any]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
}
"""Element types that NumPy has from ml_dtypes: the type of the same width to go through, and ml_dtypes' own."""


def element_text(dtype: Any) -> str:
    """The element type for a torch dtype. Raises UnsupportedError where there is none."""
    if dtype not in ELEMENTS:
        raise UnsupportedError(f"gcomp has no element type for {dtype}")
    return ELEMENTS[dtype]


def array_of(value: Any) -> Array:
    """The data of a dense tensor on the CPU, without a copy where it is contiguous. UnsupportedError for others."""
    if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
        raise UnsupportedError(f"a tensor of layout {value.layout} on {value.device} has no array of elements")
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.dtype in _NOT_NUMPYS:
        through, own = _NOT_NUMPYS[plain.dtype]
        return plain.view(through).numpy().view(own)
    return plain.numpy()


def type_of(value: Any) -> Tensor:
    """The tensor type of a (fake) tensor."""
    return tensor([size_of(s) for s in value.shape], element_text(value.dtype))


def each(value: Any, count: int) -> list[int]:
    """One number per dimension; a single number is repeated for all `count` dimensions."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


# ---- sizes ----------------------------------------------------------------------------------------------------------


def size_of(size: Any) -> Size:
    """A size for a size, a `torch.SymInt`, or a sympy expression. UnsupportedError where gcomp has no such size."""
    if isinstance(size, int | Dim):
        return size
    found = size_of_expression(size.node.expr if hasattr(size, "node") else size)
    return guards.current().reduce(found)


@lru_cache(4096)
def size_of_expression(expression: Any) -> Size:
    """The size for an expression of sympy. UnsupportedError where gcomp has no such size."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return dims.symbol(expression.name)
    if expression.is_Boolean and not expression.args:
        return int(bool(expression))
    if type(expression).__name__ == "Piecewise":
        return _choose(expression.args)
    if (rounded := _ROUNDED.get(type(expression).__name__)) is not None:
        if (fraction := _fraction(expression.args[0])) is None:
            raise UnsupportedError(
                "the model has a size that is rounded from a float",
                why=f"the size is {expression}",
                fix="compute it of integers (`n * 13 // 10`; with interpolate, `size=` in place of `scale_factor=`)",
            )
        return rounded(*fraction)
    parts: Sequence[Size] = [size_of_expression(part) for part in expression.args]
    function = _FUNCTIONS.get(type(expression).__name__)
    if function is None or not parts:
        raise UnsupportedError(f"gcomp's sizes have no {type(expression).__name__}", why=f"the size is {expression}")
    return function(parts)


_FEW = 1 << 12
"""Products of numbers below it with sizes of up to 2**40 are exact in floats, and quotients by them nearly so."""


def _fraction(expression: Any) -> tuple[Size, int] | None:
    """Of what number of sizes, divided by which integer, a float is: `1.5*ToFloat(n)` is 3*n by 2, `n / 3` is n by 3.

    Where the integer is a power of two the float is that exactly, elsewhere what it rounds to is the same integer: the
    quotient of sizes of up to 2**40 is further from one than floats are from each other. None for all others.
    """
    kind = type(expression).__name__
    if kind == "ToFloat":
        return size_of_expression(expression.args[0]), 1
    if expression.is_Number:
        numerator, denominator = float(expression).as_integer_ratio()
        return (numerator, denominator) if max(abs(numerator), denominator) < _FEW else None
    if kind == "IntTrueDiv":
        size, by = (size_of_expression(part) for part in expression.args)
        return (size if by > 0 else 0 - size, abs(by)) if isinstance(by, int) and 0 < abs(by) < _FEW else None
    parts = [_fraction(part) for part in expression.args] if kind == "Mul" else [None]
    exact = [part for part in parts if part is not None and part[1] & part[1] - 1 == 0]
    return (dims.product(n for n, _ in exact), math.prod(d for _, d in exact)) if len(exact) == len(parts) else None


def _power(parts: Sequence[Size]) -> Size:
    base, exponent = parts
    if not isinstance(exponent, int) or exponent < 0:
        raise UnsupportedError(f"gcomp's sizes have no power {exponent}")
    return dims.product([base] * exponent)


def _towards_zero(numerator: Size, denominator: int) -> Size:
    """The quotient, rounded towards zero."""
    positive = all(coefficient > 0 for _, coefficient in dims.terms_of(numerator))
    down = dims.floordiv(numerator, denominator)
    return down if positive else dims.dmax(0, down) - dims.dmax(0, dims.floordiv(0 - numerator, denominator))


def _is_zero(size: Size) -> Size:
    """1 for 0, and 0 for everything else."""
    return 1 - dims.dmin(1, dims.dmax(size, 0 - size))


def _is_positive(size: Size) -> Size:
    """1 for what is greater than 0, else 0."""
    return dims.dmin(1, dims.dmax(0, size))


def _choose(pieces: Sequence[Any]) -> Size:
    """The first of several sizes whose condition holds: (size, condition) each."""
    total: Size = 0
    left: Size = 1
    for piece in pieces:
        size, holds = (size_of_expression(part) for part in piece.args)
        total, left = total + left * holds * size, left * (1 - holds)
    return total


_ROUNDED: Mapping[str, Callable[[Size, int], Size]] = {
    "TruncToInt": _towards_zero,
    "FloorToInt": dims.floordiv,
    "CeilToInt": dims.ceildiv,
}
"""Integers of floats, which are given as a number of sizes by an integer."""

_FUNCTIONS: Mapping[str, Callable[[Sequence[Size]], Size]] = {
    "Add": sum,
    "Mul": dims.product,
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": lambda parts: dims.floordiv(*parts),
    "CleanDiv": lambda parts: dims.floordiv(*parts),
    "CeilDiv": lambda parts: dims.ceildiv(*parts),
    "Mod": lambda parts: dims.mod(*parts),
    "PythonMod": lambda parts: dims.mod(*parts),
    "Max": lambda parts: dims.dmax(*parts),
    "Min": lambda parts: dims.dmin(*parts),
    # Truths are 1 and 0.
    "Equality": lambda parts: _is_zero(parts[0] - parts[1]),
    "Unequality": lambda parts: 1 - _is_zero(parts[0] - parts[1]),
    "StrictLessThan": lambda parts: _is_positive(parts[1] - parts[0]),
    "LessThan": lambda parts: _is_positive(parts[1] - parts[0] + 1),
    "StrictGreaterThan": lambda parts: _is_positive(parts[0] - parts[1]),
    "GreaterThan": lambda parts: _is_positive(parts[0] - parts[1] + 1),
    "And": dims.product,
    "Or": lambda parts: dims.dmax(*parts),
    "Not": lambda parts: 1 - parts[0],
}
"""Sympy's and torch's functions of sizes."""
