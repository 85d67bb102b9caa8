"""Mistakes in planning memory: lifetimes that end too soon, results over what is still read, lost order, copies."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

LIVENESS, OVER = "analysis.liveness", "analysis.overwriting"
ORDER, FLOW = "passes.memory.order_for_memory", "passes.flow"
PLAN, AGAIN = "passes.memory.plan_memory", "passes.memory.rematerialize"
plan = partial(edits.wrong, target="plan-memory")
order = partial(edits.wrong, target="order-for-memory")
again = partial(edits.wrong, target="rematerialize")

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
    edits=[(f"{LIVENESS}:_Walker.may_take", " or storage.last.get(block, -1) > self.at[op]", "")],
)  # fmt: skip
plan(
    "plan-over-what-is-read", classes=(26, 33), about="a transposed or reversed copy is written over what it copies",
    edits=[(f"{OVER}:_at_its_own_place", "case Role.ELEMENTWISE:", "case Role.ELEMENTWISE | Role.MOVEMENT:"),
           (f"{OVER}:_at_its_own_place", "m is not None and is_pointwise(m)", "m is not None and not m.ranges")],
)  # fmt: skip
plan(
    "plan-carried-swapped", classes=(34,), about="values that a loop swaps are moved one after the other",
    edits=[(f"{PLAN}:separate_carried", "if _is_other_argument(value, i, op):", "if False:")],
)  # fmt: skip
plan(
    "plan-views-apart", classes=(26, 32), about="what a view shows dies before the view",
    edits=[(f"{LIVENESS}:_Walker.op", "self.join(op.results[0], storage, block)", "pass")],
)  # fmt: skip
plan(
    "plan-donor-while-read", classes=(32, 33), about="an output lies in a donated input that is still read",
    edits=[(f"{LIVENESS}:_Walker.outputs_into_donors", "if d.upper <= storage.lower", "if d.lower <= storage.lower")],
)  # fmt: skip
plan(
    "plan-into-any-input", classes=(33,), about="outputs lie in inputs that were not given away",
    edits=[(f"{LIVENESS}:donated", "if port.donated and is_tensor(arg.type)", "if is_tensor(arg.type)")],
)  # fmt: skip
plan(
    "plan-carried-while-read", classes=(32, 34), about="a loop changes in place what its body reads from around it",
    edits=[(f"{LIVENESS}:_Walker.loop", "{self.result.storage.get(v) for v in captures(op)}", "set()")],
)  # fmt: skip
plan(
    "plan-carried-moved-away", classes=(34,), about="a loop's result lies where another one is moved to before it",
    edits=[(f"{LIVENESS}:_Walker.may_take",
            " and self.returned.get((block, result), set()) <= {awaited.index(storage)}", "")],
)  # fmt: skip
plan(
    "plan-carried-not-dead", classes=(32, 34), about="what is returned is put where the op still reads what was",
    edits=[(f"{LIVENESS}:_Walker.places_of_the_dead", "storage.last.get(block, -1) < self.at[op]",
            "storage.last.get(block, -1) <= self.at[op]")],
)  # fmt: skip
plan(
    "plan-update-over-its-source", classes=(26, 33), about="a tensor is updated in place by what is read from it",
    edits=[(f"{OVER}:_at_its_own_place", "read == [0] and", "0 in read and"),
           (f"{OVER}:_at_its_own_place", "case Role.VIEW:", "case Role.VIEW | Role.MOVEMENT:")],
)  # fmt: skip
edits.right(
    "plan-loops-start-elsewhere", "plan-memory", about="what a loop carries never lies where it was before",
    edits=[(f"{LIVENESS}:_Walker.carried", "storage is None or", "True or")],
)  # fmt: skip
edits.right(
    "plan-no-donors", "plan-memory", about="nothing lies in donated inputs",
    edits=[(f"{LIVENESS}:donated", "if port.donated and", "if False and")],
)  # fmt: skip
edits.right(
    "plan-nothing-over-operands", "plan-memory", about="no result is written over an operand",
    edits=[(f"{LIVENESS}:_Walker.places_of_the_dead", "if all(overwrites(op, i, k) for", "if not any(True for")],
)  # fmt: skip

order(
    "order-draws-moved", classes=(35,), about="random numbers are drawn in another order",
    edits=[(f"{FLOW}:Flow.graph", "must_follow=tuple(pairwise(effects))", "must_follow=()")],
)  # fmt: skip
order(
    "order-captured-forgotten", classes=(37,), about="an op may come before what its regions use",
    edits=[(f"{FLOW}:Flow._node", "(*op.operands, *captures(op))", "op.operands")],
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
again(
    "remat-results-swapped", classes=(37,), about="results of one type of a copy take each other's places",
    edits=[(f"{AGAIN}:_apply", "zip(ops[index].results, copy.results, strict=True)",
            "zip(ops[index].results, list(copy.results)[::-1], strict=True)")],
)  # fmt: skip
again(
    "remat-after-its-reader", classes=(37,), about="a copy runs after what reads it",
    edits=[(f"{AGAIN}:_apply", "flow.block.insert_op_before(copy, reader)",
            "flow.block.insert_op_after(copy, reader)")],
)  # fmt: skip
again(
    "remat-reads-another-copy", classes=(37,), about="what reads a value reads another copy of its type",
    edits=[(f"{AGAIN}:_of_copy", "return renamed[value]",
            "return next(v for v in renamed.values() if v.type == value.type)")],
)  # fmt: skip
edits.right(
    "remat-single-nodes", "rematerialize", about="no value is made again that needs another one again",
    edits=[("memory.rematerialize:Work.chain", "len(found) == CHAIN", "len(found) == 1")],
)  # fmt: skip
