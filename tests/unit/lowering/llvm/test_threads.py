"""Pools of threads: every program runs once a call, with more threads than cores, from several callers, after sleep."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.threads import PARTS
from tests.mapped import Mapped, Pool
from tests.support.cpu import HERE

pytestmark = pytest.mark.skipif(not HERE, reason="no variant of the processor runs here")

KERNELS = """
define void @count(ptr %args, i64 %begin, i64 %end) {
  %cells = load ptr, ptr %args
  %none = icmp uge i64 %begin, %end
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]
  %p = getelementptr i64, ptr %cells, i64 %i
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
; Where each part begins, at its begin.
define void @parts(ptr %args, i64 %begin, i64 %end) {
  %cells = load ptr, ptr %args
  %p = getelementptr i64, ptr %cells, i64 %begin
  %size = sub i64 %end, %begin
  store i64 %size, ptr %p
  ret void
}
; A smallest subnormal times one: 0 where subnormals are flushed, in the cell of each program.
define void @subnormal(ptr %args, i64 %begin, i64 %end) {
  %cells = load ptr, ptr %args
  %p = getelementptr double, ptr %cells, i64 %begin
  %one = load volatile double, ptr %p
  %x = fmul double %one, 0x0000000000000001
  store double %x, ptr %p
  ret void
}
; As subnormal, of two programs; the first ends when the second has begun, which is another thread's then.
define void @subnormals(ptr %args, i64 %begin, i64 %end) {
  call void @subnormal(ptr %args, i64 %begin, i64 %end)
  %cells = load ptr, ptr %args
  %flag = getelementptr i64, ptr %cells, i64 2
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %wait, label %begun
begun:
  store atomic i64 1, ptr %flag release, align 8
  ret void
wait:
  %value = load atomic i64, ptr %flag acquire, align 8
  %set = icmp ne i64 %value, 0
  br i1 %set, label %done, label %wait
done:
  ret void
}
; As count, after a long while for all programs but the first.
define void @slow(ptr %args, i64 %begin, i64 %end) {
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %run, label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %x = load volatile i64, ptr %args
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 3000000
  br i1 %more, label %loop, label %run
run:
  call void @count(ptr %args, i64 %begin, i64 %end)
  ret void
}
; The first program waits until the second has begun, and the second until it is released.
define void @meet(ptr %args, i64 %begin, i64 %end) {
  %begun = load ptr, ptr %args
  %released = getelementptr i64, ptr %begun, i64 1
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %wait, label %begin.second
begin.second:
  store atomic i64 1, ptr %begun release, align 8
  br label %wait
wait:
  %word = select i1 %first, ptr %begun, ptr %released
  %value = load atomic i64, ptr %word acquire, align 8
  %set = icmp ne i64 %value, 0
  br i1 %set, label %done, label %wait
done:
  ret void
}
define void @repeat(ptr %pool, ptr %args, i64 %programs, i64 %times) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @gcomp_parallel(ptr %pool, ptr @count, ptr %args, i64 %programs)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare void @gcomp_parallel(ptr, ptr, ptr, i64)
"""


@pytest.fixture(scope="module")
def mapped() -> Mapped:
    return Mapped(compile_image([Module("kernels", KERNELS)], HERE[-1]))


class Cells:
    """Cells that kernels write, and their arguments."""

    def __init__(self, programs: int, kind: type = ctypes.c_int64, value: int = 0) -> None:
        self.values = (kind * programs)(*[value] * programs)
        self.programs = programs
        self.args = (ctypes.c_void_p * 1)(ctypes.addressof(self.values))

    def run(self, mapped: Mapped, pool: int, kernel: str) -> list[float]:
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        mapped.function("gcomp_parallel", kinds)(pool, mapped.address(kernel), self.args, self.programs)
        return list(self.values)

    def repeat(self, mapped: Mapped, pool: int, times: int) -> None:
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        mapped.function("repeat", kinds)(pool, self.args, self.programs, times)


@pytest.fixture(params=[1, 2, 3, 4])
def pool(mapped: Mapped, request: pytest.FixtureRequest) -> Iterator[Pool]:
    pool = Pool(mapped, request.param)
    assert pool.threads == request.param
    yield pool
    pool.stop()


def sweep(mapped: Mapped, pools: list[Pool], total: int, seconds: float, cells: list[Cells]) -> int:
    """Calls on pools one after the other, until there were so many or time is over; how many each had."""
    times, end = 0, time.monotonic() + seconds
    while times < total and time.monotonic() < end:
        for pool, own in zip(pools, cells, strict=True):
            own.repeat(mapped, pool.address, 100)
        times += 100
    return times


@pytest.mark.parametrize("programs", [2, 17])
def test_every_program_runs_once_a_call(mapped: Mapped, pool: Pool, programs: int) -> None:
    cells = Cells(programs)
    times = sweep(mapped, [pool], 100_000, 0.3, [cells])
    assert list(cells.values) == [times] * programs


@pytest.mark.slow
def test_a_hundred_thousand_calls(mapped: Mapped, pool: Pool) -> None:
    cells = Cells(17)
    times = sweep(mapped, [pool], 100_000, 300.0, [cells])
    assert times == 100_000 and list(cells.values) == [times] * 17


def test_programs_are_cut_evenly(mapped: Mapped, pool: Pool) -> None:
    for programs in (1, 2, 3, 4, 5, 7, 8, 100):
        sizes = [int(size) for size in Cells(programs).run(mapped, pool.address, "parts") if size]
        assert sum(sizes) == programs
        assert len(sizes) == (min(programs, PARTS * pool.threads) if pool.threads > 1 else 1)
        assert max(sizes) - min(sizes) <= 1


def test_pools_do_not_meet(mapped: Mapped) -> None:
    pools = [Pool(mapped, threads) for threads in (3, 2, 4)]
    cells = [Cells(5) for _ in pools]
    times = sweep(mapped, pools, 100_000, 0.3, cells)
    pools[1].stop()
    for index in (0, 2):
        cells[index].repeat(mapped, pools[index].address, 10)
        assert list(cells[index].values) == [times + 10] * 5
    assert list(cells[1].values) == [times] * 5
    for pool in (pools[0], pools[2]):
        pool.stop()


def test_workers_sleep_and_wake(mapped: Mapped) -> None:
    """After a while no worker runs, and the next call finds them all."""
    others = {*os.listdir("/proc/self/task")}
    pool, cells = Pool(mapped, 3), Cells(6)
    workers = {*os.listdir("/proc/self/task")} - others
    assert len(workers) == 2
    for times in range(1, 6):
        wait_for_sleep(workers)
        assert cells.run(mapped, pool.address, "count") == [times] * 6
    pool.stop()


def wait_for_sleep(workers: set[str]) -> None:
    """Return once threads sleep; one that keeps looking at a word would run for ever."""
    end = time.monotonic() + 30
    states = [""]
    while set(states) != {"S"}:
        assert time.monotonic() < end, f"workers that have nothing to do run: {states}"
        time.sleep(0.002)
        states = [Path(f"/proc/self/task/{task}/stat").read_text().rsplit(")", 1)[1].split()[0] for task in workers]


def test_a_caller_that_sleeps_is_woken(mapped: Mapped, pool: Pool) -> None:
    """Its own part is done long before the others'."""
    cells = Cells(8)
    for times in range(1, 4):
        assert cells.run(mapped, pool.address, "slow") == [times] * 8


