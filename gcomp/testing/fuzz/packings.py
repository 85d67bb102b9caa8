"""Laws of offsets and of orders (`gcomp.memory`), beside what shares nothing with it: all packings, all orders, a
simulation by the definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from gcomp.errors import UsageError, VerificationError
from gcomp.memory.assign import assign
from gcomp.memory.downsets import Cell, best_order
from gcomp.memory.graph import Graph, Node, first_too_early, peak_of
from gcomp.memory.greedy import greedy, sweep, tries
from gcomp.memory.ordering import cells, least_bytes, order
from gcomp.memory.problem import Assignment, Buffer, Problem, check, conflict, lower_bound
from gcomp.memory.problem import peak_of as highest
from gcomp.memory.rematerialize import Work, rematerialize
from gcomp.memory.repair import repair
from gcomp.memory.schedules import SCHEDULES
from gcomp.memory.search import Budget, Layout, Turns
from gcomp.memory.sections import Neighbourhoods, degrees, sections_of
from gcomp.testing.fuzz.door import Undefined
from gcomp.testing.fuzz.laws import Law
from gcomp.testing.generate.choices import Choices

_METHODS = ("auto", "greedy", "search")
STEPS = 9
"""Buffers live within so many steps, so that most live together."""


# ---- offsets --------------------------------------------------------------------------------------------------------


def problem(choices: Choices, most: int = 12, *, aligned: bool = True, fixed: bool = True) -> Problem:
    """Buffers over few steps; some aligned, some fixed where nothing is fixed yet."""
    buffers: list[Buffer] = []
    for index in range(choices.integer(0, most)):
        lower = choices.integer(0, STEPS - 2)
        upper = choices.integer(lower + 1, STEPS)
        size = choices.integer(0, 12)
        alignment = choices.chosen((1, 1, 2, 3, 4)) if aligned else 1
        buffer = Buffer(f"b{index}", lower, upper, size, alignment)
        if fixed and choices.flag(0.2):
            placed = Buffer(buffer.name, lower, upper, size, alignment, choices.integer(0, 6) * alignment)
            others = Problem([other for other in buffers if other.offset is not None] + [placed])
            if conflict(others, others.fixed) is None:
                buffer = placed
        buffers.append(buffer)
    return Problem(buffers)


def drop_empty(given: Problem) -> Problem:
    """The buffers that have bytes. Undefined where there are none."""
    found = Problem(buffer for buffer in given.buffers if buffer.size)
    if not len(found):
        raise Undefined("no bytes")
    return found


def together(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers live at one time."""
    return a.lower < b.upper and b.lower < a.upper


def overlapping(given: Problem, offsets: Sequence[int]) -> bool:
    """Whether two live buffers share a byte, by looking at every pair."""
    ends = [offset + buffer.size for offset, buffer in zip(offsets, given.buffers, strict=True)]
    return any(
        together(a, b) and max(offsets[i], offsets[j]) < min(ends[i], ends[j])
        for i, a in enumerate(given.buffers)
        for j, b in enumerate(given.buffers[:i])
        if a.size and b.size
    )


