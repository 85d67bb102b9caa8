"""Worker processes: what dies, hangs or eats memory costs its own task."""

from __future__ import annotations

import os
import signal
import time

import pytest

from gcomp.testing.workers import Died, Hung, Limits, run_tasks

# The tests around these have loaded JAX, which the workers here do not touch.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

LIMITS = Limits(seconds=2.0, memory=1 << 30)


def work(task: str) -> str:
    match task:
        case "abort":
            os.write(2, b"last words\n")
            os.abort()
        case "traced":
            os.write(
                2, b"last words\n*** SIGABRT received by PID 7 ***\nPC: @ 0x1  (unknown)  raise\n    @ 0x2  (unknown)\n"
            )
            os._exit(4)
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "eat":
            try:
                return f"ate {len(bytearray(2 << 30))}"
            except MemoryError:
                return "MemoryError"
        case "taste":
            return f"ate {len(bytearray(64 << 20))}"
        case _:
            pass
    return task.upper()


def test_each_task_has_its_own_fate() -> None:
    tasks = ["a", "abort", "b", "exit", "hang", "eat", "c", "d"]
    results = dict(run_tasks(work, tasks, 3, LIMITS))
    assert results == {
        "a": "A",
        "abort": Died("SIGABRT: last words"),
        "b": "B",
        "exit": Died("exit code 3"),
        "hang": Hung(),
        "eat": "MemoryError",
        "c": "C",
        "d": "D",
    }


def test_a_handler_s_stack_is_not_what_a_process_said() -> None:
    """jaxlib's handler of signals writes one, once something has installed it."""
    assert list(run_tasks(work, ["traced"], 1, LIMITS)) == [("traced", Died("exit code 4: last words"))]


def test_what_the_caller_holds_is_not_the_task_s() -> None:
    """A caller above the limit: its workers' system calls failed, down to the handlers of their signals."""
    held = bytearray(LIMITS.memory + (64 << 20))
    results = dict(run_tasks(work, ["a", "abort", "taste", "eat"], 1, LIMITS))
    assert len(held) > LIMITS.memory
    assert results == {"a": "A", "abort": Died("SIGABRT: last words"), "taste": f"ate {64 << 20}", "eat": "MemoryError"}


def test_leaving_early_ends_the_workers() -> None:
    started = time.monotonic()
    found = run_tasks(work, ["a", "hang", "hang"], 3, Limits(60.0, 1 << 30))
    assert next(found) == ("a", "A")
    found.close()
    assert time.monotonic() - started < 30


def test_what_is_not_done_in_the_end_is_given_up() -> None:
    started = time.monotonic()
    found = list(run_tasks(work, ["a", "hang", "b"], 1, Limits(60.0, 1 << 30, until=started + 3.0)))
    assert found == [("a", "A")] and time.monotonic() - started < 30


def test_workers_end_with_a_caller_that_is_killed() -> None:
    """They wait for a task, or work on one: either way nobody is left to hear of it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        list(run_tasks(lambda task: time.sleep(task) or task, [0.0, 0.5, 1.0], 3, LIMITS))
        os._exit(0)
    os.close(write)
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.set_blocking(read, False)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # the pipe ends with the last process that holds it
        try:
            ended = os.read(read, 1) == b""
        except BlockingIOError:
            ended = False
        if ended:
            break
        time.sleep(0.05)
    os.close(read)
    assert ended
