"""Mistakes in planning memory: lifetimes that end too soon, results over operands that are still read, lost order."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

LIVENESS = "analysis.liveness"
ORDER = "passes.memory.order_for_memory"
PLAN = "passes.memory.plan_memory"
plan = partial(edits.wrong, target="plan-memory")
order = partial(edits.wrong, target="order-for-memory")

plan(
    "plan-dead-while-read", classes=(32,), about="a value dies before the op that reads it last",
    edits=[(f"{LIVENESS}:_Walker.touch", "max(storage.upper, self.now + 1)", "max(storage.upper, self.now)")],
)  # fmt: skip
plan(
    "plan-dead-in-next-turn", classes=(32,), about="what a loop reads from around it dies at its last use in one turn",
    edits=[(f"{LIVENESS}:_Walker.loop", "(*self.pending.pop(), *carried)", "carried")],
)  # fmt: skip
plan(
    "plan-captured-forgotten", classes=(32,), about="what an op's region uses from around it may be dead",
    edits=[(f"{LIVENESS}:_Walker.op", "for value in captures(op):", "for value in ():")],
)  # fmt: skip
plan(
    "plan-over-the-living", classes=(32, 33), about="a result is written over an operand that is read later",
    edits=[(f"{LIVENESS}:_Walker.reusable", "_last_use(v, block) in (op, None)", "True")],
)  # fmt: skip
plan(
    "plan-over-what-is-read", classes=(26, 33), about="a transposed or reversed copy is written over what it copies",
    edits=[(f"{LIVENESS}:overwrites", "role_of(inner) is not Role.ELEMENTWISE or ", ""),
           (f"{LIVENESS}:overwrites", "m is None or not is_pointwise(m)", "m is None or m.ranges")],
)  # fmt: skip
plan(
    "plan-carried-swapped", classes=(34,), about="values that a loop swaps are moved one after the other",
    edits=[(f"{PLAN}:separate_carried", "if _is_other_argument(value, i, op):", "if False:")],
)  # fmt: skip
plan(
    "plan-views-apart", classes=(26, 32), about="what a view shows dies before the view",
    edits=[(f"{LIVENESS}:_Walker.op", "self.join(op.results[0], storage)", "pass")],
)  # fmt: skip
edits.right(
    "plan-nothing-over-operands", "plan-memory", about="no result is written over an operand",
    edits=[(f"{LIVENESS}:_Walker.reusable", "found.append(storage)", "pass")],
)  # fmt: skip

order(
    "order-draws-moved", classes=(35,), about="random numbers are drawn in another order",
    edits=[(f"{ORDER}:_Flow.graph", "must_follow=tuple(pairwise(effects))", "must_follow=()")],
)  # fmt: skip
order(
    "order-captured-forgotten", classes=(37,), about="an op may come before what its regions use",
    edits=[(f"{ORDER}:_Flow._node", "(*op.operands, *captures(op))", "op.operands")],
)  # fmt: skip
order(
    "order-views-forgotten", classes=(26, 37), about="what reads a view may come before what the view shows",
    edits=[(f"{ORDER}:_Flow.graph", "self.values[op.results[0]] = self.values[op.operands[0]]", "pass")],
)  # fmt: skip
edits.right(
    "order-as-listed", "order-for-memory", about="the order is that of the list schedules, without search",
    edits=[(f"{ORDER}:OrderForMemory.run", "seconds=self.seconds", "seconds=0.0")],
)  # fmt: skip
