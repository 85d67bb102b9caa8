"""Determinants, deformable convolutions, regions of interest, sampling, and casts of bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import pytest

import gcomp
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.support.thinning import swept
from tests.unit.onnx.graphs import model, results

RANDOM = np.random.default_rng(7)


def interpreted(proto: onnx.ModelProto, *inputs: Any) -> Any:
    program = import_onnx(proto)
    return results(program, *inputs)[0]


def from_runtime(proto: onnx.ModelProto, *inputs: Any) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    proto.ir_version = min(proto.ir_version, 10)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {p.name: x for p, x in zip(proto.graph.input, inputs, strict=True)})[0]


def values(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


# ---- determinants ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 3, 5, 5), (4, 1, 1), (2, 0, 0), (0, 3, 3), (12, 12)])
def test_determinants_are_those_of_numpy(shape: tuple[int, ...], kind: str, dtype: type) -> None:
    x = RANDOM.standard_normal(shape).astype(dtype)
    proto = model(f"({kind}{list(shape)} x) => ({kind} y) {{ y = Det(x) }}", 22)
    got = interpreted(proto, x)
    want = np.linalg.det(x.astype(np.float64))
    # The sum of the absolute products bounds what rounding can do.
    scale = np.prod(np.abs(x).sum(-1), axis=-1) if x.size else 1
    assert got.shape == want.shape and got.dtype == dtype
    assert np.all(np.abs(got - want) <= 16 * np.finfo(dtype).eps * scale)


def test_determinants_of_any_batch_and_size() -> None:
    compiled = gcomp.compile(model("(float[b, n, n] x) => (float[b] y) { y = Det(x) }", 11))
    for size in (1, 2, 4):
        x = values(3, size, size)
        assert np.allclose(compiled(x)[0], np.linalg.det(x), rtol=1e-4, atol=1e-5)
    assert np.array_equal(compiled(np.float32([[[0, 1], [1, 0]], [[0, 0], [0, 0]], [[1, 2], [2, 4]]]))[0], [-1, 0, 0])


def test_pivots_are_the_largest_of_their_column() -> None:
    # Without pivoting the tiny first element would leave nothing of the others.
    x = np.float32([[1e-20, 1], [1, 1]])
    assert interpreted(model("(float[2, 2] x) => (float y) { y = Det(x) }", 22), x) == -1
    x = np.float32([[0, 2, 0], [0, 0, 3], [4, 0, 0]])
    assert interpreted(model("(float[3, 3] x) => (float y) { y = Det(x) }", 22), x) == 24


@pytest.mark.parametrize("shape", ["3", "2, 3"])
def test_determinants_need_square_matrices(shape: str) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[{shape}] x) => (float y) {{ y = Det(x) }}", 22))


# ---- deformable convolution --------------------------------------------------------------------------------------


def _deform(attributes: str, *shapes: tuple[int, ...]) -> tuple[onnx.ModelProto, list[Any]]:
    """A model of one DeformConv, and inputs of these shapes."""
    ports = ", ".join(f"float{list(s)} x{i}" for i, s in enumerate(shapes))
    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    proto = model(f"({ports}) => (float y) {{ y = DeformConv <{attributes}> ({names}) }}", 19)
    return proto, [values(*s) for s in shapes]


@pytest.mark.parametrize(
    ("attributes", "shapes"),
    [
        ("pads = [1, 1, 1, 1]", [(2, 2, 5, 6), (3, 2, 3, 3), (2, 18, 5, 6)]),
        ("strides = [2, 1], pads = [0, 1, 2, 0]", [(1, 2, 6, 5), (3, 2, 3, 2), (1, 12, 3, 5), (3,)]),
        ("dilations = [2, 2]", [(1, 2, 6, 6), (2, 2, 2, 2), (1, 8, 4, 4), (2,), (1, 4, 4, 4)]),
        ("group = 2, offset_group = 2", [(2, 4, 4, 4), (6, 2, 2, 2), (2, 16, 3, 3), (6,), (2, 8, 3, 3)]),
        ("group = 2, offset_group = 4", [(1, 4, 4, 4), (2, 2, 2, 3), (1, 48, 3, 2)]),
    ],
)
def test_deformable_convolutions_are_those_of_the_onnx_reference(attributes: str, shapes: Any) -> None:
    proto, inputs = _deform(attributes, *shapes)
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, {f"x{i}": x for i, x in enumerate(inputs)})
    assert np.allclose(interpreted(proto, *inputs), want, rtol=1e-4, atol=1e-4)


def test_deformable_convolution_without_offsets_is_a_convolution() -> None:
    proto, (x, w, offset) = _deform("pads = [1, 0, 1, 1, 0, 1]", (2, 3, 4, 5, 4), (2, 3, 2, 2, 3), (2, 36, 5, 4, 4))
    conv = model(
        "(float[2, 3, 4, 5, 4] x, float[2, 3, 2, 2, 3] w) => (float y) { y = Conv <pads = [1, 0, 1, 1, 0, 1]> (x, w) }"
    )
    got = interpreted(proto, x, w, np.zeros_like(offset))
    assert np.allclose(got, interpreted(conv, x, w), rtol=1e-4, atol=1e-4)


def test_deformable_convolution_of_a_symbolic_batch_and_size() -> None:
    proto = model(
        "(float[b, 2, h, w] x, float[4, 2, 3, 3] k, float[b, 18, h, w] o) => (float[b, 4, h, w] y)"
        "{ y = DeformConv <pads = [1, 1, 1, 1]> (x, k, o) }",
        22,
    )
    compiled = gcomp.compile(proto)
    for b, h, w in ((1, 3, 4), (3, 5, 5)):
        inputs = [values(b, 2, h, w), values(4, 2, 3, 3), values(b, 18, h, w)]
        fixed, _ = _deform("pads = [1, 1, 1, 1]", *(x.shape for x in inputs))
        assert np.allclose(compiled(*inputs)[0], interpreted(fixed, *inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "shapes"),
    [
        ("group = 1", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 17, 3, 3)]),
        ("group = 1", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 4)]),
        ("group = 1", [(1, 3, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3)]),
        ("offset_group = 2", [(1, 3, 5, 5), (3, 3, 3, 3), (1, 36, 3, 3)]),
        ("group = 1", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3), (4,)]),
        ("group = 0", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3)]),
        ("offset_group = 0", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3)]),
        ("group = 1", [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3), (3,), (1, 8, 3, 3)]),
    ],
)
def test_deformable_convolutions_of_other_shapes_are_refused(attributes: str, shapes: Any) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(_deform(attributes, *shapes)[0])


# ---- regions -----------------------------------------------------------------------------------------------------

MAX_ROI = "(float[2, 3, 16, 20] x, float[r, 5] rois) => (float[r, 3, 7, 5] y)"


def test_max_roi_pool_agrees_with_onnx_runtime() -> None:
    proto = model(f"{MAX_ROI} {{ y = MaxRoiPool <pooled_shape = [7, 5], spatial_scale = 0.5> (x, rois) }}", 20)
    x = values(2, 3, 16, 20) - 1
    rois = np.float32(
        [
            [0, 0, 0, 39, 31],
            [1, 5, 3, 9, 9],
            [0, 7, 7, 7, 7],
            [1, 30, 20, 60, 50],
            [0, -9, -9, 3, 3],
            [1, 50, 50, 60, 60],
        ]
        + [[0, *RANDOM.uniform(-5, 40, 4)] for _ in range(20)]
    )
    want = from_runtime(proto, x, rois)
    assert np.array_equal(interpreted(proto, x, rois), want)
    assert np.array_equal(gcomp.compile(proto)(x, rois)[0], want)


def test_max_roi_pool_divides_regions_as_onnx_runtime_does() -> None:
    # In f32 57 / 7 * 7 is more than 57, so that the last bin has an element of its own past the region.
    proto = model(
        "(float[1, 1, 60, 60] x, float[r, 5] rois) => (float[r, 1, 7, 7] y)"
        "{ y = MaxRoiPool <pooled_shape = [7, 7]> (x, rois) }",
        20,
    )
    x = np.arange(3600, dtype=np.float32).reshape(1, 1, 60, 60)
    rois = np.float32([[0, 0, 0, n - 1, m - 1] for n in (6, 13, 57, 55) for m in (57, 8, 49)])
    want = from_runtime(proto, x, rois)
    assert np.array_equal(interpreted(proto, x, rois), want)
    assert np.array_equal(gcomp.compile(proto)(x, rois)[0], want)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 3, *swept(1)])
@pytest.mark.parametrize("transform", ["half_pixel", "output_half_pixel"])
def test_roi_align_agrees_with_onnx_runtime(mode: str, ratio: int, transform: str) -> None:
    attributes = f"""sampling_ratio = {ratio}, mode = "{mode}", coordinate_transformation_mode = "{transform}" """
    proto = model(
        "(float[2, 3, 12, 14] x, float[r, 4] rois, int64[r] batch) => (float[r, 3, 3, 2] y)"
        f"{{ y = RoiAlign <output_height = 3, output_width = 2, spatial_scale = 0.5, {attributes}> (x, rois, batch) }}",
        16,
    )
    x = values(2, 3, 12, 14) if mode == "avg" else np.abs(values(2, 3, 12, 14))
    rois = np.float32(
        [
            [0, 0, 27, 23],
            [2, 2, 14, 8],
            [5, 5, 5, 5],
            [9, 9, 2, 1],
            [-8.3, -8.1, 4.2, 4],
            [40, 40, 50, 50],
            [1, 3, 13, 21],
        ]
    )
    batch = np.int64([0, 1, 0, 1, 0, 1, 1])
    want = from_runtime(proto, x, rois, batch)
    assert np.allclose(interpreted(proto, x, rois, batch), want, rtol=1e-4, atol=1e-5)
    assert np.allclose(gcomp.compile(proto)(x, rois, batch)[0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "attributes", ['mode = "sum"', "output_height = 0", "sampling_ratio = -1", 'coordinate_transformation_mode = "x"']
)
def test_roi_align_with_other_attributes_is_refused(attributes: str) -> None:
    graph = "(float[1, 1, 4, 4] x, float[1, 4] r, int64[1] i) => (float y)"
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"{graph} {{ y = RoiAlign <{attributes}> (x, r, i) }}", 16))


# ---- sampling ----------------------------------------------------------------------------------------------------


def _sampling(kind: str, mode: str) -> onnx.ModelProto:
    graph = f"({kind}[1, 1, 1, 64] x, float[1, 1, 64, 2] g) => ({kind} y)"
    return model(f"""{graph} {{ y = GridSample <mode = "{mode}", align_corners = 1> (x, g) }}""", 20)


def test_places_are_computed_in_f32_for_half_precision_images() -> None:
    x = np.arange(64, dtype=np.float16).reshape(1, 1, 1, 64) * 8
    places = np.linspace(-1, 1, 64, dtype=np.float32)
    grid = np.stack([places, np.zeros_like(places)], -1)[None, None]
    got = interpreted(_sampling("float16", "linear"), x, grid)
    assert got.dtype == np.float16 and np.allclose(got, x, atol=1 / 16)


@pytest.mark.parametrize(("kind", "dtype"), [("int32", np.int32), ("uint8", np.uint8), ("bool", np.bool_)])
def test_integers_are_sampled_at_the_nearest_place(kind: str, dtype: type) -> None:
    x = (np.arange(64) % 5 % 2 if dtype is np.bool_ else np.arange(64) * 3).astype(dtype).reshape(1, 1, 1, 64)
    places = np.linspace(-1, 1, 64, dtype=np.float32)[::-1]
    grid = np.stack([places, np.zeros_like(places)], -1)[None, None]
    assert np.array_equal(interpreted(_sampling(kind, "nearest"), x, grid), x[..., ::-1])


def test_booleans_are_not_interpolated() -> None:
    with pytest.raises(UnsupportedError, match="nearest"):
        import_onnx(_sampling("bool", "linear"))


# ---- bits --------------------------------------------------------------------------------------------------------


def _bits(source: str, target: int) -> onnx.ModelProto:
    proto = model(f"({source}[4] x) => (bool y) {{ y = BitCast <to = {target}> (x) }}", 26)
    proto.graph.output[0].ClearField("type")
    return proto


@pytest.mark.parametrize(
    ("source", "dtype", "target"),
    [
        ("bool", np.bool_, np.uint8),
        ("bool", np.bool_, np.int8),
        ("bool", np.bool_, ml_dtypes.float8_e5m2),
        ("bool", np.bool_, np.bool_),
        ("uint8", np.uint8, np.bool_),
        ("int8", np.int8, np.bool_),
        ("int8", np.int8, np.int8),
        ("int8", np.int8, np.uint8),
        ("float", np.float32, np.int32),
    ],
)
def test_bits_stay_as_onnx_stores_them(source: str, dtype: type, target: Any) -> None:
    x = np.array([0, 1, 1, 0], dtype)
    proto = _bits(source, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target)))
    got = interpreted(proto, x)
    assert got.dtype == target and got.tobytes() == x.tobytes()


def test_bits_of_other_widths_are_refused() -> None:
    for source, target in (("bool", 6), ("float", 10), ("int64", 9)):
        with pytest.raises(InvalidModelError, match="width"):
            import_onnx(_bits(source, target))
