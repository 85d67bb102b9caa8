"""ONNX's backend protocol (`onnx.backend.base`): gcomp to tools that run ONNX models through any backend.

    import gcomp.onnx_backend as backend

    rep = backend.prepare(model)  # an onnx.ModelProto
    outputs = rep.run([x])  # arrays in the order of the model's inputs, or a dict by name

The device is the CPU. This module stands in front of gcomp and not below it: it compiles through the public face, and
nothing in gcomp imports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import gcomp
from gcomp.errors import GcompError, InputError, UnsupportedError, UsageError
from gcomp.frontends.onnx import import_onnx
from gcomp.frontends.onnx.model.input_structures import Structure

if TYPE_CHECKING:
    from gcomp.runtime.model import Model

OPTIONS = frozenset({"dims", "pipeline", "target", "verify"})
"""What `prepare` hands on to `gcomp.compile`."""

_TOLERANCES = frozenset({"rtol", "atol"})
"""ONNX's own test runner passes these to `prepare` although they say how it compares."""


class GcompRep(BackendRep):
    """A model that is ready to run.

    A model whose inputs are all tensors is compiled at once. One with sequences or optionals among its inputs is
    compiled when it runs, for each structure of the inputs that it meets.
    """

    def __init__(self, model: onnx.ModelProto, options: Mapping[str, Any]) -> None:
        """Raises GcompError."""
        self._proto = model
        self._options = dict(options)
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in given]
        self._inputs = [value.name for value in inputs]
        self._structured = [i for i, v in enumerate(inputs) if v.type.WhichOneof("value") != "tensor_type"]
        self._outputs = namedtupledict("Outputs", [value.name for value in model.graph.output])
        self._models: dict[object, Model] = {}
        self.model: Model | None = None if self._structured else self._model_for({})
        """The compiled model that ran last; None before the first run where inputs are sequences or optionals."""

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in a tuple that can also be asked by output name. Raises GcompError.

        `inputs` are arrays in the order of the model's inputs, or by name; lists stand for sequences and None for an
        empty optional. An array alone is the only input.
        """
        _check_options(kwargs, frozenset())
        arrays = _in_order(inputs, self._inputs)
        if self._structured:
            self.model = self._model_for({i: arrays[i] for i in self._structured})
        assert self.model is not None
        return self._outputs(*self.model(*_leaves(arrays)))

    def _model_for(self, structured: Mapping[int, Any]) -> Model:
        """The model for inputs of this structure, compiled once."""
        structures = {self._inputs[i]: _structure(value) for i, value in structured.items()}
        key = tuple(structures.items())
        if key not in self._models:
            options = dict(self._options)
            program = import_onnx(self._proto, dims=options.pop("dims", None), structures=structures)
            self._models[key] = gcomp.compile(program, **options)
        return self._models[key]


class GcompBackend(Backend):
    """gcomp as an ONNX backend, for the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether gcomp imports the model. For inputs that are sequences or optionals only running it tells."""
        if not cls.supports_device(device):
            return False
        if any(value.type.WhichOneof("value") != "tensor_type" for value in model.graph.input):
            return True
        try:
            import_onnx(model, dims=kwargs.get("dims"))
        except GcompError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> GcompRep:
        """Compile a model. `dims`, `pipeline`, `target` and `verify` are `gcomp.compile`'s. Raises GcompError."""
        _check_device(device)
        _check_options(kwargs, OPTIONS | _TOLERANCES)
        return GcompRep(model, {name: value for name, value in kwargs.items() if name in OPTIONS})

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compile a model and run it once. Raises GcompError."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on inputs in the node's order, or by name. Raises GcompError.

        `outputs_info` is not needed. `opset_version` is that of the node's domain, by default the newest.
        """
        version = kwargs.pop("opset_version", None)
        arrays = _in_order(inputs, [name for name in node.input if name])
        model, used = _model_of(node, arrays, version)
        return cls.prepare(model, device, **kwargs).run(used)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether gcomp runs on a device such as `CPU` or `CPU:0`."""
        return device.partition(":")[0] == "CPU"


