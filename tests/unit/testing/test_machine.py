"""Kernels run as machine code: here, and under an emulator, on vectors of every width."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from gcomp.errors import InternalError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import Scheduled, schedule
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from gcomp.testing import emulated
from gcomp.testing.fuzz import Coverage
from gcomp.testing.fuzz.doors import door_of
from gcomp.testing.machine import Kernels, Place, all_differences, run_here
from gcomp.testing.tiles import as_kernel

TEXT = """
func.func @main(%x: tensor<5x37xf32>, %y: tensor<5x37xf32>) -> tensor<5xf32> {
  %0 = stablehlo.exponential %x : tensor<5x37xf32>
  %1 = stablehlo.multiply %0, %y : tensor<5x37xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<5x37xf32>, tensor<f32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}
"""
INPUTS = [np.random.default_rng(n).standard_normal((5, 37)).astype(np.float32) for n in range(2)]


def _scheduled(bits: int) -> tuple[LaunchOp, Scheduled]:
    program = as_kernel(Program.parse(TEXT), "reduction")
    launch = next(op for op in program.ops() if isinstance(op, LaunchOp))
    return launch, schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, bits))


def _run(variant: Variant, bits: int, place: Place) -> np.ndarray:
    launch, scheduled = _scheduled(bits)
    kernels = Kernels(scheduled, bits)
    kernels.compile(variant)
    actual = kernels.run(launch, INPUTS, {}, place)
    assert all_differences(execute(launch, kernels.scheduled, INPUTS, {}), actual) == []
    return actual[0]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
def test_one_pattern_of_bits_on_every_processor_and_width(variant: Variant) -> None:
    here = next((v for v in VARIANTS.values() if runs(v)), None)
    if here is None:
        pytest.skip("SKIPPED: gcomp compiles for no processor of this kind")
    if not runs(variant) and (why := emulated.missing(variant.name)):
        pytest.skip(f"SKIPPED: {why}")
    if variant.machine == "x86_64" and variant.name != "x86-64-v3" and not runs(variant):
        pytest.skip("SKIPPED: this processor has no AVX-512 or no VNNI, and qemu emulates none")
    place = run_here if runs(variant) else emulated.Emulator(variant.machine)
    expected = _run(here, here.bits, run_here)
    for bits in (128, 256, 512):
        assert _run(variant, bits, place).tobytes() == expected.tobytes()


def test_code_that_leaves_its_memory_ends_the_emulated_process_and_no_other() -> None:
    if why := emulated.missing("aarch64"):
        pytest.skip(f"SKIPPED: {why}")
    emulator, aarch64 = emulated.Emulator("aarch64"), VARIANTS["aarch64"]
    launch, scheduled = _scheduled(128)
    kernels = Kernels(scheduled, 128)
    kernels.compile(aarch64)

    def misled(code: bytes, memory, calls) -> None:  # type: ignore[no-untyped-def]
        emulator(bytes(len(code)), memory, calls)

    with pytest.raises(InternalError, match="ended"):
        kernels.run(launch, INPUTS, {}, misled)
    assert (
        all_differences(execute(launch, kernels.scheduled, INPUTS, {}), kernels.run(launch, INPUTS, {}, emulator)) == []
    )


def test_the_door_of_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    if why := emulated.missing("aarch64"):
        pytest.skip(f"SKIPPED: {why}")
    door, coverage = door_of("machine:aarch64"), Coverage()
    assert [found for n in range(4) if (found := door.attempt(n, 8, coverage))] == []
    assert coverage.rules
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "qemu-aarch64" in door.missing()
