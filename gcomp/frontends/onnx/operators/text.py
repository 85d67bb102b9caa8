"""Operators on text that is numbered already: n-grams, counted in rows of integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of
from gcomp.records import record

_MOST_PASSES = 1 << 10
"""Each length of n-grams and each distance between their items is a pass over the rows."""
_WIDEST = 1 << 24


@record
class _Pool:
    """N-grams by length: the items of each, i64[count, length], and the places of their counts in the result."""

    grams: dict[int, Array]
    places: list[int]
    """In the order of the lengths, and in each length of the pool."""
    width: int
    """The size of a row of the result."""
    weights: Array | None
    """In the order of the places: f32[count + 1], the last being 0."""


@imports("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(ctx: NodeContext) -> Results:
    """TfIdfVectorizer: how often each n-gram of a pool is in each row of integers, [C] or [N, C]; f32, weighted."""
    b, shape = ctx.b, ctx.shape()
    if len(shape) > 2:
        ctx.invalid(f"its input has rank {len(shape)}", "a row [C] or rows [N, C] are expected")
    if (mode := ctx.string("mode")) not in ("TF", "IDF", "TFIDF"):
        ctx.invalid(f"the mode is {mode!r}", "it must be TF, IDF or TFIDF")
    pool = _pool(ctx)
    rows = b.convert(b.reshape(ctx[0], shape or (1,)), "i64")
    found = b.convert(_counts(ctx, rows, pool), "f32")
    if mode == "IDF":
        if len(set(pool.places)) < len(pool.places):
            ctx.unsupported("its n-grams share columns, and ONNX leaves open what that means in the mode IDF")
        found = b.minimum(found, ctx.b.scalar_like(found, 1))
    if pool.weights is not None and mode != "TF":
        # The weight is the n-gram's, as the text and ONNX Runtime have it; ONNX's reference takes the column's.
        found = b.multiply(found, b.broadcast_to(b.constant(pool.weights), shape_of(found)))
    return [_place(ctx, found, pool)]


def _pool(ctx: NodeContext) -> _Pool:
    """The n-grams that are counted: of the pool's, those of the lengths asked for."""
    if ctx.strings("pool_strings"):
        ctx.unsupported("its pool holds strings, and gcomp computes on numbers", fix="number the strings beforehand")
    items, starts = ctx.integers("pool_int64s") or [], ctx.integers("ngram_counts") or []
    places, least = ctx.integers("ngram_indexes") or [], ctx.integer("min_gram_length", 1)
    most = ctx.integer("max_gram_length", 1)
    if not items or not starts or not places:
        ctx.invalid("its pool is empty", "pool_int64s, ngram_counts and ngram_indexes are required")
    if not 1 <= least <= most or ctx.integer("max_skip_count") < 0:
        ctx.invalid(f"n-grams have {least} to {most} items", "at least 1, and no skip count below 0, is expected")
    if min(places) < 0:
        ctx.invalid(f"an n-gram has the index {min(places)}", "indexes are not negative")
    if max(places) >= _WIDEST:
        ctx.unsupported(f"its result has {max(places) + 1} columns; the limit is {_WIDEST}")
    ends = [*starts[1:], len(items)]
    if starts[0] < 0 or any(start > end for start, end in zip(starts, ends, strict=True)):
        ctx.invalid(f"ngram_counts is {starts}", f"it must ascend within 0 to {len(items)}, the size of the pool")
    grams: dict[int, Array] = {}
    kept: list[int] = []
    number = 0  # of the n-gram, over all lengths
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        if (end - start) % length:
            ctx.invalid(f"the pool has {end - start} items in n-grams of {length}", "n-grams must be whole")
        count = (end - start) // length
        if least <= length <= most and count:
            grams[length] = np.asarray(items[start:end], np.int64).reshape(count, length)
            kept += range(number, number + count)
        number += count
    if number > len(places):
        ctx.invalid(f"the pool has {number} n-grams", f"there are indexes for {len(places)}")
    for length, found in grams.items():
        if len(np.unique(found, axis=0)) != len(found):
            ctx.invalid(f"an n-gram of {length} is in the pool twice", "each has one count")
    weights = ctx.numbers("weights") or []
    if weights and len(weights) < number:
        ctx.invalid(f"it has {len(weights)} weights", f"the pool has {number} n-grams")
    chosen = np.asarray([*(weights[i] for i in kept), 0], np.float32) if weights else None
    return _Pool(grams, [places[i] for i in kept], max(places) + 1, chosen)


