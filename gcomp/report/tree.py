"""A graph as groups in one another: by module, layers that repeat together, and long lists in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MOST, PART = 90, 45
"""Children of a group that are drawn at once, and of a part where there are more."""

REPEATS, PERIOD, WINDOW = 3, 4, 5
"""How often something repeats at least, of how many ops, and how many neighbours tell the places where it may."""


@dataclass(eq=False)
class Group:
    """Nodes, by number, and groups in order. `shape` is equal for groups of the same ops."""

    title: str
    children: list[Group | int] = field(default_factory=list["Group | int"])
    parent: Group | None = None
    shape: int = 0
    count: int = 0
    """Nodes in it and in its groups."""
    first: int = 0
    """The least number of a node in it."""
    is_part: bool = False
    """Whether it is a part of a long list, and no group that the source knows."""

    def groups(self) -> Iterator[Group]:
        """Itself and all groups in it, the outer before the inner."""
        yield self
        for child in self.children:
            if isinstance(child, Group):
                yield from child.groups()


def tree_of(scopes: Sequence[tuple[str, ...]], tokens: Sequence[object], title: str) -> Group:
    """The groups of nodes `0 .. n - 1` by their modules; nodes with equal tokens are of the same kind."""
    root = Group(title)
    by_path: dict[tuple[str, ...], Group] = {(): root}
    for number, scope in enumerate(scopes):
        for depth in range(1, len(scope) + 1):
            if scope[:depth] not in by_path:
                group = by_path[scope[:depth]] = Group(scope[depth - 1])
                by_path[scope[: depth - 1]].children.append(group)
        by_path[scope].children.append(number)
    _flatten(root)
    _part(root, tokens)
    _measure(root, tokens)
    _stack(root)
    _part(root, tokens)
    _measure(root, tokens)
    for group in root.groups():
        for child in group.children:
            if isinstance(child, Group):
                child.parent = group
    return root


def _flatten(group: Group) -> None:
    """A group whose only child is a group is that group; one of a single node is that node."""
    for i, child in enumerate(group.children):
        if isinstance(child, Group):
            _flatten(child)
            if len(child.children) == 1:
                only = child.children[0]
                if isinstance(only, Group):
                    only.title = f"{child.title}.{only.title}"
                group.children[i] = only


def _measure(group: Group, tokens: Sequence[object]) -> None:
    """Count nodes, and see which groups are of one shape."""
    shapes: list[object] = []
    group.count, firsts = 0, list[int]()
    for child in group.children:
        if isinstance(child, Group):
            _measure(child, tokens)
            shapes.append(child.shape)
            group.count += child.count
            firsts.append(child.first)
        else:
            shapes.append(tokens[child])
            group.count += 1
            firsts.append(child)
    group.first = min(firsts, default=0)
    group.shape = hash(tuple(shapes))


def _stack(group: Group) -> None:
    """Put groups of one shape, if there are several beside others, into one group."""
    for child in group.children:
        if isinstance(child, Group):
            _stack(child)
    if group.is_part:
        return
    alike: dict[int, list[Group]] = {}
    for child in group.children:
        if isinstance(child, Group) and not child.is_part:
            alike.setdefault(child.shape, []).append(child)
    for same in alike.values():
        if len(same) < REPEATS:
            continue
        if len(same) == len(group.children):
            group.title = f"{group.title} \u00d7{len(same)}"
            continue
        at = group.children.index(same[0])
        stack = Group(f"{same[0].title} \u2026 {same[-1].title} \u00d7{len(same)}", list[Group | int](same))
        group.children = [child for child in group.children if child not in same]
        group.children.insert(at, stack)


def _part(group: Group, tokens: Sequence[object]) -> None:
    """Cut groups of very many children into what repeats, and into parts."""
    for child in group.children:
        if isinstance(child, Group):
            _part(child, tokens)
    if len(group.children) <= MOST:
        return
    numbers = [child for child in group.children if isinstance(child, int)]
    if len(numbers) == len(group.children) and (found := _repeats(numbers, tokens)) is not None:
        begin, period, count = found
        turns = [
            Group(f"{n + 1}", list[Group | int](numbers[begin + n * period : begin + (n + 1) * period]))
            for n in range(count)
        ]
        around = (numbers[:begin], numbers[begin + count * period :])
        group.children = [*around[0], Group(f"repeated \u00d7{count}", list(turns), is_part=True), *around[1]]
        for turn in turns:
            _part(turn, tokens)
    while len(group.children) > MOST:
        size = max(PART, -(-len(group.children) // MOST))
        parts = [group.children[i : i + size] for i in range(0, len(group.children), size)]
        group.children = [Group(f"part {n + 1} of {len(parts)}", part, is_part=True) for n, part in enumerate(parts)]


def _repeats(numbers: Sequence[int], tokens: Sequence[object]) -> tuple[int, int, int] | None:
    """Where something repeats one after the other: its begin, its length, and how often; the longest stretch of it."""
    row = [tokens[n] for n in numbers]
    last: dict[object, int] = {}
    distances = Counter[int]()
    for i in range(len(row) - WINDOW):
        key = tuple(row[i : i + WINDOW])
        if key in last:
            distances[i - last[key]] += 1
        last[key] = i
    best: tuple[int, int, int, int] | None = None
    for period, _ in distances.most_common(8):
        if period < PERIOD:
            continue
        begin = 0
        for i in range(len(row) - period + 1):
            if i < len(row) - period and row[i] == row[i + period]:
                continue
            count = (i - begin + period) // period
            covered = count * period
            if count >= REPEATS and (best is None or covered > best[0]):
                best = (covered, begin, period, count)
            begin = i + 1
    return None if best is None else best[1:]


__all__ = ["Group", "tree_of"]
