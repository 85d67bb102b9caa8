"""Learning-rate schedules: the factor of the learning rate at each step; the first step is 0.

A schedule is called with the number of steps made before, as a float, and computes its factor with `gcomp.ops`: in a
training step it is a part of the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gcomp import ops
from gcomp.errors import UsageError
from gcomp.tensors.tensor import Tensor

Schedule = Callable[[Tensor], Tensor]


def _warm(step: Tensor, warmup: int, rest: Callable[[Tensor], Tensor]) -> Tensor:
    """Up to 1 on a line from 0 in `warmup` steps; then `rest`, of the steps since."""
    return ops.where(step < warmup, step / warmup, rest(ops.maximum(step - warmup, 0.0))) if warmup else rest(step)


def _one() -> Tensor:
    return ops.asarray(np.float64(1))


def _check(warmup: int, steps: int = 1) -> None:
    if warmup < 0 or steps < 1:
        raise UsageError(f"a schedule has {steps} steps and a warmup of {warmup}", fix="give steps=1 or more")


@dataclass(frozen=True)
class Constant:
    """1, after a linear warmup. As `torch.optim.lr_scheduler.LambdaLR` of that."""

    warmup: int = 0

    def __post_init__(self) -> None:
        _check(self.warmup)

    def __call__(self, step: Tensor) -> Tensor:
        return _warm(step, self.warmup, lambda since: _one())


@dataclass(frozen=True)
class _Falling:
    """From 1 to `final` in `steps` steps after the warmup."""

    steps: int
    final: float = 0.0
    warmup: int = 0

    def __post_init__(self) -> None:
        _check(self.warmup, self.steps)

    def __call__(self, step: Tensor) -> Tensor:
        return _warm(step, self.warmup, lambda since: self._at(ops.minimum(since / self.steps, 1.0)))

    def _at(self, share: Tensor) -> Tensor:
        """The factor after a share of the steps."""
        raise NotImplementedError


@dataclass(frozen=True)
class Linear(_Falling):
    """From 1 to `final` on a line, in `steps` steps after the warmup. As `optax.linear_schedule`."""

    def _at(self, share: Tensor) -> Tensor:
        return 1.0 + (self.final - 1.0) * share


@dataclass(frozen=True)
class Cosine(_Falling):
    """From 1 to `final` on half a cosine, in `steps` steps after the warmup.

    As `optax.warmup_cosine_decay_schedule`; without warmup, as torch's `CosineAnnealingLR`, which stops at its end.
    """

    def _at(self, share: Tensor) -> Tensor:
        return self.final + (1.0 - self.final) * (0.5 * (1.0 + ops.cos(share * math.pi)))


@dataclass(frozen=True)
class Piecewise:
    """1, and times `factor` from each of the boundaries on. As `torch.optim.lr_scheduler.MultiStepLR`."""

    boundaries: tuple[int, ...]
    factor: float = 0.1
    warmup: int = 0

    def __post_init__(self) -> None:
        _check(self.warmup)
        if not self.boundaries or any(a >= b for a, b in pairwise(self.boundaries)):
            raise UsageError(f"the boundaries {self.boundaries} are not steps in ascending order")

    def __call__(self, step: Tensor) -> Tensor:
        def stepped(since: Tensor) -> Tensor:
            value = _one()
            for i, boundary in enumerate(self.boundaries):
                value = ops.where(since >= boundary, self.factor ** (i + 1), value)
            return value

        return _warm(step, self.warmup, stepped)
