"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv against ONNX Runtime, and their definitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import compare, compiled_agrees, in_seven_bits, interpreted, node_model, peer

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def integers(dtype: Any, *shape: int) -> Array:
    """Random quantized values, the extremes among them."""
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
    values.reshape(-1)[:2] = info.min, info.max
    return values


def scales(*shape: int) -> Array:
    return RNG.uniform(0.01, 0.05, shape).astype(np.float32)


def model(op: str, inputs: dict[str, Array | None], element: int, opset: int = 21, **options: Any) -> onnx.ModelProto:
    made = node_model(op, inputs, element=element, domain="", **options)
    made.opset_import[0].version = opset
    return made


def number(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


DTYPES = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]
"""The pairs that ONNX Runtime's kernels take."""


@pytest.mark.parametrize(("a", "b"), DTYPES)
@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (4, 5))]
)
@pytest.mark.parametrize("points", ["none", "scalar", "one", "column"])
def test_matmul_integer_agrees_with_onnx_runtime(a: Any, b: Any, left: Any, right: Any, points: str) -> None:
    form: dict[str, Any] = {"none": (None, None), "scalar": ((), ()), "one": ((1,), (1,)), "column": ((), (5,))}
    za, zb = (None if s is None else integers(t, *s, 2)[..., 0] for s, t in zip(form[points], (a, b), strict=True))
    if points == "column" and len(right) == 3:
        zb = integers(b, 2, 1, 5)
    inputs = {"a": integers(a, *left), "b": integers(b, *right), "za": za, "zb": zb}
    made = model("MatMulInteger", inputs, TensorProto.INT32)
    x = inputs["a"].astype(np.int32) - (0 if za is None else za)
    y = inputs["b"].astype(np.int32) - (0 if zb is None else zb)
    compare(interpreted(made, inputs), [x @ y])
    if (a, b) == (np.uint8, np.int8):
        inputs["b"] = in_seven_bits(inputs["b"])
    compare(interpreted(made, inputs), peer(made, inputs))


