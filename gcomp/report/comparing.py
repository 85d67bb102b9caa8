"""Two reports beside each other: figures, passes, ops and kernels of one and of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcomp.report.building import Report, change_to_json
from gcomp.report.matching import change_between

SHOWN = 300
"""Kernels that differ and are listed."""

Line = list[Any]
"""A name, a figure of the first and of the second (None where it has none), and the unit: `count`, `bytes` or `us`."""


def compare(first: Report, second: Report) -> Report:
    """The page of the second, with a view of what differs from the first."""
    one, other = first.data, second.data
    kernels = _kernels(one, other)
    differing = [line for line in kernels if line[1] != line[2]]
    shown = differing[:SHOWN]
    found = {
        "names": _names(first.title, second.title),
        "figures": list(_figures(one, other)),
        "passes": _beside(_rewrites(one), _rewrites(other)),
        "ops": _beside(_counts(one), _counts(other)),
        "changes": [
            {
                "level": level,
                **change_to_json(change_between(listing, second.listings[level], second.lines), second.lines),
            }
            for level, listing in first.listings.items()
            if level in second.listings
        ],
        "kernels": shown,
        "more": len(kernels) - len(shown),
    }
    data = {**other, "lines": second.lines.texts, "title": second.title, "compare": found}
    return Report(f"{first.title} and {second.title}", data, second.texts, second.lines, second.listings)


def _names(first: str, second: str) -> list[str]:
    return [first, second] if first != second else [f"{first} (first)", f"{second} (second)"]


def _figures(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Line]:
    sides = (one, other)
    names = ("ops", "bytes of results", "peak of results")
    for i, unit in enumerate(("count", "bytes", "bytes")):
        yield [f"{names[i]}, imported", *(side["passes"][0]["before"][i] for side in sides), unit]
        yield [f"{names[i]}, after all passes", *(side["passes"][-1]["after"][i] for side in sides), unit]
    yield ["rewrites", *(sum(_rewrites(side).values()) for side in sides), "count"]
    yield ["time of the passes", *(sum(record["us"] for record in side["passes"]) for side in sides), "us"]
    yield ["kernels", *(len(side["kernels"]) for side in sides), "count"]
    for name, key in (("predicted", "us"), ("measured", "measured")):
        yield [name, *(_sum(side["kernels"], key) for side in sides), "us"]
    for name, key in (("flops", "flops"), ("bytes moved", "bytes")):
        yield [name, *(_sum(side["kernels"], key) for side in sides), "count" if key == "flops" else "bytes"]


def _sum(kernels: Sequence[Mapping[str, Any]], key: str) -> float | None:
    known = [kernel[key] for kernel in kernels if kernel[key] is not None]
    return round(sum(known), 2) if known else None


def _rewrites(side: Mapping[str, Any]) -> Counter[str]:
    found = Counter[str]()
    for record in side["passes"]:
        for row in record["rewrites"]:
            found[f"{record['name'].partition('{')[0]}: {row[0]}"] += row[1]
    return found


def _counts(side: Mapping[str, Any]) -> Counter[str]:
    """How often each op stands on the last level of the graph."""
    level = next(level for level in reversed(side["levels"]) if level["name"] != "kernels")
    return Counter(node[0] for node in level["nodes"])


def _beside(first: Counter[str], second: Counter[str]) -> list[Line]:
    """What both count, those that differ first."""
    names = dict.fromkeys((*first, *second))
    lines: list[Line] = [[name, first.get(name), second.get(name), "count"] for name in names]
    return sorted(lines, key=lambda line: (line[1] == line[2], -max(line[1] or 0, line[2] or 0)))


def _kernels(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Line]:
    """The time of kernels that have a label and a place in common: measured on both sides, else predicted."""
    measured = all(kernel["measured"] is not None for side in (one, other) for kernel in side["kernels"])
    sides: list[dict[str, float]] = []
    for side in (one, other):
        found: dict[str, float] = {}
        for kernel in side["kernels"]:
            name = f"{kernel['label']} ({kernel['place'][:60]})"
            found[name] = round(found.get(name, 0.0) + (kernel["measured" if measured else "us"] or 0.0), 3)
        sides.append(found)
    names = dict.fromkeys((*sides[0], *sides[1]))
    lines: list[Line] = [[name, sides[0].get(name), sides[1].get(name), "us"] for name in names]
    return sorted(lines, key=lambda line: -abs((line[2] or 0.0) - (line[1] or 0.0)))


__all__ = ["compare"]
