"""Operators of ai.onnx.ml that prepare features agree with ONNX Runtime, and with the text where it differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gcomp
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.ml_models import FLOAT, INT64, agree, close, ml_model, ours

pytest.importorskip("onnxruntime")

DOUBLE, INT32 = TensorProto.DOUBLE, TensorProto.INT32
NUMBERS = [np.float32, np.float64, np.int32, np.int64]
ODD = np.float32([[np.nan, 1, -2, np.inf], [0, -0.0, 3, -np.inf], [1, 1, 2.5, -1]])


def like(x: Any) -> dict[str, int]:
    return {"Y": helper.np_dtype_to_tensor_dtype(x.dtype)}


def some(dtype: Any = np.float32) -> Any:
    return np.asarray([[3, -4, 0], [0, 0, 0], [-1, -2, -3], [7, 1, 2]], dtype)


# ---- columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("indices", [[2], [0, 2, 0], [[1, 2]], [[1], [0]]], ids=str)
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 2, 3)])
def test_columns_agree_with_onnx_runtime(dtype: Any, indices: Any, shape: tuple[int, ...]) -> None:
    x, y = np.arange(np.prod(shape)).reshape(shape).astype(dtype), np.asarray(indices, np.int64)
    agree(ml_model("ArrayFeatureExtractor", [x, y], like(x), 1, rows=False), x, y)


def test_columns_may_be_counted_from_the_end() -> None:
    x, y = some(), np.int64([-1, 0])
    assert np.array_equal(ours(ml_model("ArrayFeatureExtractor", [x, y], like(x), 1, rows=False), x, y)[0], x[:, y])


def test_a_constant_column_out_of_range_is_refused() -> None:
    x, y = some(), np.int64([3])
    proto = ml_model("ArrayFeatureExtractor", [x, y], like(x), 1, rows=False)
    proto.graph.initializer.append(numpy_helper.from_array(y, "X1"))
    with pytest.raises(InvalidModelError):
        import_onnx(proto)


def test_vectorized_features_agree_with_onnx_runtime() -> None:
    x, y = some(), np.arange(8, dtype=np.float32).reshape(4, 2)
    proto = ml_model("FeatureVectorizer", [x, y], {"Y": FLOAT}, 1, inputdimensions=[2, 4])
    agree(proto, x, y)
    assert ours(proto, x, y)[0].shape == (4, 6)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_vectorized_vectors_are_rows(dtype: Any) -> None:
    x, y = np.asarray([1, 2], dtype), np.asarray([3], dtype)
    proto = ml_model("FeatureVectorizer", [x, y], {"Y": FLOAT}, 1, rows=False, inputdimensions=[2, 1])
    agree(proto, x, y)
    assert ours(proto, x, y)[0].tolist() == [[1, 2, 3]]


# ---- number by number --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, np.inf, -np.inf])
def test_binarized_numbers_agree_with_onnx_runtime(threshold: float) -> None:
    x = ODD[1:]
    agree(ml_model("Binarizer", [x], like(x), 1, threshold=threshold), x)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("threshold", [0.0, -1.5, 1.5, 1e30, -1e30, np.inf, np.nan, float(np.float32(2**31))])
def test_binarized_numbers_are_above_the_threshold(dtype: Any, threshold: float) -> None:
    x = some(dtype)
    got = ours(ml_model("Binarizer", [x], like(x), 1, threshold=threshold), x)[0]
    assert got.dtype == dtype
    assert np.array_equal(got, (x.astype(np.float64) > threshold).astype(dtype))


def test_binarized_nan_is_not_above() -> None:
    assert ours(ml_model("Binarizer", [ODD], like(ODD), 1), ODD)[0][0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("each", [([0.5], [2.0]), ([0.5, 1.0, -1.0], [2.0, -0.5, 0.25])], ids=["one", "each"])
def test_scaled_numbers_agree_with_onnx_runtime(dtype: Any, each: Any) -> None:
    x = some(dtype)
    agree(ml_model("Scaler", [x], {"Y": FLOAT}, 1, offset=each[0], scale=each[1]), x, rtol=1e-7)


def test_an_absent_offset_or_scale_does_nothing() -> None:
    x = some()
    assert np.array_equal(ours(ml_model("Scaler", [x], {"Y": FLOAT}, 1, scale=[2.0]), x)[0], 2 * x)
    assert np.array_equal(ours(ml_model("Scaler", [x], {"Y": FLOAT}, 1, offset=[2.0]), x)[0], x - 2)


@pytest.mark.parametrize("values", [[5.0], [5.0, 6.0, 7.0, 8.0]], ids=["one", "each"])
@pytest.mark.parametrize("replaced", [np.nan, 0.0, 1.0, np.inf])
def test_imputed_floats_agree_with_onnx_runtime(values: Any, replaced: float) -> None:
    more = {"imputed_value_floats": values, "replaced_value_float": replaced}
    agree(ml_model("Imputer", [ODD], like(ODD), 1, **more), ODD)
    wide = ODD.astype(np.float64)
    close(
        ours(ml_model("Imputer", [wide], like(wide), 1, **more), wide)[0],
        ours(ml_model("Imputer", [ODD], like(ODD), 1, **more), ODD)[0].astype(np.float64),
    )


def test_imputed_integers_agree_with_onnx_runtime() -> None:
    x, more = some(np.int64), {"imputed_value_int64s": [5, 6, 7], "replaced_value_int64": 0}
    agree(ml_model("Imputer", [x], like(x), 1, **more), x)
    narrow = some(np.int32)
    assert np.array_equal(
        ours(ml_model("Imputer", [narrow], like(narrow), 1, **more), narrow)[0],
        ours(ml_model("Imputer", [x], like(x), 1, **more), x)[0],
    )


def test_a_value_that_the_type_does_not_have_is_nowhere_to_replace() -> None:
    x = some(np.int32)
    more = {"imputed_value_int64s": [5], "replaced_value_int64": 2**32}
    assert np.array_equal(ours(ml_model("Imputer", [x], like(x), 1, **more), x)[0], x)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalized_rows_agree_with_onnx_runtime(dtype: Any, norm: str) -> None:
    x = some(dtype)
    agree(ml_model("Normalizer", [x], {"Y": FLOAT}, 1, norm=norm), x, rtol=2e-7)
    vector = x[0]
    agree(ml_model("Normalizer", [vector], {"Y": FLOAT}, 1, rows=False, norm=norm), vector, rtol=2e-7)


# ---- categories --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(6,), (3, 2), (6, 1)])
def test_one_hot_categories_agree_with_onnx_runtime(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.asarray([3, -1, 0, 7, 3, 100], dtype).reshape(shape)
    agree(ml_model("OneHotEncoder", [x], {"Y": FLOAT}, 1, cats_int64s=[0, 3, -1, 3, 7]), x)


def test_one_hot_floats_are_cut_and_those_without_an_integer_are_no_category() -> None:
    x = np.float32([1.75, -0.5, np.nan, np.inf, -np.inf, 1e30])
    limits = [1, 0, 2**63 - 1, -(2**63)]
    got = ours(ml_model("OneHotEncoder", [x], {"Y": FLOAT}, 1, cats_int64s=limits), x)[0]
    assert got.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], *[[0] * 4] * 4]


def test_an_unknown_category_is_nan_where_the_operator_should_fail() -> None:
    x = np.int64([1, 5])
    got = ours(ml_model("OneHotEncoder", [x], {"Y": FLOAT}, 1, cats_int64s=[0, 1], zeros=0), x)[0]
    assert np.array_equal(got, [[0, 1], [np.nan, np.nan]], equal_nan=True)


@pytest.mark.parametrize("count", [1, 3, 32, 33, 100, 1000])
@pytest.mark.parametrize(
    "kinds", [("int64s", "floats"), ("floats", "int64s"), ("int64s", "int64s"), ("floats", "floats")]
)
def test_encoded_labels_agree_with_onnx_runtime(count: int, kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(count)
    keys = rng.choice(np.arange(-2000, 2000), count, replace=False)
    values = rng.integers(-50, 50, count)
    as_list: Any = {"int64s": lambda a: a.tolist(), "floats": lambda a: a.astype(np.float32).tolist()}
    dtypes = {"int64s": np.int64, "floats": np.float32}
    x = np.concatenate([keys, keys + 1, [10**6, -(10**6)]]).astype(dtypes[kinds[0]]).reshape(-1, 1)
    more = {f"keys_{kinds[0]}": as_list[kinds[0]](keys), f"values_{kinds[1]}": as_list[kinds[1]](values)}
    default: Any = {"default_float": 2.5} if kinds[1] == "floats" else {"default_int64": 77}
    outputs = {"Y": FLOAT if kinds[1] == "floats" else INT64}
    for version in (2, 4):
        agree(ml_model("LabelEncoder", [x], outputs, version, **more, **default), x)
    agree(ml_model("LabelEncoder", [x], outputs, 2, **more), x)


def encoder(x: Any, keys: Any, values: Any, default: Any = None) -> Any:
    more = {} if default is None else {"default_tensor": numpy_helper.from_array(default)}
    more |= {"keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values)}
    return ml_model("LabelEncoder", [x], like(values), 4, **more)


@pytest.mark.parametrize("source", [np.float64, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("target", [np.float64, np.int16, np.int32])
def test_encoded_tensors_have_the_types_of_keys_and_values(source: Any, target: Any) -> None:
    x = np.asarray([1, 2, 3], source)
    got = ours(encoder(x, np.asarray([3, 1], source), np.asarray([5, 6], target)), x)[0]
    assert got.dtype == target
    assert got.tolist() == [6, -0.0 if target == np.float64 else -1, 5]
    got = ours(encoder(x, np.asarray([3, 1], source), np.asarray([5, 6], target), np.asarray([9], target)), x)[0]
    assert got.tolist() == [6, 9, 5]


@pytest.mark.parametrize("fill", [0, 40])
def test_nan_is_a_key_and_the_last_of_equal_keys_counts(fill: int) -> None:
    keys = np.float32([np.nan, 1, 1, *range(100, 100 + fill), np.nan, -np.inf])
    values = np.arange(len(keys), dtype=np.float32)
    x = np.float32([np.nan, 1, -0.0, -np.inf, np.inf])
    assert ours(encoder(x, keys, values), x)[0].tolist() == [3 + fill, 2, 0, 4 + fill, 0]


def test_a_compiled_search_finds_all_keys() -> None:
    keys = np.random.default_rng(5).choice(10**6, 5000, replace=False)
    x = np.concatenate([keys, keys + 1])
    proto = encoder(x, keys, np.arange(5000))
    table = dict(zip(keys.tolist(), range(5000), strict=True))
    assert gcomp.compile(proto)(x)[0].tolist() == [table.get(k, -1) for k in x.tolist()]


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Scaler", {"offset": [1.0], "scale": [1.0, 2.0, 3.0]}),
        ("Scaler", {"offset": [1.0, 2.0], "scale": [1.0, 2.0]}),
        ("Imputer", {"imputed_value_int64s": [1], "replaced_value_int64": 0}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0]}),
        ("Normalizer", {"norm": "L3"}),
        ("OneHotEncoder", {}),
        ("FeatureVectorizer", {"inputdimensions": [1, 2]}),
        ("FeatureVectorizer", {"inputdimensions": [-1]}),
        ("LabelEncoder", {"keys_int64s": [1], "values_int64s": [1]}),
        ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1, 2]}),
        ("LabelEncoder", {"keys_floats": [1.0]}),
        ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1], "values_floats": [1.0]}),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(op: str, attributes: dict[str, Any]) -> None:
    outputs = {"Y": INT64 if "values_int64s" in attributes else FLOAT}
    with pytest.raises(InvalidModelError):
        import_onnx(ml_model(op, [some()], outputs, 4, **attributes))


@pytest.mark.parametrize(
    ("op", "version", "attributes"),
    [
        ("CategoryMapper", 1, {"cats_strings": ["a"], "cats_int64s": [1]}),
    ],
    ids=["mapper"],
)
def test_strings_are_refused(op: str, version: int, attributes: dict[str, Any]) -> None:
    x = np.int64([1])
    with pytest.raises(UnsupportedError, match="strings"):
        import_onnx(ml_model(op, [x], {"Y": TensorProto.STRING}, version, **attributes))


def test_zip_maps_are_refused_with_the_way_to_do_without() -> None:
    proto = ml_model("ZipMap", [some()], {"Y": FLOAT}, 1, classlabels_int64s=[0, 1, 2])
    kind = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    proto.graph.output[0].CopyFrom(helper.make_value_info("Y", helper.make_sequence_type_proto(kind)))
    with pytest.raises(UnsupportedError, match="zipmap"):
        import_onnx(proto)
    onnx.checker.check_model(proto)
