"""Linear models and support vector machines of ai.onnx.ml agree with ONNX Runtime, with the text where it differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.ml_models import CLASSIFIED, FLOAT, agree, close, ml_model, ours, runtimes

pytest.importorskip("onnxruntime")

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
EPS = 3e-6


def rows(seed: int, count: int, features: int, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(seed).standard_normal((count, features)) * 2).astype(dtype)


def listed(seed: int, count: int) -> list[float]:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32).tolist()


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# ---- linear ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("intercepts", [{"intercepts": [0.5, -0.25, 1.0]}, {}], ids=["with", "without"])
def test_regressors_agree_with_onnx_runtime(transform: str, intercepts: dict[str, Any]) -> None:
    x = rows(0, 20, 4)
    more = {"coefficients": listed(1, 12), "targets": 3, "post_transform": transform, **intercepts}
    agree(ml_model("LinearRegressor", [x], {"Y": FLOAT}, **more), x, rtol=2e-5)


def test_one_target_is_transformed_too() -> None:
    x = np.float32([[0.5], [2]])
    proto = ml_model("LinearRegressor", [x], {"Y": FLOAT}, coefficients=[2.0], post_transform="LOGISTIC")
    close(ours(proto, x)[0], sigmoid(2 * x), EPS)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_classifiers_agree_with_onnx_runtime(transform: str, dtype: Any) -> None:
    x = rows(2, 20, 4, dtype)
    more = {"coefficients": listed(3, 12), "intercepts": listed(4, 3), "classlabels_ints": [5, -1, 9]}
    agree(ml_model("LinearClassifier", [x], CLASSIFIED, post_transform=transform, **more), x, rtol=2e-5)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_one_row_of_coefficients_for_two_classes_agrees_with_onnx_runtime(transform: str) -> None:
    x = rows(5, 20, 4)
    more = {"coefficients": listed(6, 4), "intercepts": [0.125], "classlabels_ints": [5, 7]}
    agree(ml_model("LinearClassifier", [x], CLASSIFIED, post_transform=transform, **more), x, rtol=EPS)


def test_one_row_of_coefficients_for_two_classes_has_both_scores_transformed() -> None:
    x = np.float32([[1], [-2]])
    more = {"coefficients": [1.5], "classlabels_ints": [5, 7], "post_transform": "SOFTMAX"}
    labels, scores = ours(ml_model("LinearClassifier", [x], CLASSIFIED, **more), x)
    assert labels.tolist() == [7, 5]
    close(scores, np.concatenate([sigmoid(-3 * x), sigmoid(3 * x)], 1).astype(np.float32), EPS)


def test_string_labels_need_not_be_read() -> None:
    x = rows(7, 5, 2)
    more = {"coefficients": listed(8, 4), "intercepts": [0.0, 0.0], "classlabels_strings": ["a", "b"]}
    proto = ml_model("LinearClassifier", [x], {"Y": 8, "Z": FLOAT}, **more)
    del proto.graph.output[0]
    assert ours(proto, x)[0].shape == (5, 2)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LinearRegressor", {}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0], "targets": 2}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "targets": 0}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "intercepts": [1.0, 2.0]}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0]}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "post_transform": "EXP"}),
        ("LinearClassifier", {"coefficients": [1.0, 2.0]}),
        ("LinearClassifier", {"coefficients": [1.0] * 6, "classlabels_ints": [1, 2]}),
        ("LinearClassifier", {"coefficients": [1.0] * 5, "classlabels_ints": [1, 2]}),
        ("LinearClassifier", {"coefficients": [1.0] * 2, "classlabels_ints": [1]}),
        ("SVMRegressor", {"coefficients": [1.0, 2.0]}),
        ("SVMRegressor", {"coefficients": [1.0, 2.0], "rho": [0.0], "n_supports": -1}),
        ("SVMRegressor", {"coefficients": [1.0, 2.0], "rho": [0.0], "n_supports": 2}),
        ("SVMRegressor", {"coefficients": [1.0], "rho": [0.0], "n_supports": 2, "support_vectors": [1.0] * 4}),
        ("SVMRegressor", {"coefficients": [1.0] * 2, "rho": [0.0], "n_supports": 2, "support_vectors": [1.0] * 3}),
        (
            "SVMRegressor",
            {"coefficients": [1.0], "rho": [0.0], "n_supports": 1, "support_vectors": [1.0] * 2, "kernel_type": "RBFF"},
        ),
        ("SVMClassifier", {"coefficients": [1.0] * 4, "classlabels_ints": [0, 1]}),
        (
            "SVMClassifier",
            {"coefficients": [1.0] * 4, "rho": [0.0], "classlabels_ints": [0, 1], "vectors_per_class": [1]},
        ),
        (
            "SVMClassifier",
            {"coefficients": [1.0], "rho": [0.0], "classlabels_ints": [0, 1], "vectors_per_class": [-1, 2]},
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(op: str, attributes: dict[str, Any]) -> None:
    outputs = CLASSIFIED if op.endswith("Classifier") else {"Y": FLOAT}
    with pytest.raises(InvalidModelError):
        import_onnx(ml_model(op, [rows(0, 3, 2)], outputs, **attributes))


# ---- support vector machines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("degree", [2.0, 5.0])
def test_svm_regressors_agree_with_onnx_runtime(kernel: str, one_class: int, degree: float) -> None:
    x = rows(10, 20, 3)
    more = {
        "coefficients": listed(11, 7),
        "support_vectors": listed(12, 21),
        "n_supports": 7,
        "rho": [0.25],
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.125, degree],
        "one_class": one_class,
    }
    agree(ml_model("SVMRegressor", [x], {"Y": FLOAT}, **more), x, rtol=1e-5)


def test_svm_regressors_without_vectors_are_linear() -> None:
    x = rows(13, 20, 3)
    more = {"coefficients": listed(14, 3), "rho": [0.25], "kernel_params": [0.0, 0.0, 0.0], "n_supports": 0}
    agree(ml_model("SVMRegressor", [x], {"Y": FLOAT}, **more), x, rtol=EPS)


def machine(classes: int, **more: Any) -> dict[str, Any]:
    counts = [2 + i % 3 for i in range(classes)]
    pairs, total = classes * (classes - 1) // 2, sum(counts)
    return {
        "coefficients": listed(20, (classes - 1) * total),
        "support_vectors": listed(21, 3 * total),
        "vectors_per_class": counts,
        "rho": listed(22, pairs),
        "kernel_type": "RBF",
        "kernel_params": [0.25, 0.0, 3.0],
        "classlabels_ints": [10 * i for i in range(classes)],
        **more,
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_machines_of_pairs_agree_with_onnx_runtime(kernel: str, classes: int) -> None:
    x = rows(23, 25, 3)
    agree(ml_model("SVMClassifier", [x], CLASSIFIED, **machine(classes, kernel_type=kernel)), x, rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_probabilities_agree_with_onnx_runtime(classes: int, transform: str, dtype: Any) -> None:
    x, pairs = rows(24, 25, 3, dtype), classes * (classes - 1) // 2
    more = {"prob_a": [-abs(a) - 0.5 for a in listed(25, pairs)], "prob_b": listed(26, pairs)}
    proto = ml_model("SVMClassifier", [x], CLASSIFIED, **machine(classes, post_transform=transform, **more))
    agree(proto, x, rtol=2e-5)
    if transform == "NONE":
        assert np.allclose(ours(proto, x)[1].sum(1), 1, rtol=1e-5)


def test_compiled_probabilities_agree_with_onnx_runtime() -> None:
    x = rows(27, 9, 3)
    more = {"prob_a": [-1.0, -2.0, -0.5], "prob_b": [0.0, 0.25, 0.5]}
    proto = ml_model("SVMClassifier", [x], CLASSIFIED, **machine(3, **more))
    for got, want in zip(gcomp.compile(proto)(x), runtimes(proto, x), strict=True):
        close(got, want, 2e-5)


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX"])
def test_the_scores_of_one_pair_are_both_transformed(transform: str) -> None:
    x = rows(28, 25, 3)
    plain = ours(ml_model("SVMClassifier", [x], CLASSIFIED, **machine(2)), x)[1]
    proto = ml_model("SVMClassifier", [x], CLASSIFIED, **machine(2, post_transform=transform))
    close(ours(proto, x)[1], sigmoid(plain if transform == "LOGISTIC" else 2 * plain), EPS)
    if transform == "LOGISTIC":
        agree(proto, x, rtol=1e-5)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("classes", [3, 4])
def test_linear_machines_agree_with_onnx_runtime(transform: str, classes: int) -> None:
    x = rows(29, 25, 3)
    more = {"coefficients": listed(30, 3 * classes), "rho": [0.25], "kernel_params": [0.0, 0.0, 0.0]}
    labels = {"classlabels_ints": list(range(classes)), "post_transform": transform}
    agree(ml_model("SVMClassifier", [x], CLASSIFIED, **more, **labels), x, rtol=1e-5)


def test_linear_machines_of_two_classes_without_negative_weights_agree_with_onnx_runtime() -> None:
    x = np.abs(rows(31, 40, 2)) / 4
    more = {"coefficients": [1.0, 0.25, 0.5, 0.125], "rho": [0.0], "kernel_params": [0.0] * 3}
    agree(ml_model("SVMClassifier", [x], CLASSIFIED, classlabels_ints=[3, 4], **more), x, rtol=EPS)


def test_linear_machines_of_two_classes_choose_the_greater_score() -> None:
    x = np.float32([[3], [-3]])
    more = {"coefficients": [1.0, -1.0], "rho": [0.0], "classlabels_ints": [3, 4]}
    assert ours(ml_model("SVMClassifier", [x], CLASSIFIED, **more), x)[0].tolist() == [3, 4]
