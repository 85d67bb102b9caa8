"""Attention in the flash manner: a block of queries goes over blocks of keys, and scores never leave the program.

For each query the greatest score so far, the sum of weights relative to it, and the weighted sum of values are carried
(Milakov and Gimelshein 2018, Dao et al. 2022). With few queries and many keys, the keys are split among programs,
and a second kernel combines what each found. Heads that share keys do so through the indexing maps of what broadcasts
them. Scores are in f32 (f64 for f64).
"""

from __future__ import annotations

from dataclasses import replace
from math import e, log2

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import d, linear
from gcomp.dims import Ranges, Size, ceildiv
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import scales_query
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.elementwise import convert
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.flash import (
    BATCH,
    FEATURE,
    KEY,
    OUT,
    QUERY,
    SPLIT,
    WHOLE,
    Carried,
    Problem,
    bind,
    combine_splits,
    finish,
    like,
    reference_score,
    row_of,
    scalar,
    size_of,
    tile_of,
)
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Scratch,
    Settings,
    Step,
    blocks_of,
    check_trusted,
    power_of_two,
)
from gcomp.lowering.tiles.schedules.masks import Mask, mask_of
from gcomp.lowering.tiles.tile import element, static_shape
from gcomp.records import record

PROGRAMS = 264
"""With fewer programs than this the keys are split."""

FAINT, EMPTY = -69.0, -104.0
"""Of a score that is so far below the greatest, the weight is 1e-30: less than any rounding of the sum, whose greatest
weight is 1. Of one that is farther away than the other, exp gives 0 in f32."""

LEAST = 256
"""A split has at least so many keys."""


