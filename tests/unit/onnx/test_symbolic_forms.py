"""Operators whose sizes come from symbolic shapes, compared with NumPy and ONNX Runtime at several sizes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import gcomp
from gcomp.errors import GcompError, InputError, InvalidModelError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model, numbers, results


def from_runtime(proto: onnx.ModelProto, *inputs: Any) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    proto.ir_version = 8
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {p.name: x for p, x in zip(proto.graph.input, inputs, strict=True)})[0]


# ---- Pad ---------------------------------------------------------------------------------------------------------

PADDED = """(float[2, n] x) => (float[2, m] y) <int64[1] zero = {{0}}, int64[1] eight = {{8}}, int64[1] one = {{1}}> {{
    size = Shape <start = 1> (x)
    rest = Mod (size, eight)
    missing = Sub (eight, rest)
    pads = Concat <axis = 0> (zero, {before}, zero, {after})
    y = Pad <mode = "{mode}"> (x, pads)
}}"""


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(("before", "after"), [("zero", "missing"), ("missing", "one"), ("size", "size")])
def test_pads_of_symbolic_sizes(mode: str, before: str, after: str) -> None:
    proto = model(PADDED.format(mode=mode, before=before, after=after), 19)
    program = import_onnx(proto)
    compiled = gcomp.compile(proto)
    for n in (1, 2, 3, 7, 8, 13):
        x = numbers(2, n)
        size = {"zero": 0, "one": 1, "size": n, "missing": 8 - n % 8}
        want = np.pad(x, ((0, 0), (size[before], size[after])), mode)  # pyright: ignore
        assert np.array_equal(results(program, x)[0], want), n
        assert np.array_equal(compiled(x)[0], want), n


CROPPED = """(float[2, n] x) => (float[2, m] y) <int64[1] zero = {{0}}, int64[1] four = {{4}}> {{
    size = Shape <start = 1> (x)
    missing = Sub (four, size)
    pads = Concat <axis = 0> (zero, missing, zero, zero)
    y = Pad <mode = "{mode}"> (x, pads)
}}"""


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_of_symbolic_sign_crop_where_they_are_negative(mode: str) -> None:
    program = import_onnx(model(CROPPED.format(mode=mode), 19))
    for n in (1, 2, 3, 4, 5, 9):
        x = numbers(2, n)
        want = x[:, n - 4 :] if n > 4 else np.pad(x, ((0, 0), (4 - n, 0)), mode)  # pyright: ignore
        assert np.array_equal(results(program, x)[0], want), n


# ---- TopK --------------------------------------------------------------------------------------------------------


def test_top_k_with_k_from_shapes() -> None:
    proto = model(
        """(float[b, n] x) => (float[b, k] values, int64[b, k] places) <int64[1] five = {5}> {
            size = Shape <start = 1> (x)
            k = Min (size, five)
            values, places = TopK (x, k)
        }""",
        18,
    )
    compiled = gcomp.compile(proto)
    for n in (1, 4, 5, 9):
        x = numbers(2, n)
        order = np.argsort(-x, axis=1, kind="stable")[:, :5]
        values, places = compiled(x)
        assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, 1))


def test_top_k_with_a_k_that_can_be_too_large_checks_it_at_the_call() -> None:
    proto = model(
        """(float[n] x, float[k] y) => (float[k] values, int64[k] places) {
            k = Shape (y)
            values, places = TopK (x, k)
        }""",
        18,
    )
    program = import_onnx(proto)
    assert np.array_equal(results(program, numbers(5), numbers(2))[0], np.sort(numbers(5))[::-1][:2])
    with pytest.raises(GcompError):
        results(program, numbers(2), numbers(5))


@pytest.mark.parametrize("k", ["int64[1] k = {-1}", "int64[1] k = {4}", "int64[2] k = {1, 2}", "int64[1, 1] k = {1}"])
def test_a_k_that_does_not_fit_is_refused(k: str) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[3] x) => (float[m] v, int64[m] i) <{k}> {{ v, i = TopK (x, k) }}", 18))


# ---- Slice -------------------------------------------------------------------------------------------------------

SLICED = """(float[n] x) => (float[m] y) <int64[1] three = {{3}}, int64[1] far = {{100}}, int64[1] zero = {{0}}> {{
    size = Shape (x)
    bound = Sub (size, three)
    y = Slice (x, {bounds})
}}"""


@pytest.mark.parametrize("bounds", ["bound, far", "zero, bound"])
def test_slices_at_bounds_whose_sign_depends_on_the_size(bounds: str) -> None:
    program = import_onnx(model(SLICED.format(bounds=bounds), 13))
    for n in (1, 2, 3, 4, 7):
        x = numbers(n)
        want = x[n - 3 :] if bounds.startswith("bound") else x[: n - 3]
        assert np.array_equal(results(program, x)[0], want), n


# ---- Resize ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nearest", ["floor", "round_prefer_floor", "ceil"])
@pytest.mark.parametrize("scale", [2.0, 0.5, 1.5])
def test_resize_as_tensorflow_does_for_nearest_neighbours(nearest: str, scale: float) -> None:
    body = f"""<float[0] roi = {{}}, float[4] scales = {{1.0, 1.0, {scale}, {scale}}}> {{
        y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "{nearest}">
            (x, roi, scales)
    }}"""
    x = numbers(1, 1, 6, 8)
    static = model(f"(float[1, 1, 6, 8] x) => (float[1, 1, h, w] y) {body}", 11)
    assert np.array_equal(results(import_onnx(static), x)[0], from_runtime(static, x))
    symbolic = model(f"(float[1, 1, a, b] x) => (float[1, 1, h, w] y) {body}", 11)
    assert np.array_equal(results(import_onnx(symbolic), x)[0], from_runtime(static, x))
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[1, 1, 6, 8] x) => (float[1, 1, h, w] y) {body}", 13))


@pytest.mark.parametrize("scales", ["float[2, 2] s = {1.0, 1.0, 2.0, 2.0}", "float[3] s = {1.0, 1.0, 2.0}"])
def test_scales_of_another_shape_are_refused(scales: str) -> None:
    for opset, inputs in ((10, "x, s"), (11, "x, s, s"), (9, "x, s")):
        operator = "Upsample" if opset == 9 else "Resize"
        with pytest.raises(InvalidModelError):
            import_onnx(
                model(
                    f"(float[1, 1, 2, 2] x) => (float[1, 1, h, w] y) <{scales}> {{ y = {operator} ({inputs}) }}", opset
                )
            )


# ---- normalizations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize(
    "node",
    [
        "LRN <size = 3> (x)",
        "LpNormalization <p = 2> (x)",
        "LpNormalization <p = 1> (x)",
        "MeanVarianceNormalization (x)",
    ],
)
def test_narrow_floats_are_normalized_in_f32(node: str, kind: str, dtype: Any) -> None:
    if "LpNorm" in node and kind == "bfloat16":
        pytest.skip("LpNormalization takes bfloat16 from opset 22 on")
    # In f16 the squares overflow, and the means of squares cancel.
    x = (numbers(2, 3, 4, 5) + 600).astype(dtype)
    wide = model(f"(float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {{ y = {node} }}", 13)
    want = results(import_onnx(wide), x.astype(np.float32))[0].astype(dtype)
    got = results(import_onnx(model(f"({kind}[2, 3, 4, 5] x) => ({kind}[2, 3, 4, 5] y) {{ y = {node} }}", 13)), x)[0]
    assert got.dtype == dtype and np.array_equal(got, want)


def test_mean_variance_normalization_does_not_cancel() -> None:
    x = numbers(4, 2, 3, 3) + np.float32(20000)
    program = import_onnx(
        model("(float[4, 2, 3, 3] x) => (float[4, 2, 3, 3] y) { y = MeanVarianceNormalization (x) }", 13)
    )
    exact = x.astype(np.float64)
    want = (exact - exact.mean((0, 2, 3), keepdims=True)) / exact.std((0, 2, 3), keepdims=True)
    assert np.allclose(results(program, x)[0], want, atol=1e-3)


@pytest.mark.parametrize(
    "node",
    [
        "InstanceNormalization (x, x, x)",
        "GroupNormalization <num_groups = 1> (x, x, x)",
        "LRN <size = 3> (x)",
        "BatchNormalization (t, x, x, x, x)",
        "DepthToSpace <blocksize = 2> (x)",
        "SpaceToDepth <blocksize = 2> (x)",
        "Slice (x, s, s)",
        "Slice (x, two, two)",
    ],
)
def test_ranks_that_do_not_fit_are_refused(node: str) -> None:
    initializers = "<int64 s = {1}, int64[2] two = {1, 1}>"
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[4] x, float t) => (float y) {initializers} {{ y = {node} }}", 21))


@pytest.mark.parametrize(
    "node", ['DepthToSpace <blocksize = 2, mode = "XYZ"> (x)', 'SpaceToDepth <blocksize = 2, mode = "XYZ"> (x)']
)
def test_other_orders_of_blocks_are_refused(node: str) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[1, 4, 2, 2] x) => (float y) {{ y = {node} }}", 28))


@pytest.mark.parametrize("size", [0, -1])
def test_windows_of_no_channels_are_refused(size: int) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[1, 4, 2, 2] x) => (float y) {{ y = LRN <size = {size}> (x) }}", 13))


@pytest.mark.parametrize("node", ["LpPool <p = 0, kernel_shape = [2]> (x)", "GlobalLpPool <p = -1> (x)"])
def test_norms_of_no_positive_order_are_refused(node: str) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(model(f"(float[1, 4, 2] x) => (float y) {{ y = {node} }}", 18))


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (3.0, -2.0), (1.0, 0.25), (-1.5, 0.75)])
def test_integer_matrices_are_scaled_by_fractions(alpha: float, beta: float) -> None:
    proto = model(
        "(int32[2, 3] x, int32[3, 4] k, int32[4] c) => (int32[2, 4] y)"
        f"{{ y = Gemm <alpha = {alpha}, beta = {beta}> (x, k, c) }}",
        13,
    )
    x, k, c = (numbers(*s).astype(np.int32) for s in ((2, 3), (3, 4), (4,)))
    assert np.array_equal(results(import_onnx(proto), x, k, c)[0], np.trunc(alpha * (x @ k) + beta * c))


# ---- Squeeze, and sizes without a name ------------------------------------------------------------------------------


def test_squeeze_without_axes_takes_symbolic_sizes_for_more_than_one() -> None:
    compiled = gcomp.compile(model("(float[n, 1, 4] x) => (float[n, 4] y) { y = Squeeze (x) }", 20))
    x = numbers(3, 1, 4)
    assert np.array_equal(compiled(x)[0], x[:, 0])
    with pytest.raises(InputError, match=r"Squeeze.*2 must be at most n = 1"):
        compiled(numbers(1, 1, 4))
    one = gcomp.compile(model("(float[n, 1, 4] x) => (float[4] y) { y = Squeeze (x) }", 20), dims={"n": 1})
    assert np.array_equal(one(numbers(1, 1, 4))[0], numbers(1, 1, 4)[0, 0])


def test_a_symbolic_size_that_must_be_one_is_one_from_there_on() -> None:
    graph = """(float[n, 4] x) => (y) <int64[1] axis = {0}>
        { a = Squeeze (x, axis)  b = Squeeze (x)  y = Add (a, b) }"""
    program = import_onnx(model(graph, 20))
    assert program.outputs()[0].shape == (4,)
    assert [(c.kind, str(c.lhs), c.rhs) for c in program.constraints] == [("eq", "n", 1)]


@pytest.mark.parametrize("unknown", ["?", "None", -1])
def test_sizes_without_a_name_are_sizes_of_their_own(unknown: str | int) -> None:
    info = onnx.helper.make_tensor_value_info
    shape = [unknown, 3, unknown]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", ["x"], ["y"])],
        "g",
        [info("x", onnx.TensorProto.FLOAT, shape)],
        [info("y", onnx.TensorProto.FLOAT, shape)],
    )
    compiled = gcomp.compile(onnx.helper.make_model(graph))
    assert np.array_equal(compiled(numbers(2, 3, 5))[0], -numbers(2, 3, 5))
