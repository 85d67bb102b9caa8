"""Constant data keeps its bits through text, and splats stay splats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import DTYPES, bit_width, dtype_of
from gcomp.errors import ParseError
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.program import Program
from gcomp.ir.stablehlo import ConstantOp
from gcomp.ir.types import tensor
from tests.support.thinning import examples


def parsed(literal: str, type: str) -> ElementsAttr:
    text = f"func.func @main() -> {type} {{\n  %0 = stablehlo.constant {literal} : {type}\n  return %0 : {type}\n}}"
    op = Program.parse(text).block.first_op
    assert isinstance(op, ConstantOp)
    return op.elements_attr


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of every element type and any bits that are values of it."""
    text = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    dtype, count = dtype_of(text), int(np.prod(shape))
    raw = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    bits = np.frombuffer(raw, np.uint8).copy()
    if bit_width(text) < 8:
        bits &= (1 << bit_width(text)) - 1
    if text in ("i2", "i4"):
        # Narrow signed integers are stored sign-extended.
        return bits.astype(np.int8).astype(dtype).reshape(shape)
    return bits.view(dtype).reshape(shape)


@settings(max_examples=examples(300), deadline=None)
@given(arrays())
def test_text_keeps_the_bits(array: np.ndarray) -> None:
    attr = ElementsAttr.of(array)
    literal, _, type = str(attr).rpartition(" : ")
    again = parsed(literal, type)
    assert again == attr
    assert again.array().tobytes() == np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("text", ["f32", "f64", "bf16", "i8"])
def test_large_data_is_hexadecimal_and_comes_back(text: str) -> None:
    array = np.arange(1000).astype(dtype_of(text)).reshape(10, 100)
    literal, _, type = str(ElementsAttr.of(array)).rpartition(" : ")
    assert literal.startswith('dense<"0x')
    assert parsed(literal, type).array().tobytes() == array.tobytes()


def test_a_splat_of_any_size_costs_one_element() -> None:
    attr = parsed("dense<1.0>", "tensor<1000000x1000000xf32>")
    assert attr.is_splat and len(attr.data.data) == 4
    assert attr.array().shape == (1000000, 1000000)


@pytest.mark.parametrize(
    ("literal", "type"),
    [
        ("dense<1>", "tensor<2xf32>"),
        ("dense<1.5>", "tensor<2xi32>"),
        ("dense<300>", "tensor<2xi8>"),
        ("dense<-1>", "tensor<2xui8>"),
        ("dense<[1, 2, 3]>", "tensor<2xi32>"),
        ("dense<[[1, 2], [3]]>", "tensor<2x2xi32>"),
        ("dense<0x1FFFFFFFF>", "tensor<f32>"),
        ('dense<"0xABC">', "tensor<2xi8>"),
        ('dense<"0xABCDEF">', "tensor<2xi8>"),
        ("dense<>", "tensor<2xi8>"),
        ("dense<(1.0, 2.0)>", "tensor<f32>"),
        ("dense<" + "[" * 500 + "]" * 500 + ">", "tensor<f32>"),
        ("dense<" + "9" * 5000 + ">", "tensor<i32>"),
    ],
)
def test_bad_literals_are_refused(literal: str, type: str) -> None:
    with pytest.raises(ParseError):
        parsed(literal, type)


def test_data_must_fit_its_type() -> None:
    with pytest.raises((VerifyException, ValueError)):
        ElementsAttr.of(np.zeros(3, np.float32), tensor((2,), "f32"))
