"""Nodes whose attributes or inputs are impossible, reduced from mutants: one InvalidModelError that names the node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import gcomp
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret


def model(graph: str, opset: int = 24) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{graph}')


IMPOSSIBLE = {
    "an index past the end": "y = Gather(x, far)",
    "an index before the first": "y = Gather(x, before)",
    "an index of an element past the end": "y = GatherElements(x, corner)",
    "an index vector past the end": "y = GatherND(x, corner)",
    "batches less than none": "y = GatherND<batch_dims=-1>(x, pairs)",
    "a place past the end": "y = ScatterND(x, corner, one)",
    "an element's place past the end": "y = ScatterElements(x, corner, row)",
    "an update of other dims": "y = TensorScatter<axis=1>(image, patch)",
    "an update along the batch": "y = TensorScatter<axis=0>(image, image)",
    "a list of sizes that is a matrix": "y = Expand(x, pairs)",
    "a list of sizes that is a number": "y = ConstantOfShape(five)",
    "parts that are a matrix": "y = Split(x, pairs)",
    "several numbers for one": "y, z = TopK(x, two)",
    "no number for one": "y = OneHot(two, none, ends)",
    "a negative depth": "y = OneHot(two, before, ends)",
    "a matrix for an axis": "y = CumSum(x, matrix)",
    "a start that is a list": "y = Range(two, five, five)",
    "a value of two elements": "y = ConstantOfShape<value = float[2] {1, 2}>(two)",
    "a value of no element": "y = ConstantOfShape<value = float[0] {}>(two)",
    "a negative block": "y = DepthToSpace<blocksize=-2>(image)",
    "a negative size to crop to": "y = CenterCropPad<axes=[0]>(x, before)",
    "a ratio that is a matrix": "y = Dropout(x, x)",
    "steps of a sequence that it does not have": "y = ReverseSequence(x, far)",
    "a gap in a list of inputs": 'y = Concat<axis=0>(x, "")',
    "a diagonal of what is not square": 'y = Einsum<equation="ii->i">(x)',
    "digits for letters": 'y = Einsum<equation="i1->i">(x)',
    "two ellipses": 'y = Einsum<equation="...i...->i">(x)',
    "windows that reach past the input": "y = MaxPool<kernel_shape=[9, 9]>(image)",
    "one size for two dims": "y = MaxUnpool<kernel_shape=[2]>(image, places)",
    "negative sizes of windows": "y = MaxUnpool<kernel_shape=[-2, -2]>(image, places)",
    "padding of more than there is": "y = ConvTranspose<pads=[9, 9, 9, 9]>(image, kernel)",
    "more padding than a stride": "y = ConvTranspose<output_padding=[2, 2]>(image, kernel)",
    "a negative size of the result": "y = ConvTranspose<output_shape=[-1, 4]>(image, kernel)",
    "a frame longer than the signal": 'y = STFT(image3, one_step, "", five)',
    "a bias of more dims": "y = Gemm(x, square, image)",
    "a slope of more dims": "y = PRelu(x, image)",
    "a mask of more keys": "y = Attention(image, image, image, wide)",
    "a mask of other queries": "y = Attention(image, image, image, tall)",
    "blocks of other dims than the image": "y = Col2Im(image3, three, two)",
    "more blocks than the image has": "y = Col2Im(image3, two, ones)",
    "values of another length": "y = Attention<softcap=3.0>(image, image, patch)",
    "a negative bound of the scores": "y = Attention<softcap=-1.0>(image, image, image)",
    "ranks that differ": "y = Attention<q_num_heads=1, kv_num_heads=1>(image, image3, image3)",
    "a flattening from past the last dim": "y = Softmax(vector)",
    "a first state without its direction": 'y = GRU<hidden_size=4>(image3, gates, recurrence, "", "", vector)',
}

INPUTS = """float[3, 4] x, float[4] vector, float[4, 4] square, float[1, 4, 3, 3] image, float[1, 4, 1, 3] patch,
    float[1, 3, 3] image3, float[4, 1, 2, 2] kernel, int64[1, 4, 1, 1] places, bool[3, 9] wide,
    bool[2, 3] tall, float[1, 12, 3] gates, float[1, 12, 4] recurrence"""
CONSTANTS = """int64[4] far = {0, 1, 2, 7}, int64[1] before = {-9}, int64[1, 2] corner = {5, 0}, float[1] one = {1},
    float[1, 2] row = {1, 1}, int64[2, 2] pairs = {0, 1, 1, 2}, int64 five = {5}, int64[2] two = {2, 2},
    int64[0] none = {}, int64[1, 1] matrix = {1}, float[2] ends = {0, 1}, int64 one_step = {1}, int64[1] three = {3},
    int64[2] ones = {1, 1}"""


@pytest.mark.parametrize("node", IMPOSSIBLE.values(), ids=list(IMPOSSIBLE))
def test_impossible_nodes_are_refused(node: str) -> None:
    results, _, right = node.partition(" = ")
    operator = right.partition("(")[0].partition("<")[0]
    old = operator in ("Softmax",)
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(f"g ({INPUTS}) => ({results}) <{CONSTANTS}> {{ {node} }}", 11 if old else 24))
    error = caught.value
    assert operator in str(error) and "node `" in str(error.where) and error.why


@pytest.mark.parametrize("node", ["EyeLike<dtype=-1>(x)", "RandomNormalLike<dtype=-1>(x)"])
def test_a_dtype_that_does_not_exist_is_not_the_default(node: str) -> None:
    with pytest.raises(UnsupportedError, match="dtype -1"):
        import_onnx(model(f"g (float[3, 4] x) => (y) {{ y = {node} }}"))


# ---- results that were wrong ----


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_the_last_axis_of_a_vector(operator: str) -> None:
    text = f"g (float[4] x) => (float[4] y) {{ y = {operator}<axis=-1>(x) }}"
    x = np.asarray([1, 3, 2, -1], np.float32)
    [old], [new] = (interpret(import_onnx(model(text, opset)), [x]) for opset in (11, 13))
    assert np.array_equal(old, new)


def test_known_sizes_keep_their_order_in_a_joined_matrix() -> None:
    text = """g (float[6] x, int64[1, 1] a) => (y)
        <int64[1, 1] one = {1}, int64[1, 1] two = {2}, int64[1, 1] three = {3}, int64[1] all = {-1}> {
        left = Concat<axis=0>(a, two)  right = Concat<axis=0>(three, one)  both = Concat<axis=1>(left, right)
        sizes = Reshape(both, all)  y = Reshape(x, sizes) }"""
    [y] = gcomp.compile(model(text))(np.arange(6, dtype=np.float32), np.asarray([[1]], np.int64))
    assert y.shape == (1, 3, 2, 1)


def test_an_input_that_is_returned_keeps_its_type() -> None:
    proto = model("g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }")
    proto.graph.output.add(name="x")
    x = np.ones((2, 3), np.float32)
    found: list[Any] = interpret(import_onnx(proto), [x])
    assert np.array_equal(found[0], -x) and np.array_equal(found[1], x)


def test_booleans_between_places_are_rounded() -> None:
    text = """g (bool[1, 1, 1, 2] x) => (y) <int64[4] sizes = {1, 1, 1, 4}>
        { y = Resize<mode="linear">(x, "", "", sizes) }"""
    [y] = interpret(import_onnx(model(text, 19)), [np.asarray([[[[False, True]]]])])
    assert y.dtype == np.bool_ and y.ravel().tolist() == [False, False, True, True]


def test_astronomic_constants_are_not_computed() -> None:
    text = """g (float[2] x) => (y) <int64[2] sizes = {4611686018427387904, 4611686018427387904}>
        { z = ConstantOfShape(sizes)  s = ReduceSum<keepdims=0>(z)  y = Add(x, s) }"""
    with pytest.raises(UnsupportedError, match="memory"):
        gcomp.compile(model(text))
