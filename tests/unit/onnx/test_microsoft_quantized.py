"""The quantized operators of com.microsoft against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named
from tests.unit.onnx.contrib_models import (
    Array,
    agree,
    compare,
    compiled_agrees,
    in_seven_bits,
    interpreted,
    node_model,
    peer,
)

RNG = np.random.default_rng(1)
BYTES = [np.uint8, np.int8]
Inputs = dict[str, Array | None]


@pytest.fixture(autouse=True)
def same_numbers_in_every_order() -> None:
    RNG.bit_generator.state = np.random.default_rng(1).bit_generator.state


def number(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def integers(dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(value: float = 0.05) -> Array:
    return np.array(value, np.float32)


def zero(dtype: Any, value: int = 3) -> Array:
    return np.array(value, dtype)


def close(op: str, inputs: Inputs, element: int, allowed: float = 0.02, **options: Any) -> None:
    """Equal quantized values, up to one in a few elements: ONNX Runtime's kernels in integers round ties elsewhere."""
    model = node_model(op, inputs, element=element, **options)
    (got,), (want,) = interpreted(model, inputs), peer(model, inputs)
    assert got.dtype == want.dtype and got.shape == want.shape
    apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert apart.max() <= 1 and (apart > 0).mean() <= allowed


# ---- elementwise, axes, windows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op: str, dtype: Any) -> None:
    inputs: Inputs = {
        "a": integers(dtype, 4, 8, 16), "sa": scale(), "za": zero(dtype),
        "b": integers(dtype, 8, 1), "sb": scale(0.07), "zb": zero(dtype, 7), "sc": scale(0.11), "zc": zero(dtype, 11),
    }  # fmt: skip
    close(op, inputs, number(dtype))
    # A zero point that is left out is 0. (ONNX Runtime's own inference of types refuses such nodes.)
    nothing: Inputs = {**inputs, "za": zero(dtype, 0), "zb": zero(dtype, 0), "zc": zero(dtype, 0)}
    short: Inputs = {**inputs, "za": None, "zb": None, "zc": None}
    results = [interpreted(node_model(op, v, element=number(dtype)), v) for v in (nothing, short)]
    compare(*results)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_unary_is_exact_for_every_quantized_value(op: str, dtype: Any) -> None:
    info = np.iinfo(dtype)
    options = {"alpha": 0.3} if op == "QLinearLeakyRelu" else {}
    step = 1 / 256 if op == "QLinearSigmoid" else 0.04
    x = np.arange(info.min, info.max + 1).astype(dtype)
    inputs: Inputs = {"x": x, "sx": scale(), "zx": zero(dtype), "sy": scale(step), "zy": zero(dtype, info.min + 5)}
    close(op, inputs, number(dtype), **options)


@pytest.mark.parametrize("dtype", BYTES)
def test_where(dtype: Any) -> None:
    inputs: Inputs = {
        "c": RNG.random((3, 4, 5)) > 0.5, "x": integers(dtype, 4, 5), "sx": scale(), "zx": zero(dtype),
        "x2": integers(dtype, 3, 1, 5), "sy": scale(0.02), "zy": zero(dtype, 9), "sz": scale(0.06),
        "zz": zero(dtype, 1),
    }  # fmt: skip
    close("QLinearWhere", inputs, number(dtype))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("opset", "axis"), [(13, 1), (13, -1), (11, 1), (11, -1)])
def test_softmax(dtype: Any, opset: int, axis: int) -> None:
    inputs: Inputs = {
        "x": integers(dtype, 3, 4, 5), "sx": scale(), "zx": zero(dtype),
        "sy": scale(1 / 256), "zy": zero(dtype, 0 if dtype is np.uint8 else -128),
    }  # fmt: skip
    # The other kernel looks up exponentials that were rounded to integers.
    close("QLinearSoftmax", inputs, number(dtype), allowed=0.2, axis=axis, opset=opset)


