"""Histograms, of one or of several coordinates, by simpler operators (`definitions`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gcomp.frontends.fx.definitions import defines
from gcomp.frontends.fx.torch_api import torch


def _ends(x: Any, range: Sequence[float] | None, at: int = 0) -> tuple[Any, Any]:
    """The first and the last edge: those given, or the extremes; one value lies in the middle of 1."""
    if range is not None:
        low, high = (torch.full((), value, dtype=x.dtype) for value in range[2 * at : 2 * at + 2])
    elif x.numel() == 0:
        low, high = x.new_zeros(()), x.new_ones(())
    else:
        low, high = x.amin(), x.amax()
    empty = low == high
    return torch.where(empty, low - 0.5, low), torch.where(empty, high + 0.5, high)


def _edges(low: Any, high: Any, bins: int) -> Any:
    """bins + 1 edges, counted from the nearer end."""
    place, step = torch.arange(bins + 1, dtype=low.dtype), (high - low) / bins
    return torch.where(place < (bins + 1) // 2, low + step * place, high - step * (bins - place))


def _counts(places: Sequence[Any], inside: Any, bins: Sequence[int], weight: Any, dtype: Any) -> Any:
    """How often each cell is met by rows of places, or the sum of the weights there."""
    flat = torch.zeros_like(places[0])
    for place, count in zip(places, bins, strict=True):
        flat = flat * count + place.clamp(0, count - 1)
    each = torch.where(inside, 1.0 if weight is None else weight.reshape(-1), 0.0).to(dtype)
    cells = torch.zeros((math.prod(bins),), dtype=dtype)
    return cells.index_put((flat,), each, accumulate=True).reshape(tuple(bins))


def _density(counts: Any, edges: Sequence[Any]) -> Any:
    """Counts as a density: the integral over all cells is 1."""
    found = counts / counts.sum()
    for i, edge in enumerate(edges):
        found = found / (edge[1:] - edge[:-1]).reshape([-1 if i == j else 1 for j in range(len(edges))])
    return found


@defines("histogram.bin_ct")
def _(self: Any, bins: int = 100, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    x = self.reshape(-1)
    low, high = _ends(x, range)
    edges = _edges(low, high, bins)
    place = (edges <= x.unsqueeze(-1)).sum(-1) - 1
    counts = _counts([place], (x >= low) & (x <= high), [bins], weight, self.dtype)
    return (_density(counts, [edges]) if density else counts), edges


@defines("_histogramdd_bin_edges")
def _(self: Any, bins: Sequence[int], *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    rows = self.reshape(-1, len(bins))
    return [_edges(*_ends(rows[:, i], range, i), count) for i, count in enumerate(bins)]


@defines("_histogramdd_from_bin_cts")
def _(self: Any, bins: Sequence[int], *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    rows = self.reshape(-1, len(bins))
    ends = [_ends(rows[:, i], range, i) for i, _ in enumerate(bins)]
    places: list[Any] = []
    inside = torch.ones(rows.shape[:1], dtype=torch.bool)
    for i, (low, high) in enumerate(ends):
        x = rows[:, i]
        places.append(torch.where((x >= low) & (x <= high), (x - low) * bins[i] / (high - low), 0.0).long())
        inside = inside & (x >= low) & (x <= high)
    counts = _counts(places, inside, bins, weight, self.dtype)
    return _density(counts, [_edges(*end, count) for end, count in zip(ends, bins, strict=True)]) if density else counts


def _between(rows: Sequence[Any], edges: Sequence[Any], weight: Any, density: bool) -> Any:
    """The histogram of coordinates between given edges."""
    inside = torch.ones_like(rows[0], dtype=torch.bool)
    places: list[Any] = []
    for x, edge in zip(rows, edges, strict=True):
        inside = inside & (x >= edge[0]) & (x <= edge[-1])
        places.append((edge <= x.unsqueeze(-1)).sum(-1) - 1)
    counts = _counts(places, inside, [edge.shape[0] - 1 for edge in edges], weight, rows[0].dtype)
    return _density(counts, edges) if density else counts


@defines("histogram.bins_tensor")
def _(self: Any, bins: Any, *, weight: Any = None, density: bool = False) -> Any:
    return _between([self.reshape(-1)], [bins], weight, density), bins.clone()


@defines("_histogramdd_from_bin_tensors")
def _(self: Any, bins: Sequence[Any], *, weight: Any = None, density: bool = False) -> Any:
    rows = self.reshape(-1, len(bins))
    return _between([rows[:, i] for i in range(len(bins))], bins, weight, density)
