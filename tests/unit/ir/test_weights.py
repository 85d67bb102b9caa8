"""Weights outside the IR: laid out for the device with one copy at most, and let go as soon as they can be."""

from __future__ import annotations

import itertools
import mmap
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gcomp.ir.weights import Weights, copy_aligned, forget_pages

Array = np.ndarray[Any, Any]
PAGES = 64


def mapped(path: Path, access: int = mmap.ACCESS_READ) -> Array:
    """The numbers from 0, four bytes into a mapped file."""
    numbers = np.arange(PAGES * mmap.PAGESIZE // 4, dtype=np.int32)
    path.write_bytes(b"head" + numbers.tobytes())
    with path.open("r+b") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=access))
    return np.frombuffer(data[4:], np.int32)


def resident(array: Array) -> int:
    """Kilobytes of the mapping around an array that are in memory (Linux)."""
    address, found = array.ctypes.data, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            start, stop = (int(part, 16) for part in head.split("-"))
            found = start <= address < stop
        elif found and head == "Rss:":
            return int(line.split()[1])
    raise AssertionError("the array is not mapped")


@pytest.mark.parametrize(
    "shape", [(), (0, 5), (1,), (300,), (257, 300), (3, 200, 190), (70, 32, 3, 3), (1, 1, 700, 40)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.bool_, ml_dtypes.bfloat16])
def test_copies_are_aligned_and_equal(shape: tuple[int, ...], dtype: Any) -> None:
    base = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    for order in itertools.permutations(range(len(shape))):
        turned = np.transpose(base, order)
        for array in (
            (turned, turned[..., ::-1], turned[::2], np.broadcast_to(turned, (2, *turned.shape))) if shape else (base,)
        ):
            copy = copy_aligned(array)
            assert copy.dtype == array.dtype
            assert np.array_equal(copy, array)
            assert copy.flags.c_contiguous
            assert copy.size == 0 or copy.ctypes.data % 64 == 0


def test_materializing_copies_what_is_misplaced_only() -> None:
    weights = Weights()
    placed, base = copy_aligned(np.ones((8, 8), np.float32)), np.arange(64.0).reshape(8, 8)
    for name, array in (("turned", base.T), ("placed", placed), ("part", base[1:, 1:])):
        weights.add(name, array)
    weights.materialize()
    assert list(weights) == ["turned", "placed", "part"]
    assert weights["placed"] is placed
    assert np.array_equal(weights["turned"], base.T)
    assert np.array_equal(weights["part"], base[1:, 1:])
    assert not weights["turned"].flags.writeable


def test_materializing_large_weights_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.ir.weights._SHARED", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    weights, sources = Weights(), [np.arange(i, i + 64 * 300.0).reshape(64, 300).T for i in range(20)]
    for index, array in enumerate([*sources, sources[3]]):
        weights.add(f"w{index}", array)
    weights.materialize()
    assert list(weights) == [f"w{index}" for index in range(21)]
    for index, array in enumerate(sources):
        assert np.array_equal(weights[f"w{index}"], array)
        assert weights[f"w{index}"].flags.c_contiguous and not weights[f"w{index}"].flags.writeable
    assert weights["w20"] is weights["w3"]


def test_large_weights_where_the_system_says_nothing_of_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS does not."""
    monkeypatch.setattr("gcomp.ir.weights._SHARED", 0)
    monkeypatch.delattr("os.sched_getaffinity")
    weights, source = Weights(), np.arange(12.0).reshape(3, 4)
    weights.add("turned", source.T)
    weights.materialize()
    assert np.array_equal(weights["turned"], source.T)


def test_materializing_holds_one_source_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, sources = Weights(), list[weakref.ref[Array]]()
    for index in range(4):
        array = np.arange(100.0)[::-1]
        sources.append(weakref.ref(array))
        weights.add(f"w{index}", array)
    del array
    alive: list[int] = []

    def watched(array: Array) -> Array:
        alive.append(sum(source() is not None for source in sources))
        return copy_aligned(array)

    monkeypatch.setattr("gcomp.ir.weights.copy_aligned", watched)
    weights.materialize()
    assert alive == [4, 3, 2, 1]
    assert all(source() is None for source in sources[:-1])


@pytest.mark.parametrize("turn", [False, True])
def test_pages_of_a_file_are_let_go_and_come_back(turn: bool, tmp_path: Path) -> None:
    array = mapped(tmp_path / "w")
    expected = array.copy()
    before = resident(array)
    forget_pages(array.reshape(-1, 64).T if turn else array)
    assert resident(array) < before / 2
    assert np.array_equal(array, expected)


def test_weights_let_go_of_pages_when_removed_or_copied(tmp_path: Path) -> None:
    array = mapped(tmp_path / "w")
    expected = array.copy()
    for act in (lambda w: w.remove("w"), lambda w: w.materialize()):
        weights = Weights()
        weights.add("w", array)
        before = resident(array) if array.sum() else 0
        act(weights)
        assert resident(array) < before / 2
        if "w" in weights:
            assert np.array_equal(weights["w"], expected)


def test_pages_that_were_changed_are_kept(tmp_path: Path) -> None:
    array = mapped(tmp_path / "w", mmap.ACCESS_COPY)
    array[:] = 7
    forget_pages(array)
    assert (array == 7).all()


@pytest.mark.parametrize(
    "array", [np.zeros(100_000), np.zeros((0, 5)), np.frombuffer(bytes(8), np.uint8), np.zeros(())]
)
def test_arrays_that_show_no_file_are_left_alone(array: Array) -> None:
    forget_pages(array)
    assert not array.any()
