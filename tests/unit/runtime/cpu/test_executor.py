"""Calls of models of machine code: what they take and give, sizes, donated memory, threads, and what is refused."""

from __future__ import annotations

import dataclasses
import gc
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gcomp.errors import ArtifactError, InputError, UnsupportedError, UsageError
from gcomp.runtime.cpu import memory, variants
from gcomp.runtime.cpu.executor import CpuExecutor
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.memory import Pages, address_of
from gcomp.runtime.cpu.plan import from_text, to_text
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.plan import Plan
from tests.unit.runtime.cpu.models import (
    WEIGHT,
    plan_in_place,
    plan_with_host_step,
    plan_with_weight,
    rows,
    with_weight,
)

WEIGHTS = {"w": WEIGHT}


def executor(plan: Plan | None = None, weights: Any = WEIGHTS) -> CpuExecutor:
    return CpuExecutor(plan_with_weight() if plan is None else plan, weights)


def test_calls_at_all_sizes_and_again() -> None:
    run = executor()
    for count in (3, 3, 0, 8, 8, 1, 3):
        x = rows(count, count)
        (y,) = run([x])
        np.testing.assert_array_equal(y, with_weight(x))
        (z,) = run.again([x])
        np.testing.assert_array_equal(z, y)
        assert (y is not z and not np.may_share_memory(y, z)) or not count


def test_arrays_are_read_where_they_lie_or_copied() -> None:
    run = executor()
    wide, odd = rows(8), np.empty(96 * 4 * 3 + 1, np.uint8)
    shifted = odd[1:].view(np.float32).reshape(3, 96)
    shifted[...] = rows(3)
    fixed = rows(3)
    fixed.flags.writeable = False
    for x in (rows(3), wide[::2], np.asfortranarray(wide), wide[:, ::-1], shifted, fixed, wide[2:5]):
        for _ in range(2):
            (y,) = run([x])
            np.testing.assert_array_equal(y, with_weight(x))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (rows(3).astype(np.float64), "dtype float64"),
        (rows(3).astype(">f4"), "foreign byte order"),
        (rows(3)[:, :95], "95"),
        (rows(9)[:, :96], "outside its range"),
        (rows(3)[0], "rank 1"),
        ("text", "not an array"),
    ],
)
def test_other_inputs_are_refused_before_and_after_a_call(value: Any, why: str) -> None:
    run = executor()
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            run([value])
        assert why in str(caught.value)
        run([rows(3)])


def test_results_of_large_arrays_are_aligned_and_of_their_own() -> None:
    run = executor()
    kept = [run([rows(8, seed)])[0] for seed in range(5)]
    assert all(address_of(y) % 64 == 0 for y in kept if y.nbytes >= 4096)
    for seed, y in enumerate(kept):
        y += 1  # results are the caller's
        np.testing.assert_array_equal(y, with_weight(rows(8, seed)) + 1)


def test_addresses_are_those_that_numpy_says() -> None:
    for array in (np.empty(0), np.empty((3, 4))[1:, 2:], np.empty(7, ml_dtypes.bfloat16)[3:], np.float32([1, 2])[::-1]):
        assert address_of(array) == array.ctypes.data


# ---- donated memory ----


def test_a_donated_arrays_memory_is_the_results() -> None:
    run = executor(plan_in_place(), {})
    x, y = rows(3, 1), rows(3, 2)
    wanted = x + y
    (z,) = run([x, y])
    assert z is x
    np.testing.assert_array_equal(z, wanted)


def test_what_may_not_be_written_to_is_not() -> None:
    run = executor(plan_in_place(), {})
    fixed, whole = rows(3), rows(8)
    fixed.flags.writeable = False
    for x, y in ((fixed, rows(3, 2)), (whole[:3], whole[2:5]), (whole[::2], rows(4)), (whole[:3], whole[:3])):
        before = x.copy()
        (z,) = run([x, y])
        np.testing.assert_array_equal(z, before + y)
        np.testing.assert_array_equal(x, before)


def test_without_donation_nothing_is_written_to() -> None:
    run = executor(plan_in_place(donated=False), {})
    x = rows(3)
    before = x.copy()
    for _ in range(2):
        (z,) = run([x, x])
        np.testing.assert_array_equal(z, before * 2)
        np.testing.assert_array_equal(x, before)


# ---- sizes that data determine ----


