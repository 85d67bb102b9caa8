"""Programs of kernels, each kernel run as tile programs beside the reference, and held to what the graph means.

A kernel whose ops compute single elements is held to the reference's own numbers (E1: signs of zeros and bits of NaN
are open). One that adds up, in an order of its own, is held to E2, and what an output's value owes to rounding or to
the place where a sum overflows (`gcomp.reference.freedom`) is not held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from random import Random
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing import operand_maps
from gcomp.analysis.overwriting import Overwriting
from gcomp.dims import Ranges, product, symbol, symbols_of
from gcomp.dims import evaluate as value_of
from gcomp.errors import VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.kernel import launch as launch_of
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, role_of
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import Tensor, shape_of, tensor
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import Scheduled, Settings, schedule
from gcomp.reference.contract import Mismatch, compare
from gcomp.reference.freedom import open_elements
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.noise import FUNCTIONS
from gcomp.reference.table import Array, Meaning, Scope, Value
from gcomp.reference.varied import short_name
from gcomp.reference.wider import interpret_wider
from gcomp.testing.sorts import unordered_elements

Scheduler = Callable[[LaunchOp], Scheduled]
Report = Callable[[LaunchOp, Sequence[Mismatch]], None]
_PROGRAMS = 64
"""A grid of more programs is not run program by program."""


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
        self._scheduler = scheduler or self._default
        self._plain = Interpreter(program)
        self._meanings = {**self._meanings, LaunchOp: Meaning(self._launch)}

    def _default(self, op: LaunchOp) -> Scheduled:
        return verify_schedule(schedule(op, "kernel", self.ranges))

    def _launch(self, op: LaunchOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
        self._plain.reset(scope.sizes)
        expected = [np.asarray(e) for e in self._plain.run_op(op, args)]
        self.check(op, [np.asarray(a) for a in args], scope.sizes, expected)
        return expected

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        """Hold a launch's tile programs to what the reference computes."""
        if op not in self._scheduled:
            self._scheduled[op] = self._scheduler(op)
        try:
            found = execute(op, self._scheduled[op], args, sizes)
        except VerificationError:
            if not self.shares_places(op, args, sizes, expected):
                raise
            return
        self._report(op, differences(op, self.ranges, args, sizes, expected, found))
        self._check_in_place(op, args, sizes, expected)

    def shares_places(
        self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]
    ) -> bool:
        """Whether a comparator is no strict order, so that a counting sort gives several elements the same position."""
        program, inputs = alone(op, self.ranges), with_sizes(op, args, sizes)
        return any(mask.any() for mask in unordered_elements(program, inputs, expected))

    def _check_in_place(
        self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]
    ) -> None:
        """Hold it to the same with its results over operands, where a memory plan may put them.

        Programs run one after the other in both directions, so that each meets what others have written already.
        """
        lies, steps = in_place(op), self._scheduled[op].steps
        if not lies or sum(prod(value_of(n, sizes) for n in step.grid) for step in steps) > _PROGRAMS:
            return
        for order in ("forwards", "backwards"):
            found = execute(op, self._scheduled[op], args, sizes, lies, order)
            wrong = differences(op, self.ranges, args, sizes, expected, found)
            if wrong:
                self._report(op, [replace(m, reason=f"in-place {m.reason}") for m in wrong])
                return


def in_place(op: LaunchOp) -> list[tuple[int, int]]:
    """The operands and results of a launch that a memory plan may put in one place."""
    over = Overwriting(op)
    return [(i, j) for i in range(len(op.operands)) for j in range(len(op.results)) if over.may(i, j)]


def verify_schedule(scheduled: Scheduled) -> Scheduled:
    """What a schedule made, once its kernels are known to be well formed."""
    for step in scheduled.steps:
        step.kernel.verify()
    return scheduled


