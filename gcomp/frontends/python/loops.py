"""`while` and `for` in rewritten code: iteration by iteration in Python, or as loops of the program once a traced value
decides.

A variable that a loop sets, and that had no value before, is one iteration's own. Python numbers that a loop carries
are weak tensors inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gcomp.dims import Dim
from gcomp.errors import UnsupportedError, UsageError
from gcomp.frontends.python.conditionals import call_name, choose_branch
from gcomp.frontends.python.desugaring import VALUE
from gcomp.frontends.python.expressions import compare
from gcomp.frontends.python.variables import UNSET, Undefined, Unset, Variables, check_unchanged, is_traced, statement
from gcomp.ops.arithmetic import logical_and
from gcomp.tensors import trees
from gcomp.tensors.branching import Filler, is_static, loop, type_of
from gcomp.tensors.lifting import cast_value, lift_operands
from gcomp.tensors.site import users_code, where_here
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import OPEN

Iteration = Callable[[list[Any]], list[Any]]
"""Runs a body; from the values that stand before the variables (a counter) to these values for the next iteration."""


def while_(test: Callable[[], Any], body: Callable[[], object], names: Sequence[str]) -> None:
    """`while test: ...`: in Python until the test is traced, and from there on in the program."""
    while True:
        holds = test()
        if is_traced(holds):
            break
        if not holds:
            return
        body()
    _loop("while", Variables(names, body, test), lambda _: test(), lambda state: _run_iteration(body, state), [])


def _loop(
    kind: str, variables: Variables, test: Callable[[list[Any]], Any], iteration: Iteration, extra: list[Any]
) -> None:  # fmt: skip
    """A loop of the program over variables, and values that stand before them."""
    b, original = OPEN.traces[-1], variables.get()
    with statement(kind):
        state, before = variables.state(), original
        while True:
            carried = _Carried(variables, before, extra)
            results = loop(b, carried.leaves, carried.inside(test), carried.through(iteration), carried.labels)
            variables.set(original)
            if isinstance(carried.returned, Unset | Undefined):
                break
            # An iteration may return: what it does has a type from the start, and is not read before it is set.
            value = trees.map_leaves(
                lambda leaf: leaf if is_static(leaf) else Filler(*type_of(b, leaf)), carried.returned
            )
            before = [value if name == VALUE else v for name, v in zip(variables.names, before, strict=True)]
        check_unchanged(variables, state)
    carried.enter(results)
    carried.forget()


class _Carried:
    """What a loop carries: values that stand before the variables, and the leaves of variables that have values."""

    def __init__(self, variables: Variables, before: Sequence[Any], extra: Sequence[Any]) -> None:
        self._variables, self._before, self._extra = variables, before, len(extra)
        self._places = [i for i, value in enumerate(before) if not isinstance(value, Unset | Undefined)]
        flat = [trees.flatten(before[i]) for i in self._places]
        self._structures = [structure for _, structure in flat]
        self.leaves = [*extra, *(leaf for part, _ in flat for leaf in part)]
        self.labels = ["the counter"] * len(extra)
        self.labels += [n for i in self._places for n, _ in trees.paths(before[i], call_name(variables.names[i]))]
        self.returned: Any = UNSET
        """What an iteration made the function's result, if that is not carried."""

    def enter(self, values: Sequence[Any]) -> list[Any]:
        """Set the variables to an iteration's values; the values that stand before them."""
        rest = list(values[self._extra :])
        now: list[Any] = [UNSET if isinstance(v, Undefined) else v for v in self._before]
        for i, structure in zip(self._places, self._structures, strict=True):
            count = len(trees.leaves_of(structure))
            now[i], rest = trees.unflatten(structure, rest), rest[count:]
        self._variables.set(now)
        return list(values[: self._extra])

    def inside(self, test: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """The test as a function of an iteration's values."""

        def holds(values: list[Any]) -> Any:
            with users_code():
                return test(self.enter(values))

        return holds

    def through(self, iteration: Iteration) -> Iteration:
        """An iteration as a function of its values."""

        def body(values: list[Any]) -> list[Any]:
            with users_code():
                ahead = iteration(self.enter(values))
            return [*ahead, *self._leave()]

        return body

    def _leave(self) -> list[Any]:
        after, names = self._variables.get(), self._variables.names
        self.returned = UNSET
        if VALUE in names and (place := names.index(VALUE)) not in self._places:
            self.returned = after[place]
        found: list[Any] = []
        for i, structure in zip(self._places, self._structures, strict=True):
            part, own = trees.flatten(after[i])
            if own != structure or isinstance(after[i], Unset | Undefined):
                raise UsageError(
                    f"the loop changes the structure of {call_name(names[i])}", why=f"{structure!r} becomes {own!r}"
                )
            found += part
        return found

    def forget(self) -> None:
        """Leave the variables that are one iteration's own without a value; flags of rewritten jumps have none."""
        names, lost = self._variables.names, "it is set in a loop only, which may have no iterations"
        after: list[Any] = self._variables.get()
        for i, name in enumerate(names):
            if i not in self._places and not name.startswith("gc_"):
                after[i] = Undefined(name, lost)
        self._variables.set(after)


def _run_iteration(body: Callable[[], object], state: list[Any]) -> list[Any]:
    body()
    return state


class TracedRange(NamedTuple):
    """`range` with bounds that only a run knows."""

    start: Any
    stop: Any
    step: int


def range_(function: Any, *bounds: Any) -> Any:
    """`range(...)` where a loop goes over it."""
    if function is not range or not any(is_traced(v) or isinstance(v, Dim) for v in bounds):
        return function(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if not isinstance(step, int) or step == 0:
        raise UnsupportedError(
            "the step of a range is known only to a run, or 0", where=where_here(), fix="make it a static number"
        )
    return TracedRange(start, stop, step)


def for_(iterable: Any, body: Callable[[Any], object], more: Callable[[], Any] | None, names: Sequence[str]) -> None:
    """`for item in iterable: ...`."""
    variables = Variables(names, body, *([more] if more else []))
    if isinstance(iterable, TracedRange):
        _count_iterations(iterable, body, more, variables)
        return
    if isinstance(iterable, Tensor) and iterable.ndim and isinstance(iterable.shape[0], Dim):
        rows = iterable
        _count_iterations(TracedRange(0, rows.shape[0], 1), lambda i: body(rows[i]), more, variables)
        return
    items = iter(iterable)
    for item in items:
        body(item)
        if more is None:
            continue
        goes_on = more()
        if is_traced(goes_on):
            _remaining(iterable, item, items, body, more, variables)
            return
        if not goes_on:
            return


def _remaining(
    iterable: Any, item: Any, items: Iterator[Any], body: Callable[[Any], object], more: Callable[[], Any],
    variables: Variables,
) -> None:  # fmt: skip
    """The rest of a loop over known items, once a traced value says whether it goes on."""
    if isinstance(iterable, range):
        _count_iterations(TracedRange(item + iterable.step, iterable.stop, iterable.step), body, more, variables)
        return
    for one in items:
        choose_branch(more(), lambda one=one: body(one), lambda: None, variables)


def _count_iterations(
    bounds: TracedRange, body: Callable[[Any], object], more: Callable[[], Any] | None, variables: Variables
) -> None:
    start, stop, step = bounds

    def test(state: list[Any]) -> Any:
        within = compare(state[0], "Lt" if step > 0 else "Gt", lambda: stop)
        return within if more is None else logical_and(within, more())

    def iteration(state: list[Any]) -> list[Any]:
        body(state[0])
        return [state[0] + step]

    with statement("for"):
        b, (first,) = lift_operands(start, b=OPEN.traces[-1])
        # As a Python number, which is what `range` gives.
        counter = Tensor(b, cast_value(b, first, "i64"), weak=True)
    _loop("for", variables, test, iteration, [counter])
