"""The steps of a call of a device segment, as data: what is launched, filled and copied, in order, and on which memory.

The plans of targets that have a plan of memory hold them. Where the numbers depend on sizes that only a call knows,
they are formulas of `gcomp.dims`, as canonical texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any, cast

from gcomp.html import html_table
from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.strict_json import Json, JsonError

PLACES = ("arena", "slot", "input", "output", "weight")
"""Where a buffer can be. Inputs and weights are not written to. Slots follow each other behind the arena's fixed part,
where a target has them: memory of sizes without a bound."""

SLOT = 64
"""Slots begin at multiples of so many bytes."""

MAX_DEPTH = 16
"""Of loops and cases in one another."""


@record
class Buffer:
    """A span of memory. `at` is its offset in the arena, or the number of the slot, input, output or weight."""

    place: str
    at: int
    bytes: str


@record
class Launch:
    """One launch of a kernel, which is a number in the plan.

    `arguments` are numbers of buffers where the kernel takes pointers, and texts of sizes elsewhere. `flops` and
    `bytes` say what it computes and moves, for reports.
    """

    kernel: int
    grid: tuple[str, ...]
    arguments: tuple[Json, ...]
    label: str = ""
    flops: str = "0"
    bytes: str = "0"

    @property
    def title(self) -> str:
        """The label without the place that it ends in."""
        return self.label.partition(" (")[0]

    @property
    def place(self) -> str:
        """Where in the source it comes from."""
        return self.label.partition(" (")[2].removesuffix(")")


@record
class Fill:
    """Every byte of a buffer is set to `byte`."""

    buffer: int
    byte: int


@record
class Copy:
    """A buffer is copied to another of the same size."""

    source: int
    target: int


@record
class Loop:
    """The body runs `count` times."""

    count: str
    body: tuple[Step, ...]


@record
class While:
    """`before` runs, and as long as the one byte of `condition` then is not 0, the body and `before` again."""

    condition: int
    before: tuple[Step, ...]
    body: tuple[Step, ...]


@record
class Case:
    """One branch runs. A selector of one byte takes the first if it is not 0, else the second; one of four bytes is the
    branch's number, and takes the last where there is none of that number."""

    selector: int
    branches: tuple[tuple[Step, ...], ...]


@record
class Located:
    """A value that the host reads or writes: where it lies, its element type, and its shape."""

    buffer: int
    dtype: str
    dims: tuple[str, ...]


@record
class HostCall:
    """A function of `gcomp.reference.numpy.host`, called on the host in the order of steps, as in `HostStep`. What it
    gives is of the types of `outputs`."""

    function: str
    inputs: tuple[Located, ...]
    outputs: tuple[Located, ...]
    attributes: Mapping[str, Json]

    @property
    def values(self) -> tuple[Located, ...]:
        """What it reads, then what it writes."""
        return (*self.inputs, *self.outputs)


Step = Launch | Fill | Copy | Loop | While | Case | HostCall
_KINDS: Mapping[str, type[Any]] = {
    "launch": Launch, "fill": Fill, "copy": Copy, "loop": Loop, "while": While, "case": Case, "host": HostCall,
}  # fmt: skip
_BLOCKS = {"loop": ("body",), "while": ("before", "body"), "case": ()}


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps and those inside of them, in order."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from walk(block)


def blocks_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps inside of a step."""
    match step:
        case Loop():
            return (step.body,)
        case While():
            return (step.before, step.body)
        case Case():
            return step.branches
        case _:
            return ()


def launches_html(machine: str, arena: str, kernels: Sequence[str], steps: Sequence[Step]) -> str:
    """What steps launch, in order, as a table for notebooks; those in loops and cases once."""
    launches = [step for step in walk(steps) if isinstance(step, Launch)]
    rows = [
        [step.title or kernels[step.kernel], " x ".join(step.grid), step.flops, step.bytes, step.place]
        for step in launches
    ]
    columns = ("kernel", "grid", "flops", "bytes", "from")
    table = html_table(columns, rows, left=("kernel", "from"))
    return f"<p>{len(launches)} launches on {escape(machine)}, an arena of {escape(arena)} bytes</p>{table}"


# ---- JSON ----


def steps_to_json(steps: Sequence[Step]) -> list[Json]:
    """The steps as JSON."""
    return [_encode(step) for step in steps]


def steps_from_json(rows: Sequence[Json]) -> tuple[Step, ...]:
    """The steps that `steps_to_json` wrote. Raises JsonError."""
    return _decode_steps(list(rows), "steps", MAX_DEPTH)


def _encode(step: Step) -> Json:
    kind = next(kind for kind, cls in _KINDS.items() if cls is type(step))
    blocks = [steps_to_json(block) for block in blocks_of(step)]
    match step:
        case Loop():
            return {"kind": kind, "count": step.count, "body": blocks[0]}
        case While():
            return {"kind": kind, "condition": step.condition, "before": blocks[0], "body": blocks[1]}
        case Case():
            return {"kind": kind, "selector": step.selector, "branches": blocks}
        case _:
            return {"kind": kind, **asdict(step)}


def _decode_steps(rows: Json, where: str, depth: int) -> tuple[Step, ...]:
    if not isinstance(rows, list) or not depth:
        raise JsonError(f"{where} is no list of steps, or nested too deeply")
    return tuple(_decode_step(row, f"{where}[{i}]", depth) for i, row in enumerate(cast("list[Json]", rows)))


def _decode_step(row: Json, where: str, depth: int) -> Step:
    if not isinstance(row, dict):
        raise JsonError(f"{where} is no step")
    fields = dict(cast("dict[str, Json]", row))
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise JsonError(f"{where} is of an unknown kind")
    if kind not in _BLOCKS:
        return cast(Step, strict_json.decode(_KINDS[kind], fields, where))
    if kind == "case":
        rows = fields.pop("branches", None)
        if not isinstance(rows, list):
            raise JsonError(f"{where} has no branches")
        branches = tuple(_decode_steps(row, f"{where}.branches", depth - 1) for row in cast("list[Json]", rows))
        return Case(strict_json.decode(_Selector, fields, where).selector, branches)
    blocks = {name: _decode_steps(fields.pop(name, None), f"{where}.{name}", depth - 1) for name in _BLOCKS[kind]}
    if kind == "loop":
        return Loop(strict_json.decode(_Count, fields, where).count, **blocks)
    return While(strict_json.decode(_Condition, fields, where).condition, **blocks)


@record
class _Selector:
    selector: int


@record
class _Count:
    count: str


@record
class _Condition:
    condition: int
