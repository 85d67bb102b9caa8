"""Importers of ai.onnx.ml: operators that prepare features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import product
from gcomp.dtypes import is_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array, limits
from gcomp.frontends.onnx.operators.indexing import nonnegative
from gcomp.frontends.onnx.operators.ml.scores import constants, floats
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take, wrap_indices
from gcomp.ir.op import GraphOp
from gcomp.ir.types import rank_of, shape_of

FEW = 32
"""Up to this many keys are compared one by one; more are searched."""


@imports("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(ctx: NodeContext) -> Results:
    """ArrayFeatureExtractor: columns of the last dim at all of the indices, of whatever shape; at least rank 2.

    Negative indices count from the end, as in ONNX's reference; ONNX Runtime reads what lies before the row.
    """
    b, x = ctx.b, ctx[0]
    if not ctx.rank():
        ctx.invalid("X has rank 0", "it has no columns")
    size, known = ctx.shape()[-1], ctx.value(1).known
    if isinstance(size, int) and known is not None and known.dtype != object:
        low, high = known.min(initial=0), known.max(initial=0)
        if not -size <= int(low) <= int(high) < size:
            ctx.invalid(f"the indices go from {low} to {high}", f"there are {size} columns")
    indices = b.reshape(ctx[1], (product(ctx.shape(1)),))
    picked = take(b, x, indices if nonnegative(ctx, 1) else wrap_indices(b, indices, size), ctx.rank() - 1)
    return [b.reshape(picked, (1, *shape_of(picked))) if rank_of(picked) == 1 else picked]


@imports("Binarizer", domain="ai.onnx.ml")
def binarizer(ctx: NodeContext) -> Results:
    """Binarizer: 1 where above the threshold, else 0 (for NaN too, at which ONNX Runtime fails)."""
    b, threshold, element = ctx.b, ctx.number("threshold"), ctx.element()
    if is_float(element):
        return [b.convert(b.compare(ctx[0], ctx.b.scalar_like(ctx[0], threshold), "GT"), element)]
    # An integer is above a number if it is above the integers up to it.
    low, high = limits(element)
    if math.isnan(threshold) or threshold >= high:
        return [b.full(ctx.shape(), 0, element)]
    if threshold < low:
        return [b.full(ctx.shape(), 1, element)]
    return [b.convert(b.compare(ctx[0], ctx.b.scalar_like(ctx[0], math.floor(threshold)), "GT"), element)]


@imports("FeatureVectorizer", domain="ai.onnx.ml")
def feature_vectorizer(ctx: NodeContext) -> Results:
    """FeatureVectorizer: matrices side by side as f32, each cut or filled with zeros to its stated width.

    A vector is one row, as the text and ONNX Runtime have it; ONNX's reference makes it a column.
    """
    b, parts = ctx.b, list[SSAValue]()
    widths = ctx.integers("inputdimensions")
    if widths is not None and (len(widths) != len(ctx.values) or any(w < 0 for w in widths)):
        ctx.invalid(f"inputdimensions is {widths[:8]}", f"there are {len(ctx.values)} inputs, of a width each")
    for i, x in enumerate(ctx.operands()):
        shape = ctx.shape(i)
        if len(shape) not in (1, 2):
            ctx.invalid(f"input {i} has rank {len(shape)}", "it must be a matrix, or a vector for one row")
        x = b.convert(b.reshape(x, (1, *shape)) if len(shape) == 1 else x, "f32")
        if widths is not None:
            x = _resize_columns(ctx, x, widths[i])
        parts.append(ctx.restate(x, {0: shape_of(parts[0])[0]}) if parts else x)
    return [b.concatenate(parts, 1)]


def _resize_columns(ctx: NodeContext, x: SSAValue, width: int) -> SSAValue:
    """A matrix with its columns cut, or filled up with zeros, to `width`."""
    rows, have = shape_of(x)
    have = ctx.static(have, "width of an input")
    if have >= width:
        return ctx.b.slice(x, [0, 0], [rows, width])
    return ctx.b.pad(x, ctx.b.scalar_like(x, 0), [0, 0], [0, width - have])


# ---- feature by feature ------------------------------------------------------------------------------------------


def _per_feature(b: Builder, values: Sequence[float] | Array, x: SSAValue) -> SSAValue:
    """One number for all features, or one for each along the last dim, in the element type of `x`."""
    if len(values) == 1:
        return b.scalar_like(x, values[0])
    return constants(b, np.asarray(values), x)


@imports("Scaler", domain="ai.onnx.ml")
def scaler(ctx: NodeContext) -> Results:
    """Scaler: (x - offset) * scale as f32, feature by feature; an absent offset is 0, an absent scale 1."""
    b, x = ctx.b, ctx.b.convert(ctx[0], "f64" if ctx.element() == "f64" else "f32")
    offset, scale = floats(ctx, "offset"), floats(ctx, "scale")
    if offset is not None and scale is not None and len(offset) != len(scale):
        ctx.invalid(f"offset has {len(offset)} entries and scale {len(scale)}", "they must have as many")
    x = x if offset is None and scale is None else _last_stated(ctx, x, offset if scale is None else scale)
    if offset is not None:
        x = b.subtract(x, _per_feature(b, offset, x))
    if scale is not None:
        x = b.multiply(x, _per_feature(b, scale, x))
    return [b.convert(x, "f32")]


def _last_stated(ctx: NodeContext, x: SSAValue, values: Sequence[float] | Array | None) -> SSAValue:
    """`x` with its last dim written as the number of values, where there is one for each feature."""
    if values is None or len(values) == 1:
        return x
    if not rank_of(x):
        ctx.invalid("X has rank 0", f"there are {len(values)} features")
    return ctx.restate(x, {rank_of(x) - 1: len(values)})


@imports("Imputer", domain="ai.onnx.ml")
def imputer(ctx: NodeContext) -> Results:
    """Imputer: one value replaced by another, which may differ by feature; NaN is replaced where that is asked."""
    b, x, element = ctx.b, ctx[0], ctx.element()
    kind = "float" if is_float(element) else "int64"
    values = ctx.numbers("imputed_value_floats") if kind == "float" else ctx.integers("imputed_value_int64s")
    if not values:
        ctx.invalid(f"it has no imputed_value_{kind}s", f"X is {element}")
    old = ctx.number("replaced_value_float") if kind == "float" else ctx.integer("replaced_value_int64")
    if kind == "int64":
        low, high = limits(element)
        if not low <= min(values) <= max(values) <= high:
            ctx.invalid(f"the imputed values go from {min(values)} to {max(values)}", f"they must be {element}")
        if not low <= old <= high:
            return [x]
    x = _last_stated(ctx, x, values)
    if math.isnan(old):
        found = b.compare(x, x, "NE")
    else:
        found = b.compare(x, ctx.b.scalar_like(x, old), "EQ")
    return [b.select(found, _per_feature(b, values, x), x)]


def _magnitude(op: type[GraphOp]) -> Callable[[Builder, SSAValue], SSAValue]:
    return lambda b, x: b.reduce(op, b.emit(hlo.AbsOp, x), [rank_of(x) - 1], keepdims=True)


def _euclidean(b: Builder, x: SSAValue) -> SSAValue:
    return b.emit(hlo.SqrtOp, b.reduce(hlo.AddOp, b.multiply(x, x), [rank_of(x) - 1], keepdims=True))


NORMS: dict[str, Callable[[Builder, SSAValue], SSAValue]] = {
    "MAX": lambda b, x: b.reduce(hlo.MaximumOp, x, [rank_of(x) - 1], keepdims=True),
    "L1": _magnitude(hlo.AddOp),
    "L2": _euclidean,
}
"""`norm` -> what a row is divided by."""


@imports("Normalizer", domain="ai.onnx.ml")
def normalizer(ctx: NodeContext) -> Results:
    """Normalizer: each row divided by its maximum, sum of magnitudes or length, as f32; unchanged if that is 0.

    MAX is the maximum as it stands, as the text and ONNX Runtime have it; ONNX's reference takes magnitudes.
    """
    b, norm = ctx.b, ctx.string("norm", "MAX")
    if norm not in NORMS or ctx.rank() not in (1, 2):
        ctx.invalid(f"norm is {norm!r} and X has rank {ctx.rank()}", "MAX, L1 or L2 of [N, C] or [C] is expected")
    x = b.convert(ctx[0], "f64" if ctx.element() == "f64" else "f32")
    divisor = NORMS[norm](b, x)
    zero = b.compare(divisor, ctx.b.scalar_like(x, 0), "EQ")
    return [b.convert(b.divide(x, b.select(zero, ctx.b.scalar_like(x, 1), divisor)), "f32")]


# ---- categories --------------------------------------------------------------------------------------------------


@imports("OneHotEncoder", domain="ai.onnx.ml")
def one_hot_encoder(ctx: NodeContext) -> Results:
    """OneHotEncoder: f32 with a last dim of the categories, 1 at that of the element, which is cut to an integer.

    An element that is no category gives zeros. With `zeros` = 0 ONNX has the operator fail; a compiled program
    cannot, so the element's row is NaN. Of a repeated category the last counts.
    """
    b, x, categories = ctx.b, ctx[0], ctx.integers("cats_int64s")
    if not categories:
        if ctx.strings("cats_strings"):
            ctx.unsupported("its categories are strings, and gcomp computes on numbers")
        ctx.invalid("it has no categories", "cats_int64s is missing or empty")
    if ctx.rank() > 2:
        ctx.invalid(f"X has rank {ctx.rank()}", "ONNX defines the operator up to rank 2")
    rank, count = ctx.rank(), len(categories)
    last = np.unique(np.asarray(categories[::-1], np.int64), return_index=True)[1]
    counts = np.isin(np.arange(count), count - 1 - last)
    shape = (*ctx.shape(), count)
    element = b.reshape(b.convert(x, "i64"), (*ctx.shape(), 1))
    hit = b.compare(element, b.constant(np.asarray(categories, np.int64)), "EQ")
    if not counts.all():
        hit = b.binary(hlo.AndOp, hit, b.constant(counts))
    if is_float(ctx.element()):
        # A number that has no 64 bit integer is no category.
        fits = b.compare(b.emit(hlo.AbsOp, x), ctx.b.scalar_like(x, 2.0**63), "LT")
        hit = b.binary(hlo.AndOp, hit, b.reshape(fits, (*ctx.shape(), 1)))
    result = b.convert(b.broadcast_to(hit, shape), "f32")
    if ctx.flag("zeros", True):
        return [result]
    found = b.reduce(hlo.OrOp, b.broadcast_to(hit, shape), [rank], keepdims=True)
    return [b.select(found, result, b.full((), math.nan, "f32"))]


# ---- strings and maps --------------------------------------------------------------------------------------------


_NOT_TENSORS = {
    "CategoryMapper": ("it maps between strings and integers", "map the categories before the model"),
    "DictVectorizer": ("its input is a map, and gcomp's programs take tensors", "give the model the vector itself"),
    "CastMap": ("its input is a map, and gcomp's programs take tensors", "give the model the tensor itself"),
    "ZipMap": ("its output is a list of maps", "export with zipmap off (`options={'zipmap': False}` in skl2onnx)"),
}


@imports(*_NOT_TENSORS, domain="ai.onnx.ml")
def not_of_tensors(ctx: NodeContext) -> Results:
    """CategoryMapper, DictVectorizer, CastMap, ZipMap: strings and maps, which gcomp does not compute with."""
    ctx.unsupported(*_NOT_TENSORS[ctx.op_type])
