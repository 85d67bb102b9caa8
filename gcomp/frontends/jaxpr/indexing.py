"""Indexing by values: gather and scatter in all modes, dynamic slices.

gcomp's gather clamps, as StableHLO's does; what else JAX's modes say of indices out of bounds is said here with masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Region, SSAValue

from gcomp.dims import Size
from gcomp.frontends.jaxpr.avals import sizes, trailing
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor

_LARGE = 2**31
"""Indices of dimensions from this size on are counted in 64 bits."""

# ---- slices at run-time starts --------------------------------------------------------------------------------------


@imports("dynamic_slice")
def dynamic_slice(ctx: EqnContext) -> Results:
    """A slice at run-time starts, which are clamped so that it fits."""
    extra = trailing(ctx.aval())
    starts = _starts(ctx.b, ctx.operands[1:], len(extra))
    return ctx.b.emit(
        hlo.DynamicSliceOp, ctx[0], *starts, slice_sizes=[*sizes(ctx.params["slice_sizes"]), *extra]
    )  # fmt: skip


@imports("dynamic_update_slice")
def dynamic_update_slice(ctx: EqnContext) -> Results:
    """An array with a part replaced at run-time starts, which are clamped so that it fits."""
    starts = _starts(ctx.b, ctx.operands[2:], len(trailing(ctx.aval())))
    return ctx.b.emit(hlo.DynamicUpdateSliceOp, ctx[0], ctx[1], *starts)


def _starts(b: Builder, starts: Sequence[SSAValue], extra: int) -> list[SSAValue]:
    """Starts, and zeros for the dimensions of keys."""
    text = dtype_text(starts[0].type) if starts else "i32"
    return [*starts, *(b.constant(0, text) for _ in range(extra))]


# ---- gather ---------------------------------------------------------------------------------------------------------


@imports("gather")
def gather(ctx: EqnContext) -> Results:
    """Windows of an array at run-time starts. A window that does not fit is moved so that it does, or (mode
    FILL_OR_DROP) filled with a value."""
    b, (x, indices) = ctx.b, ctx.operands
    extra = trailing(ctx.aval())
    d, window, rank = ctx.params["dimension_numbers"], sizes(ctx.params["slice_sizes"]), len(ctx.out_aval().shape)
    dimensions = GatherDimensions(
        offset_dims=(*map(int, d.offset_dims), *range(rank, rank + len(extra))),
        collapsed_slice_dims=tuple(map(int, d.collapsed_slice_dims)),
        operand_batching_dims=tuple(map(int, d.operand_batching_dims)),
        start_indices_batching_dims=tuple(map(int, d.start_indices_batching_dims)),
        start_index_map=tuple(map(int, d.start_index_map)),
        index_vector_dim=rank_of(indices) - 1,
    )
    found = b.emit(
        hlo.GatherOp, x, indices, dimension_numbers=dimensions, slice_sizes=[*window, *extra],
        indices_are_sorted=bool(ctx.params["indices_are_sorted"]),
    )  # fmt: skip
    mode = _mode(ctx)
    if mode in ("CLIP", "PROMISE_IN_BOUNDS"):
        return found
    if mode != "FILL_OR_DROP":
        ctx.unsupported(f"its mode is {mode}", "use the mode 'fill', 'clip' or 'promise_in_bounds'")
    fits = _fits(b, indices, [shape_of(x)[i] - window[i] for i in dimensions.start_index_map])
    batch = [i for i in range(rank) if i not in d.offset_dims]
    return b.select(b.broadcast(fits, shape_of(found), batch), found, b.full_like(found, ctx.params["fill_value"]))


def _mode(ctx: EqnContext) -> str:
    """What happens to indices out of bounds: the name of a `jax.lax.GatherScatterMode`."""
    return str(ctx.params["mode"].name)


def _fits(b: Builder, indices: SSAValue, last: Sequence[Size]) -> SSAValue:
    """Whether each index vector lies between 0 and the last starts at which a window fits."""
    indices = _sign(b, indices, last)
    text, rank = dtype_text(indices.type), rank_of(indices)
    limits = b.broadcast(_vector(b, last, text), shape_of(indices), [rank - 1])
    inside = b.emit(hlo.AndOp, b.compare(indices, b.full_like(indices, 0), "GE"), b.compare(indices, limits, "LE"))
    return b.reduce(hlo.AndOp, inside, [rank - 1])


def _sign(b: Builder, indices: SSAValue, bounds: Sequence[Size]) -> SSAValue:
    """Indices in a signed type that holds the bounds. Unsigned ones beyond 63 bits become negative, so out of bounds
    still."""
    small = all(isinstance(n, int) and n < _LARGE for n in bounds)
    narrow = dtype_text(indices.type) in ("i8", "i16", "ui8", "ui16", "i32")
    return b.convert(indices, "i32" if small and narrow else "i64")


def _vector(b: Builder, values: Sequence[Size], text: str) -> SSAValue:
    """Sizes as a vector."""
    static = [n for n in values if isinstance(n, int)]
    if len(static) == len(values):
        return b.constant(static, text)
    return b.concatenate([b.reshape(b.dim(n, text), (1,)) for n in values], 0)


# ---- scatter --------------------------------------------------------------------------------------------------------


@imports("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def scatter(ctx: EqnContext) -> Results:
    """An array with windows at run-time starts updated. A window that does not fit is left out, or (mode CLIP) moved so
    that it does."""
    b, (x, indices, updates) = ctx.b, ctx.operands
    d, extra, rank = ctx.params["dimension_numbers"], trailing(ctx.aval()), len(ctx.aval(2).shape)
    dimensions = ScatterDimensions(
        update_window_dims=(*map(int, d.update_window_dims), *range(rank, rank + len(extra))),
        inserted_window_dims=tuple(map(int, d.inserted_window_dims)),
        input_batching_dims=tuple(map(int, d.operand_batching_dims)),
        scatter_indices_batching_dims=tuple(map(int, d.scatter_indices_batching_dims)),
        scatter_dims_to_operand_dims=tuple(map(int, d.scatter_dims_to_operand_dims)),
        index_vector_dim=rank_of(indices) - 1,
    )
    is_sorted, unique = bool(ctx.params["indices_are_sorted"]), bool(ctx.params["unique_indices"])
    window = _window(dimensions, shape_of(x), shape_of(updates))
    indexed = dimensions.scatter_dims_to_operand_dims
    last = [shape_of(x)[i] - window[i] for i in indexed]
    if _mode(ctx) == "CLIP":
        indices = _clamp(b, indices, last)
    elif any(window[i] != 1 for i in indexed):
        # gcomp's scatter leaves out elements, not windows: those that do not fit go where no element does.
        indices, is_sorted, unique = _drop(b, indices, last, [shape_of(x)[i] for i in indexed]), False, False
    return b.emit(
        hlo.ScatterOp, x, indices, updates, scatter_dimension_numbers=dimensions, regions=[_update(ctx)],
        indices_are_sorted=is_sorted, unique_indices=unique,
    )  # fmt: skip


def _update(ctx: EqnContext) -> Region:
    """The region that combines an element and its update: by the jaxpr, or to the update."""
    scalar = tensor((), element_of(ctx[0]))
    jaxpr, consts = ctx.params["update_jaxpr"], ctx.params["update_consts"]

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [args[1]] if jaxpr is None else ctx.inline(jaxpr, args, consts)

    return ctx.region([scalar, scalar], body)


def _window(d: ScatterDimensions, shape: Sequence[Size], updates: Sequence[Size]) -> list[Size]:
    """The size of a window along each dimension of the array."""
    given = iter(d.update_window_dims)
    gone = {*d.inserted_window_dims, *d.input_batching_dims}
    return [1 if i in gone else updates[next(given)] for i in range(len(shape))]


def _clamp(b: Builder, indices: SSAValue, last: Sequence[Size]) -> SSAValue:
    """Indices moved so that their windows fit."""
    signed = _sign_or_clamp(b, indices, last)
    limits = b.broadcast(_vector(b, last, dtype_text(signed.type)), shape_of(signed), [rank_of(signed) - 1])
    return b.emit(hlo.ClampOp, b.full_like(signed, 0), signed, limits)


def _sign_or_clamp(b: Builder, indices: SSAValue, bounds: Sequence[Size]) -> SSAValue:
    """Indices in a signed type; those beyond it are its largest."""
    if dtype_text(indices.type) == "ui64":
        indices = b.minimum(indices, b.full_like(indices, 2**63 - 1))
    return _sign(b, indices, bounds)


def _drop(b: Builder, indices: SSAValue, last: Sequence[Size], shape: Sequence[Size]) -> SSAValue:
    """Indices, with those of out-of-bounds windows moved past the end, so that these windows are dropped."""
    fits = _fits(b, indices, last)
    indices = _sign(b, indices, shape)
    beyond: Any = b.broadcast(_vector(b, shape, dtype_text(indices.type)), shape_of(indices), [rank_of(indices) - 1])
    return b.select(b.broadcast(fits, shape_of(indices), range(rank_of(fits))), indices, beyond)
