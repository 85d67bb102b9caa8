"""Operators that move elements: reshaping, joining, splitting, repeating, and layout within blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_axes import squeezed_shape, unsqueezed_shape
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes, known_sizes, operand_sizes
from gcomp.frontends.onnx.engine.folding import folds
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array, size_list
from gcomp.frontends.onnx.operators.random import check_ratio, training_dropout
from gcomp.frontends.onnx.operators.shape import target_shape
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of


@imports("Reshape")
def reshape(ctx: NodeContext) -> Results:
    """Reshape: 0 keeps a dim (unless `allowzero`), -1 is what is left over."""
    if ctx.opset < 5:
        target: Sequence[Size] | None = ctx.integers("shape")
    else:
        target = operand_sizes(ctx, 1, "shape") if ctx.known_value(1) is not None else _data_dependent_target(ctx)
    if target is None:
        ctx.invalid("it has no shape", "the attribute says what to reshape to")
    shape = resolved_shape(ctx, ctx.shape(), target)
    if dims.product(ctx.shape()) == 0 and dims.product(shape) != 0:
        # Which of the sizes that data determine is 0 is not known, and there is nothing to move.
        return [ctx.b.full(shape, 0, ctx.element())]
    return [ctx.b.reshape(ctx[0], shape)]


def _data_dependent_target(ctx: NodeContext) -> list[Size]:
    """The sizes of a target that is computed: zeros and -1 are resolved before the host step reads it."""
    b, target, shape = ctx.b, ctx[1], ctx.shape()
    if ctx.rank(1) != 1:
        ctx.invalid(f"its shape has rank {ctx.rank(1)}", "it must be of rank 1")
    count = ctx.static(ctx.shape(1)[0], "rank of the result")
    known = known_sizes(ctx, target)
    if all(size is not None for size in known):
        return cast("list[Size]", known)
    if not ctx.flag("allowzero"):
        kept = [b.reshape(b.dim(shape[i] if i < len(shape) else -1), (1,)) for i in range(count)]
        target = b.select(b.compare(target, b.full((), 0, "i64"), "EQ"), b.concatenate(kept, 0), target)
    free = b.compare(target, b.full((), -1, "i64"), "EQ")
    rest = b.reduce(hlo.MultiplyOp, b.select(free, b.full((), 1, "i64"), target), [0])
    # The constraint on the number of elements catches a remainder.
    left = b.divide(b.dim(dims.product(shape)), b.maximum(rest, b.full((), 1, "i64")))
    resolved = b.select(free, left, target)
    sizes = data_dependent_sizes(ctx, resolved, "shape")
    return [read if size is None else size for size, read in zip(known, sizes, strict=True)]


def resolved_shape(ctx: NodeContext, shape: Sequence[Size], target: Sequence[Size]) -> list[Size]:
    """The result shape of a Reshape: 0 copies a size of the input (unless `allowzero` is set), -1 is inferred."""
    result = list(target)
    if not ctx.flag("allowzero"):
        for i, s in enumerate(result):
            if isinstance(s, int) and s == 0:
                if i >= len(shape):
                    ctx.invalid(f"the target {_text(target)} keeps dim {i}", f"the input has rank {len(shape)}")
                result[i] = shape[i]
    unknown = [i for i, s in enumerate(result) if isinstance(s, int) and s == -1]
    if len(unknown) > 1 or any(isinstance(s, int) and s < -1 for s in result):
        ctx.invalid(f"the target is {_text(target)}", "at most one size may be -1, and none below")
    total = dims.product(shape)
    rest = dims.product([s for i, s in enumerate(result) if i not in unknown])
    if unknown:
        result[unknown[0]] = _quotient(ctx, total, rest, target)
    elif ctx.ranges.equal(total, rest) is False:
        ctx.invalid(f"{_text(shape)} does not reshape to {_text(target)}", f"{total} elements are not {rest}")
    elif total != rest and ctx.ranges.equal(total, rest) is not True:
        return _rewrite_target(ctx, total, rest, result)
    return result


def _rewrite_target(ctx: NodeContext, total: Size, rest: Size, target: Sequence[Size]) -> list[Size]:
    """The target shape, in which a size that must equal the remaining factor is written as that factor."""
    for i, size in enumerate(target):
        others = dims.product([s for j, s in enumerate(target) if j != i])
        # Where the others may be 0, they leave open what is left over.
        left = dims.exact_div(total, others) if isinstance(size, Dim) and ctx.at_most(1, others) else None
        if left is not None:
            ctx.require("eq", size, left)
            return [left if j == i else s for j, s in enumerate(target)]
    ctx.require("eq", total, rest)
    return list(target)


def _quotient(ctx: NodeContext, total: Size, rest: Size, target: Sequence[Size]) -> Size:
    if isinstance(rest, int) and rest == 0:
        if isinstance(total, int) and total == 0:
            return 0
        ctx.invalid(f"the target is {_text(target)}", "with a size of 0 the size -1 stands for nothing")
    exact = dims.exact_div(total, rest)
    if exact is not None:
        return exact
    if ctx.ranges.divisible(total, rest) is False:
        ctx.invalid(f"the target is {_text(target)}", f"{total} elements are not a multiple of {rest}")
    if ctx.ranges.divisible(total, rest) is not True:
        ctx.require("divides", rest, total)
    return dims.floordiv(total, rest)


def _text(shape: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, shape))}]"


@imports("Flatten")
def flatten(ctx: NodeContext) -> Results:
    """Flatten: to a matrix, split before `axis` (which may be the rank)."""
    shape, rank = ctx.shape(), ctx.rank()
    axis = ctx.integer("axis", 1)
    if not -rank <= axis <= rank:
        ctx.invalid(f"axis {axis} is out of range", f"the tensor has rank {rank}")
    axis = axis + rank if axis < 0 else axis
    return [ctx.b.reshape(ctx[0], (dims.product(shape[:axis]), dims.product(shape[axis:])))]


@imports("Squeeze")
def squeeze(ctx: NodeContext) -> Results:
    """Squeeze: the named dims, which must be 1, or all that are 1: of symbolic ones those that are known to be, and
    no others (a constraint)."""
    shape = ctx.shape()
    if ctx.has(1) and ctx.known_value(1) is None:
        return [ctx.b.reshape(ctx[0], squeezed_shape(ctx, 1))]
    axes = ctx.axes("axes", 1, len(shape))
    if axes is None:
        axes = [i for i, s in enumerate(shape) if ctx.ranges.equal(s, 1)]
        for size in shape:
            if isinstance(size, Dim) and ctx.ranges.equal(size, 1) is None:
                ctx.require("le", 2, size)
    for axis in axes:
        known = ctx.ranges.equal(shape[axis], 1)
        if known is None:
            ctx.require("eq", shape[axis], 1)
        elif not known:
            ctx.invalid(f"dim {axis} is {shape[axis]}", "only dims of size 1 can be removed")
    return [ctx.b.reshape(ctx[0], [s for i, s in enumerate(shape) if i not in axes])]


@imports("Unsqueeze")
def unsqueeze(ctx: NodeContext) -> Results:
    """Unsqueeze: axes count in the result."""
    given = ctx.integers("axes")
    if given is None and ctx.has(1) and ctx.known_value(1) is None:
        return [ctx.b.reshape(ctx[0], unsqueezed_shape(ctx, 1))]
    given = ctx.ints_of(1, "axes") if given is None else given
    rank = ctx.rank() + len(given)
    axes = ctx.distinct([ctx.axis(a, rank) for a in given])
    rest = iter(ctx.shape())
    return [ctx.b.reshape(ctx[0], [1 if i in axes else next(rest) for i in range(rank)])]


@imports("Transpose")
def transpose(ctx: NodeContext) -> Results:
    """Transpose: reverses all dims by default."""
    permutation = ctx.integers("perm")
    if permutation is None:
        permutation = list(reversed(range(ctx.rank())))
    if sorted(permutation) != list(range(ctx.rank())):
        ctx.invalid(f"perm is {permutation}", f"it must be a permutation of {ctx.rank()} dims")
    return [ctx.b.transpose(ctx[0], permutation)]


@imports("Concat")
def concat(ctx: NodeContext) -> Results:
    """Concat: other dims must agree."""
    axis = ctx.axis(ctx.integer("axis", 1), ctx.rank())
    values = ctx.operands()
    return [ctx.b.concatenate(agree_dims(ctx, values, axis), axis)]


def agree_dims(ctx: NodeContext, values: Sequence[SSAValue], axis: int) -> list[SSAValue]:
    """The values with dims other than `axis` written alike; sizes that may differ are checked at each call."""
    shapes = [shape_of(v) for v in values]
    if len({len(s) for s in shapes}) != 1:
        ctx.invalid(f"its inputs have ranks {[len(s) for s in shapes]}", "they must be the same")
    common = list(shapes[0])
    for shape in shapes[1:]:
        for i, size in enumerate(shape):
            if i == axis or size == common[i]:
                continue
            if ctx.ranges.equal(size, common[i]) is False:
                ctx.invalid(f"dim {i} is {size} and {common[i]}", "all dims but the axis must agree")
            ctx.require("eq", common[i], size)
            common[i] = size if isinstance(size, int) else common[i]
    wanted = [[s if i == axis else common[i] for i, s in enumerate(shape)] for shape in shapes]
    return [ctx.b.reshape(v, w) for v, w in zip(values, wanted, strict=True)]


@imports("Split", since=2)
def split(ctx: NodeContext) -> Results:
    """Split: into parts of given or equal sizes."""
    axis = ctx.axis(ctx.integer("axis"), ctx.rank())
    return parts(ctx, axis, split_sizes(ctx, ctx.shape()[axis]))


def parts(ctx: NodeContext, axis: int, sizes: Sequence[Size]) -> list[SSAValue]:
    """The input cut along an axis into parts of these sizes, which add up to the whole."""
    b, x = ctx.b, ctx[0]
    results: list[SSAValue] = []
    start: Size = 0
    for size in sizes:
        results.append(b.slice_axis(x, axis, start, start + size))
        start = start + size
    return results


def split_sizes(ctx: NodeContext, total: Size) -> list[Size]:
    """The sizes of a Split's parts."""
    given: Sequence[Size] | None = ctx.integers("split")
    if given is None and ctx.has(1):
        given = operand_sizes(ctx, 1, "split")
    if given is not None:
        return fitting(ctx, given, total)
    count = ctx.integer("num_outputs", ctx.result_count)
    if count < 1 or count != ctx.result_count:
        ctx.invalid(f"num_outputs is {count}", f"the node has {ctx.result_count} outputs")
    if (even := dims.exact_div(total, count)) is not None:
        return [even] * count
    if ctx.opset < 18:
        if isinstance(total, int):
            ctx.invalid(f"dim of size {total} does not split", f"into {count} equal parts")
        ctx.require("divides", count, total)
        return [dims.floordiv(total, count)] * count
    chunk = dims.ceildiv(total, count)
    return [chunk] * (count - 1) + [ctx.greater(total - chunk * (count - 1), 0)]


