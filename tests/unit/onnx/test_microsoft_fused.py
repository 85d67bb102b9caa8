"""Products, convolutions and activations of com.microsoft, fused with their neighbours: against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal, peer

Inputs = dict[str, Array | None]

# ---- products ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_fused_matmul(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = normal(rng, 2, 3, 3, 4), normal(rng, 2, 3, 4, 5)
    flags = {n: (seed >> i) & 1 for i, n in enumerate(("transA", "transB", "transBatchA", "transBatchB"))}
    operands: Inputs = {}
    for name, x in (("A", a), ("B", b)):
        x = np.swapaxes(x, -1, -2) if flags[f"trans{name}"] else x
        operands[name] = np.ascontiguousarray(np.moveaxis(x, 2, 0) if flags[f"transBatch{name}"] else x)
    agree("FusedMatMul", operands, alpha=0.5, **flags)


@pytest.mark.parametrize(("a", "b"), [((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2))])
def test_products_of_other_ranks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    agree("FusedMatMul", {"a": normal(rng, *a), "b": normal(rng, *b)}, transA=int(len(a) == 1), transB=int(len(b) == 1))
    agree("TransposeMatMul", {"a": normal(rng, *a), "b": normal(rng, *b)}, alpha=2.0)
    wide: Inputs = {"a": normal(rng, *a, dtype=np.float64), "b": normal(rng, *b, dtype=np.float64)}
    agree("FusedMatMul", wide, element=TensorProto.DOUBLE)


@pytest.mark.parametrize(
    ("activation", "attributes"),
    [
        ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Softplus", {}), ("Softsign", {}), ("Elu", {"alpha": 0.3}),
        ("LeakyRelu", {"alpha": 0.3}), ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("Celu", {"alpha": 0.3}),
        ("Selu", {"alpha": 0.3, "gamma": 1.3}), ("ThresholdedRelu", {"alpha": 0.3}),
    ],
)  # fmt: skip
def test_fused_gemm(activation: str, attributes: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"a": normal(rng, 3, 4), "b": normal(rng, 5, 4), "c": normal(rng, 5)}
    given = {f"activation_{name}": value for name, value in attributes.items()}
    agree("FusedGemm", inputs, activation=activation, transB=1, alpha=0.5, beta=2.0, **given)


# ---- convolutions ------------------------------------------------------------------------------------------------

_CONVOLUTIONS = [
    ("", None), ("Relu", None), ("Sigmoid", None), ("Tanh", None), ("HardSwish", None), ("LeakyRelu", [0.3]),
    ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.2, 0.5]),
]  # fmt: skip


def _conv(rng: np.random.Generator, residual: bool) -> Inputs:
    z = normal(rng, 1, 4, 6, 6) if residual else None
    return {"x": normal(rng, 1, 4, 6, 6), "w": normal(rng, 4, 2, 3, 3), "b": normal(rng, 4), "z": z}


def _attributes(activation: str, params: list[float] | None) -> dict[str, Any]:
    given: dict[str, Any] = {"activation": activation} if activation else {}
    return given | ({} if params is None else {"activation_params": params}) | {"group": 2, "pads": [1] * 4}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("activation", "params"), _CONVOLUTIONS)
def test_fused_conv(activation: str, params: list[float] | None, residual: bool) -> None:
    agree("FusedConv", _conv(np.random.default_rng(0), residual), **_attributes(activation, params))


def test_nhwc_fused_conv_is_fused_conv_with_channels_last() -> None:
    inputs, attributes = _conv(np.random.default_rng(0), True), _attributes("Relu", None)
    (want,) = peer(node_model("FusedConv", inputs, **attributes), inputs)
    last = inputs | {n: np.ascontiguousarray(np.moveaxis(np.asarray(inputs[n]), 1, 3)) for n in ("x", "z")}
    compare(interpreted(node_model("NhwcFusedConv", last, **attributes), last), [np.moveaxis(want, 1, 3)])


# ---- activations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "bias", "attributes"),
    [
        ("Gelu", False, {}), ("BiasGelu", True, {}), ("FastGelu", False, {}), ("FastGelu", True, {}),
        ("QuickGelu", False, {}), ("QuickGelu", False, {"alpha": 1.0}), ("ScaledSiLU", False, {"alpha": 0.7}),
    ],
)  # fmt: skip
def test_activations(op: str, bias: bool, attributes: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"x": normal(rng, 2, 3, 8) * 3} | ({"b": normal(rng, 8)} if bias else {})
    agree(op, inputs, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_silus_scale_may_be_an_input(dtype: Any) -> None:
    inputs: Inputs = {"x": normal(np.random.default_rng(0), 4, 8, dtype=dtype), "scale": np.float32(0.3)}
    agree("ScaledSiLU", inputs, element=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _erf_gelu(x: Array) -> Array:
    from math import erf

    return (x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))).astype(x.dtype)


def test_sums_with_biases_follow_their_formulas() -> None:
    """ONNX Runtime's CPU has no kernels for these."""
    rng = np.random.default_rng(0)
    x, bias, skip = normal(rng, 2, 3, 8), normal(rng, 8), normal(rng, 2, 3, 8)
    cases: list[tuple[str, Inputs, Array]] = [
        ("BiasAdd", {"x": x, "b": bias, "s": skip}, x + bias + skip),
        ("BiasDropout", {"x": x, "b": bias, "r": skip, "ratio": np.float32(0.5)}, x + bias + skip),
        ("BiasDropout", {"x": x, "b": skip}, x + skip),
        ("BiasSplitGelu", {"x": x, "b": bias}, (x + bias)[..., :4] * _erf_gelu((x + bias)[..., 4:])),
    ]
    for op, inputs, want in cases:
        compare(interpreted(node_model(op, inputs), inputs), [want])


