"""How kernels are cut for processors: sizes of tiles, by kind of kernel and width of vectors.

What may differ between processors (rows and columns of products, blocks of elements) changes no bit of a result. What
decides the order of a sum is the same for all: reductions take 16 elements of a row at a time, or 4 of rows that
lie across, products their terms in ascending order, attention 64 keys at a time (and a power of two of those that are
left over); sums are never cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.ir import BlockArgument, SSAValue

from gcomp.analysis.fusion.rows import is_inner, longest_row
from gcomp.analysis.indexing import reads, stride_along
from gcomp.analysis.machines import KEPT_ROW
from gcomp.analysis.winograd import BLOCK
from gcomp.dims import Ranges, Size, floordiv, product
from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.choices import Choice, Reason, fewest
from gcomp.lowering.llvm.dots import REGISTERS, SUMS, block_of
from gcomp.lowering.tiles.elements.folding import terms_of
from gcomp.lowering.tiles.schedules.contraction import FEW, ROW, TERM, Contraction, Space, space_of
from gcomp.lowering.tiles.schedules.kernel import Settings, power_of_two
from gcomp.lowering.tiles.schedules.limits import columns_of
from gcomp.lowering.tiles.schedules.ordering import problem_of
from gcomp.lowering.tiles.schedules.reduction import repeated_flops
from gcomp.lowering.tiles.schedules.top_k import is_selected
from gcomp.lowering.tiles.tile import BYTES, WORD

LANES = 16
"""Elements of a row that a reduction takes at a time, on every processor."""
TERMS = 512
"""Terms of a sum of products for which a tile has columns, at most."""
SIDE_BY_SIDE = {"steps": 1, "across": 64}
"""Scans along what lies apart in memory: neighbours go side by side, one step after the other."""
SELECTED = 512
"""Elements of a row that are kept as others are looked through, at most; others are sorted."""
MERGED = 16
"""Elements that are sorted by counting, before they are merged."""
KEYS = 64
"""Keys that attention takes at a time."""
LATENCY = 5
"""Cycles after which a sum may be added to again."""
AFTER, BESIDE, CROWDED = 2, 16, 8
"""Cycles for a vector of sums that what follows from it takes, how many vectors of sums are computed beside products of
the next block, and the cycles of each that is more."""
MOST_ROWS, MOST_VECTORS = 12, 8
"""Rows, and vectors of a row, of a block of sums."""
KEPT_ROWS = 4096
"""Elements of several rows that are kept together, at most."""
LEAST_REPEATED = 4
"""Flops of an element that are done anew in each pass over a row that is not kept, at least, where it is kept."""
TURNED = 16
"""Rows of a tile are a multiple of these where columns become rows: as many are turned together."""
LEAST_WHOLE = 8
"""Of so many rows, one at most may be nobody's for that."""
SHARED = 128
"""Rows of a tile, at most, that share a tile of the right operand."""
KEPT = 24 << 10
"""Bytes of a panel that the nearest cache keeps while blocks of sums are added to, beside what these read and write."""
WEIGHTS = 128 << 10
"""Bytes of a matrix of weights that the second cache keeps beside rows and results."""
AHEAD = 256 << 10
"""Bytes of rows that are fetched as others are read, at most, into the second cache."""
LARGE = 256 << 10
"""Bytes of a panel from which on its terms should be read once for many rows."""
LEAST_BLOCKS = 4
"""Blocks of sums of a tile for which a panel's terms are kept, at least."""
LEAST_TERMS = 33
"""Terms of sums that are written to memory between parts of a panel, at least: of fewer, that is much of the work."""
PROGRAMS = 16
"""Programs of a product, so that threads get even shares of them, where it has as many blocks."""
BETWEEN = 1.5
"""Cycles of a term that are spent between chains of terms, and to count them."""
VALUES = 256 << 10
"""Bytes that a block of tiles takes at all points together, at most: the second cache keeps them beside weights."""
STACK = 512 << 10
"""Bytes that values and products of a block of tiles take on the stack, at most."""
LEAST_PANELS = 4
"""Panels of weights for which a block of tiles is evaluated at points, at least: beside one, that is a tenth more."""
LEAST_TOGETHER = 4
"""Channels side by side, at least, of a window that reads each by itself."""
MANY = 64
"""Rows of a product that are known at the call, and at least so many: what is left over of blocks does not count."""
PAGE = 4096
"""Bytes after which addresses share their places in a cache."""


