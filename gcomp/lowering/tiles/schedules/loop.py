"""Loops: each program computes a block of elements, one- or two-dimensional.

Elements in a row of memory go to neighbouring lanes. Where some input is read along another dimension than the outputs
are written, a two-dimensional block has lanes along both, so that both sides of a transposition move whole lines.
`along` makes blocks of the last dimensions where places in all of them would have to be divided lane by lane, of any
number of vectors of `lanes` where these fill a row. `pixels` lets blocks have several rows of the last dimension where
elements are computed from windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import lcm, prod

from xdsl.ir import SSAValue

from gcomp.analysis.fusion.groups import WINDOW
from gcomp.analysis.indexing import reads, strides
from gcomp.analysis.indexing.maps import d
from gcomp.analysis.overwriting import Overwriting
from gcomp.dims import Dim, Ranges, Size, floordiv, mod, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.build import RefusedError
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.borders import borders
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Settings,
    Step,
    blocks_of,
    is_covered,
    power_of_two,
)
from gcomp.lowering.tiles.schedules.parts import Part, Parts, by_shape, insides, pieces, shape_of_all, wholes


def loop(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A loop kernel's program; where `borders` says so, what is around its padded results apart, or its pieces."""
    if not settings.get("borders", 0):
        return computing(launch, name, ranges, settings, wholes(launch))
    if (inside := insides(launch)) is not None:
        found = computing(launch, name, ranges, settings, inside)
        return Scheduled((*found.steps, *borders(launch, name, ranges)), form=f"{found.form}, borders apart")
    if cuts := pieces(launch):
        schedules = [computing(launch, f"{name}_{n}", ranges, settings, parts) for n, parts in enumerate(cuts)]
        steps = tuple([step for found in schedules for step in found.steps])
        return Scheduled(steps, form=f"{schedules[0].form}, a kernel for each piece of a concatenation")
    return computing(launch, name, ranges, settings, wholes(launch))


def computing(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, parts: Parts) -> Scheduled:
    """The kernels that compute parts of all results."""
    groups = by_shape(parts)
    if len(groups) > 1:
        return _of_several_shapes(launch, name, ranges, settings, parts, groups)
    across = _read_across(launch, ranges, next(iter(parts.values())))
    if across is not None:
        return tiled(launch, name, ranges, settings, across, parts)
    windows = settings.get("pixels", 0) and _reads_windows(launch)
    if windows and (found := beside(launch, name, ranges, settings, parts)) is not None:
        return found
    if settings.get("along", 0):
        with suppress(RefusedError):
            return flat(launch, name, ranges, settings, DIVISIONS, parts)
        if (found := along(launch, name, ranges, settings, parts)) is not None:
            return found
    return flat(launch, name, ranges, settings, parts=parts)


def _of_several_shapes(
    launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, parts: Parts, groups: Sequence[Parts]
) -> Scheduled:
    """Results of several shapes: a kernel for each shape where places would have to be divided by sizes that are not
    known, lane by lane, which takes longer than to compute twice what they share. Not where a result may lie over an
    operand: the next kernel would read what the first has written."""
    symbolic = any(not isinstance(n, int) for part in parts.values() for n in part.shape)
    over = Overwriting(launch)
    lies_over = any(over.may(i, j) for i in range(len(launch.operands)) for j in range(len(launch.results)))
    if settings.get("along", 0) and symbolic and not lies_over:
        try:
            return flat(launch, name, ranges, settings, DIVISIONS, parts)
        except RefusedError:
            found = [computing(launch, f"{name}_{n}", ranges, settings, group) for n, group in enumerate(groups)]
            return Scheduled(tuple([step for scheduled in found for step in scheduled.steps]))
    return flat(launch, name, ranges, settings, parts=parts)


def _store(writer: KernelWriter, j: int, frame: Frame, indices: Sequence[Size], elements: Elements, part: Part) -> None:
    """Write the elements at indices of a part where they lie in the result."""
    writer.store(j, frame, part.place(elements, indices), elements(part.value, part.access(frame, indices)))


DIVISIONS = frozenset({"divide_positive", "modulo_positive", "divide_floor", "modulo_floor"})
"""How places of single lanes should not be found."""


def flat(
    launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, refused: frozenset[str] = frozenset(),
    parts: Parts | None = None,
) -> Scheduled:  # fmt: skip
    """Blocks of elements in row-major order; one kernel for all results that have equally many.

    Raises RefusedError where functions that are `refused` would be needed.
    """
    parts = wholes(launch) if parts is None else parts
    groups: dict[Size, list[int]] = {}
    for j, part in parts.items():
        groups.setdefault(product(part.shape), []).append(j)
    groups.pop(0, None)
    names = [name] if len(groups) == 1 else [f"{name}_{i}" for i in range(len(groups))]
    return Scheduled(
        tuple([
            _flat_step(KernelWriter(launch, own, ranges, refused), count, outputs, settings, parts)
            for own, (count, outputs) in zip(names, groups.items(), strict=True)
        ]),
        form="elements in the order of memory",
    )  # fmt: skip