def test_matmul_integer_takes_a_zero_point_for_each_row() -> None:
    for point in (integers(np.int8, 3), integers(np.int8, 3, 1)):
        inputs = {"a": integers(np.int8, 3, 4), "b": integers(np.int8, 4, 5), "za": point, "zb": None}
        want = (inputs["a"].astype(np.int32) - point.reshape(3, 1)) @ inputs["b"].astype(np.int32)
        compare(interpreted(model("MatMulInteger", inputs, TensorProto.INT32), inputs), [want])
    inputs = {
        "a": integers(np.int8, 2, 3, 4),
        "b": integers(np.int8, 4, 5),
        "za": integers(np.int8, 2, 3, 1),
        "zb": None,
    }
    want = (inputs["a"].astype(np.int32) - inputs["za"]) @ inputs["b"].astype(np.int32)
    compare(interpreted(model("MatMulInteger", inputs, TensorProto.INT32), inputs), [want])


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 5, 6), (4, 3, 3, 3), {}),
    ((2, 4, 7, 7), (4, 2, 3, 2), {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}),
    ((1, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ((1, 2, 9), (3, 2, 4), {"pads": [2, 1]}),
]


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
@pytest.mark.parametrize(("a", "b"), DTYPES)
@pytest.mark.parametrize("pointed", [False, True])
def test_convolution_of_integers_pads_with_the_zero_point(case: int, a: Any, b: Any, pointed: bool) -> None:
    image, kernel, attributes = CONVOLUTIONS[case]
    point = np.array(7, a) if pointed else None
    other = integers(b, 2)[0] * np.ones((), b) if pointed else None
    inputs = {"x": integers(a, *image), "w": integers(b, *kernel), "zx": point, "zw": other}
    made = model("ConvInteger", inputs, TensorProto.INT32, **attributes)
    wide = {"x": inputs["x"].astype(np.float64), "w": inputs["w"].astype(np.float64)}
    if pointed:
        wide = {"x": wide["x"] - float(inputs["zx"]), "w": wide["w"] - float(inputs["zw"])}  # type: ignore[arg-type]
    exact = interpreted(model("Conv", wide, TensorProto.DOUBLE, **attributes), wide)
    compare(interpreted(made, inputs), [exact[0].astype(np.int32)])


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
@pytest.mark.parametrize(("a", "b"), DTYPES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_qlinear_conv_agrees_with_onnx_runtime(case: int, a: Any, b: Any, per_channel: bool, biased: bool) -> None:
    image, kernel, attributes = CONVOLUTIONS[case]
    shape = (kernel[0],) if per_channel else ()
    inputs = {
        "x": integers(a, *image), "sx": scales(), "zx": np.array(5, a),
        "w": in_seven_bits(integers(b, *kernel)), "sw": scales(*shape),
        "zw": np.full(shape, 0 if b is np.int8 else 60, b), "sy": np.array(0.2, np.float32), "zy": np.array(9, a),
        "bias": RNG.integers(-9999, 9999, kernel[0]).astype(np.int32) if biased else None,
    }  # fmt: skip
    constants = ("w", "sw", "zw", "sx", "zx", "sy", "zy")
    made = model("QLinearConv", inputs, number(a), constants=constants, **attributes)
    compare(interpreted(made, inputs), peer(made, inputs))


@pytest.mark.parametrize(("a", "b"), DTYPES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_qlinear_matmul_agrees_with_onnx_runtime(a: Any, b: Any, columns: bool, rank: int) -> None:
    shape = (5,) if columns else ()
    inputs = {
        "a": integers(a, *(2, 3, 4)[3 - rank :]), "sa": scales(), "za": np.array(3, a),
        "b": in_seven_bits(integers(b, 4, 5)), "sb": scales(*shape), "zb": np.full(shape, -2 if b is np.int8 else 2, b),
        "sy": np.array(0.1, np.float32), "zy": np.array(-9 if a is np.int8 else 9, a),
    }  # fmt: skip
    made = model("QLinearMatMul", inputs, number(a), constants=("b", "sb", "zb"))
    compare(interpreted(made, inputs), peer(made, inputs))


def test_qlinear_matmul_per_row() -> None:
    for batch in ((), (2,)):
        row = (*batch, 3, 1) if batch else (3,)
        inputs = {
            "a": integers(np.int8, *batch, 3, 4), "sa": scales(*row), "za": integers(np.int8, *row),
            "b": integers(np.int8, 4, 5), "sb": scales(5), "zb": integers(np.int8, 5),
            "sy": np.array(0.5, np.float32), "zy": np.array(4, np.int8),
        }  # fmt: skip
        x = inputs["a"].astype(np.float64) - inputs["za"].reshape(*batch, 3, 1)
        y = inputs["b"].astype(np.float64) - inputs["zb"]
        exact = x @ y * (inputs["sa"].reshape(*batch, 3, 1) * inputs["sb"] / inputs["sy"]) + 4
        got = interpreted(model("QLinearMatMul", inputs, TensorProto.INT8), inputs)[0]
        assert np.abs(got - np.clip(np.rint(exact), -128, 127)).max() <= (np.abs(exact % 1 - 0.5) < 1e-4).any()


def test_qlinear_matmul_of_8_bit_floats() -> None:
    kind = ml_dtypes.float8_e4m3fn
    inputs = {
        "a": np.array([[1, -2, 0.5]], kind), "sa": scales(), "za": np.zeros((), kind),
        "b": np.array([[1], [3], [-4]], kind), "sb": scales(), "zb": np.zeros((), kind),
        "sy": scales(), "zy": np.zeros((), kind),
    }  # fmt: skip
    want = np.float32(-7) * (inputs["sa"] * inputs["sb"] / inputs["sy"])
    got = interpreted(model("QLinearMatMul", inputs, TensorProto.FLOAT8E4M3FN), inputs)[0]
    assert np.array_equal(got, np.full((1, 1), want).astype(kind))


def test_symbolic_batches_and_rows_run_compiled() -> None:
    inputs = {"a": integers(np.uint8, 2, 3, 4), "b": in_seven_bits(integers(np.int8, 4, 5)),
              "za": np.array(3, np.uint8), "zb": None}  # fmt: skip
    made = model("MatMulInteger", inputs, TensorProto.INT32, dims={"a": ["batch", "rows", 4]}, constants=("b", "za"))
    compiled_agrees(made, [{**inputs, "a": integers(np.uint8, n, m, 4)} for n, m in ((2, 3), (1, 7))])


A, B = np.zeros((3, 4), np.int8), np.zeros((4, 5), np.int8)
REFUSED: list[tuple[str, dict[str, Array | None]]] = [
    ("MatMulInteger", {"a": A, "b": B, "za": np.zeros(4, np.int8)}),
    ("MatMulInteger", {"a": A, "b": B, "za": None, "zb": np.zeros(4, np.int8)}),
    ("MatMulInteger", {"a": A, "b": B, "za": np.zeros((3, 2), np.int8)}),
    ("MatMulInteger", {"a": A, "b": B, "za": np.zeros((1, 3, 1), np.int8)}),
    ("MatMulInteger", {"a": A[0, 0], "b": B}),
    ("MatMulInteger", {"a": A[0], "b": B, "za": np.zeros(4, np.int8)}),
    ("ConvInteger", {"x": np.zeros((1, 2, 5), np.int8), "w": np.zeros((3, 2, 2), np.int8), "zx": np.zeros(2, np.int8)}),
    ("ConvInteger", {"x": np.zeros((1, 2, 5), np.int8), "w": np.zeros((3, 2, 2), np.int8), "zx": None,
                     "zw": np.zeros(2, np.int8)}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_parameters_that_do_not_fit_are_refused(case: int) -> None:
    op, inputs = REFUSED[case]
    with pytest.raises(InvalidModelError):
        import_onnx(model(op, inputs, TensorProto.INT32))


@pytest.mark.parametrize(("channels", "group"), [(8, 1), (64, 1), (8, 8)])
@pytest.mark.parametrize(("a", "b"), DTYPES)
def test_qlinear_conv_runs_compiled(channels: int, group: int, a: Any, b: Any) -> None:
    inputs = {
        "x": integers(a, 1, channels, 5, 6), "sx": scales(), "zx": np.array(5, a),
        "w": integers(b, 8, channels // group, 3, 3), "sw": scales(8) / channels,
        "zw": np.full(8, 0 if b is np.int8 else 128, b), "sy": np.array(0.2, np.float32),
        "zy": np.array(9, a), "bias": None,
    }  # fmt: skip
    constants = ("w", "sw", "zw", "sx", "zx", "sy", "zy")
    made = model("QLinearConv", inputs, number(a), constants=constants, group=group, pads=[1, 1, 1, 1])
    import gcomp

    compare([np.asarray(v) for v in gcomp.compile(made)(inputs["x"])], interpreted(made, inputs))
