"""Names of classes: what classifiers and encoders give as strings, beside ONNX Runtime and through saved models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import gcomp
from gcomp.cli.app import app
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.ir.text import parse_module
from gcomp.testing.oracles.compiled import make_evaluator
from tests.unit.onnx.ml_models import FLOAT, INT64, ml_model

STRING = TensorProto.STRING
X = np.float32([[1, -2], [0.5, 3], [-1, -1], [2, 2]])
LINEAR = {"coefficients": [1.0, -1.0, 0.5, 2.0, -1.0, 0.0], "intercepts": [0.0, 0.25, 0.5]}
NAMES = ["cat", "hund", "ко́шка"]


def _classifier(**more: Any) -> onnx.ModelProto:
    attributes = {**LINEAR, "classlabels_strings": NAMES, **more}
    return ml_model("LinearClassifier", [X], {"Y": STRING, "Z": FLOAT}, **attributes)


def _with_nodes(proto: onnx.ModelProto, nodes: list[Any], outputs: dict[str, int], constants: Any = ()) -> Any:
    proto.graph.node.extend(nodes)
    proto.graph.initializer.extend(constants)
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_tensor_value_info(n, t, None) for n, t in outputs.items())
    return proto


def _agree(proto: onnx.ModelProto, *inputs: Any) -> list[Any]:
    """ONNX Runtime's outputs, which are ours, as arrays of text where they are strings."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs, strict=True)))
    got = gcomp.compile(proto)(*inputs)
    for ours, theirs in zip(got, want, strict=True):
        array = np.asarray(ours)
        assert array.shape == theirs.shape
        if theirs.dtype == object:
            assert array.dtype.kind == "U" and np.array_equal(array, theirs.astype(str))
        else:
            np.testing.assert_allclose(array, theirs, rtol=1e-6)
    return list(got)


def test_a_linear_classifier_names_classes() -> None:
    assert set(_agree(_classifier(), X)[0].tolist()) <= set(NAMES)


def test_a_classifier_of_trees_names_classes() -> None:
    nodes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [2, 1],
        "class_weights": [1.0, 1.0],
    }
    proto = ml_model("TreeEnsembleClassifier", [X], {"Y": STRING, "Z": FLOAT}, **nodes, classlabels_strings=NAMES)
    assert _agree(proto, X)[0].tolist() == [NAMES[1], NAMES[1], NAMES[2], NAMES[1]]


def test_a_support_vector_machine_names_classes() -> None:
    more: dict[str, Any] = {"coefficients": LINEAR["coefficients"], "rho": [0.0], "kernel_params": [0.0, 0.0, 0.0]}
    _agree(ml_model("SVMClassifier", [X], {"Y": STRING, "Z": FLOAT}, classlabels_strings=NAMES, **more), X)


def test_saved_models_and_text_keep_the_names(tmp_path: Path) -> None:
    model = gcomp.compile(_classifier())
    want = model(X)[0].tolist()
    model.save(tmp_path / "m.gcomp")
    loaded = gcomp.load(tmp_path / "m.gcomp")
    assert loaded(X)[0].tolist() == want and loaded.named(X)["Y"].tolist() == want
    assert "one of 3 names" in repr(loaded)
    again = import_onnx(_classifier())
    again.module = parse_module(again.text())
    assert gcomp.compile(again)(X)[0].tolist() == want


def test_judges_compare_positions_and_people_see_names(tmp_path: Path) -> None:
    positions, _ = make_evaluator("xla:cpu")(import_onnx(_classifier()).text(), [X])
    assert positions.dtype == np.int64
    path = tmp_path / "m.onnx"
    onnx.save(_classifier(), path)
    shown = CliRunner().invoke(
        app, ["run", str(path), "--random", "--dim", "N=4", "--output", f"Y={tmp_path / 'y.npy'}"]
    )
    assert shown.exit_code == 0 and "names" in shown.output, shown.output
    assert set(np.load(tmp_path / "y.npy").tolist()) <= set(NAMES)


@pytest.mark.parametrize("names", ["[]", '["a", 1 : i64]', '"a"'])
def test_names_that_are_none_are_refused(names: str) -> None:
    program = import_onnx(_classifier())
    text = program.text()
    start = text.index("gcomp.names = ") + len("gcomp.names = ")
    program.module = parse_module(text[:start] + names + text[text.index("]", start) + 1 :])
    with pytest.raises(InvalidModelError, match="names"):
        program.outputs()


