"""What targets have in common: a program's inputs and outputs as a plan describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir.host import HostOp
from gcomp.ir.program import Port, Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import HostStep, Value
from gcomp.runtime.signature import Signature


def plan_value(value: SSAValue | Attribute) -> Value:
    """The element type and shape of a value."""
    return Value(dtype_text(value if isinstance(value, Attribute) else value.type), _texts(shape_of(value)))


def host_step(op: HostOp, inputs: Sequence[int]) -> HostStep:
    """The plan's step for a host op, whose operands are the plan's values of these numbers."""
    return HostStep(op.value("function"), tuple(inputs), tuple(map(plan_value, op.results)), op.keywords)


def check_entry(program: Program) -> None:
    """Raise UnsupportedError for a program whose inputs and outputs are not all tensors."""
    types = [*program.main.function_type.inputs.data, *program.main.function_type.outputs.data]
    if others := [str(type) for type in types if not isinstance(type, TensorType)]:
        raise UnsupportedError(
            f"The program's inputs and outputs must be tensors, and one is {others[0]}.",
            fix="Order side effects inside the program, and flatten tuples.",
        )


def match_donations(inputs: Sequence[Port], outputs: Sequence[Port]) -> list[tuple[int, int]]:
    """Pairs (donated input, output that takes its memory).

    The next value of a state takes that of the state; else it is the first free output of equal type, in order.
    """
    places = {port.name: k for k, port in enumerate(outputs)}
    pairs = [(i, places[p.state]) for i, p in enumerate(inputs) if p.donated and p.state is not None]
    taken = {k for _, k in pairs}
    free = {k: output for k, output in enumerate(outputs) if k not in taken}
    for i, port in enumerate(inputs):
        if not port.donated or port.state is not None:
            continue
        for k, output in free.items():
            if (output.dtype, output.shape) == (port.dtype, port.shape):
                pairs.append((i, k))
                del free[k]
                break
    return pairs


def signature_of(program: Program, aliases: Sequence[tuple[int, int]] = ()) -> Signature:
    """A program's signature; `aliases` are pairs (donated input, output that takes its memory)."""
    inputs, outputs = program.inputs(), program.outputs()
    places = {port.name: k for k, port in enumerate(outputs)}
    aliased = {result: argument for argument, result in aliases}
    symbols = sorted({name for port in inputs for size in port.shape for name in dims.symbols_of(size)})
    ranges = program.ranges
    return Signature(
        inputs=tuple(_input(port, places) for port in inputs),
        outputs=tuple(
            OutputSpec(p.name, p.dtype, _texts(p.shape), aliased.get(k), p.key, p.names) for k, p in enumerate(outputs)
        ),
        # Symbols without a declared range get the default one, in so many words.
        ranges=ranges.with_ranges({name: ranges[name] for name in symbols}),
        constraints=tuple(program.constraints),
        result=program.result_structure,
        arguments=program.argument_structure,
    )


def _input(port: Port, outputs: Mapping[str, int]) -> InputSpec:
    state = None if port.state is None else outputs[port.state]
    return InputSpec(port.name, port.dtype, _texts(port.shape), port.donated, port.default, state, port.key)


def _texts(shape: Sequence[Size]) -> tuple[str, ...]:
    return tuple(str(size) for size in shape)
