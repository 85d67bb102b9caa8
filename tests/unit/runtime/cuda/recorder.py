"""A GPU that is none: it keeps a record of what it is asked, has memory of the host, and runs kernels of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.errors import UnsupportedError

Array = np.ndarray[Any, Any]
Body = Callable[..., None]


def at(address: int, count: int, dtype: Any = np.float32) -> Array:
    """Elements in memory."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype) if count else np.empty(0, dtype)


class Recorder:
    """A `Driver`. `bodies` are kernels by name: they get the grid, and the arguments as integers."""

    name = "recorder"

    def __init__(self, bodies: dict[str, Body], architecture: str = "sm_90", memory: int = 1 << 24) -> None:
        self.architecture, self._bodies, self._free = architecture, bodies, memory
        self.log: list[tuple[Any, ...]] = []
        self._blocks: dict[int, Any] = {}
        self._handles: dict[int, Any] = {}
        self._recording: dict[int, list[Callable[[], None]]] = {}

    def count(self, what: str) -> int:
        """How often something was asked."""
        return sum(entry[0] == what for entry in self.log)

    def memory_held(self) -> int:
        """Bytes that are allocated."""
        return sum(len(block) for block in self._blocks.values())

    def _handle(self, value: Any) -> int:
        self._handles[number := len(self._handles) + 1] = value
        return number

    def _do(self, stream: int, what: tuple[Any, ...], action: Callable[[], None]) -> None:
        """Do it, or record it if the stream is recording."""
        assert stream in self._handles and self._handles[stream] is not None, "a stream that is not open"
        self.log.append((*what, stream))
        if stream in self._recording:
            self._recording[stream].append(action)
        else:
            action()

    def _check(self, address: int, size: int) -> None:
        """Memory must be allocated, from one end to the other."""
        spans = ((start, start + len(block)) for start, block in self._blocks.items())
        assert not size or any(low <= address and address + size <= high for low, high in spans), "outside of memory"

    # ---- the protocol ----

    def enter(self) -> None: ...

    def reach(self, event: int) -> None:
        assert self._handles[event] == "event"
        self.log.append(("reach",))

    def allocate(self, size: int) -> int:
        if size > self._free - self.memory_held():
            raise UnsupportedError("The GPU has not enough free memory.")
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        # Memory begins as anything.
        ctypes.memset(block, 0x5A, size + 256)
        self._blocks[address] = (ctypes.c_char * size).from_address(address)
        self._handles[-address] = block
        self.log.append(("allocate", size))
        return address

    def release(self, address: int) -> None:
        self.log.append(("release", len(self._blocks.pop(address))))

    def load(self, binary: bytes, what: str) -> int:
        assert binary.startswith(b"\x7fELF")
        self.log.append(("load", what))
        return self._handle(what)

    def function(self, module: int, name: str, shared: int, ctas: int) -> int:
        assert self._handles[module].startswith(name)
        self.log.append(("function", name, shared, ctas))
        return self._handle(name)

    def unload(self, module: int) -> None:
        self.log.append(("unload", self._handles[module]))

    def stream(self) -> int:
        return self._handle("stream")

    def close(self, stream: int) -> None:
        self._handles[stream] = None

    def wait(self, stream: int) -> None:
        self.log.append(("wait", stream))

    def event(self) -> int:
        return self._handle("event")

    def mark(self, event: int, stream: int) -> None: ...

    def follow(self, stream: int, event: int) -> None:
        self.log.append(("follow", stream))

    def milliseconds(self, first: int, last: int) -> float:
        return 0.0

    def forget(self, event: int) -> None:
        self._handles[event] = None

    def upload(self, target: int, source: int, size: int, stream: int) -> None:
        self._check(target, size)
        self._do(stream, ("upload", size), lambda: ctypes.memmove(target, source, size) and None)

    def download(self, target: int, source: int, size: int, stream: int) -> None:
        self._check(source, size)
        self._do(stream, ("download", size), lambda: ctypes.memmove(target, source, size) and None)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._do(stream, ("copy", size), lambda: ctypes.memmove(target, source, size) and None)

    def fill(self, target: int, byte: int, size: int, stream: int) -> None:
        self._check(target, size)
        self._do(stream, ("fill", byte, size), lambda: ctypes.memset(target, byte, size) and None)

    def launch(
        self, function: int, grid: tuple[int, int, int], threads: int, shared: int, ctas: int,
        arguments: Sequence[tuple[int, int]], stream: int,
    ) -> None:  # fmt: skip
        name = self._handles[function]
        values = [value for value, _ in arguments[:-2]]
        sizes = tuple(size for _, size in arguments)
        scratch, profile = (value for value, _ in arguments[-2:])
        assert profile == 0
        action = (lambda: self._bodies[name](grid, *values)) if not scratch else (
            lambda: self._bodies[name](grid, *values, scratch=scratch))  # fmt: skip
        self._do(stream, ("launch", name, grid, threads, shared, ctas, sizes), action)

    def begin(self) -> int:
        stream = self.stream()
        self._recording[stream] = []
        self.log.append(("begin", stream))
        return stream

    def end(self, stream: int) -> int:
        graph = self._recording.pop(stream)
        self.close(stream)
        return self._handle(graph)

    def abandon(self, stream: int) -> None:
        self._recording.pop(stream)
        self.close(stream)
        self.log.append(("abandon", stream))

    def replay(self, graph: int, stream: int) -> None:
        self.log.append(("replay", stream))
        for action in self._handles[graph]:
            action()

    def drop(self, graph: int) -> None:
        self.log.append(("drop", graph))
        self._handles[graph] = None


# ---- the kernels of the tests ----


def softmax(x: Array) -> Array:
    """Of the rows."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _add(grid: tuple[int, int, int], x: int, y: int, o: int, n: int) -> None:
    assert grid == (-(-n // 1024), 1, 1)
    at(o, n)[:] = at(x, n) + at(y, n)


def _softmax(grid: tuple[int, int, int], x: int, o: int) -> None:
    rows = grid[0]
    at(o, 96 * rows)[:] = softmax(at(x, 96 * rows).reshape(rows, 96)).reshape(-1)


BODIES: dict[str, Body] = {"add": _add, "softmax": _softmax}
