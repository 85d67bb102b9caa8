"""pack-convolution-weights on what its textual tests cannot hold: what is stored, and the bits of the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions
from gcomp.ir.types import shape_of, tensor
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import schedule
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline


def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def convolution(features: int, pipeline: str) -> Program:
    """A convolution with bias, by a weight of so many features, after a pipeline."""
    program = Program.empty([("x", tensor((1, 6, 5, 3), "f32"))])
    b = Builder(program)
    (x,) = program.block.args
    y = b.emit(
        hlo.ConvolutionOp, x, b.weight("w", numbers(3, 2, 3, features)), types=(tensor((1, 6, 4, features), "f32"),),
        dimension_numbers=ConvDimensions.channels_last(2), padding=[(1, 1), (0, 0)],
    )  # fmt: skip
    program.finish([("y", b.add(y, b.weight("bias", numbers(features))))])
    PassManager(parse_pipeline(pipeline)).run(program)
    return program


def result(program: Program, bits: int) -> bytes:
    """The bits that the kernel of a program gives."""
    (launch,) = [op for op in program.block.ops if isinstance(op, LaunchOp)]
    scheduled = schedule(launch, "k", program.ranges, settings_for(launch, program.ranges, bits))
    inputs = [
        np.ascontiguousarray(program.weights[v.owner.symbol])
        if isinstance(v.owner, WeightOp)
        else numbers(*[s for s in shape_of(v) if isinstance(s, int)])
        for v in launch.operands
    ]
    return execute(launch, scheduled, inputs, {})[0].tobytes()


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(("features", "panels"), [(64, (2, 32)), (48, (3, 16))])
def test_a_kernel_reads_panels_and_keeps_its_bits(features: int, panels: tuple[int, int], bits: int) -> None:
    plain, packed = convolution(features, "fuse"), convolution(features, "fuse,pack-convolution-weights")
    assert {op.symbol for op in packed.ops() if isinstance(op, WeightOp)} == {"bias", "w.1"}
    assert packed.weights["w.1"].shape == (panels[0], 3, 2, 3, panels[1])
    assert result(packed, bits) == result(plain, bits)


@pytest.mark.parametrize("features", [16, 40])
def test_one_panel_and_features_in_none_stay(features: int) -> None:
    program = convolution(features, "fuse,pack-convolution-weights")
    assert {op.symbol for op in program.ops() if isinstance(op, WeightOp)} == {"bias", "w"}
