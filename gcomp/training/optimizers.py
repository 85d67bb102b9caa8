"""Optimizers: how parameters move along their gradients.

Each is a dataclass of its settings. `slots` says what it keeps of a parameter (zero at first), and `update` makes the
next value of parameter and slots, over `gcomp.ops`: at once on arrays, or as a part of a program. `step` is the number
of updates before, `rate` the learning rate now; both are scalars of f64, as torch computes them on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from gcomp import ops
from gcomp.errors import UsageError
from gcomp.tensors.tensor import Tensor

Slots = Mapping[str, Tensor]
Updated = tuple[Tensor, Slots]


class Optimizer(Protocol):
    """What a training step asks of an optimizer."""

    @property
    def lr(self) -> float: ...
    def slots(self, shape: Sequence[int]) -> Mapping[str, tuple[int, ...]]: ...
    def update(self, parameter: Tensor, gradient: Tensor, slots: Slots, step: Tensor, rate: Tensor) -> Updated: ...


def _as(scalar: Tensor, like: Tensor) -> Tensor:
    """A scalar of f64 in a parameter's own type, as torch takes Python's numbers."""
    return ops.astype(scalar, like.dtype)


def _refuse(wrong: bool, what: str, why: str) -> None:
    if wrong:
        raise UsageError(what, why=why)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent, with momentum, Nesterov's or not. As `torch.optim.SGD`."""

    lr: float = 1e-2
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        _refuse(self.nesterov and not (self.momentum > 0 and self.dampening == 0), "SGD cannot be Nesterov's here",
                "that needs a momentum, and no dampening")  # fmt: skip

    def slots(self, shape: Sequence[int]) -> Mapping[str, tuple[int, ...]]:
        """The momentum, if there is one."""
        return {"momentum": tuple(shape)} if self.momentum else {}

    def update(self, parameter: Tensor, gradient: Tensor, slots: Slots, step: Tensor, rate: Tensor) -> Updated:
        """Move against the gradient, or what the momentum makes of it."""
        g, kept = gradient, {}
        if self.weight_decay:
            g = g + self.weight_decay * parameter
        if self.momentum:
            buffer = self.momentum * slots["momentum"] + (1 - self.dampening) * g
            if self.dampening:
                buffer = ops.where(step == 0, g, buffer)  # the first is not dampened
            kept = {"momentum": buffer}
            g = g + self.momentum * buffer if self.nesterov else buffer
        return parameter - _as(rate, parameter) * g, kept


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). As `torch.optim.AdamW`."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 1e-2

    def __post_init__(self) -> None:
        _refuse(not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1), "AdamW's betas are not valid",
                f"they are {self.beta1} and {self.beta2}, and must be at least 0 and less than 1")  # fmt: skip

    def slots(self, shape: Sequence[int]) -> Mapping[str, tuple[int, ...]]:
        """Running means of gradients and of their squares."""
        return {"mean": tuple(shape), "square": tuple(shape)}

    def update(self, parameter: Tensor, gradient: Tensor, slots: Slots, step: Tensor, rate: Tensor) -> Updated:
        """Move against the mean gradient, by the root of the mean square; both corrected for their start at 0."""
        count = step + 1.0
        size = rate / (1 - ops.power(self.beta1, count))
        root = ops.sqrt(1 - ops.power(self.beta2, count))
        p = parameter
        if self.weight_decay:
            p = p * _as(1 - rate * self.weight_decay, p)
        mean = slots["mean"] + (1 - self.beta1) * (gradient - slots["mean"])
        square = self.beta2 * slots["square"] + (1 - self.beta2) * gradient * gradient
        moved = _as(-size, p) * mean / (ops.sqrt(square) / _as(root, p) + self.eps)
        return p + moved, {"mean": mean, "square": square}


@dataclass(frozen=True)
class Lion:
    """The sign of an interpolated momentum (Chen et al. 2023). As `optax.lion`."""

    lr: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 1e-3

    def slots(self, shape: Sequence[int]) -> Mapping[str, tuple[int, ...]]:
        """The running mean of gradients."""
        return {"mean": tuple(shape)}

    def update(self, parameter: Tensor, gradient: Tensor, slots: Slots, step: Tensor, rate: Tensor) -> Updated:
        """Move by the learning rate in each element, against the sign."""
        mean = slots["mean"]
        move = ops.sign((1 - self.beta1) * gradient + self.beta1 * mean)
        move = move + self.weight_decay * parameter if self.weight_decay else move
        return parameter - _as(rate, parameter) * move, {"mean": (1 - self.beta2) * gradient + self.beta2 * mean}


