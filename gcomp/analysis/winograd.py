"""Which convolutions are computed by values at points (`gcomp.ir.winograd`): what it would take, and how exact it is.

Time is a model's, of work and of bytes of weights. Errors are measured, on made-up images and a part of the results:
root mean squares of what both ways to compute are off from a sum in f64, relative to the results'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gcomp.analysis.machines import Machine
from gcomp.analysis.work import Nominal
from gcomp.dims import Range, Ranges, Size, symbols_of
from gcomp.dims import evaluate as size_at
from gcomp.ir.winograd import CHAIN, PAIRS, WINDOW, evaluate, interpolate
from gcomp.records import record

Array = np.ndarray[Any, Any]

RESULTS, FEATURES = 1024, 4
"""Results that are computed to measure errors, and of how many features."""
GAIN = 0.9
"""The share of a time that a way with more weights may take, at most: they are bytes of a file, too."""
LOSS, SLACK = 1.05, 5e-6
"""The share of the time of plain sums that a way may take at any of the sizes that are looked at, at most, and the
seconds by which it may be slower where there are several: one image is quick anyway."""
WAITING = 2.0
"""How many times longer weights that no cache of a core keeps take than a machine's bandwidth says: products wait for
them, line by line."""
USUAL = 224
"""Rows, and columns, that images often have whose sizes the call decides."""
BLOCK = 8
"""Tiles of a block of sums, where the call decides how many tiles there are."""


@record
class Errors:
    """Errors relative to the results: of the products at points, and of the sums that they stand for."""

    transformed: float
    exact: float

    @property
    def ratio(self) -> float:
        """How many times larger the first is."""
        return self.transformed / self.exact if self.exact else 0.0


@record
class Layer:
    """The sizes of one convolution: a batch of images whose results are `height` by `width`."""

    images: int
    height: int
    width: int
    channels: int
    features: int
    block: int = 1
    """Of how many tiles a whole number is computed."""


def layers_of(result: Sequence[Size], channels: int, features: int, ranges: Ranges) -> list[Layer]:
    """A layer whose results [n, y, x, o] have these sizes: of one image, and of many, where the call decides that, and
    of usual images where it decides how large they are."""
    images, height, width = result[:3]
    many, inside = symbols_of(images), (symbols_of(height) | symbols_of(width)) - symbols_of(images)
    usual = {name: _nearest(USUAL, ranges[name]) for name in inside}
    ends = [{name: _nearest(1, ranges[name]) for name in many}, Nominal(ranges).sizes(many)]
    found: list[Layer] = []
    for end in ends:
        count, rows, columns = (size_at(n, {**usual, **end}) for n in (images, height, width))
        found.append(Layer(count, rows, columns, channels, features, BLOCK))
    if many:
        return found
    return [found[0] if inside else replace(found[0], block=1)]


def _nearest(wanted: int, known: Range) -> int:
    """The size in a range that is nearest to another one."""
    step = known.multiple_of
    found = max(known.lo, wanted // step * step)
    return found if known.hi is None else min(found, known.hi)


@record
class Ways:
    """What computing a layer takes, in seconds by the model of a machine: plain sums, and tiles of so many results.

    `tiles` are the sizes of tiles that pay, the best first; none where plain sums are as fast.
    """

    sums: float
    points: Mapping[int, float]
    tiles: Sequence[int]


def ways_of(layers: Sequence[Layer], machine: Machine) -> Ways:
    """The ways to compute a layer on a machine: in the geometric mean over its sizes, and at none of them much slower
    than plain sums."""
    order = sorted(PAIRS)
    each = {m: [seconds(layer, machine, m) for layer in layers] for m in order}
    sums, found = [_plain_seconds(layer, machine) for layer in layers], list[int]()
    slack = SLACK if len(layers) > 1 else 0.0
    shares = {m: [_share(t, other, slack) for t, other in zip(each[m], sums, strict=True)] for m in order}
    for m in order:  # from the least weights to the most
        is_faster = _mean(shares[m]) <= GAIN * min([1.0, *(_mean(shares[k]) for k in found)])
        if is_faster and max(shares[m]) <= LOSS:
            found.insert(0, m)
    return Ways(_mean(sums), {m: _mean(each[m]) for m in order}, found)


def _share(time: float, sums: float, slack: float) -> float:
    """The share of the time of plain sums that a way takes; what is slower by no more than the slack is as fast."""
    return min(time / sums, 1.0) if time - sums <= slack else time / sums


def _mean(values: Sequence[float]) -> float:
    return prod(values) ** (1 / len(values))


def seconds(layer: Layer, machine: Machine, m: int) -> float:
    """What a machine takes for a layer in tiles of m x m results: products, what is around them, and weights."""
    n = m + WINDOW - 1
    tiles = layer.images * -(-layer.height // m) * -(-layer.width // m)
    tiles = -(-tiles // layer.block) * layer.block
    products = 2 * n * n * tiles * layer.channels * layer.features
    around = n * (2 * n + m) * tiles * (layer.channels + layer.features)
    weights = _reading(n * n * layer.channels * layer.features, machine)
    return products / machine.wide_contraction + around / machine.flops + weights


def _plain_seconds(layer: Layer, machine: Machine) -> float:
    weights = WINDOW * WINDOW * layer.channels * layer.features
    results = layer.images * layer.height * layer.width
    return 2 * weights * results / machine.wide_contraction + _reading(weights, machine)


def _reading(weights: int, machine: Machine) -> float:
    """The seconds that so many weights take to come from memory."""
    return 4 * weights / machine.bandwidth * (WAITING if 4 * weights > machine.row_bytes else 1)


def errors(weights: Array, values: Array, m: int) -> Errors:
    """The errors of a layer with weights [3, 3, i, o] and their values in panels [o / c, points, i, c].

    Half of its images are of normal numbers, half of these without the negative ones, as they come from an activation;
    it is the worse of both that counts.
    """
    n, channels, features = m + WINDOW - 1, *weights.shape[2:]
    count = RESULTS // (FEATURES * m * m)
    random = np.random.default_rng(0)
    images = random.standard_normal((count, n, n, channels)).astype(np.float32)
    images[count // 2 :] = np.maximum(images[count // 2 :], 0)
    chosen = sorted({features * k // FEATURES for k in range(FEATURES)})
    windows = np.ascontiguousarray(weights[..., chosen].reshape(-1, len(chosen)).T)
    patches = np.stack([
        images[:, y : y + WINDOW, x : x + WINDOW].reshape(count, -1) for y, x in product(range(m), repeat=2)
    ], 1)  # fmt: skip
    true = patches.astype(np.float64) @ windows.astype(np.float64).T
    read = np.ascontiguousarray(patches.reshape(-1, windows.shape[1]).T)
    plain = _chain(windows.T[..., None] * read[:, None]).T.reshape(*patches.shape[:2], -1)
    panel = values.shape[-1]
    factors = np.stack([values[k // panel, :, :, k % panel] for k in chosen], 1)
    by_points = _results(images, factors, m)
    size = float(np.sqrt(np.mean(true**2))) or 1.0
    found = [
        Errors(_rms(by_points[half] - true[half]) / size, _rms(plain[half] - true[half]) / size)
        for half in (slice(count // 2), slice(count // 2, None))
    ]
    return max(found, key=lambda e: e.ratio)


def _results(images: Array, factors: Array, m: int) -> Array:
    """The results of tiles [t, n, n, i] and factors [points, o, i] as kernels compute them: [t, m * m, o]."""
    n = m + WINDOW - 1
    columns = [evaluate(m, [images[:, y, x] for y in range(n)], _sum) for x in range(n)]
    values = [value for i in range(n) for value in evaluate(m, [column[i] for column in columns], _sum)]
    products = [
        _chain(_chain(_in_chains(factor)[..., None] * _in_chains(value)[:, :, None])).T
        for value, factor in zip(values, factors, strict=True)
    ]
    columns = [interpolate(m, [products[i * n + j] for i in range(n)], _sum) for j in range(n)]
    return np.stack([found for y in range(m) for found in interpolate(m, [c[y] for c in columns], _sum)], 1)


def _in_chains(values: Array) -> Array:
    """Values [n, i] by their place in a chain: [CHAIN, chains, n]."""
    count, channels = values.shape
    return np.ascontiguousarray(values.reshape(count, channels // CHAIN, CHAIN).transpose(2, 1, 0))


def _chain(terms: Array) -> Array:
    """The sums along the first dimension, term by term in f32. Terms are rounded, which they are not where they are
    products that are added at once: beside what sums are rounded by, that is nothing."""
    return np.add.reduce(terms, axis=0)  # whole rows of sums, one after the other


def _sum(terms: Sequence[tuple[float, Array]]) -> Array:
    """Factors times values as kernels add them: fused multiply-adds, which are as good as exact in f64."""
    (factor, value), *rest = terms
    found = np.float32(factor) * value
    for factor, value in rest:
        found = (factor * value.astype(np.float64) + found).astype(np.float32)
    return found


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


__all__ = ["BLOCK", "Errors", "Layer", "Ways", "errors", "layers_of", "seconds", "ways_of"]
