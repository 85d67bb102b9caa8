"""How kernels are cut for processors: what decides, and what must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import choose
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named


def choice_in(text: str, **weights: np.ndarray[Any, Any]) -> tuple[str, dict[str, int]]:
    """The algorithm and the settings of a program's only product."""
    program = Program.parse(text)
    for name, array in weights.items():
        program.weights.add(name, array)
    PassManager(parse_pipeline(target_named("cpu").pipeline())).run(program)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "matmul"]
    found = choose(launch, program.ranges, 512)
    return found.algorithm, dict(found.values)


def reshaped(shape: str, rows: int, terms: int) -> tuple[str, dict[str, int]]:
    """The choice for an argument of this shape, as rows of terms, by 96 columns."""
    x, y = f"tensor<{shape}xf32>", f"tensor<{rows}x96xf32>"
    left, w = f"tensor<{rows}x{terms}xf32>", f"tensor<{terms}x96xf32>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.reshape %x : ({x}) -> {left}
      %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : ({left}, {w}) -> {y}
      func.return %1 : {y}
    }}"""
    return choice_in(text, w=np.ones((terms, 96), np.float32))


@pytest.mark.parametrize("shape", ["1x64x192", "1x64x3x64", "4x16x12x16", "64x192x1x1"])
def test_a_product_is_cut_alike_in_whatever_shape_its_rows_come(shape: str) -> None:
    """Rows lie where they lay: exports of one batch, and of heads side by side, reshape them."""
    algorithm, values = reshaped(shape, 64, 192)
    assert algorithm == "packed product, many blocks of a panel"
    assert (algorithm, values) == reshaped("64x192", 64, 192)


def test_columns_that_heads_share_are_neighbours_where_those_of_one_head_are() -> None:
    """Of grouped heads, two read the same keys, at a quotient of their number."""
    q, k, y = "tensor<8x32x64xf32>", "tensor<4x128x64xf32>", "tensor<8x32x128xf32>"
    grouped, shared, heads = "tensor<4x1x128x64xf32>", "tensor<4x2x128x64xf32>", "tensor<8x128x64xf32>"
    text = f"""func.func @main(%q: {q}, %k: {k}) -> {y} {{
      %0 = stablehlo.reshape %k : ({k}) -> {grouped}
      %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 3] : ({grouped}) -> {shared}
      %2 = stablehlo.reshape %1 : ({shared}) -> {heads}
      %3 = stablehlo.dot_general %q, %2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : ({q}, {heads}) -> {y}
      func.return %3 : {y}
    }}"""
    algorithm, values = choice_in(text)
    assert algorithm == "product by columns"
    assert values["transposed"] == 1


@pytest.mark.parametrize(("terms", "taken"), [(768, 768), (46, 46), (12288, 128)])
def test_one_row_reads_columns_that_are_rows_in_memory_from_end_to_end(terms: int, taken: int) -> None:
    """As many of them beside each other as lanes; long ones in parts."""
    x, w, y = f"tensor<1x{terms}xf32>", f"tensor<5003x{terms}xf32>", "tensor<1x5003xf32>"
    algorithm, values = choice_in(f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : ({x}, {w}) -> {y}
      func.return %0 : {y}
    }}""")
    assert algorithm == "matrix-vector product by columns"
    assert (values["columns"], values["terms"]) == (16, taken)
