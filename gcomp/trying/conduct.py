"""How a pass behaves besides what it computes: whether it ends, writes files, or changes global state."""

from __future__ import annotations

import contextlib
import decimal
import gc
import io
import itertools
import locale
import math
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.testing import workers
from gcomp.testing.fuzz import directed

PROGRAMS = range(0, 32 * directed.FAMILY, directed.FAMILY)
"""The first of each family is made at once: to find near misses of it takes seconds."""
_BLOCK = 8
_SECONDS = 4.0
"""Of the processor: a pass takes milliseconds on a generated program."""
_WAITING = 3
"""So many times as long it may wait for something; where others want the processor, seconds last longer, too."""
_BLOCK_SECONDS = 40.0
"""To make the programs of a block and run them: a process that takes longer hangs where no signal reaches it."""
_SLOW = 0.1
"""More seconds for a generated program are no more worth it."""
_MEMORY = 4 << 30
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "os.remove": "removes a file", "os.rename": "renames a file", "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder", "os.link": "links a file", "os.symlink": "links a file",
    "os.chmod": "changes a file",
    "os.truncate": "writes a file", "subprocess.Popen": "starts a process", "os.system": "starts a process",
    "os.posix_spawn": "starts a process", "os.fork": "starts a process", "socket.connect": "opens a connection",
    "os.kill": "sends a signal",
}  # fmt: skip
"""What an interpreter audits, and what it is called."""


@dataclass(frozen=True)
class Conduct:
    """What was seen of a pass: `faults` by what makes them the same, each with a sentence; programs, and the seconds of
    a processor that it took for them."""

    faults: dict[str, str] = field(default_factory=dict[str, str])
    programs: int = 0
    seconds: float = 0.0
    hanging: int | None = None
    """The number of a program on which it does not end."""


class Late(BaseException):
    """A pass took longer than it may. No handler of exceptions should take it."""


def conduct_of(step: Pass, numbers: Sequence[int] = PROGRAMS, *, until: float = math.inf) -> Conduct:
    """Run a pass on programs that are made for it, in another process that is watched, until a moment of
    `time.monotonic`. What it raises is for the judge to say.
    """
    faults, count, seconds, hanging = dict[str, str](), 0, 0.0, None
    blocks = (numbers[i : i + _BLOCK] for i in range(0, len(numbers), _BLOCK))
    waiting = itertools.takewhile(lambda block: block[0] == numbers[0] or time.monotonic() < until, blocks)
    limits = workers.Limits(_BLOCK_SECONDS, _MEMORY)
    for block, result in workers.run_tasks(partial(_watch, step), waiting, 1, limits):
        if isinstance(result, workers.Hung):
            faults["hangs"] = f"does not end on one of the programs {block[0]} to {block[-1]} of its own"
            break
        if isinstance(result, workers.Died):
            faults["dies"] = f"ends the process that it runs in: {result.detail}"
            break
        faults |= result.faults
        count, seconds = count + result.programs, seconds + result.seconds
        if "hangs" in faults:
            hanging = result.hanging
            break
    if count and seconds / count > _SLOW and "hangs" not in faults:
        faults["slow"] = f"is slow: {1e3 * seconds / count:.0f} ms on a program of some ten ops, where 1 is usual"
    return Conduct(faults, count, seconds, hanging)


