"""The text of a tile program is xDSL's."""

from __future__ import annotations

import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.printing import kernel_text
from gcomp.lowering.tiles.schedules import schedule
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named
from gcomp.testing.generate.program import seeded_program


@pytest.mark.parametrize("number", range(8))
def test_a_kernel_prints_as_xdsl_prints_it(number: int) -> None:
    program = seeded_program(number, 25)
    PassManager(parse_pipeline(target_named("cpu:x86-64-v3").pipeline())).run(program)
    launches = [op for op in program.ops() if isinstance(op, LaunchOp)]
    assert launches
    for launch in launches:
        for step in schedule(launch, "k", program.ranges, settings_for(launch, program.ranges, 256)).steps:
            # Twice: what is kept from the first is the text of the second.
            assert kernel_text(step.kernel) == str(step.kernel) == kernel_text(step.kernel)
