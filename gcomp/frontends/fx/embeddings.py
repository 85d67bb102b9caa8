"""Tables of rows: bags of them, and their gradients."""

from __future__ import annotations

import math
from typing import Any

from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.definitions import defines
from gcomp.frontends.fx.distances import norm
from gcomp.frontends.fx.torch_api import torch

_SUM, _MEAN, _MAX = range(3)
"""What becomes of the rows of a bag, as torch numbers it."""


@defines("_embedding_bag", "_embedding_bag_forward_only")
def _(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
      per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int = -1) -> Any:  # fmt: skip
    starts = offsets[:-1] if include_last_offset else offsets
    bags = starts.shape[0]
    bag = (torch.arange(indices.shape[0]).unsqueeze(1) >= starts).sum(1) - 1
    counted = indices != padding_idx
    inside = (bag == torch.arange(bags).unsqueeze(1)) & counted
    rows = weight[indices]
    count = inside.sum(1)
    if mode == _MAX:
        each = torch.where(inside.unsqueeze(-1), rows, -math.inf)
        values, at = each.max(1) if indices.shape[0] else (each.sum(1), each.sum(1).long())
        found = torch.where(count.unsqueeze(1) == 0, 0.0, values)
        return found, bag, count, indices[at] if indices.shape[0] else at
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    found = torch.where(inside.unsqueeze(-1), rows, 0.0).sum(1)
    return (found / count.clamp(min=1).unsqueeze(1) if mode == _MEAN else found), bag, count, count


@defines("_embedding_bag_backward")
def _(grad: Any, indices: Any, offsets: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
      scale_grad_by_freq: bool, mode: int, sparse: bool, *rest: Any) -> Any:  # fmt: skip
    if sparse:
        raise UnsupportedError(
            "gcomp does not import aten::_embedding_bag_backward with sparse=True",
            why="the gradient of the table would be a sparse tensor",
            fix="make the module with sparse=False",
        )
    return _table_gradient(
        grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, *rest
    )


@defines("_embedding_bag_dense_backward")
def _table_gradient(grad: Any, indices: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
                    scale_grad_by_freq: bool, mode: int, per_sample_weights: Any = None,
                    padding_idx: int = -1) -> Any:  # fmt: skip
    """The gradient of the table."""
    table = grad.new_zeros((num_weights, grad.shape[1]))
    if mode == _MAX:
        return table.scatter_add(0, maximum_indices, torch.where(bag_size.unsqueeze(1) != 0, grad, 0.0))
    scale = torch.where(indices != padding_idx, 1.0, 0.0).to(grad.dtype)
    if per_sample_weights is not None:
        scale = scale * per_sample_weights
    if scale_grad_by_freq:
        scale = scale / indices.new_zeros((num_weights,)).index_add(0, indices, torch.ones_like(indices))[indices]
    if mode == _MEAN:
        scale = scale / bag_size.clamp(min=1)[offset2bag]
    return table.index_add(0, indices, grad[offset2bag] * scale.unsqueeze(1))


@defines("_embedding_bag_per_sample_weights_backward")
def _(grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int, padding_idx: int = -1) -> Any:
    product = (grad[offset2bag] * weight[indices]).sum(1)
    return torch.where(indices != padding_idx, product, 0.0)


@defines("embedding_renorm")
def _(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    length = norm(self, norm_type).unsqueeze(1)
    rows, yes = torch.zeros(self.shape[:1], dtype=torch.bool), torch.ones((), dtype=torch.bool)
    used = rows.index_put((indices.reshape(-1),), yes)
    return torch.where(used.unsqueeze(1) & (length > max_norm), self * (max_norm / (length + 1e-7)), self)
