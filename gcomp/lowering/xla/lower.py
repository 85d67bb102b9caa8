"""From a program to a plan for XLA: one device segment whose text is the exported program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType

from gcomp import dims
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Port, Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.xla.export import export
from gcomp.lowering.xla.options import options_for
from gcomp.lowering.xla.survey import Survey, survey
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import DeviceSegment, Plan, Value
from gcomp.runtime.signature import Signature
from gcomp.runtime.strict_json import Json

TARGETS = ("xla:cpu",)
TEXT = "main.mlir"


def lower(program: Program, target: str = "xla:cpu", options: dict[str, Json] | None = None) -> Plan:
    """The plan that runs `program` on `target`; its weights stay in `program.weights`.

    `options` replaces the compile options chosen for the program. Raises UnsupportedError, naming every op that XLA
    cannot take, and for sizes that no input determines.
    """
    if target not in TARGETS:
        raise UnsupportedError(f"XLA has no target {target!r}.", fix=f"Choose one of: {', '.join(TARGETS)}.")
    _check_entry(program)
    found = survey(program)
    inputs, outputs = program.inputs(), program.outputs()
    aliases = match_donations(inputs, outputs)
    signature = _signature(program, inputs, outputs, aliases)
    uses = found.uses[program.main.sym_name.data]
    segment = DeviceSegment(
        text=TEXT,
        inputs=tuple(range(len(inputs))),
        weights=tuple(name for name, _ in uses),
        outputs=tuple(Value(port.dtype, _texts(port.shape)) for port in outputs),
        aliases=tuple(aliases),
        options=options_for(found) if options is None else options,
    )
    plan = Plan(
        target=target,
        signature=signature,
        steps=(segment,),
        results=tuple(range(len(inputs), len(inputs) + len(outputs))),
        texts={TEXT: _export(program, found, aliases)},
        weights={name: Value(dtype_text(type), _texts(shape_of(type))) for name, type in uses},
    )
    _check_symbols(plan)
    return plan


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


def _export(program: Program, found: Survey, aliases: Sequence[tuple[int, int]]) -> str:
    return export(program, found.uses, aliases)


def _signature(
    program: Program, inputs: Sequence[Port], outputs: Sequence[Port], aliases: Sequence[tuple[int, int]]
) -> Signature:
    aliased = {result: argument for argument, result in aliases}
    symbols = sorted({name for port in inputs for size in port.shape for name in dims.symbols_of(size)})
    ranges = program.ranges
    return Signature(
        inputs=tuple(InputSpec(port.name, port.dtype, _texts(port.shape), port.donated) for port in inputs),
        outputs=tuple(
            OutputSpec(port.name, port.dtype, _texts(port.shape), aliased.get(k)) for k, port in enumerate(outputs)
        ),
        # Symbols without a declared range get the default one, in so many words.
        ranges=ranges.updated({name: ranges[name] for name in symbols}),
        constraints=tuple(program.constraints),
        result=program.result_structure,
    )


def _texts(shape: Sequence[Size]) -> tuple[str, ...]:
    return tuple(str(size) for size in shape)


def _check_symbols(plan: Plan) -> None:
    used = frozenset[str]().union(*(template.symbols for template in plan.templates.values()))
    if unknown := sorted(used - plan.signature.symbols):
        raise UnsupportedError(
            f"The size {', '.join(unknown)} is not a dimension of any input.",
            why="A size that depends on data needs a step on the host, which the program does not have.",
            fix="Fix the size when compiling, or rewrite the op that makes it.",
        )
