"""Kernels of generated programs mean as tile programs, and as printed, what they mean as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from gcomp.errors import UnsupportedError
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.triton.aot import Compiler, KernelError
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import architecture
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.doors import door_of
from gcomp.testing.fuzz.tile import Tile
from gcomp.testing.tiles import TileChecker

Array = np.ndarray[Any, Any]
TILE = Tile()


def _wrong(door: str, first: int, count: int, coverage: Coverage) -> list[str]:
    numbers = range(first, first + count)
    return [one.message for n in numbers if (one := door_of(door).attempt(n, 15, coverage)) is not None]


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_generated_kernels_mean_what_the_graph_means(first: int) -> None:
    coverage = Coverage()
    assert _wrong("tile", first, 20, coverage) == []
    assert coverage.judged > 10 and len(coverage.rules) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1 << 16, (1 << 16) + 2000, 100))
def test_many_generated_kernels_mean_what_the_graph_means(first: int) -> None:
    assert _wrong("tile", first, 100, Coverage()) == []


# ---- as printed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 16, 4))
def test_texts_of_generated_kernels_mean_what_their_tiles_mean(first: int) -> None:
    assert _wrong("printed", first, 4, Coverage()) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_many_texts_of_generated_kernels_mean_what_their_tiles_mean(first: int) -> None:
    assert _wrong("printed", first, 20, Coverage()) == []


class Texts(TileChecker):
    """Prints each kernel, as it is scheduled for a GPU."""

    def __init__(self, number: int) -> None:
        self.texts: list[KernelSource] = []
        program, inputs = TILE.cut(number, 15)
        super().__init__(program, lambda *_: None)
        self.run(inputs)

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        try:
            self.texts += [print_kernel(step) for step in schedule(op, "kernel", self.ranges).steps]
        except UnsupportedError:
            return


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_generated_kernels_compile(name: str) -> None:
    """Into registers alone: nothing is spilled. What the architecture has not (fp8) is refused by the compiler."""
    texts = {source.text: source for number in range(16) for source in Texts(number).texts}
    target = architecture(name)
    chosen = [s for s in texts.values() if all(a.type.lstrip("*") in target.dtypes for a in s.arguments)]
    with Compiler(2) as compiler:
        found = compiler.attempt(chosen, target)
    assert [str(one) for one in found if isinstance(one, KernelError)] == []
    assert [one.source.text for one in found if not isinstance(one, KernelError) and one.spilled] == []
