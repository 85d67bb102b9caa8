"""Operators in the forms that they had before opset 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import numbers, results

INFINITIES = np.float32([-np.inf, -1, 0, 2, np.inf, np.nan])


def proto(operator: str, opset: int, inputs: Sequence[Any], outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    """A model of one node."""
    names = [f"x{i}" for i in range(len(inputs))]
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.asarray(x).shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    infos = [helper.make_empty_tensor_value_info(r) for r in results]
    graph = helper.make_graph([node], "g", ports, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def run(
    operator: str, opset: int, *inputs: Any, outputs: int = 1, fixed: Sequence[int] = (), **attributes: Any
) -> list[Any]:
    """The node's results; inputs in `fixed` are given as constants."""
    model = proto(operator, opset, inputs, outputs, **attributes)
    program = import_onnx(model, constants={f"x{i}": np.asarray(inputs[i]) for i in fixed})
    return results(program, *(x for i, x in enumerate(inputs) if i not in fixed))


# ---- broadcasting by attributes ----------------------------------------------------------------------------------

ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Greater": np.greater}


@pytest.mark.parametrize("opset", [1, 5, 6])
@pytest.mark.parametrize(
    ("shape", "axis", "expanded"),
    [
        ((), None, ()),
        ((1, 1), None, ()),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((4,), -2, (4, 1)),
        ((4, 5), -1, (4, 5)),
        ((3, 1), 1, (3, 1, 1)),
        ((2, 3, 4, 5), 0, (2, 3, 4, 5)),
    ],
)
@pytest.mark.parametrize("operator", sorted(ARITHMETIC))
def test_the_second_operand_lies_along_the_dims_from_axis_on(
    operator: str, shape: tuple[int, ...], axis: int | None, expanded: tuple[int, ...], opset: int
) -> None:
    x, y = numbers(2, 3, 4, 5), numbers(*shape) + np.float32(0.5)
    where = {} if axis is None else {"axis": axis}
    (got,) = run(operator, opset, x, y, broadcast=1, **where)
    want = ARITHMETIC[operator](x, y.reshape(expanded))
    assert got.shape == want.shape and np.allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("operator", "function"), [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.not_equal)]
)
def test_logic_broadcasts_by_attributes(operator: str, function: Any) -> None:
    x, y = numbers(2, 3) > 0, np.array([True, False])
    assert np.array_equal(run(operator, 1, x, y, broadcast=1, axis=0)[0], function(x, y[:, None]))


def test_equal_of_square_matrices_is_along_the_axis_also_of_constants() -> None:
    x, y = np.array([[1, 2], [1, 2]], np.int64), np.array([1, 2], np.int64)
    for fixed in ((), (0, 1)):
        (got,) = run("Equal", 6, x, y, fixed=fixed, broadcast=1, axis=0)
        assert np.array_equal(got, [[True, False], [False, True]])


def test_pow_takes_a_scalar_or_a_vector_along_an_axis() -> None:
    x = np.abs(numbers(2, 3)) + 1
    assert np.allclose(run("Pow", 1, x, np.float32(2), broadcast=1)[0], x**2)
    assert np.allclose(run("Pow", 1, x, np.float32([2, 0.5]), broadcast=1, axis=0)[0], x ** np.float32([[2], [0.5]]))


