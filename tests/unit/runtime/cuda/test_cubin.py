"""What is read of a cubin, and that nothing worse than an ArtifactError comes of other bytes."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gcomp.errors import ArtifactError
from gcomp.lowering.triton.aot import compile_kernels
from gcomp.lowering.triton.targets import architecture
from gcomp.runtime.cuda import cubin
from tests.unit.lowering.triton.kernels import ADD, SOFTMAX, O, X, kernel


@pytest.fixture(scope="module")
def binaries() -> list[bytes]:
    return [found.binary for found in compile_kernels([ADD, SOFTMAX], architecture("sm_90"), jobs=1)]


def test_the_table_is_that_of_the_kernel(binaries: list[bytes]) -> None:
    add, softmax = (cubin.read(binary, "here") for binary in binaries)
    assert (add.name, add.parameters, add.threads, add.stack) == ("add", (8, 8, 8, 4, 8, 8), 128, 0)
    assert (softmax.name, softmax.parameters, softmax.threads) == ("softmax", (8, 8, 8, 8), 128)


def test_registers_and_stack_are_those_that_nvidia_reads(binaries: list[bytes], tmp_path: Path) -> None:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists() and not shutil.which("cuobjdump"):
        pytest.skip("no cuobjdump")
    for binary in binaries:
        (tmp_path / "k.cubin").write_bytes(binary)
        command = [str(tool if tool.exists() else "cuobjdump"), "--dump-resource-usage", str(tmp_path / "k.cubin")]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        table = cubin.read(binary, "here")
        assert f"REG:{table.registers} STACK:{table.stack} " in text


@pytest.mark.parametrize(
    ("name", "sizes", "threads", "why"),
    [
        ("sub", (8, 8, 8, 4, 8, 8), 128, "its kernel is 'add'"),
        ("add", (8, 8, 8, 8, 8, 8), 128, "parameters have [8, 8, 8, 4, 8, 8] bytes"),
        ("add", (8, 8, 8, 4, 8), 128, "are given [8, 8, 8, 4, 8]"),
        ("add", (8, 8, 8, 4, 8, 8), 256, "128 threads in a block, and is given 256"),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, sizes: tuple[int, ...], threads: int, why: str, binaries: list[bytes]
) -> None:
    with pytest.raises(ArtifactError) as caught:
        cubin.check(cubin.read(binaries[0], "here"), name, sizes, threads, "here")
    assert why in str(caught.value)


def test_cut_bytes_are_refused(binaries: list[bytes]) -> None:
    for length in [*range(0, 200), *range(200, len(binaries[0]), 37)]:
        with pytest.raises(ArtifactError):
            cubin.read(binaries[0][:length], "here")


def test_changed_bytes_do_no_harm(binaries: list[bytes]) -> None:
    rng = random.Random(0)
    refused = 0
    for _ in range(3000):
        data = bytearray(binaries[1])
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            cubin.read(bytes(data), "here")
        except ArtifactError:
            refused += 1
    assert refused > 10


def test_other_files_are_refused() -> None:
    hsaco = compile_kernels([SOFTMAX], architecture("gfx942"), jobs=1)[0].binary
    for data in (b"", b"\x7fELF", hsaco, Path(__file__).read_bytes()):
        with pytest.raises(ArtifactError):
            cubin.read(data, "here")


def test_spilled_registers_show_as_a_stack() -> None:
    text = """def wide(x, o):
    i = tl.arange(0, 16384)
    v = tl.load(x + i)
    tl.store(o + i, v * tl.sum(v, 0))
"""
    (found,) = compile_kernels([kernel(text, X, O, num_warps=1)], architecture("sm_90"), jobs=1)
    # The assembler may give up on registers altogether: their number says nothing then.
    assert found.stack > 0
