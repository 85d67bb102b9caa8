"""Programs of kernels, each kernel run as tile programs beside the reference, and held to what the graph means.

A kernel whose ops compute single elements is held to the reference's own bits (E1: signs of zeros and bits of NaN are
open). One that adds up, in an order of its own, is held to E2, and what an output's value owes to rounding or to the
place where a sum overflows (`gcomp.reference.freedom`) is not held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.analysis.indexing import operand_maps
from gcomp.dims import Ranges, product, symbol, symbols_of
from gcomp.dims import evaluate as value_of
from gcomp.exactness import Exactness
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, role_of
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import Tensor, shape_of, tensor
from gcomp.lowering.triton.executor import execute
from gcomp.lowering.triton.schedules import Scheduled, schedule
from gcomp.reference.contract import Mismatch, compare
from gcomp.reference.freedom import left_open
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.table import Array, Meaning, Scope, Value
from gcomp.reference.wider import interpret_wider

Scheduler = Callable[[LaunchOp], Scheduled]
Report = Callable[[LaunchOp, Sequence[Mismatch]], None]


class TileChecker(Interpreter):
    """Runs a program; each launch also as tile programs, on the same operands. `report` gets what differs, if anything.

    What a launch gives further on is the reference's result, so that one wrong kernel is one report.
    """

    def __init__(
        self, program: Program, report: Report, scheduler: Scheduler | None = None, *, max_steps: int | None = None
    ) -> None:
        super().__init__(program, max_steps=max_steps)
        self.ranges = program.ranges
        self._report = report
        self._scheduled: dict[LaunchOp, Scheduled] = {}
        self._scheduler = scheduler or (lambda launch: schedule(launch, "kernel", self.ranges))
        self._plain = Interpreter(program)
        self._meanings = {**self._meanings, LaunchOp: Meaning(self._launch)}

    def _launch(self, op: LaunchOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
        self._plain.reset(scope.sizes)
        expected = [np.asarray(e) for e in self._plain.run_op(op, args)]
        self.check(op, [np.asarray(a) for a in args], scope.sizes, expected)
        return expected

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        """Hold a launch's tile programs to what the reference computes."""
        if op not in self._scheduled:
            self._scheduled[op] = self._scheduler(op)
        found = execute(op, self._scheduled[op], args, sizes)
        self._report(op, differences(op, self.ranges, args, sizes, expected, found))


def differences(
    op: LaunchOp,
    ranges: Ranges,
    args: Sequence[Array],
    sizes: Mapping[str, int],
    expected: Sequence[Array],
    found: Sequence[Array],
) -> list[Mismatch]:
    """Where a kernel's results are not what the graph means."""
    kept = Exactness.E1 if is_exact(op) else Exactness.E2
    same = [compare(e, f, Exactness.E1, limit=1) == [] for e, f in zip(expected, found, strict=True)]
    if all(same):
        return []
    program, inputs = alone(op, ranges), [*args, *_lengths(op, sizes)]
    wider = interpret_wider(program, inputs)
    roundings = 1.0 + longest_sum(op, sizes) ** 0.5
    excused = left_open(program, kept, inputs, expected, found)
    differing: list[Mismatch] = []
    for e, f, w, open_ in zip(expected, found, wider, excused, strict=True):
        if (e.shape, e.dtype) == (f.shape, f.dtype):
            f = np.where(open_, e, f)
        differing += compare(e, f, kept, wider=w, roundings=roundings, limit=3)
    return differing


def is_exact(launch: LaunchOp) -> bool:
    """Whether all that a kernel computes is single elements from single elements."""
    return all(role_of(op) in PER_ELEMENT or isinstance(op, ReturnOp) for op in launch.block.ops)


def alone(launch: LaunchOp, ranges: Ranges) -> Program:
    """A kernel as a program of its own. Inputs of no other use, one for each symbol, say how large sizes are."""
    types = [argument.type for argument in launch.block.args]
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])  # type: ignore[misc]
    names = symbols(launch)
    for name in names:
        program.add_input(f"size_{name}", tensor((symbol(name),), "i1"))
    program.ranges = Ranges({name: ranges[name] for name in names})
    values: dict[SSAValue, SSAValue] = dict(zip(launch.block.args, program.block.args, strict=False))
    for op in launch.block.ops:
        if not isinstance(op, ReturnOp):
            program.block.add_op(copy := op.clone(values))
            copy.location = op.location
    program.finish([(f"r{j}", values.get(v, v)) for j, v in enumerate(launch.returned.operands)])
    return program


def symbols(launch: LaunchOp) -> list[str]:
    """The symbols of a kernel's sizes."""
    types: list[Tensor] = [value.type for op in launch.block.ops for value in (*op.operands, *op.results)]  # type: ignore[misc]
    found = {name for type in (*launch.operand_types, *types) for size in shape_of(type) for name in symbols_of(size)}
    return sorted(found)


def _lengths(launch: LaunchOp, sizes: Mapping[str, int]) -> list[Array]:
    return [np.zeros(sizes[name], np.bool_) for name in symbols(launch)]


def longest_sum(launch: LaunchOp, sizes: Mapping[str, int]) -> int:
    """How many terms the longest sum of a kernel has: f32 sums of n random terms come out about sqrt(n) / 2 ulps off."""
    found = 1
    for op in launch.block.ops:
        if role_of(op) not in PER_ELEMENT:
            ranges = [m.ranges for row in operand_maps(op) for m in row if m is not None]
            found = max([found, *[value_of(product(r), sizes) for r in ranges]])
    return found
