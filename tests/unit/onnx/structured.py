"""Running models whose inputs and outputs may be sequences and optionals, here and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import gcomp
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret
from gcomp.runtime.structure import builder


def flattened(value: Any) -> Iterator[Any]:
    """The arrays in a value: those of lists in order, and none of None."""
    if isinstance(value, list):
        for item in value:
            yield from flattened(item)
    elif value is not None:
        yield np.asarray(value)


def run(proto: onnx.ModelProto, *inputs: Any, **options: Any) -> list[Any]:
    """The reference interpreter's outputs, with their structure. `inputs` are those that are no constants."""
    program = import_onnx(proto, **options)
    outputs = interpret(program, [a for value in inputs for a in flattened(value)])
    return list(builder(program.result_structure, len(outputs))(outputs))


def run_xla(proto: onnx.ModelProto, *inputs: Any, **options: Any) -> list[Any]:
    """The compiled model's outputs."""
    compiled = gcomp.compile(proto, **options)
    return list(compiled(*[a for value in inputs for a in flattened(value)]))


def run_peer(proto: onnx.ModelProto, *inputs: Any) -> list[Any]:
    """ONNX Runtime's outputs."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def assert_same(got: Any, want: Any) -> None:
    """Equal in structure, dtype, shape and value."""
    if want is None or isinstance(want, list):
        assert type(got) is type(want)
        assert want is None or len(got) == len(want)
        for a, b in zip(got or [], want or [], strict=True):
            assert_same(a, b)
        return
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
