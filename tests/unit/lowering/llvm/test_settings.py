"""How kernels are cut for processors: what decides, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import choose
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named


def choice_of(shape: str, rows: int, terms: int) -> tuple[str, dict[str, int]]:
    """The algorithm and the settings of a product of an argument of this shape, as rows of terms, by 96 columns."""
    x, y = f"tensor<{shape}xf32>", f"tensor<{rows}x96xf32>"
    left, w = f"tensor<{rows}x{terms}xf32>", f"tensor<{terms}x96xf32>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.reshape %x : ({x}) -> {left}
      %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : ({left}, {w}) -> {y}
      func.return %1 : {y}
    }}"""
    program = Program.parse(text)
    program.weights.add("w", np.ones((terms, 96), np.float32))
    PassManager(parse_pipeline(target_named("cpu").pipeline())).run(program)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "matmul"]
    found = choose(launch, program.ranges, 512)
    return found.algorithm, dict(found.values)


@pytest.mark.parametrize("shape", ["1x64x192", "1x64x3x64", "4x16x12x16", "64x192x1x1"])
def test_a_product_is_cut_alike_in_whatever_shape_its_rows_come(shape: str) -> None:
    """Rows lie where they lay: exports of one batch, and of heads side by side, reshape them."""
    algorithm, values = choice_of(shape, 64, 192)
    assert algorithm == "packed product, many blocks of a panel"
    assert (algorithm, values) == choice_of("64x192", 64, 192)
