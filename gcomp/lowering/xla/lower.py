"""From a program to a plan for XLA: device segments whose texts are exported programs, and host steps between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir.host import HostOp
from gcomp.ir.program import Port, Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.xla.export import export
from gcomp.lowering.xla.options import options_for
from gcomp.lowering.xla.segments import Part, cut
from gcomp.lowering.xla.survey import survey
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Step, Value
from gcomp.runtime.signature import Signature
from gcomp.runtime.strict_json import Json

TARGETS = ("xla:cpu",)


def lower(program: Program, target: str = "xla:cpu", options: dict[str, Json] | None = None) -> Plan:
    """The plan that runs `program` on `target`; its weights stay in `program.weights`.

    `options` replaces the compile options chosen for the program. Raises UnsupportedError, naming every op that XLA
    cannot take, and for sizes that no input determines.
    """
    if target not in TARGETS:
        raise UnsupportedError(f"XLA has no target {target!r}.", fix=f"Choose one of: {', '.join(TARGETS)}.")
    _check_entry(program)
    steps = cut(program)
    inputs, outputs = program.inputs(), program.outputs()
    # What a call with several steps gives away is held until its end.
    aliases = match_donations(inputs, outputs) if len(steps) == 1 else []
    draft = _Draft(program.block.args, aliases, options)
    for step in steps:
        draft.add(step)
    plan = Plan(
        target=target,
        signature=_signature(program, inputs, outputs, aliases),
        steps=tuple(draft.steps),
        results=tuple(draft.numbers[value] for value in program.returned.operands)
        if any(isinstance(step, HostOp) for step in steps)
        else tuple(range(len(inputs), len(inputs) + len(outputs))),
        texts=draft.texts,
        weights=draft.weights,
    )
    _check_symbols(plan)
    return plan


@dataclass
class _Draft:
    """A plan in the making: values are numbered as they come."""

    inputs: Sequence[SSAValue]
    aliases: list[tuple[int, int]]
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
        inputs = tuple(self.numbers[v] for v in op.operands)
        self.steps.append(HostStep(op.value("function"), inputs, tuple(map(_value, op.results)), op.keywords))
        self._number(op.results)

    def _device(self, part: Part) -> None:
        found = survey(part.program)
        uses = found.uses[part.program.main.sym_name.data]
        text = f"main{len(self.texts) or ''}.mlir"
        self.texts[text] = export(part.program, found.uses, self.aliases)
        self.weights |= {name: Value(dtype_text(type), _texts(shape_of(type))) for name, type in uses}
        segment = DeviceSegment(
            text=text,
            inputs=tuple(self.numbers[v] for v in part.inputs),
            weights=tuple(name for name, _ in uses),
            outputs=tuple(map(_value, part.outputs)),
            aliases=tuple(self.aliases),
            options=options_for(found) if self.options is None else self.options,
        )
        self.steps.append(segment)
        self._number(part.outputs)


def _value(value: SSAValue) -> Value:
    return Value(dtype_text(value.type), _texts(shape_of(value)))


def _check_entry(program: Program) -> None:
    types = [*program.main.function_type.inputs.data, *program.main.function_type.outputs.data]
    if others := [str(type) for type in types if not isinstance(type, TensorType)]:
        raise UnsupportedError(
            f"The program's inputs and outputs must be tensors, and one is {others[0]}.",
            fix="Order side effects inside the program, and flatten tuples.",
        )


def match_donations(inputs: Sequence[Port], outputs: Sequence[Port]) -> list[tuple[int, int]]:
    """Pairs (donated input, output that takes its memory): the first free output of equal type, in order."""
    free = dict(enumerate(outputs))
    pairs: list[tuple[int, int]] = []
    for i, port in enumerate(inputs):
        if not port.donated:
            continue
        for k, output in free.items():
            if (output.dtype, output.shape) == (port.dtype, port.shape):
                pairs.append((i, k))
                del free[k]
                break
    return pairs


def _signature(
    program: Program, inputs: Sequence[Port], outputs: Sequence[Port], aliases: Sequence[tuple[int, int]]
) -> Signature:
    aliased = {result: argument for argument, result in aliases}
    symbols = sorted({name for port in inputs for size in port.shape for name in dims.symbols_of(size)})
    ranges = program.ranges
    return Signature(
        inputs=tuple(
            InputSpec(port.name, port.dtype, _texts(port.shape), port.donated, port.default) for port in inputs
        ),
        outputs=tuple(
            OutputSpec(port.name, port.dtype, _texts(port.shape), aliased.get(k)) for k, port in enumerate(outputs)
        ),
        # Symbols without a declared range get the default one, in so many words.
        ranges=ranges.updated({name: ranges[name] for name in symbols}),
        constraints=tuple(program.constraints),
        result=program.result_structure,
        arguments=program.argument_structure,
    )


def _texts(shape: Sequence[Size]) -> tuple[str, ...]:
    return tuple(str(size) for size in shape)


def _check_symbols(plan: Plan) -> None:
    late = {name for step in plan.steps if isinstance(step, HostStep) for value in step.outputs for name in _of(value)}
    used = frozenset[str]().union(*(template.symbols for template in plan.templates.values()))
    if unknown := sorted(used - plan.signature.symbols - late):
        raise UnsupportedError(
            f"The size {', '.join(unknown)} is not a dimension of any input.",
            why="A size that depends on data needs a step on the host, which the program does not have.",
            fix="Fix the size when compiling, or rewrite the op that makes it.",
        )


def _of(value: Value) -> frozenset[str]:
    return frozenset(name for text in value.dims for name in dims.symbols_of(dims.parse(text)))
