"""Convolution and pooling on (batch, channels, spatial...), with kernels of (out, in, spatial...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions
from gcomp.ir.builder import Builder, identity
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor
from gcomp.ops.movement import pairs_of
from gcomp.tensors.lifting import lift_operands, promote_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import require
from gcomp.tensors.tensor import ArrayLike, Tensor

Per = int | Sequence[int]
"""One number for all spatial dimensions, or one for each."""
Padding = str | int | Sequence[Any]
"""`valid`, `same`, one number, one pair, or a pair for each spatial dimension."""


def _each(value: Per, count: int, what: str) -> list[int]:
    numbers = [value] * count if isinstance(value, int) else list(value)
    if len(numbers) != count or any(n < 1 for n in numbers):
        raise UsageError(f"the {what} {value} are not {count} positive numbers")
    return numbers


def _padding(
    padding: Padding, sizes: Sequence[Size], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """(low, high) for each spatial dimension. `same` keeps the size divided by the stride, rounded up."""
    if not isinstance(padding, str):
        return pairs_of(padding, len(sizes))
    if padding.lower() == "valid":
        return [(0, 0)] * len(sizes)
    if padding.lower() != "same":
        raise UsageError(f"there is no padding {padding!r}", fix='pass "valid", "same", or numbers')
    found: list[tuple[int, int]] = []
    for size, k, stride, d in zip(sizes, window, strides, dilation, strict=True):
        reach = (k - 1) * d + 1
        if isinstance(size, int):
            total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        elif stride == 1:
            total = reach - 1
        else:
            raise UnsupportedError(
                f'padding "same" with a stride of {stride} depends on the symbolic size {size}',
                fix="pass the padding as numbers",
            )
        found.append((total // 2, total - total // 2))
    return found


@operation
def conv(
    x: ArrayLike, kernel: ArrayLike, *, strides: Per = 1, padding: Padding = "valid", dilation: Per = 1, groups: int = 1
) -> Tensor:
    """Dot products of a kernel with the windows of x (a cross-correlation, as neural networks have it)."""
    b, (value, weights) = promote_operands(x, kernel)
    count = rank_of(value) - 2
    if count < 1 or rank_of(weights) != rank_of(value):
        raise UsageError(
            f"tensors of ranks {rank_of(value)} and {rank_of(weights)} have no convolution",
            why="x is (batch, channels, spatial...), the kernel (out, in / groups, spatial...)",
        )
    window = [_require_fixed(s) for s in shape_of(weights)[2:]]
    steps, gaps = _each(strides, count, "strides"), _each(dilation, count, "dilations")
    spatial = tuple(range(2, count + 2))
    return Tensor(
        b,
        b.convolution(
            value,
            weights,
            window_strides=steps,
            padding=_padding(padding, shape_of(value)[2:], window, steps, gaps),
            rhs_dilation=gaps,
            dimension_numbers=ConvDimensions(0, 1, spatial, 1, 0, spatial, 0, 1, spatial),
            feature_group_count=groups,
            batch_group_count=1,
        ),
    )


def _require_fixed(size: Size) -> int:
    if not isinstance(size, int):
        raise UnsupportedError(f"a kernel has the symbolic size {size}", fix="give its dimensions numbers")
    return size


def _pool(b: Builder, x: SSAValue, op: type[GraphOp], window: Per, strides: Per | None, padding: Padding) -> SSAValue:
    count = rank_of(x) - 2
    if count < 1:
        raise UsageError(f"a tensor of rank {rank_of(x)} has no spatial dimensions to pool")
    sizes = _each(window, count, "window sizes")
    steps = sizes if strides is None else _each(strides, count, "strides")
    pairs = _padding(padding, shape_of(x)[2:], sizes, steps, [1] * count)
    scalar, text = tensor((), element_of(x)), dtype_text(x.type)
    body = b.region([scalar, scalar], lambda args: [b.emit(op, args[0], args[1])])
    return b.emit(
        hlo.ReduceWindowOp, x, b.full((), identity(op, text), text), regions=[body],
        window_dimensions=[1, 1, *sizes], window_strides=[1, 1, *steps], padding=[(0, 0), (0, 0), *pairs],
    )  # fmt: skip


def _extreme_pool(name: str, op: type[GraphOp], doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, window: Per, *, strides: Per | None = None, padding: Padding = "valid") -> Tensor:
        b, (value,) = lift_operands(x)
        require(name, dtype_text(value.type), 0, 1, 2)
        return Tensor(b, _pool(b, value, op, window, strides, padding))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


max_pool = _extreme_pool("max_pool", hlo.MaximumOp, "The largest of each window; strides are the window's by default.")
min_pool = _extreme_pool("min_pool", hlo.MinimumOp, "The smallest of each window; strides are the window's by default.")


@operation
def avg_pool(
    x: ArrayLike, window: Per, *, strides: Per | None = None, padding: Padding = "valid", count_padding: bool = False
) -> Tensor:
    """The mean of each window, of the padding only if asked; strides are the window's by default."""
    b, (value,) = lift_operands(x)
    require("avg_pool", dtype_text(value.type), 2)
    wide = b.widen(value)
    total = _pool(b, wide, hlo.AddOp, window, strides, padding)
    if count_padding:
        sizes = _each(window, rank_of(value) - 2, "window sizes")
        counts = b.full_like(total, _product(sizes))
    else:
        counts = _pool(b, b.full_like(wide, 1), hlo.AddOp, window, strides, padding)
    return Tensor(b, b.convert(b.divide(total, counts), element_of(value)))


def _product(numbers: Sequence[int]) -> int:
    found = 1
    for n in numbers:
        found *= n
    return found


__all__ = ["avg_pool", "conv", "max_pool", "min_pool"]
