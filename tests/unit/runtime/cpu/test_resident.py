"""Models that keep a state: it stays in memory of their own, and nobody else has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcomp.dims import Ranges
from gcomp.errors import CheckError, GcompError, InputError, UnsupportedError
from gcomp.runtime.checks import Check
from gcomp.runtime.cpu.frames import Frames
from gcomp.runtime.cpu.memory import address_of
from gcomp.runtime.cpu.plan import Kernel
from gcomp.runtime.cpu.resident import ResidentExecutor
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import Plan, Value
from gcomp.runtime.profiling import Recording
from gcomp.runtime.signature import Signature
from gcomp.runtime.steps import Buffer, Launch
from tests.unit.runtime.cpu.code import entry, read, write
from tests.unit.runtime.cpu.models import part, rows

FIRST, X = rows(3), rows(3, 1)
STATE, BYTES = ("3", "96"), "1152"
INPUT, OLD, DOUBLE, NEXT = range(4)
"""The values of the plan: x, the state, twice the state, and the sum of x and the state."""

STEP = entry(
    {"x": 2, "s": 3, "double": 4, "after": 5},
    "\n".join([
        read("a", "x"), read("b", "s"), "  %t = fadd float %b, %b", write("t", "double"), "  %u = fadd float %b, %a",
        write("u", "after"),
    ]),
    "  %n = add i64 288, 0",
)  # fmt: skip


def plan(given: int = DOUBLE, kept: int = NEXT, *, in_place: bool = False, checks: bool = False) -> Plan:
    """A plan that gives one of its values, and keeps one. What it checks fails where the state's first byte is 7."""
    value = Value("f32", STATE)
    buffers = tuple(
        Buffer(place, at, BYTES) for place, at in (("input", 0), ("input", 1), ("output", 0), ("output", 1))
    )
    segment, texts, images = part(
        "plan.json", STEP, (0, 1), (value, value), symbols=(), buffers=buffers,
        steps=(Launch(0, ("1",), (0, 1, 2, 3)),), kernels=(Kernel("step", 0, "", ("in", "in", "out", "out")),),
        aliases=((1, 1),) if in_place else (),
    )  # fmt: skip
    inputs = (InputSpec("x", "f32", STATE, False), InputSpec("s", "f32", STATE, in_place, state=1))
    outputs = (OutputSpec("y", "f32", STATE, None), OutputSpec("after", "f32", STATE, 1 if in_place else None))
    whole = Signature(inputs, outputs, Ranges({}))
    return Plan(f"cpu:{this_machine()}", whole, (segment,), (given, kept), texts, {}, images)


def started(**options: Any) -> ResidentExecutor:
    run = ResidentExecutor(plan(**options), {})
    run.put_state([FIRST])
    return run


@pytest.mark.parametrize("in_place", [True, False])
def test_the_state_moves_on_in_memory_of_its_own(in_place: bool) -> None:
    run, wanted, places = started(in_place=in_place), FIRST, set[int]()
    for _ in range(6):
        (y,) = run([X])
        np.testing.assert_array_equal(y, 2 * wanted)
        wanted = wanted + X
        places.add(address_of(run._state[0]))
    np.testing.assert_array_equal(run.get_state(0), wanted)
    assert len(places) == (1 if in_place else 2)


def test_the_state_is_set_and_read_as_copies() -> None:
    run = started()
    state = FIRST.copy()
    run.put_state([state])
    state[:] = 0
    found = run.get_state(0)
    assert np.array_equal(found, FIRST)
    found[:] = 0
    assert np.array_equal(run.get_state(0), FIRST)


@pytest.mark.parametrize(("given", "kept"), [(NEXT, NEXT), (OLD, NEXT), (OLD, OLD), (DOUBLE, INPUT), (INPUT, INPUT)])
def test_what_is_given_and_what_is_kept_share_no_memory(given: int, kept: int) -> None:
    run, x, state = started(given=given, kept=kept), X.copy(), FIRST
    results: list[tuple[Any, Any]] = []
    for _ in range(3):
        (y,) = run([x])
        values = (X, state, 2 * state, state + X)
        results.append((y, values[given]))
        state = values[kept]
        assert not np.may_share_memory(y, x) and not np.may_share_memory(y, run._state[0])
        assert not np.may_share_memory(run._state[0], x)
    for y, wanted in results:
        np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(run.get_state(0), state)
    assert np.array_equal(x, X)


@pytest.mark.parametrize("in_place", [True, False])
def test_after_a_call_that_failed_the_state_is_what_it_was_or_gone(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(in_place=in_place)
    with pytest.raises(InputError, match="expected 96, got 90"):
        run([X[:, :90]])
    assert np.array_equal(run.get_state(0), FIRST)

    def lost(*_: Any) -> None:
        raise GcompError("It was interrupted.")

    with monkeypatch.context() as patched:
        patched.setattr(Frames, "run", lost)
        with pytest.raises(GcompError, match="interrupted"):
            run([X])
    if not in_place:
        assert np.array_equal(run.get_state(0), FIRST)
        return
    for use in (lambda: run([X]), lambda: run.get_state(0)):
        with pytest.raises(InputError, match="state is gone"):
            use()
    run.put_state([FIRST])
    np.testing.assert_array_equal(run([X])[0], 2 * FIRST)


def test_where_a_check_fails_the_state_is_what_it_was() -> None:
    number = Value("i32", ())
    checked = plan()
    (segment,) = checked.segments
    step = replace(segment, outputs=(*segment.outputs, number, number))
    whole = replace(checked, steps=(step,), results=(2, 3, 4, 5), checks=(Check("nan", "hlo.add", "sum", ""),))
    run = ResidentExecutor(whole, {})
    run.put_state([FIRST])
    found: list[int] = []

    def failing(arrays: Any, env: Any, kind: Any) -> Any:
        values = original(arrays, env, kind)
        values[4][...], values[5][...] = found[0], -1
        return values

    original, run._run = run._run, failing
    found[:] = [0]
    with pytest.raises(CheckError, match="NaN"):
        run([X])
    assert np.array_equal(run.get_state(0), FIRST)
    found[:] = [-1]
    np.testing.assert_array_equal(run([X])[0], 2 * FIRST)
    np.testing.assert_array_equal(run.get_state(0), FIRST + X)


def test_steps_of_a_call_that_changes_the_state_are_not_timed() -> None:
    run = started()
    with pytest.raises(UnsupportedError, match="state"):
        run.profile([X], Recording())
    np.testing.assert_array_equal(run.get_state(0), FIRST)
