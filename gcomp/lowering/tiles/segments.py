"""From a program of planned kernels to drafts of its device segments: each launch scheduled, and put in order.

Values lie where the memory plan put them: in the arena, or in a donated input's memory. What the program returns is
computed where the caller wants it, if it is computed for nobody else; otherwise it is copied there at the end. Where
the plan has such a result in a donated input's memory, the caller may want it there: the segment's `aliases` say so.

How a target makes kernels of a launch is a function that it gives (`Make`): nothing here knows what a kernel is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, cast

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.liveness import view_source
from gcomp.analysis.work import Nominal, element_bytes, flops_formula
from gcomp.dims import DimLimitError, Size, parse, product
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import ALIGNMENT, arena, donors, is_loose, is_stored, is_view, places, slot_of, slots
from gcomp.ir.host import HostOp
from gcomp.ir.kernel import LaunchOp, launch
from gcomp.ir.locations import describe, where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.ir.types import shape_of
from gcomp.lowering.signatures import check_entry, host_step, plan_value
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.drafts import Draft, K, Part
from gcomp.lowering.tiles.elements import WITHOUT, elsewhere
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.tiles.schedules.kernel import Binding, Scheduled, Step
from gcomp.lowering.tiles.stages import Stage, stages, whole
from gcomp.lowering.tiles.tile import KernelOp
from gcomp.records import record
from gcomp.runtime.plan import HostStep, Value
from gcomp.runtime.steps import HostCall, Located
from gcomp.runtime.steps import Step as PlanStep


@record
class LoweredLaunch(Generic[K]):
    """A launch's tile programs, and the kernel that a target made of each."""

    scheduled: Scheduled
    kernels: tuple[K, ...]


Make = Callable[[LaunchOp], LoweredLaunch[K]]
"""Of a launch, its kernels. UnsupportedError where an op of it has no place in one."""


def launch_name(launch: LaunchOp) -> str:
    """A launch's name in source text."""
    return re.sub(r"\W+", "_", launch.label_name).strip("_")[:48] or "kernel"


def check_planned(program: Program) -> None:
    """Raises VerificationError for a program whose kernels have no memory, or that cannot be an artifact's."""
    check_entry(program)
    if arena(program.module) is None:
        raise VerificationError("the program has no memory plan", fix="run the pipeline of the target on it first")


def drafts(
    program: Program,
    make: Make[K],
    chosen: Mapping[Hashable, LoweredLaunch[K]] | None = None,
    *,
    calls_host: bool = False,
    form: Callable[[LaunchOp], Hashable] = form_of,
) -> list[Lowering[K] | HostOp]:
    """The device segments of a program, and its host steps, in order.

    `chosen` has the kernels of launches by their forms; others are made, for launches of one `form` once. `calls_host`
    says that the target's code can call the host from within loops and branches.
    """
    cut = stages(program) if _is_cut(program) else [whole(program)]
    found = [
        Lowering(program, step, make, chosen or {}, calls_host, form) if isinstance(step, Stage) else step
        for step in cut
    ]
    for step in found:
        if isinstance(step, Lowering):
            step.run()
    return found


def _is_cut(program: Program) -> bool:
    """Whether host steps stand between kernels."""
    return any(isinstance(op, HostOp) for op in program.block.ops)


class Numbers:
    """The values of a plan: inputs first, then what each step gives."""

    def __init__(self, program: Program) -> None:
        self.returned = list(program.returned.operands)
        self._several = _is_cut(program)
        self.of: dict[SSAValue, int] = {value: i for i, value in enumerate(program.block.args)}
        self._next = len(program.block.args)
        self.weights: dict[str, Value] = {}

    def results(self) -> Sequence[int]:
        """The numbers of what the program returns."""
        if not self._several:
            # One segment gives every result memory of its own, also where it is an input, or the same twice.
            return range(self._next - len(self.returned), self._next)
        return [self.of[value] for value in self.returned]

    def part(self, steps: Mapping[str, Lowering[K] | HostOp]) -> Part[K] | HostStep:
        """A step, by architecture, as a part of the plan."""
        first = next(iter(steps.values()))
        if isinstance(first, HostOp):
            step = host_step(first, [self.of[value] for value in first.operands])
            self._add(first.results)
            return step
        lowered = {name: step for name, step in steps.items() if isinstance(step, Lowering)}
        self.weights |= first.weights
        inputs = tuple(self.of[value] for value in first.stage.inputs)
        outputs = tuple(map(plan_value, first.stage.outputs))
        self._add(first.stage.outputs)
        # Between host steps nothing says that the caller's memory is not read again.
        aliases = () if self._several else tuple(first.aliases)
        drafts = {name: step.draft for name, step in lowered.items()}
        return Part(inputs, tuple(first.weights), outputs, drafts, aliases)

    def _add(self, values: Sequence[SSAValue]) -> None:
        self.of.update(zip(values, range(self._next, self._next + len(values)), strict=True))
        self._next += len(values)