is_compatible = GcompBackend.is_compatible
prepare = GcompBackend.prepare
run_model = GcompBackend.run_model
run_node = GcompBackend.run_node
supports_device = GcompBackend.supports_device


def _check_device(device: str) -> None:
    if not GcompBackend.supports_device(device):
        raise UnsupportedError(f"gcomp's ONNX backend does not run on {device!r}.", fix="Use the device CPU.")


def _check_options(given: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := sorted(given.keys() - known):
        options = ", ".join(sorted(known - _TOLERANCES)) or "none"
        raise UsageError(f"gcomp's ONNX backend has no option {unknown[0]!r}.", fix=f"Its options are: {options}.")


def _in_order(inputs: Any, names: Sequence[str]) -> list[Any]:
    """Inputs in order, from a list, a dict by name, or an array alone. Raises InputError."""
    if isinstance(inputs, Mapping):
        given = cast("Mapping[str, Any]", inputs)
        if set(given) != set(names):
            missing, unknown = sorted(set(names) - set(given)), sorted(set(given) - set(names))
            raise InputError(
                "The inputs have other names.", why=f"Missing: {missing}. Unknown: {unknown}.", fix=f"Give {names}."
            )
        return [_array(name, given[name]) for name in names]
    values: list[Any] = list(cast("Sequence[Any]", inputs)) if isinstance(inputs, (list, tuple)) else [inputs]
    if len(values) != len(names):
        raise InputError(f"There are {len(names)} inputs, and {len(values)} were given.", fix=f"Give {names}.")
    return [_array(name, value) for name, value in zip(names, values, strict=True)]


def _array(name: str, value: Any) -> Any:
    """An input as the model takes it. Raises InputError for what NumPy makes no array of."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_array(name, item) for item in cast("Sequence[Any]", value)]
    if hasattr(value, "__dlpack__"):
        return value
    try:
        array: np.ndarray[Any, np.dtype[Any]] = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"Input `{name}` is not an array.", why=str(error)) from None
    return array


def _structure(value: Any) -> Structure:
    """What an input that is a sequence or an optional holds: the shapes of its tensors, or None for nothing."""
    if value is None:
        return None
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(tuple(int(size) for size in item.shape) for item in items)


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    """The tensors among inputs, in order: a compiled model takes no others."""
    for value in values:
        if isinstance(value, list):
            yield from _leaves(cast("list[Any]", value))
        elif value is not None:
            yield value


# ---- a model of one node ----


def _model_of(node: onnx.NodeProto, arrays: Sequence[Any], version: int | None) -> tuple[onnx.ModelProto, list[Any]]:
    """A model of a node, and its inputs. None is an input that the node does not have."""
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    positions = [i for i, name in enumerate(node.input) if name]
    used: list[Any] = []
    infos: list[onnx.ValueInfoProto] = []
    for position, array in zip(positions, arrays, strict=True):
        # The same value may be read twice, and is then given twice.
        copied.input[position] = "" if array is None else f"input_{position}"
        if array is not None:
            used.append(array)
            infos.append(helper.make_value_info(copied.input[position], _type_of(array)))
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([copied], "node", infos, outputs)
    return helper.make_model(graph, opset_imports=list(_opsets(node.domain, version))), used


def _opsets(domain: str, version: int | None) -> Iterator[onnx.OperatorSetIdProto]:
    newest = onnx.defs.onnx_opset_version()
    if domain in ("", "ai.onnx"):
        yield helper.make_opsetid("", version or newest)
        return
    versions = [schema.since_version for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == domain]
    yield helper.make_opsetid("", newest)
    yield helper.make_opsetid(domain, version or max(versions, default=1))


def _type_of(value: Any) -> onnx.TypeProto:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        element = _type_of(items[0]) if items else helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
        if items:
            element.tensor_type.ClearField("shape")
        return helper.make_sequence_type_proto(element)
    array: np.ndarray[Any, np.dtype[Any]] = np.asarray(value)
    try:
        element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError) as error:
        raise InputError(f"ONNX has no tensors of {array.dtype}.", why=str(error)) from None
    return helper.make_tensor_type_proto(element_type, array.shape)
