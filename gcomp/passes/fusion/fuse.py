"""The ops of each block become kernels, as `gcomp.analysis.fusion.decide` says; what they compute stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Block, Operation, OpResult, SSAValue

from gcomp.analysis.constants import place_of
from gcomp.analysis.fusion.dataflow import is_positional
from gcomp.analysis.fusion.decide import Decisions, decide
from gcomp.analysis.fusion.groups import Group
from gcomp.analysis.machines import machine_named
from gcomp.analysis.work import Nominal
from gcomp.ir.kernel import LaunchOp, blocks_of_kernels, launch
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class Fuse(Pass):
    """Cut `main` and the regions of its control flow into kernels of at most `max-ops` ops for a machine (`target`)."""

    name: ClassVar[str] = "fuse"
    level: ClassVar[str] = "kernel"

    target: str = "sm_90"
    max_ops: int = 64

    def __post_init__(self) -> None:
        if self.max_ops < 1:
            raise ValueError(f"max-ops is {self.max_ops}: a kernel has at least one op")

    def run(self, program: Program, context: PassContext) -> bool:
        machine, nominal = machine_named(self.target), Nominal(program.ranges)
        changed = False
        for block in blocks_to_cut(program):
            changed |= _bring_in(block)
            ops = [op for op in block.ops if op is not block.last_op]

            def allow(i: int, ops: list[Operation] = ops) -> bool:
                return context.allow(self.name, where(ops[i]))

            decisions = decide(block, nominal, machine, max_ops=self.max_ops, allow=allow)
            changed |= _outline(block, decisions)
        return changed


def _bring_in(block: Block) -> bool:
    """Compute constants where a block's kernels read them, in place of outside; whether there were any.

    What combines elements (of a reduction, a sort, a scatter) has its own too: kernels take nothing else from around.
    """
    kernels = [op for op in block.ops if op is not block.last_op and role_of(op) is not Role.CONTROL]
    changed = _bring_into(block, kernels)
    for op in kernels:
        for body in (body for region in op.regions for body in region.blocks):
            changed |= _bring_into(body, [*body.ops])
    return changed


def _bring_into(block: Block, readers: Sequence[Operation]) -> bool:
    """Have ops in a block read copies in it of constants outside of it; whether there were any."""
    first = block.first_op
    brought: dict[SSAValue, SSAValue] = {}

    def inside(value: SSAValue) -> SSAValue:
        if value not in brought:
            assert isinstance(value, OpResult) and first is not None
            copy = value.op.clone({v: inside(v) for v in value.op.operands})
            block.insert_op_before(copy, first)
            brought[value] = copy.results[value.index]
        return brought[value]

    for op in readers:
        for i, value in enumerate(op.operands):
            if value.owner is not block and is_positional(value) and cast(OpResult, value).op.parent is not block:
                op.operands[i] = inside(value)
    return bool(brought)


def blocks_to_cut(program: Program) -> list[Block]:
    """The blocks whose ops become kernels, inner ones first: of `main`, of what it calls, of control flow."""
    called = {name for _, name in program.callees()} | {program.main.sym_name.data}
    functions = [f for f in program.functions() if f.sym_name.data in called]
    return [block for f in reversed(functions) for block in blocks_of_kernels(f.body.block)]


def _outline(block: Block, decisions: Decisions) -> bool:
    """Put each group's ops into a kernel, and drop what nothing needs; whether anything changed."""
    last = block.last_op
    order: list[Operation] = []
    replaced: dict[SSAValue, SSAValue] = {}
    kernels: list[LaunchOp] = []
    wanted = set(decisions.kernels())
    for group in decisions.groups.ordered():
        if group.fixed:
            order.append(decisions.flow.ops[group.members[0]])
        if group not in wanted:
            continue
        kernel, results = _kernel(group, decisions)
        kernels.append(kernel)
        order.append(kernel)
        replaced.update(zip(results, kernel.results, strict=True))
    kept = set(order)
    dead = [op for op in block.ops if op is not last and op not in kept]
    if not kernels and not dead:
        return False
    for old, new in replaced.items():
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for op in reversed(list(block.ops)):
        if op is not last:
            op.detach()
    for op in reversed(dead):
        op.erase(safe_erase=False)
    for op in order:
        if last is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, last)
    return True


def _kernel(group: Group, decisions: Decisions) -> tuple[LaunchOp, list[SSAValue]]:
    flow = decisions.flow
    ops = [flow.ops[i] for i in group.members]
    made: set[SSAValue] = {v for op in ops for v in op.results}
    inputs = list(dict.fromkeys(v for op in ops for v in op.operands if v not in made))
    outputs = set(decisions.groups.outputs(group.members, (group,)))
    results: list[SSAValue] = [v for i in group.members if i in outputs for v in flow.ops[i].results if v.first_use]
    kernel = launch(decisions.kernel(group).kind, label_of(ops), inputs, ops, results)
    kernel.location = place_of(ops)
    return kernel, results


def label_of(ops: list[Operation]) -> str:
    """A name for people: what the kernel does apart from moving data, the first few of it."""
    names = [op.name.partition(".")[2] for op in ops if role_of(op) not in (Role.GENERATOR, Role.VIEW)]
    worked = [
        op.name.partition(".")[2] for op in ops if role_of(op) is Role.ELEMENTWISE or role_of(op) not in PER_ELEMENT
    ]
    chosen = list(dict.fromkeys(worked or names or [op.name.partition(".")[2] for op in ops]))
    return "_".join(chosen[:4]) + (f"_{len(chosen) - 4}more" if len(chosen) > 4 else "")