@pytest.mark.parametrize(
    ("shapes", "attributes"),
    [
        (((2, 3), (3,)), {}),
        (((2, 3), (1, 3)), {}),
        (((2, 3), (2,)), {"broadcast": 1}),
        (((3,), (2, 3)), {"broadcast": 1}),
        (((2, 3), (3,)), {"broadcast": 1, "axis": 2}),
        (((2, 3), (3,)), {"broadcast": 1, "axis": -3}),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: Sequence[tuple[int, ...]], attributes: dict[str, int]) -> None:
    with pytest.raises(InvalidModelError):
        run("Add", 6, *(numbers(*s) for s in shapes), **attributes)


def test_opset_7_does_not_have_the_attributes() -> None:
    with pytest.raises(InvalidModelError, match="broadcast"):
        run("Add", 7, numbers(2, 3), numbers(3), broadcast=1)


@pytest.mark.parametrize("operator", ["Sum", "Min", "Max", "Mean"])
def test_variadic_operators_take_one_shape_before_opset_8(operator: str) -> None:
    x, y, z = numbers(2, 3), -numbers(2, 3), numbers(2, 3) * 2
    function = {"Sum": np.sum, "Min": np.min, "Max": np.max, "Mean": np.mean}[operator]
    for opset in (1, 6, 7):
        assert np.allclose(run(operator, opset, x, y, z)[0], function(np.stack([x, y, z]), axis=0), rtol=1e-6)
        with pytest.raises(InvalidModelError):
            run(operator, opset, x, numbers(3))
    assert run(operator, 8, x, numbers(3))[0].shape == (2, 3)


def test_prelu_has_a_slope_for_each_channel() -> None:
    x, slopes = numbers(2, 3, 3), np.float32([0.5, 2, 4])
    for opset in (1, 6):
        (got,) = run("PRelu", opset, x, slopes)
        assert np.array_equal(got, np.where(x < 0, x * slopes[:, None], x))
        assert np.array_equal(run("PRelu", opset, x, slopes[:1])[0], np.where(x < 0, x * slopes[0], x))
    (got,) = run("PRelu", 7, x, slopes)
    assert np.array_equal(got, np.where(x < 0, x * slopes, x))


def test_gemm_broadcasts_on_request_only() -> None:
    x, y, bias = numbers(2, 3), numbers(3, 4), numbers(4)
    assert np.allclose(run("Gemm", 6, x, y, bias, broadcast=1, beta=2.0)[0], x @ y + 2 * bias)
    assert np.allclose(run("Gemm", 1, x, y.T.copy(), numbers(2, 4), transB=1)[0], x @ y + numbers(2, 4))
    with pytest.raises(InvalidModelError):
        run("Gemm", 6, x, y, bias)
    with pytest.raises(InvalidModelError):
        run("Gemm", 1, x, y, numbers(1, 4))


# ---- training ----------------------------------------------------------------------------------------------------


def _normalized(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + bias


@pytest.mark.parametrize("attributes", [{"is_test": 1}, {"is_test": 1, "spatial": 0}])
def test_batch_normalization_in_test_mode(attributes: dict[str, int]) -> None:
    x, stats = numbers(2, 3, 4, 4), [numbers(3), numbers(3) / 3, numbers(3) / 5, np.abs(numbers(3))]
    want = _normalized(x, *(s[:, None, None] for s in stats))
    assert np.allclose(run("BatchNormalization", 6, x, *stats, **attributes)[0], want, rtol=1e-5)
    got = run("BatchNormalization", 1, x, *stats, consumed_inputs=[0, 0, 0, 1, 1], **attributes)[0]
    assert np.allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("opset", [6, 7, 8])
def test_batch_normalization_with_statistics_of_each_activation(opset: int) -> None:
    x = numbers(2, 3, 4)
    stats = [numbers(3, 4), numbers(3, 4) / 3, numbers(3, 4) / 5, np.abs(numbers(3, 4))]
    mode = {"is_test": 1} if opset < 7 else {}
    (got,) = run("BatchNormalization", opset, x, *stats, spatial=0, **mode)
    assert np.allclose(got, _normalized(x, *stats), rtol=1e-4, atol=1e-4)
    with pytest.raises(InvalidModelError):
        run("BatchNormalization", opset, x, *(numbers(4, 3) for _ in range(4)), spatial=0, **mode)


def test_batch_normalization_in_training_mode_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="is_test"):
        run("BatchNormalization", 6, numbers(2, 3, 4), *(numbers(3) for _ in range(4)))


def test_dropout_drops_unless_is_test() -> None:
    x = np.ones((50, 40), np.float32)
    for opset in (1, 6):
        y, mask = run("Dropout", opset, x, outputs=2, is_test=1, ratio=0.75)
        assert np.array_equal(y, x) and mask.dtype == np.float32
        y, mask = run("Dropout", opset, x, outputs=2, ratio=0.75)
        assert set(np.unique(y)) == {0, 4} and np.array_equal(mask, y / 4)
        assert 0.15 < mask.mean() < 0.35
        with pytest.raises(InvalidModelError):
            run("Dropout", opset, x, ratio=1.5)


# ---- other forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("INT64", np.int64), ("FLOAT16", np.float16), ("BOOL", np.bool_), ("uint8", np.uint8), ("DOUBLE", np.float64)],
)
def test_cast_to_a_name(name: str, dtype: type) -> None:
    x = np.float32([0, 1.5, 2])
    (got,) = run("Cast", 1, x, to=name)
    assert got.dtype == dtype and np.array_equal(got, x.astype(dtype))
    (got,) = run("Cast", 1, np.array([0, 1], np.int64), fixed=[0], to=name)
    assert got.dtype == dtype


@pytest.mark.parametrize(("opset", "to"), [(1, "FLOAT33"), (1, "STRING"), (1, ""), (1, 1), (6, "FLOAT")])
def test_cast_to_something_else_is_refused(opset: int, to: Any) -> None:
    with pytest.raises((InvalidModelError, UnsupportedError)):
        run("Cast", opset, np.float32([1]), to=to)


