"""Calls on a GPU that records them: the order of things, that graphs do the same, and that all is given back."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcomp.errors import ArtifactError, InputError, UnsupportedError
from gcomp.lowering.tiles.drafts import Draft
from gcomp.lowering.triton.source import Argument
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.cuda.session import GRAPHS, Session
from gcomp.runtime.profiling import Recording
from tests.unit.lowering.triton.kernels import ADD, DESCRIPTOR, kernel
from tests.unit.runtime.cuda.models import (
    BYTES,
    WEIGHT,
    N,
    plan_of,
    plan_of_two,
    plan_with_host_step,
    recorder,
    rows,
    two,
)
from tests.unit.runtime.cuda.recorder import BODIES, Recorder, at, softmax


def executor(gpu: Recorder, target: str = "triton:sm_90") -> CudaExecutor:
    return CudaExecutor(plan_of_two(target), {"w": WEIGHT}, lambda: gpu)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_calls_compute_and_the_second_is_a_graph() -> None:
    gpu = recorder()
    run = executor(gpu)
    for seed in range(4):
        x = rows(3, seed)
        close(run([x])[0], two(x))
    assert gpu.count("upload") == 1 + 4 and gpu.count("download") == 4
    # Done once, recorded once.
    assert gpu.count("launch") == 4 and gpu.count("begin") == 1 and gpu.count("replay") == 3
    assert next(entry[2:] for entry in gpu.log if entry[0] == "launch") == (
        (1, 1, 1), 128, 0, 1, (8, 8, 8, 4, 8, 8), gpu.log[-1][1],
    )  # fmt: skip


def test_nothing_is_opened_before_the_first_call() -> None:
    def refuse() -> Recorder:
        raise UnsupportedError("There is no GPU.")

    run = CudaExecutor(plan_of_two(), {"w": WEIGHT}, refuse)
    assert run.memory({"n": 4}) == {"arguments": 1536 + 3072, "outputs": 1536, "temporaries": 1792, "shared": 0}
    assert run.cost({"n": 4}) == {"flops": 2304.0, "bytes accessed": 7680.0}
    with pytest.raises(UnsupportedError, match="no GPU"):
        run([rows(1)])


def test_there_is_one_allocation_that_grows() -> None:
    gpu = recorder()
    run = executor(gpu)
    for count in (3, 3, 2, 0, 3):
        close(run([x := rows(count)])[0], two(x))
    assert [entry[1] for entry in gpu.log if entry[0] == "allocate"] == [3072, 1536 + 1280 + 1280]
    close(run([x := rows(8)])[0], two(x))
    # Graphs have addresses of the old memory in them.
    assert gpu.count("drop") == 1 and gpu.count("release") == 1
    order = [entry[0] for entry in gpu.log]
    assert (
        order.index("reach") < order.index("drop") < order.index("release") < len(order) - order[::-1].index("allocate")
    )
    for _ in range(3):
        close(run([x := rows(8)])[0], two(x))


def test_preparing_makes_room_and_runs_nothing() -> None:
    gpu = recorder()
    run = executor(gpu)
    run.prepare({"n": 8})
    assert gpu.count("launch") == 0 and gpu.count("allocate") == 2
    close(run([x := rows(8)])[0], two(x))
    assert gpu.count("allocate") == 2


def test_graphs_are_bounded_and_the_oldest_goes() -> None:
    gpu = recorder()
    run = executor(gpu)
    run.prepare({"n": 8})
    (session,) = run.sessions
    memory = gpu.allocate(1 << 16)
    sizes = ([384], [384])
    at(memory, 96)[:] = rows(1)[0]
    for i in range(GRAPHS + 3):
        for _ in range(2):
            session.run({"n": 1}, [memory], [memory + 512 * (i + 1)], sizes)
        close(at(memory + 512 * (i + 1), 96), two(rows(1))[0])
    assert session.graphs == GRAPHS and gpu.count("drop") == 3


def test_what_is_on_the_gpu_is_bound() -> None:
    gpu = recorder()
    run = executor(gpu)
    (session,) = run.sessions
    x, y = gpu.allocate(1152), gpu.allocate(1152)
    for seed in range(3):
        at(x, 288)[:] = rows(3, seed).reshape(-1)
        gpu.log.clear()
        session.run({"n": 3}, [x], [y], ([1152], [1152]))
        close(at(y, 288).reshape(3, 96), two(rows(3, seed)))
        assert gpu.count("upload") == gpu.count("download") == gpu.count("copy") == 0
        assert gpu.count("replay") == (seed > 0)
    # There is no room for what is bound: the arena alone.
    assert ("allocate", 1536) not in gpu.log and session._memory.size == 1536


def test_an_address_that_kernels_do_not_suit_is_copied() -> None:
    gpu = recorder()
    (session,) = executor(gpu).sessions
    x, y = gpu.allocate(2000) + 4, gpu.allocate(2000) + 8
    at(x, 288)[:] = rows(3).reshape(-1)
    session.run({"n": 3}, [x], [y], ([1152], [1152]))
    close(at(y, 288).reshape(3, 96), two(rows(3)))
    assert gpu.count("copy") == 2


def test_a_caller_s_stream_is_not_waited_for() -> None:
    gpu = recorder()
    (session,) = executor(gpu).sessions
    x, y, stream = gpu.allocate(1152), gpu.allocate(1152), gpu.stream()
    gpu.log.clear()
    session.run({"n": 3}, [x], [y], ([1152], [1152]), stream)
    assert gpu.count("wait") == 0 and ("follow", stream) in gpu.log
    assert all(entry[-1] == stream for entry in gpu.log if entry[0] == "launch")
    # What is fetched to the host is there when the call returns.
    session.run({"n": 3}, [x], [np.empty((3, 96), np.float32)], ([1152], [1152]), stream)
    assert gpu.log[-1] == ("wait", stream)


def test_instances_share_weights_and_kernels() -> None:
    gpu = recorder()
    first = executor(gpu)
    second = first.instance()
    x = rows(8)
    close(first([x])[0], two(x))
    close(second([x])[0], two(x))
    assert gpu.count("load") == 2 and [e[1] for e in gpu.log if e[0] == "allocate"].count(3072) == 1
    assert first.sessions[0] is not second.sessions[0]
    held = gpu.memory_held()
    del first
    gc.collect()
    # The weights stay for the second.
    assert gpu.memory_held() < held
    close(second([x])[0], two(x))


def test_all_is_given_back() -> None:
    gpu = recorder()
    run = executor(gpu)
    for _ in range(3):
        run([rows(2)])
    assert gpu.memory_held() > 0
    del run
    gc.collect()
    assert gpu.memory_held() == 0 and gpu.count("unload") == 2 and gpu.count("drop") == 1
    assert all(handle is None or handle != "stream" for handle in gpu._handles.values())


def test_threads_wait_for_each_other() -> None:
    gpu = recorder()
    run = executor(gpu)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in range(20):
            x = rows(1 + (seed + i) % 8, seed * 100 + i)
            if not np.allclose(run([x])[0], two(x), rtol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_that_does_not_suffice_is_an_error_and_no_more() -> None:
    gpu = recorder(memory=3072 + 3000)
    run = executor(gpu)
    with pytest.raises(UnsupportedError, match="not enough free memory"):
        run([rows(8)])
    close(run([x := rows(2)])[0], two(x))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (rows(9), "range"),
        (rows(2)[:, :90], "expected 96, got 90"),
        (rows(2).astype(np.float64), "dtype float64"),
        ("text", "not an array"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(value: object, what: str) -> None:
    with pytest.raises(InputError) as caught:
        executor(recorder())([value])
    assert what in str(caught.value)


def test_inputs_of_any_layout_are_taken() -> None:
    run = executor(recorder())
    x = rows(16)[::2]
    close(run([x])[0], two(x))
    close(run([rows(3).tolist()])[0], two(rows(3)))
    close(run([np.asfortranarray(rows(3))])[0], two(rows(3)))


# ---- which GPU ----


def test_the_plan_for_the_gpu_is_chosen() -> None:
    for own, taken in (("sm_90", "sm_90"), ("sm_80", "sm_80"), ("sm_86", "sm_80"), ("sm_89", "sm_80")):
        gpu = recorder(own)
        run = executor(gpu, "triton:sm_90,sm_80")
        close(run([x := rows(3)])[0], two(x))
        assert [entry[1].split(".")[2] for entry in gpu.log if entry[0] == "load"] == [taken] * 2
        assert taken in run.source


@pytest.mark.parametrize("own", ["sm_75", "sm_100", "sm_103", "sm_120"])
def test_another_gpu_is_refused(own: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        executor(recorder(own), "triton:sm_90,sm_80")([rows(1)])
    assert f"this GPU is of {own}" in str(caught.value) and f"--target triton:{own}" in str(caught.value)


# ---- decisions ----


def doubling(decide: Callable[[Draft, int, int], None]) -> CudaExecutor:
    """y = x, then y = y + y as often as it is decided; a buffer of one byte and one of four are at hand."""
    draft = Draft(arena=512)
    x, y = draft.buffer("input", 0, BYTES), draft.buffer("output", 0, BYTES)
    draft.copy(x, y)
    with draft.block() as body:
        draft.launch(ADD, {"x": y, "y": y, "o": y, "n": 96 * N})
    decide(draft, body, x)  # type: ignore[arg-type]
    gpu = recorder()
    return CudaExecutor(plan_of(draft), {}, lambda: gpu)


def test_loops_run_as_often_as_they_say() -> None:
    run = doubling(lambda draft, body, x: draft.loop(N, body))
    for count in (3, 3, 3, 0, 5):
        close(run([x := rows(count)])[0], x * 2**count)


def counter(draft: Draft, body: Any, x: int) -> None:
    """The first byte of the arena, 0x10, is 0 after it has been shifted left four times."""
    flag = draft.buffer("arena", 0, 1)
    draft.fill(flag, 0x10)
    with draft.block() as turn:
        turn += body
        draft.launch(SHIFT, {"o": flag})
    draft.loop_while(flag, [], turn)


SHIFT = kernel("def shift(o):\n    tl.store(o, tl.load(o) << 1)\n", Argument("o", "*u8", "inout", 1))


def shift(grid: tuple[int, int, int], o: int) -> None:
    at(o, 1, np.uint8)[:] <<= 1


def test_a_condition_is_read_at_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BODIES, "shift", shift)
    run = doubling(counter)
    for _ in range(3):
        close(run([x := rows(2)])[0], x * 2**4)


@pytest.mark.parametrize(
    ("size", "byte", "branches", "doublings"),
    [(1, 0, 2, 2), (1, 1, 2, 1), (1, 9, 2, 1), (4, 0, 3, 1), (4, 1, 3, 3), (4, 0xFF, 3, 3)],
)
def test_a_branch_is_chosen(size: int, byte: int, branches: int, doublings: int) -> None:
    def decide(draft: Draft, body: Any, x: int) -> None:
        selector = draft.buffer("arena", 0, size)
        draft.fill(selector, byte)
        draft.case(selector, [list(body) * (i + 1) for i in range(branches)])

    run = doubling(decide)
    for _ in range(3):
        close(run([x := rows(2)])[0], x * 2**doublings)


# ---- scratch memory, several segments, results ----


def test_scratch_memory_is_given() -> None:
    seen: list[int] = []

    def descriptor(grid: tuple[int, int, int], x: int, o: int, scratch: int) -> None:
        seen.append(scratch)
        at(scratch, 128 * grid[0], np.uint8)[:] = 1
        at(o, 96 * 2)[:] = at(x, 96 * 2)

    draft = Draft(arena=0)
    draft.launch(DESCRIPTOR, {"x": draft.buffer("input", 0, BYTES), "o": draft.buffer("output", 0, BYTES)})
    gpu = Recorder({"descriptor": descriptor})
    run = CudaExecutor(plan_of(draft), {}, lambda: gpu)
    close(run([x := rows(2)])[0], x)
    assert seen[0] % 128 == 0 and run.memory({"n": 2})["temporaries"] == 128 * 2


def test_an_input_that_is_returned_is_a_copy() -> None:
    import dataclasses

    draft = Draft()
    draft.copy(draft.buffer("input", 0, BYTES), draft.buffer("output", 0, BYTES))
    plan = plan_of(draft, outputs=1)
    direct = dataclasses.replace(plan, results=(0,))
    for chosen in (plan, direct):
        x = rows(2)
        (found,) = CudaExecutor(chosen, {}, recorder)([x])
        assert np.array_equal(found, x) and not np.shares_memory(found, x)


def test_host_steps_run_between_segments() -> None:
    run = CudaExecutor(plan_with_host_step(), {}, recorder)
    for count in (3, 2, 0):
        x = np.maximum(rows(count), 0)
        places, y = run([x])
        assert np.array_equal(places, np.stack(np.nonzero(x))) if count else places.shape == (2, 0)
        close(y, softmax(x))


def test_a_plan_that_does_not_hold_is_an_error() -> None:
    draft = Draft(arena=16)
    draft.copy(draft.buffer("input", 0, BYTES), draft.buffer("arena", 0, BYTES))
    run = CudaExecutor(plan_of(draft), {}, recorder)
    with pytest.raises(ArtifactError, match="does not hold"):
        run([rows(2)])


def test_a_kernel_that_fails_while_it_is_recorded_leaves_no_recording() -> None:
    gpu = recorder()
    (session,) = executor(gpu).sessions
    assert isinstance(session, Session)
    x, y = gpu.allocate(1152), gpu.allocate(1152)
    session.run({"n": 3}, [x], [y], ([1152], [1152]))
    launch = gpu.launch

    def fail(*arguments: Any) -> None:
        raise UnsupportedError("The GPU has not enough free memory.")

    gpu.launch = fail  # type: ignore[method-assign]
    with pytest.raises(UnsupportedError):
        session.run({"n": 3}, [x], [y], ([1152], [1152]))
    assert gpu.count("abandon") == 1
    gpu.launch = launch  # type: ignore[method-assign]
    session.run({"n": 3}, [x], [y], ([1152], [1152]))
    assert gpu.count("replay") == 1


def test_a_profile_times_each_piece_of_work_and_gives_its_events_back() -> None:
    gpu = recorder()
    run = executor(gpu)
    x = rows(3)
    run([x])
    events = [number for number, value in gpu._handles.items() if value == "event"]
    recording = Recording()
    run.profile([x], recording)
    assert [(s.kind, s.label, s.flops) for s in recording.samples] == [
        ("kernel", "x + w", 96 * 3), ("kernel", "softmax", 5 * 96 * 3),
    ]  # fmt: skip
    assert recording.architecture == "sm_90"
    assert [number for number, value in gpu._handles.items() if value == "event"] == events
    close(run([x])[0], two(x))  # graphs again
    assert gpu.count("replay") == 1
