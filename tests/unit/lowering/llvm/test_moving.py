"""The memory functions of images do what C's do, at every size and alignment, however they overlap."""

from __future__ import annotations

import ctypes
from random import Random

import pytest

from gcomp.lowering.llvm.codegen import compile_image
from gcomp.runtime.cpu.variants import VARIANTS, runs
from tests.mapped import Mapped

RUNNING = [variant for variant in VARIANTS.values() if runs(variant)]
SIZES = (0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 100, 127)


@pytest.fixture(scope="module", params=RUNNING, ids=lambda v: v.name)
def mapped(request: pytest.FixtureRequest) -> Mapped:
    return Mapped(compile_image([], request.param))


def function(mapped: Mapped, name: str, second: type) -> ctypes._CFunctionType:
    return mapped.function(name, [ctypes.c_void_p, second, ctypes.c_size_t], ctypes.c_void_p)


@pytest.mark.parametrize("name", ["memmove", "memcpy"])
def test_moves(mapped: Mapped, name: str) -> None:
    random, move = Random(7), function(mapped, name, ctypes.c_void_p)
    for size in SIZES:
        for _ in range(60):
            data = bytearray(random.randbytes(300))
            source, target = random.randrange(160), random.randrange(160)
            if name == "memcpy" and abs(source - target) < size:
                continue
            memory = (ctypes.c_char * 300).from_buffer_copy(data)
            begin = ctypes.addressof(memory)
            assert move(begin + target, begin + source, size) == begin + target
            data[target : target + size] = data[source : source + size]
            assert memory.raw == bytes(data)


def test_fills(mapped: Mapped) -> None:
    fill = function(mapped, "memset", ctypes.c_int)
    for size in SIZES:
        for offset in (0, 1, 8, 13):
            memory = (ctypes.c_char * 200)()
            begin = ctypes.addressof(memory)
            assert fill(begin + offset, 0x1A5, size) == begin + offset
            assert memory.raw == bytes(offset) + b"\xa5" * size + bytes(200 - offset - size)
