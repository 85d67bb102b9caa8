"""Saying how the inputs, outputs and weights of a program lie on a mesh, by their names."""

from __future__ import annotations

from xdsl.rewriter import InsertPoint

from gcomp.dims import Size
from gcomp.ir import sdy
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.sharding import Sharding


def shapes_by_name(program: Program) -> dict[str, tuple[Size, ...]]:
    """The shapes of all inputs, outputs and weights. What goes by the name of an input is the input."""
    weights = {op.symbol: shape_of(op.result) for op in program.ops() if isinstance(op, WeightOp)}
    ports = [*program.outputs(), *program.inputs()]
    return {**weights, **{port.name: port.shape for port in ports}}


def place(program: Program, name: str, sharding: Sharding) -> None:
    """Say how an input, output or weight of `shapes_by_name` lies."""
    main = program.main
    inputs, outputs = [p.name for p in program.inputs()], [p.name for p in program.outputs()]
    if name in inputs:
        given = sdy.argument_shardings(main)
        given[inputs.index(name)] = sharding
        sdy.set_argument_shardings(main, given)
    elif name in outputs:
        taken = sdy.result_shardings(main)
        taken[outputs.index(name)] = sharding
        sdy.set_result_shardings(main, taken)
    else:
        for read in [op for op in program.ops() if isinstance(op, WeightOp) and op.symbol == name]:
            _constrain(program, read, sharding)


def _constrain(program: Program, read: WeightOp, sharding: Sharding) -> None:
    """Let all that reads a weight read it where it is to lie."""
    b = Builder(program, InsertPoint.after(read))
    placed = b.emit(sdy.ShardingConstraintOp, read.result, sharding=sdy.ShardingAttr(sharding))
    read.result.replace_uses_with_if(placed, lambda use: use.operation is not placed.owner)


__all__ = ["place", "shapes_by_name"]
