"""A loop that runs a number of times known at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder

Step = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]


def repeat_steps(b: Builder, times: int, carried: Sequence[SSAValue], step: Step, *,
             goes_on: Callable[[Sequence[SSAValue]], SSAValue] | None = None) -> list[SSAValue]:  # fmt: skip
    """`carried` after `times` steps, each a function of the step's number (i32) and the values before it.

    With `goes_on` the loop ends early, when that is false (i1) of the values.
    """
    limit, one = b.constant(times, "i32"), b.constant(1, "i32")
    start = [b.constant(0, "i32"), *carried]
    types = [v.type for v in start]

    def test(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        more = b.compare(args[0], limit, "LT")
        return [more if goes_on is None else b.emit(hlo.AndOp, more, goes_on(args[1:]))]

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [b.add(args[0], one), *step(args[0], args[1:])]

    regions = (b.region(types, test), b.region(types, body))
    return list(b.emit_all(hlo.WhileOp, *start, regions=regions))[1:]
