"""Folding of integer and boolean values that depend only on constants and shapes.

A node all of whose inputs are known and small is computed here on arrays of Python integers and symbolic sizes.
Integers wrap nowhere: a result that does not fit its element type is left to be computed by ops. A comparison that the
ranges of the symbols do not decide is left, too. What a folder cannot say it answers with None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.dtypes import dtype_of, is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.values import FOLD_LIMIT, Array, Value, integers, objects

Folder: TypeAlias = "Callable[[NodeContext, Sequence[Array]], Any]"
"""From object arrays to the result as an object array, several results as a list, or None."""

_FOLDERS: dict[str, Folder] = {}


_TAKE_LISTS = frozenset(("Slice", "Reshape", "Expand"))
"""Operators whose inputs after the first are lists of integers."""


class Undecided(Exception):
    """The ranges of the symbols do not decide a value."""


def fold(ctx: NodeContext) -> Sequence[Value] | None:
    """The node's results, if all its inputs are known, small integers or booleans; else None."""
    folder = _FOLDERS.get(ctx.op_type)
    if folder is None or not ctx.values:
        return None
    arrays: list[Array] = []
    mixed = any(isinstance(value, Value) and value.symbolic for value in ctx.values)
    for value in ctx.values:
        if not isinstance(value, Value) or not (is_integer(value.element) or value.element == "i1"):
            return None
        if mixed and value.known is None:
            # Ops on constants (a size that went through floats) are constants: beside a size they must stay known.
            ctx.evaluate(value)
        if not value.small:
            return None
        arrays.append(objects(cast(Array, value.known)))
    if ctx.op_type in _TAKE_LISTS and any(array.ndim != 1 for array in arrays[1:]):
        ctx.invalid(f"its inputs after the first have ranks {[a.ndim for a in arrays[1:]]}", "they must be of rank 1")
    try:
        result = folder(ctx, arrays)
    except (Undecided, dims.DimLimitError, ZeroDivisionError):
        return None
    except (IndexError, ValueError) as error:
        ctx.invalid("its constant inputs contradict each other", str(error))
    if result is None:
        return None
    return _values(ctx, cast("list[Array]", result) if isinstance(result, list) else [result])


def _values(ctx: NodeContext, results: Sequence[Array]) -> Sequence[Value] | None:
    element = _RESULT_ELEMENT.get(ctx.op_type, lambda ctx: ctx.element(_DATA_INPUT.get(ctx.op_type, 0)))(ctx)
    values: list[Value] = []
    for result in results:
        array = result if result.dtype == object else objects(result)
        if array.size > FOLD_LIMIT or (fitted := integers(array, element)) is None:
            return None
        values.append(Value(element, fitted, None))
    return values


_RESULT_ELEMENT: dict[str, Callable[[NodeContext], str]] = {
    "Cast": lambda ctx: ctx.dtype("to"),
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not"), lambda _: "i1"),
}
_DATA_INPUT = {"Where": 1}


def folds(*operators: str) -> Callable[[Folder], Folder]:
    """Register the folder of operators."""

    def register(folder: Folder) -> Folder:
        _FOLDERS.update(dict.fromkeys(operators, folder))
        return folder

    return register


# ---- arithmetic --------------------------------------------------------------------------------------------------


def _elementwise(function: Callable[..., Any], *arrays: Array) -> Array:
    return objects(np.frompyfunc(function, len(arrays), 1)(*arrays))


def _nonnegative(ctx: NodeContext, *sizes: Size) -> bool:
    return all(ctx.at_most(0, s) for s in sizes)


