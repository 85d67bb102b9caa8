"""Tile programs as machine code: every op, in registers and in memory, gives the evaluator's bits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from gcomp.dtypes import DTYPES, dtype_of, is_narrow_float
from gcomp.ir.types import ELEMENT_TYPES
from gcomp.lowering.llvm import arithmetic
from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.lanes import uniform
from gcomp.lowering.llvm.memory import rise
from gcomp.lowering.llvm.printing import is_sequential, print_kernel
from gcomp.lowering.llvm.writer import Writer
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.evaluate import Memory
from gcomp.lowering.tiles.evaluate import run as evaluated
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.nans import settle_nans
from gcomp.lowering.tiles.tile import KernelOp
from gcomp.runtime.cpu.variants import Variant
from gcomp.testing.machine import differences
from tests.mapped import Mapped
from tests.support.cpu import HERE
from tests.unit.lowering.triton.tiles import kernel

Array = np.ndarray[Any, Any]
WIDTHS = sorted({variant.bits for variant in HERE})
pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")
Body = Callable[[TileBuilder, list[SSAValue]], None]


def machine(
    kernel: KernelOp, grid: Sequence[int], arrays: Sequence[Array | int], bits: int, words: str = "",
    given: Variant | None = None,
) -> list[Array]:  # fmt: skip
    """What a kernel leaves in its buffers, as machine code for a given kind of processor, or one of so many bits."""
    variant = given or next(variant for variant in HERE if variant.bits == bits)
    mapped = Mapped(compile_image([Module("k", print_kernel(kernel, "k", bits, words))], variant))
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in copies]
    slots = (ctypes.c_int64 * (len(values) + len(grid)))(*values, *grid)
    function = mapped.function("k", [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64])
    function(ctypes.addressof(slots), 0, int(np.prod(grid)))
    return [a for a in copies if isinstance(a, np.ndarray)]


def agree(body: Body, roles: str, types: Sequence[Attribute], arrays: Sequence[Array | int], grid: int = 1) -> None:
    """A kernel leaves the same bits in its buffers in the evaluator and with vectors of all widths that are here."""
    made = kernel(body, roles.split(), types, (grid,))
    expand(made)
    memories = [Memory.of(a.copy()) if isinstance(a, np.ndarray) else a for a in arrays]
    evaluated(made, [grid], memories)
    expected = [m.data for m in memories if isinstance(m, Memory)]
    for bits in WIDTHS:
        for old, new in zip(expected, machine(made, [grid], arrays, bits), strict=True):
            assert list(differences(old, new.reshape(-1))) == [], bits


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def at(b: TileBuilder, rows: int, columns: int) -> SSAValue:
    """The places of a tile of rows."""
    return b.add(b.multiply(b.iota(rows, 0, 2), b.position(columns)), b.iota(columns, 1, 2))


SHAPES = [(1, 1), (4, 1), (2, 4), (8, 8), (16, 32), (4, 32), (24, 128), (1, 1024), (64, 64), (64, 512), (1024, 1)]
"""Of tiles in registers, and in memory."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_and_scans_keep_their_order(shape: tuple[int, int], axis: int) -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, total, sums, back = args
        read = b.load(x, at(b, *shape), None)
        (found,) = b.reduce([read], axis, lambda a, c: [b.apply("add", a[0], c[0])])
        folded = (1, shape[1]) if axis == 0 else (shape[0], 1)
        b.store(total, at(b, *folded), found, None)
        for target, reverse in ((sums, False), (back, True)):
            (found,) = b.scan([read], axis, lambda a, c: [b.apply("add", a[0], c[0])], reverse)
            b.store(target, at(b, *shape), found, None)

    empty = np.zeros(shape, np.float32)
    agree(body, "in out out out", [f32] * 4, [floats(*shape), np.zeros(max(shape), np.float32), empty, empty.copy()])