@folds("Split")
def _fold_split(ctx: NodeContext, arrays: Sequence[Array]) -> Any:
    x = arrays[0]
    axis = ctx.axis(ctx.integer("axis"), x.ndim)
    sizes = cast("list[int]", split_sizes(ctx, x.shape[axis]))
    return list(np.split(x, np.cumsum(sizes)[:-1].tolist(), axis))


def fitting(ctx: NodeContext, given: Sequence[Size], total: Size) -> list[Size]:
    """The given sizes of a Split's parts, one for each result, which must add up to `total`."""
    joined = sum(given, start=cast(Size, 0))
    if any(isinstance(s, int) and s < 0 for s in given):
        ctx.invalid(f"the split is {_text(given)}", "sizes are not negative")
    if len(given) != ctx.result_count or ctx.ranges.equal(joined, total) is False:
        ctx.invalid(f"the split {_text(given)} does not fit", f"{ctx.result_count} parts of {total} are expected")
    if joined != total:
        ctx.require("eq", joined, total)
    if total == 0 and all(ctx.at_most(0, size) for size in given):
        return [0] * len(given)
    return list(given)


# ---- repetition --------------------------------------------------------------------------------------------------


@imports("Expand")
def expand(ctx: NodeContext) -> Results:
    """Expand: broadcasting with a shape, both ways."""
    target = target_shape(ctx, 1)
    return [ctx.b.broadcast_to(ctx[0], ctx.b.broadcast_shape(ctx.shape(), target))]


