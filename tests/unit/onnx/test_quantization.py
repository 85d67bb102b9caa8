"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear against ONNX Runtime and ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.contrib_models import compare, feeds, interpreted, node_model, peer

Array = np.ndarray[Any, Any]

EDGES = np.array(
    [np.nan, np.inf, -np.inf, 1e10, -1e10, 3e38, 0.0, -0.0, 1e-40, -1e-40, 0.5, -0.5, 1.5, -1.5, 2.5, 126.5, 127.5,
     -127.5, -128.5, -129, 254.5, 255.5, 256, 7.5, 8.5, -8.5, 32767.5, -32768.5, 65535.5, 0.49999997],
    np.float32,
)  # fmt: skip


def model(op: str, inputs: Mapping[str, Array | None], opset: int, element: int, **options: Any) -> onnx.ModelProto:
    made = node_model(op, inputs, element=element, domain="", **options)
    made.opset_import[0].version = opset
    made.ir_version = 13
    return made


def number(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


INTEGERS = [np.int8, np.uint8, np.int16, np.uint16]
NARROW = [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("scale", [1.0, 0.1, 3e38, 1e-40, 0.0, np.inf, np.nan, -1.0])
@pytest.mark.parametrize("zero", [None, 0, 3])
def test_quantize_rounds_to_even_and_saturates_as_onnx_runtime(dtype: Any, scale: float, zero: int | None) -> None:
    point = None if zero is None else np.array(zero, dtype)
    inputs = {"x": EDGES, "scale": np.array(scale, np.float32), "zero": point}
    kind = {"output_dtype": number(dtype)} if zero is None else {}
    made = model("QuantizeLinear", inputs, 21, number(dtype), **kind)
    compare(interpreted(made, inputs), peer(made, inputs))


@pytest.mark.parametrize("dtype", NARROW)
def test_quantize_to_narrow_integers_is_the_formula(dtype: Any) -> None:
    info = ml_dtypes.iinfo(dtype)
    inputs = {"x": EDGES, "scale": np.array(0.5, np.float32), "zero": np.array(1, dtype)}
    made = model("QuantizeLinear", inputs, 25, number(dtype))
    expected = np.clip(np.rint(EDGES.astype(np.float64) / 0.5) + 1, info.min, info.max)
    expected[np.isnan(EDGES)] = info.min
    assert np.array_equal(interpreted(made, inputs)[0].astype(np.int64), expected.astype(np.int64))


def spread(parameter: Array, shape: Sequence[int], axis: int, block: int) -> Array:
    """Parameters in a shape, by their definition."""
    if parameter.size == 1:
        return np.broadcast_to(parameter.reshape(()), shape)
    if not block:
        return np.broadcast_to(parameter.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
    return np.repeat(parameter, block, axis).take(range(shape[axis]), axis)


GRANULARITIES = [
    ((), 1, 0), ((1,), 1, 0), ((4,), 1, 0), ((5,), -1, 0), ((3,), -3, 0), ((3, 2, 5), 1, 2), ((3, 2, 5), 1, 3),
    ((3, 4, 2), -1, 4), ((1, 4, 5), 0, 3), ((1, 4, 5), 0, 8),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "block"), GRANULARITIES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_parameters_lie_per_tensor_per_axis_or_per_block(
    shape: tuple[int, ...], axis: int, block: int, symbolic: bool
) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, 4, 5)) * 50).astype(np.float32)
    scale = rng.uniform(0.2, 2, shape).astype(np.float32)
    zero = rng.integers(-20, 20, shape).astype(np.int8)
    inputs: dict[str, Array | None] = {"x": x, "scale": scale, "zero": zero}
    place = {"axis": axis, "block_size": block}
    named = {"dims": {"x": ["a", "b", "c"], "y": None}} if symbolic else {}
    made = model("QuantizeLinear", inputs, 21, TensorProto.INT8, **place, **named)
    wide = spread(scale, x.shape, axis % 3, block), spread(zero, x.shape, axis % 3, block)
    quantized = np.clip(np.rint(x / wide[0]) + wide[1], -128, 127).astype(np.int8)
    compare(interpreted(made, inputs), [quantized])
    inputs["x"] = quantized
    made = model("DequantizeLinear", inputs, 21, TensorProto.FLOAT, **place, **named)
    compare(interpreted(made, inputs), [(quantized.astype(np.float32) - wide[1]) * wide[0]], 0)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.int32])
