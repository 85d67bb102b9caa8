"""Turn weights into inputs of the program, for values that change from call to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from gcomp.errors import UnsupportedError
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import tensor_of
from gcomp.ir.weights import Array


def open_weights(program: Program, names: Mapping[str, str]) -> dict[str, Array]:
    """Make weights inputs, after the others, of names of their own; and take them from the program: their arrays.

    Raises UnsupportedError for one that is read inside of a function.
    """
    inside = set(program.main.walk())
    reads: dict[str, list[WeightOp]] = {name: [] for name in names}
    for op in program.ops():
        if isinstance(op, WeightOp) and op.symbol in reads:
            if op not in inside:
                raise UnsupportedError(
                    f"the weight {op.symbol!r} cannot be an input", where=where(op),
                    why="it is read inside a function that the program calls",
                    fix="run the passes inline-composites first",
                )  # fmt: skip
            reads[op.symbol].append(op)
    arrays: dict[str, Array] = {}
    program.argument_structure = None
    for name, ops in reads.items():
        if not ops:
            continue
        _replace(ops, program.add_input(names[name], tensor_of(ops[0].results[0])))
        arrays[names[name]] = program.weights[name]
        program.weights.remove(name)
    return arrays


def _replace(ops: Sequence[WeightOp], value: SSAValue) -> None:
    for op in ops:
        op.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(op)
