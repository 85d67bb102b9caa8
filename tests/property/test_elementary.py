"""Elementary functions as machine code: the bits of the evaluator, at most 2 units in the last place from mpmath."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import dtype_of
from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.image import Image
from gcomp.lowering.llvm.printing import print_kernel
from gcomp.lowering.tiles.evaluate import Memory, run
from gcomp.lowering.tiles.expanding import EXPANSIONS, expand
from gcomp.lowering.tiles.functions import FUNCTIONS
from gcomp.lowering.tiles.tile import KernelOp
from gcomp.runtime.cpu.variants import VARIANTS, runs
from gcomp.testing.machine import Call, differences, run_here
from tests.support.elementary import EXACT, distances, kernel_of
from tests.support.thinning import examples

Array = np.ndarray
HERE = [variant for variant in VARIANTS.values() if runs(variant)]
pytestmark = pytest.mark.skipif(not HERE, reason="SKIPPED: no code for this machine")
COUNT = 16
"""Values of an example: a vector and more, whatever its width."""
ULPS = 2.0


@cache
def kernels() -> tuple[dict[tuple[str, str], KernelOp], Image]:
    """A kernel for each function and type, and the code of all of them."""
    found = {key: kernel_of(*key, FUNCTIONS[key[0]].arity, COUNT) for key in sorted(EXPANSIONS)}
    for kernel in found.values():
        expand(kernel)
    variant = HERE[-1]
    modules = [Module(_name(*key), print_kernel(kernel, _name(*key), variant.bits)) for key, kernel in found.items()]
    return found, compile_image(modules, variant)


def _name(name: str, dtype: str) -> str:
    return f"{name}_{dtype}"


def floats(dtype: str) -> st.SearchStrategy[float]:
    """Numbers of all sizes, subnormal ones and those that are none, and the neighbours of round ones."""
    width = {"f32": 32, "f64": 64}[dtype]
    kind = dtype_of(dtype)
    quarters = st.integers(-64, 64).map(lambda n: n / 4)
    angles = st.integers(-64, 64).map(lambda n: n * np.pi / 4)
    round_ones = (quarters | angles).map(lambda x: float(kind.type(x)))
    near = st.builds(
        lambda x, up: float(np.nextafter(kind.type(x), kind.type(np.inf if up else -np.inf))), round_ones, st.booleans()
    )
    return st.floats(width=width) | round_ones | near


def _as_mpmath(name: str, operands: Sequence[Array]) -> Array:
    """Where mpmath means the same: its powers are of numbers that are not negative, its zeros have no sign."""
    if name == "power":
        return ~(operands[0] < 0)
    return ~np.any([(x == 0) & np.signbit(x) for x in operands], 0) if name == "atan2" else np.full(COUNT, True)


@pytest.mark.parametrize(("name", "dtype"), sorted(EXPANSIONS))
def test_a_function_gives_the_evaluators_bits_and_is_exact_to_two_ulps(name: str, dtype: str) -> None:
    programs, image = kernels()
    kernel, kind, arity = programs[name, dtype], dtype_of(dtype), FUNCTIONS[name].arity
    row = st.lists(floats(dtype), min_size=COUNT, max_size=COUNT)

    @settings(max_examples=examples(10), deadline=None)
    @given(st.lists(row, min_size=arity, max_size=arity))
    def holds(rows: Sequence[Sequence[float]]) -> None:
        operands = [np.array(r, kind) for r in rows]
        target = Memory.empty(COUNT, dtype)
        run(kernel, (1,), [*map(Memory.of, operands), target])
        actual = np.zeros(COUNT, kind)
        arguments = [(True, n) for n in range(arity + 1)]
        run_here(image.code, [*operands, actual], [Call(image.entries[_name(name, dtype)], arguments, [1])])
        assert list(differences(target.data, actual)) == []
        if name in EXACT:
            keep = _as_mpmath(name, operands)
            operands, actual = [x[keep] for x in operands], actual[keep]
            far = distances(name, actual, *operands)
            worst = int(far.argmax()) if far.size else 0
            assert not far.size or far[worst] <= ULPS, [x[worst] for x in (*operands, actual)]

    holds()