def settings_for(launch: LaunchOp, ranges: Ranges, bits: int) -> Settings:
    """The settings in which a launch's kernels are made for vectors of so many bits."""
    return Settings(choose(launch, ranges, bits).values)


def choose(launch: LaunchOp, ranges: Ranges, bits: int) -> Choice:
    """The settings of a launch's kernels for vectors of so many bits, the algorithm that these make, and why."""
    row = _ROWS.get(launch.kind_name)
    found = Choice({}, launch.kind_name) if row is None else row(launch, ranges, bits // 32)
    return replace(found, values={"exact": 1, "pieces": 1, **found.values})


def _loop(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    values = {"block": 4 * lanes, "along": 1, "lanes": lanes, "rows": lanes, "columns": lanes}
    return Choice({**values, "borders": 1, "pixels": 8}, "elements one by one")


def _elements(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    """Kernels of single elements, each of which is much work."""
    return Choice({"block": 2 * lanes}, _BY_KIND.get(launch.kind_name, launch.kind_name))


def _reduction(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    """Chains of sums go side by side: 16 of a row where its elements are neighbours, else 4 of each of many rows."""
    op = next((op for op in launch.block.ops if isinstance(op, hlo.ReduceOp)), None)
    if op is None or is_inner(op):
        looped = Choice({"persistent": LANES, "columns": LANES, "rows": 4, "chains": LANES}, "row reduction")
        longest, again = longest_row(launch.block.ops), repeated_flops(launch)
        if longest is None or longest > KEPT_ROW or again < LEAST_REPEATED:
            why = f"a pass does {again} flops of an element again, and rows are kept from {LEAST_REPEATED} on"
            if again >= LEAST_REPEATED:
                why = f"a row does not stay in the nearest cache: it keeps {KEPT_ROW:,} elements"
            return looped.also({}, Reason("rows", f"gone over in chunks of {LANES} for each reduction", why))
        rows = max(1, min(4, KEPT_ROWS // max(1, longest)))
        why = f"{again} flops of an element would be done again in a pass over a row that is not kept"
        kept = Reason("rows", f"{rows} at a time on the stack, read once", why)
        return looped.also({"persistent": KEPT_ROW, "rows": rows}, kept, algorithm="row reduction, rows kept")
    # Numbers that are unpacked from bytes take several ops, each of which takes registers for a whole tile.
    vectors = 2 if {"i8", "ui8"} & {dtype_text(v.type) for v in launch.operands} else 4
    why = "neighbours in memory are of different sums"
    return Choice(
        {"persistent": 4, "columns": 4, "rows": vectors * lanes, "across": 1}, "reduction across rows",
        (Reason("sums", f"{vectors * lanes} side by side", why),),
    )  # fmt: skip


def _products(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    """Blocks of sums that registers hold; rows and columns as few as there are."""
    found = space_of(launch)
    if found is None:
        return Choice({"block": 2 * lanes}, "sums element by element")
    op, space = found
    choice = _cut(launch, op, space, ranges, lanes)
    rows = space.extents[ROW]
    if isinstance(op, hlo.ConvolutionOp) or isinstance(rows, int) or (ranges.bounds(rows)[0] or 0) >= MANY:
        return choice
    batch, _, columns, terms = space.extents
    single = Space((batch, 1, columns, terms), space.indices, space.stored)
    few = {FEW + name: n for name, n in _cut(launch, op, single, ranges, lanes).values.items()}
    return choice.also(few, Reason("rows left over of blocks", "one by one", "their number is known at the call"))


def _cut(launch: LaunchOp, op: Contraction, space: Space, ranges: Ranges, lanes: int) -> Choice:
    """How a product of these extents is cut."""
    summed = op.dimensions.rhs_contracting_dimensions if isinstance(op, hlo.DotGeneralOp) else ()
    if _has_words(op):
        found = _columns_in_panels(launch, op, _in_words(space), ranges, lanes)
        return found.also({"words": 1}, algorithm=f"{found.algorithm}, of words of four bytes")
    if _are_neighbours(launch, op.rhs, summed, ranges):
        return _transposed(space, lanes)
    if isinstance(op, hlo.ConvolutionOp) and (grouped := _grouped(op, space, lanes)) is not None:
        return grouped
    return _columns_in_panels(launch, op, space, ranges, lanes)


def _in_words(space: Space) -> Space:
    """The space whose terms are words."""
    *others, terms = space.extents
    return replace(space, extents=(*others, floordiv(terms, WORD)))  # type: ignore[arg-type]


def _columns_in_panels(launch: LaunchOp, op: Contraction, space: Space, ranges: Ranges, lanes: int) -> Choice:
    """What a product does whose columns on the right are neighbours, or words of them."""
    if (blocks := _in_blocks(launch, op, space, ranges, lanes)) is not None:
        return blocks
    word = WORD if _has_words(op) else 1
    wide = isinstance(op, hlo.ConvolutionOp) and len(terms_of(op)) > 1
    runs = isinstance(op, hlo.ConvolutionOp) and wide and _has_runs(op)
    extent = space.extents[TERM]
    if wide:
        extent = floordiv(product([terms_of(op)[0], *(terms_of(op)[-1:] if runs else ())]), word)
    if isinstance(op, hlo.ConvolutionOp) and runs and (large := _large_window(op, space, extent, lanes)) is not None:
        return large
    rows, columns, sums = _sums(space, lanes, panel_of(op))
    terms = _terms(extent, _lies(op.lhs) and bit_width(dtype_text(op.lhs.type)) * word == 32)
    kept, width = _is_kept(op), "all rows before the next columns" if _is_kept(op) else "blocks of rows share columns"
    why = "a cache keeps the columns of a block" if kept else "rows of the right operand are pages apart"
    values = {"rows": rows, "columns": columns, "terms": terms, "down": kept, "windows": int(wide), "runs": int(runs)}
    return Choice(values, _algorithm(op, space, wide, runs), (sums, Reason("order", width, why)))


def _algorithm(op: Contraction, space: Space, wide: bool, runs: bool) -> str:
    """What computes a product block by block is called."""
    packed = "packed " if panel_of(op) else ""
    if not isinstance(op, hlo.ConvolutionOp):
        return f"{packed}matrix-vector product" if space.extents[ROW] == 1 else f"{packed}product"
    if not wide:
        return f"{packed}product of pixels (1x1 convolution)"
    return f"{packed}direct convolution, {'rows' if runs else 'points'} of the window in order"


def _grouped(op: hlo.ConvolutionOp, space: Space, lanes: int) -> Choice | None:
    """Groups of few features side by side in a vector, each of which reads as many channels: a vector of these is
    loaded for each pixel, and a channel of each group goes to the lanes of its features. Groups of one feature are
    channels by themselves, under windows that are too large to be sums of shifted products.

    None where groups fill vectors, or do not fit one.
    """
    groups, rows, columns, _ = space.extents
    if not op.is_channels_last or op.value("batch_group_count") != 1 or groups == 1:
        return None
    channels = shape_of(op.rhs)[op.dimension_numbers.data.kernel_input_feature_dimension]
    if not isinstance(columns, int) or columns not in (1, 2, 4, 8) or columns >= lanes or channels != columns:
        return None
    if len(terms_of(op)) == (0 if columns == 1 else 1):  # a window of one point
        return None
    together = lanes // columns
    while columns == 1 and groups % together and together > LEAST_TOGETHER:
        together //= 2
    if groups % together or dtype_text(op.lhs.type) != "f32":
        return None
    most = min(rows, MOST_ROWS) if isinstance(rows, int) else MOST_ROWS
    # Pixels of one row are equally far from each other.
    whole = shape_of(op.result)[-2] if columns == 1 else rows
    even = next((n for n in range(most, MOST_ROWS // 2, -1) if isinstance(whole, int) and whole % n == 0), most)
    width = together * columns
    values = {"rows": even, "columns": width, "terms": columns, "together": together, "windows": 1, "down": 1}
    side = Reason("groups", f"{together} side by side in a vector", f"each has {columns} features of {lanes} lanes")
    return Choice(values, "direct convolution, groups side by side", (side,))


def _in_blocks(launch: LaunchOp, op: Contraction, space: Space, ranges: Ranges, lanes: int) -> Choice | None:
    """Tiles of many blocks of sums: they share terms of a panel, which the nearest cache keeps for all of them.

    None where a tile is one block, or where the rows on the left are not read where they lie.
    """
    _, rows, columns, terms = space.extents
    panel = panel_of(op)
    if not isinstance(op, hlo.DotGeneralOp) or not _lies(op.lhs) or not panel % lanes == 0 < panel:
        return None
    if not isinstance(rows, int) or not isinstance(columns, int) or not isinstance(terms, int) or terms < LEAST_TERMS:
        return None
    if not _has_words(op) and {dtype_text(v.type) for v in (op.lhs, op.rhs)} != {"f32"}:
        return None
    if not _are_neighbours(launch, op.lhs, op.dimensions.lhs_contracting_dimensions, ranges):
        return None
    block, _, sums = _sums(space, lanes, panel, alone=False)
    blocks = -(-rows // block)
    if blocks < LEAST_BLOCKS:
        return None
    wanted = min(-(-PROGRAMS // -(-columns // panel)), blocks // LEAST_BLOCKS)
    kept = KEPT // (4 * panel)
    # Weights that the second cache keeps are read again for each tile of rows, so that its results are whole lines.
    order, why = {"down": 1}, "so that each panel comes from memory once"
    if 4 * columns * terms <= WEIGHTS:
        order, why = {"down": 0, "group": 1}, "the second cache keeps all weights: results are whole lines"
    terms = terms if terms <= kept else next((n for n in range(kept, kept // 2, -1) if terms % n == 0), kept)
    shared = _shared_rows(rows, block, wanted)
    if _is_turned(launch, op):
        whole = min(range(SHARED // 2, SHARED + 1, TURNED), key=lambda n: (-(-rows // n) * n, -n))
        shared = whole if -rows % whole <= rows // LEAST_WHOLE else shared
    first = Reason("order", "rows first" if order["down"] else "columns first", why)
    values = {"rows": shared, "columns": panel, "terms": terms, **order}
    rows, vectors = block_of(shared, panel // lanes, SUMS[lanes])
    inner = Reason("sums in registers", f"{rows} x {vectors * lanes}", "the most products for what is loaded")
    because = (replace(sums, what="rows of whole blocks of"), _sharing(shared, block, terms, panel), inner, first)
    return Choice(values, "packed product, many blocks of a panel", because)


def _is_turned(launch: LaunchOp, op: Contraction) -> bool:
    """Whether elements of a column of a product, and not of a row, are neighbours in a result."""
    return any(isinstance(after, hlo.TransposeOp) for after in launch.block.ops if not after.is_before_in_block(op))


def _sharing(rows: int, block: int, terms: int, panel: int) -> Reason:
    """Why a tile has many blocks of sums."""
    size = f"{4 * panel * terms / 1024:.0f} KB in the nearest cache"
    return Reason("tile", f"{rows} rows", f"its {-(-rows // block)} blocks share {terms} terms of a panel, {size}")


def _large_window(op: hlo.ConvolutionOp, space: Space, run: Size, lanes: int) -> Choice | None:
    """Tiles of many blocks for a window whose panel the second cache does not keep beside others: each of its terms
    comes from far once, while all blocks are added to.

    None for smaller windows, and where rows are not read where they lie.
    """
    batch, rows, _, terms = space.extents
    panel = panel_of(op)
    if not panel % lanes == 0 < panel or not all(isinstance(n, int) for n in (rows, terms, run)):
        return None
    rows, terms, run = cast("tuple[int, int, int]", (rows, terms, run))
    # Of one panel: blocks of several would read all of these for each of their few rows.
    block, width, sums = _sums(replace(space, extents=(batch, rows, panel, terms)), lanes, panel)
    if width != panel or 4 * panel * terms < LARGE or not _lies(op.lhs) or -(-rows // block) < LEAST_BLOCKS:
        return None
    kept = KEPT // (4 * panel)
    part = next((n for n in range(min(kept, run), kept // 2, -1) if run % n == 0), 0)
    if not part:
        return None
    shared = _shared_rows(rows, block)
    values = {"rows": shared, "columns": panel, "terms": part, "down": 1, "windows": 1, "runs": 1}
    because = (_sharing(shared, block, part, panel), sums)
    return Choice(values, "packed direct convolution, many blocks of a panel", because)


def _shared_rows(rows: int, block: int, wanted: int = 1) -> int:
    """Rows of a tile of whole blocks, at most `SHARED`: about as many in each tile, of which so many are `wanted`."""
    blocks = -(-rows // block)
    tiles = max(-(-blocks // (SHARED // block)), wanted)
    return -(-blocks // tiles) * block


def _has_runs(op: hlo.ConvolutionOp) -> bool:
    """Whether the elements that a row of the window reads are neighbours: channels last, no padding, no dilation.

    A window of one column has no rows: its terms are those of its positions.
    """
    window = op.window()
    return (
        shape_of(op.rhs)[op.dimensions.kernel_spatial_dimensions[-1]] != 1
        and op.dimensions.input_feature_dimension == len(shape_of(op.lhs)) - 1
        and op.dimensions.input_spatial_dimensions[-1] == len(shape_of(op.lhs)) - 2
        and op.value("feature_group_count") == 1
        and window["padding"][-1] == (0, 0)
        and window["lhs_dilation"][-1] == window["rhs_dilation"][-1] == 1
        and not window["window_reversal"][-1]
    )


def _are_neighbours(launch: LaunchOp, value: SSAValue, dimensions: Sequence[int], ranges: Ranges) -> bool:
    """Whether elements along one of these dimensions of a value are neighbours in memory."""
    found = [m for maps in reads(value, launch.block.args, ranges).values() for m in maps]
    return any(not m.ranges and stride_along(m, k, ranges) == 1 for m in found for k in dimensions)


def _transposed(space: Space, lanes: int) -> Choice:
    """Tiles of many rows share what is transposed for them: they have a whole number of blocks that registers hold."""
    _, rows, columns, terms = space.extents
    because = [Reason("right operand", "transposed in registers", "elements of a column are neighbours in memory")]
    if rows == 1:
        # As many streams through memory as lanes; whole rows are one stream, of which the next are fetched.
        block, columns, most = 1, lanes, 8 * lanes
        if isinstance(terms, int) and 4 * columns * terms <= AHEAD:
            most = max(most, terms)
    else:
        block, width, sums = _sums(space, lanes, 0)
        columns = max(width, lanes)
        most = KEPT // (4 * columns)
        because.append(sums)
    if isinstance(terms, int):
        terms = next((n for n in range(most - most % lanes, 0, -lanes) if terms % n == 0), min(terms, 8 * lanes))
    else:
        terms = 2 * LANES
    shared = _shared_rows(rows, block) if isinstance(rows, int) else block
    values = {"rows": shared, "columns": columns, "terms": terms, "down": 1, "transposed": 1}
    name = "matrix-vector product by columns" if rows == 1 else "product by columns"
    return Choice(values, name, tuple(because))


def _is_kept(op: hlo.DotOp | hlo.DotGeneralOp | hlo.ConvolutionOp) -> int:
    """Whether a cache keeps the columns of the right operand that a block reads: their rows are not pages apart."""
    shape = shape_of(op.rhs)
    pitch = product([panel_of(op) or shape[-1], bit_width(dtype_text(op.rhs.type))]) if shape else 0
    return int(not isinstance(pitch, int) or pitch % (8 * PAGE) != 0)


def _lies(value: SSAValue) -> bool:
    """Whether elements are read where they lie in memory, in whatever shape."""
    while isinstance(value.owner, hlo.ReshapeOp):
        value = value.owner.operand
    return isinstance(value, BlockArgument)


def stored_operand(op: Contraction) -> SSAValue:
    """The right operand as it lies in memory, where a convolution sees a window."""
    value = op.rhs
    while isinstance(op, hlo.ConvolutionOp) and isinstance(value.owner, hlo.ReshapeOp | hlo.TransposeOp):
        value = value.owner.operands[0]
    return value


def _has_words(op: Contraction) -> bool:
    """Whether the right operand lies in panels of words: `pack-dot-weights` and `pack-convolution-weights` say so."""
    value = stored_operand(op)
    shape = shape_of(value)
    if tuple(dtype_text(v.type) for v in (op.lhs, value, op.result)) != BYTES or not isinstance(value, BlockArgument):
        return False
    if shape[-1:] != (WORD,):
        return False
    if isinstance(op, hlo.ConvolutionOp):
        return len(shape) == len(shape_of(op.rhs)) + 2
    return isinstance(op, hlo.DotGeneralOp) and len(shape) == 4 and (op.dimensions.rhs_contracting_dimensions == (1, 3))


def panel_of(op: hlo.DotOp | hlo.DotGeneralOp | hlo.ConvolutionOp) -> int:
    """Columns of the right operand that lie together, where it lies in panels; 0 where it does not."""
    if _has_words(op):
        panel = shape_of(stored_operand(op))[-2]
        return panel if isinstance(panel, int) else 0
    shape = shape_of(stored_operand(op))
    panel = shape[-1] if len(shape) == (3 if isinstance(op, hlo.DotGeneralOp) else len(shape_of(op.rhs)) + 1) else 0
    return panel if isinstance(panel, int) else 0


def _sums(space: Space, lanes: int, panel: int, *, alone: bool = True) -> tuple[int, int, Reason]:
    """Rows and columns of a block of sums: those in which all sums take the fewest cycles, by a model of a processor;
    and the reason.

    It multiplies two vectors in a cycle, loads two, has a product four cycles later, and one more where it waits for
    memory; counting the terms takes half a cycle. A block that reaches beyond the last row or column computes what
    nobody needs. Where a block is a program (`alone`), what follows from its sums takes cycles, too: more of those that
    are too many to be computed beside the next block's products.
    """
    batch, rows, columns, terms = space.extents
    most = min(rows, MOST_ROWS) if isinstance(rows, int) else MOST_ROWS
    if isinstance(columns, int) and columns < lanes:
        narrow = power_of_two(columns)
        why = f"there are {columns} columns, and a vector has {lanes}"
        return most, narrow, Reason("sums in registers", f"{most} x {narrow}", why)
    best: dict[tuple[int, int], float] = {}
    beyond_panels: dict[tuple[int, int], float] = {}
    """Where a load beyond the last panel may leave the memory that is mapped: the processor takes long then."""
    for vectors in range(1, MOST_VECTORS + 1):
        width = vectors * lanes
        if panel % lanes == 0 and panel % width and width % panel:
            continue  # what is no whole vectors fits no block, and is one panel or a batch's matrix
        leaves = 0 < panel < width and isinstance(columns, int) and -(-columns // panel) % -(-width // panel)
        across = -(-columns // width) if isinstance(columns, int) else 1 / width
        for count in range(1, min(most, SUMS[lanes] // vectors) + 1):
            if count > 1 and (count + 1) * vectors + 1 > REGISTERS[lanes]:
                continue  # a vector that is used in one row alone is taken from memory
            down = -(-rows // count) if isinstance(rows, int) else 1 / count
            cycles = max(count * vectors / 2, LATENCY, (count + vectors) / 2 + 0.25) + 0.5
            if alone and isinstance(terms, int):
                sums = count * vectors
                cycles += (AFTER * sums + CROWDED * max(0, sums - BESIDE)) / max(terms, 1)
            (beyond_panels if leaves else best)[count, width] = across * down * cycles
    best = best or beyond_panels
    beyond = {block: -rows % block[0] if isinstance(rows, int) else 0 for block in best}
    turns = batch * terms if all(isinstance(n, int) for n in space.extents) else 0
    found, reason = fewest(
        "sums in registers", best, lambda block: f"{block[0]} x {block[1]}",
        lambda block: (beyond[block], -block[0] * block[1]), turns if isinstance(turns, int) else 0,
    )  # fmt: skip
    return *found, reason


def _terms(extent: Size, is_loaded: bool) -> int:
    """Terms of a tile: as many as cover the sum without a rest, where that is not too few.

    `is_loaded` says that the left operand's elements are read where they lie, so that a tile of any size will do.
    """
    if not isinstance(extent, int):
        return 2 * LANES
    if is_loaded:
        found = next((terms for terms in range(TERMS, LANES, -1) if extent % terms == 0), 0)
        return extent if extent <= TERMS else found or TERMS
    even = extent & -extent
    if even >= LANES:
        return min(even, TERMS)
    return even if even >= LANES // 2 and extent <= 4 * LANES else min(power_of_two(extent), 2 * LANES)


def _attention(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    op = next(op for op in launch.block.ops if isinstance(op, hlo.CompositeOp))
    transposed = _are_neighbours(launch, op.operands[1], [len(shape_of(op.operands[1])) - 1], ranges)
    queries, reason = _queries(shape_of(op.operands[0])[-2])
    values = {"queries": queries, "keys": KEYS, "least": LANES, "splits": 1, "transposed": int(transposed)}
    keys = Reason("keys", f"{KEYS} at a time", "that is the order of the sums, the same everywhere")
    return Choice({**values, "fill": lanes}, "flash attention", (reason, keys))


def _winograd(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    """Blocks of tiles whose values the second cache keeps; few of them leave panels to other programs."""
    op = next(op for op in launch.block.ops if isinstance(op, hlo.CompositeOp))
    m: int = op.attributes_of()["tile"]
    count, rows, columns, channels = shape_of(op.operands[0])
    panels, points, depth, width = cast("tuple[int, ...]", shape_of(op.operands[1]))
    tiles = product([count, floordiv(rows - 2, m), floordiv(columns - 2, m)])
    held = max(1, STACK // (4 * points * (depth + width)))
    block, reason = _rows_of_tiles(tiles, max(1, width // lanes), lanes, held, points * panels * depth)
    values = {"rows": block, "lanes": lanes, "panels": panels}
    found = Choice(values, f"Winograd F({m}x{m}, 3x3)", (reason,))
    if not isinstance(channels, int):
        return found
    most = max(1, VALUES // (4 * points * channels * block))
    if not isinstance(tiles, int):
        shared = max(1, min(most, STACK // (4 * points * (depth + width) * block)))
        why = "the second cache keeps their values at all points; the call decides how many blocks there are"
        return found.also({"blocks": shared}, Reason("tile", f"{shared} blocks at most", why))
    blocks = -(-tiles // block)
    programs = -(-blocks // most)
    if programs < PROGRAMS:
        why = f"{programs} programs would give threads uneven shares"
        panels = max(LEAST_PANELS, -(-panels * programs // PROGRAMS))
        found = found.also({"panels": panels}, Reason("panels of a program", f"{panels}", why))
    shared = -(-blocks // programs)
    size = 4 * points * channels * block * shared / 1024
    tile = Reason("tile", f"{shared} blocks", f"the second cache keeps their {size:,.0f} KB of values at all points")
    return found.also({"blocks": shared}, tile)


def _rows_of_tiles(tiles: Size, vectors: int, lanes: int, held: int, turns: int) -> tuple[int, Reason]:
    """Tiles of a block of sums, of so many that are `held`: those in which all sums take the fewest cycles, and what is
    between chains of terms; and the reason."""
    most = max(1, min(MOST_ROWS, SUMS[lanes] // vectors, held))
    if not isinstance(tiles, int):
        most = min(most, BLOCK)
        return most, Reason("tiles in registers", str(most), "their number is known at the call: few are left over")
    costs = {n: -(-tiles // n) * (max(n * vectors / 2, LATENCY) + BETWEEN) for n in range(1, most + 1)}
    return fewest("tiles in registers", costs, str, lambda rows: -rows, turns)


def _queries(extent: Size) -> tuple[int, Reason]:
    """Queries of a tile, which share keys that are transposed: that is as much work as eight queries are."""
    if not isinstance(extent, int):
        return 16, Reason("queries", "16", "their number is known at the call")
    return fewest("queries", {n: -(-extent // n) * (n + 8) for n in (32, 16, 8, 4, 2, 1)}, str, lambda n: -n)


def _window(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    return _elements(launch, ranges, lanes).also({**SIDE_BY_SIDE, "lanes": lanes})


def _scatter(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    return _elements(launch, ranges, lanes).also({"in_turn": 1})


def _sort(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    problem = problem_of(launch)[0]
    algorithm = "selection" if is_selected(problem, ranges, SELECTED) else "merge sort"
    if columns_of(problem, ranges):
        algorithm = "sort of what a limit leaves"
    return Choice({"direct": 2 * MERGED, "merge": MERGED, "select": SELECTED, "limit": 1}, algorithm)


def _scan(launch: LaunchOp, ranges: Ranges, lanes: int) -> Choice:
    return Choice({"columns": KEYS, "rows": 1, **SIDE_BY_SIDE}, "scan")


_BY_KIND = {"window": "windows", "scatter": "scatter", "library": "library routine"}
"""Kind of kernel -> what computes its elements is called."""


_ROWS: Mapping[str, Callable[[LaunchOp, Ranges, int], Choice]] = {
    "loop": _loop,
    "window": _window,
    "scatter": _scatter,
    "library": _elements,
    "reduction": _reduction,
    "matmul": _products,
    "convolution": _products,
    "attention": _attention,
    "winograd": _winograd,
    "sort": _sort,
    "scan": _scan,
}
"""Kind of kernel -> its choices; each schedule has defaults for what is not said."""

__all__ = ["choose", "panel_of", "settings_for", "stored_operand"]