def test_encoders_from_and_to_names() -> None:
    encoder = {"domain": "ai.onnx.ml", "keys_strings": NAMES[::-1]}
    nodes = [
        helper.make_node("LabelEncoder", ["Y"], ["I"], **encoder, values_int64s=[7, 8, 9]),
        helper.make_node("LabelEncoder", ["Y"], ["S"], **encoder, values_strings=["x", "y", "x"]),
        helper.make_node("LabelEncoder", ["I"], ["T"], domain="ai.onnx.ml", keys_int64s=[7], values_strings=["p"]),
    ]
    _agree(_with_nodes(_classifier(), nodes, {"I": INT64, "S": STRING, "T": STRING}), X)


def test_encoders_of_numbers_have_a_default_name() -> None:
    keys = {"keys_int64s": [3, 1], "values_strings": ["c", "a"]}
    x = np.int64([1, 2, 3, 4])
    assert _agree(ml_model("LabelEncoder", [x], {"Y": STRING}, 2, **keys, default_string="?"), x)[0].tolist() == [
        "a", "?", "c", "?"]  # fmt: skip
    assert _agree(ml_model("LabelEncoder", [x], {"Y": STRING}, 2, **keys), x)[0][1] == "_Unused"
    first = ml_model("LabelEncoder", [x], {"Y": STRING}, 1, classes_strings=["n", "o", "p"])
    assert gcomp.compile(first)(x)[0].tolist() == ["o", "p", "_Unused", "_Unused"]


def test_strings_of_the_model_are_picked_and_moved() -> None:
    """As converters write classifiers that ONNX has no operator for: the best of the scores picks among the names."""
    constants = [
        numpy_helper.from_array(np.array([NAMES], object), "names"),
        numpy_helper.from_array(np.array(["end", NAMES[1]], object), "more"),
        numpy_helper.from_array(np.int64([-1, 2]), "shape"),
    ]
    nodes = [
        helper.make_node("ArgMax", ["Z"], ["best"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["names", "best"], ["picked"], domain="ai.onnx.ml"),
        helper.make_node("Reshape", ["picked", "shape"], ["pairs"]),
        helper.make_node("Constant", [], ["axis"], value_ints=[0]),
        helper.make_node("Squeeze", ["picked", "axis"], ["flat"]),
        helper.make_node("Concat", ["flat", "more"], ["joined"], axis=0),
        helper.make_node("Equal", ["flat", "Y"], ["same"]),
    ]
    outputs = {"pairs": STRING, "joined": STRING, "same": TensorProto.BOOL}
    proto = _with_nodes(_classifier(), nodes, outputs, constants)
    proto.opset_import[0].version = 19
    got = _agree(proto, X)
    assert got[1].tolist()[-2:] == ["end", NAMES[1]] and np.asarray(got[2]).all()


def test_what_computes_with_strings_is_refused() -> None:
    upper = helper.make_node("StringNormalizer", ["Y"], ["N"], case_change_action="UPPER")
    with pytest.raises(UnsupportedError, match="StringNormalizer"):
        import_onnx(_with_nodes(_classifier(), [upper], {"N": STRING}))
    with pytest.raises(UnsupportedError, match="strings"):
        number = helper.make_node("Cast", ["Y"], ["N"], to=FLOAT)
        import_onnx(_with_nodes(_classifier(), [number], {"N": FLOAT}))
    with pytest.raises(InvalidModelError):
        import_onnx(_with_nodes(_classifier(), [helper.make_node("Relu", ["Y"], ["N"])], {"N": STRING}))
    with pytest.raises(GcompError, match="one class"):
        import_onnx(_one_class())


def _one_class() -> onnx.ModelProto:
    nodes: dict[str, Any] = {
        "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_modes": ["LEAF"],
        "nodes_values": [0.0], "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "class_treeids": [0],
        "class_nodeids": [0], "class_ids": [0], "class_weights": [1.0],
    }  # fmt: skip
    outputs = {"Y": STRING, "Z": FLOAT}
    return ml_model("TreeEnsembleClassifier", [X], outputs, **nodes, classlabels_strings=["a"])
