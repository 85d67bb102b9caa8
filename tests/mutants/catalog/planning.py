"""Mistakes in offsets and orders: bounds that are too sharp, choices left out, packings that overlap, wrong proofs."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

offsets = partial(edits.wrong, target="offsets")
orders = partial(edits.wrong, target="orders")
again = partial(edits.wrong, target="rematerialization")
PROBLEM, GREEDY, SEARCH = "memory.problem", "memory.greedy", "memory.search"
GRAPH, ORDERING, DOWNSETS, AGAIN = "memory.graph", "memory.ordering", "memory.downsets", "memory.rematerialize"

# ---- offsets ----

offsets(
    "offsets-bound-too-high", classes=(32,), about="the rounding of the topmost buffer counts in the bound",
    edits=[(f"{PROBLEM}:lower_bound", " - int((rounded - problem.size).max())", "")],
)  # fmt: skip
offsets(
    "offsets-overlaps-unseen", classes=(32,), about="two buffers that begin at one place are no conflict",
    edits=[(f"{PROBLEM}:conflict", "live[at][0] < entry[0] + problem.buffers[index].size",
            "entry[0] < live[at][0] < entry[0] + problem.buffers[index].size")],
)  # fmt: skip
offsets(
    "offsets-neighbours-in-time", classes=(32,), about="a buffer that dies at a step is in the way of one born there",
    edits=[(f"{PROBLEM}:conflict", "(problem.buffers[index].upper, 0, index)",
            "(problem.buffers[index].upper, 2, index)")],
)  # fmt: skip
offsets(
    "offsets-gap-too-small", classes=(32,), about="a gap that lacks one byte is taken",
    edits=[(f"{GREEDY}:gap", "room >= size", "room >= size - 1")],
)  # fmt: skip
offsets(
    "offsets-unaligned-gaps", classes=(32,), about="gaps begin where the buffer before them ends",
    edits=[(f"{GREEDY}:gap", "if alignment > 1:", "if alignment > 1 and len(lows) > 2:")],
)  # fmt: skip
offsets(
    "search-last-place-left-out", classes=(32,), about="a buffer is not tried where it ends at the capacity",
    edits=[(f"{SEARCH}:Search.frame", "int(self.room[part.low : part.high].min()) + 1",
            "int(self.room[part.low : part.high].min())")],
)  # fmt: skip
offsets(
    "search-room-too-small", classes=(32,), about="a section counts as full one byte early",
    edits=[(f"{SEARCH}:Search.place", "(floor > self.room[near.low : near.high])",
            "(floor >= self.room[near.low : near.high])")],
)  # fmt: skip
offsets(
    "search-not-taken-back", classes=(32,), about="the room of a buffer that is taken back stays used",
    edits=[(f"{SEARCH}:Search.undo", "self.room[near.first : near.last] -= near.size", "pass")],
)  # fmt: skip
offsets(
    "search-gives-up-too-far", classes=(32,), about="a part that cannot be solved ends the search above it too",
    edits=[(f"{SEARCH}:Search.give_up", "len(self.frames) > frame.parent + 1", "len(self.frames) > frame.parent")],
)  # fmt: skip

# ---- orders ----

orders(
    "order-reuse-of-less", classes=(32, 33), about="an output reuses an input that is smaller",
    edits=[(f"{GRAPH}:bytes_while", "value in dying and graph.sizes[output] <= graph.sizes[value]", "value in dying")],
)  # fmt: skip
orders(
    "order-cells-too-small", classes=(37,), about="a node that all earlier ones lead to is cut off alone",
    edits=[(f"{ORDERING}:cells", "ends == 1 and begins == 1", "ends == 1")],
)  # fmt: skip
orders(
    "order-beam-called-exact", classes=(37,), about="what adds a few bytes runs at once, and the order is called best",
    edits=[(f"{DOWNSETS}:following", "growth <= 0 and peak == state.peak", "growth <= 3")],
)  # fmt: skip
orders(
    "order-dies-with-one-reader", classes=(32,), about="a value dies with any of its readers",
    edits=[(f"{DOWNSETS}:Cell.run", "not self.readers[v] & ~after", "self.readers[v] & after")],
)  # fmt: skip
orders(
    "order-bound-counts-reuse", classes=(33,), about="the bound counts outputs that reuse an input",
    edits=[(f"{ORDERING}:least_bytes", "set(node.outputs) - {output for output, _ in node.reuses}",
            "set(node.outputs)")],
)  # fmt: skip

edits.right(
    "order-last-child-first", "orders", about="of two children that need as much, depth first takes the later one",
    edits=[("memory.schedules:depth_first", "(made[child] - need[child], child)",
            "(made[child] - need[child], -child)")],
)  # fmt: skip

# ---- making again ----

again(
    "again-what-must-run-once", classes=(35,), about="nodes run again that must not",
    edits=[(f"{AGAIN}:Work.chain", "maker is None or self.seconds[maker] is None or", "maker is None or")],
)  # fmt: skip
again(
    "again-reads-the-first", classes=(37,), about="copies read each other's originals' names, made or not",
    edits=[(f"{AGAIN}:_reading", "inputs=tuple(new(v) for v in node.inputs)",
            "inputs=tuple(new(v) for v in node.inputs[::-1])")],
)  # fmt: skip
again(
    "again-time-forgotten", classes=(37,), about="only the last step's time is counted",
    edits=[(f"{AGAIN}:_towards", "seconds += work.time", "seconds = work.time")],
)  # fmt: skip
