"""Sums of products: dot_general, ragged_dot and convolution.

Floats are multiplied and summed in double precision and rounded once to the result's element type; f64 itself
is summed in f64, in an order that is not specified. Integers are exact modulo 2**width, booleans OR over
ANDs. Precision attributes say how much of this a backend may give up; they do not change the meaning, and are
ignored here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcomp.reference.numpy import integers
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType, is_bool, is_complex, is_float, is_integer
from gcomp.reference.numpy.movement import pad, sizes
from gcomp.reference.numpy.reduction import window_counts, window_slices
from gcomp.reference.numpy.rounding import C128, F64, narrow, quiet, widen

# Integral doubles are exact below this magnitude.
_EXACT = 1 << 53


@quiet
def dot_general(
    lhs: Array,
    rhs: Array,
    *,
    lhs_batching_dimensions: Sequence[int] = (),
    rhs_batching_dimensions: Sequence[int] = (),
    lhs_contracting_dimensions: Sequence[int],
    rhs_contracting_dimensions: Sequence[int],
    precision_config: Sequence[str] = (),
    algorithm: object | None = None,
    dtype: DType | None = None,
) -> Array:
    """Sum of products over the contracting dimensions, for each batch, lhs and rhs index (in that order).

    `dtype` is the result's element type, that of `lhs` by default.
    """
    del precision_config, algorithm
    dtype = np.dtype(dtype) if dtype is not None else lhs.dtype
    lhs_free = _free(lhs.ndim, lhs_batching_dimensions, lhs_contracting_dimensions)
    rhs_free = _free(rhs.ndim, rhs_batching_dimensions, rhs_contracting_dimensions)
    batch = [lhs.shape[d] for d in lhs_batching_dimensions]
    rows, columns = [lhs.shape[d] for d in lhs_free], [rhs.shape[d] for d in rhs_free]
    depth = int(np.prod([lhs.shape[d] for d in lhs_contracting_dimensions], dtype=np.int64))
    m, n = (int(np.prod(extents, dtype=np.int64)) for extents in (rows, columns))
    left = np.transpose(lhs, [*lhs_batching_dimensions, *lhs_free, *lhs_contracting_dimensions])
    right = np.transpose(rhs, [*rhs_batching_dimensions, *rhs_contracting_dimensions, *rhs_free])
    carrier = _carrier(lhs, rhs, dtype, depth)
    product = np.matmul(
        _carry(left, dtype, carrier).reshape(*batch, m, depth),
        _carry(right, dtype, carrier).reshape(*batch, depth, n),
    )
    return _settle(product, dtype).reshape((*batch, *rows, *columns))


@quiet
def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    *,
    lhs_batching_dimensions: Sequence[int] = (),
    rhs_batching_dimensions: Sequence[int] = (),
    lhs_contracting_dimensions: Sequence[int],
    rhs_contracting_dimensions: Sequence[int],
    lhs_ragged_dimensions: Sequence[int],
    rhs_group_dimensions: Sequence[int] = (),
    precision_config: Sequence[str] = (),
    dtype: DType | None = None,
) -> Array:
    """Products of groups: consecutive runs of the ragged dimension, of the sizes along the last one of `group_sizes`.

    Ragged and free: each row meets the rhs of its group, and rows of no group give 0. Ragged and contracted: one
    product for each group, over its run. Ragged and batched: the plain product, whatever the groups. Sizes below 0
    count as 0.
    """
    del precision_config
    batch, contract = tuple(lhs_batching_dimensions), tuple(lhs_contracting_dimensions)
    right_batch, right_contract = tuple(rhs_batching_dimensions), tuple(rhs_contracting_dimensions)
    (ragged,) = lhs_ragged_dimensions

    def dot(x: Array, y: Array, y_batch: Sequence[int], y_contract: Sequence[int]) -> Array:
        return dot_general(
            x, y, lhs_batching_dimensions=batch, rhs_batching_dimensions=y_batch, dtype=dtype or lhs.dtype,
            lhs_contracting_dimensions=contract, rhs_contracting_dimensions=y_contract,
        )  # fmt: skip

    if ragged in batch:
        return dot(lhs, rhs, right_batch, right_contract)
    count = group_sizes.shape[-1]
    free = _free(lhs.ndim, batch, contract)
    if ragged in contract:
        outer = (*batch, *contract[: contract.index(ragged)])
        partner = dict(zip((*batch, *contract), (*right_batch, *right_contract), strict=True))
        runs = _group_runs(group_sizes, lhs.shape, outer, ragged)
        others = _group_runs(group_sizes, rhs.shape, [partner[d] for d in outer], partner[ragged])
        zeros = lhs.dtype.type(0), rhs.dtype.type(0)
        parts = [
            dot(np.where(a, lhs, zeros[0]), np.where(b, rhs, zeros[1]), right_batch, right_contract)
            for a, b in zip(runs, others, strict=True)
        ]
        empty = dot(lhs, rhs, right_batch, right_contract)
        return np.stack(parts) if parts else np.empty((0, *empty.shape), empty.dtype)
    (group,) = rhs_group_dimensions
    runs = _group_runs(group_sizes, lhs.shape, (*batch, *free[: free.index(ragged)]), ragged)
    shifted = [[d - (d > group) for d in dims] for dims in (right_batch, right_contract)]
    whole = dot(lhs, np.zeros_like(rhs, shape=rhs.shape[:group] + rhs.shape[group + 1 :]), *shifted)
    result = np.zeros_like(whole)
    for i in range(count):
        rows = np.transpose(runs[i], [*batch, *free, *contract])
        rows = rows.reshape(*rows.shape[: len(batch) + len(free)], *[1] * (whole.ndim - len(batch) - len(free)))
        result = np.where(rows, dot(lhs, np.take(rhs, i, group), *shifted), result)
    return result


def _group_runs(sizes: Array, shape: Sequence[int], outer: Sequence[int], ragged: int) -> Array:
    """Which positions along `ragged` are in which group: booleans[group, ...] that broadcast to `shape`.

    `sizes` is [group], or has the sizes of the `outer` dimensions before it.
    """
    # No group has more than there is: sums of larger sizes could leave 64 bits.
    stored = integers.storage(sizes)
    known = stored if stored.dtype.kind == "u" else np.maximum(stored, 0)
    counts = np.minimum(known.astype(np.uint64), np.uint64(shape[ragged])).astype(np.int64)
    counts = np.broadcast_to(counts, (*(shape[d] for d in outer), sizes.shape[-1]))
    ends = np.cumsum(counts, axis=-1)
    position = np.arange(shape[ragged])
    inside = ((ends - counts)[..., None] <= position) & (position < ends[..., None])
    places = [*outer, ragged]
    inside = np.moveaxis(inside, -2, 0).transpose(0, *(1 + np.argsort(places)))
    return inside.reshape(sizes.shape[-1], *(shape[d] if d in places else 1 for d in range(len(shape))))


def _free(rank: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [d for d in range(rank) if d not in {*batching, *contracting}]


def _carrier(lhs: Array, rhs: Array, dtype: DType, depth: int) -> DType:
    """The dtype to multiply and sum in."""
    if is_bool(dtype):
        return np.dtype(np.bool_)
    if is_float(dtype):
        return F64
    if is_complex(dtype):
        return C128
    # Doubles multiply much faster than integers, and are exact where no sum can reach 2**53.
    if depth * _magnitude(lhs) * _magnitude(rhs) < _EXACT:
        return F64
    return np.dtype(np.int64)


def _magnitude(x: Array) -> int:
    if x.size == 0 or not is_integer(x.dtype):
        return 1
    values = integers.storage(x)
    return max(abs(int(values.min())), abs(int(values.max())))


def _carry(x: Array, dtype: DType, carrier: DType) -> Array:
    if is_float(x.dtype) or is_complex(x.dtype):
        return widen(x) if is_float(x.dtype) or carrier == C128 else convert(x, dtype=carrier)
    if is_integer(dtype) and is_integer(x.dtype):
        return integers.storage(x).astype(carrier)
    return convert(x, dtype=carrier)


def _settle(product: Array, dtype: DType) -> Array:
    if is_bool(dtype):
        return product
    # The fold begins with +0, and so no sum is -0.
    return integers.wrap(product, dtype) if is_integer(dtype) else narrow(np.add(product, 0.0), dtype)


@quiet
def convolution(
    lhs: Array,
    rhs: Array,
    *,
    window_strides: Sequence[int] | None = None,
    padding: Sequence[Sequence[int]] | None = None,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
    input_batch_dimension: int,
    input_feature_dimension: int,
    input_spatial_dimensions: Sequence[int],
    kernel_input_feature_dimension: int,
    kernel_output_feature_dimension: int,
    kernel_spatial_dimensions: Sequence[int],
    output_batch_dimension: int,
    output_feature_dimension: int,
    output_spatial_dimensions: Sequence[int],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] = (),
    dtype: DType | None = None,
) -> Array:
    """Dot products of the windows of `lhs` with the kernels in `rhs`.

    `padding` is (low, high) per spatial dimension, applied after `lhs_dilation`, and may be negative. `dtype`
    is the result's element type, that of `lhs` by default.
    """
    del precision_config
    dtype = np.dtype(dtype) if dtype is not None else lhs.dtype
    rank = lhs.ndim - 2
    ones = [1] * rank
    strides, dilations = list(window_strides or ones), list(rhs_dilation or ones)
    image = np.transpose(lhs, [input_batch_dimension, input_feature_dimension, *input_spatial_dimensions])
    image = _dilate(image, list(padding or [(0, 0)] * rank), list(lhs_dilation or ones))
    kernel = np.transpose(
        rhs, [kernel_output_feature_dimension, kernel_input_feature_dimension, *kernel_spatial_dimensions]
    )
    flipped = [2 + d for d, reverse in enumerate(window_reversal or [False] * rank) if reverse]
    kernel = np.flip(kernel, tuple(flipped))
    result = _group(image, kernel, strides, dilations, feature_group_count, batch_group_count, dtype)
    places = [output_batch_dimension, output_feature_dimension, *output_spatial_dimensions]
    return np.ascontiguousarray(np.transpose(result, np.argsort(places)))


def _dilate(image: Array, padding: Sequence[Sequence[int]], dilation: Sequence[int]) -> Array:
    return pad(
        image,
        np.zeros((), image.dtype),
        edge_padding_low=[0, 0, *(low for low, _ in padding)],
        edge_padding_high=[0, 0, *(high for _, high in padding)],
        interior_padding=[0, 0, *(d - 1 for d in dilation)],
    )


def _group(
    image: Array,
    kernel: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    feature_groups: int,
    batch_groups: int,
    dtype: DType,
) -> Array:
    """[N, C, spatial] with [O, C / feature_groups, window] to [N / batch_groups, O, spatial]."""
    window = kernel.shape[2:]
    counts = window_counts(image.shape[2:], window, strides, dilations)
    groups = max(feature_groups, batch_groups)
    n, c, o = image.shape[0] // batch_groups, kernel.shape[1], kernel.shape[0] // groups
    carrier = _carrier(image, kernel, dtype, kernel[:1].size)
    total = np.zeros((groups, n * int(np.prod(counts, dtype=np.int64)), o), carrier)
    left = _carry(image, dtype, carrier)
    right = _carry(kernel, dtype, carrier).reshape(groups, o, c, *window)
    # [group, sample, channel, spatial]: a group is a run of channels, or a run of samples.
    if batch_groups > 1:
        left = left.reshape(groups, n, c, *image.shape[2:])
    else:
        left = left.reshape(n, groups, c, *image.shape[2:]).swapaxes(0, 1)
    for offset in np.ndindex(*window) if total.size else ():
        at = (..., *window_slices(offset, counts, strides, dilations))
        rows = np.moveaxis(left[at], 2, -1).reshape(groups, total.shape[1], c)
        total += np.matmul(rows, np.moveaxis(right[(..., *offset)], 1, 2))
    result = _settle(total, dtype).reshape(groups, n, *counts, o)
    return np.moveaxis(result, [0, -1], [1, 2]).reshape(n, groups * o, *counts)


def dynamic_conv(
    lhs: Array,
    rhs: Array,
    padding: Array,
    *,
    window_strides: Sequence[int] | None = None,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
    input_batch_dimension: int,
    input_feature_dimension: int,
    input_spatial_dimensions: Sequence[int],
    kernel_input_feature_dimension: int,
    kernel_output_feature_dimension: int,
    kernel_spatial_dimensions: Sequence[int],
    output_batch_dimension: int,
    output_feature_dimension: int,
    output_spatial_dimensions: Sequence[int],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Sequence[str] = (),
    dtype: DType | None = None,
) -> Array:
    """`convolution` with the padding as a tensor of shape [spatial rank, 2]."""
    edges = sizes(padding)
    return convolution(
        lhs,
        rhs,
        window_strides=window_strides,
        padding=list(zip(edges[::2], edges[1::2], strict=True)),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        window_reversal=window_reversal,
        input_batch_dimension=input_batch_dimension,
        input_feature_dimension=input_feature_dimension,
        input_spatial_dimensions=input_spatial_dimensions,
        kernel_input_feature_dimension=kernel_input_feature_dimension,
        kernel_output_feature_dimension=kernel_output_feature_dimension,
        kernel_spatial_dimensions=kernel_spatial_dimensions,
        output_batch_dimension=output_batch_dimension,
        output_feature_dimension=output_feature_dimension,
        output_spatial_dimensions=output_spatial_dimensions,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision_config=precision_config,
        dtype=dtype,
    )
