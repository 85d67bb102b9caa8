"""Contrib operators that cut, pool and convolve, against ONNX Runtime, or against ONNX's operator where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal, peer

RNG = np.random.default_rng(0)
Inputs = dict[str, Array | None]

CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2], "kernel_shape": [3, 2]},
    {"group": 2, "auto_pad": "SAME_UPPER"},
]


@pytest.mark.parametrize("attributes", CONVOLUTIONS)
def test_nhwc_conv_is_conv_with_channels_last_everywhere(attributes: dict[str, Any]) -> None:
    x, w, bias = normal(RNG, 2, 4, 7, 8), normal(RNG, 6, 4 // attributes.get("group", 1), 3, 2), normal(RNG, 6)
    first: Inputs = {"x": x, "w": w, "b": bias}
    last: Inputs = {"x": x.transpose(0, 2, 3, 1), "w": w.transpose(0, 2, 3, 1), "b": bias}
    (want,) = peer(node_model("Conv", first, domain="", **attributes), first)
    (got,) = interpreted(node_model("NhwcConv", last, **attributes), last)
    compare([got], [want.transpose(0, 2, 3, 1)])


def test_nhwc_conv_refuses_a_kernel_with_channels_first() -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(node_model("NhwcConv", {"x": normal(RNG, 1, 7, 8, 4), "w": normal(RNG, 6, 4, 3, 2)}))
    with pytest.raises(InvalidModelError):
        import_onnx(node_model("NhwcConv", {"x": normal(RNG, 1, 7, 8, 4), "w": normal(RNG, 6, 4, 4)}))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 3]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"kernel_shape": [2, 2], "dilations": [2, 1], "auto_pad": "VALID"},
    ],
)
def test_nhwc_max_pool(dtype: Any, attributes: dict[str, Any]) -> None:
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max + 1, (2, 7, 8, 3)).astype(dtype)
    agree("NhwcMaxPool", {"x": x}, element=onnx.helper.np_dtype_to_tensor_dtype(x.dtype), **attributes)


BOXES = np.array(
    [[0.1, 0.2, 0.9, 0.7], [0, 0, 1, 1], [0.8, 0.9, 0.2, 0.1], [-0.3, 0.1, 0.5, 1.4], [0.5, 0.5, 0.5, 0.5]], np.float32
)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("crop", [(3, 4), (1, 5), (6, 1), (1, 1)])
def test_crop_and_resize(mode: str, crop: tuple[int, int]) -> None:
    inputs: Inputs = {
        "x": normal(RNG, 2, 3, 6, 9), "rois": BOXES, "at": np.array([0, 1, 1, 0, 1], np.int32),
        "size": np.array(crop, np.int32),
    }  # fmt: skip
    agree("CropAndResize", inputs, constants=("size",), mode=mode, extrapolation_value=-7.5)


def test_crop_and_resize_of_any_image_and_number_of_boxes() -> None:
    inputs: Inputs = {
        "x": normal(RNG, 2, 3, 6, 9), "rois": BOXES, "at": np.array([0, 1, 1, 0, 1], np.int32),
        "size": np.array([4, 3], np.int32),
    }  # fmt: skip
    dims = {"x": ["n", 3, "h", "w"], "rois": ["m", 4], "at": ["m"]}
    model = node_model("CropAndResize", inputs, constants=("size",), dims=dims)
    other: Inputs = {**inputs, "x": normal(RNG, 1, 3, 4, 5), "rois": BOXES[:2], "at": np.zeros(2, np.int32)}
    compiled_agrees(model, [inputs, other])


def test_crop_and_resize_refuses_what_it_does_not_know() -> None:
    inputs: Inputs = {"x": normal(RNG, 1, 1, 4, 4), "rois": BOXES[:1], "at": np.zeros(1, np.int32)}
    for size, options in (([0, 3], {}), ([2, 2, 2], {}), ([2, 2], {"mode": "cubic"})):
        given: Inputs = {**inputs, "size": np.array(size, np.int32)}
        with pytest.raises(InvalidModelError):
            import_onnx(node_model("CropAndResize", given, constants=("size",), **options))


@pytest.mark.parametrize(("dim", "size", "step"), [(1, 2, 2), (-1, 4, 1), (0, 1, 1), (2, 3, 2)])
def test_unfold_tensor(dim: int, size: int, step: int) -> None:
    agree("UnfoldTensor", {"x": normal(RNG, 2, 5, 6, 4)}, dim=dim, size=size, step=step)


def test_unfold_tensor_of_any_size() -> None:
    options: dict[str, Any] = {"dim": 1, "size": 3, "step": 2}
    model = node_model("UnfoldTensor", {"x": normal(RNG, 2, 7)}, dims={"x": [2, "n"]}, **options)
    compiled_agrees(model, [{"x": normal(RNG, 2, n)} for n in (3, 4, 9)])
    with pytest.raises(InvalidModelError):
        import_onnx(node_model("UnfoldTensor", {"x": normal(RNG, 2, 2)}, **options))
