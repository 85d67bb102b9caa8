"""What runs a case: gcomp through XLA or as machine code, its reference interpreter, and ONNX Runtime as the peer."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from gcomp.errors import UnsupportedError


class Refused(Exception):
    """The engine says that it does not take the model: gcomp's UnsupportedError, ONNX Runtime's like."""


@dataclass(frozen=True)
class Runs:
    """Outputs for each data set; the functions that ran on the host; how many inputs had to be constants."""

    outputs: list[list[Any]]
    host_steps: tuple[str, ...] = ()
    fixed: int = 0


Engine = Callable[[onnx.ModelProto, Sequence[list[Any]]], Runs]
"""From a model and the inputs of its data sets to outputs. Raises Refused, and whatever the engine raises."""


# ---- gcomp ----


def _through_target(target: str, model: onnx.ModelProto, inputs: Sequence[list[Any]]) -> Runs:
    """gcomp as the ONNX backend that users meet."""
    from gcomp import onnx_backend as backend
    from gcomp.runtime.plan import HostStep

    rep = backend.prepare(model, dims=_empty_dims(model, inputs), target=target)
    outputs = [_arrays(rep.run(arrays)) for arrays in inputs]
    assert rep.model is not None
    return Runs(outputs, tuple(step.function for step in rep.model.plan.steps if isinstance(step, HostStep)))


def _through_reference(model: onnx.ModelProto, inputs: Sequence[list[Any]]) -> Runs:
    """Import and interpretation, with no pass and no target."""
    return Runs([_interpret(model, arrays, ()) for arrays in inputs])


def _interpret(model: onnx.ModelProto, arrays: list[Any], fixed: Sequence[int]) -> list[Any]:
    from gcomp.reference.interpreter import interpret
    from gcomp.runtime.structure import builder

    program = _imported(model, arrays, fixed)
    program.verify("as imported")
    results = interpret(program, _feeds(arrays, fixed))
    return _arrays(builder(program.result_structure, len(results))(results))


def _compile_fixed(target: str, model: onnx.ModelProto, arrays: list[Any], fixed: Sequence[int]) -> list[Any]:
    import gcomp

    outputs = gcomp.compile(_imported(model, arrays, fixed), target=target)(*_feeds(arrays, fixed))
    return _arrays(outputs)


def _imported(model: onnx.ModelProto, arrays: list[Any], fixed: Sequence[int]) -> Any:
    """The program for a case's inputs, some of them fixed for good."""
    from gcomp.frontends.onnx import import_onnx

    constants, kept = _constants(model, arrays, fixed), {_inputs(model)[i].name for i in fixed}
    dims = {
        name: spec for name, spec in _empty_dims(model, [arrays]).items() if name in _dim_names(model, without=kept)
    }
    return import_onnx(model, dims=dims, constants=constants, structures=_structures(model, arrays))


def _feeds(arrays: list[Any], fixed: Sequence[int]) -> list[Any]:
    """The tensors of the inputs that are not fixed."""
    return list(_leaves([a for i, a in enumerate(arrays) if i not in fixed]))


def _empty_dims(model: onnx.ModelProto, inputs: Sequence[list[Any]]) -> dict[str, str]:
    """Ranges from 0 for the symbolic dims that are 0 in a case: unless it is said, dims are at least 1."""
    return {
        dim.dim_param: "0.."
        for arrays in inputs
        for value, array in zip(_inputs(model), arrays, strict=True)
        if isinstance(array, np.ndarray)
        for dim, size in zip(value.type.tensor_type.shape.dim, array.shape, strict=False)
        if dim.dim_param and size == 0
    }


def _dim_names(model: onnx.ModelProto, without: set[str]) -> set[str]:
    values = [value for value in _inputs(model) if value.name not in without]
    return {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim}


def _constants(model: onnx.ModelProto, arrays: list[Any], fixed: Sequence[int]) -> dict[str, Any]:
    inputs = _inputs(model)
    return {inputs[i].name: arrays[i] for i in fixed}


def _structures(model: onnx.ModelProto, arrays: list[Any]) -> dict[str, Any]:
    """What the inputs that are sequences or optionals hold."""
    pairs = zip(_inputs(model), arrays, strict=True)
    return {
        value.name: None if a is None else [x.shape for x in (a if isinstance(a, list) else [a])]
        for value, a in pairs
        if value.type.WhichOneof("value") != "tensor_type"
    }


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    given = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in given]


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value)
        elif value is not None:
            yield value


