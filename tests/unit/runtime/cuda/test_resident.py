"""Models that keep a state on the GPU: it stays there, in its own memory, and nobody else has it."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcomp.dims import Ranges
from gcomp.errors import ArtifactError, GcompError, InputError
from gcomp.lowering.tiles.drafts import Draft, Part
from gcomp.lowering.triton.package import package
from gcomp.runtime.cuda.device_array import DeviceArray
from gcomp.runtime.cuda.resident import ResidentExecutor
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import Plan, Value
from gcomp.runtime.signature import Signature
from tests.unit.lowering.triton.kernels import ADD, SOFTMAX
from tests.unit.runtime.cuda.models import recorder, rows
from tests.unit.runtime.cuda.recorder import Recorder, softmax

FIRST, X = rows(3), rows(3, 1)
STATE, BYTES = ("3", "96"), 3 * 96 * 4
INPUT, OLD, SOFT, NEXT = range(4)
"""The values of the plan: x, the state, the softmax of the state, and their sum."""


def plan(given: int = SOFT, kept: int = NEXT, *, in_place: bool = False) -> Plan:
    """A plan that gives one of its values, and keeps one."""
    draft = Draft()
    x, s = draft.buffer("input", 0, BYTES), draft.buffer("input", 1, BYTES)
    draft.launch(replace(SOFTMAX, grid=(3,)), {"x": s, "o": draft.buffer("output", 0, BYTES)})
    draft.launch(replace(ADD, grid=(1,)), {"x": s, "y": x, "o": draft.buffer("output", 1, BYTES), "n": 3 * 96})
    inputs = (InputSpec("x", "f32", STATE, False), InputSpec("s", "f32", STATE, in_place, state=1))
    outputs = (OutputSpec("y", "f32", STATE, None), OutputSpec("after", "f32", STATE, 1 if in_place else None))
    value = Value("f32", STATE)
    part = Part((0, 1), (), (value, value), {"sm_90": draft}, ((1, 1),) if in_place else ())
    return package("triton:sm_90", Signature(inputs, outputs, Ranges({})), [part], (given, kept), {})


@pytest.fixture
def gpu() -> Recorder:
    return recorder()


def started(gpu: Recorder, **options: Any) -> ResidentExecutor:
    run = ResidentExecutor(plan(**options), {}, lambda: gpu)
    run.put_state([FIRST])
    return run


@pytest.mark.parametrize("in_place", [True, False])
def test_the_state_moves_on_where_it_is(in_place: bool, gpu: Recorder) -> None:
    run, wanted = started(gpu, in_place=in_place), FIRST
    for turn in range(4):
        (y,) = run([X])
        assert isinstance(y, np.ndarray)
        np.testing.assert_allclose(y, softmax(wanted), rtol=1e-5)
        wanted = wanted + X
        if turn == 1:
            gc.collect()
            held = gpu.memory_held()
            gpu.log.clear()
    gc.collect()
    assert gpu.memory_held() == held
    assert gpu.count("upload") == gpu.count("download") == 2  # x and y of two calls
    np.testing.assert_allclose(run.get_state(0), wanted, rtol=1e-5)
    assert gpu.count("allocate") == (0 if in_place else 2)


def test_memory_is_given_to_one_result() -> None:
    whole = plan(in_place=True)
    (step,) = whole.segments
    for aliases in (((1, 0), (1, 1)), ((1, 1), (1, 1))):
        with pytest.raises(ArtifactError, match="memory that it uses twice"):
            ResidentExecutor(replace(whole, steps=(replace(step, aliases=aliases),)), {})


def test_the_state_is_set_and_read_where_no_gpu_is() -> None:
    def none() -> Recorder:
        raise AssertionError("the GPU was opened")

    run = ResidentExecutor(plan(), {}, none)
    state = FIRST.copy()
    run.put_state([state])
    state[:] = 0
    found = run.get_state(0)
    assert np.array_equal(found, FIRST)
    found[:] = 0
    assert np.array_equal(run.get_state(0), FIRST)


def test_the_state_counts_once_where_it_is_changed_in_place(gpu: Recorder) -> None:
    for in_place in (True, False):
        assert started(gpu, in_place=in_place).memory({})["shared"] == (BYTES if in_place else 0)


def test_the_state_is_set_again_between_calls(gpu: Recorder) -> None:
    run = started(gpu, in_place=True)
    run([X])
    run.put_state([X])
    np.testing.assert_allclose(run([X])[0], softmax(X), rtol=1e-5)
    np.testing.assert_allclose(run.get_state(0), X + X, rtol=1e-5)


@pytest.mark.parametrize(("given", "kept"), [(NEXT, NEXT), (OLD, NEXT), (OLD, OLD), (SOFT, INPUT), (INPUT, INPUT)])
def test_what_is_given_and_what_is_kept_share_no_memory(given: int, kept: int, gpu: Recorder) -> None:
    run, x, state = started(gpu, given=given, kept=kept), DeviceArray.of(gpu, X), FIRST
    results: list[tuple[Any, Any]] = []
    for _ in range(3):
        (y,) = run([x])
        values = (X, state, softmax(state), state + X)
        results.append((y, values[given]))
        state = values[kept]
        assert y.address != x.address
    for y, wanted in results:
        np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-5)
    np.testing.assert_allclose(run.get_state(0), state, rtol=1e-5)
    assert np.array_equal(np.asarray(x), X)
    assert len({y.address for y, _ in results}) == 3


def test_after_a_call_that_failed_the_state_is_gone(gpu: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(gpu, in_place=True)
    with pytest.raises(InputError, match="expected 96, got 90"):
        run([X[:, :90]])
    assert np.array_equal(run.get_state(0), FIRST)

    def lost(*_: Any) -> None:
        raise GcompError("The GPU is lost.")

    with monkeypatch.context() as patched:
        patched.setattr(gpu, "allocate", lost)
        with pytest.raises(GcompError, match="lost"):
            run([X])
    assert np.array_equal(run.get_state(0), FIRST)
    with monkeypatch.context() as patched:
        patched.setattr(gpu, "launch", lost)
        with pytest.raises(GcompError, match="lost"):
            run([X])
    for use in (lambda: run([X]), lambda: run.get_state(0)):
        with pytest.raises(InputError, match="state is gone"):
            use()
    run.put_state([FIRST])
    np.testing.assert_allclose(run([X])[0], softmax(FIRST), rtol=1e-5)
