"""Which ops become which kernels: the pair of groups that saves the most time merges first, until nothing is saved.

This is priority-driven fusion as in XLA's GPU backend, over the kinds and rules of `gcomp.analysis.fusion.kernels`.
Four steps are weighed: a producer joins its consumer; a producer is computed again in each of its consumers and no
longer written; two groups that read the same data become one; two small loops over as many elements become one, which
saves a launch. Each leaves a verdict.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, SSAValue

from gcomp.analysis.fusion.dataflow import Dataflow
from gcomp.analysis.fusion.groups import Group, Groups
from gcomp.analysis.fusion.kernels import Kernel, Refusal, kernel_of
from gcomp.analysis.machines import Machine
from gcomp.analysis.work import Nominal
from gcomp.dims import Size, product
from gcomp.ir.types import shape_of

MAX_COPIES = 8
"""A producer is computed again in at most so many consumers."""

MAX_SIBLINGS = 8
"""How many of the next readers of a value may join a reader of it: a weight that all layers share has too many."""

MAX_COPIED_OPS = 16
"""A producer is computed again only if it has at most so many ops."""

SMALL_BYTES = 1 << 16
"""A loop that moves no more takes the time of its launch."""

CIRCLE = "another kernel reads one and is read by the other"
WORTHLESS = "would not save time"


@dataclass(frozen=True)
class Verdict:
    """Whether two groups became one, and why; ops by their position in the block."""

    step: str
    """`producer`, `copies`, `siblings` or `small`."""
    first: tuple[int, ...]
    second: tuple[int, ...]
    fused: bool
    reason: str
    gain: float
    """Seconds that it saves, by the cost model; 0 where it is not allowed."""


@dataclass
class Decisions:
    """The kernels of a block, and how they came to be."""

    flow: Dataflow
    groups: Groups
    machine: Machine
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    _found: dict[Hashable, Kernel | Refusal] = field(default_factory=dict[Hashable, Kernel | Refusal])

    def as_kernel(self, members: Sequence[int], groups: Sequence[Group]) -> Kernel | Refusal:
        """What ops of some groups are as one kernel. Equal layers ask the same often."""
        outputs = self.groups.outputs(members, groups)
        form = self.flow.form(members, outputs)
        if form not in self._found:
            self._found[form] = kernel_of(self.flow, members, outputs, self.machine)
        return self._found[form]

    def kernel(self, group: Group) -> Kernel:
        """A group's kernel. Every group is one: single ops always are."""
        found = self.as_kernel(group.members, (group,))
        assert isinstance(found, Kernel), found.reason
        return found

    def kernels(self) -> list[Group]:
        """The groups that are kernels, in order."""
        return [g for g in self.groups.ordered() if not g.fixed and self.groups.outputs(g.members, (g,))]


Allow = Callable[[int], bool]
"""Asked before each step with the op it is about; False stops it."""


def decide(
    block: Block, nominal: Nominal, machine: Machine, *, max_ops: int = 64, allow: Allow = lambda op: True
) -> Decisions:
    """The kernels of a block, whose ops stay as they are."""
    flow = Dataflow(block, nominal)
    return _Search(Decisions(flow, Groups(flow, windows=machine.borders), machine), max_ops, allow).run()