def test_who_is_woken_for_nothing_sleeps_on(mapped: Mapped) -> None:
    """The kernel may wake any sleeper at any time: workers, and a caller that waits for a worker's part."""
    wake = ctypes.CDLL(None).syscall
    wake.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    number = {"x86_64": 202}.get(HERE[-1].machine, 98)
    pool, cells = Pool(mapped, 2), Cells(2)
    begun, released = (ctypes.c_int64.from_buffer(cells.values, 8 * index) for index in (0, 1))
    caller = threading.Thread(target=cells.run, args=(mapped, pool.address, "meet"))
    caller.start()
    while not begun.value:
        time.sleep(0.001)
    for _ in range(3):
        wait_for_sleep({str(caller.native_id)})
        for word in (0, 128):
            wake(number, pool.address + word, 129, 100)
    time.sleep(0.01)
    assert caller.is_alive(), "the call returned before its last part was done"
    released.value = 1
    caller.join()
    assert Cells(6).run(mapped, pool.address, "count") == [1] * 6
    pool.stop()


def test_a_pool_serves_the_next_call_too(mapped: Mapped) -> None:
    """It is not left busy: every call is run by all."""
    pool = Pool(mapped, 3)
    for _ in range(20):
        assert Cells(6).run(mapped, pool.address, "parts") == [1] * 6
    pool.stop()