@imports("Tile", since=6)
def tile(ctx: NodeContext) -> Results:
    """Tile: each dim repeated as a whole."""
    return [repeat_input(ctx, operand_sizes(ctx, 1, "repeats"))]


def repeat_input(ctx: NodeContext, repeats: Sequence[Size]) -> SSAValue:
    """The input with each dim repeated as a whole as often as `repeats` says."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    if any(isinstance(r, int) and r < 0 for r in repeats):
        ctx.invalid(f"its repeats are {_text(repeats)}", "they are not negative")
    if len(repeats) != len(shape):
        ctx.invalid(f"it has {len(repeats)} repeats", f"the input has rank {len(shape)}")
    spread = [s for pair in zip(repeats, shape, strict=True) for s in pair]
    wide = b.broadcast(x, spread, range(1, 2 * len(shape), 2))
    return b.reshape(wide, [r * s for r, s in zip(repeats, shape, strict=True)])


# ---- blocks and others -------------------------------------------------------------------------------------------


def _image_shape(ctx: NodeContext) -> tuple[Size, ...]:
    if ctx.rank() != 4:
        ctx.invalid(f"its input has rank {ctx.rank()}", "(N, C, H, W) is expected")
    if (size := ctx.integer("blocksize")) < 1:
        ctx.invalid(f"the blocksize is {size}", "it must be positive")
    return ctx.shape()


def _block_order(ctx: NodeContext) -> str:
    """Whether a block's channels stand before (DCR) or after (CRD) the channels that remain."""
    order = ctx.string("mode", "DCR")
    if order not in ("DCR", "CRD"):
        ctx.invalid(f"the mode is {order!r}", "it must be DCR or CRD")
    return order


