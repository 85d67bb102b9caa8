"""Random numbers from explicit keys: pure functions, the same at once, compiled and in the reference.

A key is two 64-bit words for Threefry 2x32 (docs/guides/semantics.md), key and counter. Use a key once:
`split` makes new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.drawing import standard_normal, unit_interval
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor
from gcomp.ops.movement import Shape, shape_from
from gcomp.tensors.lifting import builder_of, cast_value, lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import DTypeLike, element_text
from gcomp.tensors.tensor import ArrayLike, Tensor


@operation
def key(seed: ArrayLike) -> Tensor:
    """The key of a seed."""
    b, (value,) = lift_operands(seed)
    first = b.reshape(cast_value(b, value, "ui64"), (1,))
    return Tensor(b, b.concatenate([first, b.full((1,), 0, "ui64")], 0))


def _bits(b: Builder, key: SSAValue, shape: Sequence[Size], element: str) -> SSAValue:
    if dtype_text(key.type) != "ui64" or shape_of(key) != (2,):
        raise UsageError("a key is wanted", why=f"a tensor of type {key.type} is none", fix="make one: random.key(0)")
    types = (key.type, tensor(shape, element))
    return b.emit_all(hlo.RngBitGeneratorOp, key, types=types, rng_algorithm="THREE_FRY")[1]


@operation
def split(key: ArrayLike, num: int = 2) -> list[Tensor]:
    """Several keys of one."""
    b, (value,) = lift_operands(key)
    words = b.reshape(_bits(b, value, (num,), "ui64"), (num, 1))
    keys = b.concatenate([words, b.full((num, 1), 0, "ui64")], 1)
    return [Tensor(b, b.reshape(b.slice_axis(keys, 0, i, i + 1), (2,))) for i in range(num)]


@operation
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike = "ui32") -> Tensor:
    """Random bits of an unsigned integer type."""
    b, (value,) = lift_operands(key)
    return Tensor(b, _bits(b, value, shape_from(shape), element_text(dtype)))


def _uniform(b: Builder, key: SSAValue, shape: Sequence[Size], text: str) -> SSAValue:
    """Numbers in [0, 1): the upper 24 of 32 bits (53 of 64 for f64), scaled."""
    if text == "f64":
        return unit_interval(b, _bits(b, key, shape, "ui64"), 53, "f64")
    return unit_interval(b, _bits(b, key, shape, "ui32"), 24, "f32")


def _float(dtype: DTypeLike) -> str:
    text = element_text(dtype)
    if not is_float(text):
        raise UsageError(f"random numbers of type {text} are no floats", fix="draw floats, or use `randint`")
    return text


@operation
def uniform(key: ArrayLike, shape: Shape = (), low: float = 0.0, high: float = 1.0, dtype: DTypeLike = "f32") -> Tensor:
    """Numbers in [low, high)."""
    b, (value,) = lift_operands(key)
    text = _float(dtype)
    unit = _uniform(b, value, shape_from(shape), text)
    scaled = b.add(b.scale(unit, high - low), b.scalar_like(unit, low))
    return Tensor(b, b.convert(scaled, text))


@operation
def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike = "f32") -> Tensor:
    """Numbers of the standard normal distribution: its quantile of the middle of a uniform number's interval."""
    b, (value,) = lift_operands(key)
    text = _float(dtype)
    unit = _uniform(b, value, shape_from(shape), text)
    return Tensor(b, b.convert(standard_normal(b, unit, 53 if text == "f64" else 24), text))


@operation
def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None) -> Tensor:
    """True with probability p."""
    b = builder_of(key, p)
    _, (value, chance) = lift_operands(key, p, b=b)
    chance = cast_value(b, chance, "f32")
    drawn = _uniform(b, value, shape_of(chance) if shape is None else shape_from(shape), "f32")
    return Tensor(b, b.compare(drawn, chance, "LT"))


@operation
def randint(key: ArrayLike, low: int, high: int, shape: Shape = (), dtype: DTypeLike = "i64") -> Tensor:
    """Integers from low up to high, which is not included: 64 random bits modulo the number of them."""
    if high <= low:
        raise UsageError(f"there are no integers from {low} up to {high}, which is not included")
    b, (value,) = lift_operands(key)
    drawn = _bits(b, value, shape_from(shape), "ui64")
    rest = b.convert(b.emit(hlo.RemainderOp, drawn, b.full_like(drawn, high - low)), "i64")
    return Tensor(b, b.convert(b.add(rest, b.full_like(rest, low)), element_text(dtype)))


@operation
def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1) -> Tensor:
    """An index along an axis, each with the probability that softmax(logits) gives it (by Gumbel's trick)."""
    from gcomp.ops.reduction import argmax

    b = builder_of(key, logits)
    _, (value, scores) = lift_operands(key, logits, b=b)
    unit = _uniform(b, value, shape_of(scores), dtype_text(scores.type))
    middle = b.add(unit, b.scalar_like(unit, 2.0**-54 if dtype_text(unit.type) == "f64" else 2.0**-25))
    noise = b.emit(hlo.NegateOp, b.emit(hlo.LogOp, b.emit(hlo.NegateOp, b.emit(hlo.LogOp, middle))))
    return argmax(Tensor(b, b.add(b.convert(scores, element_of(noise)), noise)), axis=axis)


@operation
def dropout(key: ArrayLike, x: ArrayLike, rate: float) -> Tensor:
    """x with each element set to 0 with probability `rate`, and the others scaled up by 1 / (1 - rate)."""
    if not 0 <= rate < 1:
        raise UsageError(f"the rate {rate} is not in [0, 1)")
    b = builder_of(key, x)
    _, (value, data) = lift_operands(key, x, b=b)
    drawn = _uniform(b, value, shape_of(data), "f32")
    kept = b.compare(drawn, b.full_like(drawn, rate), "GE")
    return Tensor(b, b.select(kept, b.scale(data, 1 / (1 - rate)), b.full_like(data, 0)))
