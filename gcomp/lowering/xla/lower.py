"""From a program to a plan for XLA: device segments whose texts are exported programs, and host steps between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.errors import UnsupportedError
from gcomp.ir.host import HostOp
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.lowering.signatures import check_entry, host_step, match_donations, plan_value, signature_of
from gcomp.lowering.xla.export import export
from gcomp.lowering.xla.gpu import suit_gpu
from gcomp.lowering.xla.meshes import (
    carry_weights,
    constrain,
    keep_nan,
    make_empty,
    mesh_of_program,
    refuse_narrow,
)
from gcomp.lowering.xla.options import options_for
from gcomp.lowering.xla.partitioner import suit_partitioner
from gcomp.lowering.xla.segments import Part, cut
from gcomp.lowering.xla.survey import survey
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Step, Value
from gcomp.runtime.strict_json import Json


def lower(program: Program, target: str = "xla:cpu", options: dict[str, Json] | None = None) -> Plan:
    """The plan that runs `program` on `target`; its weights stay in `program.weights`.

    `options` replaces the compile options chosen for the program. Raises UnsupportedError, naming every op that XLA
    cannot take, and for sizes that no input determines.
    """
    check_entry(program)
    device, mesh = target.partition(":")[2], mesh_of_program(program)
    if mesh or device != "cpu":
        program = program.clone()
    if device != "cpu":
        suit_gpu(program)
    if mesh:
        constrain(program)
        refuse_narrow(program)
        keep_nan(program)
        suit_partitioner(program)
        make_empty(program)
        carry_weights(program)
    steps = cut(program)
    if mesh and len(steps) > 1:
        raise UnsupportedError(
            "A program for several devices has a step on the host.",
            where=next((where(step) for step in steps if isinstance(step, HostOp)), None),
            why="Each device would wait for the host of another.",
            fix="Fix the sizes when compiling, or compile the model for one device.",
        )
    inputs, outputs = program.inputs(), program.outputs()
    # What a call with several steps gives away is held until its end.
    aliases = match_donations(inputs, outputs) if len(steps) == 1 else []
    draft = _Draft(program.block.args, aliases, device, options)
    for step in steps:
        draft.add(step)
    plan = Plan(
        target=target,
        signature=signature_of(program, aliases),
        steps=tuple(draft.steps),
        results=tuple(draft.numbers[value] for value in program.returned.operands)
        if any(isinstance(step, HostOp) for step in steps)
        else tuple(range(len(inputs), len(inputs) + len(outputs))),
        texts=draft.texts,
        weights=draft.weights,
        mesh=mesh,
    )
    _check_symbols(plan)
    return plan


@dataclass
class _Draft:
    """A plan in the making: values are numbered as they come."""

    inputs: Sequence[SSAValue]
    aliases: list[tuple[int, int]]
    device: str
    options: dict[str, Json] | None
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    count: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    weights: dict[str, Value] = field(default_factory=dict[str, Value])

    def __post_init__(self) -> None:
        self._number(self.inputs)

    def _number(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        first, self.count = self.count, self.count + len(values)
        self.numbers.update(zip(values, range(first, self.count), strict=True))
        return tuple(range(first, self.count))

    def add(self, step: Part | HostOp) -> None:
        """Append a step."""
        if isinstance(step, HostOp):
            self._host(step)
        else:
            self._device(step)

    def _host(self, op: HostOp) -> None:
        self.steps.append(host_step(op, [self.numbers[v] for v in op.operands]))
        self._number(op.results)

    def _device(self, part: Part) -> None:
        found = survey(part.program)
        uses = found.uses[part.program.main.sym_name.data]
        text = f"main{len(self.texts) or ''}.mlir"
        self.texts[text] = export(part.program, found.uses, self.aliases, has_nan=found.has_nan)
        self.weights |= {name: plan_value(type) for name, type in uses}
        segment = DeviceSegment(
            text=text,
            inputs=tuple(self.numbers[v] for v in part.inputs),
            weights=tuple(name for name, _ in uses),
            outputs=tuple(map(plan_value, part.outputs)),
            aliases=tuple(self.aliases),
            options=options_for(found, self.device) if self.options is None else self.options,
        )
        self.steps.append(segment)
        self._number(part.outputs)


def _check_symbols(plan: Plan) -> None:
    read = {name for step in plan.steps if isinstance(step, HostStep) for value in step.outputs for name in _of(value)}
    used = frozenset[str]().union(*(template.symbols for template in plan.templates.values()))
    if unknown := sorted(used - plan.signature.symbols - read):
        raise UnsupportedError(
            f"The size {', '.join(unknown)} is not a dimension of any input.",
            why="A size that depends on data needs a step on the host, which the program does not have.",
            fix="Fix the size when compiling, or rewrite the op that makes it.",
        )


def _of(value: Value) -> frozenset[str]:
    return frozenset(name for text in value.dims for name in dims.symbols_of(dims.parse(text)))