@contextlib.contextmanager
def limited(most: float | None = None) -> Generator[None]:
    """The body has so many seconds of the processor, and some more of the clock. Raises Late past them."""
    most = _SECONDS if most is None else most

    def late(number: int, frame: object) -> None:
        raise Late

    crowding = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    timers = ((signal.SIGPROF, signal.ITIMER_PROF, most),
              (signal.SIGALRM, signal.ITIMER_REAL, most * _WAITING * crowding))  # fmt: skip
    before = [signal.signal(number, late) for number, _, _ in timers]
    try:
        for _, timer, seconds in timers:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _watch(step: Pass, block: Sequence[int]) -> Conduct:
    """In a worker: run the pass on the programs of numbers, and compare the world before and after."""
    faults, seconds, hanging = dict[str, str](), 0.0, None
    for number in block:
        made = directed.program_of(step, number)
        size = made.op_count()
        program, again, seen = made.clone(), made.clone(), list[str]()
        before = _world(step)
        said = io.StringIO()
        started = time.process_time()
        try:
            with _watched(seen), contextlib.redirect_stdout(said), limited():
                _ran(step, program)
        except Late:
            faults["hangs"] = (
                f"does not end within {_SECONDS:g} s of the processor on its program {number}, of {size} ops"
            )
            hanging = number
            break
        seconds += time.process_time() - started
        for name, was, now in _changes(before, _world(step)):
            faults.setdefault(f"state {name}", f"changes {name}, from {was} to {now}")
        for event in seen:
            faults.setdefault(f"outside {event}", event)
        if said.getvalue():
            faults.setdefault("prints", f"prints to the standard output: {said.getvalue().splitlines()[0][:60]!r}")
        _ran(step, again)
        with contextlib.suppress(Exception):  # what it left may be no program, which the judge says
            if again.text() != program.text():
                faults.setdefault("random", "does something else the second time, on the same program")
    return Conduct(faults, len(block), seconds, hanging)


def _ran(step: Pass, program: Program) -> None:
    with contextlib.suppress(GcompError, Exception):
        step.run(program, PassContext())


# ---- files and processes ----

_listening: list[list[str]] = []


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening:
        return
    if event in _EVENTS:
        _listening[-1].append(f"{_EVENTS[event]}: {arguments[0] if arguments else ''}"[:120])
    elif event == "open" and len(arguments) == 3 and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        path = str(arguments[0])
        if "__pycache__" not in path and path != os.devnull:
            _listening[-1].append(f"writes a file: {path}"[:120])
    elif event == "os.putenv" or event == "os.unsetenv":
        _listening[-1].append(f"changes the environment: {arguments[0]!r}"[:120])


@contextlib.contextmanager
def _watched(seen: list[str]) -> Generator[None]:
    """Record in `seen` what the body does outside the process (files, sockets, processes), by an audit hook.

    The hook stays: it cannot be removed, and workers end soon.
    """
    if not getattr(_watched, "hooked", False):
        sys.addaudithook(_listen)
        _watched.hooked = True  # pyright: ignore[reportFunctionMemberAccess]
    _listening.append(seen)
    try:
        yield
    finally:
        _listening.pop()


# ---- global state ----


def _world(step: Pass) -> dict[str, str]:
    """What a pass has no business to change, as texts by name."""
    found = {
        "the working folder": os.getcwd(),
        "os.environ": repr(sorted(os.environ.items())),
        "sys.path": repr(sys.path),
        "the recursion limit": repr(sys.getrecursionlimit()),
        "the state of random": str(hash(random.getstate())),
        "the state of numpy.random": str(hash(np.random.get_state()[1].tobytes())),  # pyright: ignore
        "numpy.seterr": repr(np.geterr()),
        "numpy.printoptions": repr(np.get_printoptions()),
        "the filters of warnings": repr(len(warnings.filters)),
        "the locale": repr(locale.setlocale(locale.LC_ALL)),
        "the context of decimal": repr(decimal.getcontext()),
        "gc.isenabled": repr(gc.isenabled()),
        "gc.get_threshold": repr(gc.get_threshold()),
        "sys.stdout": repr(id(sys.stdout)),
    }
    module = sys.modules.get(type(step).__module__)
    for name, value in [*vars(module).items()] if module is not None else []:
        if not name.startswith("__") and (text := _plain(value)) is not None:
            found[f"{name} of its module"] = text
    for name, value in vars(type(step)).items():
        if not name.startswith("_") and (text := _plain(value)) is not None:
            found[f"{name} of its class"] = text
    return found


def _plain(value: Any) -> str | None:
    """The text of a value whose change counts: numbers, texts, and containers, by size and plain elements."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (list, set, dict)):
        items: list[Any] = list(value.items()) if isinstance(value, dict) else list(value)  # pyright: ignore
        return f"{type(value).__name__} of {len(items)}: {[repr(i) for i in items if isinstance(i, _PLAIN)]}"[:400]  # pyright: ignore
    return None


def _changes(before: dict[str, str], after: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in after:
        if after[name] != before.get(name):
            yield name, before.get(name, "nothing")[:40], after[name][:40]


__all__ = ["Conduct", "Late", "conduct_of", "limited"]
