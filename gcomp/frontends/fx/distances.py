"""Distances between the rows of tensors, and their gradients."""

from __future__ import annotations

import math
from typing import Any

from gcomp.frontends.fx.definitions import defines
from gcomp.frontends.fx.torch_api import torch


def norm(apart: Any, p: float) -> Any:
    """The p-norm along the last dimension."""
    apart = apart.abs()
    if p == 0:
        return (apart != 0).sum(-1).to(apart.dtype)
    if apart.shape[-1] == 0:
        return apart.sum(-1)
    if p == math.inf:
        return apart.amax(-1)
    if p == 1:
        return apart.sum(-1)
    return (apart * apart).sum(-1).sqrt() if p == 2 else (apart**p).sum(-1) ** (1 / p)


def _norm_gradient(apart: Any, p: float, distance: Any, grad: Any) -> Any:
    """The gradient of `distance`, the p-norm of `apart` along the last dimension; 0 where torch says that it is."""
    distance, grad = distance.unsqueeze(-1), grad.unsqueeze(-1)
    size, sign = apart.abs(), apart.sign()
    if p == 0:
        return torch.zeros_like(apart) * grad
    if p == 1:
        return sign * grad
    if p == math.inf:
        return torch.where(size == distance, sign, 0.0) * grad
    there = distance != 0
    distance = torch.where(there, distance, 1.0)
    if p == 2:
        return torch.where(there, apart / distance * grad, 0.0)
    # A power of 0 below 0 is infinite, and so would the gradient be.
    there = there & (size != 0) if p < 1 else there
    ratio = torch.where(there, size, 1.0) ** (p - 1) / distance ** (p - 1)
    return torch.where(there, sign * ratio * grad, 0.0)


@defines("_cdist_forward")
def _(x1: Any, x2: Any, p: float, compute_mode: Any) -> Any:
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@defines("_cdist_backward")
def _(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    return _norm_gradient(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, cdist, grad).sum(-2)


@defines("_pdist_forward")
def _(self: Any, p: float = 2.0) -> Any:
    if self.shape[0] < 2:
        return self.new_zeros((0,))
    return torch.cat([norm(self[i] - self[i + 1 :], p) for i in range(self.shape[0] - 1)])


@defines("_pdist_backward")
def _(grad: Any, self: Any, p: float, pdist: Any) -> Any:
    if self.shape[0] < 2:
        return torch.zeros_like(self)
    low, high = torch.triu_indices(self.shape[0], self.shape[0], 1)
    part = _norm_gradient(self[low] - self[high], p, pdist, grad)
    return torch.zeros_like(self).index_add(0, low, part).index_add(0, high, -part)