@pytest.mark.parametrize("zero", [None, 0, 5])
def test_dequantize_agrees_with_onnx_runtime_to_the_bit(dtype: Any, zero: int | None) -> None:
    info = np.iinfo(dtype)
    if dtype is np.int32 and zero:
        zero = 0  # ONNX has no other for int32
    x = np.array([info.min, info.max, 0, 1, info.max // 2, (1 << 24) + 1 if info.bits == 32 else 7], dtype)
    point = None if zero is None else np.array(zero, dtype)
    inputs = {"x": x, "scale": np.array(0.1, np.float32), "zero": point}
    made = model("DequantizeLinear", inputs, 21, TensorProto.FLOAT)
    compare(interpreted(made, inputs), peer(made, inputs), 0)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("wide", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dequantize_narrow_integers_and_scales(dtype: Any, wide: Any) -> None:
    info = ml_dtypes.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    inputs = {"x": x, "scale": np.array(0.3, wide), "zero": np.array(1, dtype)}
    made = model("DequantizeLinear", inputs, 25, number(wide))
    expected = (x.astype(np.float32) - 1) * inputs["scale"].astype(np.float32)
    assert np.array_equal(interpreted(made, inputs)[0], expected.astype(wide))


EIGHT = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz]
SMALL = [ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn]


def same_bits(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", EIGHT + SMALL)
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("pointed", [False, True])
def test_quantize_to_narrow_floats_is_the_reference_evaluators(dtype: Any, saturate: int, pointed: bool) -> None:
    x = EDGES[~np.isnan(EDGES)] if dtype in SMALL else EDGES
    zero = np.zeros((), dtype) if pointed else None
    inputs = {"x": x, "scale": np.array(0.7, np.float32), "zero": zero}
    kind: dict[str, Any] = {"constants": ["zero"]} if pointed else {"output_dtype": number(dtype)}
    made = model("QuantizeLinear", inputs, 28, number(dtype), saturate=saturate, **kind)
    if dtype in SMALL:
        with np.errstate(all="ignore"):
            want = (x / np.float32(0.7)).astype(dtype)
    else:
        want = ReferenceEvaluator(made).run(None, feeds(made, inputs))[0]
    got = interpreted(made, inputs)[0]
    finite = ~np.isnan(want.astype(np.float32))
    same_bits(got[finite], want[finite])
    assert np.isnan(got[~finite].astype(np.float32)).all()


@pytest.mark.parametrize("dtype", EIGHT + SMALL)
def test_dequantize_narrow_floats(dtype: Any) -> None:
    x = np.array([0, 0.5, 1, -1, 1.5, 2, -3], np.float32).astype(dtype)
    inputs = {"x": x, "scale": np.array(0.3, np.float16), "zero": None}
    made = model("DequantizeLinear", inputs, 28, TensorProto.FLOAT, output_dtype=TensorProto.FLOAT)
    compare(interpreted(made, inputs), [x.astype(np.float32) * np.float32(np.float16(0.3))], 0)


@pytest.mark.parametrize("wide", [np.float16, ml_dtypes.bfloat16])
def test_a_narrow_scale_divides_in_its_dtype_and_precision_overrides_it(wide: Any) -> None:
    x = np.linspace(-300, 300, 4001).astype(wide)
    inputs = {"x": x, "scale": np.array(1.7, wide), "zero": np.array(3, np.int8)}
    made = model("QuantizeLinear", inputs, 23, TensorProto.INT8)
    want = [np.clip(np.rint((x / inputs["scale"]).astype(np.float32)) + 3, -128, 127).astype(np.int8)]
    compare(interpreted(made, inputs), want)
    made = model("QuantizeLinear", inputs, 23, TensorProto.INT8, precision=TensorProto.FLOAT)
    exact = np.rint(x.astype(np.float32) / inputs["scale"].astype(np.float32)) + 3
    compare(interpreted(made, inputs), [np.clip(exact, -128, 127).astype(np.int8)])
    assert not np.array_equal(want[0], np.clip(exact, -128, 127).astype(np.int8))


def test_integers_are_divided_as_numbers() -> None:
    x = np.array([-7, -5, -3, 3, 5, 7, 100000, 2**31 - 1, -(2**31)], np.int32)
    for scale in (np.array(2, np.int32), np.array(2, np.float32), np.array(2, np.float16)):
        inputs = {"x": x, "scale": scale, "zero": None}
        made = model("QuantizeLinear", inputs, 23, TensorProto.UINT16, output_dtype=TensorProto.UINT16)
        compare(interpreted(made, inputs), [np.clip(np.rint(x / 2), 0, 65535).astype(np.uint16)])


def test_an_exponent_scale() -> None:
    x = np.array([-3, 0.1, 0.26, 7.5, 3000], np.float32)
    inputs = {"x": x, "scale": np.array(0.25, ml_dtypes.float8_e8m0fnu), "zero": None}
    made = model("QuantizeLinear", inputs, 24, TensorProto.INT8, output_dtype=TensorProto.INT8)
    compare(interpreted(made, inputs), [np.array([-12, 0, 1, 30, 127], np.int8)])
    inputs["x"] = np.array([-12, 7, 127], np.int8)
    made = model("DequantizeLinear", inputs, 24, TensorProto.FLOAT16, output_dtype=TensorProto.FLOAT16)
    compare(interpreted(made, inputs), [np.array([-3, 1.75, 31.75], np.float16)], 0)


DYNAMIC: list[list[float]] = [[0, 0, 0], [3, 3, 3], [-3, -3], [0.5, 1, 255], [-1, 2.5, 4], [np.inf, 1, 2], []]


@pytest.mark.parametrize("values", DYNAMIC)
def test_dynamic_quantization_is_onnx_runtimes(values: list[float]) -> None:
    inputs = {"x": np.array(values, np.float32)}
    types = {"y": TensorProto.UINT8, "s": TensorProto.FLOAT, "z": TensorProto.UINT8}
    made = node_model("DynamicQuantizeLinear", inputs, ("y", "s", "z"), element=types, domain="")
    compare(interpreted(made, inputs), peer(made, inputs), 0)


def test_symbolic_blocks_hold_at_every_size() -> None:
    data, scale = np.zeros(0, np.float32), np.zeros(0, np.float32)
    made = model(
        "QuantizeLinear", {"x": data.reshape(0, 0), "scale": scale.reshape(0, 0)}, 21, TensorProto.UINT8,
        axis=1, block_size=4, dims={"x": ["n", "k"], "scale": ["n", "blocks"], "y": None},
    )  # fmt: skip
    program = import_onnx(made)
    for k in (3, 4, 9):
        x = np.arange(2 * k, dtype=np.float32).reshape(2, k)
        s = np.arange(1, 2 * -(-k // 4) + 1, dtype=np.float32).reshape(2, -1)
        want = np.rint(x / np.repeat(s, 4, 1)[:, :k]).astype(np.uint8)
        assert np.array_equal(interpret(program, [x, s])[0], want)


X = np.zeros((2, 3), np.float32)
ONE, THREE = np.ones((), np.float32), np.ones(3, np.float32)
REFUSED: list[tuple[dict[str, Array | None], dict[str, Any]]] = [
    ({"x": X, "s": np.ones(4, np.float32), "z": None}, {}),
    ({"x": X, "s": THREE, "z": None}, {"axis": 2}),
    ({"x": X, "s": THREE, "z": None}, {"axis": 0}),
    ({"x": X, "s": THREE, "z": np.zeros(2, np.int8)}, {}),
    ({"x": X, "s": THREE, "z": np.ones((), np.int8)}, {}),
    ({"x": X, "s": ONE, "z": np.ones(3, np.int8)}, {}),
    ({"x": X, "s": np.ones((2, 3), np.float32), "z": None}, {}),
    ({"x": X, "s": np.ones((2, 3), np.float32), "z": None}, {"block_size": 2}),
    ({"x": X, "s": np.ones((2, 2), np.float32), "z": None}, {"block_size": -2}),
    ({"x": X, "s": THREE, "z": None}, {"block_size": 2}),
    ({"x": X, "s": ONE, "z": np.ones((), np.int8)}, {"output_dtype": TensorProto.UINT8}),
    ({"x": X, "s": ONE, "z": None}, {"output_dtype": TensorProto.FLOAT}),
    ({"x": X, "s": ONE, "z": None}, {"output_dtype": TensorProto.INT64}),
    ({"x": X, "s": ONE, "z": None}, {"precision": TensorProto.INT8}),
    ({"x": X[0, 0], "s": THREE, "z": None}, {}),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_contradictions_are_refused(case: int) -> None:
    inputs, attributes = REFUSED[case]
    with pytest.raises(InvalidModelError):
        import_onnx(model("QuantizeLinear", inputs, 23, TensorProto.UINT8, **attributes))


@pytest.mark.parametrize("output_dtype", [0, TensorProto.INT8, TensorProto.FLOAT8E8M0])
def test_dequantize_refuses_results_that_are_no_floats(output_dtype: int) -> None:
    scale = np.ones((), ml_dtypes.float8_e8m0fnu)
    inputs = {"x": np.zeros(2, np.int8), "s": scale, "z": None}
    with pytest.raises(InvalidModelError, match="output_dtype"):
        import_onnx(model("DequantizeLinear", inputs, 24, TensorProto.FLOAT, output_dtype=output_dtype))
