"""Factors of an op as its indexing maps show them: a dimension of a result and those that every map reads at the same
index are cut together; what a map reads in any other way is not.

A row says beforehand what no map can say; what it has said of a dimension stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from gcomp.analysis.indexing import IndexingMap, d, operand_maps, r
from gcomp.dims import Size, symbols_of
from gcomp.ir.types import shape_of
from gcomp.partitioning.rule import Factor, Kind, Mapped, ShardingRule

Slot = tuple[int, int]
"""(tensor, dimension); results are counted after operands."""


class Draft:
    """A rule in the making: tensors are counted, results after operands."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.shapes = [shape_of(v) for v in (*op.operands, *op.results)]
        self.operands = len(op.operands)
        self.reducer: str | None = None
        """What combines parts of sums over range variables that operands share, if anything does."""
        self.spreads = False
        """Whether along dimensions of a result that no map reads each device makes its own part."""
        self._barred: set[Slot] = set()
        self._fallbacks: list[tuple[tuple[Slot, ...], Kind]] = []
        self._found: list[Factor] = []
        self._taken: dict[Slot, list[int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether an operand or result has no element."""
        return any(0 in shape for shape in self.shapes)

    # ---- what rows say ----

    def result(self, dim: int, i: int = 0) -> Slot:
        """The slot of a dimension of the i-th result."""
        return self.operands + i, dim

    def tie(
        self,
        slots: Iterable[Slot],
        kind: Kind = Kind.PASS_THROUGH,
        *,
        size: Size | None = None,
        combine: str | None = None,
    ) -> None:
        """Give dimensions a factor in common: the next minor one of each. Its size is that of the last dimension."""
        found = [*slots]
        for slot in found:
            self._taken.setdefault(slot, []).append(len(self._found))
        self._found.append(Factor(self.size(found[-1]) if size is None else size, kind, combine))

    def bar(self, *slots: Slot) -> None:
        """Along these dimensions elements are told apart by their place: what maps show does not hold of parts."""
        self._barred.update(slots)

    def otherwise(self, slots: Iterable[Slot], kind: Kind) -> None:
        """Tie dimensions that maps do not show to be cut together: those that are left then."""
        self._fallbacks.append((tuple(slots), kind))

    def positions(self, kind: Kind, *, equal: bool = False) -> None:
        """`otherwise` for the dimensions at the same place of all tensors of the first result's rank; if `equal`, of
        those where all sizes are equal."""
        rank = len(self.shapes[self.operands])
        tensors = [t for t, shape in enumerate(self.shapes) if len(shape) == rank]
        for dim in range(rank):
            if not equal or len({self.shapes[t][dim] for t in tensors}) == 1:
                self.otherwise([(t, dim) for t in tensors], kind)

    # ---- what is made of it ----

    def size(self, slot: Slot) -> Size:
        """The size of a dimension."""
        return self.shapes[slot[0]][slot[1]]

    def free(self, slot: Slot) -> bool:
        """Whether nothing has been said of a dimension."""
        return slot not in self._taken

    def plain(self, slot: Slot) -> bool:
        """Whether a dimension is free, and what maps show holds of its parts."""
        return self.free(slot) and slot not in self._barred

    def _fall_back(self) -> None:
        """Tie what is left as `otherwise` asked, and give all others a factor of their own."""
        for slots, kind in self._fallbacks:
            if left := [slot for slot in slots if self.free(slot)]:
                self.tie(left, kind, size=self.size(left[0]))
        for t, shape in enumerate(self.shapes):
            for dim, size in enumerate(shape):
                if self.free((t, dim)):
                    self.tie([(t, dim)], Kind.PASS_THROUGH if size == 1 else Kind.NEED_REPLICATION)

    def finish(self) -> ShardingRule:
        """The rule; factors are numbered as they come in operands and results."""
        self._fall_back()
        order = dict[int, int]()
        mapped: list[Mapped] = []
        for t, shape in enumerate(self.shapes):
            own = [self._taken[t, dim] for dim in range(len(shape))]
            mapped.append(tuple([tuple([order.setdefault(f, len(order)) for f in factors]) for factors in own]))
        factors = tuple([self._found[f] for f in order])
        return ShardingRule(factors, tuple(mapped[: self.operands]), tuple(mapped[self.operands :]))


def derive(draft: Draft) -> None:
    """Give all dimensions of which nothing has been said the factors that the indexing maps show."""
    reads = _Reads(draft)
    for row, domain in enumerate(draft.shapes[draft.operands :]):
        for dim, size in enumerate(domain):
            slot = draft.result(dim, row)
            if not draft.plain(slot) or size == 1:
                continue
            slots = reads.together(slot)
            spreads = draft.spreads and reads.are_exact(row)
            if slots is not None and (spreads or any(t < draft.operands for t, _ in slots)):
                draft.tie(slots)
    if draft.reducer is not None:
        for slots in reads.summed():
            draft.tie(slots, Kind.REDUCTION, combine=draft.reducer)


class _Reads:
    """What the maps of an op say of single dimensions."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.rows = operand_maps(draft.op)

    def are_exact(self, row: int) -> bool:
        """Whether all that a result reads is known: of what is read somewhere, nothing may be cut alone."""
        return all(m is None or m.exact for m in self.rows[row])

    def together(self, slot: Slot) -> list[Slot] | None:
        """The dimensions that have to be cut with a result's. None where an element needs others than those at its own
        index, or where another result reads one of these dimensions at another index."""
        draft, found = self.draft, dict[Slot, None]()
        todo = [slot]
        while todo:
            here = todo.pop()
            if here in found:
                continue
            if not draft.plain(here) or draft.size(here) != draft.size(slot):
                return None
            found[here] = None
            others = self._operands_of(here) if here[0] >= draft.operands else self._results_of(here)
            if others is None:
                return None
            todo += others
        return sorted(found)

    def _operands_of(self, slot: Slot) -> list[Slot] | None:
        """The operands' dimensions that are read at the index of a result's dimension."""
        row, dim = slot[0] - self.draft.operands, slot[1]
        found: list[Slot] = []
        for t, m in enumerate(self.rows[row]):
            if m is None or (uses := _uses(m, d(dim).text)) == 0:
                continue
            plain = [k for k, index in enumerate(m.indices) if index == d(dim)]
            if len(plain) != 1 or uses != 1:
                return None
            found.append((t, plain[0]))
        return found

    def _results_of(self, slot: Slot) -> list[Slot] | None:
        """The results' dimensions at whose index an operand's dimension is read."""
        found: list[Slot] = []
        for row, maps in enumerate(self.rows):
            if (m := maps[slot[0]]) is None:
                continue
            own = [i for i in range(len(m.domain)) if m.indices[slot[1]] == d(i)]
            if not own:
                return None
            found.append(self.draft.result(own[0], row))
        return found

    def summed(self) -> Iterator[list[Slot]]:
        """The dimensions over all of which one range variable runs, in each operand that has it."""
        named = [(t, m) for t, m in enumerate(self.rows[0]) if m is not None and m.ranges]
        for j in range(max((len(m.ranges) for _, m in named), default=0)):
            slots = [(t, k) for t, m in named for k, index in enumerate(m.indices) if index == r(j)]
            whole = all(self.draft.size(slot) == m.ranges[j] for slot in slots for t, m in named if t == slot[0])
            others = any(_uses(m, r(j).text) != sum(slot[0] == t for slot in slots) for t, m in named)
            if slots and whole and not others and all(self.draft.plain(slot) for slot in slots):
                yield slots


def _uses(m: IndexingMap, name: str) -> int:
    """In how many indices and conditions of a map a variable stands."""
    sizes = [*m.indices, *(size for c in m.conditions for size in (c.expr, c.lo, c.hi))]
    return sum(name in symbols_of(size) for size in sizes)