def test_host_steps_run_between_segments() -> None:
    run = executor(plan_with_host_step())
    for count in (3, 0, 5):
        x = -WEIGHT[:count].copy()
        x[: count // 2] += 1
        places, tens = run([x])
        wanted = np.array(np.nonzero(with_weight(x)))
        np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(tens, 10 * wanted)
    with pytest.raises(UnsupportedError, match="known only while the model runs"):
        run.memory({"n": 3})
    assert run.memory({"n": 3, "m": 2})["outputs"] == 3 * 96 * 4


# ---- other libraries ----


def test_torch_tensors_give_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    run = executor()
    for x in (torch.randn(3, 96), torch.randn(3, 96), torch.randn(96, 3).T, torch.randn(6, 96)[::2]):
        for call in (run, run.again):
            (y,) = call([x])
            assert type(y) is torch.Tensor and y.is_contiguous()
            np.testing.assert_array_equal(y.numpy(), with_weight(x.numpy()))
    (y,) = run([torch.nn.Parameter(torch.ones(3, 96))])
    assert not y.requires_grad
    with pytest.raises(InputError, match=r"dtype torch\.float64"):
        run([torch.ones(3, 96, dtype=torch.float64)])
    x = torch.ones(3, 96)
    (z,) = executor(plan_in_place(), {})([x, torch.ones(3, 96)])
    assert z.data_ptr() == x.data_ptr() and float(x[0, 0]) == 2


def test_jax_arrays_give_jax_arrays_and_are_given_away_where_donated() -> None:
    jax = pytest.importorskip("jax")
    run = executor()
    x = jax.numpy.asarray(rows(3))
    for _ in range(2):
        (y,) = run([x])
        assert isinstance(y, jax.Array)
        np.testing.assert_array_equal(np.asarray(y), with_weight(rows(3)))
    np.testing.assert_array_equal(np.asarray(x), rows(3))
    with pytest.raises(InputError, match="tracing"):
        jax.jit(lambda v: run([v]))(x)
    (z,) = executor(plan_in_place(), {})([x, rows(3)])
    assert isinstance(z, jax.Array) and x.is_deleted()


# ---- threads ----


def test_several_threads_call_one_model() -> None:
    run, failures = executor(), list[Any]()

    def work(seed: int) -> None:
        for step in range(200):
            x = rows(1 + (seed + step) % 8, seed)
            if not np.array_equal(run([x])[0], with_weight(x)):
                failures.append((seed, step))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_frames_are_bounded_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = executor()
    run([rows(1)])
    frames = run.sessions({})[0].frames
    held = [frames._next() for _ in range(frames._limit)]
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(run([rows(2)])))
    thread.start()
    thread.join(0.05)
    assert not done and thread.is_alive()
    frames._free.append(held.pop())
    with frames._changed:
        frames._changed.notify()
    thread.join(10)
    np.testing.assert_array_equal(done[0][0], with_weight(rows(2)))


def test_threads_are_a_setting_of_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCOMP_THREADS", "3")
    first, second = executor(), executor()
    first([rows(3)])
    first.set_threads(1)
    for run, count in ((first, 1), (second, 3)):
        np.testing.assert_array_equal(run([rows(3)])[0], with_weight(rows(3)))
        pool = run.sessions({})[0].pool
        assert (pool is None) == (count == 1)
    with pytest.raises(UsageError, match="0"):
        first.set_threads(0)
    monkeypatch.setenv("GCOMP_THREADS", "many")
    with pytest.raises(UsageError, match="GCOMP_THREADS"):
        executor()


def test_everything_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # what other tests have left
    unmapped: list[int] = []
    monkeypatch.setattr(memory, "_munmap", lambda address, size: unmapped.append(address))
    run = executor()
    run.set_threads(2)
    run([rows(3)])
    del run
    gc.collect()
    assert len(unmapped) == 3  # code, arena, threads


# ---- what does not run ----


def replaced(plan: Plan, **code: Any) -> Plan:
    plans = from_text(plan.texts["plan.json"], "")
    changed = {
        name: dataclasses.replace(found, code=dataclasses.replace(found.code, **code)) for name, found in plans.items()
    }
    return dataclasses.replace(plan, texts={"plan.json": to_text(changed)})


def test_other_code_than_the_plans_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pages, "make_code", lambda self: pytest.fail("it was made executable"))
    plan = plan_with_weight()
    ((name, code),) = plan.binaries.items()
    for changed in (code[:-1], code + b"\0", bytes([code[0] ^ 1]) + code[1:]):
        run = executor(dataclasses.replace(plan, binaries={name: changed}))
        with pytest.raises(ArtifactError, match="damaged"):
            run([rows(3)])
    with pytest.raises(ArtifactError, match="is at byte"):
        executor(dataclasses.replace(plan, binaries={name: code[:0]}))
    with pytest.raises(ArtifactError, match="the entry is at byte"):
        executor(replaced(plan, entry=len(code)))


def test_a_foreign_processor_is_refused_before_anything_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "features", frozenset)
    monkeypatch.setattr("gcomp.runtime.cpu.session.Image", lambda *_: pytest.fail("it was mapped"))
    run = executor()
    with pytest.raises(UnsupportedError) as caught:
        run([rows(3)])
    assert this_machine_was in str(caught.value) and "has no" in str(caught.value)
    assert run.memory({"n": 3})["temporaries"] == 64 + 3 * 384


this_machine_was = this_machine()


def test_pages_are_never_writable_and_executable() -> None:
    plan = from_text(plan_with_weight().texts["plan.json"], "")[this_machine()]
    image = Image(plan.code, plan_with_weight().binaries[plan.code.image])
    if sys.platform == "linux":
        with open("/proc/self/maps", encoding="ascii") as lines:
            rights = [line.split()[1] for line in lines if int(line.split("-")[0], 16) == image._pages.address]
        assert rights == ["r-xp"]


def test_a_model_that_does_not_fit_memory_says_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = executor()
    run([rows(1)])
    monkeypatch.setattr(memory, "memory_limit", lambda: 1000)
    with pytest.raises(UnsupportedError, match="2,368 bytes"):
        run([rows(6)])
    monkeypatch.undo()
    np.testing.assert_array_equal(run([rows(6)])[0], with_weight(rows(6)))


def test_figures_are_the_plans() -> None:
    run = executor()
    assert run.memory({"n": 2}) == {
        "arguments": 2 * 384 + 3072, "outputs": 2 * 384, "temporaries": 64 + 2 * 384, "shared": 0,
    }  # fmt: skip
    assert run.cost({"n": 2}) == {"flops": 2 * 2 * 96.0, "bytes accessed": 2 * 1920.0}
    assert this_machine() in run.source
    assert executor(plan_in_place(), {}).memory({"n": 2})["shared"] == 2 * 384
