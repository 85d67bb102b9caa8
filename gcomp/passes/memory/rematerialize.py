"""Kernels run again shortly before their results are read, where that keeps the bytes alive within a budget.

Between an order and its places: what lives long and is cheap to make, by the cost model, is made twice. Only `main`'s
own kernels are; what has effects, calls a library, or holds control flow is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.fusion.dataflow import Dataflow
from gcomp.analysis.fusion.kernels import Kernel, kernel_of
from gcomp.analysis.liveness import block_peak, donations, liveness, view_source
from gcomp.analysis.machines import Machine, machine_named
from gcomp.analysis.work import Nominal, flops_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.buffer import arena, has_place, is_view
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.kernel import LaunchOp, launch
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.ir.walking import captures, walk
from gcomp.memory.graph import Graph
from gcomp.memory.rematerialize import Again, Rematerialization, rematerialize
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.flow import Flow

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NEVER = frozenset({Role.CONTROL, Role.EFFECT, Role.HOST, Role.LIBRARY, Role.SOURCE})


@dataclass(frozen=True)
class Rematerialize(Pass):
    """Keep the results of `main`'s kernels within `budget` bytes (as in 2GiB); 0 asks for as few as can be reached."""

    name: ClassVar[str] = "rematerialize"
    level: ClassVar[str] = "kernel"

    budget: int | str = 0
    target: str = "sm_90"

    def run(self, program: Program, context: PassContext) -> bool:
        def allow(op: Operation) -> bool:
            return context.allow(self.name, where(op))

        return bool(within_budget(program, bytes_in(self.budget), machine_named(self.target), allow).again)


@dataclass
class Report:
    """What was made again for a budget, in bytes and, by the cost model, seconds."""

    budget: int
    before: int
    """The most bytes alive at a time."""
    after: int
    again: list[Operation] = field(default_factory=list[Operation])
    """The kernels that run a second time."""
    seconds: float = 0.0

    @property
    def missing(self) -> int:
        """By how much the budget is too small."""
        return max(0, self.after - self.budget)


def bytes_in(text: int | str) -> int:
    """A number of bytes: 4096, 512KiB, 2GiB, 1.5GB. UsageError for anything else."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMG]i?B|B|)", str(text))
    if found is None:
        raise UsageError(f"{text!r} is no number of bytes", fix="write it as in 4096, 512KiB or 2GiB")
    number, unit = found.groups()
    return int(float(number) * _UNITS[unit]) if "." in number else int(number) * _UNITS[unit]


def check_budget(program: Program, budget: int | None) -> None:
    """Raise UnsupportedError when a program's memory plan takes more bytes than a budget, if there is one."""
    taken = arena(program.module) or 0
    if budget is not None and taken > budget:
        raise UnsupportedError(
            f"The memory plan takes {taken:,} bytes, {taken - budget:,} more than the budget.",
            why="no kernel that runs again lowers it further",
            fix=f"Allow {taken} bytes, or take smaller sizes. gcomp explain --memory shows what lies there when.",
        )


def within_budget(
    program: Program, budget: int, machine: Machine, allow: Callable[[Operation], bool] = lambda op: True
) -> Report:
    """Let kernels of `main` run again until the budget is kept, or nothing helps any more; what became of it."""
    before = _peak(program)
    report = Report(budget, before, before)
    while report.after > budget:
        found, flow = _plan(program, budget, machine)
        trial = program.clone()
        _apply(_plan(trial, budget, machine)[1], found.steps, lambda op: True)
        # The problem is near what planning does, and not the same: donated inputs hold some results.
        if not found.steps or (after := _peak(trial)) >= report.after:
            break
        made, complete = _apply(flow, found.steps, allow)
        report.again += made
        if not complete:
            report.after = _peak(program)
            break
        report.after, report.seconds = after, report.seconds + found.seconds
    return report


def _peak(program: Program) -> int:
    return block_peak(program.block, program.ranges, donations(program))


def _plan(program: Program, budget: int, machine: Machine) -> tuple[Rematerialization, Flow]:
    nominal, donors = Nominal(program.ranges), donations(program)
    flow = Flow(program.block, program.ranges, donors)
    graph = flow.graph()
    elsewhere = {v for v, storage in liveness(program).storage.items() if storage.donor is not None}
    sizes = dict(graph.sizes) | {flow.values[v]: 0 for v in elsewhere if v in flow.values}
    graph = Graph(graph.nodes, sizes, graph.inputs, graph.donated, graph.outputs, graph.must_follow)
    return rematerialize(graph, [_seconds(op, nominal, machine) for op in flow.ops], budget), flow