@pytest.mark.parametrize("shape", [(1, 32), (4, 48), (3, 80), (6, 1040), (2, 16, 64)])
@pytest.mark.parametrize("count", [1, 2])
def test_chains_are_combined_before_halves(shape: tuple[int, ...], count: int) -> None:
    rows = prod(shape[:-1])

    def combine(a: Sequence[SSAValue], c: Sequence[SSAValue], b: TileBuilder) -> list[SSAValue]:
        return [b.apply("add", a[0], c[0]), *([b.apply("subtract", a[1], c[0])] if count > 1 else [])]

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        read = b.reshape(b.load(args[0], at(b, rows, shape[-1]), None), shape)
        found = b.reduce([read] * count, len(shape) - 1, lambda a, c: combine(a, c, b), 16)
        b.store(args[1], at(b, rows, 1), b.reshape(found[-1], (rows, 1)), None)

    agree(body, "in out", [f32] * 2, [floats(*shape), np.zeros(rows, np.float32)])


@pytest.mark.parametrize("rows", [3, 4, 8, 24, 48, 64, 512])
@pytest.mark.parametrize("turns", [2, 7])
def test_columns_are_vectors_along_the_rows(rows: int, turns: int) -> None:
    """Statistics of rows: the places of maxima, what is computed of them, carried by loops printed once or often."""
    shape = (rows, 16)

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, w, y, top, found_at = args
        weight = b.load(w, b.iota(rows, 0, 2), None)

        def larger(a: Sequence[SSAValue], c: Sequence[SSAValue]) -> list[SSAValue]:
            first = b.apply("or", b.apply("gt", a[0], c[0]), b.apply("eq", a[0], c[0]))
            return [b.apply("select", first, a[0], c[0]), b.apply("select", first, a[1], c[1])]

        def step(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            best, place, total = carried
            read = b.load(x, b.add(at(b, *shape), b.multiply(index, b.position(rows * 16))), None)
            read = b.add(read, b.broadcast(best, shape))
            high, here = b.reduce([read, b.broadcast(b.iota(16, 1, 2), shape)], 1, larger)
            high = b.multiply(b.add(high, weight), b.constant(0.75, "f32"))
            is_new = b.apply("gt", high, best)
            place = b.apply("select", is_new, b.add(here, b.multiply(index, b.position(16))), place)
            return [b.apply("select", is_new, high, best), place, b.add(total, b.multiply(read, weight))]

        start = [b.constant(-1.0, "f32", (rows, 1)), b.broadcast(b.position(0), (rows, 1)), b.constant(0, "f32", shape)]
        best, place, total = b.loop(b.position(0), b.position(turns), 1, start, step)
        b.store(y, at(b, *shape), b.apply("subtract", total, b.broadcast(best, shape)), None)
        b.store(top, b.iota(rows, 0, 1), b.reshape(best, (rows,)), None)
        b.store(found_at, b.iota(rows, 0, 2), place, None)

    results = [np.zeros(shape, np.float32), np.zeros(rows, np.float32), np.zeros(rows, np.int32)]
    arrays = [floats(turns, *shape), floats(rows), *results]
    agree(body, "in in out out out", [f32, f32, f32, f32, i32], arrays)


@pytest.mark.parametrize(("loads", "unrolled"), [(1, True), (40, False)])
def test_few_iterations_are_printed_one_by_one_if_they_are_short(loads: int, unrolled: bool) -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y = args

        def turn(index: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            (total,) = carried
            for n in range(loads):
                place = b.add(at(b, 1, 64), b.multiply(b.add(index, b.position(n)), b.position(64)))
                total = b.add(total, b.load(x, place, None))
            return [total]

        (total,) = b.loop(b.position(0), b.position(4), 1, [b.constant(0, "f32", (1, 64))], turn)
        b.store(y, at(b, 1, 64), total, None)

    made = kernel(body, ["in", "out"], [f32, f32])
    expand(made)
    assert ("phi <8 x float>" not in print_kernel(made, "k", 256)) == unrolled
    agree(body, "in out", [f32, f32], [floats(44, 64), np.zeros((1, 64), np.float32)])


def test_regions_may_have_loops() -> None:
    """The remainder of floats is one."""

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y, z = args
        read = b.load(x, at(b, 2, 32), None)
        (found,) = b.reduce([read], 1, lambda a, c: [b.apply("remainder", a[0], c[0])])
        b.store(y, at(b, 2, 1), found, None)
        (found,) = b.scan([read], 1, lambda a, c: [b.apply("remainder", a[0], c[0])], False)
        b.store(z, at(b, 2, 32), found, None)

    agree(body, "in out out", [f32] * 3, [floats(2, 32) * 1e3, np.zeros(2, np.float32), np.zeros((2, 32), np.float32)])


SIZES = [
    (1, 1, 1),
    (8, 32, 32),
    (2, 4, 64),
    (64, 16, 64),
    (16, 64, 1),
    (128, 1, 128),
    (6, 8, 32),
    (7, 16, 16),
    (35, 4, 64),
]
NARROW = sorted(filter(is_narrow_float, DTYPES))


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize("kinds", [("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f32"), ("i8", "i32")])
def test_products_are_chains_of_fused_sums(m: int, k: int, n: int, kinds: tuple[str, str]) -> None:
    narrow, wide = (ELEMENT_TYPES[kind] for kind in kinds)

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        lhs, rhs, out = args
        acc = b.constant(0, kinds[1], (m, n))
        found = b.dot(b.load(lhs, at(b, m, k), None), b.load(rhs, at(b, k, n), None), acc, "exact")
        b.store(out, at(b, m, n), found, None)

    random = np.random.default_rng(1)
    sides = [(random.standard_normal(s) * 40).astype(dtype_of(kinds[0])) for s in ((m, k), (k, n))]
    agree(body, "in in out", [narrow, narrow, wide], [*sides, np.zeros((m, n), dtype_of(kinds[1]))])


@pytest.mark.parametrize(
    ("rows", "columns", "given"), [(24, 48, 24), (20, 24, 18), (30, 32, 25), (12, 16, 1), (66, 24, 64)]
)
@pytest.mark.parametrize("terms", [64, 67])
def test_products_of_many_rows_add_to_their_sums_where_these_lie(
    rows: int, columns: int, given: int, terms: int
) -> None:
    """Rows beyond those `given` are left out, and so are terms; what follows the sums is computed as it is stored."""
    step = 32

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        lhs, rhs, out, n = args
        row, column = b.iota(rows, 0, 2), b.iota(columns, 1, 2)
        is_row = b.apply("lt", row, b.position(given))

        def turn(start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            across, down = b.add(start, b.iota(step, 1, 2)), b.add(start, b.iota(step, 0, 2))
            left = b.apply("and", is_row, b.apply("lt", across, n)) if terms % step else is_row
            x = b.load(lhs, b.add(b.multiply(row, n), across), left)
            y = b.load(rhs, b.add(b.multiply(down, b.position(columns)), column), None)
            return [b.dot(x, y, carried[0], "exact")]

        (sums,) = b.loop(b.position(0), n, step, [b.constant(0, "f32", (rows, columns))], turn)
        half = b.multiply(sums, b.constant(0.5, "f32", (rows, columns)))
        found = b.add(b.multiply(half, sums), b.apply("maximum", half, sums))
        b.store(out, b.add(b.multiply(row, b.position(columns)), column), found, is_row)

    sides = [floats(given, terms), floats(terms + step, columns)]
    agree(body, "in in out size", [f32, f32, f32, i32], [*sides, np.zeros((given, columns), np.float32), terms])


def test_tiles_in_memory_are_exchanged() -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y, z, n = args
        start = [b.load(x, at(b, 64, 16), None), b.constant(0.5, "f32", (64, 16))]
        turned = b.loop(b.position(0), n, 1, start, lambda _, carried: [carried[1], carried[0]])
        for out, found in zip((y, z), turned, strict=True):
            b.store(out, at(b, 64, 16), found, None)

    for count in (1, 7, 8):
        zeros = np.zeros((64, 16), np.float32)
        agree(body, "in out out size", [f32, f32, f32, i32], [floats(64, 16), zeros, zeros, count])


@pytest.mark.parametrize("terms", [16, 256])
def test_a_product_takes_elements_that_lie_where_memory_says(terms: int) -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        lhs, places, rhs, out = args
        place = b.cast(b.apply("maximum", b.load(places, at(b, 1, terms), None), b.constant(0, "i64")), "i32")
        acc = b.constant(0, "f32", (1, 8))
        found = b.dot(b.load(lhs, place, None), b.load(rhs, at(b, terms, 8), None), acc, "exact")
        b.store(out, at(b, 1, 8), found, None)

    places = np.random.default_rng(0).integers(-3, terms, terms)
    agree(body, "in in in out", [f32, i64, f32, f32], [floats(terms), places, floats(terms, 8), floats(1, 8)])


def test_a_product_s_columns_need_not_all_be_neighbours() -> None:
    """Of columns that come in parts of 12, the second piece of 8 or 16 has some of two parts."""
    m, k, n, part, apart = 4, 8, 48, 12, 16

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        lhs, rhs, out = args
        column = b.iota(n, 1, 2)
        parts = b.multiply(b.apply("divide_positive", column, b.position(part)), b.position(apart))
        place = b.add(parts, b.apply("modulo_positive", column, b.position(part)))
        rows = b.multiply(b.iota(k, 0, 2), b.position(n // part * apart))
        acc = b.constant(0, "f32", (m, n))
        found = b.dot(b.load(lhs, at(b, m, k), None), b.load(rhs, b.add(rows, place), None), acc, "exact")
        b.store(out, at(b, m, n), found, None)

    sides = [floats(m, k), floats(k, n // part * apart)]
    agree(body, "in in out", [f32] * 3, [*sides, np.zeros((m, n), np.float32)])


@pytest.mark.parametrize("narrow", NARROW)
def test_narrow_floats_are_what_numpy_makes_of_them(narrow: str) -> None:
    """All numbers of a type in f32; and numbers around all halves between two of them, from f32 and f64."""
    dtype = dtype_of(narrow)
    every = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(all="ignore"):
        wide = every.astype(np.float64)
        finite = np.sort(wide[np.isfinite(wide)])
        between = (finite[1:] + finite[:-1]) / 2
        near = np.concatenate([between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf), wide,
                               between * (1 + 2.0**-30), [3e38, -3e38, 1e-44, np.nan, np.inf]])  # fmt: skip
        single = near.astype(np.float32)
    for kind, source in (("f32", single), ("f64", near)):
        count = 1 << (len(source) - 1).bit_length()
        source = np.resize(source, count)
        blocks = max(1, count // 1024)

        def body(b: TileBuilder, args: list[SSAValue], kind: str = kind, count: int = count) -> None:
            x, y, z = args
            place = b.add(b.multiply(b.program_id(0), b.position(min(count, 1024))), b.iota(min(count, 1024), 0, 1))
            found = b.cast(b.load(x, place, None), narrow)
            b.store(y, place, found, None)
            b.store(z, place, b.cast(found, kind), None)

        types = [ELEMENT_TYPES[kind], ELEMENT_TYPES[narrow], ELEMENT_TYPES[kind]]
        agree(body, "in out out", types, [source, np.zeros(count, dtype), np.zeros(count, source.dtype)], blocks)


@pytest.mark.parametrize("shape", [(4, 4), (8, 16), (16, 2), (128, 32), (16, 62)])
@pytest.mark.parametrize("kind", ["f32", "f64", "i8", "i1"])
@pytest.mark.parametrize("masked", [False, True])
def test_blocks_are_transposed_in_registers(shape: tuple[int, int], kind: str, masked: bool) -> None:
    """Of what is loaded where it is read, what a mask leaves out, and what lies on the stack."""
    rows, columns = shape

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y = args
        mask = b.apply("lt", b.iota(rows, 0, 2), b.position(max(1, rows - 3))) if masked else None
        b.store(y, at(b, columns, rows), b.transpose(b.load(x, at(b, rows, columns), mask)), None)

    x = (np.arange(rows * columns) % 251 % (2 if kind == "i1" else 251)).reshape(shape)
    dtype = {**DTYPES, "i1": np.bool_}[kind]
    agree(body, "in out", [ELEMENT_TYPES[kind]] * 2, [x.astype(dtype), np.zeros((columns, rows), dtype)])


@pytest.mark.parametrize("shape", [(8, 8), (64, 64)])
def test_elements_change_their_places(shape: tuple[int, int]) -> None:
    """Transposed, in another shape, every other element, with a mask for each, and repeated."""

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y, n = args
        count = shape[0] * shape[1]
        read = b.load(x, b.multiply(at(b, *shape), b.position(2)), b.apply("lt", at(b, *shape), n))
        turned = b.reshape(b.transpose(read), (count,))
        row = b.load(x, b.iota(shape[1], 1, 2), None)
        both = b.add(b.reshape(turned, shape), b.broadcast(row, shape))
        b.store(y, at(b, *shape), both, b.apply("ne", at(b, *shape), b.position(5)))

    agree(body, "in out size", [f32, f32, i32], [floats(2 * shape[0] * shape[1]), floats(*shape), 37])


def test_a_loop_carries_what_registers_hold_and_what_they_do_not() -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y, n = args

        def turn(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            small, large = carried
            found = b.load(x, b.add(at(b, 1, 16), index), None)
            return [b.add(b.multiply(small, found), large_row(b, large)), b.add(large, b.broadcast(small, (64, 16)))]

        def large_row(b: TileBuilder, large: SSAValue) -> SSAValue:
            return b.reduce([large], 0, lambda a, c: [b.apply("maximum", a[0], c[0])])[0]

        start = [b.constant(1.5, "f32", (1, 16)), b.load(x, at(b, 64, 16), None)]
        small, large = b.loop(b.position(0), n, 3, start, turn)
        b.store(y, at(b, 64, 16), b.add(large, small), None)

    for count in (0, 1, 30):
        agree(body, "in out size", [f32, f32, i32], [floats(64, 16), np.zeros((64, 16), np.float32), count])


def test_elements_are_combined_in_order_by_one_thread() -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y = args
        place = b.add(b.multiply(b.program_id(0), b.position(16)), b.iota(16, 0, 1))
        b.atomic("add", y, b.apply("modulo_positive", place, b.position(3)), b.load(x, place, None),
                 b.apply("ne", place, b.position(7)))  # fmt: skip

    made = kernel(body, ["in", "inout"], [f32, f32], (4,))
    assert is_sequential(made)
    agree(body, "in inout", [f32, f32], [floats(64) * 1e4, np.ones(3, np.float32)], 4)


def test_nan_has_one_form_where_its_bits_are_seen() -> None:
    """What arithmetic makes is the positive quiet NaN; what was read keeps its bits; a sign that is flipped is."""

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y, z = args
        read = b.load(x, b.iota(4, 0, 1), None)
        made = b.apply("subtract", read, read)
        b.store(y, b.iota(4, 0, 1), b.bitcast(b.apply("negate", made), "i32"), None)
        b.store(z, b.iota(4, 0, 1), read, None)

    nans = np.array([0x7FC00001, 0xFFC00000, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)
    made = kernel(body, ["in", "out", "out"], [f32, i32, f32])
    settle_nans(made)
    before = str(made)
    settle_nans(made)
    assert str(made) == before
    for width in WIDTHS:
        _, bits, kept = machine(made, [1], [nans, np.zeros(4, np.int32), np.zeros(4, np.float32)], width)
        assert bits.view(np.uint32).tolist() == [0xFFC00000] * 4
        assert kept.tobytes() == nans.tobytes()


def test_neighbours_are_loaded_as_vectors_and_places_are_scalars() -> None:
    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y = args
        place = b.add(b.multiply(b.program_id(0), b.position(64)), b.iota(64, 0, 1))
        row = b.apply("divide_positive", place, b.position(128))
        found = b.add(b.load(x, place, None), b.load(x, row, None))
        b.store(y, place, b.apply("sqrt", found), b.apply("lt", place, b.position(1000)))

    made = kernel(body, ["in", "out"], [f32, f32], (16,))
    text = print_kernel(made, "k", 512)
    assert "gather" not in text and "scatter" not in text
    assert text.count("load <16 x float>") == 4 and "sdiv <" not in text


def test_rounding_is_never_given_up() -> None:
    """No flag lets LLVM compute anything but what the text says."""

    def body(b: TileBuilder, args: list[SSAValue]) -> None:
        x, y = args
        found = b.load(x, b.iota(8, 0, 1), None)
        b.store(y, b.iota(8, 0, 1), b.apply("add", b.apply("multiply", found, found), found), None)

    made = kernel(body, ["in", "out"], [f64, f64])
    text = print_kernel(made, "k", 512)
    assert not any(flag in text for flag in ("fast", "contract", "reassoc", "nnan", "ninf", "nsz", "arcp", "afn"))
    x = np.full(8, 1 + 2.0**-30)
    assert machine(made, [1], [x, x * 0], HERE[-1].bits)[1].tolist() == (x * x + x).tolist()


def test_positions_that_repeat_one_do_not_rise() -> None:
    b = TileBuilder(Block(), i32)
    one = b.add(b.program_id(0), b.position(3))
    rows = b.add(b.multiply(b.iota(4, 0, 2), b.position(5)), b.iota(2, 1, 2))
    assert rise(b.broadcast(one, (4, 2))) == 0
    assert rise(b.add(b.broadcast(one, (4, 2)), rows)) == 5


POSITIONS = [0, 1, 2, 115, 116, 117, 12_345, (1 << 31) + 7, (1 << 49) - 1, (1 << 50) - 33]
SIZES = [1, 2, 3, 7, 13, 116, 997, (1 << 20) - 1, (1 << 31) + 11, (1 << 49) - 1]


@pytest.mark.parametrize("shape", [(32,), (12, 1), (9, 1), (2, 16)])
@pytest.mark.parametrize("size", SIZES)
def test_positions_are_divided_by_any_size(shape: tuple[int, ...], size: int) -> None:
    count = prod(shape)

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        given, quotients, rests = arguments
        first, divisor = (b.load(given, b.position(n), None) for n in (0, 1))
        axis = next(k for k, n in reversed([*enumerate(shape)]) if n > 1)
        places = b.iota(shape[axis], axis, len(shape))
        if shape == (2, 16):
            places = at(b, *shape)
        lanes = b.add(first, b.cast(places, "i64"))
        for target, function in ((quotients, "divide_positive"), (rests, "modulo_positive")):
            b.store(target, places, b.apply(function, lanes, divisor), None)
        known = b.constant(size, "i64")
        b.store(quotients, b.add(places, b.position(count)), b.apply("divide_positive", lanes, known), None)
        b.store(rests, b.add(places, b.position(count)), b.apply("modulo_positive", lanes, known), None)

    for first in POSITIONS:
        empty = np.zeros(2 * count, np.int64)
        agree(body, "in out out", [i64, i64, i64], [np.array([first, size]), empty, empty])


def test_the_power_of_an_even_number_is_a_multiple_of_no_number_without_end() -> None:
    w = Writer()
    found = uniform("i32", "%x", multiple=2)
    for _ in range(100):
        found = arithmetic.apply(w, "multiply", [found, found])
    assert 1 < found.multiple < 1 << 64
