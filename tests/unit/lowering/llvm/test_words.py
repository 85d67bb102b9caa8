"""Products of bytes by fours: one pattern of bits in the evaluator, and in each way that processors multiply them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions, DotDimensions
from gcomp.ir.types import ELEMENT_TYPES, tensor
from gcomp.lowering.llvm.codegen import Module, assembly
from gcomp.lowering.llvm.lower import launch_kernels
from gcomp.lowering.llvm.printing import print_kernel
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.tiles.tile import KernelOp
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from gcomp.testing import emulated
from gcomp.testing.machine import Kernels, run_here
from gcomp.testing.tiles import as_kernel
from tests.support.cpu import HERE
from tests.support.thinning import examples
from tests.unit.lowering.llvm.test_printing import machine
from tests.unit.lowering.triton.tiles import kernel

Array = np.ndarray[Any, Any]
INSTRUCTIONS = {"vnni": "vpdpbusd", "pairs": "vpmaddwd", "usdot": "usdot"}


def at(b: TileBuilder, rows: int, columns: int) -> SSAValue:
    return b.add(b.multiply(b.iota(rows, 0, 2), b.position(columns)), b.iota(columns, 1, 2))


def product(rows: int, words: int, columns: int) -> KernelOp:
    """The sums of rows of bytes by columns in words, added to what there was."""

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, w, y = args
        left, right, sums = at(b, rows, 4 * words), at(b, words, 4 * columns), at(b, rows, columns)
        found = b.dot(b.load(x, left, None), b.load(w, right, None), b.load(y, sums, None), "exact", words=True)
        b.store(y, sums, found, None)

    return kernel(body, ["in", "in", "out"], [ELEMENT_TYPES["ui8"], ELEMENT_TYPES["i8"], i32])


def values(rng: np.random.Generator, dtype: Any, shape: Sequence[int]) -> Array:
    """Any numbers of a type, and in half of the places its limits: pairs of products do not fit 16 bits."""
    limits = np.iinfo(dtype)
    every = rng.integers(limits.min, limits.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.5, rng.choice([limits.min, limits.max], shape), every).astype(dtype)


@pytest.mark.skipif(not HERE, reason="no code for this machine")
@settings(max_examples=examples(15), deadline=None)
@given(
    rows=st.integers(1, 13), words=st.integers(1, 9), columns=st.sampled_from((1, 2, 4, 8, 16, 32, 48, 64)),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_every_way_gives_the_sums_of_products_modulo_2_to_the_32(
    rows: int, words: int, columns: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, w = values(rng, np.uint8, (rows, 4 * words)), values(rng, np.int8, (words, columns, 4))
    start = values(rng, np.int32, (rows, columns))
    by_terms = w.astype(np.int64).transpose(0, 2, 1).reshape(4 * words, columns)
    expected = (x.astype(np.int64) @ by_terms + start).astype(np.int32)
    made = product(rows, words, columns)
    for variant in HERE:
        for way in dict.fromkeys((variant.words, "")):
            found = machine(made, [1], [x, w, start], variant.bits, way, variant)[-1]
            assert (found.reshape(expected.shape) == expected).all(), (variant.name, way)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
def test_a_processor_multiplies_in_its_own_way(variant: Variant) -> None:
    text = print_kernel(product(6, 8, 32), "k", variant.bits, variant.words)
    found = assembly(Module("k", text), variant)
    assert {name for name in INSTRUCTIONS.values() if name in found} == {INSTRUCTIONS.get(variant.words, "")} - {""}
    assert "vpmaddubsw" not in found  # which saturates


# ---- layers -------------------------------------------------------------------------------------------------------

LAYERS = (
    'pack-dot-weights{target="cpu"},fold-constants,canonicalize,cse,dce,fuse,pack-convolution-weights{target="cpu"}'
)


def dot(rows: int, terms: int, columns: int, contracted: int = 0) -> Program:
    program = Program.empty([("x", tensor((rows, terms), "ui8"))])
    b = Builder(program)
    shape = (terms, columns) if contracted == 0 else (columns, terms)
    w = b.weight("w", values(np.random.default_rng(1), np.int8, shape))
    numbers = DotDimensions((), (), (1,), (contracted,))
    return finished(program, b, b.dot(program.block.args[0], w, numbers, "i32"))


def convolution(size: int, channels: int, features: int, kernel: int, stride: int, groups: int = 1) -> Program:
    program = Program.empty([("x", tensor((2, size, size, channels), "ui8"))])
    b = Builder(program)
    w = b.weight("w", values(np.random.default_rng(1), np.int8, (kernel, kernel, channels // groups, features)))
    out = (size - kernel) // stride + 1
    properties = {
        "dimension_numbers": ConvDimensions.channels_last(2), "window_strides": [stride] * 2, "padding": [(0, 0)] * 2,
        "feature_group_count": groups,
    }  # fmt: skip
    type = tensor((2, out, out, features), "i32")
    return finished(program, b, b.emit(hlo.ConvolutionOp, program.block.args[0], w, types=(type,), **properties))


def finished(program: Program, b: Builder, total: SSAValue) -> Program:
    """Sums, and what quantization makes of them: scaled, rounded, and clamped to signed bytes."""
    wide = b.emit(hlo.RoundNearestEvenOp, b.scale(b.convert(total, "f32"), 2.0**-12))
    low, high = b.full_like(wide, -128), b.full_like(wide, 127)
    clamped = b.select(b.compare(wide, low, "GE"), b.minimum(wide, high), low)
    program.finish([("sums", total), ("bytes", b.convert(clamped, "i8"))])
    program.verify("as built")
    return program


CASES: Mapping[str, Program] = {
    "few rows": dot(3, 64, 64),
    "one row": dot(1, 200, 96),
    "many rows": dot(130, 512, 64),
    "terms and columns that fill no panel": dot(7, 103, 70),
    "a weight that lies across": dot(5, 96, 48, 1),
    "3x3": convolution(8, 8, 32, 3, 1),
    "strided": convolution(9, 16, 64, 3, 2),
    "a large window": convolution(11, 256, 64, 3, 1),
    "features in no panels": convolution(6, 8, 24, 3, 1),
    "channels in no words": convolution(6, 6, 32, 3, 1),
    "grouped": convolution(6, 16, 32, 3, 1, 2),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
@pytest.mark.parametrize("name", CASES)
def test_layers_give_the_graphs_integers(name: str, variant: Variant) -> None:
    if not runs(variant) and (variant.machine == "x86_64" or (why := emulated.missing(variant.name))):
        pytest.skip(f"SKIPPED: {why if variant.machine != 'x86_64' else 'this processor does not run it'}")
    program = CASES[name].clone()
    x = values(np.random.default_rng(0), np.uint8, program.inputs()[0].shape)  # type: ignore[arg-type]
    expected = interpret(program, [x])
    PassManager(parse_pipeline(LAYERS)).run(program)
    (launch,) = [op for op in program.block.ops if isinstance(op, LaunchOp) and op.kind_name != "loop"]
    scheduled = schedule(launch, "k", program.ranges, settings_for(launch, program.ranges, variant.bits))
    inputs = [program.weights[v.owner.symbol] if isinstance(v.owner, WeightOp) else x for v in launch.operands]
    kernels = Kernels(scheduled, variant.bits, variant.words)
    kernels.compile(variant)
    found = kernels.run(launch, inputs, {}, run_here if runs(variant) else emulated.Emulator(variant.machine))
    for old, evaluated, new in zip(expected, execute(launch, scheduled, inputs, {}), found, strict=True):
        # A kernel may leave a result in the shape that it is computed in.
        assert (old == evaluated.reshape(old.shape)).all()
        assert (old == new.reshape(old.shape)).all()


@pytest.mark.parametrize("name", CASES)
def test_all_products_by_packed_weights_are_of_words(name: str) -> None:
    program = CASES[name].clone()
    PassManager(parse_pipeline(LAYERS)).run(program)
    (launch,) = [op for op in program.block.ops if isinstance(op, LaunchOp) and op.kind_name != "loop"]
    text = launch_kernels(launch, program.ranges, 512, "vnni").kernels[0].text
    packed = not name.endswith("no words") and name != "features in no panels"
    assert ("vpdpbusd" in text) == packed


def test_products_of_one_term_have_settings_too() -> None:
    program = Program.empty([("x", tensor((1, 1), "f32"))])
    (x,) = program.block.args
    program.finish([("y", Builder(program).dot(x, x, DotDimensions((), (), (1,), (1,))))])
    launch = next(op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    assert settings_for(launch, program.ranges, 512).get("rows", 0) == 1
