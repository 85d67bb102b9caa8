"""Matrix products and convolutions on matrix units, with what comes before and after them fused in.

Both are sums of products over `k` of elements that belong to a row `m` or a column `n` of the result; where these lie
is what the indexing maps say, so that a convolution is an implicit matrix product whose window and padding are index
arithmetic and masks. A program computes a block of the result; blocks that share rows run after each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Ranges, Size, floordiv, mod, product
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.triton import tile
from gcomp.lowering.triton.elements import Elements
from gcomp.lowering.triton.elements.elementwise import convert
from gcomp.lowering.triton.elements.folding import ranges_of, sum_type, terms_of
from gcomp.lowering.triton.frames import Frame, delinearized
from gcomp.lowering.triton.schedules.kernel import KernelWriter, Scheduled, Settings, blocks_of, covered, power_of_two
from gcomp.lowering.triton.schedules.loop import flat
from gcomp.lowering.triton.schedules.relations import related
from gcomp.lowering.triton.tile import element

UNITS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", "i8": "i32"}
"""Element types that matrix units multiply -> the type in which they add."""

BATCH, ROW, COLUMN, TERM = range(4)
"""The coordinates of the iteration space."""

GROUP = 8
"""Blocks of rows that share blocks of columns in the cache."""


@dataclass(frozen=True)
class Space:
    """The iteration space: its extents, and the result's element at a batch, a row and a column."""

    extents: tuple[Size, Size, Size, Size]
    indices: tuple[Size, ...]


Contraction = hlo.DotOp | hlo.DotGeneralOp | hlo.ConvolutionOp