def test_clip_bounds_infinities_by_default() -> None:
    limit = np.finfo(np.float32).max
    for opset in (1, 6):
        want = np.clip(INFINITIES, -limit, limit)
        assert np.array_equal(run("Clip", opset, INFINITIES)[0], want, equal_nan=True)
        want = np.clip(INFINITIES, 0, limit)
        assert np.array_equal(run("Clip", opset, INFINITIES, min=0.0)[0], want, equal_nan=True)
        want = np.clip(INFINITIES, -1, 1)
        assert np.array_equal(run("Clip", opset, INFINITIES, min=-1.0, max=1.0)[0], want, equal_nan=True)


def test_clip_agrees_with_onnx_runtime() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = proto("Clip", 7, [INFINITIES], min=-0.5)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x0": INFINITIES})
    assert np.array_equal(run("Clip", 7, INFINITIES, min=-0.5)[0], want, equal_nan=True)


def test_reshape_by_an_attribute() -> None:
    x = numbers(2, 3, 4)
    assert np.array_equal(run("Reshape", 1, x, shape=[0, -1])[0], x.reshape(2, 12))
    with pytest.raises(InvalidModelError):
        run("Reshape", 1, x)


def test_tile_along_one_axis() -> None:
    x = numbers(2, 3)
    (got,) = run("Tile", 1, x, np.float32(3), np.float32(1), fixed=[1, 2])
    assert np.array_equal(got, np.tile(x, (1, 3)))
    for count, axis in ((1.5, 1), (3, 2), (-1, 0), (np.inf, 0), (np.nan, 0)):
        with pytest.raises(InvalidModelError):
            run("Tile", 1, x, np.float32(count), np.float32(axis), fixed=[1, 2])


def test_split_lengths_are_an_attribute_or_an_input() -> None:
    x = numbers(5, 2)
    for got in (
        run("Split", 1, x, np.float32([2, 3]), outputs=2, fixed=[1], axis=0),
        run("Split", 1, x, outputs=2, axis=0, split=[2, 3]),
        run("Split", 2, x, outputs=2, split=[2, 3]),
    ):
        assert np.array_equal(got[0], x[:2]) and np.array_equal(got[1], x[2:])
    assert np.array_equal(run("Split", 1, x, outputs=2, axis=1)[1], x[:, 1:])
    with pytest.raises(UnsupportedError, match="axis"):
        run("Split", 1, x, outputs=5)
    for lengths in ([2, 2], [7, -2], [2.5, 2.5], [5]):
        with pytest.raises(InvalidModelError):
            run("Split", 1, x, np.float32(lengths), outputs=2, fixed=[1], axis=0)


def test_concat_has_a_default_axis_in_opset_1_only() -> None:
    x, y = numbers(2, 3), numbers(2, 2)
    assert np.array_equal(run("Concat", 1, x, y)[0], np.concatenate([x, y], 1))
    with pytest.raises(InvalidModelError):
        run("Concat", 4, x, y)


def test_pad_paddings() -> None:
    x = numbers(3, 2)
    want = np.pad(x, ((0, 0), (2, 1)), constant_values=7)
    assert np.array_equal(run("Pad", 1, x, paddings=[0, 2, 0, 1], value=7.0)[0], want)
    assert np.array_equal(
        run("Pad", 1, x, paddings=[1, 0, 1, 0], mode="reflect")[0], np.pad(x, ((1, 1), (0, 0)), "reflect")
    )
    assert np.array_equal(run("Pad", 2, x, pads=[0, 2, 0, 1], value=7.0)[0], want)
    with pytest.raises(InvalidModelError):
        run("Pad", 1, x, pads=[0, 2, 0, 1])


def test_upsample_has_a_scale_for_each_spatial_dim() -> None:
    x = numbers(1, 2, 2, 3)
    (got,) = run("Upsample", 1, x, height_scale=2.0, width_scale=3.0)
    assert np.array_equal(got, x.repeat(2, 2).repeat(3, 3))
    (got,) = run("Upsample", 1, x, height_scale=1.0, width_scale=2.0, mode="bilinear")
    assert np.array_equal(got[..., 1], (x[..., 0] + x[..., 1]) / 2)
    with pytest.raises(InvalidModelError):
        run("Upsample", 1, x, height_scale=2.0, width_scale=3.0, mode="cubic")


def test_top_k_has_k_as_an_attribute() -> None:
    x = np.float32([[1, 5, 2, 5], [4, 3, 2, 1]])
    for opset in (1, 9):
        values, places = run("TopK", opset, x, outputs=2, k=2)
        assert np.array_equal(values, [[5, 5], [4, 3]]) and np.array_equal(places, [[1, 3], [0, 1]])


