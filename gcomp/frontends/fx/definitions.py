"""Operators that torch leaves whole, or defines by changing tensors in place, as functions of simpler operators.

They join torch's own decompositions (`exported.decompositions`), and take their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.torch_api import torch

Definition = Callable[..., Any]
DEFINITIONS: dict[Any, Definition] = {}
"""Operator -> what it computes."""
_BEFORE_AUTOGRAD = (torch.ops.aten.multilabel_margin_loss_forward.default,)
"""Those that torch itself defines for what has gradients, and wrongly (docs/guides/upstream_bugs.md)."""


def defines(*operators: str) -> Callable[[Definition], Definition]:
    """Register a function as the definition of operators: `addbmm`, or one overload: `searchsorted.Tensor`."""

    def register(function: Definition) -> Definition:
        for operator in operators:
            name, _, overload = operator.partition(".")
            DEFINITIONS[getattr(getattr(torch.ops.aten, name), overload or "default")] = function
        return function

    return register


@contextmanager
def before_autograd() -> Generator[None]:
    """While a graph is traced with gradients, definitions that must take the place of those that torch applies before
    it asks any table."""
    key = torch._C.DispatchKey.Autograd
    before: dict[Any, Definition] = {}
    for operator in _BEFORE_AUTOGRAD:
        before[operator] = operator.py_kernels[key]
        _set_kernel(operator, key, DEFINITIONS[operator])
    try:
        yield
    finally:
        for operator, kernel in before.items():
            _set_kernel(operator, key, kernel)


def _set_kernel(operator: Any, key: Any, kernel: Definition) -> None:
    operator.py_kernels[key] = kernel
    operator._dispatch_cache.clear()


@defines("_efficientzerotensor")
def _(size: Sequence[int], *, dtype: Any = None, **rest: Any) -> Any:
    """The gradient of what is constant by parts."""
    return torch.zeros(size, dtype=dtype)


# ---- padding --------------------------------------------------------------------------------------------------------


@defines("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def _(grad_output: Any, self: Any, padding: Any) -> Any:
    """What comes from copies of an edge goes to the edge, dimension by dimension, the last one first."""
    found = grad_output
    for i in range(len(padding) // 2):
        dim, (low, high) = self.ndim - 1 - i, padding[2 * i : 2 * i + 2]
        size = self.shape[dim]
        place = torch.arange(-low, size + high, device=self.device).clamp(0, size - 1)
        shape = [*found.shape[:dim], size, *found.shape[dim + 1 :]]
        found = found.new_zeros(shape).index_add(dim, place, found)
    return found


# ---- products -------------------------------------------------------------------------------------------------------


@defines("addbmm")
def _(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if not (self.is_floating_point() or self.is_complex()):
        beta, alpha = int(beta), int(alpha)
    product = torch.bmm(batch1, batch2).sum(0, dtype=self.dtype)
    product = product if alpha == 1 else alpha * product
    return product if beta == 0 else beta * self + product


@defines("_trilinear")
def _(i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1) -> Any:
    factors: list[Any] = []
    for factor, places in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for place in places:
            factor = factor.unsqueeze(place)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(sumdim) if sumdim else product


@defines("linalg_pinv.atol_rtol_tensor")
def _(self: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if self.numel() == 0:
        return self.new_zeros((*self.shape[:-2], self.shape[-1], self.shape[-2]))
    if rtol is None:
        rtol = torch.finfo(self.dtype).eps * max(self.shape[-2:])
        if atol is not None:
            rtol = torch.where(atol > 0, 0.0, rtol)
    least = 0.0 if atol is None else _column(atol)
    if hermitian:
        values, vectors = torch.linalg.eigh(self)
        sizes = values.abs()
        bound = torch.maximum(_column(rtol) * sizes.amax(-1, keepdim=True), torch.zeros_like(sizes[..., :1]) + least)
        inverse = torch.where(sizes > bound, values.reciprocal(), 0.0)
        return vectors @ (inverse.unsqueeze(-1) * vectors.mH)
    left, values, right = torch.linalg.svd(self, full_matrices=False)
    bound = torch.maximum(_column(rtol) * values[..., :1], torch.zeros_like(values[..., :1]) + least)
    inverse = torch.where(values > bound, values.reciprocal(), 0.0)
    return right.mH @ (inverse.unsqueeze(-1) * left.mH)


def _column(bound: Any) -> Any:
    """A bound for each of a batch of matrices, beside their singular values."""
    return bound.unsqueeze(-1) if isinstance(bound, torch.Tensor) else bound


@defines("lcm")
def _(self: Any, other: Any) -> Any:
    divisor = torch.gcd(self, other)
    whole = torch.div(self, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc")
    return (whole * other).abs()


# ---- places ---------------------------------------------------------------------------------------------------------


@defines("put")
def _(self: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    flat = self.reshape(-1)
    return flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(self.shape)


@defines("take")
def _(self: Any, index: Any) -> Any:
    return self.reshape(-1)[index]


@defines("masked_scatter")
def _(self: Any, mask: Any, source: Any) -> Any:
    mask, self = torch.broadcast_tensors(mask, self)
    place = (mask.reshape(-1).long().cumsum(0) - 1).clamp(min=0)
    source = source.reshape(-1)
    if not torch.fx.experimental.symbolic_shapes.statically_known_true(source.shape[0] > 0):
        source = torch.cat([source, source.new_zeros((1,))])
    # Not source[place]: torch reads an index without dimensions.
    return torch.where(mask, source.index_select(0, place).reshape(self.shape), self)


@defines("masked_scatter_backward")
def _(grad_output: Any, mask: Any, sizes: Sequence[int]) -> Any:
    """What comes from the places that were written, in order: of the elements that were written there."""
    mask, grad = (x.reshape(-1) for x in torch.broadcast_tensors(mask, grad_output))
    count = math.prod(sizes)
    # What is not from the source goes behind it.
    place = torch.where(mask, mask.long().cumsum(0) - 1, count)
    return grad.new_zeros((count + 1,)).index_add(0, place, grad)[:count].reshape(sizes)


@defines("index_reduce")
def _(self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    if self.dim() == 0:
        return torch.scatter_reduce(self, 0, index.reshape(()), source.reshape(()), reduce, include_self=include_self)
    shape = [1] * source.dim()
    shape[dim] = index.numel()
    places = index.reshape(shape).expand(source.shape)
    return torch.scatter_reduce(self, dim, places, source, reduce, include_self=include_self)


@defines("diagonal_scatter")
def _(self: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = self.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(moved.shape[-2], device=self.device).unsqueeze(1)
    columns = torch.arange(moved.shape[-1], device=self.device)
    if src.shape[-1] == 0:
        return self.clone()
    place = (rows if offset >= 0 else columns).clamp(max=src.shape[-1] - 1).expand(moved.shape[-2:])
    found = torch.where(columns - rows == offset, src[..., place], moved)
    return found.movedim((-2, -1), (dim1, dim2))


@defines("as_strided_scatter")
def _(self: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: Any = None) -> Any:
    if not self.is_contiguous() or self.storage_offset() != 0:
        raise UnsupportedError(
            "gcomp does not import this aten::as_strided_scatter",
            why="it changes a view of a tensor that is a view itself",
            fix="call contiguous() first",
        )
    places = torch.full((), storage_offset or 0, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(count) * step
    flat = self.reshape(-1)
    return flat.index_put((places.reshape(-1),), src.reshape(-1)).reshape(self.shape)


@defines("nonzero_static")
def _(self: Any, *, size: int, fill_value: int = -1) -> Any:
    found = self.reshape(-1) != 0
    places = torch.argsort(found.logical_not().int(), stable=True)
    places = torch.cat([places, places.new_zeros((max(0, size - places.shape[0]),))])[:size]
    columns: list[Any] = []
    for count in reversed(self.shape):
        columns.insert(0, places % max(1, count))
        places = places // max(1, count)
    if not columns:
        return places.new_zeros((size, 0))
    there = torch.arange(size) < found.sum()
    return torch.where(there.unsqueeze(1), torch.stack(columns, 1), fill_value)


@defines("searchsorted.Tensor")
def _(sorted_sequence: Any, self: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
      sorter: Any = None) -> Any:  # fmt: skip
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    wanted = self.unsqueeze(-1)
    each = sorted_sequence.unsqueeze(-2) if sorted_sequence.dim() > 1 else sorted_sequence
    before = each > wanted if right or side == "right" else each >= wanted
    return before.logical_not().sum(-1).to(torch.int32 if out_int32 else torch.int64)


@defines("searchsorted.Scalar")
def _(sorted_sequence: Any, self: Any, **keywords: Any) -> Any:
    wanted = torch.full((), self, dtype=sorted_sequence.dtype if isinstance(self, int) else torch.float32)
    return torch.searchsorted(sorted_sequence, wanted, **keywords)


@defines("bucketize.Tensor")
def _(self: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return torch.searchsorted(boundaries, self, out_int32=out_int32, right=right)


@defines("bucketize.Scalar")
def _(self: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return torch.searchsorted(boundaries, self, out_int32=out_int32, right=right)


# ---- order ----------------------------------------------------------------------------------------------------------


@defines("kthvalue")
def _(self: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, places = torch.sort(self, dim=dim, stable=True)
    return _select(values, places, dim, k - 1, keepdim)


def _select(values: Any, places: Any, dim: int, at: Any, keepdim: bool) -> Any:
    if values.dim() == 0:
        return values, places
    if isinstance(at, int | torch.SymInt):
        found = [x.narrow(dim, at, 1) for x in (values, places)]
    else:
        found = [x.gather(dim, at) for x in (values, places)]
    return tuple(x if keepdim else x.squeeze(dim) for x in found)


def _middle(self: Any, dim: int, keepdim: bool, *, skip: bool) -> Any:
    """The lower of the middle elements and its place: of those that are not NaN; or the first NaN, if there is one."""
    values, places = torch.sort(self, dim=dim, stable=True)
    if self.dim() == 0:
        return values, places
    count = self.shape[dim]
    if not self.is_floating_point():
        return _select(values, places, dim, (count - 1) // 2, keepdim)
    numbers = values.isnan().logical_not().sum(dim, keepdim=True)
    middle = (numbers - 1).clamp(min=0) // 2
    return _select(values, places, dim, middle if skip else torch.where(numbers < count, numbers, middle), keepdim)


@defines("median.dim")
def _(self: Any, dim: int, keepdim: bool = False) -> Any:
    return _middle(self, dim, keepdim, skip=False)


@defines("nanmedian.dim")
def _(self: Any, dim: int, keepdim: bool = False) -> Any:
    return _middle(self, dim, keepdim, skip=True)


@defines("median")
def _(self: Any) -> Any:
    return _middle(self.reshape(-1), 0, False, skip=False)[0]


@defines("nanmedian")
def _(self: Any) -> Any:
    return _middle(self.reshape(-1), 0, False, skip=True)[0]


@defines("mode")
def _(self: Any, dim: int = -1, keepdim: bool = False) -> Any:
    values, places = torch.sort(self, dim=dim, stable=True)
    if self.dim() == 0:
        return values, places
    last = values.movedim(dim, -1)
    new = torch.cat([torch.ones_like(last[..., :1], dtype=torch.bool), last[..., 1:] != last[..., :-1]], -1)
    place = torch.arange(last.shape[-1])
    # How many equal ones stand before each: the first that has most is the last of the least value's run.
    before = place - torch.where(new, place, 0).cummax(-1).values
    return _select(values, places, dim, before.argmax(-1, keepdim=True).movedim(-1, dim), keepdim)


@defines("histc")
def _(self: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    flat = self.reshape(-1)
    low, high = (torch.full((), value, dtype=self.dtype) for value in (min, max))
    if min == max and flat.shape[0]:
        low, high = flat.amin(), flat.amax()
    low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    place = ((flat - low) * bins / (high - low)).long().clamp(max=bins - 1)
    inside = (flat >= low) & (flat <= high)
    return ((place.unsqueeze(1) == torch.arange(bins)) & inside.unsqueeze(1)).sum(0).to(self.dtype)


@defines("segment_reduce")
def _(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
      unsafe: bool = False, initial: Any = None) -> Any:  # fmt: skip
    inside, count = _segments(data, lengths, offsets, axis)
    unit = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    each, along = torch.where(inside, data.unsqueeze(axis), unit), axis + 1
    fold = {"sum": torch.sum, "mean": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin}[reduce]
    found = fold(each, along) if data.shape[axis] else torch.full_like(each.sum(along), unit)
    if initial is not None:
        join = {"prod": torch.mul, "max": torch.maximum, "min": torch.minimum}.get(reduce, torch.add)
        found = join(found, torch.full((), initial, dtype=data.dtype))
    if reduce != "mean":
        return found
    empty = found if initial is not None else math.nan
    return torch.where(count == 0, empty, found / count.clamp(min=1))


@defines("_segment_reduce_backward")
def _(grad: Any, output: Any, data: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0,
      initial: Any = None) -> Any:  # fmt: skip
    """The gradient of the data: of sums, means and products, and of maxima shared by those that are equal."""
    inside, length = _segments(data, lengths, offsets, axis)
    grad, output, along = grad.unsqueeze(axis + 1), output.unsqueeze(axis + 1), axis + 1
    each = data.unsqueeze(axis)
    if reduce == "mean":
        part = grad / length.clamp(min=1).unsqueeze(along)
    elif reduce == "prod":
        there = inside & (each != 0)
        zeros = (inside & (each == 0)).sum(along, keepdim=True)
        others = torch.where(there, each, 1.0).prod(along, keepdim=True) * (1.0 if initial is None else initial)
        part = grad * torch.where(
            each != 0, torch.where(zeros == 0, output / torch.where(each != 0, each, 1.0), 0.0),
            torch.where(zeros == 1, others, 0.0),
        )  # fmt: skip
    elif reduce in ("max", "min"):
        equal = inside & ((each == output) | each.isnan())
        part = torch.where(equal, grad / equal.sum(along, keepdim=True).clamp(min=1), 0.0)
    else:
        part = grad
    return torch.where(inside, part, 0.0).sum(axis)


def _segments(data: Any, lengths: Any, offsets: Any, axis: int) -> tuple[Any, Any]:
    """Which elements along an axis are in which segment (..., segments, elements, 1, ...), and how many these are."""
    if offsets is None:
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    else:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    place = torch.arange(data.shape[axis])
    inside = (place >= starts.unsqueeze(-1)) & (place < ends.unsqueeze(-1))
    inside = inside.reshape((*inside.shape, *(1,) * (data.dim() - axis - 1)))
    return inside, inside.sum(axis + 1)


# ---- complex numbers ------------------------------------------------------------------------------------------------


@defines("polar")
def _(abs: Any, angle: Any) -> Any:
    return torch.complex(abs * angle.cos(), abs * angle.sin())


# ---- losses ---------------------------------------------------------------------------------------------------------


@defines("multilabel_margin_loss_forward")
def _(self: Any, target: Any, reduction: int) -> Any:
    """The margins between classes that are targets and those that are not; what follows the first -1 is no target."""
    count = self.shape[-1]
    x, target = self.reshape(-1, count), target.reshape(-1, count)
    given = (target == -1).long().cumsum(-1) == 0
    place = torch.where(given, target, 0)
    is_target = ((place.unsqueeze(-1) == torch.arange(count)) & given.unsqueeze(-1)).any(1)
    margins = (1 - x.gather(1, place).unsqueeze(-1) + x.unsqueeze(1)).clamp(min=0)
    counted = given.unsqueeze(-1) & is_target.logical_not().unsqueeze(1)
    loss = torch.where(counted, margins, 0.0).sum((1, 2)) / count
    found = (loss.reshape(self.shape[:-1]), loss.mean(), loss.sum())[reduction]
    return found, is_target.to(self.dtype).reshape(self.shape)


# ---- images ---------------------------------------------------------------------------------------------------------


def _adaptive_max(spatial: int) -> Definition:
    def run(self: Any, output_size: Sequence[int]) -> Any:
        x, lead = self, self.dim() - spatial
        place = torch.arange(math.prod(self.shape[lead:])).reshape(self.shape[lead:])
        for i in range(spatial):
            # Windows of one length: the last element of a shorter one counts again, which changes no maximum.
            size, count = self.shape[lead + i], output_size[i]
            starts = [j * size // count for j in range(count)]
            ends = [-(-(j + 1) * size // count) for j in range(count)]
            length = max((e - s for s, e in zip(starts, ends, strict=True)), default=1)
            begin, end = torch.arange(count) * size // count, -(-(torch.arange(count) + 1) * size // count)
            windows = torch.minimum(begin.unsqueeze(1) + torch.arange(length), end.unsqueeze(1) - 1)
            x = x[(slice(None),) * (lead + 2 * i) + (windows,)]
            place = place[(slice(None),) * (2 * i) + (windows,)]
        return _greatest(x, place, spatial)

    return run


def _greatest(x: Any, place: Any, spatial: int) -> Any:
    """The greatest of each window and its place; dimensions of windows and within them come in turn."""
    lead, own = x.dim() - 2 * spatial, place.dim() - 2 * spatial
    order = [*range(0, 2 * spatial, 2), *range(1, 2 * spatial, 2)]
    place = place.permute([*range(own), *(own + i for i in order)]).flatten(own + spatial)
    x = x.permute([*range(lead), *(lead + i for i in order)]).flatten(lead + spatial)
    values, at = x.max(-1)
    return values, place.expand(x.shape).gather(-1, at.unsqueeze(-1)).squeeze(-1)


def _fractional_max(spatial: int) -> Definition:
    def run(self: Any, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Any) -> Any:
        x: Any = self if self.dim() == spatial + 2 else self.unsqueeze(0)
        # There may be samples for more images than there are.
        random_samples = random_samples[: x.shape[0]]
        place: Any = torch.arange(math.prod(x.shape[2:])).reshape(x.shape[2:]).expand(x.shape)
        for i in range(spatial):
            # The samples of images are of columns and rows, those of volumes of planes, rows and columns.
            sample = random_samples[..., spatial - 1 - i if spatial == 2 else i].unsqueeze(-1)
            size, count, length = self.shape[i - spatial], output_size[i], kernel_size[i]
            last, step = size - length, (size - length) / max(1, count - 1)
            starts = ((torch.arange(count) + sample) * step).long() - (sample * step).long()
            starts = torch.where(torch.arange(count) == count - 1, last, starts)
            window = (starts.unsqueeze(-1) + torch.arange(length)).flatten(-2)
            shape = [*window.shape[:2], *(1,) * (2 * i), window.shape[2], *(1,) * (spatial - 1 - i)]
            window, dim = window.reshape(shape), 2 + 2 * i
            window = window.expand([*x.shape[:dim], window.shape[dim], *x.shape[dim + 1 :]])
            x = x.gather(dim, window).unflatten(dim, (count, length))
            place = place.gather(dim, window).unflatten(dim, (count, length))
        values, places = _greatest(x, place, spatial)
        return (values, places) if self.dim() == spatial + 2 else (values.squeeze(0), places.squeeze(0))

    return run


defines("fractional_max_pool2d")(_fractional_max(2))
defines("fractional_max_pool3d")(_fractional_max(3))
defines("adaptive_max_pool2d")(_adaptive_max(2))
defines("adaptive_max_pool3d")(_adaptive_max(3))


def _max_gradient(spatial: int) -> Definition:
    def run(grad_output: Any, self: Any, *windows_and_places: Any) -> Any:
        """What comes from each maximum goes to its place."""
        *_, places = windows_and_places
        flat = torch.zeros_like(self).flatten(-spatial)
        found = flat.scatter_add(-1, places.flatten(-spatial), grad_output.flatten(-spatial))
        return found.reshape(self.shape)

    return run


for _spatial in (2, 3):
    defines(
        f"adaptive_max_pool{_spatial}d_backward",
        f"fractional_max_pool{_spatial}d_backward",
    )(_max_gradient(_spatial))
defines("max_pool3d_with_indices_backward")(_max_gradient(3))


def _adaptive_average_gradient(spatial: int) -> Definition:
    def run(grad_output: Any, self: Any) -> Any:
        found = grad_output
        for d in range(-spatial, 0):
            shares = _shares(self.shape[d], grad_output.shape[d], self.dtype)
            found = (found.movedim(d, -1) @ shares).movedim(-1, d)
        return found

    return run


defines("_adaptive_avg_pool2d_backward")(_adaptive_average_gradient(2))
defines("_adaptive_avg_pool3d_backward")(_adaptive_average_gradient(3))


def _shares(size: int, count: int, dtype: Any) -> Any:
    """How much each element has in the mean of each of so many windows."""
    window, place = torch.arange(count).unsqueeze(1), torch.arange(size)
    start, end = window * size // count, -(-(window + 1) * size // count)
    return ((place >= start) & (place < end)).to(dtype) / (end - start).to(dtype)
