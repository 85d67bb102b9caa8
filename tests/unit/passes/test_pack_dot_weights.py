"""pack-dot-weights on what its textual tests cannot hold: what is stored, and the kernels that come of it."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dims import Size, symbol
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions, DotDimensions
from gcomp.ir.types import shape_of, tensor
from gcomp.lowering.llvm.settings import KEPT, settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import schedule
from gcomp.passes.base import PassContext
from gcomp.passes.convert.pack_dot_weights import PackDotWeights
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.variants import Variant
from gcomp.testing.machine import Kernels
from tests.support.cpu import HERE, of_each_width

PACKED = "pack-dot-weights,fold-constants"
N = symbol("n")
BY_ROWS = DotDimensions((), (), (1,), (0,))
KERNELS = "canonicalize,cse,dce,fuse"


def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def run(program: Program, pipeline: str) -> Program:
    PassManager(parse_pipeline(pipeline)).run(program)
    return program


def layer(contracted: int, columns: int = 96, rows: Size = N, terms: int = 24) -> Program:
    """A linear layer of any number of rows with bias, GELU and a residual, whose heads are taken apart."""
    program = Program.empty([("x", tensor((rows, terms), "f32")), ("residual", tensor((rows, columns), "f32"))])
    b = Builder(program)
    x, residual = program.block.args
    w = numbers(terms, columns) if contracted == 0 else numbers(columns, terms)
    y = b.dot(x, b.weight("w", w), DotDimensions((), (), (1,), (contracted,)))
    y = b.add(y, b.weight("bias", numbers(columns)))
    y = b.multiply(y, b.add(b.emit(hlo.TanhOp, b.scale(y, 0.8)), b.full_like(y, 1)))
    y = b.reshape(b.add(y, residual), (*shape_of(y)[:1], columns // 48, 48))
    program.finish([("y", b.transpose(y, (1, 0, 2)))])
    return program


def pointwise_convolution() -> Program:
    """A convolution by a kernel of one point, with bias and ReLU."""
    program = Program.empty([("x", tensor((N, 3, 3, 24), "f32"))])
    b = Builder(program)
    (x,) = program.block.args
    w, type = b.weight("w", numbers(1, 1, 24, 16)), tensor((N, 3, 3, 16), "f32")
    y = b.emit(hlo.ConvolutionOp, x, w, types=(type,), dimension_numbers=ConvDimensions.channels_last(2))
    y = b.add(y, b.weight("bias", numbers(16)))
    program.finish([("y", b.maximum(y, b.full_like(y, 0)))])
    return program


def result(program: Program, rows: int, bits: int, variant: Variant | None = None) -> bytes:
    """The bits that the one kernel of a program gives, as machine code for a kind of processor, or evaluated."""
    launches = [op for op in program.block.ops if isinstance(op, LaunchOp)]
    assert [launch.kind_name for launch in launches] in (["matmul"], ["convolution"])
    (launch,) = launches
    scheduled = schedule(launch, "k", program.ranges, settings_for(launch, program.ranges, bits))
    inputs = [
        np.ascontiguousarray(program.weights[v.owner.symbol])
        if isinstance(v.owner, WeightOp)
        else numbers(*[s if isinstance(s, int) else rows for s in shape_of(v)])
        for v in launch.operands
    ]
    kernels = Kernels(scheduled, bits)
    if variant is None:
        return execute(launch, scheduled, inputs, {"n": rows})[0].tobytes()
    kernels.compile(variant)
    return kernels.run(launch, inputs, {"n": rows})[0].tobytes()


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("contracted", [0, 1])
def test_a_layer_stays_one_kernel_and_keeps_its_bits(contracted: int, bits: int) -> None:
    plain, packed = run(layer(contracted), KERNELS), run(layer(contracted), f"{PACKED},{KERNELS}")
    assert sorted(a.shape for _, a in packed.weights.items()) == [(3, 24, 32), (96,)]
    assert result(packed, 5, bits) == result(plain, 5, bits)


@pytest.mark.parametrize(("bits", "target"), [(256, "x86-64-v3"), (256, "cpu"), (512, "x86-64-v4")])
@pytest.mark.parametrize(("rows", "terms"), [(24, 24), (53, 300), (130, 512)])
def test_many_rows_share_terms_of_a_panel_and_keep_their_bits(bits: int, target: str, rows: int, terms: int) -> None:
    plain = run(layer(0, rows=rows, terms=terms), KERNELS)
    packed = run(layer(0, rows=rows, terms=terms), f'pack-dot-weights{{target="{target}"}},fold-constants,{KERNELS}')
    (launch,) = [op for op in packed.block.ops if isinstance(op, LaunchOp)]
    width = 24 if target == "x86-64-v3" else 32
    assert {a.shape for _, a in packed.weights.items()} == {(96,), (96 // width, terms, width)}
    chosen = settings_for(launch, packed.ranges, bits)
    # Sums of few terms are cut so that those that wait do not fill the processor.
    assert width % chosen.get("columns", 0) == 0 and chosen.get("terms", 0) * width * 4 <= KEPT
    assert terms < 33 or chosen.get("columns", 0) == width
    expected = result(plain, rows, bits)
    assert result(packed, rows, bits) == expected
    for variant in of_each_width(HERE):
        if variant.bits == bits:
            assert result(packed, rows, bits, variant) == expected


def test_pointwise_convolutions_become_packed_products_of_the_same_bits() -> None:
    dots = f"conv-to-arithmetic{{max-points=0}},fold-constants,{PACKED},{KERNELS}"
    plain, packed = run(pointwise_convolution(), KERNELS), run(pointwise_convolution(), dots)
    assert sorted(a.shape for _, a in packed.weights.items()) == [(1, 24, 16), (16,)]
    assert result(packed, 2, 512) == result(plain, 2, 512)


@pytest.mark.parametrize(("columns", "panels"), [(1000, (32, 32)), (240, (8, 32)), (144, (9, 16)), (48, (3, 16))])
def test_the_best_panels_may_have_few_zeros(columns: int, panels: tuple[int, int]) -> None:
    program = Program.empty([("x", tensor((5, 24), "f32"))])
    b = Builder(program)
    y = b.dot(program.block.args[0], b.weight("w", numbers(24, columns)), BY_ROWS)
    program.finish([("y", b.emit(hlo.TanhOp, y))])
    packed = run(program, f"{PACKED},{KERNELS}")
    (w,) = [op for op in packed.ops() if isinstance(op, WeightOp)]
    assert shape_of(w.result) == (panels[0], 24, panels[1])
    (launch,) = [op for op in packed.block.ops if isinstance(op, LaunchOp)]
    assert shape_of(launch.results[0]) == (5, columns)


def test_dots_share_one_copy() -> None:
    program = Program.empty([("x", tensor((2, 16), "f32")), ("y", tensor((3, 16), "f32"))])
    b = Builder(program)
    w = b.weight("w", numbers(16, 32))
    program.finish([(str(n), b.dot(x, w, BY_ROWS)) for n, x in enumerate(program.block.args)])
    run(program, PACKED)
    assert [a.shape for _, a in program.weights.items()] == [(1, 16, 32)]


@pytest.mark.parametrize(("rows", "is_packed"), [(8, False), (16, True)])
def test_constants_that_become_weights_are_packed(rows: int, is_packed: bool) -> None:
    program = Program.empty([("x", tensor((2, rows), "f32"))])
    b = Builder(program)
    w = b.emit(hlo.ConstantOp, value=hlo.ConstantOp.dense(numbers(rows, 32)).elements_attr)
    program.finish([("y", b.dot(program.block.args[0], w, BY_ROWS))])
    assert PackDotWeights().run(program, PassContext()) == is_packed
    run(program, "fold-constants")
    assert [a.shape for _, a in program.weights.items()] == ([(1, rows, 32)] if is_packed else [])
