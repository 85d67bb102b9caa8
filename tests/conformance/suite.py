"""The cases of the test suite that comes with the onnx package, and what kind of values each is about.

Nothing is downloaded: the light models and their expected outputs are in the package, and a case whose files are not
on disk has no data (`Case.load` gives None).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader as loader
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

from tests.conformance.structure import category

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light", "real")
LIGHT = "onnx/backend/test/data/light/"

Data = list[tuple[list[Any], list[Any]]]
"""Data sets of a case: inputs and expected outputs, as arrays, lists (sequences) or None (empty optionals)."""

GENERATORS = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
"""Operators whose elements are random. The suite's authors exclude their values from comparison (and their own runner
skips them): no implementation need have NumPy's generator."""


@dataclass(frozen=True)
class Case:
    """One case of the suite. `source` is a node case in memory, or the folder or file that holds it."""

    name: str
    kind: str
    rtol: float
    atol: float
    source: Any

    @cached_property
    def model(self) -> onnx.ModelProto | None:
        """The model; None when it is not on disk."""
        if self.kind == "node":
            return self.source.model
        path = self.source if self.kind == "light" else self.source / "model.onnx"
        return onnx.load(path) if path.exists() else None

    def data(self) -> Data:
        """The data sets, read from disk now."""
        model = self.model
        assert model is not None
        if self.kind == "node":
            return [([_value(x) for x in i], [_value(x) for x in o]) for i, o in self.source.data_sets]
        if self.kind == "light":
            return [(_light_inputs(model), list(_light_outputs(self.source)))]
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in given]
        folders = sorted(self.source.glob("test_data_set*"))
        return [(_protos(f, "input", inputs), _protos(f, "output", model.graph.output)) for f in folders]

    @cached_property
    def category(self) -> str:
        """`tensor`, or what the case is about besides: `string`, `map`, `varying sequence` (see `structure`)."""
        return category(self.model) if self.model is not None else "tensor"

    @cached_property
    def is_random(self) -> bool:
        """Whether outputs have only shapes and dtypes to compare: a generator, or Dropout that drops."""
        nodes = list(_nodes(self.model.graph)) if self.model is not None else []
        drops = self.name.startswith("test_training_dropout") and "zero_ratio" not in self.name
        return drops or any(node.op_type in GENERATORS for node in nodes)

    @cached_property
    def operators(self) -> frozenset[tuple[str, str]]:
        """(domain, operator) of all nodes."""
        nodes = _nodes(self.model.graph) if self.model is not None else ()
        return frozenset(("" if n.domain == "ai.onnx" else n.domain, n.op_type) for n in nodes)


@lru_cache(1)
def cases() -> dict[str, Case]:
    """All cases by name. Generating the node cases takes seconds."""
    found = [case for kind in ("node", *sorted(os.listdir(loader.DATA_DIR))) for case in _of_kind(kind)]
    by_name = {case.name: case for case in found}
    assert len(by_name) == len(found), "two cases of the suite have the same name"
    return by_name


def _of_kind(kind: str) -> Iterator[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sorted(loader.load_model_tests(kind=kind), key=lambda case: case.name)
    for case in found:
        if kind == "node":
            yield Case(case.name, kind, case.rtol, case.atol, case)
        elif case.model_dir is not None:
            yield Case(case.name, kind, case.rtol, case.atol, Path(case.model_dir))
        elif case.url.startswith(LIGHT):
            file = Path(loader.DATA_DIR) / "light" / case.url.removeprefix(LIGHT)
            yield Case(case.name, "light", case.rtol, case.atol, file)
        else:
            yield Case(case.name, kind, case.rtol, case.atol, _models_folder() / case.model_name)


def _models_folder() -> Path:
    """Where ONNX's runner keeps downloaded models."""
    home = os.environ.get("ONNX_HOME", os.path.join("~", ".onnx"))
    return Path(os.environ.get("ONNX_MODELS", os.path.join(os.path.expanduser(home), "models")))


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    return None if value is None else np.asarray(value)


def _light_inputs(model: onnx.ModelProto) -> list[Any]:
    """The inputs that ONNX's runner makes for the light models."""
    given = {tensor.name for tensor in model.graph.initializer}
    return [Runner.generate_dummy_data(value) for value in model.graph.input if value.name not in given]


def _light_outputs(model: Path) -> Iterator[Any]:
    for path in sorted(model.parent.glob(f"{model.stem}_output_*.pb")):
        yield numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _protos(folder: Path, stem: str, values: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    count = len(list(folder.glob(f"{stem}_*.pb")))
    return [_read((folder / f"{stem}_{i}.pb").read_bytes(), values[i].type) for i in range(count)]


def _read(content: bytes, kind: onnx.TypeProto) -> Any:
    match kind.WhichOneof("value"):
        case "sequence_type":
            return _value(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
        case "optional_type":
            return _value(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
        case _:
            return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