def _divide(ctx: NodeContext, a: Size, b: Size) -> Size:
    """Division that truncates, as integers' does."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if isinstance(b, int) and b < 0:
        return -_divide(ctx, a, -b)
    if not ctx.at_most(1, b):
        raise Undecided
    if (exact := dims.exact_div(a, b)) is not None:
        return exact
    if _nonnegative(ctx, a):
        return dims.floordiv(a, b)
    if ctx.at_most(1 - b, a):
        return dims.floordiv(dims.dmax(a, 0), b)  # what is above -b and below 0 gives 0
    # Where the sign depends on the symbols, one of the two is 0.
    return dims.floordiv(dims.dmax(a, 0), b) - dims.floordiv(dims.dmax(-a, 0), b)


def _modulo(ctx: NodeContext, a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if not ctx.integer("fmod") else a - b * cast(int, _divide(ctx, a, b))
    if not ctx.at_most(1, b) or (ctx.integer("fmod") and not _nonnegative(ctx, a)):
        raise Undecided
    return dims.mod(a, b)


def _power(ctx: NodeContext, a: Size, b: Size) -> Size:
    if isinstance(b, Dim) or not 0 <= b <= 64:
        raise Undecided
    return a**b


def _decide(answer: bool | None) -> bool:
    if answer is None:
        raise Undecided
    return answer


def _less(ctx: NodeContext, a: Size, b: Size) -> bool:
    return _decide(ctx.ranges.less_equal(a + 1, b))


def _abs(ctx: NodeContext, a: Size) -> Size:
    if isinstance(a, Dim) and not _nonnegative(ctx, a):
        raise Undecided
    return a if isinstance(a, Dim) else abs(a)


def _sign(ctx: NodeContext, a: Size) -> Size:
    if isinstance(a, Dim):
        return 1 if ctx.at_most(1, a) else _decide(None)
    return (a > 0) - (a < 0)


_UNARY: dict[str, Callable[[NodeContext, Size], Size]] = {
    "Neg": lambda ctx, a: -a,
    "Abs": _abs,
    "Sign": _sign,
    "Not": lambda ctx, a: not a,
}
_BINARY: dict[str, Callable[[NodeContext, Size, Size], Size]] = {
    "Add": lambda ctx, a, b: a + b,
    "Sub": lambda ctx, a, b: a - b,
    "Mul": lambda ctx, a, b: a * b,
    "Div": _divide,
    "Mod": _modulo,
    "Pow": _power,
    "Equal": lambda ctx, a, b: _decide(ctx.ranges.equal(a, b)),
    "Less": _less,
    "LessOrEqual": lambda ctx, a, b: _decide(ctx.ranges.less_equal(a, b)),
    "Greater": lambda ctx, a, b: _less(ctx, b, a),
    "GreaterOrEqual": lambda ctx, a, b: _decide(ctx.ranges.less_equal(b, a)),
    "And": lambda ctx, a, b: bool(a) and bool(b),
    "Or": lambda ctx, a, b: bool(a) or bool(b),
}


@folds(*_UNARY)
def _fold_unary(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    return _elementwise(partial(_UNARY[ctx.op_type], ctx), arrays[0])


@folds(*_BINARY)
def _fold_binary(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    if ctx.attribute("axis") is not None:
        return None  # Before opset 7 it says where the second input's dims lie.
    if np.broadcast(*arrays).size > FOLD_LIMIT:
        return None
    return _elementwise(partial(_BINARY[ctx.op_type], ctx), *arrays)


@folds("Where")
def _fold_where(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    if np.broadcast(*arrays).size > FOLD_LIMIT:
        return None
    return objects(np.where(arrays[0].astype(bool), arrays[1], arrays[2]))


@folds("Min", "Max")
def _fold_extremum(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    choose = ctx.lesser if ctx.op_type == "Min" else ctx.greater
    result = arrays[0]
    for other in arrays[1:]:
        result = _elementwise(choose, result, other)
    return result


@folds("Cast")
def _fold_cast(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    target = ctx.dtype("to")
    if target == "i1":
        return _elementwise(_truth(ctx), arrays[0])
    return _elementwise(_number, arrays[0]) if is_integer(target) else None


def _truth(ctx: NodeContext) -> Callable[[Size], bool]:
    return lambda size: not _decide(ctx.ranges.equal(size, 0))


def _number(value: Size) -> Size:
    return int(value) if isinstance(value, bool) else value


@folds("Identity")
def _fold_identity(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    return arrays[0]


_REDUCTIONS: dict[str, Callable[[NodeContext, Sequence[Size]], Size]] = {
    "ReduceSum": lambda ctx, sizes: sum(sizes),
    "ReduceProd": lambda ctx, sizes: dims.product(sizes),
    "ReduceMin": lambda ctx, sizes: _extremum(ctx.lesser, sizes),
    "ReduceMax": lambda ctx, sizes: _extremum(ctx.greater, sizes),
}


def _extremum(choose: Callable[[Size, Size], Size], sizes: Sequence[Size]) -> Size:
    if not sizes:
        raise Undecided
    result = sizes[0]
    for size in sizes[1:]:
        result = choose(result, size)
    return result


@folds(*_REDUCTIONS)
def _fold_reduction(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x = arrays[0]
    axes = ctx.axes("axes", 1, x.ndim)
    if not axes and ctx.integer("noop_with_empty_axes"):
        return x
    axes = axes or list(range(x.ndim))
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(kept + axes).reshape(int(np.prod([x.shape[i] for i in kept], dtype=int)), -1)
    reduce = _REDUCTIONS[ctx.op_type]
    result = objects([reduce(ctx, row) for row in rows.tolist()])
    keepdims = ctx.flag("keepdims", True)
    return result.reshape([1 if i in axes else s for i, s in enumerate(x.shape) if keepdims or i not in axes])


# ---- movement ----------------------------------------------------------------------------------------------------


@folds("Reshape")
def _fold_reshape(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x, target = arrays
    if any(isinstance(s, Dim) for s in target.tolist()):
        return None
    zeros = ctx.integer("allowzero")
    shape = [x.shape[i] if s == 0 and not zeros else s for i, s in enumerate(target.tolist())]
    return x.reshape(shape)


@folds("Unsqueeze")
def _fold_unsqueeze(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x = arrays[0]
    count = len(ctx.integers("axes") or (arrays[1].reshape(-1).tolist() if len(arrays) > 1 else ()))
    return np.expand_dims(x, tuple(ctx.axes("axes", 1, x.ndim + count) or ()))


@folds("Squeeze")
def _fold_squeeze(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x = arrays[0]
    axes = ctx.axes("axes", 1, x.ndim)
    if axes is None:
        axes = [i for i, s in enumerate(x.shape) if s == 1]
    if any(x.shape[a] != 1 for a in axes):
        ctx.invalid(f"axes {axes} of shape {x.shape} are not all 1", "only dims of size 1 can be removed")
    return x.reshape([s for i, s in enumerate(x.shape) if i not in axes])


@folds("Transpose")
def _fold_transpose(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    return arrays[0].transpose(ctx.integers("perm"))


@folds("Concat")
def _fold_concat(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    return np.concatenate(arrays, ctx.axis(ctx.integer("axis", 1), arrays[0].ndim))


@folds("Gather")
def _fold_gather(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x, indices = arrays
    axis = ctx.axis(ctx.integer("axis"), x.ndim)
    if any(isinstance(i, Dim) for i in indices.reshape(-1).tolist()):
        return None
    return objects(np.take(x, indices.astype(np.int64), axis))


@folds("Slice")
def _fold_slice(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x = arrays[0]
    starts, ends = (ctx.integers(n) or arrays[i].tolist() for i, n in ((1, "starts"), (2, "ends")))
    axes = ctx.axes("axes", 3, x.ndim) or list(range(len(starts)))
    steps = arrays[4].tolist() if len(arrays) > 4 else [1] * len(starts)
    if any(isinstance(s, Dim) for s in (*starts, *ends, *steps)) or 0 in steps:
        return None
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        low = -x.shape[axis] - 1
        # A backward slice starts at the first element at least (see `slicing`).
        first = max(start, low + 1 if step < 0 else low)
        index[axis] = slice(first, None if step < 0 and end < low + 1 else max(end, low), step)
    return x[tuple(index)]


@folds("Expand")
def _fold_expand(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x, target = arrays
    sizes = target.tolist()
    if any(isinstance(s, Dim) or s < 0 for s in sizes):
        return None
    shape = np.broadcast_shapes(x.shape, tuple(sizes))
    return np.broadcast_to(x, shape).copy() if int(np.prod(shape, dtype=object)) <= FOLD_LIMIT else None


@folds("Tile")
def _fold_tile(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x, repeats = arrays
    counts = repeats.tolist()
    if any(isinstance(s, Dim) for s in counts) or x.size * int(np.prod(counts, dtype=object)) > FOLD_LIMIT:
        return None
    return np.tile(x, counts)


def known_range(start: Size, limit: Size, step: Size, element: str) -> Array | None:
    """The integers of a Range of known, short length, or None."""
    if not isinstance(step, int) or step == 0:
        return None
    count = dims.ceildiv(limit - start, step)
    if not isinstance(count, int) or count > FOLD_LIMIT:
        return None
    return integers(objects([start + i * step for i in range(max(count, 0))]), element)


def fill_array(shape: Sequence[int], value: Any, element: str) -> Array | None:
    """A small array of one value, or None."""
    count = int(np.prod(shape, dtype=object))
    return np.full(shape, value, dtype_of(element)) if 0 <= count <= FOLD_LIMIT else None
