"""Tile programs on NumPy arrays: what a kernel means, for all programs of its grid at a time.

A tile's value has a leading axis over programs (of size 1 where all have the same). Memory is checked as no GPU does:
an access out of bounds, a read of what was never written, and two lanes that write the same element are errors that
name the kernel, the op and where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gcomp.dtypes import dtype_of
from gcomp.errors import VerificationError
from gcomp.ir.locations import where
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.descriptors import DescribeOp, LoadBoxOp
from gcomp.lowering.tiles.functions import FUNCTIONS, kind_of
from gcomp.lowering.tiles.fused import fma
from gcomp.lowering.tiles.tile import KernelOp, element, static_shape
from gcomp.reference.numpy.rounding import narrow

Array = np.ndarray[Any, Any]
CHUNK = 1 << 18
"""Lanes that are evaluated at a time."""
_SPOILED = 0x7E
"""What bytes hold that were written over: great numbers in all types, or no number."""
Order = Literal["together", "forwards", "backwards"]
"""How the programs of a grid follow each other: in step, or each after the one before, or after it, has ended."""


@dataclass
class Memory:
    """A buffer: its elements, and which of them hold a value."""

    data: Array
    written: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    below: list[Memory] = field(default_factory=list["Memory"])
    """Operands over which a memory plan may put this: where it is written, they are no more."""
    each: int = 0
    """How many elements each program has of it for itself; 0 where all share it."""

    def spoil(self, places: Array) -> None:
        """Make elements what nobody expects: something else was written there."""
        pattern = bytes([_SPOILED]) * self.data.itemsize
        self.data[places] = (
            ~self.data[places] if self.data.dtype == np.bool_ else np.frombuffer(pattern, self.data.dtype)
        )

    @staticmethod
    def of(array: Array) -> Memory:
        """Memory that holds an array."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return Memory(flat, np.ones(flat.size, np.bool_))

    @staticmethod
    def empty(count: int, dtype: str) -> Memory:
        """Memory that nothing was written to."""
        return Memory(np.zeros(count, dtype_of(dtype)), np.zeros(count, np.bool_))