def check_kernel(
    program: Program, kind: str, inputs: Sequence[Array], settings: Settings | None = None
) -> list[Mismatch]:
    """Where a program, as one kernel of a kind, computes something else than the graph means."""
    found: list[Mismatch] = []
    whole = as_kernel(program, kind)

    def scheduled(op: LaunchOp) -> Scheduled:
        return verify_schedule(schedule(op, "kernel", whole.ranges, settings))

    TileChecker(whole, lambda _, mismatches: found.extend(mismatches), scheduled).run(inputs)
    return found


def as_kernel(program: Program, kind: str) -> Program:
    """The program with all its ops in one kernel."""
    found = program.clone()
    block, returned = found.block, found.returned
    ops = [op for op in block.ops if op is not returned]
    kernel = launch_of(kind, kind, list(block.args), ops, list(returned.operands))
    for op in reversed((*ops, returned)):
        op.detach()
        op.erase(safe_erase=False)
    block.add_ops([kernel, type(returned).create(operands=kernel.results)])
    found.verify()
    return found


# ---- choices ------------------------------------------------------------------------------------------------------


def settings_for(launch: LaunchOp, random: Random, least: int = 16, most: int | None = None) -> Settings:
    """Blocks so small that small kernels take several: programs, turns of loops, and lanes that hold no element.

    `least` is the least side of tiles that are multiplied: 16 on GPUs, which the evaluator does not need. What is more
    than `most` is not chosen, where there is a choice.
    """
    chosen: dict[str, int] = {}
    for name, values in _SMALL.get(launch.kind_name, {}).items():
        few = values if most is None else [v for v in values if v <= most] or [min(values)]
        chosen[name] = random.choice(few)
    multiplied = _MULTIPLIED.get(launch.kind_name, ())
    return Settings(chosen | {name: max(chosen[name], least) for name in multiplied})


_SMALL: Mapping[str, Mapping[str, Sequence[int]]] = {
    "loop": {"block": (1, 2, 4, 16, 1024), "rows": (1, 2, 4, 32), "columns": (1, 2, 8, 32)},
    "reduction": {
        "persistent": (0, 2, 8192), "rows": (1, 2, 8), "columns": (1, 2, 4, 64), "block": (1, 4, 1024),
        "pieces": (1, 1, 2, 3),
    },
    "window": {"block": (1, 2, 4, 1024), "lanes": (0, 1, 2, 8), "wide": (8, 128), "high": (1, 2, 16)},
    "matmul": {
        "rows": (2, 4, 16), "columns": (2, 4, 32), "terms": (1, 2, 16), "group": (1, 2, 8), "block": (2, 1024),
        "pieces": (1, 2, 3), "programs": (0, 1, 3), "boxes": (0, 1),
    },
    "convolution": {
        "rows": (2, 4, 16), "columns": (2, 4, 32), "terms": (1, 2, 16), "group": (1, 2), "block": (2, 1024),
        "pieces": (1, 2, 3), "programs": (0, 1, 3), "boxes": (0, 1),
    },
    "attention": {"queries": (2, 4, 16), "keys": (2, 4, 16), "splits": (1, 2, 3)},
    "scan": {"rows": (1, 2, 8), "columns": (1, 2, 8), "pieces": (1, 2, 3), "block": (1, 4, 128)},
    "scatter": {"block": (1, 2, 16, 1024), "in_turn": (0, 1)},
    "sort": {
        "direct": (0, 4, 1 << 20), "chunk": (2, 4, 64), "block": (1, 2, 4, 32), "lanes": (4, 16, 4096), "limit": (0, 1),
    },
    "library": {"block": (1, 4, 512)},
}  # fmt: skip
"""Kind of kernel -> what its schedule may choose, and choices."""

_MULTIPLIED = {
    "matmul": ("rows", "columns", "terms"), "convolution": ("rows", "columns", "terms"),
    "attention": ("queries", "keys"),
}  # fmt: skip
"""Kind of kernel -> those of its choices that are sides of tiles that are multiplied."""


