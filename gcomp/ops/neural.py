"""What neural networks are made of. Norms and softmaxes are composites, which back ends know by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, lowest
from gcomp.ir.composites import composite
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of
from gcomp.ops.elementwise import as_float
from gcomp.ops.reduction import axis_of
from gcomp.tensors.lifting import builder_of, cast_value, lift_operands, promote_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import require
from gcomp.tensors.tensor import ArrayLike, Tensor


def _floats(x: ArrayLike, name: str) -> tuple[Builder, SSAValue]:
    b, (value,) = lift_operands(x)
    value = as_float(b, value)
    require(name, dtype_text(value.type), 2)
    return b, value


def _composite(b: Builder, name: str, inputs: Sequence[SSAValue], **attributes: Any) -> Tensor:
    given: Mapping[str, Any] = attributes
    return Tensor(b, composite(b, f"gcomp.{name}", inputs, given)[0])


@operation
def softmax(x: ArrayLike, axis: int = -1) -> Tensor:
    """exp(x) as a part of its sum along an axis."""
    b, value = _floats(x, "softmax")
    return _composite(b, "softmax", [value], axis=axis_of(axis, rank_of(value)))


@operation
def log_softmax(x: ArrayLike, axis: int = -1) -> Tensor:
    """The logarithm of the softmax along an axis."""
    b, value = _floats(x, "log_softmax")
    return _composite(b, "log_softmax", [value], axis=axis_of(axis, rank_of(value)))


@operation
def logsumexp(x: ArrayLike, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exp(x) along an axis."""
    b, value = _floats(x, "logsumexp")
    place = axis_of(axis, rank_of(value))
    found = _composite(b, "logsumexp", [value], axis=place)
    kept = [s for i, s in enumerate(shape_of(value)) if i != place]
    return found if keepdims else Tensor(b, b.reshape(found.value, kept))


@operation
def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, *, axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:  # fmt: skip
    """x less its mean, by the root of its variance, over the dimensions from `axis` on; times scale, plus bias."""
    b, values = _norm_operands(x, scale, bias)
    return _composite(b, "layer_norm", values, axis=axis_of(axis, rank_of(values[0])), epsilon=float(epsilon))


@operation
def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, *, axis: int = -1, epsilon: float = 1e-6) -> Tensor:
    """x by the root of the mean of its squares, over the dimensions from `axis` on; times scale."""
    b, values = _norm_operands(x, scale, None)
    return _composite(b, "rms_norm", values, axis=axis_of(axis, rank_of(values[0])), epsilon=float(epsilon))


def _norm_operands(x: ArrayLike, scale: ArrayLike | None, bias: ArrayLike | None) -> tuple[Builder, list[SSAValue]]:
    given = [one for one in (x, scale, bias) if one is not None]
    b, (value, *rest) = promote_operands(*given)
    require("a norm", dtype_text(value.type), 2)
    values = [value, *([] if scale is not None else [b.scalar_like(value, 1)]), *rest]
    wide = b.broadcast_shape(*(shape_of(v) for v in values))
    if wide != shape_of(value):
        raise UsageError(f"scale and bias widen x from {shape_of(value)} to {wide}", fix="they broadcast to x")
    return b, values


