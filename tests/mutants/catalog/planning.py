"""Mistakes in offsets and orders: bounds that are too sharp, choices left out, packings that overlap, wrong proofs."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

offsets = partial(edits.wrong, target="offsets")
orders = partial(edits.wrong, target="orders")
again = partial(edits.wrong, target="rematerialization")
PROBLEM = "memory.problem"
DOWNSETS, AGAIN = "memory.downsets", "memory.rematerialize"

# ---- offsets ----

offsets(
    "offsets-overlaps-unseen", classes=(32,), about="two buffers that begin at one place are no conflict",
    edits=[(f"{PROBLEM}:conflict", "live[at][0] < entry[0] + problem.buffers[index].size",
            "entry[0] < live[at][0] < entry[0] + problem.buffers[index].size")],
)  # fmt: skip

# ---- orders ----

orders(
    "order-beam-called-exact", classes=(37,), about="what adds a few bytes runs at once, and the order is called best",
    edits=[(f"{DOWNSETS}:following", "growth <= 0 and peak == state.peak", "growth <= 3")],
)  # fmt: skip

edits.right(
    "order-last-child-first", "orders", about="of two children that need as much, depth first takes the later one",
    edits=[("memory.schedules:depth_first", "(made[child] - need[child], child)",
            "(made[child] - need[child], -child)")],
)  # fmt: skip

# ---- making again ----

again(
    "again-time-forgotten", classes=(37,), about="only the last step's time is counted",
    edits=[(f"{AGAIN}:_towards", "seconds += work.time", "seconds = work.time")],
)  # fmt: skip