def attention(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """An attention kernel's programs."""
    op = next(op for op in launch.block.ops if isinstance(op, hlo.CompositeOp))
    _check(launch, op)
    problem = Problem.of(op)
    block = _blocks(problem, settings)
    count = problem.rows * blocks_of(problem.queries, block.queries) * blocks_of(problem.outs, block.outs)
    splits = settings.get("splits", _splits(problem, count))
    first = _Attention(launch, problem, block, name, ranges, settings, splits)
    if splits == 1:
        return Scheduled((first.run(),))
    number = ELEMENT_TYPES[problem.wide]
    places = splits * problem.rows * problem.queries
    scratch = (Scratch(number, places), Scratch(number, places), Scratch(number, places * problem.outs))
    power = "exponential2" if first.folded else "exponential"
    return Scheduled((first.run(), combine_splits(launch, problem, f"{name}_combine", ranges, splits, power)), scratch)


def _check(launch: LaunchOp, op: hlo.CompositeOp) -> None:
    check_trusted(op)
    if dtype_text(op.operands[0].type) not in ("f16", "bf16", "f32", "f64"):
        raise UnsupportedError(f"attention on {dtype_text(op.operands[0].type)} has no kernel", where=where(launch))


def _splits(problem: Problem, programs: Size) -> int:
    """Among how many programs the keys of a query are split."""
    if not isinstance(problem.keys, int) or not isinstance(programs, int) or programs == 0:
        return 1
    return max(1, min(problem.keys // LEAST, -(-PROGRAMS // programs), 64)) if programs < PROGRAMS else 1


@record
class Blocks:
    """How many queries, keys, features and features of values are taken at a time."""

    queries: int
    keys: int
    features: int
    outs: int
    warps: int


def _blocks(problem: Problem, settings: Settings) -> Blocks:
    def fitting(extent: Size, most: int) -> int:
        return max(16, min(most, power_of_two(extent))) if isinstance(extent, int) else most

    def filling(extent: Size) -> int:
        step = settings.get("fill", 0)
        return min(WHOLE, -(-extent // step) * step) if step and isinstance(extent, int) else fitting(extent, WHOLE)

    outs = filling(problem.outs)
    whole = isinstance(problem.features, int) and problem.features <= WHOLE
    features = filling(problem.features) if whole else 64
    narrow = problem.kind in ("f16", "bf16")
    width = max(outs, features)
    queries = fitting(problem.queries, (128 if width <= 128 else 64) if narrow else 32 if width <= 128 else 16)
    keys = fitting(problem.keys, (64 if width <= 128 else 32) if narrow else 32)
    if problem.kind == "f64":
        queries, keys = 16, 16
    queries, keys = settings.get("queries", queries), settings.get("keys", keys)
    warps = 8 if queries * width >= 128 * 128 else 4
    return Blocks(queries, keys, features, outs, settings.get("warps", warps))


class _Attention:
    def __init__(
        self, launch: LaunchOp, problem: Problem, block: Blocks, name: str, ranges: Ranges, settings: Settings,
        splits: int,
    ) -> None:  # fmt: skip
        self.launch, self.problem, self.block, self.settings, self.splits = launch, problem, block, settings, splits
        self.transposed = bool(settings.get("transposed", 0))
        """Whether keys are loaded as rows of features, which are neighbours."""
        self.precision = "exact" if settings.get("exact", 0) else "ieee"
        self.writer = KernelWriter(launch, name, ranges)
        self.b = self.writer.b
        self.ranges = ranges
        self.query, self.key, self.value, self.scored, self.out = (self._frame() for _ in range(5))
        query: Size = 0 if problem.queries == 1 else d(QUERY)
        key: Size = 0 if problem.keys == 1 else d(KEY)
        self.place = (query, key)
        self.masks = self._masks()
        self.folded = problem.kind in ("f16", "bf16") and all(m.exact for m in self.masks)
        """Whether scores are powers of two from the start."""

    def run(self) -> Step:
        """The kernel: what it finds is the result, or one split's share of it."""
        b, problem, block = self.b, self.problem, self.block
        down, across = blocks_of(problem.queries, block.queries), blocks_of(problem.outs, block.outs)
        self._bind(down, across)
        low, full, high = self._range()
        carried = self._start()
        loops = ((low, full, False, block.keys), (full, high, True, self._last_keys()))
        if self._never_partial():
            loops = ((low, high, False, block.keys),)
        whole = self._whole_query()
        for start, stop, masked, keys in loops:
            self.block = replace(block, keys=keys)

            def body(at: SSAValue, tiles: Carried, masked: bool = masked) -> Carried:
                return self._turn(at, tiles, masked, whole)

            carried = b.loop(start, stop, keys, carried, body)
        if self.splits == 1:
            finish(self.writer, problem, self.out, self._indices(d(OUT), problem.outs), carried)
        else:
            self._keep(carried)
        grid = (problem.rows * down * across, *([self.splits] if self.splits > 1 else []))
        return self.writer.step(grid, block.warps, self.settings.get("stages", 2))

    # ---- coordinates ----

    def _frame(self) -> Frame:
        frame = self.writer.frame()
        for extent in (*self.problem.extents(), self.splits):
            frame.declare(extent)
        return frame

    def _bind(self, down: Size, across: Size) -> None:
        b, problem, block = self.b, self.problem, self.block
        grid = self.writer.frame()
        grid.coordinate(problem.rows * down * across, b.program_id(0))
        batch, row, column = [scalar(grid, i) for i in delinearize(d(0), (problem.rows, down, across))]
        if any(mask.causal is not None for mask in self.masks):
            # The last queries have the most keys: they begin first.
            row = b.apply("subtract", grid.position(down - 1), row)
        self.first = b.multiply(row, b.position(block.queries))
        frames = (self.query, self.key, self.value, self.scored, self.out)
        for frame in frames:
            if problem.rows != 1:
                frame.bind(BATCH, batch)
            if self.splits > 1:
                frame.bind(SPLIT, b.program_id(1))
        for frame in (self.query, self.scored, self.out):
            bind(frame, QUERY, b.add(self.first, b.iota(block.queries, 0, 2)), block.queries)
        for frame in (self.value, self.out):
            at = b.add(b.multiply(column, b.position(block.outs)), b.iota(block.outs, 1, 2))
            bind(frame, OUT, at, block.outs)

    def _indices(self, last: Size, extent: Size, row: Size | None = None) -> tuple[Size, ...]:
        batch = delinearize(d(BATCH), self.problem.batch)
        return (*batch, self.place[0] if row is None else row, 0 if extent == 1 else last)

    # ---- which keys ----

    def _last_keys(self) -> int:
        """How many keys are taken at a time where not all are seen: no more than there are, where that is known."""
        keys, least = self.problem.keys, self.settings.get("least", self.block.keys)
        if not isinstance(keys, int) or self.splits > 1 or any(mask.causal is not None for mask in self.masks):
            return self.block.keys
        return min(self.block.keys, max(least, power_of_two(keys % self.block.keys)))

    def _never_partial(self) -> bool:
        keys = self.problem.keys
        return isinstance(keys, int) and keys % self.block.keys == 0 and not any(m.exact for m in self.masks)

    def _range(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The keys that a program goes over, and up to where all of them are seen by all of its queries."""
        b, block, frame = self.b, self.block, self.scored
        keys = frame.position(self.problem.keys)
        low, full, high = b.position(0), keys, keys
        for mask in self.masks:
            if mask.causal is None:
                continue
            # Query q sees the keys below q + c + 1.
            seen = b.add(self.first, frame.position(mask.causal + 1))
            high = b.apply("minimum", high, b.add(seen, b.position(block.queries - 1)))
            full = b.apply("minimum", full, seen) if mask.exact else full
        if self.splits > 1:
            share = ceildiv(ceildiv(self.problem.keys, self.splits), block.keys) * block.keys
            low = b.multiply(b.program_id(1), frame.position(share))
            high = b.apply("minimum", high, b.add(low, frame.position(share)))
        full = b.apply("maximum", low, b.apply("minimum", full, high))
        if not self._never_partial():
            size = b.position(block.keys)
            length = b.apply("divide_positive", b.apply("subtract", full, low), size)
            full = b.add(low, b.multiply(length, size))
        return low, full, high

    # ---- one block of keys ----

    def _start(self) -> list[SSAValue]:
        b, wide, rows = self.b, self.problem.wide, self.block.queries
        return [
            b.constant(float("-inf"), wide, (rows, 1)),
            b.constant(0.0, wide, (rows, 1)),
            b.constant(0.0, wide, (rows, self.block.outs)),
        ]

    def _whole_query(self) -> SSAValue | None:
        """The block of queries, if it is held while the loop runs."""
        if self.block.features < size_of(self.problem.features):
            return None
        self._bind_features(None)
        return self._queries(self.writer.elements(self.query))

    def _turn(self, at: SSAValue, tiles: Carried, masked: bool, whole: SSAValue | None) -> Carried:
        b, block = self.b, self.block
        for frame, axis in ((self.key, 0 if self.transposed else 1), (self.value, 0), (self.scored, 1)):
            bind(frame, KEY, b.add(at, b.iota(block.keys, axis, 2)), block.keys, masked)
        scores = self._mask_scores(self._scores(whole), masked)
        greatest, total, found = tiles
        peak = b.apply("maximum", greatest, row_of(b, scores, "maximum"))
        base = reference_score(b, peak)
        weights = self._weights(b.apply("subtract", scores, base))
        kept = self._power(b.apply("subtract", greatest, base))
        total = b.add(b.multiply(total, kept), row_of(b, weights, "add"))
        values = self._values()
        found = b.dot(b.cast(weights, element(values)), values, b.multiply(found, kept), self.precision)
        return [peak, total, found]

    def _scores(self, whole: SSAValue | None) -> SSAValue:
        b, problem, block = self.b, self.problem, self.block
        acc = b.constant(0.0, problem.wide, (block.queries, block.keys))
        if whole is not None:
            self._bind_features(None)
            products = b.dot(whole, self._keys(self.writer.elements(self.key)), acc, self.precision)
        else:

            def body(at: SSAValue, tiles: Carried) -> Carried:
                self._bind_features(at)
                query, key = (self.writer.elements(f) for f in (self.query, self.key))
                return [b.dot(self._queries(query), self._keys(key), tiles[0], self.precision)]

            (products,) = b.loop(b.position(0), self.key.position(problem.features), block.features, [acc], body)
        if self._scaled_before():
            return products
        scale = problem.scale * (log2(e) if self.folded else 1.0)
        return b.multiply(products, like(b, products, scale))

    def _scaled_before(self) -> bool:
        """Whether queries are scaled where the op says so: in wide types this rounds nothing more."""
        return self.problem.kind == self.problem.wide and scales_query(self.problem.scale)

    def _bind_features(self, at: SSAValue | None) -> None:
        size = self.block.features
        for frame, axis in ((self.query, 1), (self.key, 1 if self.transposed else 0)):
            lanes = self.b.iota(size, axis, 2)
            bind(frame, FEATURE, lanes if at is None else self.b.add(at, lanes), size)

    def _queries(self, elements: Elements) -> SSAValue:
        problem, block = self.problem, self.block
        found = tile_of(elements, problem.op.operands[0], self._indices(d(FEATURE), problem.features), (FEATURE,))
        found = self.b.broadcast(found, (block.queries, block.features))
        return self.b.multiply(found, like(self.b, found, problem.scale)) if self._scaled_before() else found

    def _keys(self, elements: Elements) -> SSAValue:
        indices = self._indices(d(FEATURE), self.problem.features, self.place[1])
        found = tile_of(elements, self.problem.op.operands[1], indices, (FEATURE,))
        shape = (self.block.features, self.block.keys)
        if self.transposed:
            return self.b.transpose(self.b.broadcast(found, shape[::-1]))
        return self.b.broadcast(found, shape)

    def _values(self) -> SSAValue:
        indices = self._indices(d(OUT), self.problem.outs, self.place[1])
        found = tile_of(self.writer.elements(self.value), self.problem.op.operands[2], indices, (KEY,))
        return self.b.broadcast(found, (self.block.keys, self.block.outs))

    def _weights(self, x: SSAValue) -> SSAValue:
        """What values are weighted with, of differences of scores.

        Processors take a hundred times as long for denormals, which masks of -100 make, and then their products with
        values. So there no weight is less than that of FAINT, except those that are 0.
        """
        if self.problem.wide != "f32" or self.precision != "exact":
            return self._power(x)
        b, unit = self.b, log2(e) if self.folded else 1.0
        empty = b.apply("lt", x, like(b, x, EMPTY * unit))
        near = b.apply("maximum", x, like(b, x, FAINT * unit))
        return b.apply("select", empty, like(b, x, 0.0), self._power(near))

    def _power(self, x: SSAValue) -> SSAValue:
        """e to the power of a difference of scores."""
        if self.problem.kind not in ("f16", "bf16"):
            return self.b.apply("exponential", x)
        return self.b.apply("exponential2", x if self.folded else self.b.multiply(x, like(self.b, x, log2(e))))

    # ---- masks ----

    def _masks(self) -> list[Mask]:
        op, frame = self.problem.op, self.scored
        found: list[Mask] = []
        for value in op.operands[3:]:
            keeps = dtype_text(value.type) == "i1"
            indices = self._mask_indices(value)
            found.append(mask_of(self.launch, frame, value, indices, self.place, keeps, self.problem.fill, self.ranges))
        return found

    def _mask_indices(self, value: SSAValue) -> tuple[Size, ...]:
        shape = shape_of(value)
        whole = (*delinearize(d(BATCH), self.problem.batch), *self.place)
        return tuple([0 if n == 1 else i for n, i in zip(shape, whole[len(whole) - len(shape) :], strict=True)])

    def _mask_scores(self, scores: SSAValue, masked: bool) -> SSAValue:
        """Scores by all masks; -inf for what is no key. Within the full blocks exact masks let everything through."""
        b, frame, problem = self.b, self.scored, self.problem
        elements = self.writer.elements(frame)
        for mask in self.masks:
            if mask.exact and not masked:
                continue
            if mask.exact:
                query, key = (frame.position(p) for p in self.place)
                seen = b.apply("le", key, b.add(query, frame.position(mask.causal or 0)))
                fill = like(b, scores, mask.fill)
                unseen = fill if mask.keeps else b.add(scores, fill)
                scores = b.apply("select", b.broadcast(seen, static_shape(scores)), scores, unseen)
                continue
            access = frame.access(shape_of(mask.value), self._mask_indices(mask.value))
            found = b.broadcast(elements(mask.value, access), static_shape(scores))
            if mask.keeps:
                scores = b.apply("select", found, scores, like(b, scores, problem.fill))
            else:
                scores = b.add(scores, convert(b, problem.op, found, problem.wide))
        inside = frame.mask((), {d(KEY).text}) if masked else None
        if inside is None:
            return scores
        return b.apply("select", b.broadcast(inside, static_shape(scores)), scores, like(b, scores, float("-inf")))

    # ---- splits ----

    def _keep(self, carried: Carried) -> None:
        """Write what a split found where the second kernel reads it."""
        problem, frame, b = self.problem, self.out, self.b
        shape = (self.splits, problem.rows, problem.queries)
        place = (d(SPLIT), 0 if problem.rows == 1 else d(BATCH), self.place[0])
        number = ELEMENT_TYPES[problem.wide]
        for n, tile in enumerate(carried):
            buffer = self.writer.scratch(n, number, "out")
            if n < 2:
                at = linear(shape, place)
                # All programs across the values find the same: the first one writes it.
                names, own = {d(QUERY).text}, b.apply("lt", frame.position(d(OUT)), b.position(1))
                tile = b.broadcast(tile, (self.block.queries, self.block.outs))
            else:
                at = linear((*shape, problem.outs), (*place, 0 if problem.outs == 1 else d(OUT)))
                names, own = {d(QUERY).text, d(OUT).text}, None
            mask = b.both(frame.mask((), names), own)
            b.store(buffer, frame.position(at), tile, mask)


__all__ = ["attention"]
