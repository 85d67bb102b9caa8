"""Each op of the graph level has elements, a schedule, or a reason; and ops on bits, and random bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir.chlo import CHLO
from gcomp.ir.native import GCOMP
from gcomp.ir.program import Program
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.lowering.tiles.elements import ROWS, WITHOUT
from gcomp.lowering.tiles.schedules import Settings
from gcomp.lowering.triton.lower import drafts
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.targets.base import target_named
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import Array, compiled, interpreted

INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
            "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}  # fmt: skip


def test_each_op_has_a_row_or_a_reason() -> None:
    ops = {*STABLEHLO.operations, *CHLO.operations}
    assert sorted(op.name for op in ops if op not in ROWS and op not in WITHOUT) == []
    assert sorted(op.name for op in ROWS if op in WITHOUT) == []
    assert all(reason and op in {*ops, *GCOMP.operations, *SDY.operations} for op, reason in WITHOUT.items())


def one(op: str, types: str, *operands: str) -> Program:
    """A program of one op; `types` as StableHLO writes them."""
    result = types.rpartition("->")[2] if "->" in types else types
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(operands))
    names = ", ".join(f"%x{i}" for i in range(len(operands)))
    return Program.parse(
        f"func.func @main({arguments}) -> {result} {{\n%r = {op.format(names)} : {types}\nfunc.return %r : {result}\n}}"
    )


def edges(dtype: str, count: int) -> Array:
    kind = INTEGERS[dtype]
    limits = np.iinfo(kind)
    few = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max - 1, limits.max // 3], kind)
    return np.concatenate([few, np.random.default_rng(0).integers(limits.min, limits.max, count - 8, kind)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_counted_and_products_have_upper_halves(dtype: str) -> None:
    t = f"tensor<64x{dtype}>"
    x = edges(dtype, 64)
    for op in ("stablehlo.popcnt {}", "stablehlo.count_leading_zeros {}"):
        assert check_kernel(one(op, t, t), "loop", [x]) == []
    assert check_kernel(one("chlo.mulhi {}", f"{t}, {t} -> {t}", t, t), "loop", [x, np.roll(x, 5)]) == []


@pytest.mark.parametrize("dtype", ["i2", "i4", "ui2", "ui4"])
def test_few_bits_are_counted_and_their_products_have_upper_halves(dtype: str) -> None:
    limits = ml_dtypes.iinfo(dtype_of(dtype))
    values = np.arange(int(limits.min), int(limits.max) + 1)
    x, y = (grid.reshape(-1).astype(dtype_of(dtype)) for grid in np.meshgrid(values, values))
    t = f"tensor<{x.size}x{dtype}>"
    wide = f"tensor<{x.size}xi32>"
    # What comes behind sees the number, and not the byte that holds it.
    program = Program.parse(f"""func.func @main(%x: {t}, %y: {t}) -> ({t}, {wide}) {{
  %h = chlo.mulhi %x, %y : {t}, {t} -> {t}
  %w = stablehlo.convert %h : ({t}) -> {wide}
  return %h, %w : {t}, {wide}
}}""")
    assert check_kernel(program, "loop", [x, y]) == []
    for op in ("stablehlo.popcnt {}", "stablehlo.count_leading_zeros {}"):
        assert check_kernel(one(op, t, t), "loop", [x]) == []


@pytest.mark.parametrize(
    ("source", "result"),
    [("6x4xi8", "6xi32"), ("6xi32", "6x4xi8"), ("6x2xf32", "6xi64"), ("6xf64", "6x4xi16"), ("6xui16", "6xbf16"),
     ("6xf32", "6x2xf16"), ("6x8xui8", "6xf64")],
)  # fmt: skip
def test_bits_are_read_as_other_types(source: str, result: str) -> None:
    program = one("stablehlo.bitcast_convert {}", f"(tensor<{source}>) -> tensor<{result}>", f"tensor<{source}>")
    kind = np.dtype(
        {"i8": "i1", "i32": "i4", "f32": "f4", "f64": "f8", "ui16": "u2", "ui8": "u1"}[source.split("x")[-1]]
    )
    shape = tuple(int(n) for n in source.split("x")[:-1])
    x = (
        np.random.default_rng(0)
        .integers(0, 120, (int(np.prod(shape)), kind.itemsize), np.uint8)
        .view(kind)
        .reshape(shape)
    )
    assert check_kernel(program, "loop", [x]) == []


@pytest.mark.parametrize("result", ["8xf8E4M3FN", "8xui8", "8xi8", "4x2xi4"])
def test_negative_numbers_of_four_bits_leave_their_neighbours_bits_alone(result: str) -> None:
    source = "8x2xi4" if result != "4x2xi4" else "4x2xi4"
    program = one("stablehlo.bitcast_convert {}", f"(tensor<{source}>) -> tensor<{result}>", f"tensor<{source}>")
    x = np.random.default_rng(0).integers(-8, 8, (int(source[0]), 2)).astype(dtype_of("i4"))
    assert check_kernel(program, "loop", [x]) == []


@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (2, 0), (11, 52), (5, 2)])
def test_precision_is_reduced(dtype: str, exponent: int, mantissa: int) -> None:
    t = f"tensor<64x{dtype}>"
    kind = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[dtype]
    x = np.random.default_rng(0).standard_normal(64) * 10.0 ** np.random.default_rng(1).integers(-7, 5, 64)
    x[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 65504, -1e-7, 1.0]
    program = one(f"stablehlo.reduce_precision {{}}, format = e{exponent}m{mantissa}", t, t)
    assert check_kernel(program, "loop", [x.astype(kind)]) == []


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 2), (5, 1), (4, 3), (4, 2), (8, 7), (3, 2), (2, 0), (6, 1)])
def test_precision_of_bytes_is_reduced(dtype: str, exponent: int, mantissa: int) -> None:
    t = f"tensor<256x{dtype}>"
    program = one(f"stablehlo.reduce_precision {{}}, format = e{exponent}m{mantissa}", t, t)
    assert check_kernel(program, "loop", [np.arange(256, dtype=np.uint8).view(dtype_of(dtype))]) == []


def random_bits(algorithm: str, words: int, shape: str) -> Program:
    s = f"tensor<{words}xui64>"
    return Program.parse(f"""
    func.func @main(%s: {s}) -> ({s}, tensor<{shape}>) {{
      %n, %r = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({s}) -> ({s}, tensor<{shape}>)
      func.return %n, %r : {s}, tensor<{shape}>
    }}""")


BITS = ["ui32", "5xui32", "3x4xui32", "3x5x7xi8", "9xui64", "3x3xf64", "0xui32", "2x3xi16", "7xi1"]


@pytest.mark.parametrize(("algorithm", "words"), [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)])
@pytest.mark.parametrize("shape", BITS)
def test_random_bits_are_the_references(algorithm: str, words: int, shape: str) -> None:
    for state in ([7, 3, 9], [2**64 - 5, 2**64 - 2, 2**64 - 1]):
        values = [np.array(state[:words], np.uint64)]
        assert check_kernel(random_bits(algorithm, words, shape), "library", values, Settings({"block": 8})) == []


def test_the_source_computes_in_tritons_interpreter() -> None:
    for algorithm, words in (("THREE_FRY", 2), ("PHILOX", 3)):
        program, values = random_bits(algorithm, words, "3x6xui32"), [np.array([7, 2**64 - 1, 9][:words], np.uint64)]
        for found, expected in zip(interpreted(program, "library", values), interpret(program, values), strict=True):
            assert np.array_equal(found, expected)


def test_kernels_fit_the_registers() -> None:
    kernels = compiled(random_bits("PHILOX", 3, "4096xui32"), "library")
    assert [kernel.stack for kernel in kernels] == [0, 0]


def test_what_has_no_row_says_why() -> None:
    t = "tensor<4xcomplex<f32>>"
    program = one("stablehlo.real {}", f"({t}) -> tensor<4xf32>", t)
    with pytest.raises(UnsupportedError, match=r"complex|no elements"):
        check_kernel(program, "loop", [np.zeros(4, np.complex64)])


def test_a_shape_of_type_index_is_refused_by_name() -> None:
    """It has no NumPy type, and asking for its bytes was a KeyError."""
    types = "(tensor<2xf32>, tensor<2xindex>) -> tensor<3x2xf32>"
    op = "stablehlo.dynamic_broadcast_in_dim {}, dims = [1]"
    program = one(op, types, "tensor<2xf32>", "tensor<2xindex>")
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(program)
    with pytest.raises(UnsupportedError, match="dynamic_broadcast_in_dim of index cannot be computed"):
        drafts(program)