class _Search:
    def __init__(self, decisions: Decisions, max_ops: int, allow: Allow) -> None:
        self.decisions, self.flow, self.groups = decisions, decisions.flow, decisions.groups
        self.max_ops, self.allow = max_ops, allow
        self.costs: dict[Group, tuple[tuple[int, ...], Kernel]] = {}
        self.small: dict[Size, list[int]] = {}

    def run(self) -> Decisions:
        # What could follow one product and come before another goes after the first: it runs once there for each
        # element, and before the second once for each tile, and before a window (`spare`) once for each of its points.
        self._merge_by_priority(self._epilogue_pairs, "producer")
        self._merge_by_priority(self._vertical_pairs, "producer")
        self._copy_producers()
        self._merge_by_priority(self._vertical_pairs, "producer")
        self._merge_by_priority(self._sibling_pairs, "siblings")
        self.small = self._small_loops()
        self._merge_by_priority(self._small_pairs, "small")
        # Only together may what cuts a sort's results follow it.
        self._merge_by_priority(self._pairs_of_sorts, "producer")
        return self.decisions

    # ---- cost ----

    def _cost(self, group: Group) -> Kernel:
        found = self.costs.get(group)
        if found is None or found[0] != group.members:
            found = self.costs[group] = (group.members, self.decisions.kernel(group))
        return found[1]

    def _as_one(self, first: Group, second: Group) -> Kernel | Refusal:
        members = sorted({*first.members, *second.members})
        if len(members) - first.spare - second.spare > self.max_ops:
            return Refusal(f"a kernel has at most {self.max_ops} ops")
        return self.decisions.as_kernel(members, (first, second))

    def gain(self, first: Group, second: Group) -> float | Refusal:
        together = self._as_one(first, second)
        if isinstance(together, Refusal):
            return together
        return self._cost(first).seconds + self._cost(second).seconds - together.seconds

    # ---- merging, the most useful pair first ----

    def _merge_by_priority(self, pairs: Callable[[Group], Iterator[tuple[Group, Group]]], step: str) -> None:
        queue: list[tuple[float, int, Group, Group]] = []
        count = 0
        dead: set[Group] = set()

        def offer(first: Group, second: Group) -> None:
            nonlocal count
            gain = self.gain(first, second)
            if isinstance(gain, Refusal) or gain <= 0:
                self._note(step, first, second, gain)
                return
            count += 1
            heapq.heappush(queue, (-gain, count, first, second))

        for first, second in dict.fromkeys(pair for group in self.decisions.kernels() for pair in pairs(group)):
            offer(first, second)
        while queue:
            negative, _, first, second = heapq.heappop(queue)
            if first in dead or second in dead:
                continue
            if first.rank > second.rank:
                # Siblings may have changed places since they were offered.
                first, second = second, first
            region = self.groups.between(first, second)
            if region is None:
                self._note(step, first, second, Refusal(CIRCLE))
                continue
            if not self.allow(second.members[-1]):
                return
            self.decisions.verdicts.append(Verdict(step, first.members, second.members, True, "saves time", -negative))
            merged = self.groups.merge(first, second, region)
            dead |= {first, second}
            for a, b in dict.fromkeys(self._around(merged, pairs)):
                offer(a, b)

    def _around(
        self, merged: Group, pairs: Callable[[Group], Iterator[tuple[Group, Group]]]
    ) -> Iterator[tuple[Group, Group]]:
        """The pairs that a new group is in."""
        yield from pairs(merged)
        for predecessor in merged.predecessors:
            if not predecessor.fixed:
                yield from ((a, b) for a, b in pairs(predecessor) if b is merged)

    def _note(self, step: str, first: Group, second: Group, gain: float | Refusal) -> None:
        self.decisions.verdicts.append(_apart(step, first, second, gain))

    def _vertical_pairs(self, group: Group) -> Iterator[tuple[Group, Group]]:
        if not group.fixed:
            yield from ((group, successor) for successor in list(group.successors) if not successor.fixed)

    def _pairs_of_sorts(self, group: Group) -> Iterator[tuple[Group, Group]]:
        if not group.fixed and self._cost(group).kind == "sort":
            yield from self._vertical_pairs(group)

    def _epilogue_pairs(self, group: Group) -> Iterator[tuple[Group, Group]]:
        pairs = self._vertical_pairs(group)
        yield from ((a, b) for a, b in pairs if self._cost(b).kind in ("loop", "reduction") and not b.spare)

    def _sibling_pairs(self, group: Group) -> Iterator[tuple[Group, Group]]:
        """The group, and those that read a value which it reads too: of many, the nearest before and behind it."""
        if group.fixed:
            return
        inside, reads, found = set(group.members), dict[SSAValue, list[int]](), dict[Group, None]()
        for i in group.members:
            for value in self.flow.reads[i]:
                reads.setdefault(value, []).append(i)
        for value, own in reads.items():
            if self.flow.producer.get(value) not in inside:
                found |= dict.fromkeys(self._near_readers(value, own[0], own[-1]))
        yield from self._side_by_side(group, sorted(found, key=lambda g: g.rank))

    def _side_by_side(self, group: Group, others: Iterable[Group]) -> Iterator[tuple[Group, Group]]:
        """The group with each of the others that neither reads it nor is read by it, the earlier one first."""
        for other in others:
            if not (other is group or other.fixed or other in group.successors or group in other.successors):
                yield (group, other) if group.rank < other.rank else (other, group)

    def _small_loops(self) -> dict[Size, list[int]]:
        """For each count of elements, the loops over so many that are small, each as the last of its ops."""
        found: dict[Size, list[int]] = {}
        for group in self.decisions.kernels():
            if self._is_small(group):
                found.setdefault(self._space(group), []).append(group.members[-1])
        return found

    def _is_small(self, group: Group) -> bool:
        return not group.fixed and self._cost(group).kind == "loop" and self._cost(group).moved_bytes <= SMALL_BYTES

    def _space(self, group: Group) -> Size:
        """How many elements a loop goes over."""
        return product(shape_of(self.flow.ops[group.members[-1]].results[0]))

    def _small_pairs(self, group: Group) -> Iterator[tuple[Group, Group]]:
        """The group, and the next small loops over as many elements."""
        if not self._is_small(group):
            return
        last, near = group.members[-1], self.small.get(self._space(group), [])
        start = bisect_left(near, last)
        around = (*near[max(0, start - MAX_SIBLINGS) : start], *near[start : start + MAX_SIBLINGS])
        others = [other for i in around if (other := self.groups.home.get(i)) is not None and self._is_small(other)]
        yield from self._side_by_side(group, others)

    def _near_readers(self, value: SSAValue, first: int, last: int) -> Iterator[Group]:
        readers = self.flow.readers[value]
        start, stop = bisect_left(readers, first), bisect_right(readers, last)
        for i in (*readers[max(0, start - MAX_SIBLINGS) : start], *readers[stop : stop + MAX_SIBLINGS]):
            yield from self.groups.holders[i]
        if stop - start <= MAX_SIBLINGS:
            for i in readers[start:stop]:
                yield from self.groups.holders[i]

    # ---- computing again ----

    def _copy_producers(self) -> None:
        """From the last to the first, so that what one copies can be copied further."""
        for group in reversed(self.decisions.kernels()):
            users = list(group.successors)
            if self._may_copy(group, users) and (gain := self._copy_gain(group, users)) is not None:
                last = tuple(i for user in users for i in user.members)
                if gain <= 0:
                    self._note("copies", group, Group(last, 0, False), gain)
                elif self.allow(group.members[-1]):
                    self.decisions.verdicts.append(Verdict("copies", group.members, last, True, "saves time", gain))
                    self.groups.dissolve(group)

    def _may_copy(self, group: Group, users: list[Group]) -> bool:
        few = 1 < len(users) <= MAX_COPIES and len(group.members) <= MAX_COPIED_OPS
        return few and not any(u.fixed for u in users) and not self.flow.returned.intersection(group.members)

    def _copy_gain(self, group: Group, users: list[Group]) -> float | None:
        before, after = self._cost(group).seconds, 0.0
        if self._cost(group).kind != "loop":
            return None
        for user in users:
            members = sorted({*group.members, *user.members})
            if len(members) - group.spare - user.spare > self.max_ops:
                return None
            found = self.decisions.as_kernel(members, (user,))
            if isinstance(found, Refusal):
                return None
            before += self._cost(user).seconds
            after += found.seconds
        return before - after


def unfused_reasons(decisions: Decisions, *, max_ops: int = 64) -> list[Verdict]:
    """Why each kernel that reads another one's results is not one with it."""
    search = _Search(decisions, max_ops, lambda op: True)
    found: list[Verdict] = []
    for group in decisions.kernels():
        for reader in sorted(group.successors, key=lambda g: g.rank):
            if reader.fixed:
                continue
            gain = search.gain(group, reader)
            if not isinstance(gain, Refusal) and decisions.groups.between(group, reader) is None:
                gain = Refusal(CIRCLE)
            found.append(_apart("producer", group, reader, gain))
    return found


def _apart(step: str, first: Group, second: Group, gain: float | Refusal) -> Verdict:
    """That two groups did not become one, though it was allowed if there is a gain."""
    reason, worth = (gain.reason, 0.0) if isinstance(gain, Refusal) else (WORTHLESS, gain)
    return Verdict(step, first.members, second.members, False, reason, worth)
