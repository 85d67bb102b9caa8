"""What is read of AMD's code objects."""

from __future__ import annotations

import contextlib
import random

import pytest

from gcomp.errors import InternalError
from gcomp.lowering.triton import hsaco
from gcomp.lowering.triton.aot import compile_kernels
from gcomp.lowering.triton.targets import architecture
from tests.unit.lowering.triton.kernels import ADD


@pytest.fixture(scope="module")
def binary() -> bytes:
    return compile_kernels([ADD], architecture("gfx942"), jobs=1)[0].binary


def test_the_table_is_that_of_the_kernel(binary: bytes) -> None:
    table = hsaco.read(binary, "here")
    assert (table.name, table.parameters, table.stack, table.threads) == ("add", (8, 8, 8, 4, 8, 8), 0, 256)
    assert 4 <= table.registers <= 64


def test_other_bytes_are_refused(binary: bytes) -> None:
    rng = random.Random(0)
    for data in (b"", binary[:64], binary[: len(binary) // 2], b"MZ" + binary[2:]):
        with pytest.raises(InternalError):
            hsaco.read(data, "here")
    for _ in range(1000):
        data = bytearray(binary)
        data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(InternalError):
            hsaco.read(bytes(data), "here")


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        (b"\x07", 7), (b"\xff", -1), (b"\xc0", None), (b"\xc3", True), (b"\xcd\x01\x02", 258), (b"\xd1\xff\xfe", -2),
        (b"\xa2hi", "hi"), (b"\xd9\x02hi", "hi"), (b"\x92\x01\x02", [1, 2]), (b"\xdc\x00\x01\x05", [5]),
        (b"\x81\xa1a\x01", {"a": 1}), (b"\xde\x00\x01\xa1a\x90", {"a": []}),
    ],
)  # fmt: skip
def test_values_are_unpacked(packed: bytes, value: object) -> None:
    assert hsaco._unpack(packed + b"rest", 0) == (value, len(packed))
