"""A plan: what a call does, step by step, as data that an artifact can hold.

Values are numbered: the inputs first, then each step's outputs in order. A device segment runs a program made from
a template; a host step runs a function of `gcomp.reference.numpy.host`, whose results bind new symbols by their sizes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from typing import Any, cast

from gcomp import dims
from gcomp.dtypes import DTYPES
from gcomp.errors import ArtifactError, GcompError, InternalError
from gcomp.html import html_table
from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.checks import EXTRA, Check, check_problems
from gcomp.runtime.signature import Signature
from gcomp.runtime.strict_json import Json, JsonError
from gcomp.runtime.template import Template


@record
class Value:
    """The element type and shape of a value that a step makes."""

    dtype: str
    dims: tuple[str, ...]


@record
class DeviceSegment:
    """A program on the device: its template, its arguments (values, then weights) and its results.

    `aliases` are pairs (argument, result) that share memory; `options` are the target's own, as data.
    """

    text: str
    inputs: tuple[int, ...]
    weights: tuple[str, ...]
    outputs: tuple[Value, ...]
    aliases: tuple[tuple[int, int], ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record
class HostStep:
    """A function of `gcomp.reference.numpy.host`, run in NumPy on the host."""

    function: str
    inputs: tuple[int, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record
class Bucketing:
    """The sizes that a symbol is padded to, ascending, and the input that gets its true value."""

    sizes: tuple[int, ...]
    input: str


@record
class MeshAxis:
    """An axis of the mesh of devices that a plan is for."""

    name: str
    size: int


Step = DeviceSegment | HostStep
MAX_BUCKETS = 256
"""How many sizes, and combinations of sizes, a model may be compiled for."""
MAX_DEVICES = 1 << 16
"""How many devices a mesh may have."""
NUMBER = Value("i32", ())
"""The type of what checks give."""
IMAGE = ".image"
"""How the names of members with machine code of processors end."""
BINARY = (".cubin", IMAGE)
"""How the names of members with compiled code end; all others are texts."""
_FIX = "Compile the model again, or get the artifact from someone you trust."
_KINDS: Mapping[str, type[Any]] = {"device": DeviceSegment, "host": HostStep}


@record
class Plan:
    """All that a target's executor needs but the weights' data.

    `texts` are the segments' templates by member name, and what may be read beside them; `binaries` are compiled code
    by member name; `weights` are the weights' types in the order of arguments. `origin` is the artifact that the
    plan was read from, None for one that was made here.
    """

    target: str
    signature: Signature
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    texts: Mapping[str, str]
    weights: Mapping[str, Value] = field(default_factory=dict[str, Value])
    binaries: Mapping[str, bytes | memoryview] = field(default_factory=dict[str, "bytes | memoryview"])
    fetched: int = 0
    """How many of the outputs, the last ones, are values that the user asked to see."""
    checks: tuple[Check, ...] = ()
    """What is checked, by number. Two results follow the outputs then: the number of what failed, and the iteration."""
    buckets: Mapping[str, Bucketing] = field(default_factory=dict[str, "Bucketing"])
    """The symbols whose sizes are padded up to one of a few, and to which."""
    mesh: tuple[MeshAxis, ...] = ()
    """The devices that run the plan together; none where it is for one."""
    origin: str | None = field(default=None, compare=False)

    @cached_property
    def templates(self) -> Mapping[str, Template]:
        """The segments' templates by member name."""
        names = {step.text for step in self.segments}
        return {name: Template(text) for name, text in self.texts.items() if name in names}

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """All values by number: the inputs, then each step's outputs."""
        inputs = [Value(spec.dtype, spec.dims) for spec in self.signature.inputs]
        return (*inputs, *(output for step in self.steps for output in step.outputs))

    def _repr_html_(self) -> str:
        """For notebooks: the steps in order."""
        rows: list[list[str]] = []
        for step in self.steps:
            kind, what = ("device", step.text) if isinstance(step, DeviceSegment) else ("host", step.function)
            results = ", ".join(f"{value.dtype}[{', '.join(value.dims)}]" for value in step.outputs)
            rows.append([kind, what, str(len(step.weights)) if isinstance(step, DeviceSegment) else "", results])
        columns = ("step", "what", "weights", "results")
        return html_table(columns, rows, left=("step", "what", "results"))

    @property
    def segments(self) -> tuple[DeviceSegment, ...]:
        """The steps that run on the device."""
        return tuple(step for step in self.steps if isinstance(step, DeviceSegment))

    @property
    def is_single(self) -> bool:
        """Whether the plan is one device segment that takes the inputs and gives the outputs, each in order."""
        if len(self.steps) != 1 or not isinstance(step := self.steps[0], DeviceSegment):
            return False
        inputs = len(self.signature.inputs)
        whole = tuple(range(inputs)), tuple(range(inputs, inputs + len(step.outputs)))
        return (step.inputs, self.results) == whole

    def check(self, host_functions: Callable[[], Container[str]]) -> None:
        """Raises ArtifactError for a plan that cannot run: missing values, texts, weights or functions.

        The names of functions are asked for where there are host steps.
        """
        for problem in _problems(self, host_functions):
            raise ArtifactError("The plan is not valid.", why=problem, fix="Compile the model again.")

    @contextmanager
    def blaming(self, part: str) -> Generator[None]:
        """Raise errors of a part of the plan as `blamed` says."""
        try:
            yield
        except GcompError as error:
            raise self.blamed(error, part) from error.__cause__

    def blamed(self, error: GcompError, part: str) -> GcompError:
        """What to raise when a part of the plan turns out not to run.

        A plan that gcomp has just made shows a bug in gcomp; one that was read shows what its artifact holds.
        """
        if self.origin is None or not isinstance(error, InternalError | ArtifactError):
            return error
        where = "\n    ".join([f"{part} of {self.origin}", *filter(None, [error.where])])
        if isinstance(error, ArtifactError):
            return ArtifactError(error.what, where=where, why=error.why, fix=error.fix or _FIX)
        why = f"{error.what} {error.why or ''}".strip()
        return ArtifactError("The artifact holds a program that does not run.", where=where, why=why, fix=_FIX)

    def to_json(self) -> tuple[Mapping[str, Json], ...]:
        """The steps and results as JSON, for the manifest."""
        names = {cls: kind for kind, cls in _KINDS.items()}
        steps = [{"kind": names[type(step)], **_plain(dataclasses.asdict(step))} for step in self.steps]
        extras: dict[str, Json] = {"fetched": self.fetched} if self.fetched else {}
        if self.checks:
            extras["checks"] = [dataclasses.asdict(check) for check in self.checks]
        if self.buckets:
            extras["buckets"] = {name: _plain(dataclasses.asdict(b)) for name, b in self.buckets.items()}
        if self.mesh:
            extras["mesh"] = [dataclasses.asdict(axis) for axis in self.mesh]
        return (*steps, {"kind": "return", "values": list(self.results), **extras})


