"""When results are in memory, and where: XLA's order of kernels and its assignment of buffers on processors.

What a program returns has a place of its own, which others use before, one after another. All others lie in one piece
of memory, each in the tightest gap between those that are there at the same time. What a kernel computes element by
element may be written over what it reads, where nothing reads that later. Tables of several results have places of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gcomp.analysis.work import Nominal
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor
from gcomp.partitioning.memory.fusion import Fusion
from gcomp.partitioning.memory.graph import LINE, POINTER, Graph, Node, Value, origin, readers
from gcomp.partitioning.memory.rows import ROWS


def predicted_memory(program: Program) -> int:
    """Bytes on each device, at most at once, of a program that is one manual computation (pass `partition`)."""
    nominal = Nominal(program.ranges)
    (made,) = [op for op in program.block.ops if isinstance(op, sdy.ManualComputationOp)]
    last = made.block.last_op
    assert last is not None
    results = sum(map(nominal.bytes, last.operands))
    table = POINTER * len(last.operands) if len(last.operands) > 1 else 0
    temporary = _Temporaries(Graph(made.block, nominal, ROWS)).peak()
    return sum(map(nominal.bytes, made.block.args)) + results + table + temporary


@dataclass(eq=False)
class Buffer:
    """Bytes from the kernel that makes them to the last that reads them, by their numbers."""

    size: int
    start: int
    end: int
    over: list[Buffer] = field(default_factory=list["Buffer"])
    """What may end where this begins, at the same place."""

    def is_apart(self, other: Buffer) -> bool:
        """Whether both may lie at one place, one after the other."""
        first, second = (self, other) if self.start <= other.start else (other, self)
        return first.end < second.start or (first.end == second.start and first in second.over)


class _Temporaries:
    """What lies in memory while a graph runs, besides its arguments and results; `is_loop`: its results are the next
    values of its arguments, in their places."""

    def __init__(self, graph: Graph, *, is_loop: bool = False) -> None:
        self.graph, self.is_loop = graph, is_loop
        fusion = Fusion(graph)
        reads = {kernel: fusion.reads(kernel) for kernel in fusion.kernels}
        self.order = _in_order(fusion.kernels, reads, [origin(v) for v in graph.returned])
        self.reads = {kernel: reads[kernel] for kernel in self.order}
        self.at = {kernel: k for k, kernel in enumerate(self.order)}
        self.end = len(self.order)
        self.buffers: dict[Value, Buffer] = {}
        self.others: list[Buffer] = []
        """What blocks take that kernels run."""
        self._list()
        self._write_over()

    def _list(self) -> None:
        for k, kernel in enumerate(self.order):
            for value in kernel.results:
                self.buffers[value] = Buffer(value.bytes, k, k)
            for value in self.reads[kernel]:
                if value in self.buffers:
                    self.buffers[value].end = k
            if inside := max((_inside(self.graph, kernel, n) for n in range(len(kernel.blocks))), default=0):
                self.others.append(Buffer(inside, k, k))

    def _write_over(self) -> None:
        for k, kernel in enumerate(self.order):
            if any(carries for _, carries in kernel.blocks):
                sources = [origin(v) for v in kernel.reads]
                # What others read, too, is copied.
                pairs = [(v, r) for v, r in zip(sources, kernel.results, strict=False) if [*readers(v)] == [kernel]]
            else:
                pairs = [(v, r) for r in kernel.results for v, in_place in self.reads[kernel].items() if in_place]
                pairs = pairs if len(kernel.results) == 1 else []
            for value, result in pairs:
                buffer = self.buffers.get(value)
                if buffer is not None and buffer.end == k and _are_alike(value, result):
                    self.buffers[result].over.append(buffer)

    def peak(self) -> int:
        """The most bytes at once, as they lie."""
        returned = [v for v in dict.fromkeys(origin(v) for v in self.graph.returned) if v in self.buffers]
        for value in returned:
            self.buffers[value].end = self.end
        slots = {self.buffers[v]: [self.buffers[v]] for v in returned}
        shared: list[Buffer] = []
        if self.is_loop:
            shared = self._carry(slots)
        waiting = [b for b in (*self.buffers.values(), *self.others) if b not in slots]
        for buffer in sorted(waiting, key=lambda b: (-b.size, b.start)):
            slot = next((s for s in _tried(buffer, slots) if _takes(s, buffer)), None)
            if slot is None:
                shared.append(buffer)
            else:
                slot.append(buffer)
                slots[buffer] = slot
        tables = sum(_lines(kernel.table) for kernel in self.order)
        return (_lines(_height(shared)) if tables else _height(shared)) + tables

    def _carry(self, slots: dict[Buffer, list[Buffer]]) -> list[Buffer]:
        """Let the places of next values hold the last ones as long as these are read; copies of those that are made
        while they are."""
        copies: list[Buffer] = []
        for value, argument in zip(map(origin, self.graph.returned), self.graph.arguments, strict=True):
            buffer = self.buffers.get(value)
            if buffer is None or value.node is None:
                continue
            last = max((self.at[k] for k in self.order if argument in self.reads[k]), default=-1)
            slots[buffer].append(Buffer(value.bytes, -1, last))
            is_written_over = self.reads[value.node].get(argument, False) and _are_alike(argument, value)
            if last > buffer.start or (last == buffer.start and not is_written_over):
                copies.append(Buffer(value.bytes, buffer.start, self.end))
        return copies


def _inside(graph: Graph, kernel: Node, number: int) -> int:
    block, is_loop = kernel.blocks[number]
    return _Temporaries(Graph(block, graph.nominal, ROWS), is_loop=is_loop).peak()


def _lines(size: int) -> int:
    return -(-size // LINE) * LINE


def _are_alike(one: Value, other: Value) -> bool:
    """Whether two values have as many elements of one type."""
    if one.type is None or other.type is None or not (is_tensor(one.type) and is_tensor(other.type)):
        return False
    return one.bytes == other.bytes and dtype_text(one.type) == dtype_text(other.type)


def _tried(buffer: Buffer, slots: Mapping[Buffer, list[Buffer]]) -> list[list[Buffer]]:
    """The places of results that XLA tries for a buffer: those of what it may be written over, then the small ones."""
    own = [slots[b] for b in buffer.over if b in slots]
    return own + sorted((s for b, s in slots.items() if s[0] is b), key=lambda s: s[0].size)


def _takes(slot: Sequence[Buffer], buffer: Buffer) -> bool:
    return slot[0].size >= buffer.size and all(buffer.is_apart(other) for other in slot)


# ---- the order of kernels -------------------------------------------------------------------------------------------


def _in_order(
    kernels: Sequence[Node], reads: Mapping[Node, Mapping[Value, bool]], returned: Sequence[Value]
) -> list[Node]:
    """The kernels that results need, depth first from these: of what one reads, that comes first which has more readers
    besides before it, or else more bytes."""
    users: dict[Value, int] = {}
    for kernel in kernels:
        for value in reads[kernel]:
            users[value] = users.get(value, 0) + 1
    weights: dict[Node, tuple[int, int]] = {}
    before: dict[Node, list[Node]] = {}
    for kernel in kernels:
        before[kernel] = list(dict.fromkeys(v.node for v in reads[kernel] if v.node is not None and v.node in weights))
        more = max(0, sum(users.get(v, 0) for v in kernel.results) - 1) + sum(weights[n][0] for n in before[kernel])
        size = sum(v.bytes for v in kernel.results) + sum(weights[n][1] for n in before[kernel])
        weights[kernel] = min(more, len(kernels)), size
        before[kernel].sort(key=lambda n: (-weights[n][0], -weights[n][1]))
    found: dict[Node, None] = {}
    for value in returned:
        pending = [] if value.node is None or value.node not in weights else [value.node]
        while pending:
            missing = [n for n in before[pending[-1]] if n not in found]
            if missing:
                pending.append(missing[0])
            else:
                found[pending.pop()] = None
    return list(found)


# ---- one piece of memory --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Placed:
    offset: int
    size: int
    start: int
    end: int


def _height(buffers: Sequence[Buffer]) -> int:
    """Bytes from the first to the last of buffers that lie in one piece of memory: the largest are put there first, or
    those that stay longest, whichever takes less. How long a buffer stays is how many others come and go meanwhile."""
    chains = _chains(buffers)
    times = _events(chains)
    spans = [(c, times[c[0]][0] - times[c[0]][1], times[c[0]][0] - times[c[-1]][1]) for c in chains]
    by_size = sorted(spans, key=lambda s: (-s[0][0].size, s[1]))
    by_time = sorted(spans, key=lambda s: (s[2], -s[0][0].size))
    return min(_stack([c for c, *_ in order]) for order in (by_size, by_time))


def _events(chains: Sequence[Sequence[Buffer]]) -> dict[Buffer, tuple[int, int]]:
    """When buffers come and go, counted in such events. At each kernel those come first that it makes, each after what
    it is written over has gone; then the others go that it is the last to read."""
    moments: list[tuple[tuple[int, bool, int, bool], Buffer]] = []
    for chain in chains:
        for k, buffer in enumerate(chain):
            is_last = k + 1 == len(chain)
            moments.append(((buffer.start, False, buffer.start, True), buffer))
            moments.append(((buffer.end, is_last, buffer.start if is_last else buffer.end, False), buffer))
    found: dict[Buffer, list[int]] = {}
    for time, (_, buffer) in enumerate(sorted(moments, key=lambda m: m[0])):
        found.setdefault(buffer, []).append(time)
    return {buffer: (first, last) for buffer, (first, last) in found.items()}


def _stack(chains: Sequence[Sequence[Buffer]]) -> int:
    placed: list[_Placed] = []
    for chain in chains:
        size, start, end = chain[0].size, chain[0].start, chain[-1].end
        others = sorted((p for p in placed if p.start <= end and start <= p.end), key=lambda p: p.offset)
        placed.append(_Placed(_gap(others, size), size, start, end))
    return max((p.offset + p.size for p in placed), default=0)


def _chains(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Buffers that are written over one another, in order of time."""
    chains: list[list[Buffer]] = []
    ending: dict[Buffer, list[Buffer]] = {}
    for buffer in sorted(buffers, key=lambda b: b.start):
        before = next((b for b in buffer.over if b in ending), None)
        if before is None:
            chains.append([buffer])
            ending[buffer] = chains[-1]
        else:
            ending[buffer] = ending.pop(before)
            ending[buffer].append(buffer)
    return chains


def _gap(others: Sequence[_Placed], size: int) -> int:
    """Where the tightest gap between others begins that is large enough; after them, if none is."""
    best, top = None, 0
    for other in others:
        room = other.offset - top
        if room >= size and (best is None or room < best[0]):
            best = room, top
        top = max(top, _lines(other.offset + other.size))
    return top if best is None else best[1]


__all__ = ["predicted_memory"]