def run(kernel: KernelOp, grid: Sequence[int], arguments: Sequence[Memory | int], order: Order = "together") -> None:
    """Run a kernel on a grid; buffers are changed in place. VerificationError where memory is used wrongly."""
    programs = prod(grid)
    tiles = [r for op in kernel.body.walk() for r in op.results if isinstance(r.type, TensorType)]
    own = [op.size for op in kernel.body.walk() if isinstance(op, tile.MemoryOp)]
    lanes = max((prod(static_shape(r)) for r in tiles), default=1)
    lanes = max(lanes, *own) if own else lanes
    size = max(1, CHUNK // max(1, lanes))
    stored: dict[SSAValue, Array] = {}
    blocks: dict[Block, _Block] = {}
    if order != "together" or tile.IN_ORDER in kernel.attributes:
        size = 1
    with np.errstate(all="ignore"):
        for first in range(0, programs, size)[:: -1 if order == "backwards" else 1]:
            ids = np.arange(first, min(programs, first + size))
            _Run(kernel, grid, ids, stored, blocks).block(kernel.block, _bind(kernel, arguments))


def _bind(kernel: KernelOp, arguments: Sequence[Memory | int]) -> list[Any]:
    return [
        np.full((1,), a, dtype_of(element(v))) if isinstance(a, int) else a
        for v, a in zip(kernel.block.args, arguments, strict=True)
    ]


class _Block:
    """A block that is read once: its arguments, its ops with their rows and values, and what it yields."""

    def __init__(self, block: Block) -> None:
        self.arguments = tuple(block.args)
        last = block.last_op
        self.yielded = tuple(last.operands) if isinstance(last, tile.YieldOp) else ()
        ops = [op for op in block.ops if not isinstance(op, tile.YieldOp)]
        self.steps = [(OPS[type(op)], op, tuple(op.operands), tuple(op.results)) for op in ops]


class _Run:
    """One chunk of programs. `blocks` are those that were read before."""

    def __init__(
        self, kernel: KernelOp, grid: Sequence[int], ids: Array, stored: dict[SSAValue, Array],
        blocks: dict[Block, _Block],
    ) -> None:  # fmt: skip
        self.kernel, self.grid, self.ids, self.stored, self._blocks = kernel, tuple(grid), ids, stored, blocks
        self.values: dict[SSAValue, Any] = {}
        self.writer = 1 + int(ids[0]) if tile.IN_ORDER in kernel.attributes else None
        """The number, from 1, of the one program whose own memory may be read and overwritten; None for no program."""
        self.active: Array | None = None
        """The programs that are active in the current iteration of a loop; None for all."""

    def block(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a block; what it yields."""
        found = self._blocks.get(block)
        if found is None:
            found = self._blocks[block] = _Block(block)
        values = self.values
        values.update(zip(found.arguments, arguments, strict=True))
        for row, op, operands, results in found.steps:
            values.update(zip(results, row(self, op, [values[v] for v in operands]), strict=True))
        return [values[v] for v in found.yielded]

    def are_others(self, writers: Array) -> bool:
        """Whether other programs wrote some of these elements (0 for those that none did)."""
        return bool(((writers != 0) & (writers != self.writer)).any())

    def fail(self, op: Operation, message: str, why: str) -> VerificationError:
        """An error about memory."""
        return VerificationError(f"kernel {self.kernel.kernel_name}: {message}", where=where(op), why=why)


Row = Callable[[_Run, Any, Sequence[Any]], Sequence[Any]]


def pad_rank(value: Array, rank: int) -> Array:
    """A value with axes of size 1 after that of programs, up to a rank: scalars take part in any tile's work."""
    return value if value.ndim == rank + 1 else value.reshape(value.shape[0], *(1,) * rank)


def _program_id(run: _Run, op: tile.ProgramIdOp, args: Sequence[Any]) -> Sequence[Any]:
    axis = op.axis.value.data
    # The first axis of a grid runs fastest.
    ids = run.ids // prod(run.grid[:axis]) % run.grid[axis]
    return [ids.astype(np.int32)]


def _iota(run: _Run, op: tile.IotaOp, args: Sequence[Any]) -> Sequence[Any]:
    shape = static_shape(op.result)
    return [np.arange(shape[op.axis], dtype=np.int32).reshape(1, *shape)]


def _constant(run: _Run, op: tile.ConstantOp, args: Sequence[Any]) -> Sequence[Any]:
    value = np.asarray(op.value.splat())
    return [np.broadcast_to(value, (1, *static_shape(op.result)))]


def _elementwise(run: _Run, op: tile.ElementwiseOp, args: Sequence[Any]) -> Sequence[Any]:
    if len({a.shape for a in args}) > 1:
        rank = max([a.ndim for a in args]) - 1
        args = np.broadcast_arrays(*[pad_rank(a, rank) for a in args])
    return [np.asarray(FUNCTIONS[op.function_name].meaning(*args))]


def _cast(run: _Run, op: tile.CastOp, args: Sequence[Any]) -> Sequence[Any]:
    x, dtype = np.asarray(args[0]), dtype_of(element(op.result))
    # Types of `ml_dtypes` round an f64 twice.
    is_narrowed = x.dtype == np.float64 and kind_of(element(op.result)) == "narrow"
    return [narrow(x, dtype) if is_narrowed else x.astype(dtype)]


def _bitcast(run: _Run, op: tile.BitcastOp, args: Sequence[Any]) -> Sequence[Any]:
    return [np.ascontiguousarray(args[0]).view(dtype_of(element(op.result)))]


def _reshape(run: _Run, op: tile.ReshapeOp, args: Sequence[Any]) -> Sequence[Any]:
    return [args[0].reshape(args[0].shape[0], *static_shape(op.result))]


def _broadcast(run: _Run, op: tile.BroadcastOp, args: Sequence[Any]) -> Sequence[Any]:
    shape = static_shape(op.result)
    return [np.broadcast_to(pad_rank(args[0], len(shape)), (args[0].shape[0], *shape))]


def _transpose(run: _Run, op: tile.TransposeOp, args: Sequence[Any]) -> Sequence[Any]:
    return [np.swapaxes(args[0], 1, 2)]


def _dot(run: _Run, op: tile.DotOp, args: Sequence[Any]) -> Sequence[Any]:
    if op.groups == 1:
        return [_product(op, *args)]
    sides: list[list[Array]] = [np.split(side, op.groups, axis=2) for side in args]
    return [np.concatenate([_product(op, *group) for group in zip(*sides, strict=True)], axis=2)]


def _product(op: tile.DotOp, lhs: Array, rhs: Array, acc: Array) -> Array:
    """One of the products that an op makes side by side."""
    kind = acc.dtype
    if op.words is not None:
        programs, words, bytes = rhs.shape
        columns = rhs.reshape(programs, words, bytes // tile.WORD, tile.WORD)
        rhs = np.swapaxes(columns, 2, 3).reshape(programs, words * tile.WORD, bytes // tile.WORD)
    if np.issubdtype(kind, np.integer):
        return (lhs.astype(np.int64) @ rhs.astype(np.int64) + acc).astype(kind)
    if op.precision.data == "exact":
        return _chain(lhs.astype(kind), rhs.astype(kind), acc)
    if op.precision.data == "tf32" and lhs.dtype == np.float32:
        lhs, rhs = _tf32(lhs), _tf32(rhs)
    return (lhs.astype(kind) @ rhs.astype(kind) + acc).astype(kind)


def _chain(lhs: Array, rhs: Array, acc: Array) -> Array:
    """For each element a chain of one fma after the other, in ascending order of k."""
    for k in range(lhs.shape[2]):
        acc = fma(lhs[:, :, k : k + 1], rhs[:, k : k + 1, :], acc)
    return acc


def _tf32(x: Array) -> Array:
    """Rounded to 10 bits after the point."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


# ---- folds --------------------------------------------------------------------------------------------------------


def _combine(run: _Run, block: Block, first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """A region on scalars, on arrays of one shape at a time."""
    shape = np.broadcast_shapes(*[a.shape for a in (*first, *second)])
    flat = [np.broadcast_to(a, shape).reshape(-1) for a in (*first, *second)]
    return [np.broadcast_to(a, (prod(shape),)).reshape(shape) for a in run.block(block, flat)]


def _reduce(run: _Run, op: combining.ReduceOp, args: Sequence[Any]) -> Sequence[Any]:
    axis = op.axis + 1
    values = list(np.broadcast_arrays(*args))
    if chains := op.chain_count:
        starts = range(0, values[0].shape[axis], chains)
        steps = [[np.take(v, range(n, n + chains), axis) for v in values] for n in starts]
        values = reduce(lambda first, second: _combine(run, op.block, first, second), steps)
    while values[0].shape[axis] > 1:
        half = values[0].shape[axis] // 2
        first = [np.take(v, range(half), axis) for v in values]
        second = [np.take(v, range(half, 2 * half), axis) for v in values]
        values = _combine(run, op.block, first, second)
    return values


def _scan(run: _Run, op: combining.ScanOp, args: Sequence[Any]) -> Sequence[Any]:
    axis = op.axis + 1
    values: list[Array] = [np.array(np.flip(v, axis) if op.reversed else v) for v in np.broadcast_arrays(*args)]
    count: int = values[0].shape[axis]
    distance = 1
    while distance < count:
        before = [np.take(v, range(count - distance), axis) for v in values]
        after = [np.take(v, range(distance, count), axis) for v in values]
        head = [np.take(v, range(distance), axis) for v in values]
        tails = _combine(run, op.block, before, after)
        values = [np.concatenate([h, t], axis) for h, t in zip(head, tails, strict=True)]
        distance *= 2
    return [np.flip(v, axis) if op.reversed else v for v in values]


# ---- memory -------------------------------------------------------------------------------------------------------


def _spread(value: Array, shape: tuple[int, ...]) -> Array:
    """A value of a shape that broadcasts; most have it, and NumPy takes its time also with these."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


def _lanes(run: _Run, op: Operation, offset: Array, mask: Array | None, memory: Memory) -> tuple[Array, Array]:
    """The lanes that take part and the element of each, in bounds."""
    rank = offset.ndim - 1
    shape = (len(run.ids), *offset.shape[1:])
    taking = np.ones(shape, np.bool_) if mask is None else _spread(pad_rank(mask, rank), shape)
    if run.active is not None:
        taking = taking & pad_rank(run.active, rank)
    places = _spread(offset, shape)
    reached, size = places[taking], memory.each or memory.data.size
    wrong = (reached < 0) | (reached >= size)
    if wrong.any():
        raise run.fail(op, f"{op.name} leaves its buffer", f"element {reached[wrong][0]} of {size}")
    if memory.each:
        places = places.astype(np.int64) + pad_rank(memory.each * np.arange(len(run.ids)), rank)
    return taking, places


def _memory(run: _Run, op: tile.MemoryOp, args: Sequence[Any]) -> Sequence[Any]:
    found = Memory.empty(op.size * len(run.ids), element(op.result))
    found.each = op.size
    return [found]


def _load(run: _Run, op: tile.LoadOp, args: Sequence[Any]) -> Sequence[Any]:
    return [_read(run, op, op.operands[0], args[0], args[1], args[2] if len(args) > 2 else None)]


def _read(run: _Run, op: Operation, buffer: SSAValue, memory: Memory, offset: Array, mask: Array | None) -> Array:
    taking, places = _lanes(run, op, offset, mask, memory)
    found = np.zeros(places.shape, memory.data.dtype)
    reached = places[taking]
    if not memory.written[reached].all():
        raise run.fail(op, "reads what nothing wrote", f"element {reached[~memory.written[reached]][0]}")
    if (stored := run.stored.get(buffer)) is not None and run.are_others(stored[reached]):
        raise run.fail(op, "reads what another program of the same launch writes", "programs run in any order")
    found[taking] = memory.data[reached]
    return found


@dataclass
class Described:
    """A tensor in memory: the buffer, its sizes and its strides, each a number for each program."""

    buffer: SSAValue
    memory: Memory
    sizes: Sequence[Array]
    strides: Sequence[Array]


def _describe(run: _Run, op: DescribeOp, args: Sequence[Any]) -> Sequence[Any]:
    memory, sizes, strides = args[0], args[1 : 1 + op.rank], args[1 + op.rank :]
    wrong = [s for s in strides[:-1] if (s * memory.data.itemsize % op.ALIGNMENT).any()]
    if wrong or (strides[-1] != 1).any():
        rule = f"the last is 1, others are multiples of {op.ALIGNMENT} bytes"
        raise run.fail(op, f"{op.name} has strides {[int(s.flat[0]) for s in strides]}", rule)
    return [Described(op.buffer, memory, sizes, strides)]


def _load_box(run: _Run, op: LoadBoxOp, args: Sequence[Any]) -> Sequence[Any]:
    described: Described = args[0]
    shape = static_shape(op.result)
    place, inside = np.zeros((1,) * (1 + len(shape)), np.int64), np.ones((1,) * (1 + len(shape)), np.bool_)
    for axis, first in enumerate(args[1:]):
        count = np.arange(shape[axis]).reshape(1, *(-1 if k == axis else 1 for k in range(len(shape))))
        index = pad_rank(first, len(shape)).astype(np.int64) + count
        inside = inside & (index >= 0) & (index < pad_rank(described.sizes[axis], len(shape)))
        place = place + index * pad_rank(described.strides[axis], len(shape))
    return [_read(run, op, described.buffer, described.memory, place, inside)]


def _store(run: _Run, op: tile.StoreOp, args: Sequence[Any]) -> Sequence[Any]:
    memory, offset, value = args[:3]
    taking, places = _lanes(run, op, offset, args[3] if len(args) > 3 else None, memory)
    reached = places[taking]
    if not memory.each and op.operands[0] not in run.stored:
        run.stored[op.operands[0]] = np.zeros(memory.data.size, np.int32)
    stored = run.stored.get(op.operands[0])
    is_taken = stored is not None and run.are_others(stored[reached])
    if is_taken or (len(reached) > 1 and len(np.unique(reached)) != len(reached)):
        raise run.fail(op, "two lanes write one element", f"of buffer {op.operands[0].name_hint or '?'}")
    if stored is not None:
        stored[reached] = run.writer or -1
    memory.data[reached] = _spread(value, places.shape)[taking]
    memory.written[reached] = True
    for operand in memory.below:
        operand.spoil(reached)
    return []


_ATOMICS: Mapping[str, Any] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def _atomic(run: _Run, op: tile.AtomicOp, args: Sequence[Any]) -> Sequence[Any]:
    memory, offset, value = args[:3]
    taking, places = _lanes(run, op, offset, args[3] if len(args) > 3 else None, memory)
    reached, values = places[taking], _spread(value, places.shape)[taking]
    for operand in memory.below:
        operand.spoil(reached)
    name = op.function.data
    if name == "xchg":
        memory.data[reached] = values
        memory.written[reached] = True
        return []
    if not memory.written[reached].all():
        raise run.fail(op, "combines with what nothing wrote", "the buffer must be filled before")
    _ATOMICS[name].at(memory.data, reached, values)
    return []


# ---- control ------------------------------------------------------------------------------------------------------


def _for(run: _Run, op: tile.ForOp, args: Sequence[Any]) -> Sequence[Any]:
    lower, upper, carried = args[0], args[1], list(args[2:])
    outer = run.active
    start, stop = int(lower.min()), int(upper.max())
    uniform = bool((lower == lower.flat[0]).all() and (upper == upper.flat[0]).all())
    for turn in range(0, max(0, -(-(stop - start) // op.stride))):
        index = (lower + turn * op.stride).astype(lower.dtype)
        live = None if uniform else index < upper
        if live is not None:
            run.active = live if outer is None else live & outer
        after = run.block(op.block, [index, *carried])
        carried = [a if live is None else _where(live, a, c) for a, c in zip(after, carried, strict=True)]
        run.active = outer
    return [np.asarray(c).astype(dtype_of(dtype_text(r.type))) for c, r in zip(carried, op.results, strict=True)]


def _where(live: Array, after: Array, before: Array) -> Array:
    return np.where(pad_rank(live, after.ndim - 1), after, before)


OPS: dict[type[Operation], Row] = {
    tile.ProgramIdOp: _program_id,
    tile.IotaOp: _iota,
    tile.ConstantOp: _constant,
    tile.ElementwiseOp: _elementwise,
    tile.CastOp: _cast,
    tile.BitcastOp: _bitcast,
    tile.ReshapeOp: _reshape,
    tile.BroadcastOp: _broadcast,
    tile.TransposeOp: _transpose,
    tile.DotOp: _dot,
    combining.ReduceOp: _reduce,
    combining.ScanOp: _scan,
    tile.MemoryOp: _memory,
    tile.LoadOp: _load,
    tile.StoreOp: _store,
    tile.AtomicOp: _atomic,
    DescribeOp: _describe,
    LoadBoxOp: _load_box,
    tile.ForOp: _for,
}
"""Op class -> what it does to a chunk of programs."""
