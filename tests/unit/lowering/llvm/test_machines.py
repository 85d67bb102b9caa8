"""Images for other machines run there: code, constants, memory functions and the pool, under qemu."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from tests import foreign_machines
from tests.unit.lowering.llvm.test_image import CALLS, OTHER
from tests.unit.lowering.llvm.test_threads import KERNELS

CALLED = (
    *("gcomp_pool_start", "gcomp_pool_stop", "repeat", "memcpy", "memmove", "memset"),
    *("chosen", "entry"),
)
"""As in `machine.c`."""


RUNNING = [variant for variant in VARIANTS.values() if variant.machine != platform.machine() or runs(variant)]


@pytest.mark.parametrize("variant", RUNNING, ids=lambda v: v.name)
def test_an_image_runs_on_its_machine(variant: Variant, tmp_path: Path) -> None:
    program = tmp_path / "program"
    foreign_machines.build(variant.machine, [Path(__file__).with_name("machine.c")], program)
    image = compile_image([CALLS, OTHER, Module("kernels", KERNELS)], variant)
    (tmp_path / "image").write_bytes(image.code)
    offsets = [str(image.entries[name]) for name in CALLED]
    assert foreign_machines.run(variant.machine, program, [str(tmp_path / "image"), *offsets]) == "right\n"