@pytest.mark.parametrize("dtype", BYTES)
def test_concat(dtype: Any) -> None:
    inputs: Inputs = {"sy": scale(0.1), "zy": zero(dtype)}
    for i, size in enumerate((2, 3, 1)):
        inputs |= {f"x{i}": integers(dtype, 2, size, 3), f"s{i}": scale(0.05 * (i + 1)), f"z{i}": zero(dtype, i)}
    close("QLinearConcat", inputs, number(dtype), axis=1)


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"},
]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("case", range(len(POOLS)))
def test_average_pool(dtype: Any, last: int, case: int) -> None:
    shape = (2, 7, 6, 3) if last else (2, 3, 7, 6)
    inputs: Inputs = {
        "x": integers(dtype, *shape),
        "sx": scale(),
        "zx": zero(dtype),
        "sy": scale(0.0413),
        "zy": zero(dtype, 9),
    }
    close("QLinearAveragePool", inputs, number(dtype), allowed=0.05, channels_last=last, **POOLS[case])


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_global_average_pool(dtype: Any, last: int) -> None:
    inputs: Inputs = {
        "x": integers(dtype, 2, 5, 6, 7), "sx": scale(), "zx": zero(dtype), "sy": scale(0.0103), "zy": zero(dtype, 9),
    }  # fmt: skip
    close("QLinearGlobalAveragePool", inputs, number(dtype), allowed=0.05, channels_last=last)


def test_reductions_that_onnx_runtime_only_declares() -> None:
    x = integers(np.int8, 2, 3, 4)
    inputs: Inputs = {"x": x, "sx": scale(0.5), "zx": zero(np.int8, 4), "sy": scale(0.25), "zy": zero(np.int8, 1)}
    model = node_model("QLinearReduceMean", inputs, element=TensorProto.INT8, axes=[1, -1], keepdims=0)
    want = np.clip(np.rint(((x.astype(np.float64) - 4) * 0.5).mean((1, 2)) / 0.25) + 1, -128, 127)
    compare(interpreted(model, inputs), [want.astype(np.int8)])
    model = node_model("ReduceSumInteger", {"x": x}, element=TensorProto.INT32, axes=[1], keepdims=1)
    compare(interpreted(model, {"x": x}), [x.astype(np.int32).sum(1, keepdims=True, dtype=np.int32)])
    inputs = {"a": x, "za": zero(np.int8, 4), "b": x[0], "zb": None}
    model = node_model("MulInteger", inputs, element=TensorProto.INT32)
    compare(interpreted(model, inputs), [(x.astype(np.int32) - 4) * x[0]])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantize_and_dequantize(dtype: Any) -> None:
    x = (RNG.normal(size=(3, 4)) * 100).astype(np.float32)
    inputs: Inputs = {"x": x, "s": RNG.uniform(0.1, 2, 4).astype(np.float32), "z": integers(dtype, 4) % 10}
    agree("QuantizeLinear", inputs, element=number(dtype), axis=1)
    inputs["x"] = integers(dtype, 3, 4)
    agree("DequantizeLinear", inputs, element=TensorProto.FLOAT, tolerance=0, axis=-1)