def is_binary(member: str) -> bool:
    """Whether a member of an artifact is compiled code."""
    return member.endswith(BINARY)


def is_image(member: str) -> bool:
    """Whether a member of an artifact is machine code of a processor."""
    return member.endswith(IMAGE)


def steps_from_json(rows: Sequence[Mapping[str, Json]], where: str) -> tuple[tuple[Step, ...], Return]:
    """The steps and what they return that `Plan.to_json` wrote. Raises ArtifactError."""
    try:
        *body, last = rows or ({},)
        if last.get("kind") != "return":
            raise JsonError("it does not end with a return")
        given = {key: value for key, value in last.items() if key != "kind"}
        nothing: dict[str, Json] = {"fetched": 0, "checks": [], "buckets": {}, "mesh": []}
        returned = strict_json.decode(Return, {**nothing, **given}, "the plan")
        steps = tuple(_decode_step(row, f"step {i}") for i, row in enumerate(body))
    except JsonError as error:
        raise ArtifactError("The artifact's plan is not valid.", where=where, why=str(error)) from None
    return steps, returned


@record
class Return:
    """The last row of a plan: the results, how many were fetched, checks, buckets and the mesh.

    What is not there is nothing.
    """

    values: tuple[int, ...]
    fetched: int
    checks: tuple[Check, ...]
    buckets: Mapping[str, Bucketing]
    mesh: tuple[MeshAxis, ...]


def _decode_step(row: Mapping[str, Json], where: str) -> Step:
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise JsonError(f"{where} is of an unknown kind")
    fields = {key: value for key, value in row.items() if key != "kind"}
    return cast(Step, strict_json.decode(_KINDS[kind], fields, where))


