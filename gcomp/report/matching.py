"""Two programs beside each other: which ops of one are those of the other, and the rest as a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from xdsl.ir import Operation, SSAValue

from gcomp.ir.program import Program
from gcomp.records import record
from gcomp.report.lines import Lines, ops_in_order
from gcomp.report.recording import Change, Snapshot, difference

ALIGNED = 4000
"""Ops of which what stands in the same order is looked for; with more, ops are the same that compute the same."""


@record
class Entry:
    """An op of a main block as it was: its words (those of its regions too), its operands and results."""

    op: Operation
    words: tuple[str, str]
    inside: tuple[tuple[str, str], ...]
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]


@record
class Listing:
    """The ops of a program in order, and its arguments."""

    arguments: tuple[SSAValue, ...]
    entries: tuple[Entry, ...]


def listing_of(program: Program, lines: Lines) -> Listing:
    """A program as it is now, in a form that later passes do not change."""
    entries: list[Entry] = []
    for op in program.block.ops:
        inside = [lines.words(inner) for region in op.regions for block in region.blocks
                  for inner, _ in ops_in_order(block)]  # fmt: skip
        entries.append(Entry(op, lines.words(op), tuple(inside), tuple(op.operands), tuple(op.results)))
    return Listing(tuple(program.block.args), tuple(entries))


def change_between(first: Listing, second: Listing, lines: Lines) -> Change:
    """From the first program to the second: ops that are the same in both are those of the second."""
    pairs = _matched(first, second)
    same = {first.entries[i].op: second.entries[j].op for i, j in pairs.items()}
    for one, other in zip(first.arguments, second.arguments, strict=False):
        lines.alias(one, other)
    for i, j in pairs.items():
        for one, other in zip(first.entries[i].results, second.entries[j].results, strict=False):
            lines.alias(one, other)
    old, new = _snapshot(first, lines, same), _snapshot(second, lines, {})
    return Change(old, new, difference(old, new))


def _snapshot(listing: Listing, lines: Lines, same: Mapping[Operation, Operation]) -> Snapshot:
    found = Snapshot([], [], {})
    for entry in listing.entries:
        op = same.get(entry.op, entry.op)
        found.ops.append(op)
        found.lines.append(lines.number(lines.text(entry.results, entry.operands, entry.words, 0)))
        makers = [value.owner for value in entry.operands if isinstance(value.owner, Operation)]
        found.tops[op] = tuple([same.get(maker, maker) for maker in makers])
        for source in found.tops[op]:
            found.users.setdefault(source, []).append(op)
    return found


def _matched(first: Listing, second: Listing) -> dict[int, int]:
    """Positions of ops in the first -> in the second: those that compute the same, then those in the same order."""
    places: dict[object, list[int]] = defaultdict(list)
    for j, key in reversed(list(enumerate(_keys(second)))):
        places[key].append(j)
    pairs = {i: places[key].pop() for i, key in enumerate(_keys(first)) if places[key]}
    taken = set(pairs.values())
    left = [i for i in range(len(first.entries)) if i not in pairs]
    right = [j for j in range(len(second.entries)) if j not in taken]
    if len(left) + len(right) <= ALIGNED:
        rows = [[(side.entries[k].words, side.entries[k].inside) for k in rest]
                for side, rest in ((first, left), (second, right))]  # fmt: skip
        for a, b, size in SequenceMatcher(None, rows[0], rows[1], autojunk=False).get_matching_blocks():
            pairs |= {left[a + k]: right[b + k] for k in range(size)}
    return pairs


def _keys(listing: Listing) -> Sequence[object]:
    """Equal numbers for ops that compute the same from the arguments, as far as words tell."""
    known: dict[SSAValue, object] = {argument: ("argument", n) for n, argument in enumerate(listing.arguments)}
    keys: list[object] = []
    for entry in listing.entries:
        operands = tuple([known.get(operand) for operand in entry.operands])
        key = hash((entry.words, entry.inside, operands))
        keys.append(key)
        known |= {result: (key, n) for n, result in enumerate(entry.results)}
    return keys


__all__ = ["Listing", "change_between", "listing_of"]