def test_the_mask_of_bias_dropout_is_all_true() -> None:
    inputs: Inputs = {"x": np.zeros((2, 3), np.float32), "b": np.zeros(3, np.float32)}
    model = node_model("BiasDropout", inputs, ("y", "mask"), element={"mask": TensorProto.BOOL})
    assert interpreted(model, inputs)[1].all()


@pytest.mark.parametrize(("shape", "inner", "axis"), [((2, 1, 1, 5), 1, 3), ((1, 1, 4, 5), 0, 3), ((4, 5), 0, -1),
                                                      ((1, 1, 4, 5), 0, 2)])  # fmt: skip
def test_bias_softmax(shape: tuple[int, ...], inner: int, axis: int) -> None:
    rng = np.random.default_rng(0)
    x, bias = normal(rng, 2, 3, 4, 5), normal(rng, *shape)
    inputs: Inputs = {"x": x, "b": bias}
    total = np.exp(x.astype(np.float64) + bias)
    axes = tuple(range(axis % 4, 4))
    want = (total / total.sum(axes, keepdims=True)).astype(np.float32)
    compare(interpreted(node_model("BiasSoftmax", inputs, axis=axis, is_inner_broadcast=inner), inputs), [want])


def test_symbolic_sizes() -> None:
    rng = np.random.default_rng(0)
    bias = normal(rng, 8)
    dims = {"x": ["b", "s", 8]}
    model = node_model("BiasGelu", {"x": normal(rng, 1, 1, 8), "b": bias}, dims=dims, constants=("b",))
    compiled_agrees(model, [{"x": normal(rng, 2, 3, 8), "b": bias}, {"x": normal(rng, 1, 5, 8), "b": bias}])
    dims = {"a": ["b", "s", 4], "c": ["b", "t", 4]}
    calls: list[Inputs] = [{"a": normal(rng, b, s, 4), "c": normal(rng, b, t, 4)} for b, s, t in ((2, 3, 5), (1, 2, 2))]
    compiled_agrees(node_model("FusedMatMul", calls[0], dims=dims, transB=1), calls)


# ---- what is refused ---------------------------------------------------------------------------------------------

_X, _M = np.zeros((2, 3, 8), np.float32), np.zeros((3, 4), np.float32)
_CONV: Inputs = {"x": np.zeros((1, 4, 6, 6), np.float32), "w": np.zeros((4, 4, 3, 3), np.float32)}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("FusedMatMul", {"a": _M}, {}, "missing"),
        ("FusedMatMul", {"a": _M, "b": _M}, {}, "3"),
        ("FusedMatMul", {"a": _M, "b": np.float32(1)}, {}, "rank 0"),
        ("FusedMatMul", {"a": _M, "b": _M.T}, {"trans": 1}, "trans"),
        ("FusedMatMul", {"a": _M, "b": _M.T.astype(np.int32)}, {}, "i32"),
        ("FusedGemm", {"a": _X, "b": _M}, {}, "rank"),
        ("FusedConv", _CONV, {"activation": "LeakyRelu"}, "activation_params"),
        ("FusedConv", _CONV, {"activation": "Relu", "activation_params": [1.0]}, "activation_params"),
        ("FusedConv", _CONV | {"b": None, "z": _X}, {}, "rank"),
        ("FusedConv", _CONV | {"b": np.zeros(3, np.float32)}, {}, "4"),
        ("BiasGelu", {"x": _X}, {}, "missing"),
        ("BiasGelu", {"x": _X, "b": np.zeros(7, np.float32)}, {}, "8"),
        ("BiasGelu", {"x": np.float32(1), "b": np.zeros(7, np.float32)}, {}, "rank 0"),
        ("FastGelu", {"x": _X, "b": _M}, {}, "rank"),
        ("BiasSplitGelu", {"x": _X[..., :7], "b": np.zeros(7, np.float32)}, {}, "multiple"),
        ("BiasSoftmax", {"x": _X, "b": _X}, {}, "is_inner_broadcast"),
        ("BiasSoftmax", {"x": _X, "b": _X}, {"is_inner_broadcast": 0, "axis": 3}, "axis"),
    ],
)
def test_malformed_nodes_are_refused(op: str, inputs: Inputs, attributes: Any, message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(node_model(op, inputs, **attributes))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("FusedConv", _CONV, {"activation": "Frobnicate"}, "Frobnicate"),
        ("FusedGemm", {"a": _M, "b": _M.T}, {"activation": "Clip"}, "Clip"),
        ("BiasSoftmax", {"x": _X, "b": _X[0]}, {"is_inner_broadcast": 1}, "between"),
    ],
)
def test_unsupported_forms_say_why(op: str, inputs: Inputs, attributes: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(node_model(op, inputs, **attributes))