def _seconds(op: Operation, nominal: Nominal, machine: Machine) -> float | None:
    """How long an op takes by the cost model; None for one that must run once."""
    if role_of(op) in _NEVER and not isinstance(op, LaunchOp):
        return None
    if not has_place(op) or not is_side_effect_free(op):
        return None
    if isinstance(op, LaunchOp):
        if op.kind_name in ("library", "host"):
            return None
        flow = Dataflow(op.block, nominal)
        found = kernel_of(flow, range(len(flow.ops)), sorted(flow.returned), machine)
        return found.seconds if isinstance(found, Kernel) else None
    moved = sum(nominal.bytes(v) for v in (*op.operands, *op.results))
    return machine.launch + max(moved / machine.bandwidth, flops_of(op, nominal) / machine.flops)


# ---- putting it into the block ------------------------------------------------------------------------------------


def _apply(flow: Flow, steps: Sequence[Again], allow: Callable[[Operation], bool]) -> tuple[list[Operation], bool]:
    """Run the steps' nodes again; the copies, and whether all steps were allowed."""
    ops, copies, complete = list(flow.ops), list[Operation](), True
    remade = set[Operation]()
    last = cast(Operation, flow.block.last_op)
    returned = {view_source(v) for v in last.operands}
    for step in steps:
        if not allow(ops[step.nodes[-1]]):
            complete = False
            break
        reader = ops[step.before]
        renamed: dict[SSAValue, SSAValue] = {}
        made: list[Operation] = []
        for index in step.nodes:
            remade.add(ops[index])
            copy = ops[index].clone()
            flow.block.insert_op_before(copy, reader)
            _read_copies(copy, renamed)
            pairs = zip(ops[index].results, copy.results, strict=True)
            renamed.update((old, new) for old, new in pairs if old not in returned)
            made.append(copy)
        for op in ops[step.before :]:
            _read_copies(op, renamed)
        made = [_prune(copy) for copy in made]
        copies += made
        remade.update(made)
        ops[step.before : step.before] = made
    # A copy that makes some results only may read less than the original: what was to be made for it, nothing reads.
    # Nor does anything read an original all of whose readers have the copy.
    for op in reversed(list(flow.block.ops)):
        if (is_view(op) or op in remade) and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()
    return [copy for copy in copies if copy.parent is not None], complete


def _read_copies(op: Operation, renamed: Mapping[SSAValue, SSAValue]) -> None:
    """Let an op and what is in its regions read copied results, and views of them, in place of the first ones."""
    for inner in walk(op):
        for i, value in enumerate(inner.operands):
            if view_source(value) in renamed:
                inner.operands[i] = _of_copy(value, renamed, op)


def _of_copy(value: SSAValue, renamed: Mapping[SSAValue, SSAValue], before: Operation) -> SSAValue:
    if value in renamed:
        return renamed[value]
    view = cast(Operation, value.owner).clone()
    view.operands = [_of_copy(view.operands[0], renamed, before)]
    cast(Block, before.parent).insert_op_before(view, before)
    return view.results[0]


def _prune(op: Operation) -> Operation:
    """A kernel without the results that nothing reads; one of which nothing is read stays as it is."""
    used = [r for r in op.results if r.first_use is not None]
    if not isinstance(op, LaunchOp) or len(used) in (0, len(op.results)):
        return op
    returned = [op.returned.operands[r.index] for r in used]
    wanted, body = set(returned), list[Operation]()
    for inner in reversed([o for o in op.block.ops if o is not op.returned]):
        if not wanted.isdisjoint(inner.results):
            body.append(inner)
            wanted.update((*inner.operands, *captures(inner)))
    arguments = [a for a in op.block.args if a in wanted]
    kernel = launch(op.kind_name, op.label_name, list(arguments), body[::-1], returned)
    kernel.operands = [op.operands[a.index] for a in arguments]
    kernel.location = op.location
    cast(Block, op.parent).insert_op_before(kernel, op)
    for old, new in zip(used, kernel.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
    return kernel
