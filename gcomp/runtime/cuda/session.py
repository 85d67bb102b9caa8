"""One instance of a plan on one GPU: its memory, its kernels, and its work as graphs that are replayed.

There is one allocation: the arena, scratch memory of kernels, and slots for inputs and outputs that are on the host.
What the caller has on the GPU is bound: kernels read and write it where it is. Work at sizes and addresses that are met
for the second time is recorded as a graph, and from then on replayed at the cost of one launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcomp.errors import GcompError
from gcomp.runtime.cuda.binding import (
    Bound,
    BoundCase,
    BoundCopy,
    BoundFill,
    BoundLaunch,
    BoundLoop,
    BoundWhile,
    Node,
    Span,
    Stretch,
    Work,
    bind,
)  # fmt: skip
from gcomp.runtime.cuda.clock import Clock
from gcomp.runtime.cuda.driver import Address, Driver, Handle, Value
from gcomp.runtime.cuda.plan import CudaPlan, Kernel
from gcomp.runtime.lru import Lru

Array = np.ndarray[Any, Any]
Outside = Array | Address
"""Where an input or output is: in an array of the host, or at an address of the GPU."""

Sizes = tuple[Sequence[int], Sequence[int]]
"""The bytes of each input, and of each output."""

ALIGNMENT = 256
GRAPHS = 16
"""How many combinations of sizes and addresses a session keeps graphs for."""


class DeviceWeights:
    """Weights on a GPU, in one allocation, each uploaded once. Sessions share them."""

    def __init__(self, driver: Driver, names: Sequence[str], weights: Mapping[str, Array]) -> None:
        """Raises GcompError when they do not fit."""
        arrays = [weights[name] for name in names]
        self.sizes = {name: array.nbytes for name, array in zip(names, arrays, strict=True)}
        offsets, size = _lay_out(self.sizes.values())
        base = driver.allocate(size) if names else 0
        if names:
            _when_gone(self, driver.release, base)
        self.addresses = {name: base + offset for name, offset in zip(names, offsets, strict=True)}
        stream = driver.stream()
        try:
            for name, array in zip(names, arrays, strict=True):
                if array.nbytes:
                    # One at a time: a mapped file need not be in memory as a whole.
                    held = np.ascontiguousarray(array)
                    driver.upload(self.addresses[name], held.ctypes.data, held.nbytes, stream)
                    driver.wait(stream)
        finally:
            driver.close(stream)


class Kernels:
    """The functions of a plan's kernels, loaded on a GPU. Sessions share them."""

    def __init__(self, driver: Driver, plan: CudaPlan, members: Mapping[str, bytes | memoryview]) -> None:
        """Raises GcompError when the driver does not take them."""
        modules: dict[str, Handle] = {}
        _when_gone(self, _unload, driver, modules)
        self._functions: dict[Kernel, Handle] = {}
        for kernel in plan.kernels:
            if kernel.binary not in modules:
                modules[kernel.binary] = driver.load(bytes(members[kernel.binary]), kernel.binary)
            module = modules[kernel.binary]
            self._functions[kernel] = driver.function(module, kernel.name, kernel.shared, kernel.ctas)

    def __getitem__(self, kernel: Kernel) -> Handle:
        return self._functions[kernel]


def _unload(driver: Driver, modules: Mapping[str, Handle]) -> None:
    for module in modules.values():
        driver.unload(module)


class _Memory:
    """A session's allocation, the graphs that have addresses in it, and an event behind the work that uses them."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self.used = driver, driver.event()
        self.base = self.size = 0
        self.graphs: dict[object, Handle] = {}
        """The first is the one used least recently."""

    def grow(self, size: int) -> None:
        """Have at least so many bytes. What was there is lost, graphs included."""
        if size > self.size:
            self.clear()
            self.base, self.size = self._driver.allocate(size), size

    def clear(self) -> None:
        """Give everything back, once nothing uses it any more."""
        if self.size:
            self._driver.reach(self.used)
            while self.graphs:
                self._driver.drop(self.graphs.popitem()[1])
            self.size, base = 0, self.base
            self._driver.release(base)

    def close(self, stream: Handle) -> None:
        """Give everything back for good, a stream too."""
        self.clear()
        self._driver.forget(self.used)
        self._driver.close(stream)


def _when_gone(owner: object, action: Callable[..., None], *arguments: object) -> None:
    """Give something back with its owner. Where the GPU's work is lost, so is what was to be given back."""

    def act() -> None:
        with contextlib.suppress(GcompError):
            action(*arguments)

    weakref.finalize(owner, act)


@dataclass(frozen=True)
class _Places:
    """The addresses of everything in one call. Two equal ones do the same."""

    arena: Address
    scratch: Address
    inputs: tuple[Address, ...]
    outputs: tuple[Address, ...]


