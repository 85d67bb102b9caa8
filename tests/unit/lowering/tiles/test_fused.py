"""fma, and what is made of chains of it, against exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import bf16, f32, f64, i8, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.evaluate import Array, Memory, run
from gcomp.lowering.tiles.fused import fma
from gcomp.lowering.tiles.schedules.kernel import Step
from gcomp.lowering.triton.printing import print_kernel
from tests.unit.lowering.triton.tiles import kernel

FORMS = {"f32": (24, -149, np.uint32), "f64": (53, -1074, np.uint64)}
"""Type -> bits of its significand, the exponent of its smallest number, and the type of its bits."""


def rounded(number: Fraction, bits: int, least: int) -> float:
    """The nearest float, of two the even one, step by step from the definition."""
    if number == 0:
        return 0.0
    size = abs(number)
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - bits - 1, least)
    while size / Fraction(2) ** exponent >= 1 << bits:
        exponent += 1
    scaled = size / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    most = 128 if bits == 24 else 1024
    found = math.inf if whole * Fraction(2) ** exponent >= Fraction(2) ** most else math.ldexp(whole, exponent)
    return found if number > 0 else -found


def expected(a: float, b: float, c: float, form: str) -> float:
    bits, least, _ = FORMS[form]
    if not all(map(math.isfinite, (a, b, c))):
        # A product of finite numbers is finite, however large.
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c
    number = Fraction(a) * Fraction(b) + Fraction(c)
    if number == 0:
        sign = math.copysign(1, a) * math.copysign(1, b)
        return -0.0 if a * b == 0 == c and sign < 0 and math.copysign(1, c) < 0 else 0.0
    return rounded(number, bits, least)


def same(x: float, y: float) -> bool:
    return (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))


def numbers(form: str) -> st.SearchStrategy[float]:
    """Any bits, and numbers near each other whose significands are short, so that sums cancel and halves are met."""
    bits, least, kind = FORMS[form]
    width = 32 if form == "f32" else 64
    any_bits = st.integers(0, (1 << width) - 1).map(lambda n: float(np.array(n, kind).view(dtype_of(form))))
    near = st.builds(
        lambda sign, whole, low, exponent: sign * math.ldexp((whole << (bits - 6)) + low, exponent),
        st.sampled_from((-1, 1)), st.integers(1, 63), st.integers(-2, 2),
        st.integers(-bits - 8, 8) | st.integers(least, least + 3 * bits) | st.integers(-least // 2 - 60, -least // 2),
    ).map(lambda x: float(np.array(x, dtype_of(form))))  # fmt: skip
    edges = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, math.ldexp(1, least), 1.0, -1.0])
    return any_bits | near | near | edges


@pytest.mark.parametrize("form", FORMS)
def test_fma_is_the_exact_result_rounded_once(form: str) -> None:
    @settings(max_examples=400, deadline=None)
    @given(numbers(form), numbers(form), numbers(form))
    @example(math.inf, 0.0, 1.0)
    @example(1e30, 1e30, -math.inf)
    @example(1.0, -0.0, 0.0)
    @example(-1.0, 0.0, -0.0)
    def check(a: float, b: float, c: float) -> None:
        operands = [np.array([v], dtype_of(form)) for v in (a, b, c)]
        assert same(float(fma(*operands)[0]), expected(a, b, c, form))
        # What is nearly cancelled is what a product and a sum would lose.
        with np.errstate(all="ignore"):
            operands[2] = -(operands[0] * operands[1])
        assert same(float(fma(*operands)[0]), expected(a, b, float(operands[2][0]), form))

    check()


def dotted(lhs: Array, rhs: Array, acc: Array, types: tuple[Attribute, Attribute], groups: int = 1) -> Array:
    """`tile.dot` with the precision `exact` of arrays, by the evaluator."""
    m, (k, n) = lhs.shape[0], rhs.shape

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        def at(rows: int, columns: int) -> SSAValue:
            return b.add(b.multiply(b.iota(rows, 0, 2), b.position(columns)), b.iota(columns, 1, 2))

        tiles = [b.load(v, at(*shape), None) for v, shape in zip(arguments, (lhs.shape, (k, n), (m, n)), strict=False)]
        b.store(arguments[3], at(m, n), b.dot(*tiles, "exact", groups), None)

    found = kernel(body, ["in", "in", "in", "out"], [types[0], types[0], types[1], types[1]])
    found.verify()
    target = Memory.empty(m * n, dtype_text(tile.tile((), types[1])))
    run(found, (1,), [Memory.of(lhs), Memory.of(rhs), Memory.of(acc), target])
    return target.data.reshape(m, n)


@pytest.mark.parametrize("types", [(f32, f32), (bf16, f32), (f32, f64), (f64, f64)], ids=str)
def test_exact_products_are_chains_in_ascending_order(types: tuple[Attribute, Attribute]) -> None:
    kinds = [dtype_text(tile.tile((), t)) for t in types]
    random = np.random.default_rng(0)
    lhs, rhs = (random.normal(size=s).astype(dtype_of(kinds[0])) for s in ((4, 16), (16, 2)))
    acc = random.normal(size=(4, 2)).astype(dtype_of(kinds[1]))
    wanted = acc.copy()
    for i, j in np.ndindex(4, 2):
        total = float(acc[i, j])
        for k in range(16):
            total = expected(float(lhs[i, k]), float(rhs[k, j]), total, kinds[1])
        wanted[i, j] = total
    assert dotted(lhs, rhs, acc, types).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("groups", "terms", "columns"), [(4, 4, 4), (2, 3, 8), (16, 1, 2)])
def test_products_side_by_side_are_each_alone(groups: int, terms: int, columns: int) -> None:
    random = np.random.default_rng(1)
    shapes = (4, groups * terms), (terms, groups * columns), (4, groups * columns)
    lhs, rhs, acc = (random.normal(size=s).astype(np.float32) for s in shapes)
    apart = [
        dotted(
            *(side[:, g * n : (g + 1) * n] for side, n in ((lhs, terms), (rhs, columns), (acc, columns))), (f32, f32)
        )
        for g in range(groups)
    ]
    assert dotted(lhs, rhs, acc, (f32, f32), groups).tobytes() == np.concatenate(apart, axis=1).tobytes()


def test_products_side_by_side_have_their_share_of_columns() -> None:
    def body(b: TileBuilder, _: list[SSAValue]) -> None:
        b.dot(b.constant(0, f32, (4, 8)), b.constant(0, f32, (4, 6)), b.constant(0, f32, (4, 6)), "exact", 4)

    with pytest.raises(VerifyException, match="4 divides n"):
        kernel(body, [], []).verify()


def test_exact_products_of_integers_wrap() -> None:
    lhs, rhs = np.full((2, 4), -128, np.int8), np.full((4, 2), -128, np.int8)
    assert dotted(lhs, rhs, np.full((2, 2), 2**31 - 1, np.int32), (i8, i32)).tolist() == [[-(2**31) + 65535] * 2] * 2


def _dot(kind: Attribute, acc: Attribute) -> Callable[[TileBuilder, list[SSAValue]], None]:
    def body(b: TileBuilder, _: list[SSAValue]) -> None:
        x = b.constant(0, kind, (16, 16))
        b.dot(x, x, b.constant(0, acc, (16, 16)), "exact")

    return body


@pytest.mark.parametrize("types", [(f64, f32), (f32, bf16), (i8, f32), (f32, i32)], ids=str)
def test_exact_products_are_summed_in_a_type_that_holds_them(types: tuple[Attribute, Attribute]) -> None:
    with pytest.raises(VerifyException, match="exact products of"):
        kernel(_dot(*types), [], []).verify()


def test_triton_has_no_exact_products() -> None:
    step = Step(kernel(_dot(f32, f32), [], []), (), (1,))
    with pytest.raises(UnsupportedError, match="exact products cannot be compiled"):
        print_kernel(step)
