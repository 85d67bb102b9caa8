"""What a pass changed, as pairs of small drawings: the ops that went, and those that came, with their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy.cluster.hierarchy import DisjointSet
from xdsl.ir import Operation

from gcomp.report.drawing import draw
from gcomp.report.lines import Lines, title_of
from gcomp.report.recording import Change, Snapshot

SHOWN, LARGEST, MOST = 12, 26, 4000
"""Kinds of changes that are drawn, ops of one side of a drawing, and changed ops that are looked at."""

HUB = 3
"""What more ops than this read (a mask) does not make one change of all of theirs."""

_NONE: Mapping[Operation, float] = {}
_QUIET = frozenset({"gcomp.weight", "stablehlo.constant"})
"""Ops that are drawn only where they change."""


def changes(
    change: Change,
    lines: Lines,
    old_errors: Mapping[Operation, float] = _NONE,
    new_errors: Mapping[Operation, float] = _NONE,
) -> list[dict[str, Any]]:  # fmt: skip
    """The kinds of changes: how often, and drawings before and after. Those that only read another value come after
    those that compute otherwise, and constants last; of each, those of most ops, all together, first."""
    old, new = change.old, change.new
    removed = [op for op in change.difference.removed if op in old.tops][:MOST]
    added = [op for op in change.difference.added if op in new.tops][:MOST]
    kinds: dict[Any, list[tuple[list[Operation], list[Operation]]]] = {}
    for gone, came in _components(old, new, removed, added):
        key = (tuple(sorted(op.name for op in gone)), tuple(sorted(op.name for op in came)))
        kinds.setdefault(key, []).append((gone, came))
    ordered = sorted(kinds.items(), key=lambda kind: (_is_quiet(kind[0]), kind[0][0] == kind[0][1], -_weight(kind[1])))
    return [
        {
            "count": len(found), "gone": len(found[0][0]), "came": len(found[0][1]),
            "before": _side(old, found[0][0], lines, old_errors),
            "after": _side(new, found[0][1], lines, new_errors),
        } for _, found in ordered[:SHOWN]
    ]  # fmt: skip


def _components(
    old: Snapshot, new: Snapshot, removed: Sequence[Operation], added: Sequence[Operation]
) -> list[tuple[list[Operation], list[Operation]]]:
    """Removed and added ops that belong together: next to each other, the same op, or read by the same place."""
    gone, came = dict.fromkeys(removed), dict.fromkeys(added)
    # An op that changed in place is on both sides.
    found: Any = DisjointSet([*(("-", op) for op in gone), *(("+", op) for op in came)])
    for sign, ops, side in (("-", gone, old), ("+", came, new)):
        for op in ops:
            for source in side.tops[op]:
                if source in ops and source.name not in _QUIET and len(side.users[source]) <= HUB:
                    found.merge((sign, op), (sign, source))
    for op in gone:
        if op in came:
            found.merge(("-", op), ("+", op))
        for user in old.users.get(op, ()):
            if user in gone and user not in came:
                continue
            for before, after in zip(old.tops[user], new.tops.get(user, ()), strict=False):
                if before is op and after in came:
                    found.merge(("-", op), ("+", after))
    order = {op: i for i, op in enumerate((*removed, *added))}
    parts = [sorted(part, key=lambda item: order[item[1]]) for part in found.subsets()]
    split = [([op for s, op in part if s == "-"], [op for s, op in part if s == "+"]) for part in parts]
    return sorted(split, key=lambda pair: min(order[op] for side in pair for op in side))


def _side(side: Snapshot, ops: Sequence[Operation], lines: Lines, errors: Mapping[Operation, float]) -> dict[str, Any]:
    """A drawing of ops and of what stands around them."""
    if len(ops) > LARGEST:
        return {"much": len(ops)}
    changed = dict.fromkeys(ops)
    around: dict[Operation, None] = {}
    for op in ops:
        around |= dict.fromkeys(source for source in side.tops[op] if source not in changed)
        around |= dict.fromkeys(user for user in side.users.get(op, ()) if user not in changed)
    near = list(around)[:LARGEST]
    number = {op: n for n, op in enumerate(sorted((*ops, *near), key=side.place.__getitem__))}
    edges = list(_edges(side, changed, number))
    boxes = [[title_of(op), int(op in changed), side.line[op], lines.shape(op), errors.get(op)] for op in number]
    return {"n": boxes, **draw(len(boxes), edges).to_json()}


def _edges(side: Snapshot, changed: dict[Operation, None], number: dict[Operation, int]) -> Iterable[tuple[int, int]]:
    for op in number:
        for source in side.tops.get(op, ()):
            if source in number and (op in changed or source in changed):
                yield number[source], number[op]


def _weight(found: Sequence[tuple[Sequence[Operation], Sequence[Operation]]]) -> int:
    return sum(len(gone) + len(came) for gone, came in found)


def _is_quiet(key: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    """Whether a kind of change is of constants and the like alone, which says least."""
    return all(name in _QUIET for names in key for name in names)


__all__ = ["changes"]
