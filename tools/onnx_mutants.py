"""Mutants of the ONNX suite's own models, with inputs for them.

What chooses is a `random.Random`: one that is seeded, so that a seed and a number name a mutant, or Hypothesis's, which
makes a mutant that fails smaller.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader as loader
from onnx import TensorProto, numpy_helper

from gcomp.testing.foreign.onnx_constants import fix_inputs, raw
from gcomp.testing.mutate import nodes

Array = np.ndarray[Any, Any]
Input = Array | list[Array] | None
"""A tensor, a sequence of tensors, or an optional that holds nothing."""

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
IR_VERSION = 13
LARGEST = 1 << 20
"""Models of more bytes, and inputs of more elements, are left out: they only take time."""


@dataclass(frozen=True)
class Sample:
    """A model of the suite with inputs for it by name: those that are of numbers."""

    name: str
    model: onnx.ModelProto
    inputs: Mapping[str, Input]


@dataclass(frozen=True)
class Mutant:
    """A mutated model with inputs by name (None where there are none to be had), and how it was made."""

    name: str
    mutators: str
    model: onnx.ModelProto
    inputs: dict[str, Input] | None


# ---- samples ----


@lru_cache(1)
def samples() -> tuple[list[Sample], nodes.Pool]:
    """The suite's models that are small enough, and what they use."""
    found: list[Sample] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for case in loader.load_model_tests(kind=kind):
                sample = _sample(case)
                if sample is not None and sample.model.ByteSize() <= LARGEST:
                    found.append(sample)
    return found, nodes.Pool.of(s.model for s in found)


def _sample(case: Any) -> Sample | None:
    if case.model is not None:
        return Sample(case.name, case.model, _by_name(case.model, case.data_sets[0][0]))
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    files = sorted((folder / "test_data_set_0").glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    try:
        return Sample(case.name, model, _by_name(model, [onnx.load_tensor(str(f)) for f in files]))
    except (TypeError, ValueError):
        return None


def _by_name(model: onnx.ModelProto, values: Sequence[Any]) -> dict[str, Input]:
    found: dict[str, Input] = {}
    for info, value in zip(model.graph.input, values, strict=False):
        items = [_array(item) for item in (value if isinstance(value, list) else [value]) if item is not None]
        if all(item.dtype.kind not in "OUS" for item in items):
            found[info.name] = None if value is None else items if isinstance(value, list) else items[0]
    return found


def _array(value: Any) -> Array:
    return np.asarray(numpy_helper.to_array(value) if isinstance(value, TensorProto) else value)


# ---- making mutants ----


def mutant(seed: int, number: int) -> Mutant:
    """Mutant `number` of a seed: the same each time."""
    return made(Random(f"{seed} {number}"))


def made(chance: Random) -> Mutant:
    """The mutant that `chance` makes."""
    found, pool = samples()
    sample = found[chance.randrange(len(found))]
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    # The newest that ONNX Runtime reads; what IR versions add is not what is tried here.
    model.ir_version = min(model.ir_version, IR_VERSION)
    raw(model)
    fix_inputs(chance, model, sample.inputs)
    if chance.random() < 0.85:
        for value in model.graph.output:
            value.ClearField("type")
    changed, names = nodes.mutate(chance, model, pool)
    return Mutant(sample.name, names, changed, _inputs(chance, changed, sample.inputs))


def _inputs(chance: Random, model: onnx.ModelProto, given: Mapping[str, Input]) -> dict[str, Input] | None:
    """Values for the mutant's inputs: those of the sample where they fit, and others of the stated types."""
    fixed, sizes, arrays = {t.name for t in model.graph.initializer}, dict[str, int](), dict[str, Input]()
    rng = np.random.default_rng(chance.randrange(1 << 32))
    for value in model.graph.input:
        if value.name in fixed:
            continue
        kind, old = value.type.tensor_type, given.get(value.name)
        if not value.type.HasField("tensor_type"):
            if value.name not in given:
                return None
            arrays[value.name] = old
            continue
        if kind.elem_type in (0, TensorProto.STRING):
            return None
        old = old if isinstance(old, np.ndarray) else None
        shape = _shape(kind.shape.dim, old, sizes)
        if int(np.prod(shape, dtype=np.float64)) > LARGEST or min(shape, default=0) < 0 or len(shape) > 32:
            return None
        arrays[value.name] = _data(chance, rng, shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), old)
    return arrays


def _shape(dims: Sequence[Any], old: Array | None, sizes: dict[str, int]) -> list[int]:
    shape: list[int] = []
    for i, dim in enumerate(dims):
        if dim.WhichOneof("value") == "dim_value":
            shape.append(dim.dim_value)
        else:
            known = old.shape[i] if old is not None and i < old.ndim else 2
            shape.append(sizes.setdefault(dim.dim_param, known) if dim.dim_param else known)
    return shape


def _data(chance: Random, rng: np.random.Generator, shape: Sequence[int], dtype: Any, old: Array | None) -> Array:
    if old is not None and list(old.shape) == list(shape):
        array = old if old.dtype == dtype else np.asarray(old.astype(np.float64).round(3), np.float64)
    elif np.dtype(dtype).kind in "iub":
        array = rng.integers(0, 4, shape)
    else:
        array = rng.standard_normal(shape) * 2
    with np.errstate(all="ignore"):
        array = np.array(np.clip(array, 0, 100) if np.dtype(dtype).kind == "u" else array).astype(dtype)
    if array.size and np.dtype(dtype).kind == "f" and chance.random() < 0.1:
        array = array.copy()
        array.reshape(-1)[chance.randrange(array.size)] = chance.choice((np.nan, np.inf, -np.inf, -0.0, 1e4))
    return array


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a model, those of functions and subgraphs included."""
    pending = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while pending:
        node = pending.pop()
        yield node
        pending += [n for a in node.attribute for n in a.g.node]
