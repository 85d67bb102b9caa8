"""Multi-device annotations of ONNX become shardings, and run as the model does on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import gcomp
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.engine.importer import import_onnx
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from tests.support.devices import on_devices

Spec = tuple[str, Sequence[int], dict[int, Sequence[int]], dict[int, int]]
"""Tensor, devices, groups of devices by number, and dimension -> how many shards."""

COLUMNS: Spec = ("w", [0, 1, 2, 3], {}, {1: 4})
ROWS_OF_X: Spec = ("x", [-1, -2], {-1: (0, 1), -2: (2, 3)}, {0: 2})
TILES: Spec = ("y", [0, 1, 2, 3], {}, {0: 2, 1: 2})


def annotated(specs: Sequence[Spec], devices: int = 4, stage: int = 0, configurations: int = 1) -> onnx.ModelProto:
    """y = tanh(x @ w), whose product is annotated."""
    rng = np.random.default_rng(0)
    w = numpy_helper.from_array(rng.normal(size=(16, 32)).astype(np.float32), "w")
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    for number in range(configurations):
        said = product.device_configurations.add()
        said.configuration_id = f"devices{number}"
        if stage:
            said.pipeline_stage = stage
        for name, order, groups, cuts in specs:
            spec = said.sharding_spec.add()
            spec.tensor_name = name
            spec.device.extend(order)
            for key, members in groups.items():
                entry = spec.index_to_device_group_map.add()
                entry.key = key
                entry.value.extend(members)
            for axis, count in cuts.items():
                dim = spec.sharded_dim.add()
                dim.axis = axis
                dim.simple_sharding.add().num_shards = count
    kinds = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", (8, 16)), ("z", (8, 32)))]
    inner = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (8, 32))
    graph = helper.make_graph([product, helper.make_node("Tanh", ["y"], ["z"])], "g", kinds[:1], kinds[1:], [w],
                              value_info=[inner])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=11)
    for number in range(configurations):
        made = model.configuration.add()
        made.name, made.num_devices = f"devices{number}", devices
    return model


def said(program: Program) -> list[str]:
    return [op.layout.text() for op in program.ops() if isinstance(op, sdy.ShardingConstraintOp)]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (COLUMNS, '<@mesh, [{}, {"d0", "d1"}]>'),
        (ROWS_OF_X, '<@mesh, [{"d0"}, {}]>'),
        (("x", [-1, -2], {-1: (0, 2), -2: (1, 3)}, {-2: 2}), '<@mesh, [{"d1"}, {}]>'),
        (TILES, '<@mesh, [{"d0"}, {"d1"}]>'),
        (("y", [0, 2, 1, 3], {}, {0: 2, 1: 2}), '<@mesh, [{"d1"}, {"d0"}]>'),
        (("w", [0, 2, 1, 3], {}, {1: 4}), '<@mesh, [{}, {"d1", "d0"}]>'),
        (("x", [-1], {-1: (0, 1, 2, 3)}, {}), "<@mesh, [{}, {}]>"),
    ],
    ids=["columns", "groups", "other groups", "tiles", "tiles across", "another order", "whole"],
)
def test_specifications_are_shardings(spec: Spec, text: str) -> None:
    program = import_onnx(annotated([spec]))
    assert said(program) == [text]
    ((_, mesh),) = sdy.meshes_of(program.module).items()
    assert mesh.text() == '<["d0"=2, "d1"=2]>'


def test_annotations_do_not_change_what_is_computed() -> None:
    x = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    plain, placed = (interpret(import_onnx(annotated(specs)), [x]) for specs in ([], [ROWS_OF_X, COLUMNS, TILES]))
    assert np.array_equal(plain[0], placed[0])


def run(data: bytes, x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    model = gcomp.compile(onnx.load_from_string(data), target="xla:cpu")
    return np.asarray(model(x)[0]), model._executor.partitioned({})  # pyright: ignore


def test_annotated_models_run_on_devices() -> None:
    x = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    model = annotated([ROWS_OF_X, ("w", [-1, -2], {-1: (0, 2), -2: (1, 3)}, {1: 2}), TILES])
    found, partitioned = on_devices(run, model.SerializeToString(), x)
    np.testing.assert_allclose(found, interpret(import_onnx(annotated([])), [x])[0], rtol=1e-5, atol=1e-6)
    assert "f32[4,16]" in partitioned and "f32[16,16]" in partitioned, "each device has its parts"


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"specs": [("w", [0, 1], {}, {1: 4})]}, InvalidModelError, "has 4 shards, and names 2 devices"),
        ({"specs": [("w", [0, 1], {}, {1: 2})]}, UnsupportedError, "on some of the devices alone"),
        ({"specs": [("w", [0, 1, 3, 2], {}, {1: 4})]}, UnsupportedError, "in an order that no mesh has"),
        ({"specs": [COLUMNS], "stage": 1}, UnsupportedError, "in a later stage of a pipeline"),
        ({"specs": [COLUMNS], "configurations": 2}, UnsupportedError, "several configurations"),
    ],
    ids=["shards", "some devices", "order", "stages", "configurations"],
)
def test_what_is_no_sharding_is_refused(options: dict[str, Any], error: type[GcompError], why: str) -> None:
    with pytest.raises(error, match=why):
        import_onnx(annotated(**options))