@imports("DepthToSpace")
def depth_to_space(ctx: NodeContext) -> Results:
    """DepthToSpace: blocks of channels become pixels."""
    b, (n, c, h, w), k = ctx.b, _image_shape(ctx), ctx.integer("blocksize")
    depth = ctx.divide_size(c, k * k, "channels")
    if _block_order(ctx) == "DCR":
        x = b.transpose(b.reshape(ctx[0], (n, k, k, depth, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = b.transpose(b.reshape(ctx[0], (n, depth, k, k, h, w)), (0, 1, 4, 2, 5, 3))
    return [b.reshape(x, (n, depth, h * k, w * k))]


@imports("SpaceToDepth")
def space_to_depth(ctx: NodeContext) -> Results:
    """SpaceToDepth: pixels become blocks of channels."""
    b, (n, c, h, w), k = ctx.b, _image_shape(ctx), ctx.integer("blocksize")
    rows, columns = ctx.divide_size(h, k, "rows"), ctx.divide_size(w, k, "columns")
    order = (0, 3, 5, 1, 2, 4) if _block_order(ctx) == "DCR" else (0, 1, 3, 5, 2, 4)
    x = b.transpose(b.reshape(ctx[0], (n, c, rows, k, columns, k)), order)
    return [b.reshape(x, (n, c * k * k, rows, columns))]


@imports("CenterCropPad", since=18)
def center_crop_pad(ctx: NodeContext) -> Results:
    """CenterCropPad: by ONNX's own definition of it, which takes sizes as they are."""
    known = ctx.known_value(1)
    if known is not None and any(ctx.at_most(size, -1) for size in size_list(known)):
        ctx.invalid(f"the shape is {_text(size_list(known))}", "sizes are not negative")
    return ctx.importer.expand(ctx)


@imports("Dropout", since=7)
def dropout(ctx: NodeContext) -> Results:
    """Dropout at inference is the identity; its mask is all true. (`random` has the training mode.)"""
    check_ratio(ctx)
    if ctx.importer.opening.training:
        return training_dropout(ctx)
    if ctx.has(2) and ctx.known_value(2) is None:
        return _dropout_in_either_mode(ctx, cast("list[SSAValue]", training_dropout(ctx)))
    if ctx.has(2) and ctx.scalar(2, "training_mode"):
        return training_dropout(ctx)
    x = ctx.value(0)
    if not ctx.wants(1):
        return [x]
    mask_element = "i1" if ctx.opset >= 10 else x.element
    return [x, ctx.b.full(x.shape, True, mask_element)]


def _dropout_in_either_mode(ctx: NodeContext, dropped: Sequence[SSAValue]) -> Results:
    """Dropout whose mode is an input: what training gives where it is set, else the input and a mask of all true."""
    b, training = ctx.b, ctx.b.reshape(ctx[2], ())
    y, mask = dropped
    inference = b.broadcast(b.emit(hlo.NotOp, training), ctx.shape(), ())
    return [b.select(training, y, ctx[0]), b.emit(hlo.OrOp, mask, inference)]


@imports("ReverseSequence")
def reverse_sequence(ctx: NodeContext) -> Results:
    """ReverseSequence: the first `sequence_lens[i]` steps of each batch row reversed."""
    from gcomp.ir.gathering import take_along

    b, x, shape = ctx.b, ctx[0], ctx.shape()
    batch, time = ctx.integer("batch_axis", 1), ctx.integer("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape) < 2:
        ctx.invalid(f"batch_axis is {batch} and time_axis {time}", "they must be 0 and 1")
    given = ctx.known_value(1)
    if given is not None and given.dtype != object and not all(ctx.at_most(int(n), shape[time]) for n in given.flat):
        ctx.invalid(f"the longest sequence has {given.max()} steps", f"the input has {shape[time]}")
    lengths = b.broadcast(b.convert(ctx[1], "i64"), shape[:2], (batch,))
    step = b.iota(shape[:2], time)
    mirrored = b.subtract(b.subtract(lengths, b.constant(1, "i64")), step)
    source = b.select(b.compare(step, lengths, "LT"), mirrored, step)
    return [take_along(b, x, b.broadcast(source, shape, (0, 1)), time)]
