"""Scatters as machine code: updates that meet are done one after the other, rows in one piece."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.schedules import schedule
from tests.unit.lowering.llvm.test_lower import agree, planned

REGIONS = {
    "replace": "stablehlo.return %b : tensor<{0}>",
    "add": "%r = stablehlo.add %a, %b : tensor<{0}>\n stablehlo.return %r : tensor<{0}>",
    "maximum": "%r = stablehlo.maximum %a, %b : tensor<{0}>\n stablehlo.return %r : tensor<{0}>",
    "subtract": "%r = stablehlo.subtract %b, %a : tensor<{0}>\n stablehlo.return %r : tensor<{0}>",
}
ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
PARTS = (
    "update_window_dims = [1, 2], inserted_window_dims = [], scatter_dims_to_operand_dims = [0, 1], "
    "index_vector_dim = 1"
)
ELEMENTS = (
    "update_window_dims = [], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], "
    "index_vector_dim = 1"
)
BATCHES = (
    "update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
)
COLUMNS = (
    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
)

CASES = {
    "rows": (ROWS, (7, 40), (30, 1), (30, 40)),
    "part of rows": (ROWS, (7, 40), (9, 1), (9, 21)),
    "boxes": (PARTS, (9, 40), (12, 2), (12, 3, 11)),
    "elements": (ELEMENTS, (9, 13), (70, 2), (70,)),
    "batches of rows": (BATCHES, (5, 3, 20), (5, 1), (5, 20)),
    "columns": (COLUMNS, (6, 9), (14, 1), (6, 14)),
}
"""Dimensions, shapes of operand, indices and updates."""


def scatter(name: str, region: str, dtype: str) -> str:
    numbers, *shapes = CASES[name]
    types = [f"tensor<{'x'.join(map(str, shape))}x{t}>" for shape, t in zip(shapes, (dtype, "i32", dtype), strict=True)]
    x, i, u = types
    return f"""func.func @main(%x: {x}, %i: {i}, %u: {u}) -> {x} {{
      %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>,
          indices_are_sorted = false, unique_indices = false}}> ({{
      ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
        {REGIONS[region].format(dtype)}
      }}) : ({x}, {i}, {u}) -> {x}
      return %0 : {x}
    }}"""


def values(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    """Small numbers, and places that meet; some are out of bounds."""
    random = np.random.default_rng(len(name))
    _, shape, indices, updates = CASES[name]
    places = random.integers(-1, 1 + np.array(shape[-2:][: indices[-1]]), indices)
    x, u = (random.integers(-9, 9, sizes) for sizes in (shape, updates))
    return x.astype(dtype_of(dtype)), places.astype(np.int32), u.astype(dtype_of(dtype))


@pytest.mark.parametrize(("name", "region"), list(itertools.product(CASES, REGIONS)))
def test_updates_that_meet(name: str, region: str) -> None:
    agree(scatter(name, region, "f32"), values(name, "f32"))


@pytest.mark.parametrize("dtype", ["bf16", "i8", "ui16", "f64", "i64"])
@pytest.mark.parametrize("region", ["replace", "add", "subtract"])
def test_types(dtype: str, region: str) -> None:
    for name in ("rows", "elements"):
        agree(scatter(name, region, dtype), values(name, dtype))


@pytest.mark.parametrize("region", REGIONS)
def test_rows_take_a_copy_and_one_kernel(region: str) -> None:
    program = planned(scatter("rows", region, "f32"))
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "scatter"]
    found = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512))
    assert (len(found.steps), found.scratch) == (2, ())
    assert found.steps[0].copies
