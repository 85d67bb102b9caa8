"""One-node models of `com.microsoft`, run by gcomp and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret

Array = np.ndarray[Any, Any]
Dims = Sequence[int | str | None]


def node_model(
    op: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str] = ("y",),
    dims: Mapping[str, Dims] | None = None,
    constants: Sequence[str] = (),
    element: int | Mapping[str, int] = TensorProto.FLOAT,
    domain: str = "com.microsoft",
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node. Inputs that are None are left out, `constants` are initializers, outputs "" are not named.

    `dims` gives the declared dims of inputs (by default their sizes) and of outputs (by default unknown).
    """
    shapes = dict(dims or {})
    names = [name if value is not None else "" for name, value in inputs.items()]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(op, names, list(outputs), name="node", domain=domain, **attributes)
    ports = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), shapes.get(name, list(value.shape))
        )
        for name, value in inputs.items()
        if value is not None and name not in constants
    ]
    types = {name: element if isinstance(element, int) else element.get(name, TensorProto.FLOAT) for name in outputs}
    results = [helper.make_tensor_value_info(name, types[name], shapes.get(name)) for name in outputs if name]
    weights = [numpy_helper.from_array(np.asarray(inputs[name]), name) for name in constants]
    graph = helper.make_graph([node], "g", ports, results, initializer=weights)
    imports = [helper.make_opsetid("", 16), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def feeds(model: onnx.ModelProto, inputs: Mapping[str, Array | None]) -> dict[str, Array]:
    """The inputs that the model takes, in its order."""
    return {port.name: np.asarray(inputs[port.name]) for port in model.graph.input}


def peer(model: onnx.ModelProto, inputs: Mapping[str, Array | None]) -> list[Array]:
    """ONNX Runtime's results."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds(model, inputs)))


def interpreted(model: onnx.ModelProto, inputs: Mapping[str, Array | None]) -> list[Array]:
    """The reference interpreter's results of the imported model."""
    program = import_onnx(model)
    return interpret(program, list(feeds(model, inputs).values()))


def compare(got: Sequence[Array], want: Sequence[Array], tolerance: float | None = None) -> None:
    """Equal shapes, dtypes and values, up to a few roundings of sums for floats."""
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        a = np.asarray(a)
        assert a.shape == b.shape and a.dtype == b.dtype
        if not np.issubdtype(b.dtype, np.inexact):
            assert np.array_equal(a, b)
            continue
        eps = {2: 2e-3, 4: 1e-5, 8: 1e-12}[b.dtype.itemsize] if tolerance is None else tolerance
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=eps, atol=eps)


def agree(op: str, inputs: Mapping[str, Array | None], outputs: Sequence[str] = ("y",), **options: Any) -> list[Array]:
    """Check that gcomp and ONNX Runtime give the same results; they are returned."""
    tolerance = options.pop("tolerance", None)
    model = node_model(op, inputs, outputs, **options)
    got, want = interpreted(model, inputs), peer(model, inputs)
    compare(got, want, tolerance)
    return got


def compiled_agrees(
    model: onnx.ModelProto, calls: Sequence[Mapping[str, Array | None]], tolerance: float | None = None, **options: Any
) -> None:
    """Check one compilation of a model (with symbolic dims) against ONNX Runtime, on several calls."""
    import gcomp

    compiled = gcomp.compile(model, **options)
    for inputs in calls:
        compare([np.asarray(v) for v in compiled(*feeds(model, inputs).values())], peer(model, inputs), tolerance)


def in_seven_bits(weights: Array) -> Array:
    """Quantized values of weights, halved: ONNX Runtime's products of uint8 and int8 are exact with them on every CPU.

    Where a CPU has no VNNI, it adds pairs of such products in 16 bits, which saturates with weights of 8 bits.
    """
    return weights // 2


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    """Normal numbers."""
    return rng.normal(size=shape).astype(dtype)
