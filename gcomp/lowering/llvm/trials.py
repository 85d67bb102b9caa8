"""Settings of a kernel that are worth timing. None of them changes a bit of a result: what decides the order of a sum
is the same in all (`settings.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product as combinations

from gcomp.dims import Ranges
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import shape_of
from gcomp.lowering.llvm.choices import Choice
from gcomp.lowering.llvm.dots import SUMS
from gcomp.lowering.llvm.settings import KEPT_ROW, LANES, MOST_ROWS, STACK, choose
from gcomp.lowering.tiles.schedules.kernel import Settings

MOST = 7
"""Settings of a kernel that are tried, at most, beside what is chosen without."""


def trials(launch: LaunchOp, ranges: Ranges, bits: int) -> list[Settings]:
    """Settings of a launch for vectors of so many bits, that first which is taken without measurements."""
    choice = choose(launch, ranges, bits)
    found: dict[object, Settings] = {}
    vary = _VARIED.get(launch.kind_name, _nothing)
    for values in (choice.values, *vary(launch, choice, bits // 32)):
        found.setdefault(frozenset(values.items()), Settings(values))
    return [*found.values()][: 1 + MOST]


Values = Mapping[str, int]


def _nothing(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    return iter(())


def _products(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    """Larger and smaller tiles, more and fewer terms, and the other order."""
    values = choice.values
    if "terms" not in values or "words" in values or "together" in values:
        return
    rows, columns, terms = values["rows"], values["columns"], values["terms"]
    if rows > MOST_ROWS:  # a tile of many blocks
        yield from ({**values, "rows": n} for n in (rows // 2, 2 * rows) if n > MOST_ROWS)
        yield from ({**values, "terms": n} for n in (2 * terms, terms // 2) if n >= LANES)
    else:
        sums = ((rows, columns), (2 * rows, columns // 2), (rows // 2, 2 * columns), (rows, columns // 2))
        for m, n in sums:
            if m and n >= lanes and m <= MOST_ROWS and m * n <= SUMS[lanes] * lanes and not values.get("transposed"):
                yield {**values, "rows": m, "columns": n}
        yield from ({**values, "rows": n} for n in (rows - 1, rows - 2) if n > 0)
    yield {**values, "down": 0, "group": 1} if values.get("down") else {**values, "down": 1}


def _loops(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    """Longer and shorter blocks, more and fewer pixels."""
    yield from ({**choice.values, "block": n * lanes} for n in (2, 8, 16))
    yield from ({**choice.values, "pixels": n} for n in (4, 16))
    yield from ({**choice.values, "rows": r, "columns": c} for r, c in ((2 * lanes, lanes), (lanes, 2 * lanes)))


def _rows(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    """Rows of a tile; rows that are kept, or gone over several times."""
    values = choice.values
    if values.get("across"):
        yield from ({**values, "rows": n * lanes} for n in (1, 2, 4, 8))
        return
    yield from ({**values, "rows": n} for n in (1, 2, 4, 8))
    longest = max([n for v in launch.operands for n in shape_of(v)[-1:] if isinstance(n, int)], default=KEPT_ROW + 1)
    if values["persistent"] == LANES and longest <= KEPT_ROW:
        yield {**values, "persistent": KEPT_ROW, "rows": max(1, min(4, KEPT_ROW // longest))}
    elif values["persistent"] == KEPT_ROW:
        yield {**values, "persistent": LANES, "rows": 4}


def _attention(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    """Queries of a tile."""
    yield from ({**choice.values, "queries": n} for n in (8, 16, 32))


def _winograd(launch: LaunchOp, choice: Choice, lanes: int) -> Iterator[Values]:
    """Tiles of a block, blocks of a program, and panels that a program goes through."""
    values = choice.values
    rows, blocks, panels = values["rows"], values.get("blocks", 1), values["panels"]
    _, points, depth, width = [n if isinstance(n, int) else 1 for n in shape_of(launch.operands[1])[:4]]
    for n, k, p in combinations((rows, rows - 1), (blocks, 2 * blocks, max(1, blocks // 2)), (panels, 2 * panels)):
        if n > 0 and 4 * points * n * (k * depth + width) <= STACK:
            yield {**values, "rows": n, "blocks": k, "panels": p}


_VARIED: Mapping[str, Callable[[LaunchOp, Choice, int], Iterator[Values]]] = {
    "loop": _loops,
    "reduction": _rows,
    "matmul": _products,
    "convolution": _products,
    "attention": _attention,
    "winograd": _winograd,
}
"""Kind of kernel -> other settings; what is not here has one way."""

__all__ = ["trials"]
