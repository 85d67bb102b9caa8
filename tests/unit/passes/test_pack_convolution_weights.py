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
from gcomp.lowering.tiles.schedules import Settings, schedule
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.variants import Variant
from gcomp.testing.machine import Kernels
from tests.support.cpu import HERE, of_each_width


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


def grouped(groups: int, per: int, channels: int, pipeline: str) -> Program:
    """A convolution with bias in groups of so many features, each of which reads so many channels, after a pipeline."""
    features = groups * per
    program = Program.empty([("x", tensor((1, 5, 6, groups * channels), "f32"))])
    b = Builder(program)
    y = b.emit(
        hlo.ConvolutionOp, program.block.args[0], b.weight("w", numbers(3, 3, channels, features)),
        types=(tensor((1, 5, 6, features), "f32"),), dimension_numbers=ConvDimensions.channels_last(2),
        padding=[(1, 1), (1, 1)], feature_group_count=groups,
    )  # fmt: skip
    program.finish([("y", b.add(y, b.weight("bias", numbers(features))))])
    PassManager(parse_pipeline(pipeline)).run(program)
    return program


def result(program: Program, bits: int, variant: Variant | None = None, *, together: bool = True) -> bytes:
    """The bits that the kernel of a program gives, evaluated or as machine code; groups of a vector apart if asked."""
    launch = next(op for op in program.block.ops if isinstance(op, LaunchOp) and op.kind_name == "convolution")
    settings = settings_for(launch, program.ranges, bits)
    if not together:
        settings = Settings({"exact": 1, "pieces": 1, "rows": 4, "columns": 2, "terms": 1, "windows": 1})
    scheduled = schedule(launch, "k", program.ranges, settings)
    inputs = [
        np.ascontiguousarray(program.weights[v.owner.symbol])
        if isinstance(v.owner, WeightOp)
        else numbers(*[s for s in shape_of(v) if isinstance(s, int)])
        for v in launch.operands
    ]
    if variant is None:
        return execute(launch, scheduled, inputs, {})[0].tobytes()
    kernels = Kernels(scheduled, bits)
    kernels.compile(variant)
    return kernels.run(launch, inputs, {})[0].tobytes()


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


@pytest.mark.parametrize(
    ("groups", "per", "panels"), [(2, 32, (2, 32)), (4, 48, (12, 16)), (4, 24, (4, 24)), (8, 8, (2, 32)), (3, 4, None)]
)
def test_a_panel_has_features_of_one_group_or_all_of_several(
    groups: int, per: int, panels: tuple[int, int] | None
) -> None:
    program = grouped(groups, per, 2, "fuse,pack-convolution-weights")
    (w,) = {op.symbol for op in program.ops() if isinstance(op, WeightOp)} - {"bias"}
    assert program.weights[w].shape == ((3, 3, 2, groups * per) if panels is None else (panels[0], 3, 3, 2, panels[1]))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(
    ("groups", "per", "channels"), [(8, 4, 4), (4, 8, 8), (16, 2, 2), (8, 4, 2), (2, 24, 24), (4, 16, 16)]
)
def test_groups_in_one_vector_and_apart_give_the_same_bits(
    groups: int, per: int, channels: int, bits: int, apart: bool
) -> None:  # fmt: skip
    """A group's sums are what they would be alone, evaluated and as code, with the padding in the kernel or not."""
    padded = "conv-padding-apart,fuse" if apart else "fuse"
    plain, packed = (grouped(groups, per, channels, f"{padded}{last}") for last in ("", ",pack-convolution-weights"))
    expected = result(plain, bits, together=False)
    (launch, *_) = [op for op in packed.block.ops if isinstance(op, LaunchOp) and op.kind_name == "convolution"]
    together = settings_for(launch, packed.ranges, bits).get("together", 1)
    assert together == (bits // 32 // per if per == channels and per < bits // 32 else 1)
    assert result(plain, bits) == result(packed, bits) == expected
    for variant in of_each_width(HERE):
        if variant.bits == bits:
            assert result(packed, bits, variant) == expected