def _flat_step(writer: KernelWriter, count: Size, outputs: Sequence[int], settings: Settings, parts: Parts) -> Step:
    """Blocks of elements of some results, each of which has so many."""
    b, frame = writer.b, writer.frame()
    block = settings.get("block", 1024)
    if isinstance(count, int):
        block = min(block, power_of_two(count))
    base = b.multiply(b.program_id(0), b.position(block))
    frame.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
    elements = writer.elements(frame)
    for j in outputs:
        _store(writer, j, frame, delinearize(d(0), parts[j].shape), elements, parts[j])
    warps = settings.get("warps", max(1, min(8, block // 256)))
    return writer.step((blocks_of(count, block),), warps)


def along(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, parts: Parts) -> Scheduled | None:
    """Blocks of elements that lie side by side in everything that is read: the last dimensions, as many as do.

    Where a row of the last one fills a block, that is enough. Of elements that are repeated within a row (an image that
    is enlarged), blocks are periods, in which each place is known. None where there is no row that is worth it.
    """
    shape = shape_of_all(parts)
    last = _last(shape)
    splits = [k for k in range(1, last + 1) if shape[k] != 1]
    longest = shape[last]
    is_long = isinstance(longest, int) and longest >= settings.get("block", 1024)
    rows = [(split, product(shape[split:])) for split in (splits[-1:] if is_long else splits)]
    blocks = [(split, _block(row, settings)) for split, row in rows if not isinstance(row, int) or row >= SHORT]
    frame = KernelWriter(launch, name, ranges).frame()
    covered = [(split, block) for split, block in blocks if is_covered(frame, product(shape[split:]), block)]
    moves = not any(role_of(op) is Role.ELEMENTWISE for op in launch.block.ops)
    lanes = settings.get("lanes", 0)
    most = (MOST_MOVED if moves else MOST_COMPUTED) * lanes
    periods = [(split, n) for split in reversed(splits) for n in _periods(shape[split:], lanes, most)]
    # What is moved takes less time than to find where it lies: blocks are as large as may be.
    for split, block in (*(periods[::-1] if moves else ()), *covered, *periods, *blocks):
        with suppress(RefusedError):
            step = along_step(KernelWriter(launch, name, ranges, DIVISIONS), split, settings, parts, block)
            is_period = (split, block) not in blocks
            return Scheduled((step,), form=f"elements in periods of {block}" if is_period else "elements row by row")
    return None


SHORT = 12
"""Elements of rows for which a block of their own is not worth it."""
MOST_COMPUTED, MOST_MOVED = 8, 16
"""Vectors of a period, at most: of elements that are computed, and of those that are only moved."""


def _block(row: Size, settings: Settings) -> int:
    """The elements of a block of rows."""
    block = settings.get("block", 1024)
    if not isinstance(row, int):
        return block
    return _even_block(row, block, settings.get("lanes", 0)) or min(block, power_of_two(row))


def _periods(shape: Sequence[Size], lanes: int, most: int) -> Sequence[int]:
    """How many elements blocks of whole vectors may have that fill a space, each of some whole rows or of a part of
    one, and of so many elements at most."""
    total, row = product(shape), shape[-1]
    if not lanes or not isinstance(total, int) or not isinstance(row, int):
        return ()
    step = lanes if len(shape) == 1 else lcm(lanes, row)
    return [block for block in range(step, most + 1, step) if total % block == 0]


def along_step(writer: KernelWriter, split: int, settings: Settings, parts: Parts, block: int = 0) -> Step:
    """Programs that each compute a block, of so many elements where that is said, of the dimensions from `split` on, at
    one place before."""
    b, frame = writer.b, writer.frame()
    shape = shape_of_all(parts)
    row = product(shape[split:])
    block = block or _block(row, settings)
    counts = [*shape[:split], blocks_of(row, block)]
    program = writer.frame()
    program.coordinate(product(counts), b.program_id(0))
    places = [program.position(program.access((1,), (place,)).indices[0]) for place in frame_ids(counts)]
    for extent, place in zip(shape[:split], places, strict=False):
        frame.coordinate(extent, place)
    lanes = b.add(b.multiply(places[-1], b.position(block)), b.iota(block, 0, 1))
    frame.coordinate(row, lanes, partial=not is_covered(frame, row, block))
    elements = writer.elements(frame)
    before = [0 if n == 1 else d(k) for k, n in enumerate(shape[:split])]
    indices = [*before, *delinearize(d(split), shape[split:])]
    for j, part in parts.items():
        _store(writer, j, frame, indices, elements, part)
    return writer.step((product(counts),), settings.get("warps", max(1, min(8, block // 256))))


def beside(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, parts: Parts) -> Scheduled | None:
    """Blocks of rows of the last dimension beside each other, such as pixels of an image: what they read together, as
    the factors of a window are, is read once for all. A program goes through whole rows.

    None where rows are no whole vectors. What is left over of a number of rows that is not known goes row by row.
    """
    *_, beside, row = shape_of_all(parts)
    lanes = settings.get("lanes", 8)
    if not isinstance(row, int) or row % (lanes // 2) or (isinstance(beside, int) and beside < 2):
        return None
    # Of four pixels, two vectors each are lines of a cache; more pixels are worth it where all blocks are whole.
    block = next((n for n in BLOCKS if isinstance(beside, int) and beside % n == 0), BLOCKS[0])
    block = min(block, beside) if isinstance(beside, int) else block
    vectors = max(1, settings.get("pixels", 8) // block)
    columns = next((n for n in (vectors * lanes, lanes) if row % n == 0), lanes // 2)
    rest = mod(beside, block)
    step = 1 if isinstance(rest, Dim) else rest
    runs = [(0, block, floordiv(beside, block)), *([(beside - rest, step, floordiv(rest, step))] if rest != 0 else [])]
    names = [name, f"{name}_rest"]
    return Scheduled(
        tuple([
            _beside_step(KernelWriter(launch, own, ranges), run, columns, parts)
            for own, run in zip(names, runs, strict=False)
            if ranges.bounds(run[-1]) != (0, 0)
        ]),
        form=f"windows, {block} pixels by {columns} channels beside each other",
    )  # fmt: skip


def _beside_step(writer: KernelWriter, run: tuple[Size, int, Size], columns: int, parts: Parts) -> Step:
    """Programs that each compute a block of rows; `run` says the first of them, how many, and of how many blocks."""
    b, frame = writer.b, writer.frame()
    first, block, count = run
    *outer, _, row = shape_of_all(parts)
    program = writer.frame()
    program.coordinate(product(outer) * count, b.program_id(0))
    places = [program.position(program.access((1,), (p,)).indices[0]) for p in delinearize(d(0), [*outer, count])]
    for extent, place in zip(outer, places, strict=False):
        frame.coordinate(extent, place)
    frame.coordinate(block * count, b.add(b.multiply(places[-1], b.position(block)), b.iota(block, 0, 2)))
    along = frame.declare(row)
    before = [0 if n == 1 else d(k) for k, n in enumerate(outer)]

    def turn(at: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        frame.bind(along, b.add(at, b.iota(columns, 1, 2)))
        elements = writer.elements(frame)
        indices = [*before, d(len(outer)) + first, d(along)]
        for j, part in parts.items():
            _store(writer, j, frame, indices, elements, part)
        return []

    b.loop(b.position(0), frame.position(row), columns, [], turn)
    return writer.step((product(outer) * count,))


BLOCKS = (4, 8, 7, 5, 6)
"""Rows of a block, the best first."""
MOST_READ = 1 << 19
"""Elements of what is read so, at most: of more, which come from far, the order in which they lie matters most.
What is not known counts as less."""


def _reads_windows(launch: LaunchOp) -> bool:
    """Whether many slices of one value are read, as the points of a window are."""
    slices = Counter(op.operand for op in launch.block.ops if isinstance(op, hlo.SliceOp))
    found = [value for value, count in slices.items() if count >= WINDOW]
    sizes = [product(shape_of(value)) for value in found]
    near = all(not isinstance(n, int) or n <= MOST_READ for n in sizes)
    return len(shape_of(launch.results[0])) > 2 and bool(found) and near


def _even_block(row: int, block: int, lanes: int) -> int:
    """The elements of blocks of whole vectors that fill a row, about as large as wanted; 0 where none do."""
    if not lanes or row % block == 0:
        return 0
    return next((size for size in range(block + block // 2, 0, -lanes) if row % size == 0 and size % lanes == 0), 0)


FEW = 4
"""Elements of rows that are no vector."""


def tiled(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, across: int, parts: Parts) -> Scheduled:
    """Blocks along the last dimension of the outputs, and along dimension `across`.

    Of few elements, such as the colours of pixels, vectors lie along `across`, and are written one by one: what is left
    over of whole vectors of a number that is not known is a kernel of its own, so that others need no masks.
    """
    shape = shape_of_all(parts)
    last = _last(shape)
    sizes = {across: settings.get("rows", 32), last: settings.get("columns", 32)}
    for k, size in sizes.items():
        extent = shape[k]
        if isinstance(extent, int):
            sizes[k] = min(size, power_of_two(extent))
    rows, few, length = across, shape[last], shape[across]
    if settings.get("lanes", 0) and _reads_windows(launch):
        rows = last  # what is read many times is read in order, and what is written once is turned
    runs: list[tuple[Size, Size]] = [(0, blocks_of(length, sizes[across]))]
    if (vectors := 2 * settings.get("lanes", 0)) and isinstance(few, int) and few <= FEW:
        rows = last
        frame = KernelWriter(launch, name, ranges).frame()
        block = next((n for n in (vectors, vectors // 2) if is_covered(frame, length, n)), vectors)
        sizes = {last: few, across: block}
        runs = [(0, blocks_of(length, block))]
        if not isinstance(length, int) and not is_covered(frame, length, block):
            count = floordiv(length, block)
            runs = [(0, count), (count, blocks_of(mod(length, block), block))]
    names = [name, f"{name}_rest"]
    return Scheduled(
        tuple([
            _tiled_step(KernelWriter(launch, own, ranges), settings, parts, sizes, (rows, across), run)
            for own, run in zip(names, runs, strict=False)
            if ranges.bounds(run[-1]) != (0, 0)
        ]),
        form="transposed tile by tile",
    )  # fmt: skip


def _tiled_step(
    writer: KernelWriter, settings: Settings, parts: Parts, sizes: Mapping[int, int], order: tuple[int, int],
    run: tuple[Size, Size],
) -> Step:  # fmt: skip
    """Programs that each compute a block of these sizes. `order` is the dimension along the rows of blocks, and the one
    in which only some blocks are computed: `run` is the first of these, and how many there are."""
    b, frame = writer.b, writer.frame()
    (rows, across), (first, count) = order, run
    shape = shape_of_all(parts)
    counts: list[Size] = [blocks_of(n, sizes[k]) if k in sizes else n for k, n in enumerate(shape)]
    is_whole = counts[across] != count and first == 0
    counts[across] = count
    ids = frame_ids(counts)
    program = writer.frame()
    program.coordinate(product(counts), b.program_id(0))
    for k, extent in enumerate(shape):
        at = program.position(program.simplify(program.access((1,), (ids[k],))).indices[0])
        if k == across and first != 0:
            at = b.add(at, program.position(first))
        if k in sizes:
            lanes = b.iota(sizes[k], 0 if k == rows else 1, 2)
            at = b.add(b.multiply(at, b.position(sizes[k])), lanes)
        is_partial = k in sizes and not is_covered(frame, extent, sizes[k]) and not (is_whole and k == across)
        frame.coordinate(extent, at, partial=is_partial)
    elements = writer.elements(frame)
    indices = [0 if n == 1 else d(k) for k, n in enumerate(shape)]
    for j, part in parts.items():
        _store(writer, j, frame, indices, elements, part)
    warps = settings.get("warps", max(1, min(8, prod(sizes.values()) // 256)))
    return writer.step((product(counts),), warps)


def frame_ids(counts: Sequence[Size]) -> tuple[Size, ...]:
    """The position along each axis of the program `d(0)` of a grid whose axes are laid out one after the other."""
    return delinearize(d(0), counts)


def _last(shape: Sequence[Size]) -> int:
    return max((k for k, n in enumerate(shape) if n != 1), default=len(shape) - 1)


def _read_across(launch: LaunchOp, ranges: Ranges, part: Part) -> int | None:
    """The dimension of the outputs along which some input lies contiguous that is not so along their last one."""
    shape = part.shape
    if sum(n != 1 for n in shape) < 2:
        return None
    last = _last(shape)
    votes: dict[int, int] = {}
    for value, maps in reads(part.value, launch.block.args, ranges).items():
        for m in maps:
            if (found := strides(m, ranges)) is None:
                continue
            # Of several places that are read, as the points of a window are, ranges say what is between them.
            beside = {found.domain[last], *found.ranges}
            if not beside.isdisjoint((1, -1)) or beside == {0}:
                continue
            for k, distance in enumerate(found.domain):
                if distance in (1, -1) and shape[k] != 1:
                    size = product(shape_of(value))
                    votes[k] = max(votes.get(k, 0), size if isinstance(size, int) else 1 << 30)
    return max(votes, key=lambda k: votes[k]) if votes else None


__all__ = ["along", "along_step", "computing", "flat", "frame_ids", "loop", "tiled"]