def optimum(given: Problem) -> int:
    """The lowest peak, by dropping the buffers in every order, each to the lowest place at or above all before it.

    Buffers of no bytes are in nobody's way.
    """
    best = None
    ends = [buffer.offset for buffer in given.buffers if not buffer.size and buffer.offset is not None]
    for sequence in permutations(index for index, buffer in enumerate(given.buffers) if buffer.size):
        offsets: dict[int, int] = {}
        for index in sequence:
            buffer = given.buffers[index]
            floor = max(
                [offsets[o] + given.buffers[o].size for o in offsets if together(given.buffers[o], buffer)], default=0
            )
            offsets[index] = -(-floor // buffer.alignment) * buffer.alignment
            if buffer.offset is not None:
                offsets[index] = buffer.offset if floor <= buffer.offset else 10**9
        peak = max([*ends, *(offsets[i] + given.buffers[i].size for i in offsets)], default=0)
        best = peak if best is None else min(best, peak)
    return best or 0


def _flaw(given: Problem, plan: Assignment) -> str:
    """What is wrong with a plan, by looking at every pair and at every buffer."""
    check(given, plan)
    if overlapping(given, plan.offsets):
        return f"{plan} puts living buffers of {given.buffers} on the same bytes"
    for buffer, offset in zip(given.buffers, plan.offsets, strict=True):
        if offset < 0 or offset % buffer.alignment or buffer.offset not in (None, offset):
            return f"{buffer} is put at {offset}"
    least = max((o + b.size for o, b in zip(plan.offsets, given.buffers, strict=True)), default=0)
    if plan.peak < max(least, plan.lower_bound) or plan.lower_bound < lower_bound(given):
        return f"{plan} reaches byte {least}, and the bound of {given.buffers} is {lower_bound(given)}"
    return ""


def _budget(steps: int = 10**6) -> Budget:
    return Budget(steps, float("inf"))


def plans_are_valid(choices: Choices) -> str:
    """A plan of any method is valid, and the same again."""
    given, method = problem(choices), choices.chosen(_METHODS)
    plan, again = (assign(given, seconds=0.2, method=method) for _ in range(2))
    if plan.offsets != again.offsets and not (plan.out_of_time or again.out_of_time):
        return f"{plan.offsets} is {again.offsets} the second time, for {given.buffers}"
    return _flaw(given, plan)


def greedy_tries_are_valid(choices: Choices) -> str:
    """Each of the greedy methods makes a valid plan."""
    given = drop_empty(problem(choices))
    for name, offsets in [*tries(given), ("sweep", sweep(given, False)), ("sweep backwards", sweep(given, True))]:
        peak = highest(given, offsets)
        check(given, Assignment(tuple(offsets.tolist()), peak, 0, name, 0.0))
        if flaw := _flaw(given, Assignment(tuple(offsets.tolist()), peak, lower_bound(given), name, 0.0)):
            return f"{name}: {flaw}"
    return ""


def the_goal_ends_greedy(choices: Choices) -> str:
    """The best greedy plan is no worse than any of its tries; a goal that one of them reaches ends the tries."""
    given = drop_empty(problem(choices, fixed=False))
    peaks = {name: highest(given, offsets) for name, offsets in tries(given)}
    best = highest(given, greedy(given, 0)[0])
    if peaks and best > min(peaks.values()):
        return f"greedy reaches {best} for {given.buffers}, and its tries {peaks}"
    offsets, name = greedy(given, best)
    if highest(given, offsets) > best:
        return f"greedy stops at {highest(given, offsets)} ({name}) for the goal {best} of {given.buffers}"
    return ""


def the_search_finds_the_optimum(choices: Choices) -> str:
    """Against all orders of up to six buffers, with alignments and fixed offsets."""
    given = problem(choices, 6)
    plan, best = assign(given, seconds=5), optimum(given)
    return "" if plan.peak == plan.lower_bound == best else f"{plan}, and {best} is possible for {given.buffers}"


def the_search_decides_capacities(choices: Choices) -> str:
    """It finds a plan within a capacity, or exhausts its choices, exactly where the optimum says so."""
    given, capacity = drop_empty(problem(choices, 6, fixed=False)), choices.integer(0, 40)
    best = optimum(given)
    outcome = Turns(Layout(given), capacity).run(_budget(), 10**6)
    if (outcome.offsets is not None) != (best <= capacity) or outcome.infeasible != (best > capacity):
        return f"within {capacity} of {given.buffers}: {outcome}, and the optimum is {best}"
    return "" if outcome.offsets is None else _fits(given, outcome.offsets.tolist(), capacity)


def _fits(given: Problem, offsets: Sequence[int], capacity: int) -> str:
    if overlapping(given, offsets) or highest(given, offsets) > capacity or min(offsets, default=0) < 0:
        return f"{list(offsets)} is no plan within {capacity} for {given.buffers}"
    return ""


def a_capacity_is_kept(choices: Choices) -> str:
    """Where that is possible; where it is not, the bound says so."""
    given, capacity = problem(choices, 6, fixed=False), choices.integer(0, 40)
    least, plan = optimum(given), assign(Problem(given.buffers, capacity), seconds=5)
    if (plan.peak <= capacity) != (least <= capacity) or (plan.peak > capacity and plan.lower_bound <= capacity):
        return f"within {capacity} of {given.buffers}: {plan}, and the optimum is {least}"
    return _flaw(given, plan)


def sections_say_who_lives_together(choices: Choices) -> str:
    """Sections, neighbours, degrees and sums are what looking at every pair gives."""
    given = problem(choices, fixed=False)
    if not len(given):
        raise Undefined("no buffers")
    sections, near = sections_of(given.lower, given.upper), Neighbourhoods(given.lower, given.upper)
    degree = degrees(given.lower, given.upper)
    for i, a in enumerate(given.buffers):
        expected = {j for j, b in enumerate(given.buffers) if i != j and together(a, b)}
        met = {
            j
            for j in range(len(given))
            if sections.first[i] < sections.last[j] and sections.first[j] < sections.last[i]
        }
        own = {*sections.members[sections.starts[sections.first[i]] : sections.starts[sections.last[i]]].tolist()}
        found = (met - {i}, {*near.of(i).tolist()}, int(degree[i]), own)
        if found != (expected, expected, len(expected), expected | {i, len(given)}):
            return f"of {a} among {given.buffers}: {found}, and {expected} live with it"
    live = max(sum(b.size for b in given.buffers if b.lower <= t < b.upper) for t in range(STEPS))
    if not int(sections.sums(given.size).max()) == live <= lower_bound(given):
        return f"{live} bytes live of {given.buffers}, and the bound is {lower_bound(given)}"
    return ""


def the_check_refuses_what_overlaps(choices: Choices) -> str:
    """And nothing else."""
    given = problem(choices, 6)
    offsets = tuple([choices.integer(0, 8) * b.alignment if b.offset is None else b.offset for b in given.buffers])
    plan = Assignment(offsets, highest(given, offsets), 0, "random", 0.0)
    top = max((o + b.size for o, b in zip(offsets, given.buffers, strict=True)), default=0)
    if plan.peak != top:
        return f"the peak of {offsets} for {given.buffers} is {top}, not {plan.peak}"
    try:
        check(given, plan)
    except VerificationError as error:
        return "" if overlapping(given, offsets) and "share bytes" in str(error) else f"{plan} is refused: {error}"
    return f"{plan} is accepted for {given.buffers}" if overlapping(given, offsets) else ""


def the_check_refuses_other_flaws(choices: Choices) -> str:
    """An offset that is misaligned, below 0 or not the fixed one, and a peak that is not the plan's."""
    given = drop_empty(problem(choices, 6))
    plan = assign(given, seconds=0.2)
    index = choices.integer(0, len(given) - 1)
    buffer, offsets = given.buffers[index], [*plan.offsets]
    wrong = choices.integer(0, 3)
    if wrong == 0 and buffer.alignment > 1 and buffer.offset is None:
        offsets[index] += 100 * buffer.alignment + 1
    elif wrong == 1 and buffer.offset is not None:
        offsets[index] += 100 * buffer.alignment
    elif wrong == 2:
        offsets[index] = -1000 * buffer.alignment
    else:
        return _accept(given, Assignment(plan.offsets, plan.peak - 1, 0, "random", 0.0))
    return _accept(given, Assignment(tuple(offsets), highest(given, offsets), 0, "random", 0.0))


def _accept(given: Problem, plan: Assignment) -> str:
    try:
        check(given, plan)
    except VerificationError:
        return ""
    return f"{plan} is accepted for {given.buffers}"


def windows_keep_a_plan_valid(choices: Choices) -> str:
    """From the greedy plan to a target: a plan within it, or none; the plan that there was stays."""
    given, target = drop_empty(problem(choices)), choices.integer(0, 30)
    offsets, _ = greedy(given, 0)
    before = offsets.copy()
    found = repair(given, offsets, target, _budget(10**5))
    if (offsets != before).any():
        return f"{before} has become {offsets}"
    if found is None:
        return ""
    check(given, Assignment(tuple(found.tolist()), target, 0, "windows", 0.0))
    return _fits(given, found.tolist(), target)


def tilings_are_packed_again(choices: Choices) -> str:
    """A rectangle cut into few pieces has a packing without a gap, which is found."""
    steps = choices.integer(1, 40)
    rectangles = [(0, steps, 0, 64)]
    for _ in range(choices.integer(0, 8)):
        lower, upper, bottom, top = rectangles.pop(choices.integer(0, len(rectangles) - 1))
        if choices.flag() and upper - lower > 1:
            at = choices.integer(lower + 1, upper - 1)
            rectangles += [(lower, at, bottom, top), (at, upper, bottom, top)]
        elif top - bottom > 1:
            at = choices.integer(bottom + 1, top - 1)
            rectangles += [(lower, upper, bottom, at), (lower, upper, at, top)]
        else:
            rectangles.append((lower, upper, bottom, top))
    buffers = [Buffer(str(i), low, high, top - bottom) for i, (low, high, bottom, top) in enumerate(rectangles)]
    plan = assign(Problem(buffers), seconds=5)
    return "" if plan.peak == plan.lower_bound == 64 else f"{plan} of {buffers}, which fit into 64"


# ---- orders ---------------------------------------------------------------------------------------------------------


def graph(choices: Choices, most: int = 7) -> Graph:
    """Nodes that read what is there and make up to two values; some reuse, some wait without a value."""
    inputs, donated = choices.integer(0, 2), choices.integer(0, 2)
    sizes = {value: choices.integer(0, 9) for value in range(inputs + donated)}
    nodes: list[Node] = []
    edges: list[tuple[int, int]] = []
    for index in range(choices.integer(0, most)):
        read = [choices.chosen(sorted(sizes)) for _ in range(choices.integer(0, 3))] if sizes else []
        made = list(range(len(sizes), len(sizes) + choices.integer(0, 2)))
        sizes |= {value: choices.integer(0, 9) for value in made}
        pairs = [(output, value) for output in made for value in dict.fromkeys(read)]
        reuses = [choices.chosen(pairs) for _ in range(choices.integer(0, 3))] if pairs else []
        workspace = choices.chosen((0, 0, 2, 15))
        nodes.append(Node(f"n{index}", tuple(read), tuple(made), workspace, tuple(reuses)))
        if index and choices.flag(0.2):
            edges.append((choices.integer(0, index - 1), index))
    kept = {choices.chosen(sorted(sizes)) for _ in range(choices.integer(0, 2))} if sizes else set[int]()
    first, second = frozenset(range(inputs)), frozenset(range(inputs, inputs + donated))
    return Graph(tuple(nodes), sizes, first, second, frozenset(kept), tuple(edges))


def orders(given: Graph, done: Sequence[int] = ()) -> Iterator[list[int]]:
    """Every order that is possible."""
    if len(done) == len(given.nodes):
        yield list(done)
    for index in range(len(given.nodes)):
        if index not in done and all(before in done for before in waits(given, index)):
            yield from orders(given, [*done, index])


def waits(given: Graph, index: int) -> set[int]:
    """The nodes that a node waits for, from the definition."""
    read = set(given.nodes[index].inputs)
    makers = {i for i, node in enumerate(given.nodes) if read & set(node.outputs)}
    return makers | {earlier for earlier, later in given.must_follow if later == index}


def simulate_peak(given: Graph, sequence: Sequence[int]) -> int:
    """The peak, from the definition: at each node, which values must be there."""
    peak = sum(given.sizes[value] for value in given.kept) if not given.nodes else 0
    made = set(given.inputs | given.donated)
    for at, index in enumerate(sequence):
        node = given.nodes[index]
        later = {value for other in sequence[at + 1 :] for value in given.nodes[other].inputs} | given.kept
        there = {value for value in made if value in later or value in node.inputs}
        free, saved = {value for value in node.inputs if value not in later}, set[int]()
        for output, value in node.reuses:
            if value in free and output not in saved and given.sizes[output] <= given.sizes[value]:
                free.remove(value)
                saved.add(output)
        there |= set(node.outputs) - saved
        peak = max(peak, sum(given.sizes[value] for value in there) + node.workspace)
        made |= set(node.outputs)
    return peak


def orders_are_possible_and_never_worse(choices: Choices) -> str:
    """Peaks are as simulated, and the order is the same again."""
    given = graph(choices, 10)
    result, count = order(given, seconds=1), len(given.nodes)
    sequence = result.sequence
    possible = sorted(sequence) == list(range(count)) and all(
        waits(given, index) <= set(sequence[:at]) for at, index in enumerate(sequence)
    )
    if not possible or first_too_early(given, sequence) is not None:
        return f"{sequence} is no order of {given}"
    peak, before = simulate_peak(given, sequence), simulate_peak(given, range(count))
    if not result.peak == peak <= result.given_peak == before:
        return f"{result} of {given}: it takes {peak}, before {before}"
    if not least_bytes(given) <= result.lower_bound <= result.peak:
        return f"{result} of {given}: at least {least_bytes(given)}"
    return "" if order(given, seconds=1).sequence == sequence else f"another order of {given} the second time"


def schedules_are_possible(choices: Choices) -> str:
    """Each list schedule is an order, and peaks are as simulated."""
    given = graph(choices, 10)
    for name, schedule in SCHEDULES.items():
        sequence = schedule(given)
        if peak_of(given, sequence) != simulate_peak(given, sequence):
            return (
                f"{name}: {sequence} of {given} takes {simulate_peak(given, sequence)}, not {peak_of(given, sequence)}"
            )
    return ""


def small_graphs_are_ordered_best(choices: Choices) -> str:
    """Against every order of up to six nodes: the whole search, and the exact one from no known order."""
    given = graph(choices, 6)
    result, best = order(given, seconds=5), min(simulate_peak(given, sequence) for sequence in orders(given))
    if not result.peak == result.lower_bound == best:
        return f"{result} of {given}, and {best} is possible"
    if not given.nodes:
        return ""
    alone = best_order(Cell(given, range(len(given.nodes)), ()), 10**9, 10**6, float("inf"))
    exact = alone.exact and alone.order is not None and alone.peak == simulate_peak(given, alone.order) == best
    return "" if exact else f"{alone} of {given}, and {best} is possible"


def cells_hold_the_same_nodes(choices: Choices) -> str:
    """In every order."""
    given = graph(choices, 6)
    ranges = cells(given)
    if [p for start, stop in ranges for p in range(start, stop)] != list(range(len(given.nodes))):
        return f"{ranges} are no cells of {given}"
    for sequence in orders(given):
        if any(sorted(sequence[start:stop]) != list(range(start, stop)) for start, stop in ranges):
            return f"{ranges} of {given} do not hold in {sequence}"
    return ""


def impossible_graphs_are_refused(choices: Choices) -> str:
    """A graph whose order runs a node before what it reads."""
    given = graph(choices, 6)
    for later, node in enumerate(given.nodes):
        for earlier in waits(given, later):
            turned = [*given.nodes]
            turned[earlier], turned[later] = node, given.nodes[earlier]
            edges = [(earlier if b == later else b, later if a == earlier else a) for b, a in given.must_follow]
            if edges:
                continue
            try:
                Graph(tuple(turned), given.sizes, given.inputs, given.donated, given.outputs)
            except UsageError:
                continue
            return f"{[n.name for n in turned]} is accepted as an order of {given}"
    return ""


# ---- what runs again ------------------------------------------------------------------------------------------------


def meanings(given: Graph) -> dict[int, Any]:
    """What each value is: an input, or the node that makes it with what that reads."""
    found: dict[int, Any] = {value: value for value in given.inputs | given.donated}
    for node in given.nodes:
        read = tuple(found[value] for value in node.inputs)
        found.update((value, (node.name, given.sizes[value], read)) for value in node.outputs)
    return found


def what_runs_again_may(choices: Choices) -> str:
    """Values stay what they are, and the peak is as simulated."""
    given, budget = graph(choices, 10), choices.integer(0, 40)
    seconds = [choices.chosen((None, 0.0, 1.0, 5.0)) for _ in given.nodes]
    result, work, again = rematerialize(given, seconds, budget), Work(given, seconds), 0.0
    for step in result.steps:
        if any(work.seconds[i] is None or i >= step.before for i in step.nodes):
            return f"{step} of {work.graph} runs what may not run again"
        again += work.time(step.nodes)
        work = work.then(step)
    after = work.graph
    if given.nodes and result.given_peak != simulate_peak(given, range(len(given.nodes))):
        return f"{result} of {given}, which takes {simulate_peak(given, range(len(given.nodes)))}"
    if after.nodes and result.peak != simulate_peak(after, range(len(after.nodes))):
        return f"{result}, and {after} takes {simulate_peak(after, range(len(after.nodes)))}"
    if result.peak > result.given_peak or result.seconds != again:
        return f"{result} of {given} within {budget}, and what runs again takes {again} s"
    before, now = meanings(given), meanings(after)
    reads = [
        [(n.name, [known[v] for v in n.inputs]) for n in one.nodes if set(n.outputs) & set(before)]
        for one, known in ((given, before), (after, now))
    ]
    kept = all(now[v] == before[v] for v in given.kept)
    return "" if kept and reads[0] == reads[1] else f"values of {given} are others in {after}"


def nothing_runs_again_in_vain(choices: Choices) -> str:
    """Within the budget, or where nothing may run again."""
    given = graph(choices, 10)
    peak = simulate_peak(given, range(len(given.nodes)))
    within = rematerialize(given, [1.0] * len(given.nodes), peak).steps
    forbidden = rematerialize(given, [None] * len(given.nodes), 0).steps
    return f"{within} and {forbidden} of {given}" if within or forbidden else ""


def a_training_step_fits_half(choices: Choices) -> str:
    """Layers one after the other, and back through all of their results: half of the peak, for less than all again."""
    layers, size = choices.integer(6, 25), choices.integer(1, 100)
    there = [Node(f"layer {i}", (i,), (i + 1,)) for i in range(layers)]
    loss = Node("loss", (layers,), (layers + 1,))
    back = [Node(f"back {i}", (layers - i, layers + i + 1), (layers + i + 2,)) for i in range(layers)]
    sizes = dict.fromkeys(range(2 * layers + 2), size)
    given = Graph((*there, loss, *back), sizes, inputs=frozenset({0}), outputs=frozenset({2 * layers + 1}))
    peak = simulate_peak(given, range(len(given.nodes)))
    budget = peak * 2 // 3
    result = rematerialize(given, [1.0] * len(given.nodes), budget)
    ok = result.peak <= budget and result.seconds <= layers
    return "" if ok else f"{result} of {layers} layers within {budget} of {peak}"


LAWS: Mapping[str, Law] = {
    law.__name__: Law(about, law)
    for about, laws in (
        ("assign", (plans_are_valid, the_search_finds_the_optimum, a_capacity_is_kept, tilings_are_packed_again)),
        ("greedy", (greedy_tries_are_valid, the_goal_ends_greedy)),
        ("search", (the_search_decides_capacities,)),
        ("sections", (sections_say_who_lives_together,)),
        ("problem", (the_check_refuses_what_overlaps, the_check_refuses_other_flaws)),
        ("repair", (windows_keep_a_plan_valid,)),
        ("ordering", (orders_are_possible_and_never_worse, small_graphs_are_ordered_best, cells_hold_the_same_nodes)),
        ("schedules", (schedules_are_possible,)),
        ("graph", (impossible_graphs_are_refused,)),
        ("rematerialize", (what_runs_again_may, nothing_runs_again_in_vain, a_training_step_fits_half)),
    )
    for law in laws
}
"""Laws by name, each with the module of `gcomp.memory` that it is about."""
