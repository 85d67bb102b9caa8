"""Tile programs as LLVM IR: a function that runs some of a kernel's programs, one after the other.

    define void @name(ptr %args, i64 %begin, i64 %end)

`args` has eight bytes for each argument of the kernel (an address, or a size), and for the size of each axis of the
grid. The order of every sum is the tile program's, and no instruction may be computed less exactly than it says: the
width of vectors decides nothing but how fast it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from gcomp.errors import InternalError
from gcomp.ir.locations import where
from gcomp.lowering.llvm import arithmetic, casts, folds, memory, quotients
from gcomp.lowering.llvm.columns import Column, flat, is_column
from gcomp.lowering.llvm.dots import dots
from gcomp.lowering.llvm.fetching import LINE
from gcomp.lowering.llvm.kernel import POSITIONS, Kernel, Row
from gcomp.lowering.llvm.lanes import Lanes, constant, constant_lanes, position, uniform, vectorial, whole
from gcomp.lowering.llvm.tiles import Pieces, Read, Stored, Tile, fill, gather
from gcomp.lowering.llvm.transposing import transposes
from gcomp.lowering.llvm.writer import Index, scalar_type
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.descriptors import DescribeOp, LoadBoxOp
from gcomp.lowering.tiles.tile import KernelOp, element, static_shape

UNROLLED = 4
"""Iterations of a loop that is printed as one after the other, at most."""

MOST_UNROLLED = 1400
"""Vectors in registers in all of its iterations together, at most: LLVM takes a millisecond for ten of them."""


def print_kernel(
    kernel: KernelOp, name: str, bits: int, words: str = "", streamed: frozenset[int] = frozenset()
) -> str:  # fmt: skip
    """The text of a kernel's function, with the declarations that it needs, for vectors of so many bits.

    `words` is how the processor multiplies bytes (`Variant.words`), `streamed` are the numbers of arguments that are
    written past the caches where their addresses allow it. Elementary functions are expanded before
    (`gcomp.lowering.tiles.expanding`). Raises InternalError for an op that has no row here.
    """
    k = Kernel(ROWS, bits // 32, words)
    for op in kernel.body.walk():
        if type(op) not in ROWS and not isinstance(op, tile.YieldOp):
            raise InternalError(f"{op.name} is not printed as LLVM IR.", where=where(op))
    w = k.w
    for n, argument in enumerate(kernel.block.args):
        slot = w.pure(f"getelementptr i64, ptr %args, i64 {n}")
        if isinstance(argument.type, tile.BufferType):
            k.buffers[argument] = w.value(f"load ptr, ptr {slot}, align 8")
            continue
        dtype = element(argument)
        size = w.value(f"load i64, ptr {slot}, align 8")
        base = size if dtype == "i64" else w.pure(f"trunc i64 {size} to {scalar_type(dtype)}")
        k.tiles[argument] = Pieces(w, (), dtype, 1, [uniform(dtype, base)])
    axes = len(kernel.grid)
    sizes = [
        w.value(f"load i64, ptr {w.pure(f'getelementptr i64, ptr %args, i64 {len(kernel.block.args) + n}')}, align 8")
        for n in range(axes)
    ]

    def program(number: str, _: Sequence[str]) -> Sequence[str]:
        ids: list[str] = []
        rest = number
        for size in sizes[:-1]:
            ids.append(w.pure(f"urem i64 {rest}, {size}"))
            rest = w.pure(f"udiv i64 {rest}, {size}")
        k.programs = [w.pure(f"trunc i64 {i} to i32") for i in (*ids, rest)]
        k.block(kernel.block)
        return []

    begin = "%begin"
    if streamed:
        k.streamed = frozenset([kernel.block.args[n] for n in streamed])
        aligned = _are_aligned(k, [k.buffers[buffer] for buffer in k.streamed])
        begin = w.pure(f"select i1 {aligned}, i64 %end, i64 %begin")
        w.loop("%begin", begin, 1, [], program)
        w.emit("fence seq_cst")  # such stores are in no order with others: they are before what says that they are done
        k.streamed = frozenset()
    w.loop(begin, "%end", 1, [], program)
    text = w.text(name, "ptr %args, i64 %begin, i64 %end", _zeros(k.cleared))
    return "\n".join([*w.declared, "", text, "", ATTRIBUTES, *(["!0 = !{i32 1}"] if streamed else []), ""])


def _are_aligned(k: Kernel, buffers: Sequence[str]) -> str:
    """Whether addresses are multiples of what a vector has, or a line of a cache."""
    w, found = k.w, "0"
    for buffer in buffers:
        found = w.pure(f"or i64 {found}, {w.pure(f'ptrtoint ptr {buffer} to i64')}")
    return w.pure(f"icmp eq i64 {w.pure(f'and i64 {found}, {LINE - 1}')}, 0")


def _zeros(bytes: int) -> list[str]:
    """The elements on the stack that kernels need (`Kernel.zero`), one vector at least."""
    count = max(1, -(-bytes // 64))
    lines = [f"  %zero = alloca [{64 * count} x i8], align 64", "  %nowhere = alloca [64 x i8], align 64"]
    for n in range(count):
        lines.append(f"  %zero.{n} = getelementptr i8, ptr %zero, i64 {64 * n}")
        lines.append(f"  store <64 x i8> zeroinitializer, ptr %zero.{n}, align 64")
    return lines


ATTRIBUTES = 'attributes #0 = { nounwind "no-builtins" "no-stack-arg-probe" }'
"""Of all functions: nothing is called that is not in the image."""


# ---- values -------------------------------------------------------------------------------------------------------


def _program_id(k: Kernel, op: tile.ProgramIdOp) -> None:
    axis = op.axis.value.data
    k.tiles[op.result] = Pieces(k.w, (), "i32", 1, [uniform("i32", k.programs[axis])])


def _iota(k: Kernel, op: tile.IotaOp) -> None:
    wide = _steps(k, op)

    def read(row: Index, column: Index, lanes: int) -> Lanes:
        found = wide(row, column, lanes)
        narrow = arithmetic.convert_positions(k.w, found, "i32")
        if narrow is None:
            base = k.w.pure(f"trunc i64 {found.base} to i32")
            narrow = Lanes("i32", lanes, base=base, stride=found.stride)
        return narrow

    k.view(op.result, read)


def _steps(k: Kernel, op: tile.IotaOp) -> Read:
    """What an iota counts, as the i64 in which places in tiles are counted."""
    shape = static_shape(op.result)

    def read(row: Index, column: Index, lanes: int) -> Lanes:
        at = k.indices(row, column, shape)[op.axis]
        return position(k.w, at, lanes, stride=int(op.axis == len(shape) - 1))

    return read


def _constant(k: Kernel, op: tile.ConstantOp) -> None:
    value, dtype = op.value.splat(), element(op.result)
    k.view(op.result, lambda row, column, lanes: constant(value, dtype, lanes))


def _elementwise(k: Kernel, op: tile.ElementwiseOp) -> None:
    if is_column(static_shape(op.result)) and element(op.result) in POSITIONS:
        divisor = op.operands[-1]
        by_size = op.function_name in quotients.DIVISIONS and not isinstance(divisor.owner, tile.ConstantOp)
        if (by_size and static_shape(divisor) == ()) or not k.divided.isdisjoint(op.operands):
            k.divided.add(op.result)

    def function(operands: list[Lanes]) -> Lanes:
        return arithmetic.apply(k.w, op.function_name, operands)

    k.pointwise(op.result, function, [k.tiles[v] for v in op.operands], lazily=k.is_lazy(op.result))


def _cast(k: Kernel, op: tile.CastOp) -> None:
    dtype = element(op.result)
    if dtype == "i64" and isinstance(op.operand.owner, tile.IotaOp) and not is_column(static_shape(op.result)):
        # Lanes of an i32 may wrap around, but not these: rows of memory stay rows where the call decides sizes.
        k.view(op.result, _steps(k, op.operand.owner))
        return
    k.pointwise(op.result, lambda of: casts.cast(k.w, of[0], dtype), [k.tiles[op.operand]], lazily=k.is_lazy(op.result))


def _bitcast(k: Kernel, op: tile.BitcastOp) -> None:
    dtype = element(op.result)
    k.pointwise(
        op.result, lambda of: casts.bitcast(k.w, of[0], dtype), [k.tiles[op.operand]], lazily=k.is_lazy(op.result)
    )


def _broadcast(k: Kernel, op: tile.BroadcastOp) -> None:
    found = k.tiles[op.operand]
    k.view(op.result, k.spread(found, static_shape(op.result)), [found])


def _reshape(k: Kernel, op: tile.ReshapeOp) -> None:
    found, shape = k.tiles[op.operand], static_shape(op.result)
    columns = shape[-1] if shape else 1

    def read(row: Index, column: Index, lanes: int) -> Lanes:
        place = k.w.add(k.w.multiply(row, columns), column)
        own, rest = k.w.divide(place, found.columns), k.w.rest(place, found.columns)
        if lanes <= found.width:
            return found.get(own, rest, lanes)
        parts: list[tuple[Index, Index]] = []
        for lane in range(lanes):
            at = k.w.add(place, lane)
            parts.append((k.w.divide(at, found.columns), k.w.rest(at, found.columns)))
        return gather(k.w, found, parts)

    k.compute(op.result, read, [found])


# ---- control ------------------------------------------------------------------------------------------------------


def _for(k: Kernel, op: tile.ForOp) -> None:
    w = k.w
    kind = element(op.lower)
    lower, upper = k.tiles[op.lower].get(0, 0, 1), k.tiles[op.upper].get(0, 0, 1)
    starts = [k.tiles[v] for v in op.carried]
    shapes = [start.shape for start in starts]
    if lower.number is not None and upper.number is not None and op.rolled is None:
        positions = range(lower.number, upper.number, op.stride)
        if len(positions) <= UNROLLED and len(positions) * _vectors(k, op) <= MOST_UNROLLED:
            _unroll(k, op, positions, starts)
            return
    starts = [flat(start, k.width) for start in starts]
    homes: list[Stored | None] = []
    carried: list[tuple[str, str]] = []
    for start in starts:
        if not start.is_small:
            home = Stored(w, start.shape, start.dtype, k.width)
            _copy(start, home)
            homes.append(home)
            k.held.append(home.space)
            continue
        homes.append(None)
        pieces = [start.piece(n) for n in range(start.count)]
        carried += [(piece.type, whole(w, piece)) for piece in pieces]

    def body(index: str, names: Sequence[str]) -> Sequence[str]:
        multiple = op.stride & -op.stride if lower.number == 0 else 1
        k.tiles[op.block.args[0]] = Pieces(w, (), kind, 1, [uniform(kind, index, multiple=multiple)])
        k.tiles.update(zip(op.block.args[1:], _tiles(k, shapes, starts, homes, names), strict=True))
        after = [flat(found, k.width) for found in k.block(op.block)]
        results: list[str] = []
        # What lies in the place of its own already is not moved; what lies in another's is moved by way of a copy.
        moved = [
            (found if isinstance(found, Stored) and found not in homes else _copy_tile(k, found), home)
            for found, home in zip(after, homes, strict=True) if home is not None and found is not home
        ]  # fmt: skip
        for found, home in zip(after, homes, strict=True):
            if home is None:
                results += [whole(w, found.piece(n)) for n in range(found.count)]
        for found, home in moved:
            _copy(found, home)
        for argument in op.block.args:
            k.tiles.pop(argument, None)
        return results

    names = w.loop(str(lower.base), str(upper.base), op.stride, carried, body, type=scalar_type(kind))
    for home in homes:
        if home is not None:
            k.held.remove(home.space)
    k.tiles.update(zip(op.results, _tiles(k, shapes, starts, homes, names), strict=True))


def _vectors(k: Kernel, op: tile.ForOp) -> int:
    """About how many vectors an iteration has in registers; what these do not hold is computed by a loop."""
    tiles = [v for inner in op.block.ops for v in inner.results if isinstance(v.type, TensorType)]
    return sum([k.pieces(value) if k.is_small(value) else 1 for value in tiles])


def _unroll(k: Kernel, op: tile.ForOp, positions: Sequence[int], carried: Sequence[Tile]) -> None:
    """A loop of few iterations, one after the other."""
    kind = element(op.lower)
    for number in positions:
        k.tiles[op.block.args[0]] = Pieces(k.w, (), kind, 1, [constant_lanes(kind, number)])
        k.tiles.update(zip(op.block.args[1:], carried, strict=True))
        carried = k.block(op.block)
        for argument in op.block.args:
            k.tiles.pop(argument, None)
    k.tiles.update(zip(op.results, carried, strict=True))


def _tiles(
    k: Kernel, shapes: Sequence[Sequence[int]], starts: Sequence[Tile], homes: Sequence[Stored | None],
    names: Sequence[str],
) -> list[Tile]:  # fmt: skip
    """What is carried, in registers of these names or in memory."""
    found: list[Tile] = []
    taken = 0
    for shape, start, home in zip(shapes, starts, homes, strict=True):
        held: Tile | None = home
        if held is None:
            pieces = [vectorial(start.dtype, start.width, name) for name in names[taken : taken + start.count]]
            taken += start.count
            held = Pieces(k.w, start.shape, start.dtype, k.width, pieces)
        found.append(Column(k.w, shape, k.width, held) if is_column(shape) else held)
    return found


def _copy_tile(k: Kernel, source: Tile) -> Stored:
    """A tile in memory of its own."""
    found = Stored(k.w, source.shape, source.dtype, k.width)
    _copy(source, found)
    return found


def _copy(source: Tile, target: Stored) -> None:
    fill([target], [source], lambda row, column, lanes: [source.get(row, column, lanes)])


ROWS: Mapping[type[Operation], Row] = cast(
    "Mapping[type[Operation], Row]",
    {
        tile.ProgramIdOp: _program_id,
        tile.IotaOp: _iota,
        tile.ConstantOp: _constant,
        tile.ElementwiseOp: _elementwise,
        tile.CastOp: _cast,
        tile.BitcastOp: _bitcast,
        tile.ReshapeOp: _reshape,
        tile.BroadcastOp: _broadcast,
        tile.TransposeOp: transposes,
        tile.DotOp: dots,
        combining.ReduceOp: folds.reduces,
        combining.ScanOp: folds.scans,
        tile.MemoryOp: memory.own,
        tile.LoadOp: memory.loads,
        tile.StoreOp: memory.stores,
        tile.AtomicOp: memory.atomics,
        DescribeOp: memory.describes,
        LoadBoxOp: memory.load_boxes,
        tile.ForOp: _for,
    },
)
"""Op class -> how it is printed."""


def is_sequential(kernel: KernelOp) -> bool:
    """Whether the programs of a kernel must run in their order, one by one: they combine elements with one another."""
    return any(isinstance(op, tile.AtomicOp) for op in kernel.body.walk())


__all__ = ["ROWS", "is_sequential", "print_kernel"]
