"""Mistakes in planning memory: lifetimes that end too soon, results over what is still read, lost order, copies."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

LIVENESS, OVER = "analysis.liveness", "analysis.overwriting"
ORDER, FLOW = "passes.memory.order_for_memory", "passes.flow"
AGAIN = "passes.memory.rematerialize"
plan = partial(edits.wrong, target="plan-memory")
order = partial(edits.wrong, target="order-for-memory")
again = partial(edits.wrong, target="rematerialize")

plan(
    "plan-carried-not-dead", classes=(32, 34), about="what is returned is put where the op still reads what was",
    edits=[(f"{LIVENESS}:_Walker.places_of_the_dead", "storage.last.get(block, -1) < self.at[op]",
            "storage.last.get(block, -1) <= self.at[op]")],
)  # fmt: skip
plan(
    "plan-update-over-its-source", classes=(26, 33), about="a tensor is updated in place by what is read from it",
    edits=[(f"{OVER}:_at_their_own_place", "frozenset({0} if", "frozenset(every if"),
           (f"{OVER}:_at_their_own_place", "case Role.VIEW:", "case Role.VIEW | Role.MOVEMENT:")],
)  # fmt: skip
edits.right(
    "plan-loops-start-elsewhere", "plan-memory", about="what a loop carries never lies where it was before",
    edits=[(f"{LIVENESS}:_Walker.carried", "storage is None or", "True or")],
)  # fmt: skip

order(
    "order-views-forgotten", classes=(26, 37), about="what reads a view may come before what the view shows",
    edits=[(f"{FLOW}:Flow.graph", "self.values[op.results[0]] = self.values[op.operands[0]]", "pass")],
)  # fmt: skip
edits.right(
    "order-as-listed", "order-for-memory", about="the order is that of the list schedules, without search",
    edits=[(f"{ORDER}:OrderForMemory.run", "seconds=self.seconds", "seconds=0.0")],
)  # fmt: skip

again(
    "remat-draws-twice", classes=(35,), about="random numbers are drawn a second time, and are others then",
    edits=[(f"{AGAIN}:_seconds", "role_of(op) in _NEVER and", "role_of(op) in _NEVER - {Role.LIBRARY} and"),
           (f"{AGAIN}:_seconds", "not has_place(op) or not is_side_effect_free(op)", "not has_place(op)")],
)  # fmt: skip