_BY_DATA = re.compile("depend|symbolic|not known")
"""What a refusal says when it is about a size, a rank or a position that an input's numbers decide."""


def _with_constants(run: Engine, again: Callable[[onnx.ModelProto, list[Any], Sequence[int]], list[Any]]) -> Engine:
    """The cases give shapes and axes as inputs. What cannot be compiled so gets them as constants, and says so."""

    def engine(model: onnx.ModelProto, inputs: Sequence[list[Any]]) -> Runs:
        try:
            return run(model, inputs)
        except UnsupportedError as error:
            refusal = error
        for fixed in _choices(inputs[0]):
            if not _BY_DATA.search(str(refusal)):
                break
            try:
                return Runs([again(model, arrays, fixed) for arrays in inputs], fixed=len(fixed))
            except UnsupportedError as error:
                refusal = error
        raise Refused(str(refusal))

    return engine


def _choices(inputs: list[Any]) -> Iterator[list[int]]:
    """Which inputs that are tensors to fix: integers other than the first; all integers; all but the first; all."""
    tensors = [i for i, a in enumerate(inputs) if isinstance(a, np.ndarray)]
    integers = [i for i in tensors if inputs[i].dtype.kind in "iu"]
    tried: list[list[int]] = [[]]
    for choice in ([i for i in integers if i], integers, [i for i in tensors if i], tensors):
        if choice not in tried:
            tried.append(choice)
            yield choice


def _arrays(values: Sequence[Any]) -> list[Any]:
    return [_arrays(v) if isinstance(v, (list, tuple)) else None if v is None else np.asarray(v) for v in values]


# ---- ONNX Runtime ----

_IR_VERSION = 13
"""The newest that ONNX Runtime reads. The suite stamps its node cases with the newest, and needs nothing of it."""

_REFUSALS = re.compile(
    "not a registered function/op|Could not find an implementation|under development|not supported|Unsupported|"
    "not implemented|NOT_IMPLEMENTED|No Op registered for",
    re.IGNORECASE,
)


_UNKNOWN_TO_NUMPY = re.compile("bfloat16|float8|float4|int4|int2")


def _through_onnxruntime(model: onnx.ModelProto, inputs: Sequence[list[Any]]) -> Runs:
    """ONNX Runtime on one thread.

    It is helped where only its Python binding is in the way: inputs of types that NumPy lacks are given in the model,
    and outputs of such types are read from its memory.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return Runs([_session_run(model, arrays, options) for arrays in inputs])
    except Exception as error:
        if _REFUSALS.search(str(error)):
            raise Refused(str(error)) from error
        raise


def _session_run(model: onnx.ModelProto, arrays: list[Any], options: Any) -> list[Any]:
    import onnxruntime as ort

    feeds = dict(zip([value.name for value in _inputs(model)], arrays, strict=True))
    inside = [name for name, array in feeds.items() if isinstance(array, np.ndarray) and array.dtype.isbuiltin != 1]
    inside = [name for name in inside if feeds[name].dtype.kind not in "OSUT"]
    if inside or model.ir_version > _IR_VERSION:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        changed.ir_version = min(model.ir_version, _IR_VERSION)
        changed.graph.initializer.extend(numpy_helper.from_array(feeds.pop(name), name) for name in inside)
        model = changed
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = [value.name for value in session.get_outputs()]
    if not any(_UNKNOWN_TO_NUMPY.search(value.type) for value in session.get_outputs()):
        return session.run(outputs, feeds)
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    return [_from_memory(value) for value in session.run_with_ort_values(outputs, values)]


def _from_memory(value: Any) -> Any:
    """An array of an `OrtValue`, of any element type."""
    element_type = value.element_type()
    if element_type in (onnx.TensorProto.BOOL, onnx.TensorProto.STRING):
        return value.numpy()
    content = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return numpy_helper.to_array(onnx.TensorProto(data_type=element_type, dims=value.shape(), raw_data=content))


def _through(target: str) -> Engine:
    return _with_constants(partial(_through_target, target), partial(_compile_fixed, target))


ENGINES: dict[str, Callable[[], Engine]] = {
    "gcomp": lambda: _through("xla:cpu"),
    "cpu": lambda: _through("cpu"),
    "reference": lambda: _with_constants(_through_reference, _interpret),
    "onnxruntime": lambda: _through_onnxruntime,
}
"""Name -> engine."""
