"""The reducer: from a program that shows a failure to a small one that shows the same.

    small = reduce_program(program, interesting)

`interesting` is any function of a program; `gcomp.testing.reduce.predicates` makes those that keep the failure of a
pass, of a command, or of a target. What is tried: fewer outputs and ops (cut out in halves, quarters, ... with delta
debugging; gone round; replaced by one branch or a function's body), fewer inputs, smaller shapes, simpler constants,
element types and properties.
"""

from __future__ import annotations

from collections.abc import Callable

from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.testing.reduce import ops, properties, sizes, values
from gcomp.testing.reduce.names import plain_names
from gcomp.testing.reduce.reducer import Predicate, Progress, Reducer, constant_count, op_count
from gcomp.testing.reduce.rewrites import rewritten
from gcomp.testing.reduce.signature import tidy
from gcomp.testing.reduce.weights import inline_weights


def reduce_program(
    program: Program,
    interesting: Predicate,
    *,
    seconds: float = 60.0,
    report: Callable[[Progress], object] | None = None,
    step: Pass | None = None,
) -> Program:
    """A smaller program for which `interesting` still holds; `program` stays as it is.

    `step` is the pass at fault, if it is one: what its own rewrites leave is tried, too, where that is smaller.
    Deterministic, unless it takes longer than `seconds`: then the smallest program so far. `report` is called after
    each candidate. UsageError if `interesting` does not hold for `program`.
    """
    if not interesting(program):
        raise UsageError("there is nothing to reduce", why="the program does not show the failure")
    reducer = Reducer(program.clone(), interesting, seconds, report)
    reducer.tidying = _survives_tidying(reducer)
    while not reducer.out_of_time:
        before = reducer.progress.kept
        if step is not None:
            reducer.stage("earlier rewrites")
            reducer.first_of(rewritten(reducer.program, step))
        _fewer_ops(reducer)
        _simpler(reducer)
        if reducer.progress.kept == before:
            break
    reducer.stage("names")
    reducer.attempt(inline_weights)
    reducer.attempt(plain_names)
    return reducer.program


def _survives_tidying(reducer: Reducer) -> bool:
    """Whether dropping what is dead keeps the failure. It is done by a pass, which may be the one that is broken."""
    candidate = reducer.program.clone()
    try:
        tidy(candidate)
        candidate.verify()
    except Exception:
        return False
    return reducer.offer(candidate)


def _fewer_ops(reducer: Reducer) -> None:
    while not reducer.out_of_time:
        before = reducer.progress.kept
        reducer.stage("outputs")
        reducer.remove(ops.output_count, ops.drop_outputs)
        reducer.stage("ops")
        reducer.remove(ops.main_op_count, ops.cut)
        reducer.remove(ops.main_op_count, ops.bypass)
        reducer.stage("regions and calls")
        reducer.each(ops.holder_count, ops.unfoldings)
        reducer.stage("single ops")
        reducer.each(ops.any_op_count, ops.replacements)
        if reducer.progress.kept == before:
            return


def _simpler(reducer: Reducer) -> None:
    reducer.stage("inputs")
    reducer.each(ops.input_count, ops.use_other_input)
    reducer.remove(ops.input_count, ops.drop_unused_inputs)
    reducer.stage("shapes")
    while reducer.first_of(sizes.shrinkings(reducer.program)):
        pass
    reducer.attempt(sizes.to_scalars)
    reducer.stage("constants")
    reducer.each(values.of_constants_count, values.evaluations)
    reducer.each(values.source_count, values.simpler_values)
    reducer.stage("element types")
    for edit in values.simpler_types(reducer.program):
        reducer.attempt(edit)
    reducer.stage("properties")
    reducer.each(properties.property_op_count, properties.simplifications)


__all__ = ["Predicate", "Progress", "constant_count", "inline_weights", "op_count", "reduce_program"]
