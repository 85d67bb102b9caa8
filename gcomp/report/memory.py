"""A page that shows a memory plan: steps from left to right, addresses from bottom to top, a rectangle per storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate

from xdsl.ir import OpResult

from gcomp.analysis.liveness import Storage, liveness, most_alive
from gcomp.dims import evaluate, parse
from gcomp.html import html_table
from gcomp.ir.buffer import ALIGNMENT, arena, places
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.report.costs import LaunchPlan
from gcomp.report.page import View
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.steps import Case, Copy, Fill, Launch, Step, While, walk

WIDTH, HEIGHT = 1200, 640
HUES = 12
COLUMNS = ("storage", "bytes", "offset", "steps", "source")


@dataclass(frozen=True)
class Box:
    """Bytes that hold something from one step to before another."""

    name: str
    source: str
    offset: int
    bytes: int
    lower: int
    upper: int


def memory_view(program: Program) -> View:
    """The memory of a planned program, at the largest sizes of the symbols' ranges."""
    found, size = liveness(program), arena(program.module) or 0
    bound = most_alive(found, program.ranges)
    boxes = [_box(storage, program) for storage in found.planned]
    summary = f"{len(boxes)} storages over {found.end} steps; {found.reused} results are written over an operand."
    return _view(summary, boxes, found.end, size, bound)


def artifact_view(plan: LaunchPlan, sizes: Mapping[str, int]) -> View:
    """The memory of the plan that an artifact holds, at some sizes. Loops and cases count as one step."""
    boxes = boxes_of(plan, sizes)
    starts = {box.lower for box in boxes}
    bound = max((sum(b.bytes for b in boxes if b.lower <= t < b.upper) for t in starts), default=0)
    size = evaluate(parse(plan.arena), sizes)
    summary = f"{len(boxes)} values in the arena over {len(plan.steps)} steps on {plan.architecture}."
    return _view(summary, boxes, len(plan.steps), size, bound)


def boxes_of(plan: LaunchPlan, sizes: Mapping[str, int]) -> list[Box]:
    """What lies in the arena: from a step that only writes a buffer to the last that reads it before the next such."""
    slots = _slot_offsets(plan, sizes)
    living: dict[int, Box] = {}
    done: list[Box] = []
    for at, step in enumerate(plan.steps):
        roles: dict[int, set[str]] = {}
        labels: dict[int, str] = {}
        for number, role, label in _uses(plan, step):
            if plan.buffers[number].place in ("arena", "slot"):
                roles.setdefault(number, set()).add(role)
                labels.setdefault(number, label)
        for number, label in labels.items():
            if number in living and roles[number] == {"out"}:
                done.append(living.pop(number))
            if number not in living:
                buffer, (name, _, source) = plan.buffers[number], label.partition(" (")
                count = evaluate(parse(buffer.bytes), sizes)
                offset = buffer.at if buffer.place == "arena" else slots[buffer.at]
                living[number] = Box(name, source.removesuffix(")"), offset, count, at, at + 1)
            living[number] = replace(living[number], upper=at + 1)
    return sorted([*done, *living.values()], key=lambda box: (box.lower, box.offset))


def _slot_offsets(plan: LaunchPlan, sizes: Mapping[str, int]) -> list[int]:
    """Where slots lie, whose sizes a call decides: one after the other, behind what lies at known places."""
    if not isinstance(plan, CpuPlan):
        return []
    ends = [evaluate(parse(size), sizes) for size in plan.slots]
    return list(accumulate((-(-end // ALIGNMENT) * ALIGNMENT for end in ends), initial=plan.fixed))


def _uses(plan: LaunchPlan, step: Step) -> Iterator[tuple[int, str, str]]:
    """The buffers that a step uses: number, role, and the label of what uses it."""
    for inner in walk([step]):
        match inner:
            case Launch():
                kernel = plan.kernels[inner.kernel]
                for role, argument in zip(kernel.roles, inner.arguments, strict=True):
                    if isinstance(argument, int) and role != "size":
                        yield argument, role, inner.label or kernel.name
            case Fill():
                yield inner.buffer, "out", "fill"
            case Copy():
                yield inner.source, "in", "copy"
                yield inner.target, "out", "copy"
            case While():
                yield inner.condition, "in", "while"
            case Case():
                yield inner.selector, "in", "case"
            case _:
                pass


def _box(storage: Storage, program: Program) -> Box:
    """A storage at its offset, of the bytes that it has at the largest sizes."""
    value = storage.values[0]
    assert isinstance(value, OpResult), "the first value of a storage is the result that it was made for"
    offsets = places(value.op)
    assert offsets is not None, "the program is planned"
    count = program.ranges.bounds(storage.size)[1] or 0
    source = describe(value.op.location)
    return Box(storage.name, source, offsets[value.index], count, storage.lower, storage.upper)


def _view(summary: str, boxes: list[Box], steps: int, size: int, bound: int) -> View:
    gap = f"{100 * (size / bound - 1):.2f} % above" if size > bound > 0 else "exactly"
    summary += f" The arena has {size:,} bytes, {gap} the most bytes alive at a step ({bound:,}, the dashed line)."
    rows = [_row(box) for box in sorted(boxes, key=lambda box: -box.bytes)]
    table = html_table(COLUMNS, rows, left=(COLUMNS[0], COLUMNS[-1]))
    return View(
        f"{summary} Hover over a rectangle for its name, size and source.", _svg(boxes, steps, size, bound), table
    )


def _svg(boxes: list[Box], steps: int, size: int, bound: int) -> str:
    across, up = WIDTH / max(1, steps), HEIGHT / max(1, size)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg">']
    for n, box in enumerate(boxes):
        x, width = box.lower * across, (box.upper - box.lower) * across
        y, height = HEIGHT - (box.offset + box.bytes) * up, box.bytes * up
        told = f"{box.name}: {box.bytes:,} bytes at {box.offset:,}, steps {box.lower} to {box.upper - 1}"
        parts.append(
            f'<rect class="storage" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="hsl({360 * (n % HUES) // HUES}, 34%, 64%)">'
            f"<title>{escape(told)}\n{escape(box.source)}</title></rect>"
        )
    line = HEIGHT - bound * up
    parts.append(f'<line x1="0" x2="{WIDTH}" y1="{line:.2f}" y2="{line:.2f}" class="bound" stroke-dasharray="6 4"/>')
    return "\n".join([*parts, "</svg>"])


def _row(box: Box) -> list[str]:
    return [box.name, f"{box.bytes:,}", f"{box.offset:,}", f"{box.lower}-{box.upper - 1}", box.source]
