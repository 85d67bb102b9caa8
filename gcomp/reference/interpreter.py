"""The reference interpreter: runs a program on NumPy arrays, op after op, as docs/guides/semantics.md says.

Every op means its row in `gcomp.reference.table.MEANINGS`. Symbolic dims take their values from the inputs' shapes.
Values are dropped after their last use; neither long programs nor deep calls deepen Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from gcomp.errors import InputError, UnsupportedError, UsageError
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.types import static_shape, tensor_of
from gcomp.ir.walking import captures
from gcomp.reference import rows as rows  # fills the table
from gcomp.reference.lockstep import run_in_lockstep
from gcomp.reference.machine import Arrays, Machine, Observer
from gcomp.reference.signature import bind_results, bind_sizes, check_inputs, own_outputs
from gcomp.reference.table import Array, Entry, Place, Value

__all__ = ["Interpreter", "Observer", "evaluate_op", "interpret", "interpret_on_devices"]


class Interpreter(Machine):
    """Runs one program any number of times. The program must not change meanwhile.

    `observer` is called after each op with its results; `max_steps` bounds the ops of one run, those of loop bodies
    counted each time; `sink` takes the lines that the program prints.
    """

    def __init__(
        self,
        program: Program,
        *,
        observer: Observer | None = None,
        max_steps: int | None = None,
        sink: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(program.module, program.weights, observer=observer, max_steps=max_steps)
        self._program, self.sink = program, sink

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, in order, as new arrays.

        Raises InputError for inputs that do not match the signature, UnsupportedError for an op without reference
        meaning, InvalidModelError where sizes known only now contradict the program.
        """
        ports = self._program.inputs()
        arrays = check_inputs(ports, inputs)
        self.reset(bind_sizes(self._program, ports, arrays))
        entry = Entry(self._program.block, [self.data(a) for a in arrays], {})
        return own_outputs(self.run_entry(entry), arrays)

    def bind(self, op: Operation, shapes: Sequence[tuple[int, ...]]) -> None:
        self._sizes = bind_results(self._program, op, shapes, self._sizes)


def interpret_on_devices(
    program: Program, inputs: Sequence[Sequence[Array]], *, replicas: int = 1, max_steps: int | None = None
) -> list[list[Array]]:
    """The outputs of a program that is written for one device, on as many devices as there are lists of inputs.

    Device `r * partitions + p` is partition p of replica r. Raises what `Interpreter.run` does; InvalidModelError where
    the devices disagree about the order of collectives; UsageError for a number of devices that replicas do not divide.
    """
    partitions, rest = divmod(len(inputs), replicas)
    if not inputs or rest:
        raise UsageError(f"{len(inputs)} devices do not make {replicas} replicas")
    ports = program.inputs()
    given = [check_inputs(ports, arrays) for arrays in inputs]
    base = Interpreter(program, max_steps=max_steps)
    sizes = [bind_sizes(program, ports, arrays) for arrays in given]
    if any(other != sizes[0] for other in sizes):
        raise InputError("the devices have inputs of different sizes", why=f"the sizes are {sizes}")
    base.reset(sizes[0])
    devices = [base.at(Place(replicas, partitions, *divmod(i, partitions))) for i in range(len(given))]
    entries = [Entry(program.block, arrays, {}) for arrays in given]
    results = run_in_lockstep(devices, [d.running(entry) for d, entry in zip(devices, entries, strict=True)])
    return [own_outputs(outputs, arrays) for outputs, arrays in zip(results, given, strict=True)]


def interpret(program: Program, inputs: Sequence[Array], *, max_steps: int | None = None) -> list[Array]:
    """The outputs of a program for these inputs (see `Interpreter.run`)."""
    return Interpreter(program, max_steps=max_steps).run(inputs)


def evaluate_op(
    op: Operation,
    args: Sequence[Value],
    weights: Arrays | None = None,
    *,
    captured: Mapping[SSAValue, Value] | None = None,
    max_steps: int | None = None,
    sink: Callable[[str], object] | None = None,
) -> list[Value]:
    """The results of one op for operand values; for folding. The op need not be in a program.

    `captured` has the values from around the op that its regions use. Raises UnsupportedError where others are used,
    the op has no reference meaning, or has symbolic sizes.
    """
    around: Mapping[SSAValue, Value] = {} if captured is None else captured
    if unknown := [value for value in captures(op) if value not in around]:
        raise UnsupportedError(
            f"{op.name} cannot be evaluated alone", where=where(op), why=f"its regions use {len(unknown)} outer values"
        )
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType) and static_shape(value) is None:
            raise UnsupportedError(
                f"{op.name} cannot be evaluated alone: {tensor_of(value)} is symbolic", where=where(op)
            )
    machine = Machine(_module_of(op), {} if weights is None else weights, max_steps=max_steps)
    machine.sink = sink
    return list(machine.run_op(op, args, around))


def _module_of(op: Operation) -> ModuleOp | None:
    around: Operation | None = op
    while around is not None and not isinstance(around, ModuleOp):
        around = around.parent_op()
    return around