def _plain(value: Any) -> Any:
    """Tuples as lists, so that what is written equals what is read."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value


def _problems(plan: Plan, host_functions: Callable[[], Container[str]]) -> Iterator[str]:
    known = len(plan.signature.inputs)
    symbols = set(plan.signature.symbols)
    for i, step in enumerate(plan.steps):
        if any(not 0 <= value < known for value in step.inputs):
            yield f"step {i} uses a value that does not exist yet"
        for output in step.outputs:
            if output.dtype not in DTYPES:
                yield f"step {i} makes a value of unknown dtype {output.dtype[:40]!r}"
        try:
            mentioned = {n for o in step.outputs for d in o.dims for n in dims.symbols_of(dims.parse(d))}
            if isinstance(step, DeviceSegment):
                yield from _segment_problems(plan, step, i)
                mentioned |= plan.templates[step.text].symbols if step.text in plan.texts else set()
        except dims.DimError as error:
            yield f"step {i}: {error}"
            continue
        if isinstance(step, HostStep):
            if step.function not in host_functions():
                yield f"step {i} names a host function that gcomp does not have, {step.function[:80]!r}"
            symbols |= mentioned
        elif unknown := sorted(mentioned - symbols):
            yield f"step {i} needs the dimension {', '.join(unknown)}, which no input determines"
        known += len(step.outputs)
    extra = EXTRA if plan.checks else 0
    wanted = len(plan.signature.outputs) + extra
    if any(not 0 <= value < known for value in plan.results) or len(plan.results) != wanted:
        yield "its results do not fit its outputs"
        return
    if not 0 <= plan.fetched <= len(plan.signature.outputs):
        yield f"{plan.fetched} of its {len(plan.results)} outputs were fetched"
    yield from _bucket_problems(plan)
    yield from _mesh_problems(plan)
    if any(plan.values[value] != NUMBER for value in plan.results[wanted - extra :]):
        yield "what its checks give are no numbers"
    yield from check_problems(plan.checks)
    for value, output in zip(plan.results, plan.signature.outputs, strict=False):
        if plan.values[value] != Value(output.dtype, output.dims):
            yield f"its output {output.name[:80]!r} is not of the type that its signature says"


def _bucket_problems(plan: Plan) -> Iterator[str]:
    inputs = {spec.name: spec for spec in plan.signature.inputs}
    for name, bucketing in plan.buckets.items():
        known, sizes = plan.signature.ranges[name], bucketing.sizes
        if name not in plan.signature.symbols:
            yield f"it pads {name[:80]!r}, which is no dimension of an input"
        if not 0 < len(sizes) <= MAX_BUCKETS or list(sizes) != sorted(set(sizes)):
            yield f"the sizes to pad {name[:80]!r} to are not ascending, or not 1 to {MAX_BUCKETS}"
        if any(size not in known for size in sizes):
            yield f"a size to pad {name[:80]!r} to is not in its range {known}"
        spec = inputs.get(bucketing.input)
        if spec is None or (spec.dtype, spec.dims) != ("i64", ()) or spec.donated or spec.state is not None:
            yield f"the length of {name[:80]!r} is no integer input"
    if len({bucketing.input for bucketing in plan.buckets.values()}) < len(plan.buckets):
        yield "two dimensions that are padded have one length"
    if plan.buckets and (plan.signature.states or plan.fetched or plan.checks or plan.signature.data_dependent_symbols):
        yield "it pads dimensions, and has a state, fetched values, checks, or sizes that depend on data"
    if math.prod([len(bucketing.sizes) for bucketing in plan.buckets.values()]) > MAX_BUCKETS:
        yield f"it has more than {MAX_BUCKETS} combinations of buckets"


def _mesh_problems(plan: Plan) -> Iterator[str]:
    if len({axis.name for axis in plan.mesh}) < len(plan.mesh):
        yield "two axes of its mesh have one name"
    if any(axis.size < 1 for axis in plan.mesh) or math.prod(axis.size for axis in plan.mesh) > MAX_DEVICES:
        yield f"its mesh has no devices, or more than {MAX_DEVICES}"
    if plan.mesh and (len(plan.steps) != 1 or plan.checks or plan.buckets):
        yield "it is for several devices, and has host steps, checks or buckets"


def _segment_problems(plan: Plan, step: DeviceSegment, i: int) -> Iterator[str]:
    if step.text not in plan.texts:
        yield f"step {i} has no program text {step.text[:80]!r}"
    if not set(step.weights) <= plan.weights.keys():
        yield f"step {i} uses weights that the artifact does not have"
    donated = [step.inputs[argument] for argument, _ in step.aliases if 0 <= argument < len(step.inputs)]
    once = min(len(set(numbers)) for numbers in zip(*step.aliases, strict=True)) if step.aliases else 0
    if any(step.inputs.count(value) > 1 for value in donated) or once < len(step.aliases):
        yield f"step {i} gives away memory that it uses twice"
    if donated and (i + 1 < len(plan.steps) or (i and not set(donated).isdisjoint(plan.results))):
        yield f"step {i} gives memory away that may be read later"
    for argument, result in step.aliases:
        if not (0 <= argument < len(step.inputs) and 0 <= result < len(step.outputs)):
            yield f"step {i} aliases values that it does not have"
