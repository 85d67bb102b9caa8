"""Kernels of generated programs mean as tile programs, and as printed, what they mean as graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from gcomp.errors import UnsupportedError
from gcomp.exactness import Exactness
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.triton.aot import Compiler, KernelError
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.printing import printed
from gcomp.lowering.triton.schedules import schedule
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import architecture
from gcomp.passes.base import PassContext
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.kernels import try_kernels
from gcomp.testing.fuzz.plan import TILE, Plan
from gcomp.testing.fuzz.trial import inputs_of, program_of
from gcomp.testing.printed import cross_check
from gcomp.testing.tiles import TileChecker, settings_for

Array = np.ndarray[Any, Any]
PLAN = Plan(target=TILE)


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_generated_kernels_mean_what_the_graph_means(first: int) -> None:
    coverage = Coverage()
    found = [one.message for number in range(first, first + 20) if (one := try_kernels(number, PLAN, coverage))]
    assert found == []
    assert coverage.programs > 20 and coverage.unsupported.total() < coverage.programs / 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1 << 16, (1 << 16) + 2000, 100))
def test_many_generated_kernels_mean_what_the_graph_means(first: int) -> None:
    found = [one.message for number in range(first, first + 100) if (one := try_kernels(number, PLAN, Coverage()))]
    assert found == []


# ---- as printed ---------------------------------------------------------------------------------------------------


class Printed(TileChecker):
    """Runs each kernel's text in Triton's interpreter too, and keeps the texts."""

    def __init__(self, number: int, interpreter: Interpreter | None) -> None:
        program = program_of(number, PLAN)
        self.number, self.interpreter, self.random = number, interpreter, Random(number)
        self.wrong: list[str] = []
        self.texts: list[KernelSource] = []
        inputs = inputs_of(number, program, Exactness.E0)
        for step in PLAN.fixed():
            step.run(program, PassContext())
        super().__init__(program, lambda *_: None)
        self.run(inputs)

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        settings = settings_for(op, self.random) if self.interpreter is not None else None
        try:
            scheduled = schedule(op, "kernel", self.ranges, settings)
        except UnsupportedError:
            return
        self.texts += [printed(step) for step in scheduled.steps]
        if self.interpreter is not None:
            found = cross_check(op, scheduled, args, sizes, self.interpreter)
            self.wrong += [f"program {self.number}, {op.kind_name} kernel {op.label_name}: {why}" for why in found]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as found:
        yield found


@pytest.mark.parametrize("first", range(0, 16, 4))
def test_texts_of_generated_kernels_mean_what_their_tiles_mean(first: int, interpreter: Interpreter) -> None:
    assert [why for number in range(first, first + 4) for why in Printed(number, interpreter).wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_many_texts_of_generated_kernels_mean_what_their_tiles_mean(first: int, interpreter: Interpreter) -> None:
    assert [why for number in range(first, first + 20) for why in Printed(number, interpreter).wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_generated_kernels_compile(name: str) -> None:
    """Into registers alone: nothing is spilled. What the architecture has not (fp8) is refused by the compiler."""
    texts = {source.text: source for number in range(16) for source in Printed(number, None).texts}
    target = architecture(name)
    chosen = [s for s in texts.values() if all(a.type.lstrip("*") in target.dtypes for a in s.arguments)]
    with Compiler(2) as compiler:
        found = compiler.attempt(chosen, target)
    assert [str(one) for one in found if isinstance(one, KernelError)] == []
    assert [one.source.text for one in found if not isinstance(one, KernelError) and one.spilled] == []