@operation
def gelu(x: ArrayLike, *, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x: exact, or by "tanh"."""
    if approximate not in ("none", "tanh"):
        raise UsageError(f"there is no approximation {approximate!r}", fix='pass "none" or "tanh"')
    b, value = _floats(x, "gelu")
    return _composite(b, "gelu", [value], approximate=approximate)


@operation
def silu(x: ArrayLike) -> Tensor:
    """x * sigmoid(x)."""
    b, value = _floats(x, "silu")
    return _composite(b, "silu", [value])


@operation
def relu(x: ArrayLike) -> Tensor:
    """The larger of x and 0."""
    b, (value,) = lift_operands(x)
    require("relu", dtype_text(value.type), 1, 2)
    return Tensor(b, b.maximum(value, b.full_like(value, 0)))


@operation
def leaky_relu(x: ArrayLike, slope: float = 0.01) -> Tensor:
    """x, times `slope` where it is negative."""
    b, value = _floats(x, "leaky_relu")
    below = b.compare(value, b.full_like(value, 0), "LT")
    return Tensor(b, b.select(below, b.scale(value, slope), value))


@operation
def elu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """x; alpha * (exp(x) - 1) where it is negative."""
    b, value = _floats(x, "elu")
    below = b.compare(value, b.full_like(value, 0), "LT")
    bent = b.scale(b.emit(hlo.ExponentialMinusOneOp, value), alpha)
    return Tensor(b, b.select(below, bent, value))


@operation
def softplus(x: ArrayLike) -> Tensor:
    """log(1 + exp(x)) without overflow."""
    b, value = _floats(x, "softplus")
    # One predicate for both parts: the derivative at 0, where each has a kink, is the one half of their sum.
    zero = b.full_like(value, 0)
    above, opposite = b.compare(value, zero, "GE"), b.emit(hlo.NegateOp, value)
    small = b.emit(hlo.ExponentialOp, b.select(above, opposite, value))
    return Tensor(b, b.add(b.select(above, value, zero), b.emit(hlo.LogPlusOneOp, small)))


@operation
def attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, mask: ArrayLike | None = None, *,
    scale: float | None = None, causal: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(scale * query @ key.T + mask) @ value on (batch..., sequence, features); scale is 1 / sqrt(features).

    A mask of booleans keeps what it is True for; one of numbers is added. `causal` hides later keys from each query.
    """
    b = builder_of(query, key, value, *([] if mask is None else [mask]))
    _, (q, k, v) = promote_operands(query, key, value, b=b)
    require("attention", dtype_text(q.type), 2)
    ranks = {rank_of(one) for one in (q, k, v)}
    if len(ranks) > 1 or min(ranks) < 2:
        raise UsageError("query, key and value have one rank, of 2 at least", why=f"their ranks are {sorted(ranks)}")
    factor = _scale(shape_of(q)[-1]) if scale is None else float(scale)
    masks = [] if mask is None else [_mask(b, mask, element_of(q))]
    if causal:
        masks.append(_causal(b, q, k))
    masks = _one_of_booleans(b, masks)
    attributes: dict[str, Any] = {"scale": factor}
    if any(dtype_text(m.type) == "i1" for m in masks):
        attributes["fill"] = float(lowest(dtype_text(q.type)))
    return _composite(b, "attention", [q, k, v, *masks], **attributes)


def _scale(features: Size) -> float:
    if not isinstance(features, int):
        raise UsageError(f"the scale depends on the symbolic size {features}", fix="pass `scale`")
    return float(features) ** -0.5


def _mask(b: Builder, mask: ArrayLike, element: Any) -> SSAValue:
    _, (value,) = lift_operands(mask, b=b)
    return value if dtype_text(value.type) == "i1" else cast_value(b, value, dtype_text(element))


def _causal(b: Builder, q: SSAValue, k: SSAValue) -> SSAValue:
    shape = (shape_of(q)[-2], shape_of(k)[-2])
    return b.compare(b.iota(shape, 1), b.iota(shape, 0), "LE")


def _one_of_booleans(b: Builder, masks: list[SSAValue]) -> list[SSAValue]:
    """The mask of floats first, and then one mask of booleans."""
    booleans = [m for m in masks if dtype_text(m.type) == "i1"]
    both = [b.binary(hlo.AndOp, *booleans)] if len(booleans) == 2 else booleans
    return [*(m for m in masks if dtype_text(m.type) != "i1"), *both]


__all__ = ["attention", "elu", "gelu", "layer_norm", "leaky_relu", "log_softmax", "logsumexp", "relu", "rms_norm",
           "silu", "softmax", "softplus"]  # fmt: skip
