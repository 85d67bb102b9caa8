"""A segment's steps done one by one, each timed: for profiles. A call does them all in one function of the image.

The kernels are those that a call runs, in the same order, at addresses laid out alike, and shared among the same
threads; so nothing is added to the code of a call, and every artifact can be profiled. Copies and fills are done by one
thread here.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gcomp.dims import evaluate, parse
from gcomp.runtime.cpu.calls import HostCalls
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.plan import SHARED_WORK, CpuPlan
from gcomp.runtime.cpu.threads import Pool
from gcomp.runtime.profiling import Recording
from gcomp.runtime.steps import SLOT, Case, Copy, Fill, HostCall, Launch, Loop, Step, While

_KERNEL: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_PARALLEL: Any = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, ctypes.c_int64)
_CALIBRATIONS = 64
"""Empty calls of a kernel, of which the quickest says what calling one from Python takes."""

Action = Callable[[], object]


class Stepper:
    """A segment at the sizes of a call, whose arena, inputs and outputs lie at given addresses."""

    def __init__(
        self, plan: CpuPlan, image: Image, sizes: Sequence[int], arena: int, addresses: Mapping[str, Sequence[int]],
        pool: Pool | None,
    ) -> None:  # fmt: skip
        """`sizes` are of the plan's symbols, `addresses` those of each `input`, `weight` and `output`."""
        self._plan, self._image, self._addresses, self._pool = plan, image, addresses, pool
        self._env = dict(zip(plan.symbols, sizes, strict=True))
        self._sizes, self._arena = sizes, arena
        self._slots = self._slot_places()
        self._host, self._calls = HostCalls(plan), 0
        self._parallel = _PARALLEL(image.at(plan.code.parallel))
        self._held: list[Any] = []
        self.recording = Recording(plan.variant)
        self._overhead = 0
        self._steps = self._ready(plan.steps)

    def run(self, recording: Recording) -> None:
        """Do all steps, and note what each took. Raises GcompError."""
        self.recording = recording
        recording.architecture = self._plan.variant
        if self._pool is not None and not self._pool.ready:
            self._pool.start()
        for step in self._steps:
            step()

    def _slot_places(self) -> list[int]:
        """Where each slot begins in the arena."""
        found, end = list[int](), self._plan.fixed
        for size in self._plan.slots:
            found.append(-(-end // SLOT) * SLOT)
            end = found[-1] + self._value(size)
        return found

    def _value(self, size: str) -> int:
        return evaluate(parse(size), self._env)

    def _address(self, number: int) -> int:
        buffer = self._plan.buffers[number]
        if buffer.place == "arena":
            return self._arena + buffer.at
        if buffer.place == "slot":
            return self._arena + self._slots[buffer.at]
        return self._addresses[buffer.place][buffer.at]

    def _bytes(self, number: int) -> int:
        return self._value(self._plan.buffers[number].bytes)

    # ---- steps ----

    def _ready(self, steps: Sequence[Step]) -> list[Action]:
        """What does each step, its sizes and addresses worked out. Calls of the host are numbered in this order."""
        return [_ROWS[type(step)](self, step) for step in steps]

    def launch(self, step: Launch) -> Action:
        """Run a kernel's programs."""
        kernel, grid = self._plan.kernels[step.kernel], [self._value(size) for size in step.grid]
        words = [self._address(a) if isinstance(a, int) else self._value(cast(str, a)) for a in step.arguments]
        arguments = (ctypes.c_int64 * (len(words) + len(grid)))(*words, *grid)
        self._held.append(arguments)
        run, place = _KERNEL(self._image.at(kernel.at)), ctypes.addressof(arguments)
        programs, flops, moved = math.prod(grid), self._value(step.flops), self._value(step.bytes)
        label, where = step.title or kernel.name, step.place
        if not self._overhead:
            self._overhead = min(_nanoseconds(run, place, 0, 0) for _ in range(_CALIBRATIONS))
        shared = self._pool is not None and programs > 1 and flops + 2 * moved >= SHARED_WORK
        address = self._image.at(kernel.at)

        def act() -> None:
            began = time.perf_counter_ns()
            if shared and self._pool is not None:
                self._parallel(self._pool.address, address, place, programs)
            else:
                run(place, 0, programs)
            took = time.perf_counter_ns() - began - self._overhead
            self.recording.add("kernel", label, where, began, max(took, 0), flops, moved)

        return act

    def _timed(self, kind: str, label: str, moved: int, action: Action) -> Action:
        def act() -> None:
            began = time.perf_counter_ns()
            action()
            self.recording.add(kind, label, "", began, time.perf_counter_ns() - began, 0, moved)

        return act

    def fill(self, step: Fill) -> Action:
        """Set the bytes of a buffer."""
        place, count = self._address(step.buffer), self._bytes(step.buffer)
        return self._timed("fill", f"fill of {count:,} bytes", count, lambda: ctypes.memset(place, step.byte, count))

    def copy(self, step: Copy) -> Action:
        """Copy a buffer."""
        target, source = self._address(step.target), self._address(step.source)
        count = min(self._bytes(step.source), self._bytes(step.target))
        label = f"copy of {count:,} bytes"
        return self._timed("copy", label, 2 * count, lambda: ctypes.memmove(target, source, count))

    def host(self, step: HostCall) -> Action:
        """Have the host compute something."""
        number = self._calls
        self._calls += 1
        places = (ctypes.c_uint64 * len(step.values))(*(self._address(value.buffer) for value in step.values))
        self._held.append(places)
        address = ctypes.addressof(places)
        return self._timed("host", step.function, 0, lambda: self._host.run(number, address, self._sizes))

    # ---- control ----

    def loop(self, step: Loop) -> Action:
        """Repeat a block."""
        count, body = self._value(step.count), self._ready(step.body)
        return lambda: [action() for _ in range(count) for action in body]

    def while_(self, step: While) -> Action:
        """Repeat a block while a byte is not 0."""
        before, body, condition = self._ready(step.before), self._ready(step.body), self._address(step.condition)

        def act() -> None:
            while True:
                for action in before:
                    action()
                if ctypes.string_at(condition, 1) == b"\0":
                    return
                for action in body:
                    action()

        return act

    def case(self, step: Case) -> Action:
        """Do one of several blocks."""
        branches, selector = [self._ready(branch) for branch in step.branches], self._address(step.selector)
        width = self._bytes(step.selector)

        def act() -> None:
            number = int.from_bytes(ctypes.string_at(selector, width), "little", signed=True)
            chosen = int(not number) if width == 1 else number
            for action in branches[chosen] if 0 <= chosen < len(branches) else branches[-1]:
                action()

        return act


def _nanoseconds(function: Callable[..., object], *arguments: int) -> int:
    began = time.perf_counter_ns()
    function(*arguments)
    return time.perf_counter_ns() - began


_ROWS: Mapping[type[Any], Callable[[Stepper, Any], Action]] = {
    Launch: Stepper.launch, Fill: Stepper.fill, Copy: Stepper.copy, Loop: Stepper.loop, While: Stepper.while_,
    Case: Stepper.case, HostCall: Stepper.host,
}  # fmt: skip
"""Kind of step -> what does it."""

__all__ = ["Stepper"]