@dataclass(frozen=True)
class Adafactor:
    """Adam's second moments as sums of rows and columns (Shazeer and Stern 2018). As `optax.adafactor`.

    Parameters whose second largest dimension is less than `factored_from` have a moment for each element.
    """

    lr: float = 1e-3
    decay_rate: float = 0.8
    clipping: float = 1.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    eps: float = 1e-30
    factored_from: int = 128
    by_parameter: bool = True

    def slots(self, shape: Sequence[int]) -> Mapping[str, tuple[int, ...]]:
        """Mean squares by row and column, or of each element; and the momentum, if there is one."""
        found: dict[str, tuple[int, ...]] = {"momentum": tuple(shape)} if self.momentum else {}
        if (axes := self._factored(shape)) is None:
            return {**found, "square": tuple(shape)}
        return {**found, **{name: _without(shape, axis) for name, axis in zip(("row", "column"), axes, strict=True)}}

    def _factored(self, shape: Sequence[int]) -> tuple[int, int] | None:
        """The two largest dimensions, the largest first; None where they are not large enough."""
        order = np.argsort(shape)
        if len(shape) < 2 or shape[order[-2]] < self.factored_from:
            return None
        return int(order[-1]), int(order[-2])

    def update(self, parameter: Tensor, gradient: Tensor, slots: Slots, step: Tensor, rate: Tensor) -> Updated:
        """Move by the gradient over the root of its mean square, clipped, and scaled by the parameter's own size."""
        decay = _as(1.0 - ops.power(step + 1.0, -self.decay_rate), parameter)
        squares = gradient * gradient + self.eps
        move, kept = self._scaled(gradient, squares, slots, decay)
        if self.clipping:
            move = move / ops.maximum(1.0, _rms(move) / self.clipping)
        move = move * _as(rate, parameter)
        if self.by_parameter:
            move = move * ops.maximum(_rms(parameter), 1e-3)
        if self.momentum:
            move = (1 - self.momentum) * move + self.momentum * slots["momentum"]
            kept = {**kept, "momentum": move}
        if self.weight_decay:
            move = move + self.weight_decay * parameter
        return parameter - move, kept

    def _scaled(self, gradient: Tensor, squares: Tensor, slots: Slots, decay: Tensor) -> Updated:
        axes = self._factored(cast("tuple[int, ...]", gradient.shape))
        if axes is None:
            square = decay * slots["square"] + (1.0 - decay) * squares
            return gradient * ops.power(square, -0.5), {"square": square}
        large, small = axes
        row = decay * slots["row"] + (1.0 - decay) * squares.mean(large)
        column = decay * slots["column"] + (1.0 - decay) * squares.mean(small)
        mean = row.mean(small - 1 if small > large else small, keepdims=True)
        by_row, by_column = ops.power(row / mean, -0.5), ops.power(column, -0.5)
        return gradient * ops.expand_dims(by_row, large) * ops.expand_dims(by_column, small), {
            "row": row, "column": column,
        }  # fmt: skip


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i != axis)


def _rms(x: Tensor) -> Tensor:
    return ops.sqrt(ops.mean(ops.square(x)))


def clip_by_global_norm(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Gradients scaled so that the norm of all together is at most `max_norm`; and that norm.

    As `torch.nn.utils.clip_grad_norm_`.
    """
    _refuse(not max_norm > 0, f"gradients cannot be clipped to a norm of {max_norm}", "it must be greater than 0")
    norm = global_norm(gradients)
    factor = ops.minimum(max_norm / (norm + 1e-6), 1.0)
    return [g * _as(factor, g) for g in gradients], norm


def global_norm(gradients: Sequence[Tensor]) -> Tensor:
    """The norm of the vector of all elements, in f32 or wider."""
    total = [ops.square(ops.astype(g, np.promote_types(g.dtype, np.float32))).sum() for g in gradients]
    return ops.sqrt(ops.stack(total).sum())