# ---- products ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("last", [0, 1])
def test_qlinear_conv(a: Any, b: Any, last: int) -> None:
    inputs: Inputs = {
        "x": integers(a, *((2, 6, 5, 4) if last else (2, 4, 6, 5))), "sx": scale(), "zx": zero(a),
        "w": in_seven_bits(integers(b, 6, 2, 3, 3)), "sw": RNG.uniform(0.01, 0.05, 6).astype(np.float32),
        "zw": np.full(6, 64 if b is np.uint8 else 0, b), "sy": scale(0.3), "zy": zero(a, 8),
        "bias": RNG.integers(-5000, 5000, 6).astype(np.int32),
    }  # fmt: skip
    constants = ("w", "sw", "zw", "sx", "zx", "sy", "zy")
    options = {"constants": constants, "channels_last": last, "group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    close("QLinearConv", inputs, number(a), allowed=0, **options)


@pytest.mark.parametrize(("a", "b"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_qgemm(a: Any, b: Any, ta: int, tb: int, quantized: bool, columns: bool) -> None:
    shape = (5,) if columns else ()
    inputs: Inputs = {
        "a": integers(a, *((4, 3) if ta else (3, 4))), "sa": scale(), "za": zero(a),
        "b": in_seven_bits(integers(b, *((5, 4) if tb else (4, 5)))),
        "sb": RNG.uniform(0.01, 0.05, shape).astype(np.float32),
        "zb": np.full(shape, 2, b), "c": RNG.integers(-5000, 5000, 5).astype(np.int32),
        "sy": scale(0.3) if quantized else None, "zy": zero(a, 8) if quantized else None,
    }  # fmt: skip
    element = number(a) if quantized else TensorProto.FLOAT
    if tb and columns:
        # ONNX Runtime takes per-column parameters of a B that is not transposed; the definition is the same.
        made = node_model("QGemm", inputs, element=element, transA=ta, transB=1, alpha=0.7)
        straight: Inputs = {**inputs, "b": np.asarray(inputs["b"]).T.copy()}
        other = node_model("QGemm", straight, element=element, transA=ta, transB=0, alpha=0.7)
        compare(interpreted(made, inputs), interpreted(other, straight))
        return
    agree("QGemm", inputs, element=element, transA=ta, transB=tb, alpha=0.7)


@pytest.mark.parametrize(("a", "b"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("extras", [False, True])
def test_matmul_integer_to_float(a: Any, b: Any, columns: bool, extras: bool) -> None:
    shape = (5,) if columns else ()
    inputs: Inputs = {
        "a": integers(a, 2, 3, 4), "b": in_seven_bits(integers(b, 4, 5)), "sa": scale(),
        "sb": RNG.uniform(0.01, 0.05, shape).astype(np.float32),
        "za": zero(a) if extras else None, "zb": np.full(shape, 2, b) if extras else None,
        "bias": RNG.normal(size=5).astype(np.float32) if extras else None,
    }  # fmt: skip
    agree("MatMulIntegerToFloat", inputs)


@pytest.mark.parametrize("b", BYTES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("extras", [False, True])
def test_dynamic_quantize_matmul(b: Any, columns: bool, extras: bool) -> None:
    shape = (5,) if columns else ()
    inputs: Inputs = {
        "a": RNG.normal(size=(2, 3, 4)).astype(np.float32), "b": in_seven_bits(integers(b, 4, 5)),
        "sb": RNG.uniform(0.01, 0.05, shape).astype(np.float32), "zb": np.full(shape, 2, b) if extras else None,
        "bias": RNG.normal(size=5).astype(np.float32) if extras else None,
    }  # fmt: skip
    agree("DynamicQuantizeMatMul", inputs)


def test_matmul_integer_16() -> None:
    inputs: Inputs = {"a": integers(np.int16, 2, 3, 4), "b": integers(np.int16, 4, 5)}
    agree("MatMulInteger16", inputs, element=TensorProto.INT32)


# ---- packed weights ------------------------------------------------------------------------------------------------


def packed_weights(n: int, k: int, bits: int, size: int, dtype: Any = np.float32) -> Inputs:
    blocks = -(-k // size)
    return {
        "b": integers(np.uint8, n, blocks, size * bits // 8),
        "s": RNG.uniform(0.01, 0.1, (n, blocks)).astype(dtype),
    }


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("k", "size"), [(64, 32), (40, 16), (100, 32)])
@pytest.mark.parametrize("points", ["none", "packed", "float"])
@pytest.mark.parametrize("rows", [(2, 3), (1, 1)])
def test_matmul_nbits(bits: int, k: int, size: int, points: str, rows: tuple[int, ...]) -> None:
    n, blocks = 5, -(-k // size)
    inputs: Inputs = {"a": RNG.normal(size=(*rows, k)).astype(np.float32), **packed_weights(n, k, bits, size)}
    if points == "packed":
        inputs["z"] = integers(np.uint8, n, -(-blocks * bits // 8))
    elif points == "float":
        inputs["z"] = RNG.uniform(0, 1 << bits, (n, blocks)).astype(np.float32)
    inputs |= {"z": inputs.get("z"), "g": None, "bias": RNG.normal(size=n).astype(np.float32) if k == 40 else None}
    options: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": size}
    constants = [name for name in ("b", "s", "z") if inputs[name] is not None]
    if points != "float" or bits < 8:  # ONNX Runtime has no kernel for floats beside bytes
        agree("MatMulNBits", inputs, constants=constants, tolerance=2e-4, **options)
        return
    q = np.asarray(inputs["b"]).reshape(n, -1)[:, :k].astype(np.float64)
    z, s = (np.repeat(np.asarray(inputs[name]), size, 1)[:, :k] for name in ("z", "s"))
    want = np.asarray(inputs["a"]) @ ((q - z) * s).T + (0 if inputs["bias"] is None else inputs["bias"])
    got = interpreted(node_model("MatMulNBits", inputs, constants=constants, **options), inputs)[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("rows", [3, 1])
def test_matmul_nbits_takes_flat_parameters_and_half_floats(rows: int) -> None:
    n, k, size = 4, 64, 32
    inputs: Inputs = {"a": RNG.normal(size=(rows, k)).astype(np.float16), **packed_weights(n, k, 4, size, np.float16)}
    options: dict[str, Any] = {"K": k, "N": n, "bits": 4, "block_size": size, "element": TensorProto.FLOAT16}
    (whole,) = agree("MatMulNBits", inputs, constants=["b", "s"], tolerance=2e-2, **options)
    flat: Inputs = {**inputs, "s": np.asarray(inputs["s"]).reshape(-1)}
    compare(interpreted(node_model("MatMulNBits", flat, **options), flat), [whole], 0)


def test_matmul_nbits_groups_rows_by_index() -> None:
    n, k, size = 3, 64, 16
    inputs: Inputs = {"a": RNG.normal(size=(2, k)).astype(np.float32), **packed_weights(n, k, 8, size), "z": None}
    groups = RNG.integers(0, k // size, k).astype(np.int32)
    weights = np.asarray(inputs["b"]).reshape(n, k).astype(np.float64) - 128
    want = np.asarray(inputs["a"]) @ (weights * np.asarray(inputs["s"])[:, groups]).T
    inputs["g"] = groups
    model = node_model("MatMulNBits", inputs, K=k, N=n, bits=8, block_size=size)
    np.testing.assert_allclose(interpreted(model, inputs)[0], want, rtol=1e-5, atol=1e-4)


def test_packed_weights_stay_packed_and_run_compiled() -> None:
    n, k = 256, 256
    inputs: Inputs = {"a": RNG.normal(size=(3, k)).astype(np.float32), **packed_weights(n, k, 4, 32)}
    model = node_model(
        "MatMulNBits", inputs, K=k, N=n, bits=4, block_size=32, constants=["b", "s"], dims={"a": ["m", k]}
    )
    program = import_onnx(model)
    assert sum(program.weights[name].nbytes for name in program.weights) == n * k // 2 + n * (k // 32) * 4
    PassManager(parse_pipeline(target_named("xla:cpu").pipeline())).run(program)
    assert sum(program.weights[name].nbytes for name in program.weights) == n * k // 2 + n * (k // 32) * 4
    assert not [op for op in program.ops() if op.name == "stablehlo.transpose"]
    compiled_agrees(model, [inputs, {**inputs, "a": RNG.normal(size=(7, k)).astype(np.float32)}], 2e-3)


def test_one_row_is_summed_without_storing_unpacked_weights() -> None:
    n, k = 64, 256
    inputs: Inputs = {"a": RNG.normal(size=(1, k)).astype(np.float32), **packed_weights(n, k, 4, 32)}
    model = node_model("MatMulNBits", inputs, K=k, N=n, bits=4, block_size=32, constants=["b", "s"])
    assert not [op for op in import_onnx(model).ops() if op.name == "stablehlo.dot_general"]
    compiled_agrees(model, [inputs], 2e-3)


def test_columns_of_one_rows_product_are_filled_up() -> None:
    n, k = 515, 96
    inputs: Inputs = {"a": RNG.normal(size=(1, k)).astype(np.float32), **packed_weights(n, k, 4, 32)}
    model = node_model("MatMulNBits", inputs, K=k, N=n, bits=4, block_size=32, constants=["b", "s"])
    shapes = [program.weights[name].shape for program in [import_onnx(model)] for name in program.weights]
    assert {(3, 16, 576), (3, 576)} <= set(shapes)
    compiled_agrees(model, [inputs], 2e-3)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("n", "k", "size"), [(4, 32, 16), (3, 33, 16), (5, 24, 64)])
def test_matmul_bnb4(kind: int, n: int, k: int, size: int) -> None:
    inputs: Inputs = {
        "a": RNG.normal(size=(2, k)).astype(np.float32), "b": integers(np.uint8, (n * k + 1) // 2),
        "s": RNG.uniform(0.1, 1, -(-n * k // size)).astype(np.float32),
    }  # fmt: skip
    options: dict[str, Any] = {"K": k, "N": n, "block_size": size, "quant_type": kind}
    agree("MatMulBnb4", inputs, constants=["b", "s"], tolerance=1e-4, **options)


NARROW = [ml_dtypes.int4, ml_dtypes.uint4]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("gather", "block"), [(0, 1), (1, 0), (0, 2), (2, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("pointed", [False, True])
def test_gather_block_quantized(dtype: Any, gather: int, block: int, pointed: bool) -> None:
    shape = (20, 33, 18)
    low, high = (-8, 8) if dtype is ml_dtypes.int4 else (0, 16)
    blocks = [-(-s // 16) if i == block else s for i, s in enumerate(shape)]
    inputs: Inputs = {
        "x": RNG.integers(low, high, shape).astype(dtype), "i": np.array([[0, 5, -1], [17, -18, 3]], np.int64),
        "s": RNG.uniform(0.1, 1, blocks).astype(np.float32),
        "z": RNG.integers(low, high, blocks).astype(dtype) if pointed else None,
    }  # fmt: skip
    model = node_model("GatherBlockQuantized", inputs, constants=["x", "s", *(["z"] if pointed else [])],
                       gather_axis=gather, quantize_axis=block, block_size=16)  # fmt: skip
    model.opset_import[0].version = 21
    compare(interpreted(model, inputs), peer(model, inputs), 1e-6)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("pointed", [False, True])
def test_gather_block_quantized_of_bytes(bits: int, pointed: bool) -> None:
    rows, width = 20, 64
    inputs: Inputs = {
        "x": integers(np.uint8, rows, width * bits // 8), "i": np.array([0, 19, -1, 25, -30], np.int32),
        "s": RNG.uniform(0.1, 1, (rows, width // 16)).astype(np.float32),
        "z": integers(np.uint8, rows, -(-width // 16 * bits // 8)) if pointed else None,
    }  # fmt: skip
    options: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": bits}
    agree("GatherBlockQuantized", inputs, constants=["x", "s", *(["z"] if pointed else [])], tolerance=1e-6, **options)


def test_gather_block_quantized_of_narrow_floats() -> None:
    data = RNG.normal(size=(6, 32)).astype(ml_dtypes.float8_e4m3fn)
    for blocks, size in (((6, 2), 16), ((1, 1), 0)):
        inputs: Inputs = {
            "x": data,
            "i": np.array([5, 0], np.int64),
            "s": RNG.uniform(0.1, 1, blocks).astype(np.float32),
        }
        model = node_model("GatherBlockQuantized", inputs, constants=["x", "s"], gather_axis=0, quantize_axis=1,
                           block_size=size)  # fmt: skip
        model.opset_import[0].version = 21
        compare(interpreted(model, inputs), peer(model, inputs), 1e-6)


# ---- what is refused -----------------------------------------------------------------------------------------------

W = packed_weights(4, 64, 4, 32)
A64, NONE = np.zeros((2, 64), np.float32), np.zeros(1, np.int64)
NBITS = {"K": 64, "N": 4, "bits": 4, "block_size": 32}
REFUSED: list[tuple[str, Inputs, dict[str, Any], type[Exception]]] = [
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "bits": 3}, UnsupportedError),
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "block_size": 24}, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "block_size": 0}, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "N": 5}, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "K": -64}, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W}, {**NBITS, "weight_prepacked": 1}, UnsupportedError),
    ("MatMulNBits", {"a": A64[:, :32], **W}, NBITS, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W, "z": np.zeros((4, 2), np.int8)}, NBITS, InvalidModelError),
    ("MatMulNBits", {"a": A64, **W, "z": None, "g": np.zeros(9, np.int32)}, NBITS, InvalidModelError),
    ("MatMulBnb4", {"a": A64, "b": np.zeros(128, np.uint8), "s": np.ones(16, np.float32)},
     {"K": 64, "N": 4, "block_size": 16, "quant_type": 2}, InvalidModelError),
    ("QLinearConcat", {"s": scale(), "z": zero(np.int8), "x": integers(np.int8, 2), "sx": scale()}, {"axis": 0},
     InvalidModelError),
    ("QLinearAdd", {"a": integers(np.int8, 2), "sa": scale(), "za": zero(np.uint8), "b": integers(np.int8, 2),
                    "sb": scale(), "zb": None, "sc": scale()}, {}, InvalidModelError),
    ("QLinearAdd", {"a": integers(np.int8, 2), "sa": np.ones(2, np.float32), "za": None, "b": integers(np.int8, 2),
                    "sb": scale(), "zb": None, "sc": scale()}, {}, InvalidModelError),
    ("GatherBlockQuantized", {"x": integers(np.uint8, 4, 8), "i": NONE, "s": np.ones((4, 1), np.float32)},
     {"gather_axis": 1, "quantize_axis": 0, "block_size": 16}, UnsupportedError),
    ("GatherBlockQuantized", {"x": integers(np.int8, 4, 8), "i": NONE, "s": np.ones((4, 1), np.float32)},
     {"block_size": 16}, InvalidModelError),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_contradictions_are_refused(case: int) -> None:
    op, inputs, attributes, error = REFUSED[case]
    with pytest.raises(error):
        import_onnx(node_model(op, inputs, **attributes))


# ---- layers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("segmented", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_q_embed_layer_normalization(dtype: Any, segmented: bool, masked: bool) -> None:
    def optional(value: Array, wanted: bool) -> Array | None:
        return value if wanted else None

    inputs: Inputs = {
        "ids": RNG.integers(0, 9, (2, 5)).astype(np.int32),
        "segments": optional(RNG.integers(0, 2, (2, 5)).astype(np.int32), segmented),
        "word": integers(dtype, 9, 8), "position": integers(dtype, 6, 8),
        "segment": optional(integers(dtype, 2, 8), segmented),
        "gamma": integers(dtype, 8), "beta": integers(dtype, 8),
        "mask": optional(np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], np.int32), masked),
        "ws": scale(), "ps": scale(0.02), "ss": optional(scale(0.03), segmented), "gs": scale(0.01), "bs": scale(0.04),
        "wz": zero(dtype), "pz": zero(dtype, 5), "sz": optional(zero(dtype, 1), segmented), "gz": zero(dtype, 2),
        "bz": zero(dtype, 9),
    }  # fmt: skip
    types = {"y": TensorProto.FLOAT, "count": TensorProto.INT32}
    model = node_model("QEmbedLayerNormalization", inputs, ("y", "count"), element=types, epsilon=1e-6)
    compare(interpreted(model, inputs), peer(model, inputs), 1e-4)


@pytest.mark.parametrize("op", ["MatMulFpQ4", "QMoE", "QOrderedMatMul"])
def test_layouts_of_one_machine_are_refused_with_the_reason(op: str) -> None:
    with pytest.raises(UnsupportedError, match=r"its .* lies? "):
        import_onnx(node_model(op, {"a": A64}))


@pytest.mark.parametrize("weight", BYTES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("mask", ["none", "lengths", "rows"])
@pytest.mark.parametrize("causal", [0, 1])
def test_q_attention(weight: Any, columns: bool, mask: str, causal: int) -> None:
    batch, length, width, heads = 2, 5, 8, 2
    shape = (3 * width,) if columns else ()
    masks: dict[str, Array | None] = {
        "none": None, "lengths": np.array([3, 5], np.int32),
        "rows": np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32),
    }  # fmt: skip
    inputs: Inputs = {
        "x": integers(np.uint8, batch, length, width), "w": in_seven_bits(integers(weight, width, 3 * width)),
        "bias": RNG.normal(size=3 * width).astype(np.float32), "sx": scale(0.01),
        "sw": RNG.uniform(0.005, 0.01, shape).astype(np.float32), "mask": masks[mask],
        "zx": np.array(120, np.uint8), "zw": np.full(shape, 0 if weight is np.int8 else 128, weight),
    }  # fmt: skip
    agree("QAttention", inputs, num_heads=heads, unidirectional=causal, constants=("w",), tolerance=1e-4)


def test_q_attention_with_a_cache() -> None:
    batch, length, width, heads, before = 2, 3, 8, 2, 4
    inputs: Inputs = {
        "x": integers(np.uint8, batch, length, width), "w": in_seven_bits(integers(np.int8, width, 3 * width)),
        "bias": RNG.normal(size=3 * width).astype(np.float32), "sx": scale(0.01), "sw": scale(0.01), "mask": None,
        "zx": np.array(120, np.uint8), "zw": zero(np.int8, 0),
        "past": RNG.normal(size=(2, batch, heads, before, width // heads)).astype(np.float32),
    }  # fmt: skip
    options: dict[str, Any] = {"num_heads": heads, "unidirectional": 1, "constants": ("w",), "tolerance": 1e-4}
    agree("QAttention", inputs, ("y", "present"), **options)
