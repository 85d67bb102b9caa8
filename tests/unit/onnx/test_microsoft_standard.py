"""Operators of com.microsoft that ONNX took over later, transforms, distances and inverses: against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal

Inputs = dict[str, Array | None]
_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("SampleOp", {"x": _X}, {}),
        ("Trilu", {"x": _X, "k": np.int64(1)}, {"upper": 0}),
        ("Trilu", {"x": _X}, {}),
        ("GatherND", {"x": _X, "i": np.int64([[0, 1], [1, -1]])}, {}),
        ("ExpandDims", {"x": _X, "axis": np.int32(1)}, {}),
        ("ExpandDims", {"x": _X, "axis": np.int32([-2])}, {}),
        ("Pad", {"x": _X[0], "pads": np.int64([1, 0, 2, 1]), "value": np.float32([2])}, {}),
        ("Pad", {"x": _X[0], "pads": np.int64([[1, 0, 2, -1]])}, {"mode": "constant"}),
        ("Pad", {"x": _X[0], "pads": np.int64([1, 0, 2, 1])}, {"mode": "reflect"}),
        ("Pad", {"x": _X[0], "pads": np.int64([1, 0, 2, 1])}, {"mode": "edge"}),
        ("Range", {"start": np.float32([0.5]), "limit": np.float32(4), "delta": np.float32(0.5)}, {}),
        ("Range", {"start": np.float32(1), "limit": np.float32(3.5)}, {}),
        ("CDist", {"a": _X[0], "b": _X[1] / 3}, {}),
        ("CDist", {"a": _X[0], "b": _X[1] / 3}, {"metric": "euclidean"}),
    ],
)
def test_agreement(op: str, inputs: Inputs, attributes: dict[str, Any]) -> None:
    constants = [n for n in ("axis", "pads", "start", "limit", "delta") if n in inputs]
    agree(op, inputs, constants=constants, **attributes)


def test_a_range_of_integers_and_one_whose_limit_is_data() -> None:
    inputs: Inputs = {"start": np.int64(1), "limit": np.int64(5)}
    agree("Range", inputs, constants=("start", "limit"), element=TensorProto.INT64)
    agree("Range", inputs, element=TensorProto.INT64)


@pytest.mark.parametrize("constant", [True, False])
def test_unique_keeps_the_order_of_appearance(constant: bool) -> None:
    inputs: Inputs = {"x": np.float32([2, 1, 1, 3, 4, 3])}
    types = {"places": TensorProto.INT64, "counts": TensorProto.INT64}
    agree("Unique", inputs, ("y", "places", "counts"), element=types, constants=("x",) if constant else ())


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(mode: str, padding: str, corners: int) -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"x": normal(rng, 2, 3, 4, 5), "grid": normal(rng, 2, 3, 3, 2)}
    agree("GridSample", inputs, mode=mode, padding_mode=padding, align_corners=corners)


def test_conv_transpose_with_dynamic_pads() -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"x": normal(rng, 1, 4, 5, 5), "w": normal(rng, 4, 3, 3, 3)}
    inputs |= {"pads": np.int64([1, 1, 0, 1]), "b": normal(rng, 3)}
    agree("ConvTransposeWithDynamicPads", inputs, constants=("pads",), strides=[2, 2], output_padding=[1, 1])


def test_transforms_of_real_signals() -> None:
    """ONNX Runtime's CPU has no kernels for these."""
    x = normal(np.random.default_rng(0), 3, 8)
    spectrum = np.fft.rfft(x)
    parts = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    options = {"onesided": 1, "normalized": 0, "signal_ndim": 1}
    compare(interpreted(node_model("Rfft", {"x": x}, **options), {"x": x}), [parts])
    compare(interpreted(node_model("Irfft", {"x": parts}, **options), {"x": parts}), [x])


# ---- inverses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        np.float32([[4]]),
        np.float32([[0, 1], [1, 0]]),
        np.float32([[1, 2], [2, 4]]),
        np.float32([[[2, 1, 0], [0, 1e-3, 5], [7, 0, 3]], [[0, 0, 2], [0, 3, 0], [4, 0, 0]]]),
        np.float32(np.vander([1, 2, 3, -1, -2])),
    ],
)
def test_inverse(x: Array) -> None:
    agree("Inverse", {"x": x})


def test_inverse_of_symbolic_many_and_in_other_precisions() -> None:
    rng = np.random.default_rng(0)
    many = [{"x": normal(rng, n, 4, 4) + 4 * np.eye(4, dtype=np.float32)} for n in (1, 3)]
    compiled_agrees(node_model("Inverse", many[0], dims={"x": ["n", 4, 4]}), many)
    agree("Inverse", {"x": many[1]["x"].astype(np.float64)}, element=TensorProto.DOUBLE)
    agree("Inverse", {"x": many[1]["x"].astype(np.float16)}, element=TensorProto.FLOAT16)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Inverse", {"x": _X}, {}, "3"),
        ("Inverse", {"x": _X[0, 0]}, {}, "rank"),
        ("Pad", {"x": _X, "p": np.zeros((2, 6), np.int64)}, {}, "row"),
        ("Pad", {"x": _X, "p": np.zeros(6, np.int64), "v": np.zeros(2, np.float32)}, {}, "scalar"),
        ("Pad", {"x": _X, "p": np.zeros(6, np.int64)}, {"mode": "around"}, "around"),
        ("Range", {"s": np.zeros(2, np.float32), "l": np.float32(1)}, {}, "scalar"),
        ("Trilu", {"x": _X, "k": np.int32(1)}, {}, "i64"),
        ("Rfft", {"x": _X}, {"onesided": 0}, "onesided"),
        ("Irfft", {"x": _X}, {}, "last dim"),
        ("CDist", {"a": _X[0], "b": _X[0].T}, {}, "expected"),
        ("ConvTransposeWithDynamicPads", {"x": _X[None], "w": _X[None]}, {"output_padding": [1]}, "output_padding"),
        ("ConvTransposeWithDynamicPads", {"x": _X[None], "w": _X[None]}, {"strides": [0, 1]}, "strides"),
    ],
)
def test_malformed_nodes_are_refused(op: str, inputs: Inputs, attributes: Any, message: str) -> None:
    constants = [n for n in ("p",) if n in inputs]
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(node_model(op, inputs, constants=constants, **attributes))


def test_metrics_that_nobody_implements_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="cosine"):
        import_onnx(node_model("CDist", {"a": _X[0], "b": _X[0]}, metric="cosine"))
