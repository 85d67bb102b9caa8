"""A page that shows a memory plan: steps from left to right, addresses from bottom to top, a rectangle per storage."""

from __future__ import annotations

from html import escape

from xdsl.ir import OpResult

from gcomp.analysis.liveness import Storage, liveness, most_alive
from gcomp.ir.buffer import arena, places
from gcomp.ir.locations import describe
from gcomp.ir.program import Program

WIDTH, HEIGHT = 1200, 640
HUES = 12

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 24px; color: #222; }}
svg {{ width: 100%; height: auto; background: #fafafa; border: 1px solid #ccc; }}
rect {{ stroke: #fff; stroke-width: 0.5; }}
rect:hover {{ stroke: #000; stroke-width: 1.5; }}
table {{ border-collapse: collapse; margin-top: 16px; }}
td, th {{ padding: 2px 10px; text-align: right; }}
td:first-child, th:first-child, td:last-child, th:last-child {{ text-align: left; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary} Hover over a rectangle for its name, size and source.</p>
{svg}
<table><tr><th>storage</th><th>bytes</th><th>offset</th><th>steps</th><th>source</th></tr>
{rows}
</table></body></html>
"""


def memory_page(program: Program, title: str) -> str:
    """The page of a planned program, at the largest sizes of the symbols' ranges."""
    found, size = liveness(program), arena(program.module) or 0
    bound = most_alive(found, program.ranges)
    boxes = [(s, *_extent(s, program)) for s in found.planned]
    gap = f"{100 * (size / bound - 1):.2f} % above" if size > bound else "exactly"
    summary = (
        f"{len(boxes)} storages over {found.end} steps; {found.reused} results are written over an operand. The arena "
        f"has {size:,} bytes, {gap} the most bytes alive at a step ({bound:,}, the dashed line)."
    )
    rows = "\n".join(_row(*box) for box in sorted(boxes, key=lambda box: -box[2]))
    return _PAGE.format(title=escape(title), summary=summary, svg=_svg(boxes, found.end, size, bound), rows=rows)


def _extent(storage: Storage, program: Program) -> tuple[int, int]:
    """A storage's offset and its bytes at the largest sizes."""
    value = storage.values[0]
    assert isinstance(value, OpResult), "the first value of a storage is the result that it was made for"
    offsets = places(value.op)
    assert offsets is not None, "the program is planned"
    return offsets[value.index], program.ranges.bounds(storage.size)[1] or 0


def _source(storage: Storage) -> str:
    value = storage.values[0]
    return describe(value.op.location) if isinstance(value, OpResult) else ""


def _svg(boxes: list[tuple[Storage, int, int]], steps: int, size: int, bound: int) -> str:
    across, up = WIDTH / max(1, steps), HEIGHT / max(1, size)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg">']
    for n, (storage, offset, count) in enumerate(boxes):
        x, width = storage.lower * across, (storage.upper - storage.lower) * across
        y, height = HEIGHT - (offset + count) * up, count * up
        told = f"{storage.name}: {count:,} bytes at {offset:,}, steps {storage.lower} to {storage.upper - 1}"
        source = _source(storage)
        parts.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="hsl({360 * (n % HUES) // HUES}, 55%, 62%)"><title>{escape(told)}\n{escape(source)}</title></rect>'
        )
    line = HEIGHT - bound * up
    parts.append(f'<line x1="0" x2="{WIDTH}" y1="{line:.2f}" y2="{line:.2f}" stroke="#000" stroke-dasharray="6 4"/>')
    return "\n".join([*parts, "</svg>"])


def _row(storage: Storage, offset: int, count: int) -> str:
    steps = f"{storage.lower}-{storage.upper - 1}"
    cells = [escape(storage.name), f"{count:,}", f"{offset:,}", steps, escape(_source(storage))]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
