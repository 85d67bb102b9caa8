"""Tree ensembles of ai.onnx.ml agree with ONNX Runtime on random trees, with the text where that differs, and refuse
what are no trees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import gcomp
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.ml_models import (
    CLASSIFIED,
    FLOAT,
    MODES,
    agree,
    close,
    ml_model,
    ours,
    random_rows,
    random_trees,
    random_votes,
    runtimes,
)

pytest.importorskip("onnxruntime")

STUMP: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
VOTES = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0]}
SIGNS = np.float32([[-1], [1], [np.nan]])


def stump(x: Any = SIGNS, version: int = 3, **changed: Any) -> Any:
    """A regressor: 1 for features up to 0, else 2."""
    attributes = {"n_targets": 1, **STUMP, **VOTES, **changed}
    return ml_model(
        "TreeEnsembleRegressor", [x], {"Y": FLOAT}, version, **{k: v for k, v in attributes.items() if v is not None}
    )


def classifier(votes: list[tuple[int, int, float]], labels: Any, **more: Any) -> Any:
    """A classifier of one stump, whose leaves have votes (node, class, weight)."""
    node, ids, weights = zip(*votes, strict=True)
    named = {"classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s": labels}
    given = {"class_treeids": [0] * len(node), "class_nodeids": node, "class_ids": ids, "class_weights": weights}
    return ml_model("TreeEnsembleClassifier", [SIGNS], CLASSIFIED, **{**STUMP, **named, **given, **more})


# ---- against ONNX Runtime ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_regressors_agree_with_onnx_runtime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # ONNX Runtime has a NaN differ from all thresholds, whatever the node says of missing values.
    modes = MODES[seed % 6 : seed % 6 + 1] if seed < 5 else MODES[:5]
    trees, targets = int(rng.integers(1, 9)), (1, 1, 2, 3, 9)[seed % 5]
    nodes = random_trees(rng, trees, 3, modes)
    if seed % 3 == 0:
        del nodes["nodes_missing_value_tracks_true"]
    votes = random_votes(rng, nodes, "target", targets, min(targets, 1 + seed % 3), by_tree=seed % 4 == 0)
    x = random_rows(rng, 40, 3).astype((np.float32, np.float64)[seed % 2])
    more: dict[str, Any] = {"aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX")[seed % 4], "n_targets": targets}
    if targets == 1:
        more["base_values"] = [0.5 + i for i in range(targets)]
    agree(ml_model("TreeEnsembleRegressor", [x], {"Y": FLOAT}, **nodes, **votes, **more), x, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integer_rows_agree_with_onnx_runtime(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    nodes = random_trees(rng, 5, 3, MODES)
    x = rng.integers(-3, 4, (40, 3)).astype(dtype)
    votes = random_votes(rng, nodes, "class", 3, 3)
    agree(ml_model("TreeEnsembleClassifier", [x], CLASSIFIED, classlabels_int64s=[4, 5, 6], **nodes, **votes), x)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("targets", [2, 4])
def test_transforms_of_several_targets_agree_with_onnx_runtime(transform: str, targets: int) -> None:
    rng = np.random.default_rng(targets)
    nodes = random_trees(rng, 6, 3, MODES)
    votes = random_votes(rng, nodes, "target", targets, targets)
    x = random_rows(rng, 30, 3, special=False)
    more = {"post_transform": transform, "base_values": [0.25] * targets, "n_targets": targets}
    agree(ml_model("TreeEnsembleRegressor", [x], {"Y": FLOAT}, **nodes, **votes, **more), x, rtol=2e-6)


@pytest.mark.parametrize("by_tree", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_random_classifiers_agree_with_onnx_runtime(by_tree: bool, transform: str) -> None:
    rng = np.random.default_rng(7)
    nodes = random_trees(rng, 6, 3, MODES[:4])
    votes = random_votes(rng, nodes, "class", 3, 3, by_tree)
    x = random_rows(rng, 40, 3)
    more = {"post_transform": transform, "classlabels_int64s": [7, -3, 11]}
    agree(ml_model("TreeEnsembleClassifier", [x], CLASSIFIED, **nodes, **votes, **more), x, rtol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("low", [0.25, -0.25], ids=["positive", "mixed"])
@pytest.mark.parametrize(("voted", "base"), [(0, {}), (1, {}), (0, {"base_values": [0.125]})], ids=["0", "1", "base"])
def test_votes_for_one_of_two_classes_follow_onnx_runtime(
    transform: str, low: float, voted: int, base: dict[str, Any]
) -> None:
    proto = classifier([(1, voted, low), (2, voted, 0.75)], [10, 20], post_transform=transform, **base)
    agree(proto, SIGNS, rtol=1e-6)


def test_one_class_has_labels_one_and_zero_as_in_onnx_runtime() -> None:
    agree(classifier([(1, 0, 0.25), (2, 0, -0.75)], [10], base_values=[0.5]), SIGNS)


def test_one_row_may_be_a_vector() -> None:
    x = np.float32([0.5])
    proto = stump(x)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    assert ours(proto, x)[0].tolist() == [[2]]


def test_a_compiled_ensemble_agrees_with_onnx_runtime() -> None:
    rng = np.random.default_rng(11)
    nodes = random_trees(rng, 30, 5, MODES[:2], depth=6)
    votes = random_votes(rng, nodes, "class", 4, by_tree=True)
    x = random_rows(rng, 64, 5)
    proto = ml_model("TreeEnsembleClassifier", [x], CLASSIFIED, classlabels_int64s=[0, 1, 2, 3], **nodes, **votes)
    compiled = gcomp.compile(proto)
    for rows in (64, 1, 7):
        for got, want in zip(compiled(x[:rows]), runtimes(proto, x[:rows]), strict=True):
            close(got, want)


# ---- where implementations differ, the text ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tracks", [0, 1])
def test_nan_takes_the_branch_that_the_node_says(mode: str, tracks: int) -> None:
    modes = {"nodes_modes": [mode, "LEAF", "LEAF"], "nodes_missing_value_tracks_true": [tracks, 0, 0]}
    assert ours(stump(**modes), SIGNS)[0][2, 0] == (1 if tracks else 2)


@pytest.mark.parametrize(("mode", "want"), [(m, 1 if m == "BRANCH_NEQ" else 2) for m in MODES])
def test_nothing_compares_with_a_threshold_that_is_nan(mode: str, want: float) -> None:
    x = np.float32([[-np.inf], [0], [np.inf]])
    modes = {"nodes_modes": [mode, "LEAF", "LEAF"], "nodes_values": [np.nan, 0.0, 0.0]}
    assert ours(stump(**modes), x)[0].tolist() == [[want]] * 3


def test_the_top_class_of_two_is_a_label() -> None:
    labels, scores = ours(classifier([(1, 0, 0.6), (1, 1, 0.4), (2, 0, 0.3), (2, 1, 0.7)], [10, 20]), SIGNS)
    assert labels.tolist() == [10, 20, 20]
    assert np.array_equal(scores, np.float32([[0.6, 0.4], [0.3, 0.7], [0.3, 0.7]]))


def test_a_class_without_votes_has_score_zero_and_may_be_the_top() -> None:
    labels, scores = ours(classifier([(1, 0, -0.25), (1, 1, -0.5), (2, 2, 0.75)], [10, 20, 30]), SIGNS[:1])
    assert labels.tolist() == [30]
    assert scores.tolist() == [[-0.25, -0.5, 0]]


@pytest.mark.parametrize("how", ["MIN", "MAX"])
def test_a_target_without_votes_is_its_base_value(how: str) -> None:
    votes = {"target_ids": [0, 1], "n_targets": 3, "base_values": [0.5, 0.25, 4.0], "aggregate_function": how}
    want = [[1.5, 0.25, 4], [0.5, 2.25, 4], [0.5, 2.25, 4]]
    assert ours(stump(**votes), SIGNS)[0].tolist() == want


def test_one_target_is_transformed_too() -> None:
    got = ours(stump(post_transform="LOGISTIC"), SIGNS)[0]
    assert np.allclose(got, 1 / (1 + np.exp([[-1], [-2], [-2]])), rtol=1e-6)


def test_all_votes_of_a_leaf_count() -> None:
    votes = {"target_treeids": [0] * 3, "target_nodeids": [1, 1, 2], "target_ids": [0] * 3}
    assert ours(stump(**votes, target_weights=[1.0, 4.0, 2.0]), SIGNS)[0].tolist() == [[5], [2], [2]]


def test_a_tree_may_be_one_leaf() -> None:
    leaf = {name: values[2:] for name, values in STUMP.items()}
    votes = {"target_treeids": [0], "target_nodeids": [2], "target_ids": [0], "target_weights": [4.0]}
    agree(stump(**leaf, **votes), SIGNS)


def test_the_number_of_features_may_be_symbolic() -> None:
    proto = stump(nodes_featureids=[1, 0, 0])
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "F"
    compiled = gcomp.compile(proto)
    assert compiled(np.float32([[9, -1, 9], [-9, 1, 9]]))[0].tolist() == [[1], [2]]
    with pytest.raises(GcompError):
        compiled(np.float32([[1]]))


def test_wide_thresholds_are_compared_widely() -> None:
    x = np.float64([[1 + 1e-12], [1 - 1e-12]])
    wide = numpy_helper.from_array(np.float64([1, 0, 0]))
    assert ours(stump(x, nodes_values=None, nodes_values_as_tensor=wide), x)[0].tolist() == [[2], [1]]


# ---- version 5 ---------------------------------------------------------------------------------------------------

SETS = {
    "n_targets": 2,
    "aggregate_function": 1,
    "post_transform": 0,
    "tree_roots": [0],
    "nodes_modes": numpy_helper.from_array(np.uint8([0, 6, 6])),
    "nodes_featureids": [0, 0, 0],
    "nodes_splits": numpy_helper.from_array(np.float32([11, 232344, np.nan])),
    "nodes_truenodeids": [1, 0, 1],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falsenodeids": [2, 2, 3],
    "nodes_falseleafs": [0, 0, 1],
    "leaf_targetids": [0, 1, 0, 1],
    "leaf_weights": numpy_helper.from_array(np.float32([1, 10, 1000, 100])),
}


def ensemble(x: Any, **changed: Any) -> Any:
    outputs = {"Y": helper.np_dtype_to_tensor_dtype(x.dtype)}
    return ml_model("TreeEnsemble", [x], outputs, 5, **{**SETS, **changed})


def members(*sets: Any) -> Any:
    return numpy_helper.from_array(np.concatenate([np.float32([*s, np.nan]) for s in sets]))


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 33])
def test_members_are_found_and_others_are_not(size: int) -> None:
    rng = np.random.default_rng(size)
    first, second = (rng.choice(40, size, replace=False).astype(np.float32) for _ in range(2))
    x = np.concatenate([np.arange(-3, 43, 0.5), [np.inf, -np.inf, -0.0]]).astype(np.float32)[:, None]
    got = ours(ensemble(x, membership_values=members(first, second)), x)[0]
    low = x[:, 0] <= 11
    here, there = np.isin(x[:, 0], first), np.isin(x[:, 0], second)
    found = np.where(low & here, 0, np.where(there, 1, 3))
    want = np.zeros((len(x), 2), np.float32)
    want[np.arange(len(x)), [0, 1, 0, 1] @ np.eye(4)[found].T.astype(int)] = np.float32([1, 10, 1000, 100])[found]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("tracks", [0, 1])
def test_nan_is_a_member_only_if_the_node_says_so(tracks: int) -> None:
    x = np.float32([[np.nan]])
    proto = ensemble(x, membership_values=members([1, 2, 3], [0, 5]), nodes_missing_value_tracks_true=[0, 0, tracks])
    assert ours(proto, x)[0].tolist() == ([[0, 10]] if tracks else [[0, 100]])


def test_a_set_may_be_empty() -> None:
    x = np.float32([[1], [20]])
    assert ours(ensemble(x, membership_values=members([], [20])), x)[0].tolist() == [[0, 100], [0, 10]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_roots_that_are_leaves_and_shared_leaves(dtype: Any) -> None:
    x = np.asarray([[0], [1]], dtype)
    attributes = {
        "tree_roots": [0, 1, 0],
        "nodes_modes": numpy_helper.from_array(np.uint8([0, 0])),
        "nodes_featureids": [0, 9],
        "nodes_splits": numpy_helper.from_array(np.asarray([0.5, 0.5], dtype)),
        "nodes_truenodeids": [0, 1],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 1],
        "leaf_weights": numpy_helper.from_array(np.asarray([1, 10], dtype)),
    }
    got = ours(ensemble(x, **attributes), x)[0]
    assert got.dtype == dtype
    assert got.tolist() == [[2, 10], [0, 30]]


@pytest.mark.parametrize("seed", range(6))
def test_version_5_agrees_with_onnx_runtime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = random_trees(rng, 4, 3, MODES)
    modes = np.array([MODES.index(m) if m != "LEAF" else 6 for m in nodes["nodes_modes"]])
    roots = np.flatnonzero(np.array(nodes["nodes_nodeids"]) == 0)
    leaf, tree = modes == 6, np.cumsum(np.array(nodes["nodes_nodeids"]) == 0) - 1
    place = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1
    true, false = (roots[tree] + np.array(nodes[f"nodes_{b}nodeids"]) for b in ("true", "false"))
    x = random_rows(rng, 40, 3, special=False)
    attributes = {
        "n_targets": (2, 12)[seed % 2],
        "aggregate_function": seed % 4,
        "post_transform": 0,
        "tree_roots": place[roots].tolist(),
        "nodes_modes": numpy_helper.from_array(modes[~leaf].astype(np.uint8)),
        "nodes_featureids": np.array(nodes["nodes_featureids"])[~leaf].tolist(),
        "nodes_splits": numpy_helper.from_array(np.float32(nodes["nodes_values"])[~leaf]),
        "nodes_truenodeids": place[true[~leaf]].tolist(),
        "nodes_trueleafs": leaf[true[~leaf]].astype(int).tolist(),
        "nodes_falsenodeids": place[false[~leaf]].tolist(),
        "nodes_falseleafs": leaf[false[~leaf]].astype(int).tolist(),
        "leaf_targetids": rng.integers(0, 2, leaf.sum()).tolist(),
        "leaf_weights": numpy_helper.from_array((rng.integers(-8, 9, leaf.sum()) / 8).astype(np.float32)),
    }
    agree(ml_model("TreeEnsemble", [x], {"Y": FLOAT}, 5, **attributes), x, rtol=1e-7)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes_truenodeids": [0, 0, 0]},
        {"nodes_truenodeids": [7, 0, 0]},
        {"nodes_falsenodeids": [-1, 0, 0]},
        {"nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF"]},
        {"nodes_modes": ["BRANCH_LE", "LEAF", "LEAF"]},
        {"nodes_modes": ["BRANCH_LEQ", "LEAF"]},
        {"nodes_nodeids": [0, 1, 1]},
        {"nodes_nodeids": None},
        {"nodes_treeids": [0, 0]},
        {"nodes_featureids": [1, 0, 0]},
        {"nodes_featureids": [-1, 0, 0]},
        {"nodes_featureids": [2**62, 0, 0]},
        {"nodes_values": [0.0]},
        {"nodes_values": None},
        {"nodes_values_as_tensor": numpy_helper.from_array(np.float64([0, 0, 0]))},
        {"nodes_values": None, "nodes_values_as_tensor": numpy_helper.from_array(np.int64([0, 0, 0]))},
        {"nodes_values": None, "nodes_values_as_tensor": numpy_helper.from_array(np.float32([[0, 0, 0]]))},
        {"nodes_missing_value_tracks_true": [1]},
        {"target_nodeids": [1, 5]},
        {"target_treeids": [0, 2**63 - 1]},
        {"target_ids": [0, 1]},
        {"target_ids": [0, -1]},
        {"target_weights": [1.0]},
        {"n_targets": 0},
        {"base_values": [1.0, 2.0]},
        {"aggregate_function": "MEDIAN"},
        {"post_transform": "EXP"},
    ],
    ids=str,
)
def test_what_is_no_tree_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(stump(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"tree_roots": [3]},
        {"nodes_truenodeids": [0, 0, 1]},
        {"nodes_truenodeids": [1, 4, 1]},
        {"nodes_falsenodeids": [3, 2, 3]},
        {"nodes_modes": numpy_helper.from_array(np.uint8([0, 7, 6]))},
        {"nodes_modes": numpy_helper.from_array(np.int64([0, 6, 6]))},
        {"leaf_targetids": [0, 1, 0, 2]},
        {"leaf_weights": numpy_helper.from_array(np.float32([1]))},
        {"membership_values": members([1])},
        {"membership_values": members([1], [2], [3])},
        {"aggregate_function": 4},
        {"post_transform": -1},
        {"n_targets": -1},
    ],
    ids=lambda changed: ",".join(changed),
)
def test_what_is_no_ensemble_of_version_5_is_refused(changed: dict[str, Any]) -> None:
    x = np.float32([[1]])
    sets = {} if "nodes_modes" in changed else {"membership_values": members([1], [2])}
    with pytest.raises(InvalidModelError):
        import_onnx(ensemble(x, **{**sets, **changed}))


def test_a_set_must_be_given() -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(ensemble(np.float32([[1]])))


def test_string_labels_need_not_be_read() -> None:
    proto = classifier([(1, 0, 1.0), (2, 1, 1.0)], ["a", "b"])
    del proto.graph.output[0]
    assert ours(proto, SIGNS[:2])[0].tolist() == [[1, 0], [0, 1]]


def test_base_values_of_two_classes_with_votes_for_one_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        import_onnx(classifier([(1, 0, 1.0), (2, 0, 1.0)], [0, 1], base_values=[0.5, 0.25]))


def test_labels_are_needed_and_not_twice() -> None:
    with pytest.raises(InvalidModelError):
        import_onnx(classifier([(1, 0, 1.0)], [5, 6], classlabels_strings=["a", "b"]))


def test_a_long_chain_imports_in_time_linear_in_its_nodes() -> None:
    count = 20_001
    ids = np.arange(count)
    leaf = (ids % 2 == 1) | (ids == count - 1)
    chain = {
        "nodes_treeids": [0] * count,
        "nodes_nodeids": ids.tolist(),
        "nodes_featureids": [0] * count,
        "nodes_values": np.arange(count, dtype=np.float32).tolist(),
        "nodes_modes": ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf],
        "nodes_truenodeids": np.where(leaf, 0, ids + 1).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, ids + 2).tolist(),
    }
    start = time.perf_counter()
    import_onnx(stump(**chain))
    assert time.perf_counter() - start < 5
