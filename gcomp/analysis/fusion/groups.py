"""Groups of ops that will be kernels, as a graph that stays acyclic and in topological order while groups merge.

The order is kept as in Pearce and Kelly's dynamic topological sort (JEA 2007): a merge searches only between the ranks
of the two groups, which finds a path that would become a cycle, and reorders only what lies there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gcomp.analysis.fusion.dataflow import Dataflow
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import is_stored
from gcomp.ir.roles import Role

WINDOW = 4
"""Slices of one value that are a window, at least."""
MOST_OF_WINDOW = 512
"""Ops that compute a window in one kernel, at most."""
MAX_SEARCH = 4096
"""Groups between two that would merge; beyond it they count as too far apart."""


class Group:
    """Ops that will be one kernel, or one op that stays as it is (`fixed`)."""

    __slots__ = ("fixed", "members", "predecessors", "rank", "spare", "successors")

    def __init__(self, members: tuple[int, ...], rank: int, fixed: bool, spare: int = 0) -> None:
        self.members = members
        self.spare = spare
        """Members that do not count where a kernel has too many: a window is one op."""
        self.rank = rank
        self.fixed = fixed
        self.predecessors: dict[Group, None] = {}
        self.successors: dict[Group, None] = {}


class Region(NamedTuple):
    """Groups between two others: those that must come before both merged into one, and those that must come after."""

    before: list[Group]
    after: list[Group]


def _in_order(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda g: g.rank)


class Groups:
    """The groups of a block. A free op has a copy in each group that reads it, and one more if memory must hold it.

    What computes a window (`_windows`) is a group from the start, if that is asked for: its hundreds of ops have nobody
    else to go with, and to weigh each of them would take most of the time.
    """

    def __init__(self, flow: Dataflow, *, windows: bool = False) -> None:
        self.flow = flow
        self.holders: list[set[Group]] = [set() for _ in flow.ops]
        """The groups that compute an op, each for itself."""
        self.home: dict[int, Group] = {}
        """The group that writes an op's results to memory, if one does."""
        trees = self._windows() if windows else dict[int, list[int]]()
        inside = {m for members in trees.values() for m in members}
        for i in reversed(range(len(flow.ops))):
            if i in trees:
                self._add_window(i, trees[i])
            elif self._must_exist(i) if flow.free[i] else i not in inside:
                self._add(i)
        for group in dict.fromkeys(self.home.values()):
            self._connect(group)

    def _must_exist(self, i: int) -> bool:
        """Whether a free op's value is needed in memory: for the block's return, a call, or what is no kernel."""
        return i in self.flow.returned or any(
            self.flow.calls[u] or (u in self.home and self.home[u].fixed) for u in self.flow.users[i]
        )

    def _add(self, i: int) -> None:
        view = self.flow.free[i] and i not in self.flow.generated
        fixed = self.flow.fixed[i] or view or is_stored(self.flow.ops[i])
        members = (i,) if fixed else tuple(self.flow.closure(i))
        group = Group(members, i, fixed)
        self.home[i] = group
        for m in members:
            self.holders[m].add(group)

    def _add_window(self, last: int, members: Sequence[int]) -> None:
        group = Group(tuple(members), last, False, len(members) - 1)
        for i in members:
            self.holders[i].add(group)
            if not self.flow.free[i]:
                self.home[i] = group

    def _windows(self) -> dict[int, list[int]]:
        """The last op of each elementwise computation on slices of a value, and all that nothing else reads: trees."""
        flow = self.flow
        slices = Counter([op.operand for op in flow.ops if isinstance(op, hlo.SliceOp)])
        trees: dict[int, list[int]] = {}
        windows: set[int] = set()
        for i, op in enumerate(flow.ops):
            if flow.fixed[i] or flow.free[i]:
                continue
            is_window = isinstance(op, hlo.SliceOp) and slices[op.operand] >= WINDOW
            if is_window:
                windows.add(i)
            read = [] if is_window else self._computed(i)
            # Factors of a window are slices of a weight, repeated to its shape.
            joins = flow.roles[i] is Role.ELEMENTWISE or isinstance(op, hlo.SliceOp | hlo.BroadcastInDimOp)
            if joins and read is not None and all(p in trees for p in read):
                trees[i] = [i, *[m for p in read for m in trees.pop(p)]]
        found: dict[int, list[int]] = {}
        for last, tree in trees.items():
            members = sorted({m for i in tree for m in flow.closure(i)})
            if len(windows.intersection(tree)) >= WINDOW and len(members) <= MOST_OF_WINDOW:
                found[last] = members
        return found

    def _computed(self, i: int) -> list[int] | None:
        """What computes the values that an op reads, apart from free ops; None where something else reads it too."""
        found: dict[int, None] = {}
        for value in self.flow.reads[i]:
            p = self.flow.producer.get(value)
            if p is None or self.flow.fixed[p] or p in self.flow.generated:
                continue
            if len(self.flow.users[p]) > 1 or p in self.flow.returned:
                return None
            inner = self._computed(p) if self.flow.free[p] else [p]
            if inner is None:
                return None
            found.update(dict.fromkeys(inner))
        return list(found)

    def _connect(self, group: Group) -> None:
        for source in self.sources(group):
            group.predecessors[source] = None
            source.successors[group] = None

    def sources(self, group: Group) -> Iterable[Group]:
        """The groups whose results a group reads, or that must come before it without that (`Dataflow.after`)."""
        inside = set(group.members)
        found: dict[Group, None] = {}
        for i in group.members:
            for value in self.flow.reads[i]:
                p = self.flow.producer.get(value)
                if p is not None and p not in inside:
                    found[self.home[p]] = None
            for p in sorted(self.flow.after.get(i, ())):
                if p not in inside:
                    found[self.home[p]] = None
        return found

    def ordered(self) -> list[Group]:
        """All groups, each after those that it reads."""
        return sorted(dict.fromkeys(self.home.values()), key=lambda g: g.rank)

    # ---- outputs ----

    def outputs(self, members: Sequence[int], groups: Sequence[Group]) -> list[int]:
        """The ops of `members` whose results something outside of `groups` reads."""
        return [i for i in members if self.home.get(i) in groups and self._read_outside(i, groups)]

    def _read_outside(self, i: int, groups: Sequence[Group]) -> bool:
        if i in self.flow.returned:
            return True
        for user in self.flow.users[i]:
            for g in self.holders[user]:
                if g not in groups and g not in self.holders[i]:
                    return True
        return False

    # ---- merging ----

    def between(self, first: Group, last: Group) -> Region | None:
        """What lies between two groups that would merge; None if a path leads from one to the other through others."""
        after: dict[Group, None] = {}
        pending = [g for g in first.successors if g is not last and g.rank < last.rank]
        while pending:
            group = pending.pop()
            if group in after:
                continue
            after[group] = None
            if last in group.successors or len(after) > MAX_SEARCH:
                return None
            pending += [g for g in group.successors if g.rank < last.rank]
        before: dict[Group, None] = {}
        pending = [g for g in last.predecessors if g is not first and g.rank > first.rank]
        while pending and after:
            group = pending.pop()
            if group not in before:
                before[group] = None
                pending += [g for g in group.predecessors if g.rank > first.rank]
        return Region(_in_order(before), _in_order(after))

    def merge(self, first: Group, last: Group, region: Region) -> Group:
        """One group of two; `region` is what `between` found."""
        members = tuple(sorted({*first.members, *last.members}))
        merged = Group(members, last.rank, False, first.spare + last.spare)
        if region.after:
            order = [*region.before, merged, *region.after]
            ranks = sorted([last.rank, *[g.rank for g in (*region.before, *region.after)]])
            for group, rank in zip(order, ranks, strict=True):
                group.rank = rank
        for i in members:
            holders = self.holders[i]
            holders.discard(first)
            holders.discard(last)
            holders.add(merged)
            if self.home.get(i) in (first, last):
                self.home[i] = merged
        for old in (first, last):
            self._unlink(old, merged, (first, last))
        return merged

    def _unlink(self, old: Group, new: Group, merging: Sequence[Group]) -> None:
        for p in old.predecessors:
            p.successors.pop(old, None)
            if p not in merging:
                p.successors[new] = None
                new.predecessors[p] = None
        for s in old.successors:
            s.predecessors.pop(old, None)
            if s not in merging:
                s.predecessors[new] = None
                new.successors[s] = None

    def dissolve(self, group: Group) -> list[Group]:
        """Compute a group's ops in each group that reads them, instead of writing their results; those groups."""
        users = list(group.successors)
        for i in group.members:
            self.holders[i].discard(group)
            if self.home.get(i) is group:
                del self.home[i]
        for p in group.predecessors:
            del p.successors[group]
        for user in users:
            del user.predecessors[group]
            user.members = tuple(sorted({*group.members, *user.members}))
            user.spare += group.spare
            for i in group.members:
                self.holders[i].add(user)
            for p in group.predecessors:
                p.successors[user] = None
                user.predecessors[p] = None
        return users
