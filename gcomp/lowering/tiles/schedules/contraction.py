"""Matrix products and convolutions on matrix units, with what comes before and after them fused in.

Both are sums of products over `k` of elements that belong to a row `m` or a column `n` of the result; where these lie
is what the indexing maps say, so that a convolution is an implicit matrix product whose window and padding are index
arithmetic and masks. A program computes a block of the result; blocks that share rows run after each other.

`programs` lets so many programs compute all blocks, one after the other (a persistent kernel). `pieces` cuts the sums
of few blocks: each piece is summed by a program of its own, and a second kernel adds them in their order, so that equal
inputs give equal bits. `boxes` brings operands by the GPU's copy unit where they lie as it needs them (`boxes.py`).
`down` goes through all rows before the next columns. `exact` makes each sum one chain of fma's over ascending terms, so
that no other choice changes a bit. `windows` takes the terms of a convolution one position of the window after the
other, and at each the channels: neighbours in memory where channels come last, and nothing but whole rows is left out
where there is padding. With `runs` it takes the rows of the window so, and in each the points and their channels, which
are neighbours where nothing is padded or dilated. `together` groups of features are products side by side: a vector has
features of several. `words` says that the right operand has four terms of a column beside each other, of bytes that
processors multiply together: terms are counted by fours. `transposed` loads tiles of the right operand as rows of
terms, where these are neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.analysis.panels import columns_taken
from gcomp.dims import Ranges, Size, ceildiv, dmax, floordiv, mod, product, substitute
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.descriptors import LoadBoxOp
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.elementwise import convert
from gcomp.lowering.tiles.elements.folding import ranges_of, sum_type, terms_of
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.borders import borders, surrounded
from gcomp.lowering.tiles.schedules.boxes import BoxElements, Span
from gcomp.lowering.tiles.schedules.kernel import (
    MOST_SMALL,
    KernelWriter,
    Scheduled,
    Scratch,
    Settings,
    Step,
    blocks_of,
    is_covered,
    power_of_two,
)
from gcomp.lowering.tiles.schedules.loop import flat
from gcomp.lowering.tiles.schedules.relations import relate
from gcomp.lowering.tiles.tile import element
from gcomp.records import record

UNITS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", "i8": "i32"}
"""Element types that matrix units multiply -> the type in which they add."""


def _adds_in(op: Operation) -> str | None:
    """The type in which the products of an op are added; None where its factors are not multiplied as they are."""
    kinds = tuple(dtype_text(v.type) for v in op.operands[:2])
    if kinds == tile.BYTES[:2]:
        return tile.BYTES[2]
    return UNITS.get(kinds[0]) if len(set(kinds)) == 1 else None


BATCH, ROW, COLUMN, TERM, PIECE = range(5)
"""The coordinates of the iteration space, and of the pieces that sums may be cut into."""
WINDOW = PIECE
"""The coordinate of positions in a window, where terms are the channels at each."""

FEW = "few_"
"""What the names of settings begin with that are for one row, where the call decides how many there are."""
LEFT_OVER = 3
"""Rows that are left over of blocks, at most, which go one by one."""

GROUP = 8
"""Blocks of rows that share blocks of columns in the cache."""

ADDED = 1024
"""Elements of a block in which pieces of sums are added."""


@record
class Space:
    """The iteration space: its extents, and the result's element at a batch, a row and a column."""

    extents: tuple[Size, Size, Size, Size]
    indices: tuple[Size, ...]
    stored: Size
    """Columns of the right operand, of which there may be more than are taken."""


Contraction = hlo.DotOp | hlo.DotGeneralOp | hlo.ConvolutionOp


