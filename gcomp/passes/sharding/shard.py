"""Each value is cut across a mesh of devices as the plan says that takes the least time and fits in memory.

The plan is that of `gcomp.partitioning.search`: an integer program over the ways to cut each op, with what is sent
between them. Arguments, results of ops and results of the function get closed shardings; where an op takes a value in
another layout than it lies in, a constraint says so. A program that has shardings stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, rank_of
from gcomp.partitioning.search.devices import devices_named, mesh_named
from gcomp.partitioning.search.layouts import Layout, sharding_of
from gcomp.partitioning.search.planning import GAP, LIMIT, Plan, plan_of
from gcomp.partitioning.search.problem import Edge
from gcomp.passes.base import Pass, PassContext
from gcomp.sharding import Sharding


@dataclass(frozen=True)
class Shard(Pass):
    """Cut `main` across a `mesh` (as `data=2,model=4`) of `devices` (a name, or a file), with at most `memory` bytes of
    values on each (0: what the devices have). The search ends within a `gap` of the best, or after `limit` seconds."""

    name: ClassVar[str] = "shard"
    places_values: ClassVar[bool] = True

    mesh: str = "data=2"
    devices: str = "cpu"
    memory: int = 0
    gap: float = GAP
    limit: float = LIMIT

    def run(self, program: Program, context: PassContext) -> bool:
        if sdy.is_sharded(program.module):
            return False
        plan = plan_of(
            program, mesh_named(self.mesh), devices_named(self.devices),
            memory=self.memory or None, gap=self.gap, limit=self.limit,
        )  # fmt: skip
        apply(plan)
        return True


def apply(plan: Plan) -> None:
    """Say in the program of a plan how each value lies."""
    problem = plan.problem
    program, mesh = problem.program, problem.network.mesh
    name = sdy.add_mesh(program.module, mesh)

    def said(value: SSAValue) -> Sharding | None:
        layout = plan.layout(value)
        return None if layout is None else sharding_of(layout, rank_of(value), mesh, name)

    main = program.main
    last = main.body.block.last_op
    assert last is not None
    sdy.set_argument_shardings(main, [said(a) for a in main.body.block.args])
    sdy.set_result_shardings(main, [said(v) if is_tensor(v.type) else None for v in last.operands])
    for op in [*program.block.ops]:
        found = [said(v) for v in op.results]
        if op.results and all(s is not None for s in found):
            sdy.set_sharding(op, [s for s in found if s is not None])
    _constrain(plan, name)


def _constrain(plan: Plan, name: str) -> None:
    """Where a value is taken in another layout than it lies in, a constraint before its first such user."""
    mesh = plan.problem.network.mesh
    order = {op: i for i, op in enumerate(plan.problem.program.block.ops)}
    taken: dict[tuple[SSAValue, Layout], list[Edge]] = {}
    for edge in plan.problem.edges:
        wanted = edge.wanted(plan.choice(edge.target))
        if wanted != plan.layout(edge.value):
            taken.setdefault((edge.value, wanted), []).append(edge)
    for (value, wanted), edges in taken.items():
        first = min((edge.user for edge in edges), key=order.__getitem__)
        sharding = sdy.ShardingAttr(sharding_of(wanted, rank_of(value), mesh, name))
        placed = sdy.ShardingConstraintOp.of(value, types=(value.type,), sharding=sharding, location=first.location)
        assert first.parent is not None
        first.parent.insert_op_before(placed, first)
        for edge in edges:
            _take(edge, placed.result)


def _take(edge: Edge, placed: SSAValue) -> None:
    """Let a user take a value where it is placed for it: as one operand, or in its regions, or wherever it follows."""
    user, at = edge.user, edge.operand
    if isinstance(at, int) and at < len(user.operands):
        user.operands[at] = placed
    elif isinstance(at, int):
        edge.value.replace_uses_with_if(placed, lambda use: use.operation is not user and _is_in(use.operation, user))
    else:
        edge.value.replace_uses_with_if(placed, lambda use: use.operation is user)


def _is_in(op: Operation | None, around: Operation) -> bool:
    while op is not None and op is not around:
        op = op.parent_op()
    return op is around