def test_a_pool_is_for_one_call_at_a_time(mapped: Mapped) -> None:
    """Callers that find it busy run their programs themselves."""
    pool = Pool(mapped, 3)
    cells = [Cells(9) for _ in range(3)]

    def call(own: Cells) -> None:
        own.repeat(mapped, pool.address, 5000)
        for _ in range(5):
            own.run(mapped, pool.address, "slow")

    callers = [threading.Thread(target=call, args=(own,)) for own in cells]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    pool.stop()
    assert all(list(own.values) == [5005] * 9 for own in cells)


def test_a_stopped_pool_and_no_pool_run_alone(mapped: Mapped) -> None:
    before = set(os.listdir("/proc/self/task"))
    pool = Pool(mapped, 3)
    started = set(os.listdir("/proc/self/task")) - before
    assert len(started) == 2
    pool.stop()
    assert not started & set(os.listdir("/proc/self/task"))
    assert Cells(4).run(mapped, pool.address, "count") == [1] * 4
    pool.stop()
    assert Cells(4).run(mapped, 0, "parts") == [4, 0, 0, 0]


def test_a_pool_has_the_threads_that_could_be_started(mapped: Mapped) -> None:
    """The system may refuse: the second worker here."""
    create = ctypes.CDLL(None).pthread_create
    create.argtypes, create.restype = [ctypes.c_void_p] * 4, ctypes.c_int
    asked: list[int] = []

    def refusing(*arguments: int) -> int:
        asked.append(1)
        return create(*arguments) if len(asked) < 2 else 11

    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(refusing)
    pool = Pool(mapped, 4, create=ctypes.cast(function, ctypes.c_void_p).value)
    assert pool.threads == 2
    assert sorted(Cells(11).run(mapped, pool.address, "parts")) == [0, 0, 0, *[1] * 5, *[2] * 3]
    pool.stop()


def test_a_call_does_not_wait_for_threads_that_do_not_run(mapped: Mapped) -> None:
    """The system may let a worker run at any later time: the caller takes its parts."""
    kinds = [ctypes.c_int, *[ctypes.c_void_p] * 4]
    never = ctypes.CFUNCTYPE(*kinds)(lambda *arguments: 0)
    pool = Pool(mapped, 3, create=ctypes.cast(never, ctypes.c_void_p).value)
    assert pool.threads == 3
    for programs in (2, 6, 100):
        assert Cells(programs).run(mapped, pool.address, "count") == [1] * programs


def test_a_child_starts_its_own_pool(mapped: Mapped) -> None:
    """After a fork there is the memory, and no worker."""
    pool, cells = Pool(mapped, 3), Cells(6)
    cells.run(mapped, pool.address, "count")
    if (child := os.fork()) == 0:
        own = Pool(mapped, 3)
        os._exit(0 if cells.run(mapped, own.address, "count") == [2] * 6 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cells.run(mapped, pool.address, "count") == [2] * 6
    pool.stop()


def test_subnormals_are_numbers_whatever_the_caller_has_set(mapped: Mapped) -> None:
    """A caller that flushes them to zero (as libraries with fast math do) gets its mode back."""
    begin = mapped.function("gcomp_numbers_begin", [], ctypes.c_int64)
    end = mapped.function("gcomp_numbers_end", [ctypes.c_int64])
    plain, flushing = begin(), {"x86_64": 0x9FC0, "aarch64": 1 << 24}.get(HERE[-1].machine)
    if flushing is None:
        pytest.skip(f"{HERE[-1].machine} always has subnormals")
    end(flushing)
    try:
        pool = Pool(mapped, 2)
        before = Cells(1, ctypes.c_double, 1).run(mapped, 0, "subnormal")
        old = begin()
        calls: list[list[float]] = []
        for _ in range(100):
            cells = Cells(3, ctypes.c_double)
            cells.programs, cells.values[:] = 2, [1, 1, 0]
            calls.append(cells.run(mapped, pool.address, "subnormals")[:2])
        end(old)
        after = Cells(1, ctypes.c_double, 1).run(mapped, 0, "subnormal")
        pool.stop()
    finally:
        begin()
        end(plain)
    assert before == after == [0.0]
    assert calls == [[5e-324] * 2] * 100