def contraction(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A matmul or convolution kernel's program."""
    found = space_of(launch)
    if found is None or (_is_mixed(found[0]) and not settings.get("exact", 0)):
        return flat(launch, name, ranges, settings)
    program = _Contraction(launch, *found, name, ranges, settings)
    if not program.reaches_all():
        return flat(launch, name, ranges, settings)
    pieces = program.pieces()
    if pieces < 2:
        few = _one_by_one(launch, found, f"{name}_few", ranges, settings, program)
        return Scheduled((*program.run().steps, *few, *borders(launch, name, ranges)))
    first = _Contraction(launch, *found, f"{name}_pieces", ranges, settings)
    scratch = Scratch(ELEMENT_TYPES[program.sum], product(found[1].extents[:TERM]) * pieces)
    around = borders(launch, name, ranges)
    return Scheduled((first.sum_pieces(pieces), program.add_pieces(pieces), *around), (scratch,))


def _is_mixed(op: Operation) -> bool:
    """Whether factors are of two types, which matrix units do not multiply."""
    return op.operands[0].type.element_type != op.operands[1].type.element_type  # type: ignore[attr-defined]


def _one_by_one(
    launch: LaunchOp, found: tuple[Contraction, Space], name: str, ranges: Ranges, settings: Settings,
    program: _Contraction,
) -> Sequence[Step]:  # fmt: skip
    """The kernel for few rows that are left over of blocks, whose number the call decides, in the settings for one
    row; nothing where there are none. A block that a few rows fill in part computes what nobody needs."""
    rows, block = found[1].extents[ROW], program.rows
    if not settings.get(f"{FEW}rows", 0) or isinstance(rows, int) or block <= LEFT_OVER + 1:
        return ()
    blocks = floordiv(rows + block - LEFT_OVER - 1, block)
    if (count := dmax(0, rows - blocks * block)) == 0:
        return ()
    own = Settings({"exact": 1, **{k.removeprefix(FEW): n for k, n in settings.values.items() if k.startswith(FEW)}})
    left = _Contraction(launch, *found, name, ranges, own)
    program.blocks, left.first, left.blocks = blocks, blocks * block, count
    return left.run().steps


def space_of(launch: LaunchOp) -> tuple[Contraction, Space] | None:
    """The contraction of a launch and its iteration space; None where matrix units do not compute it."""
    op = next(op for op in launch.block.ops if role_of(op) in (Role.CONTRACTION, Role.CONVOLUTION))
    if not isinstance(op, Contraction):
        return None
    space = _convolution_space(op) if isinstance(op, hlo.ConvolutionOp) else _dot_space(op)
    if _adds_in(op) != sum_type(op) or 0 in space.extents:
        return None
    return op, space


def _dot_space(op: hlo.DotGeneralOp | hlo.DotOp) -> Space:
    """Batch dimensions, then the free ones of lhs, then those of rhs."""
    shape = shape_of(op.results[0])
    numbers, rank = op.dimensions if isinstance(op, hlo.DotGeneralOp) else None, len(shape_of(op.lhs))
    batch = 0 if numbers is None else len(numbers.lhs_batching_dimensions)
    rows = rank - 1 if numbers is None else batch + len(numbers.lhs_free(rank))
    groups = shape[:batch], shape[batch:rows], shape[rows:]
    indices = [i for c, sizes in enumerate(groups) for i in delinearize(d(c), sizes)]
    counts = [product(sizes) for sizes in groups]
    taken = columns_taken(op.results[0]) if len(groups[2]) == 2 else None
    columns = counts[2] if taken is None else taken
    return Space((counts[0], counts[1], columns, product(terms_of(op))), tuple(indices), counts[2])


def _convolution_space(op: hlo.ConvolutionOp) -> Space:
    """Groups of features, then images and their positions, then the features of a group."""
    numbers, shape = op.dimensions, shape_of(op.results[0])
    groups: int = op.value("feature_group_count") * op.value("batch_group_count")
    feature = numbers.output_feature_dimension
    width = floordiv(shape[feature], groups)
    rows = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    indices: list[Size] = [0] * len(shape)
    for k, index in zip(rows, delinearize(d(ROW), [shape[k] for k in rows]), strict=True):
        indices[k] = index
    indices[feature] = (d(BATCH) * width if groups > 1 else 0) + (0 if width == 1 else d(COLUMN))
    count = product(shape[k] for k in rows)
    return Space((groups, count, width, product(terms_of(op))), tuple(indices), width)


class _Contraction:
    def __init__(
        self, launch: LaunchOp, op: Operation, space: Space, name: str, ranges: Ranges, settings: Settings
    ) -> None:
        self.together = settings.get("together", 1)
        space = _together(op, space, self.together) if self.together > 1 else space
        self.launch, self.op, self.space, self.settings = launch, op, space, settings
        self.writer = KernelWriter(launch, name, ranges)
        self.b = self.writer.b
        self.kind = dtype_text(op.operands[0].type)
        self.sum = sum_type(op)
        self.word = tile.WORD if settings.get("words", 0) else 1
        """Terms that are counted as one, which lie beside each other on the right."""
        narrow = self.kind != "f32"
        _, rows, columns, terms = space.extents
        self.rows = settings.get("rows", _fitting(rows, 128))
        self.columns = settings.get("columns", _fitting(columns, 128))
        self.window = _window_of(op) if settings.get("windows", 0) else None
        self.channelwise = self.together > 1 and settings.get("terms", 0) == 1
        """Whether groups that are side by side read one channel each, of which terms say nothing then."""
        if self.channelwise:
            self.window, self.run_sizes = terms_of(op), (1,)
            terms = 1
        elif self.window is not None:
            # What is summed at each position: its channels, or the channels of a row of the window.
            rest = len(self.window) - (1 if settings.get("runs", 0) else 0)
            self.run_sizes = (*self.window[rest:], terms_of(op)[0])
            self.window = self.window[:rest]
            terms = product(self.run_sizes)
        terms = self._words(terms)
        self.terms = settings.get("terms", _fitting(terms, 64 if narrow else 32, 32 if self.kind == "i8" else 16))
        self.transposed = bool(settings.get("transposed", 0))
        self.precision = "exact" if settings.get("exact", 0) else "ieee"
        self.ranges = ranges
        self.first: Size = 0
        """The first row, and how many blocks of rows there are from it on."""
        self.blocks = blocks_of(rows, self.rows)
        self.spans: dict[int, Span] = {}
        """What the tiles of coordinates hold in the block that is being written."""

    def run(self) -> Scheduled:
        """One kernel, whose programs each compute a block, or one after the other."""
        batch = self.space.extents[BATCH]
        across, down = self._across_and_down()
        programs = self.settings.get("programs", 0)
        if not programs:
            self._whole(self.b.program_id(0), None if batch == 1 else self.b.program_id(1))
            return Scheduled((self._step((across * down, *([] if batch == 1 else [batch]))),))
        tiles = self.writer.frame()
        count = across * down * batch

        def turn(at: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            inner = self.writer.frame()
            inner.coordinate(count, at)
            rest, which = inner.access((1, 1), (mod(d(0), across * down), floordiv(d(0), across * down))).indices
            self._whole(inner.position(rest), None if batch == 1 else inner.position(which))
            return []

        # Triton pipelines a flattened loop where boxes are brought, and not where elements are loaded one by one.
        flatten = bool(self.settings.get("boxes", 0))
        self.b.loop(self.b.program_id(0), tiles.position(count), programs, [], turn, flatten=flatten)
        return Scheduled((self._step((min(programs, count) if isinstance(count, int) else programs,)),))

    def _whole(self, at: SSAValue, which: SSAValue | None) -> None:
        """A block of the result, from its products to what is stored. `which` is the batch it belongs to."""
        lhs, rhs, out = self._frames(at, which)
        if self.window is not None:
            self._store(out, self._windows(lhs, rhs, self.window))
            return
        self._store(out, self._sum(lhs, rhs, self.b.constant(0, self.sum, (self.rows, self.columns))))

    def _sum(self, lhs: Frame, rhs: Frame, acc: SSAValue) -> SSAValue:
        """The sum over all terms, added to what was summed before."""
        b, terms = self.b, rhs.extents[TERM]
        if isinstance(terms, int) and terms <= self.settings.get("single", self.terms):
            return self._products(lhs, rhs, None, acc)
        rest = terms % self.terms if isinstance(terms, int) and self.precision == "exact" else 0
        if not rest:
            return self._products(lhs, rhs, (b.position(0), lhs.position(terms)), acc)
        # Whole tiles first, then the rest in such that it fills: ascending terms are the same bits in any tiles.
        assert isinstance(terms, int)
        even = terms - rest
        acc = self._products(lhs, rhs, (b.position(0), b.position(even)), acc, fills=True)
        wide, self.terms = self.terms, rest
        acc = self._products(lhs, rhs, (b.position(even), b.position(terms)), acc, fills=True)
        self.terms = wide
        return acc

    def _windows(self, lhs: Frame, rhs: Frame, window: Sequence[Size]) -> SSAValue:
        """The sum over a window's positions, in their order, of the sums over channels."""
        b, count = self.b, product(window)
        for frame in (lhs, rhs):
            frame.extents[TERM] = product(self.run_sizes)
            frame.declare(count)
        rhs.extents[TERM] = self._words(product(self.run_sizes))
        start = b.constant(0, self.sum, (self.rows, self.columns))

        def turn(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for frame in (lhs, rhs):
                frame.bind(WINDOW, position)
            return [self._sum(lhs, rhs, carried[0])]

        if count == 1:
            return turn(b.position(0), [start])[0]
        return b.loop(b.position(0), lhs.position(count), 1, [start], turn)[0]

    # ---- sums in pieces ----

    def pieces(self) -> int:
        """Into how many pieces each sum is cut; each is summed by a program of its own."""
        pieces, chunks = self.settings.get("pieces", 1), blocks_of(self.space.extents[TERM], self.terms)
        wanted = min(pieces, chunks) if isinstance(chunks, int) else pieces
        high = self.ranges.bounds(product(self.space.extents[:TERM]) * wanted)[1]
        return wanted if high is not None and high <= MOST_SMALL else 1

    def sum_pieces(self, pieces: int) -> Step:
        """The kernel that sums the pieces into scratch memory."""
        b, (batch, _, _, terms) = self.b, self.space.extents
        across, down = self._across_and_down()
        lhs, rhs, out = self._frames(b.program_id(0), None if batch == 1 else b.program_id(2))
        share = lhs.position(ceildiv(blocks_of(terms, self.terms), pieces) * self.terms)
        first = b.multiply(b.program_id(1), share)
        end = b.apply("minimum", lhs.position(terms), b.add(first, share))
        acc = self._products(lhs, rhs, (first, end))
        out.coordinate(pieces, b.program_id(1))
        buffer = self.writer.scratch(0, ELEMENT_TYPES[element(acc)], "out")
        b.store(buffer, self._place_of_piece(out, pieces), acc, out.full_mask())
        return self._step((across * down, pieces, *([] if batch == 1 else [batch])))

    def add_pieces(self, pieces: int) -> Step:
        """The kernel that adds the pieces, in their order, and computes the results."""
        b, (batch, rows, columns, _) = self.b, self.space.extents
        self.columns = min(self.columns, _fitting(columns, ADDED // 8, 1))
        self.rows = min(self.rows, _fitting(rows, ADDED // self.columns, 1))
        across, down = self._across_and_down()
        _, _, out = self._frames(b.program_id(0), None if batch == 1 else b.program_id(1))
        which, kind = out.declare(pieces), self.sum
        buffer = self.writer.scratch(0, ELEMENT_TYPES[kind], "in")
        mask = out.full_mask()

        def turn(piece: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            out.bind(which, piece)
            found = b.load(buffer, self._place_of_piece(out, pieces), mask)
            return [b.apply("add", carried[0], b.broadcast(found, (self.rows, self.columns)))]

        start = b.constant(0, kind, (self.rows, self.columns))
        (acc,) = b.loop(b.position(0), b.position(pieces), 1, [start], turn)
        self._store(out, acc)
        return self.writer.step((across * down, *([] if batch == 1 else [batch])))

    def _place_of_piece(self, frame: Frame, pieces: int) -> SSAValue:
        extents = self.space.extents[:TERM]
        indices = [0 if extent == 1 else d(k) for k, extent in enumerate(extents)]
        return frame.position(frame.place((pieces, *extents), (d(PIECE), *indices)))

    def reaches_all(self) -> bool:
        """Whether the elements of all results follow from those of the product."""
        places = self._places(self.writer.elements(self._frame(None)))
        return all(value in places for value in self.writer.values)

    def _places(self, elements: Elements) -> Mapping[SSAValue, IndexingMap]:
        """The element of each value that belongs to a point of the frame; of a padded one, where it lies in it."""
        result, frame = self.op.results[0], elements.frame
        places = relate(self.launch, elements, {result: frame.access(shape_of(result), self.space.indices)})
        return {**places, **surrounded(self.launch, frame, places)}

    # ---- coordinates ----

    def _words(self, terms: Size) -> Size:
        """How many words terms are."""
        return terms if self.word == 1 else floordiv(terms, self.word)

    def _across_and_down(self) -> tuple[Size, Size]:
        return blocks_of(self.space.extents[COLUMN], self.columns), self.blocks

    def _frame(self, which: SSAValue | None) -> Frame:
        frame = self.writer.frame()
        for extent in self.space.extents:
            frame.declare(extent)
        if which is not None:
            frame.bind(BATCH, which)
        return frame

    def _frames(self, at: SSAValue, which: SSAValue | None) -> tuple[Frame, Frame, Frame]:
        """The coordinates of lhs, rhs and result in the block of a number."""
        _, rows, _, _ = self.space.extents
        across, down = self._across_and_down()
        row, column = self._block_of(down, across, at)
        lhs, rhs, out = (self._frame(which) for _ in range(3))
        rhs.extents[COLUMN], rhs.extents[TERM] = self.space.stored * self.word, self._words(rhs.extents[TERM])
        self.spans = {} if which is None else {BATCH: Span(which, 1, -1)}
        for frame, axis in ((lhs, 0), (out, 0)):
            self._bind(frame, ROW, rows, self.rows, row, axis)
        if self.together > 1:
            lhs.extents[COLUMN] = channels = self.together * self.terms
            self._bind(lhs, COLUMN, channels, channels, column, 1)
        for frame, axis in ((rhs, 0 if self.transposed else 1), (out, 1)):
            columns = self.columns * (self.word if frame is rhs else 1)
            self._bind(frame, COLUMN, frame.extents[COLUMN], columns, column, axis)
        return lhs, rhs, out

    def _bind(self, frame: Frame, coordinate: int, extent: Size, block: int, which: SSAValue, axis: int) -> None:
        first = self.b.multiply(which, self.b.position(block))
        if coordinate == ROW and self.first != 0:
            first = self.b.add(first, frame.position(self.first))
        self.spans[coordinate] = Span(first, block, axis)
        lanes = self.b.add(first, self.b.iota(block, axis, 2))
        frame.bind(coordinate, lanes, partial=not is_covered(frame, extent, block))

    def _block_of(self, down: Size, across: Size, at: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The row and column of a block: some blocks of rows go through all columns before the next ones."""
        grid = self.writer.frame()
        grid.coordinate(down * across, at)
        if self.settings.get("down", 0):
            row, column = grid.access((1, 1), (mod(d(0), down), floordiv(d(0), down))).indices
            return grid.position(row), grid.position(column)
        group = self.settings.get("group", GROUP)
        if not isinstance(down, int) or down % group or across == 1:
            group = next((g for g in (4, 2) if isinstance(down, int) and down % g == 0 and across != 1), 1)
        share = group * across
        row = floordiv(d(0), share) * group + mod(d(0), group)
        column = floordiv(mod(d(0), share), group)
        row, column = grid.access((1, 1), (row, column)).indices
        return grid.position(row), grid.position(column)

    def _step(self, grid: Sequence[Size]) -> Step:
        """The kernel of products, done."""
        warps = self.settings.get("warps", 8 if self.rows * self.columns >= 128 * 128 else 4)
        return self.writer.step(grid, warps, self.settings.get("stages", 3))

    # ---- the sum of products ----

    def _products(
        self, lhs: Frame, rhs: Frame, bounds: tuple[SSAValue, SSAValue] | None, before: SSAValue | None = None,
        *, fills: bool = False,
    ) -> SSAValue:  # fmt: skip
        """The sum over the terms within bounds, added to what was summed before; None for all of them at once.

        `fills` says that tiles fill the bounds.
        """
        b, terms = self.b, rhs.extents[TERM]
        sides = [self._side(lhs), self._side(rhs)]
        acc = before or b.constant(0, self.sum, (self.rows, self.columns))

        def turn(start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            factors: list[SSAValue] = []
            for n, (side, frame) in enumerate(zip(sides, (lhs, rhs), strict=True)):
                axis = 1 if n == 0 or self.transposed else 0
                word = self.word if frame is lhs else 1
                lanes = b.iota(self.terms * word, axis, 2)
                first = start if word == 1 else b.multiply(start, b.position(word))
                frame.bind(TERM, b.add(first, lanes), partial=not (fills or is_covered(frame, terms, self.terms)))
                if isinstance(side, BoxElements):
                    side.spans = {**self.spans, TERM: Span(start, self.terms, axis)}
                with side.scope():
                    factors.append(self._factor(side, frame, n))
            return [b.dot(factors[0], factors[1], carried[0], self.precision, self.together, words=self.word > 1)]

        (found,) = turn(b.position(0), [acc]) if bounds is None else b.loop(*bounds, self.terms, [acc], turn)
        return found

    def _side(self, frame: Frame) -> Elements:
        """The elements of an operand, in boxes where that is chosen."""
        return (BoxElements if self.settings.get("boxes", 0) else Elements)(frame, self.writer.inputs)

    def _factor(self, side: Elements, frame: Frame, n: int) -> SSAValue:
        """A tile of an operand, 0 where there is no element."""
        b, op = self.b, self.op
        term = d(TERM)
        if n == 1 and self.word > 1:
            # A row of the right operand's tile has words: the terms of the first column, then those of the next.
            term = term * self.word + mod(d(COLUMN), self.word)
        if self.window is None:
            ranged = delinearize(term, ranges_of(op, 0, n))
        else:
            *across, channel = delinearize(term, self.run_sizes)
            ranged = (channel, *delinearize(d(WINDOW), self.window), *across)[self.channelwise :]
        try:
            read = self._side_by_side(side, ranged) if n == 0 and self.together > 1 else self._read(side, n, ranged)
            found = side(op.operands[n], read)
        except LookupError as error:
            raise UnsupportedError(
                f"operand {n} of {op.name} does not come in rows and columns", why=str(error)
            ) from error
        transposed = n == 1 and self.transposed
        shape = (self.rows, self.together * self.terms * self.word)
        if n == 1:
            shape = (self.terms, self.columns * self.word)[:: -1 if transposed else 1]
        mask = None if _is_box(found) else frame.mask(read.conditions, (d(TERM).text,))
        if mask is not None and not _parts(mask) <= _loaded_where(found):
            found = b.apply("select", mask, found, b.constant(0, element(found)))
        found = b.broadcast(found, shape)
        return b.transpose(found) if transposed else found

    def _read(self, side: Elements, n: int, ranged: Sequence[Size]) -> IndexingMap:
        """The element of an operand that a term of a result's element reads."""
        frame, indices = side.frame, self.space.indices
        if n == 1 and self.word > 1:
            indices = tuple([substitute(i, {d(COLUMN).text: floordiv(d(COLUMN), self.word)}) for i in indices])
        return side.reads(self.op, 0, n, frame.access(shape_of(self.op.results[0]), indices), ranged)

    def _side_by_side(self, side: Elements, ranged: Sequence[Size]) -> IndexingMap:
        """The element of the left operand in a column of several groups, whose channels lie one after the other."""
        assert isinstance(self.op, hlo.ConvolutionOp)
        frame, feature = side.frame, self.op.dimensions.output_feature_dimension
        first = [index - d(COLUMN) if k == feature else index for k, index in enumerate(self.space.indices)]
        ranged = ranged if self.channelwise else (0, *ranged[1:])
        read = side.reads(self.op, 0, 0, frame.access(shape_of(self.op.results[0]), first), ranged)
        channel = self.op.dimensions.input_feature_dimension
        indices = [index + d(COLUMN) if k == channel else index for k, index in enumerate(read.indices)]
        return frame.simplify(replace(read, indices=tuple(indices)))

    # ---- results ----

    def _store(self, frame: Frame, acc: SSAValue) -> None:
        op, result = self.op, self.op.results[0]
        access = frame.access(shape_of(result), self.space.indices)
        elements = self.writer.elements(frame)
        elements.know(result, access, convert(self.b, op, acc, dtype_text(result.type)))
        places = self._places(elements)
        for j, value in enumerate(self.writer.values):
            found: IndexingMap = places[value]
            self.writer.store(j, frame, found, elements(value, found))


def _together(op: Operation, space: Space, count: int) -> Space:
    """The iteration space of a convolution in which so many groups of features are one."""
    assert isinstance(op, hlo.ConvolutionOp)
    batch, rows, columns, terms = space.extents
    indices = [*space.indices]
    feature = op.dimensions.output_feature_dimension
    columns = columns * count
    batch = floordiv(batch, count)
    indices[feature] = (0 if batch == 1 else d(BATCH) * columns) + d(COLUMN)
    return Space((batch, rows, columns, terms), tuple(indices), columns)


def _window_of(op: Operation) -> tuple[Size, ...] | None:
    """The sizes of a convolution's window; None for what has none, or no channels."""
    return terms_of(op)[1:] or None if isinstance(op, hlo.ConvolutionOp) else None


def _fitting(extent: Size, most: int, least: int = 16) -> int:
    """A block for an extent."""
    return max(least, min(most, power_of_two(extent))) if isinstance(extent, int) else most


def _is_box(value: SSAValue) -> bool:
    """Whether a tile is loaded as a box, and so is 0 wherever there is no element."""
    while isinstance(value.owner, tile.CastOp | tile.BroadcastOp | tile.ReshapeOp | tile.TransposeOp):
        value = value.owner.operand
    return isinstance(value.owner, LoadBoxOp)


def _loaded_where(value: SSAValue) -> set[SSAValue]:
    """The masks outside of which a tile is 0, because it is loaded."""
    while isinstance(value.owner, tile.CastOp | tile.BroadcastOp):
        value = value.owner.operand
    mask = value.owner.mask if isinstance(value.owner, tile.LoadOp) else None
    return set() if mask is None else _parts(mask)


def _parts(mask: SSAValue) -> set[SSAValue]:
    """The masks of which one is the conjunction."""
    op = mask.owner
    if isinstance(op, tile.ElementwiseOp) and op.function_name == "and":
        return {part for operand in op.operands for part in _parts(operand)}
    return {mask}