@pytest.mark.parametrize(("opset", "p"), [(1, 3.0), (1, 1.5), (2, 3)])
def test_lp_pools_take_a_real_p_in_opset_1(opset: int, p: float) -> None:
    x = numbers(1, 2, 4)
    want = (np.abs(x) ** p).sum(-1, keepdims=True) ** (1 / p)
    assert np.allclose(run("GlobalLpPool", opset, x, p=p)[0], want, rtol=1e-5)
    windows = np.abs(np.stack([x[..., :-1], x[..., 1:]])) ** p
    assert np.allclose(run("LpPool", opset, x, p=p, kernel_shape=[2])[0], windows.sum(0) ** (1 / p), rtol=1e-5)


def test_selu_of_opset_1_has_shorter_constants() -> None:
    x = np.float32([-1, 0, 2])
    assert np.allclose(run("Selu", 1, x)[0], np.where(x > 0, x, 1.6732 * np.expm1(x)) * 1.0507, rtol=1e-6)
    assert not np.array_equal(run("Selu", 1, x)[0], run("Selu", 6, x)[0])


def test_hard_sigmoid_and_instance_normalization_of_opset_1() -> None:
    x = numbers(2, 3, 5)
    (got,) = run("HardSigmoid", 1, x, alpha=0.25, beta=0.5, consumed_inputs=[0])
    assert np.array_equal(got, np.clip(x * 0.25 + 0.5, 0, 1))
    scale, bias = numbers(3), numbers(3) / 2
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    (got,) = run("InstanceNormalization", 1, x, scale, bias, consumed_inputs=[0])
    assert np.allclose(got, want * scale[:, None] + bias[:, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "opsets", "gates", "outputs"),
    [("RNN", (1, 6), 1, 2), ("GRU", (1, 3, 6), 3, 2), ("LSTM", (1, 6), 4, 3)],
)
def test_recurrent_operators_are_those_of_opset_7(
    operator: str, opsets: Sequence[int], gates: int, outputs: int
) -> None:
    x, w, r = numbers(3, 2, 4) / 11, numbers(1, gates * 5, 4) / 11, numbers(1, gates * 5, 5) / 11
    want = run(operator, 7, x, w, r, outputs=outputs, hidden_size=5)
    for opset in opsets:
        got = run(operator, opset, x, w, r, outputs=outputs, hidden_size=5, output_sequence=1)
        assert all(np.array_equal(a, c) for a, c in zip(got, want, strict=True))


def test_pools_and_softmax_of_opset_1() -> None:
    x = numbers(1, 2, 5)
    (got,) = run("AveragePool", 1, x, kernel_shape=[3], pads=[1, 1])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    sums = padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]
    assert np.allclose(got, sums / np.float32([2, 3, 3, 3, 2]))
    (got,) = run("MaxPool", 1, x, kernel_shape=[2], strides=[2])
    assert np.array_equal(got, np.maximum(x[..., 0:4:2], x[..., 1:4:2]))
    (got,) = run("Softmax", 1, x)
    assert np.allclose(got.sum(), 1) and got.shape == x.shape


# ---- opsets ------------------------------------------------------------------------------------------------------


def test_operators_that_came_later_are_refused() -> None:
    for operator, opset in (("Where", 8), ("Expand", 7), ("MeanVarianceNormalization", 1), ("Sign", 6)):
        with pytest.raises(GcompError):
            run(operator, opset, numbers(2, 3))
    with pytest.raises(InvalidModelError, match="opset 8"):
        run("IsNaN", 8, numbers(2, 3))


def test_thresholded_relu_is_the_experimental_one_before_opset_10() -> None:
    x = numbers(4)
    assert np.array_equal(run("ThresholdedRelu", 6, x, alpha=2.0)[0], np.where(x > 2, x, 0))


def test_models_without_opset_imports_are_of_opset_1_before_ir_version_3() -> None:
    model = proto("Clip", 1, [INFINITIES], max=1.0, consumed_inputs=[0])
    del model.opset_import[:]
    model.ir_version = 2
    program = import_onnx(model)
    assert results(program, INFINITIES)[0][4] == 1


@pytest.mark.parametrize("opset", [0, -1])
def test_opsets_below_1_do_not_exist(opset: int) -> None:
    with pytest.raises(InvalidModelError, match="opset"):
        run("Relu", opset, numbers(3))


def test_symbolic_sizes_are_aligned_too() -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"], broadcast=1, axis=1)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "channels", "n"]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["features"]),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    program = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3))
    x, y = numbers(2, 3, 4), numbers(3)
    assert np.array_equal(results(program, x, y)[0], x + y[:, None])
    with pytest.raises(GcompError):
        results(program, x, numbers(4))
