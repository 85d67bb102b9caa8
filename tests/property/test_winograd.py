"""Convolutions by values at points: what their kernels mean, in any blocks, and their bits on all processors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dims import Size, ceildiv, symbol
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, trust
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.ir.winograd import PAIRS, evaluate, interpolate, transform, transformed
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import Settings, schedule
from gcomp.lowering.tiles.tile import MemoryOp
from gcomp.runtime.cpu.variants import VARIANTS, runs
from gcomp.testing.machine import Kernels, all_differences
from gcomp.testing.tiles import as_kernel, check_kernel

Array = np.ndarray[Any, Any]
HERE = [variant for variant in VARIANTS.values() if runs(variant)]
sizes = st.tuples(
    st.integers(1, 3), st.integers(1, 10), st.integers(1, 10), st.sampled_from([1, 3, 16, 20, 40]),
    st.sampled_from([(1, 16), (2, 4), (1, 5)]), st.sampled_from(sorted(PAIRS)),
)  # fmt: skip
blocks = st.builds(
    lambda rows, blocks, lanes, panels: Settings(
        {"rows": rows, "blocks": blocks, "lanes": lanes, "panels": panels, "exact": 1}
    ),
    st.integers(1, 5), st.integers(1, 3), st.sampled_from([1, 4, 16]), st.integers(1, 2),
)  # fmt: skip


def tiles(size: int, m: int) -> int:
    return -(-size // m)


def network(size: tuple[int, int, int, int, tuple[int, int], int], is_open: str = "") -> tuple[Program, list[Array]]:
    """A convolution with what usually follows it: a bias, what is added, an activation, a padded result.

    Of `n`, `h` and `w`, the images and their rows and columns, those are symbols that are open.
    """
    count, height, width, channels, (panels, panel), m = size
    random = np.random.default_rng(sum(size[:4]))
    features = panels * panel
    numbers: list[Array] = [
        random.standard_normal(shape).astype(np.float32)
        for shape in ((count, m * tiles(height, m) + 2, m * tiles(width, m) + 2, channels),
                      (count, height, width, features), (features,), (3, 3, channels, features))
    ]  # fmt: skip
    *inputs, window = numbers
    n, h, w = (symbol(name) if name in is_open else size for name, size in zip("nhw", size[:3], strict=True))
    shapes: list[list[Size]] = [
        [n, m * ceildiv(h, m) + 2, m * ceildiv(w, m) + 2, channels], [n, h, w, features], [features]
    ]  # fmt: skip
    program = Program.empty([(name, tensor(shape, "f32")) for name, shape in zip("xrb", shapes, strict=True)])
    weights = transformed(window, m, panel)
    argument = program.add_input("w", tensor(weights.shape, "f32"))
    x, residual, bias = program.block.args[:3]
    b = Builder(program)
    (found,) = composite(b, "gcomp.winograd", [x, argument], {"tile": m, "slice_sizes": (h, w)})
    assert isinstance(found.owner, hlo.CompositeOp)
    trust(found.owner)
    found = b.add(b.add(found, b.broadcast(bias, shapes[1], (3,))), residual)
    found = b.maximum(found, b.full_like(found, 0))
    padded = b.pad(found, b.full((), 0, "f32"), (0, 1, 0, 0), (0, 0, 2, 0))
    program.finish([("y", padded)])
    return program, [*inputs, weights]


@given(size=sizes, chosen=blocks)
@settings(max_examples=15)
def test_kernels_mean_what_the_graph_does(size: Any, chosen: Settings) -> None:
    program, inputs = network(size)
    assert check_kernel(program, "winograd", inputs, chosen) == []


@pytest.mark.skipif(not HERE, reason="no code for this machine")
@pytest.mark.parametrize(
    ("size", "is_open"),
    [
        ((2, 5, 7, 20, (2, 16), 2), ""), ((1, 9, 6, 40, (3, 16), 4), "n"), ((3, 4, 4, 64, (1, 32), 4), ""),
        ((1, 9, 7, 16, (1, 16), 2), "hw"), ((2, 13, 5, 32, (2, 16), 4), "nhw"),
    ],
)  # fmt: skip
def test_bits_are_those_of_the_evaluator_in_the_settings_of_all_processors(size: Any, is_open: str) -> None:
    program, inputs = network(size, is_open)
    whole = as_kernel(program, "winograd")
    (launch,) = [op for op in whole.block.ops if op is not whole.returned]
    given = {name: number for name, number in zip("nhw", size[:3], strict=True) if name in is_open}
    found: list[list[Array]] = []
    for bits in sorted({variant.bits for variant in VARIANTS.values()}):
        scheduled = schedule(launch, "kernel", whole.ranges, settings_for(launch, whole.ranges, bits))
        kernels = Kernels(scheduled, bits)
        kernels.compile(HERE[-1])
        evaluated = execute(launch, scheduled, inputs, given)
        assert all_differences(evaluated, kernels.run(launch, inputs, given)) == []
        found.append(evaluated)
    assert all(all_differences(found[0], other) == [] for other in found[1:])


@given(m=st.sampled_from(sorted(PAIRS)), seed=st.integers(0, 1000))
def test_products_at_points_are_a_convolution(m: int, seed: int) -> None:
    """In f64, where nothing but rounding is in between."""
    random = np.random.default_rng(seed)
    values, window = random.standard_normal(m + 2), random.standard_normal(3)

    def add(terms: Any) -> float:
        return sum(factor * value for factor, value in terms)

    products = np.array(transform(m).weights) @ window * np.array(evaluate(m, list(values), add))
    expected = [values[k : k + 3] @ window for k in range(m)]
    np.testing.assert_allclose(interpolate(m, list(products), add), expected, rtol=1e-12, atol=1e-12)


@given(m=st.sampled_from(sorted(PAIRS)))
def test_matrices_are_what_is_computed_step_by_step(m: int) -> None:
    def add(terms: Any) -> Array:
        return sum(factor * value for factor, value in terms)

    matrices = transform(m)
    np.testing.assert_array_equal(np.array(evaluate(m, list(np.eye(m + 2)), add)), matrices.inputs)
    np.testing.assert_array_equal(np.array(interpolate(m, list(np.eye(m + 2)), add)), matrices.results)
    for matrix in (matrices.inputs, matrices.results):
        np.testing.assert_array_equal(np.float32(matrix), matrix)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("channels", [16, 512, 4096])
def test_what_a_program_keeps_fits_a_stack(channels: int, bits: int) -> None:
    program, _ = network((1, 9, 9, channels, (1, 32), 4))
    (launch,) = [op for op in as_kernel(program, "winograd").block.ops if op.results]
    (step, *_) = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, bits)).steps
    held = [4 * op.size for op in step.kernel.walk() if isinstance(op, MemoryOp)]
    assert (len(held) == 3 and sum(held) <= 600 << 10) or (channels == 4096 and sum(held) <= 800 << 10)