# ---- the contract -------------------------------------------------------------------------------------------------


def differences(
    op: LaunchOp,
    ranges: Ranges,
    args: Sequence[Array],
    sizes: Mapping[str, int],
    expected: Sequence[Array],
    found: Sequence[Array],
) -> list[Mismatch]:
    """Where a kernel's results are not what the graph means."""
    if not any(compare(e, f, Exactness.E1, limit=1) for e, f in zip(expected, found, strict=True)):
        return []
    kept = Exactness.E1 if is_exact(op) else Exactness.E2
    program, inputs = alone(op, ranges), with_sizes(op, args, sizes)
    wider, roundings = interpret_wider(program, inputs), 1.0 + longest_sum(op, sizes) ** 0.5

    def held(found: Sequence[Array]) -> list[Mismatch]:
        pairs = zip(expected, found, wider, strict=True)
        return [m for e, f, w in pairs for m in compare(e, f, kept, wider=w, roundings=roundings, limit=3)]

    if any((e.shape, e.dtype) != (f.shape, f.dtype) for e, f in zip(expected, found, strict=True)) or not held(found):
        return held(found)
    excused = open_elements(program, kept, inputs, expected, found)
    excused = [open_ | odd for open_, odd in zip(excused, unordered_elements(program, inputs, expected), strict=True)]
    return held([np.where(open_, e, f) for e, f, open_ in zip(expected, found, excused, strict=True)])


def is_exact(launch: LaunchOp) -> bool:
    """Whether a kernel computes single elements from single elements, by no function that GPUs approximate."""
    return all(
        isinstance(op, ReturnOp) or (role_of(op) in PER_ELEMENT and short_name(op) not in FUNCTIONS)
        for op in launch.block.ops
    )


def alone(launch: LaunchOp, ranges: Ranges) -> Program:
    """A kernel as a program of its own. Inputs of no other use, one for each symbol, say how large sizes are."""
    types = [cast(Tensor, argument.type) for argument in launch.block.args]
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])
    names = symbols(launch)
    for name in names:
        program.add_input(f"size_{name}", tensor((symbol(name),), "i1"))
    program.ranges = Ranges({name: ranges[name] for name in names})
    called = [f.clone() for f in _functions(launch) if f.sym_name.data != "main"]
    program.module.body.block.add_ops(called)
    values: dict[SSAValue, SSAValue] = dict(zip(launch.block.args, program.block.args, strict=False))
    for op in launch.block.ops:
        if not isinstance(op, ReturnOp):
            program.block.add_op(copy := op.clone(values))
            copy.location = op.location
    program.finish([(f"r{j}", values[value]) for j, value in enumerate(launch.returned.operands)])
    return program


def with_sizes(launch: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
    """The inputs of a kernel as a program of its own (`alone`)."""
    return [*args, *(np.zeros(sizes[name], np.bool_) for name in symbols(launch))]


def _functions(op: Operation) -> list[FuncOp]:
    """The functions of an op's module, which composites in it may name."""
    while (around := op.parent_op()) is not None:
        op = around
    return [one for one in op.regions[0].block.ops if isinstance(one, FuncOp)] if isinstance(op, ModuleOp) else []


def symbols(launch: LaunchOp) -> list[str]:
    """The symbols of a kernel's sizes."""
    values = [*launch.block.args, *(result for op in launch.block.ops for result in op.results)]
    return sorted({name for value in values for size in shape_of(value) for name in symbols_of(size)})


def longest_sum(launch: LaunchOp, sizes: Mapping[str, int]) -> int:
    """How many terms a kernel's longest sum has: f32 sums of n random terms come out about sqrt(n) / 2 ulps off."""
    found = 1
    for op in launch.block.ops:
        if role_of(op) not in PER_ELEMENT:
            ranges = [m.ranges for row in operand_maps(op) for m in row if m is not None]
            found = max([found, *[value_of(product(r), sizes) for r in ranges]])
    return found