def _counts(ctx: NodeContext, rows: SSAValue, pool: _Pool) -> SSAValue:
    """How often each n-gram is in each row, i64[..., count + 1]; the last column is 0."""
    b, lead = ctx.b, shape_of(rows)[:-1]
    passes = {n: _distances(ctx, n) for n in pool.grams}
    if sum(map(len, passes.values())) > _MOST_PASSES:
        ctx.unsupported(f"it skips up to {ctx.integer('max_skip_count')} items", fix="bind the rows' size with dims=")
    columns: list[SSAValue] = []
    for length, grams in pool.grams.items():
        total = b.full((*lead, len(grams)), 0, "i64")
        for distance in passes[length]:
            total = b.add(total, _count_grams(ctx, rows, grams, distance))
        columns.append(total)
    columns.append(b.full((*lead, 1), 0, "i64"))
    return b.concatenate(columns, len(lead))


def _distances(ctx: NodeContext, length: int) -> Sequence[int]:
    """The distances between an n-gram's items: one item alone is counted once."""
    if length == 1:
        return range(1, 2)
    size, most = (ctx.shape() or (1,))[-1], ctx.integer("max_skip_count") + 1
    # Where it is known, longer than the row are no n-grams.
    return range(1, (min(most, (size - 1) // (length - 1)) if isinstance(size, int) else most) + 1)


def _count_grams(ctx: NodeContext, rows: SSAValue, grams: Array, distance: int) -> SSAValue:
    """How often each of `grams` [count, length] is in each row with its items `distance` apart."""
    b, lead, size = ctx.b, shape_of(rows)[:-1], shape_of(rows)[-1]
    (count, length), axis = grams.shape, len(lead)
    reach, shape = (length - 1) * distance, (*lead, size, count)
    # The row is made longer, so that it has an item for each start; those are not counted.
    longer = b.pad(rows, b.constant(0, "i64"), [0] * (axis + 1), [0] * axis + [reach])
    hit = b.compare(b.iota(shape, axis), b.broadcast(b.dim(size - reach), shape, ()), "LT")
    for k in range(length):
        items = b.broadcast(b.slice_axis(longer, axis, k * distance, k * distance + size), shape, range(axis + 1))
        wanted = b.broadcast(b.constant(grams[:, k]), shape, (axis + 1,))
        hit = b.emit(hlo.AndOp, hit, b.compare(items, wanted, "EQ"))
    return b.reduce(hlo.AddOp, b.convert(hit, "i64"), [axis])


def _place(ctx: NodeContext, counts: SSAValue, pool: _Pool) -> SSAValue:
    """Numbers for each n-gram, [..., count + 1], at their places in rows of the result; those of one place add up."""
    b, axis = ctx.b, len(shape_of(counts)) - 1
    sources: dict[int, list[int]] = defaultdict(list)
    for column, place in enumerate(pool.places):
        sources[place].append(column)
    most = max(map(len, sources.values()), default=1)
    if most * pool.width > _WIDEST:
        ctx.unsupported(f"one of its {pool.width} columns is the sum of {most} counts")
    table = np.full((pool.width, most), len(pool.places))
    for place, found in sources.items():
        table[place, : len(found)] = found
    return b.reduce(hlo.AddOp, take(b, counts, b.constant(table, "i64"), axis), [axis + 1])