def contraction(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A matmul or convolution kernel's program."""
    found = space_of(launch)
    if found is None:
        return flat(launch, name, ranges, settings)
    program = _Contraction(launch, *found, name, ranges, settings)
    return program.run() if program.reaches_all() else flat(launch, name, ranges, settings)


def space_of(launch: LaunchOp) -> tuple[Contraction, Space] | None:
    """The contraction of a launch and its iteration space; None where matrix units do not compute it."""
    op = next(op for op in launch.block.ops if role_of(op) in (Role.CONTRACTION, Role.CONVOLUTION))
    if not isinstance(op, Contraction):
        return None
    kinds = {dtype_text(v.type) for v in op.operands[:2]}
    space = _convolution_space(op) if isinstance(op, hlo.ConvolutionOp) else _dot_space(op)
    if len(kinds) != 1 or UNITS.get(*kinds) != sum_type(op) or 0 in space.extents:
        return None
    return op, space


def _dot_space(op: hlo.DotGeneralOp | hlo.DotOp) -> Space:
    """Batch dimensions, then the free ones of lhs, then those of rhs."""
    shape = shape_of(op.results[0])
    numbers, rank = op.dimensions if isinstance(op, hlo.DotGeneralOp) else None, len(shape_of(op.lhs))
    batch = 0 if numbers is None else len(numbers.lhs_batching_dimensions)
    rows = rank - 1 if numbers is None else batch + len(numbers.lhs_free(rank))
    groups = shape[:batch], shape[batch:rows], shape[rows:]
    indices = [i for c, sizes in enumerate(groups) for i in delinearized(d(c), sizes)]
    counts = [product(sizes) for sizes in groups]
    return Space((counts[0], counts[1], counts[2], product(terms_of(op))), tuple(indices))


def _convolution_space(op: hlo.ConvolutionOp) -> Space:
    """Groups of features, then images and their positions, then the features of a group."""
    numbers, shape = op.dimensions, shape_of(op.results[0])
    groups: int = op.value("feature_group_count") * op.value("batch_group_count")
    feature = numbers.output_feature_dimension
    width = floordiv(shape[feature], groups)
    rows = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    indices: list[Size] = [0] * len(shape)
    for k, index in zip(rows, delinearized(d(ROW), [shape[k] for k in rows]), strict=True):
        indices[k] = index
    indices[feature] = (d(BATCH) * width if groups > 1 else 0) + (0 if width == 1 else d(COLUMN))
    count = product(shape[k] for k in rows)
    return Space((groups, count, width, product(terms_of(op))), tuple(indices))


class _Contraction:
    def __init__(
        self, launch: LaunchOp, op: Operation, space: Space, name: str, ranges: Ranges, settings: Settings
    ) -> None:
        self.launch, self.op, self.space, self.settings = launch, op, space, settings
        self.writer = KernelWriter(launch, name, ranges)
        self.b = self.writer.b
        self.kind = dtype_text(op.operands[0].type)
        narrow = self.kind != "f32"
        _, rows, columns, terms = space.extents
        self.rows = settings.get("rows", _fitting(rows, 128))
        self.columns = settings.get("columns", _fitting(columns, 128))
        self.terms = settings.get("terms", _fitting(terms, 64 if narrow else 32, 32 if self.kind == "i8" else 16))
        self.ranges = ranges

    def run(self) -> Scheduled:
        b = self.b
        batch, rows, columns, _ = self.space.extents
        across, down = blocks_of(columns, self.columns), blocks_of(rows, self.rows)
        row, column = self._block_of(down, across)
        which = None if batch == 1 else b.program_id(1)
        lhs, rhs, out = (self._frame(which) for _ in range(3))
        for frame, axis in ((lhs, 0), (out, 0)):
            self._bind(frame, ROW, rows, self.rows, row, axis)
        for frame in (rhs, out):
            self._bind(frame, COLUMN, columns, self.columns, column, 1)
        acc = self._products(lhs, rhs)
        self._store(out, acc)
        warps = self.settings.get("warps", 8 if self.rows * self.columns >= 128 * 128 else 4)
        stages = self.settings.get("stages", 3)
        return Scheduled((self.writer.step((across * down, *([] if batch == 1 else [batch])), warps, stages),))

    def reaches_all(self) -> bool:
        """Whether the elements of all results follow from those of the product."""
        frame, result = self._frame(None), self.op.results[0]
        places = related(self.launch, frame, {result: frame.access(shape_of(result), self.space.indices)})
        return all(value in places for value in self.writer.values)

    # ---- coordinates ----

    def _frame(self, which: SSAValue | None) -> Frame:
        frame = self.writer.frame()
        for extent in self.space.extents:
            frame.declare(extent)
        if which is not None:
            frame.bind(BATCH, which)
        return frame

    def _bind(self, frame: Frame, coordinate: int, extent: Size, block: int, which: SSAValue, axis: int) -> None:
        at = self.b.add(self.b.multiply(which, self.b.position(block)), self.b.iota(block, axis, 2))
        frame.bind(coordinate, at, partial=not covered(frame, extent, block))

    def _block_of(self, down: Size, across: Size) -> tuple[SSAValue, SSAValue]:
        """The block of a program: some blocks of rows go through all columns before the next ones."""
        grid = self.writer.frame()
        grid.coordinate(down * across, self.b.program_id(0))
        group = self.settings.get("group", GROUP)
        if not isinstance(down, int) or down % group or across == 1:
            group = next((g for g in (4, 2) if isinstance(down, int) and down % g == 0 and across != 1), 1)
        share = group * across
        row = floordiv(d(0), share) * group + mod(d(0), group)
        column = floordiv(mod(d(0), share), group)
        row, column = grid.access((1, 1), (row, column)).indices
        return grid.position(row), grid.position(column)

    # ---- the sum of products ----

    def _products(self, lhs: Frame, rhs: Frame) -> SSAValue:
        b, terms = self.b, self.space.extents[TERM]
        sides = [self.writer.elements(lhs), self.writer.elements(rhs)]
        kind = UNITS[self.kind]
        acc = b.constant(0, kind, (self.rows, self.columns))
        limit = self.settings.get("single", self.terms)

        def turn(start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            factors: list[SSAValue] = []
            for n, (side, frame) in enumerate(zip(sides, (lhs, rhs), strict=True)):
                lanes = b.iota(self.terms, 1 - n, 2)
                frame.bind(TERM, b.add(start, lanes), partial=not covered(frame, terms, self.terms))
                with side.scope():
                    factors.append(self._factor(side, frame, n))
            return [b.dot(factors[0], factors[1], carried[0], "ieee")]

        if isinstance(terms, int) and terms <= limit:
            (found,) = turn(b.position(0), [acc])
        else:
            (found,) = b.loop(b.position(0), lhs.position(terms), self.terms, [acc], turn)
        return found

    def _factor(self, side: Elements, frame: Frame, n: int) -> SSAValue:
        """A tile of an operand, 0 where there is no element."""
        b, op = self.b, self.op
        ranged = delinearized(d(TERM), ranges_of(op, 0, n))
        try:
            read = side.reads(op, 0, n, frame.access(shape_of(op.results[0]), self.space.indices), ranged)
            found = side(op.operands[n], read)
        except LookupError as error:
            raise UnsupportedError(
                f"operand {n} of {op.name} does not come in rows and columns", why=str(error)
            ) from error
        shape = (self.rows, self.terms) if n == 0 else (self.terms, self.columns)
        mask = frame.mask(read.conditions, (d(TERM).text,))
        if mask is not None and not _parts(mask) <= _loaded_where(found):
            found = b.apply("select", mask, found, b.constant(0, element(found)))
        return b.broadcast(found, shape)

    # ---- results ----

    def _store(self, frame: Frame, acc: SSAValue) -> None:
        op, result = self.op, self.op.results[0]
        access = frame.access(shape_of(result), self.space.indices)
        elements = self.writer.elements(frame)
        elements.know(result, access, convert(self.b, op, acc, dtype_text(result.type)))
        places = related(self.launch, frame, {result: access})
        for j, value in enumerate(self.writer.values):
            found: IndexingMap = places[value]
            self.writer.store(j, frame, found, elements(value, found))


def _fitting(extent: Size, most: int, least: int = 16) -> int:
    """A block for an extent."""
    return max(least, min(most, power_of_two(extent))) if isinstance(extent, int) else most


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