class Lowering(Generic[K]):
    """The steps of a stage in the making. `weights` are those that they read, in the order of their numbers."""

    def __init__(
        self,
        program: Program,
        stage: Stage,
        make: Make[K],
        chosen: Mapping[Hashable, LoweredLaunch[K]],
        calls_host: bool = False,
        form: Callable[[LaunchOp], Hashable] = form_of,
    ) -> None:
        self.program = program
        self._form = form
        self._calls_host = calls_host
        self.stage = stage
        self.make = make
        self.made = dict(chosen)
        self.draft: Draft[K] = Draft()
        self.weights: dict[str, Value] = {}
        self.nominal = Nominal(program.ranges)
        self.buffers: dict[SSAValue, int] = {}
        self.end: int = arena(program.module) or 0
        """Where the arena ends, before scratch memory of launches."""
        self.scratch = 0
        self._slots: dict[Hashable, int] = {}
        """The slots that are used: of results by their numbers in the program, of scratch memory by its number in a
        launch and its size."""
        self.programs: dict[K, KernelOp] = {}
        """The tile program of each kernel."""
        self.direct = _direct_outputs(stage)
        self.aliases: list[tuple[int, int]] = []
        """Pairs (donated input, output that the plan has in its memory), by their numbers in the stage."""

    def run(self) -> None:
        """Lower the whole stage."""
        for value in self.stage.inputs:
            self.buffers[value] = self._input(value)
        self.ops(self.stage.ops)
        for k, value in enumerate(self.stage.outputs):
            if self.direct.get(view_source(value)) != k:
                self.move(value, self.draft.buffer("output", k, _bytes(value)))
        self.draft.arena = self.end + self.scratch if self.scratch else self._used()

    def _used(self) -> int:
        """How much of the arena is used: results that lie in the outputs' own memory leave their places empty."""
        ends = [b.at + (self._bound(parse(b.bytes)) or self.end) for b in self.draft.buffers if b.place == "arena"]
        return min(self.end, max(ends, default=0))

    def _bound(self, size: Size) -> int | None:
        return self.program.ranges.bounds(size)[1]

    def block(self, block: Block) -> None:
        """Lower the ops of a block, but what ends it."""
        self.ops([op for op in block.ops if op is not block.last_op])

    def ops(self, ops: Sequence[Operation]) -> None:
        """Lower ops in order."""
        for op in ops:
            if is_view(op):
                if op.operands[0] in self.buffers:
                    self.buffers[op.results[0]] = self.buffers[op.operands[0]]
                continue
            row = _ROWS.get(type(op))
            if row is not None:
                try:
                    row(self, op)
                except DimLimitError as error:
                    raise UnsupportedError(
                        "A kernel's positions are too large formulas of the program's symbolic sizes.",
                        where=where(op),
                        why=str(error),
                        fix="Give more of the symbols sizes, or compile for xla:cpu.",
                    ) from error
            elif role_of(op) not in (Role.GENERATOR, Role.SOURCE):
                why = WITHOUT.get(type(op), "it is no kernel and no control flow")
                raise UnsupportedError(
                    f"{op.name} does not run in kernels", where=where(op), why=why, fix=elsewhere(op)
                )

    # ---- memory ----

    def buffer(self, value: SSAValue) -> int:
        """Where a value lies. Weights and constants get a place when they are first read."""
        if value not in self.buffers:
            self.buffers[value] = self._locate(value)
        return self.buffers[value]

    def _locate(self, value: SSAValue) -> int:
        op = value.owner
        if isinstance(op, Operation) and is_view(op):
            return self.buffer(op.operands[0])
        if isinstance(op, WeightOp):
            return self._weight(op.symbol, value)
        if isinstance(op, hlo.ConstantOp):
            data = op.elements_attr.array()
            return self._weight(self.program.weights.add("constant", data), value)
        assert isinstance(op, Operation)
        raise UnsupportedError(f"the result of {op.name} lies nowhere in memory", where=where(op))

    def _weight(self, name: str, value: SSAValue) -> int:
        self.weights.setdefault(name, plan_value(value))
        return self.draft.buffer("weight", list(self.weights).index(name), _bytes(value))

    def results(self, op: Operation) -> list[int]:
        """Where an op's results lie."""
        offsets = places(op)
        if offsets is None:
            why = "the memory plan says nothing of it"
            raise UnsupportedError(f"the results of {op.name} have no place in the arena", where=where(op), why=why)
        for result, offset, donor in zip(op.results, offsets, donors(op), strict=True):
            given = self.program.block.args[donor] if donor >= 0 else None
            if (k := self.direct.get(result)) is not None:
                self.buffers[result] = self.draft.buffer("output", k, _bytes(result))
                if given is not None and given in self.stage.inputs and given.type == self.stage.outputs[k].type:
                    self.aliases.append(([*self.stage.inputs].index(given), k))
            elif given is not None:
                self.buffers[result] = self._input(given)
            elif (slot := slot_of(donor)) is not None:
                number = self._slot(slot, slots(self.program.module)[slot])
                self.buffers[result] = self.draft.buffer("slot", number, _bytes(result))
            else:
                self.buffers[result] = self.draft.buffer("arena", offset, _bytes(result))
        return [self.buffers[result] for result in op.results]

    def _input(self, value: SSAValue) -> int:
        """The buffer of an input of the program, which the stage takes from now on if it did not."""
        self.stage.inputs.setdefault(value)
        return self.draft.buffer("input", [*self.stage.inputs].index(value), _bytes(value))

    def move(self, value: SSAValue, target: int) -> None:
        """Have a value lie in a buffer."""
        if value not in self.buffers and not self._is_in_memory(value) and not is_stored(value.owner):
            # Positions and sizes lie nowhere: they are computed where they are needed.
            ops: dict[Operation, None] = {}
            inputs: dict[SSAValue, None] = {}
            self._close(value, ops, inputs)
            self.launch(launch("loop", None, [*inputs], [*ops], [value]), [target])
        elif self.buffer(value) != target:
            self.draft.copy(self.buffer(value), target)

    def _is_in_memory(self, value: SSAValue) -> bool:
        """Whether a value lies in memory before the program runs, or another kernel computes it."""
        op = value.owner
        if isinstance(op, hlo.ConstantOp):
            return not op.elements_attr.is_splat
        return not (isinstance(op, Operation) and role_of(op) in PER_ELEMENT)

    def _close(self, value: SSAValue, ops: dict[Operation, None], inputs: dict[SSAValue, None]) -> None:
        """The ops that compute a value from what lies in memory, each after those that it reads."""
        if value in self.buffers or self._is_in_memory(value):
            inputs[value] = None
        elif isinstance(op := value.owner, Operation) and op not in ops:
            for operand in op.operands:
                self._close(operand, ops, inputs)
            ops[op] = None

    # ---- launches ----

    def launch(self, op: LaunchOp, results: Sequence[int]) -> None:
        """Add the kernels of a launch, whose results go to these buffers."""
        form = self._form(op)
        made = self.made.get(form)
        if made is None:
            made = self.made[form] = self.make(op)
        scheduled = made.scheduled
        offset = self.end
        spaces: list[int] = []
        for space in scheduled.scratch:
            size = space.count * element_bytes(tile.tile((), space.element))
            low, high = self.program.ranges.bounds(size)
            if high is None or (slots(self.program.module) and is_loose(low or 0, high)):
                spaces.append(self.draft.buffer("slot", self._slot((len(spaces), size), size), size))
                continue
            spaces.append(self.draft.buffer("arena", offset, size))
            offset += -(-high // ALIGNMENT) * ALIGNMENT
        self.scratch = max(self.scratch, offset - self.end)
        # Of several kernels the first computes nearly all.
        flops: Size = 0
        for inner in op.block.ops:
            flops = flops + flops_formula(inner, self.nominal)
        for step, kernel in zip(scheduled.steps, made.kernels, strict=True):
            self.programs[kernel] = step.kernel
            if step.copies and all(self.buffer(op.operands[i]) == results[j] for i, j in step.copies):
                continue
            arguments = {
                argument.name: self._argument(binding, op, results, spaces)
                for argument, binding in zip(kernel.arguments, step.bindings, strict=True)
            }
            label = f"{op.label_name} ({describe(op.location)})"
            self.draft.launch(kernel, arguments, label=label, flops=flops, moved=_bytes_moved(op, step, scheduled))
            flops = 0

    def _slot(self, key: Hashable, size: Size) -> int:
        """The number of a slot in this stage: sizes that other stages use may not be known here."""
        if key not in self._slots:
            self._slots[key] = len(self.draft.slots)
            self.draft.slots.append(size)
        return self._slots[key]

    def _argument(self, binding: Binding, op: LaunchOp, results: Sequence[int], spaces: Sequence[int]) -> Size:
        if binding.kind == "size":
            return binding.size
        if binding.kind == "input":
            return self.buffer(op.operands[binding.index])
        return (results if binding.kind == "output" else spaces)[binding.index]

    # ---- control flow ----

    def while_(self, op: hlo.WhileOp) -> None:
        """Lower a while loop: carried values live in the buffers of its results."""
        targets = self.results(op)
        for value, target in zip(op.operands, targets, strict=True):
            self.move(value, target)
        with self.draft.block() as before:
            self.buffers.update(zip(op.cond.block.args, targets, strict=True))
            self.block(op.cond.block)
            condition = self.buffer(cast(Operation, op.cond.block.last_op).operands[0])
        with self.draft.block() as body:
            self.buffers.update(zip(op.body.block.args, targets, strict=True))
            self.block(op.body.block)
            for value, target in zip(cast(Operation, op.body.block.last_op).operands, targets, strict=True):
                self.move(value, target)
        self.draft.loop_while(condition, before, body)

    def branch(self, op: hlo.IfOp | hlo.CaseOp) -> None:
        """Each branch leaves its results in the places of the op's."""
        targets = self.results(op)
        branches: list[Sequence[PlanStep]] = []
        for region in op.regions:
            with self.draft.block() as steps:
                self.block(region.block)
                for value, target in zip(cast(Operation, region.block.last_op).operands, targets, strict=True):
                    self.move(value, target)
            branches.append(steps)
        self.draft.case(self.buffer(op.operands[0]), branches)

    # ---- the host ----

    def host(self, op: HostOp) -> None:
        """What the host computes in a branch or a loop, while the code runs, where it can be called from there."""
        step = host_step(op, ())
        if not self._calls_host:
            what = f"{step.function} does not run in branches and loops"
            why = "the host computes it, which kernels of this target cannot call"
            raise UnsupportedError(what, where=where(op), why=why, fix="Compile the model for cpu.")
        read = [self._written(value) for value in op.operands]
        inputs = tuple(map(_located, read, map(plan_value, op.operands)))
        outputs = tuple(map(_located, self.results(op), step.outputs))
        self.draft.call_host(HostCall(step.function, inputs, outputs, step.attributes))

    def _written(self, value: SSAValue) -> int:
        """Where a value lies; what lies nowhere is written down."""
        if value in self.buffers or self._is_in_memory(value) or is_stored(value.owner):
            return self.buffer(value)
        size = _bytes(value)
        target = self.draft.buffer("slot", self._slot(value, size), size)
        self.move(value, target)
        return target


_Row = Callable[[Lowering[Any], Any], None]
_ROWS: Mapping[type[Operation], _Row] = {
    LaunchOp: lambda lowering, op: lowering.launch(op, lowering.results(op)),
    hlo.WhileOp: lambda lowering, op: lowering.while_(op),
    hlo.IfOp: lambda lowering, op: lowering.branch(op),
    hlo.CaseOp: lambda lowering, op: lowering.branch(op),
    HostOp: lambda lowering, op: lowering.host(op),
}
"""Op class between kernels -> how its steps are made."""


def _located(buffer: int, value: Value) -> Located:
    return Located(buffer, value.dtype, value.dims)


def _bytes(value: SSAValue) -> Size:
    return product(shape_of(value)) * element_bytes(value.type)


def _bytes_moved(op: LaunchOp, step: Step, scheduled: Scheduled) -> Size:
    """The bytes that one of a launch's kernels reads and writes: each buffer that it uses, once."""
    if step.moved is not None:
        return step.moved
    total: Size = 0
    for argument, binding in zip(step.kernel.block.args, step.bindings, strict=True):
        if binding.kind == "scratch":
            space = scheduled.scratch[binding.index]
            total = total + space.count * element_bytes(tile.tile((), space.element))
        elif binding.kind != "size" and argument.uses:
            total = total + _bytes((op.operands if binding.kind == "input" else op.results)[binding.index])
    return total


def _direct_outputs(stage: Stage) -> dict[SSAValue, int]:
    """The results of a stage's kernels that are given once: they are computed in the output's own memory."""
    found: dict[SSAValue, int] = {}
    roots, made = [view_source(value) for value in stage.outputs], {result for op in stage.ops for result in op.results}
    for k, root in enumerate(roots):
        if isinstance(root.owner, LaunchOp) and root in made and roots.count(root) == 1:
            found[root] = k
    return found
