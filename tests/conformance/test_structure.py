"""Which cases count as being about strings, maps or sequences of varying structure."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from tests.conformance.structure import category
from tests.conformance.suite import cases


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[n] x) => (float[n] y) { y = Relu(x) }", "tensor"),
        ("(float[n] x) => (seq(float) y) { y = SequenceConstruct(x, x) }", "tensor"),
        ("(seq(float) x) => (float[n] y) { i = Constant<value_int = 1>() y = SequenceAt(x, i) }", "tensor"),
        ("(seq(float) x, int64 i) => (float[n] y) { y = SequenceAt(x, i) }", "varying sequence"),
        ("(float[n] x, int64[k] s) => (seq(float) y) { y = SplitToSequence(x, s) }", "varying sequence"),
        ("(float[n] x) => (seq(float) y) { s = Shape(x) y = SplitToSequence(x, s) }", "tensor"),
        ("(string[n] x) => (string[n] y) { y = Identity(x) }", "string"),
        ("(float[n] x) => (seq(map(int64, float)) y) { y = ZipMap(x) }", "map"),
    ],
)
def test_small_models(text: str, expected: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    assert category(model) == expected


def test_the_suite() -> None:
    kinds = {name: case.category for name, case in cases().items()}
    assert kinds["test_loop13_seq"] == kinds["test_if_opt"] == "varying sequence"
    assert kinds["test_sequence_map_add_2_sequences_expanded"] == kinds["test_sequence_model1"] == "tensor"
    assert kinds["test_string_split_basic"] == "string"
    assert isinstance(cases()["test_abs"].model, onnx.ModelProto)