class Session:
    """See the module. Calls from several threads wait for each other; for calls side by side make more sessions."""

    def __init__(
        self, driver: Driver, plan: CudaPlan, kernels: Kernels, weights: DeviceWeights, names: Sequence[str]
    ) -> None:
        """`names` are those of the plan's weights, by number."""
        self._driver, self._plan, self._kernels, self._weights = driver, plan, kernels, weights
        self._names = tuple(names)
        self._memory = _Memory(driver)
        self._stream = driver.stream()
        _when_gone(self, self._memory.close, self._stream)
        self._alignments = _alignments(plan)
        self._lock = threading.Lock()
        self._clock: Clock | None = None
        """What times the call that runs now."""
        self._bound: Lru[object, Bound] = Lru(256)
        self._seen: Lru[object, list[bool]] = Lru(256)

    def run(
        self, env: Mapping[str, int], inputs: Sequence[Outside], outputs: Sequence[Outside], sizes: Sizes,
        stream: Handle | None = None, clock: Clock | None = None,
    ) -> None:  # fmt: skip
        """Compute `outputs` from `inputs` at the sizes of `env`. A clock times each piece of work, without graphs.

        `sizes` are the bytes of each input, and of each output. Arrays are C-contiguous; outputs in arrays are there
        when this returns, those on the GPU once the stream is: without one of the caller's, when this returns, too.
        """
        with self._lock:
            self._driver.enter()
            key = _key(env, sizes)
            bound = self._bind(env, sizes, key)
            places = self._place(bound, inputs, outputs, sizes)
            queue = self._stream if stream is None else stream
            self._clock = clock
            # The memory may be in use by the last call, on a stream of its caller's.
            self._driver.follow(queue, self._memory.used)
            self._bring(places.inputs, inputs, sizes[0], queue)
            self._run(bound, bound.nodes, places, queue, (key, places))
            self._fetch(places.outputs, outputs, sizes[1], queue)
            self._driver.mark(self._memory.used, queue)
            if stream is None or any(isinstance(value, np.ndarray) for value in (*inputs, *outputs)):
                self._driver.wait(queue)

    def prepare(self, env: Mapping[str, int], sizes: Sizes) -> int:
        """Make room for calls at these sizes from the host; returns the bytes of the allocation."""
        with self._lock:
            bound = self._bind(env, sizes, _key(env, sizes))
            _, size = _lay_out((bound.arena, bound.scratch, *sizes[0], *sizes[1]))
            self._memory.grow(size)
            return self._memory.size

    def settle(self) -> None:
        """Return once the work of the last call is done."""
        self._driver.reach(self._memory.used)

    @property
    def graphs(self) -> int:
        """How many graphs are kept."""
        return len(self._memory.graphs)

    def _bind(self, env: Mapping[str, int], sizes: Sizes, key: object) -> Bound:
        def bound() -> Bound:
            weights = [self._weights.sizes[name] for name in self._names]
            return bind(self._plan, env, {"input": sizes[0], "output": sizes[1], "weight": weights})

        return self._bound.get(key, bound)

    def _place(self, bound: Bound, inputs: Sequence[Outside], outputs: Sequence[Outside], sizes: Sizes) -> _Places:
        """Addresses for everything: slots for what is on the host; what is on the GPU stays, if its address suits."""
        slots: list[int | None] = []
        end = _round_up(bound.arena) + _round_up(bound.scratch)
        named = [*(("input", i) for i in range(len(inputs))), *(("output", i) for i in range(len(outputs)))]
        outside = (*inputs, *outputs)
        for name, value, size in zip(named, outside, (*sizes[0], *sizes[1]), strict=True):
            suits = not isinstance(value, np.ndarray) and value % self._alignments.get(name, 1) == 0
            slots.append(None if suits else end)
            end += 0 if suits else _round_up(size)
        self._memory.grow(end)
        base = self._memory.base
        pairs = zip(outside, slots, strict=True)
        addresses = tuple(
            base + (slot or 0) if isinstance(v, np.ndarray) or slot is not None else v for v, slot in pairs
        )
        return _Places(base, base + _round_up(bound.arena), addresses[: len(inputs)], addresses[len(inputs) :])

    def _bring(self, places: Sequence[Address], values: Sequence[Outside], sizes: Sequence[int], queue: Handle) -> None:
        """Bring inputs that are not bound to their slots."""
        for place, value, size in zip(places, values, sizes, strict=True):
            if not size:
                continue
            if isinstance(value, np.ndarray):
                self._driver.upload(place, value.ctypes.data, size, queue)
            elif value != place:
                self._driver.copy(place, value, size, queue)

    def _fetch(self, places: Sequence[Address], values: Sequence[Outside], sizes: Sequence[int], queue: Handle) -> None:
        """Fetch outputs that are not bound from their slots."""
        for place, value, size in zip(places, values, sizes, strict=True):
            if not size:
                continue
            if isinstance(value, np.ndarray):
                self._driver.download(value.ctypes.data, place, size, queue)
            elif value != place:
                self._driver.copy(value, place, size, queue)

    # ---- work ----

    def _run(
        self, bound: Bound, nodes: Iterable[Node], places: _Places, queue: Handle, key: tuple[object, ...]
    ) -> None:
        for i, node in enumerate(nodes):
            at = (*key, i)
            match node:
                case Stretch():
                    self._stretch(node, places, queue, at, GRAPHS * bound.stretches)
                case BoundLoop():
                    for _ in range(node.count):
                        self._run(bound, node.body, places, queue, (*at, "body"))
                case BoundWhile():
                    self._run(bound, node.before, places, queue, (*at, "before"))
                    while self._read(node.condition, places, queue)[0]:
                        self._run(bound, node.body, places, queue, (*at, "body"))
                        self._run(bound, node.before, places, queue, (*at, "before"))
                case BoundCase():
                    chosen = _branch(self._read(node.selector, places, queue), len(node.branches))
                    self._run(bound, node.branches[chosen], places, queue, (*at, chosen))

    def _read(self, span: Span, places: _Places, queue: Handle) -> bytes:
        """A few bytes of the GPU's memory, once the work before is done."""
        target = ctypes.create_string_buffer(span.bytes)
        self._driver.download(ctypes.addressof(target), self._address(span, places), span.bytes, queue)
        self._driver.wait(queue)
        return target.raw

    def _stretch(self, stretch: Stretch, places: _Places, queue: Handle, key: object, most: int) -> None:
        if self._clock is not None:
            for work in stretch.works:
                with self._clock.timing(work, queue):
                    self._work(work, places, queue)
            return
        graphs = self._memory.graphs
        if (graph := graphs.pop(key, None)) is None:
            # Recording takes longer than doing: it is for what comes again.
            seen = self._seen.get(key, list[bool])
            seen.append(True)
            if len(seen) < 2:
                for work in stretch.works:
                    self._work(work, places, queue)
                return
            graph = self._record(stretch, places)
        graphs[key] = graph
        while len(graphs) > most:
            self._driver.drop(graphs.pop(next(iter(graphs))))
        self._driver.replay(graph, queue)

    def _record(self, stretch: Stretch, places: _Places) -> Handle:
        recording = self._driver.begin()
        try:
            for work in stretch.works:
                self._work(work, places, recording)
        except GcompError:
            self._driver.abandon(recording)
            raise
        return self._driver.end(recording)

    def _work(self, work: Work, places: _Places, queue: Handle) -> None:
        driver = self._driver
        match work:
            case BoundLaunch():
                kernel = work.kernel
                pairs = zip(work.arguments, kernel.parameters, strict=True)
                arguments: list[Value] = [
                    (argument if isinstance(argument, int) else self._address(argument, places), parameter.bytes)
                    for argument, parameter in pairs
                ]
                arguments += [(places.scratch if work.scratch else 0, 8), (0, 8)]
                driver.launch(
                    self._kernels[kernel], work.grid, 32 * kernel.warps, kernel.shared, kernel.ctas, arguments, queue
                )
            case BoundFill():
                driver.fill(self._address(work.span, places), work.byte, work.span.bytes, queue)
            case BoundCopy():
                target, source = self._address(work.target, places), self._address(work.source, places)
                driver.copy(target, source, work.source.bytes, queue)

    def _address(self, span: Span, places: _Places) -> Address:
        match span.place:
            case "arena":
                return places.arena + span.at
            case "weight":
                return self._weights.addresses[self._names[span.at]]
            case "input":
                return places.inputs[span.at]
            case _:
                return places.outputs[span.at]


def _alignments(plan: CudaPlan) -> dict[tuple[str, int], int]:
    """What the address of an input or output, by place and number, must be a multiple of for the kernels it is for."""
    found: dict[tuple[str, int], int] = {}
    for launch in plan.launches():
        for argument, parameter in zip(launch.arguments, plan.kernels[launch.kernel].parameters, strict=True):
            if isinstance(argument, int):
                name = (plan.buffers[argument].place, plan.buffers[argument].at)
                found[name] = max(found.get(name, 1), parameter.alignment)
    return found


def _branch(selector: bytes, count: int) -> int:
    """The branch of a case that a selector's bytes choose."""
    if len(selector) == 1:
        return 0 if selector[0] else 1
    value = int.from_bytes(selector, "little", signed=True)
    return value if 0 <= value < count else count - 1


def _key(env: Mapping[str, int], sizes: Sizes) -> tuple[object, ...]:
    return (*sorted(env.items()), *map(tuple, sizes))


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _lay_out(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Offsets for spans of these sizes one after the other, and the size of all."""
    offsets: list[int] = []
    end = 0
    for size in sizes:
        offsets.append(end)
        end += _round_up(size)
    return offsets, end
