"""Control flow, calls, and the values that are not tensors."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from xdsl.dialects.func import CallOp

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.reference.table import TOKEN, Entry, Scope, Value, meaning

Run = Generator[Entry, list[Value], Sequence[Value]]


@meaning(hlo.IfOp)
def if_(op: hlo.IfOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs one branch."""
    return (yield scope.enter(op.true_branch if args[0] else op.false_branch))


@meaning(hlo.CaseOp)
def case(op: hlo.CaseOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the branch of the index; the last one where it is out of bounds."""
    index = int(args[0])
    return (yield scope.enter(op.branches[index if 0 <= index < len(op.branches) else -1]))


@meaning(hlo.WhileOp)
def while_(op: hlo.WhileOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the condition before each iteration."""
    values = list(args)
    while (yield scope.enter(op.cond, values))[0]:
        values = yield scope.enter(op.body, values)
    return values


@meaning(chlo.ScanOp)
def scan(op: chlo.ScanOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the body on each slice of the inputs in turn, the last first if reversed; the outputs lie where they did."""
    count, axis = len(op.inputs), int(op.value("dimension"))
    inputs, carries = args[:count], list(args[count:])
    shapes = [scope.shape(value) for value in op.outputs]
    outputs = [np.empty(shape, scope.dtype(value)) for shape, value in zip(shapes, op.outputs, strict=True)]
    given = op.value("scan_dim_size")
    steps = range(int(given if given is not None else inputs[0].shape[axis]))
    for i in reversed(steps) if op.value("is_reverse") else steps:
        slices = [np.take(x, i, axis) for x in inputs]
        results = yield scope.enter(op.body, [*slices, *carries])
        made, carries = results[: len(outputs)], results[len(outputs) :]
        for output, part in zip(outputs, made, strict=True):
            output[(slice(None),) * axis + (i,)] = part
    return [*outputs, *carries]


@meaning(CallOp)
def call(op: CallOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the function."""
    return (yield Entry(scope.function(op.callee.string_value(), op).body.block, args, {}))


@meaning(hlo.CompositeOp)
def composite(op: hlo.CompositeOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the decomposition: the name and attributes are hints."""
    return (yield Entry(scope.function(op.decomposition_name, op).body.block, args, {}))


@meaning(hlo.OptimizationBarrierOp, elementwise=True)
def optimization_barrier(op: hlo.OptimizationBarrierOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The operands."""
    return args


@meaning(hlo.AfterAllOp, hlo.CreateTokenOp)
def token(op: hlo.AfterAllOp | hlo.CreateTokenOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Ops run in order, so a token needs no content."""
    return (TOKEN,)


@meaning(hlo.TupleOp)
def tuple_(op: hlo.TupleOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The operands as one Python tuple."""
    return (tuple(args),)


@meaning(hlo.GetTupleElementOp)
def get_tuple_element(op: hlo.GetTupleElementOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """One element."""
    return (args[0][op.value("index")],)


@meaning(LaunchOp)
def launch(op: LaunchOp, args: Sequence[Value], scope: Scope) -> Run:
    """Runs the kernel's body."""
    return (yield scope.enter(op.body, args))
