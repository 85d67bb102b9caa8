"""A small artifact with every kind of content, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from gcomp.runtime.artifact import write_artifact
from gcomp.runtime.manifest import (
    FORMAT_VERSION,
    InputSpec,
    Manifest,
    MemorySpec,
    OutputSpec,
    SymbolSpec,
    WeightSpec,
)
from gcomp.runtime.weights import describe_weight

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]

ARRAYS: Arrays = {
    "w": np.arange(7, dtype=np.float32),
    "none": np.zeros((0, 3), np.int64),
    "scalar": np.array(3, ml_dtypes.bfloat16),
    "narrow": np.array([[-8, 7, -1]], np.int8).astype(ml_dtypes.int4),
    "flags": np.array([True, False, True]),
}
MEMBERS = {"plan.json": b'{"steps":[]}', "code-0.txt": b"source"}


def specs_of(arrays: Arrays) -> tuple[WeightSpec, ...]:
    return tuple(describe_weight(name, array, 1 + index) for index, (name, array) in enumerate(arrays.items()))


def manifest_for(weights: Sequence[WeightSpec]) -> Manifest:
    return Manifest(
        format_version=FORMAT_VERSION,
        gcomp_version="0.0",
        target="xla:cpu",
        native_code=False,
        producers={"jax": "0.10"},
        members={},
        inputs=(InputSpec("x", "f32", ("batch", "4"), donated=True),),
        outputs=(OutputSpec("y", "f32", ("batch", "4"), alias=0),),
        symbols={"batch": SymbolSpec(1, 64, 1)},
        constraints=("batch <= 64",),
        result={"tuple": [0]},
        arguments=None,
        weights=tuple(weights),
        memory=MemorySpec(None, "16*batch", "test"),
        licences=("Apache-2.0",),
        segments=({"kind": "device"},),
        verified=None,
        numerics=None,
    )


def write_sample(path: str | Path) -> Manifest:
    return write_artifact(path, manifest_for(specs_of(ARRAYS)), MEMBERS, ARRAYS)
