"""Reading an ONNX model without trusting it.

The protobuf is parsed without its large weights (`wire`), checked (`structure`) and turned into `onnx_ir`'s model, in
which every tensor then owns its data: a read-only array, mapped from the model's folder (`external_data`), read from
the model's file straight to where it stays, or taken out of the protobuf, which is let go. Whatever is wrong with the
bytes is a GcompError; nothing outside the model's folder is ever opened.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Generator, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
import onnx_ir as ir

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.model.external_data import ModelFolder
from gcomp.frontends.onnx.model.structure import check_structure
from gcomp.frontends.onnx.model.wire import MAX_BYTES, Span, outline
from gcomp.ir.weights import allocate_aligned
from gcomp.records import record

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@record
class _Parsed:
    """A model's protobuf, and where to find the raw data that was cut out of its graph's initializers, by index."""

    proto: onnx.ModelProto
    raw_data: Mapping[int, Span] = field(default_factory=dict[int, Span])
    file: io.BufferedIOBase | None = None

    def sizes(self) -> dict[int, int]:
        """The sizes of what was cut out."""
        return {index: span.size for index, span in self.raw_data.items()}

    def by_name(self) -> dict[str, Span]:
        """What was cut out by initializers' names, which `check_structure` finds to be unique."""
        return {self.proto.graph.initializer[index].name: span for index, span in self.raw_data.items()}


def read_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, *, folder: str | os.PathLike[str] | None = None
) -> ir.Model:
    """Reads a model from a file, from a file's bytes, or from a protobuf, which is left as it is.

    `folder` is where external data lies; by default the folder of the file. Raises InvalidModelError if the
    model is damaged or contradicts itself, UnsupportedError for what gcomp does not read (sparse tensors,
    newer IR versions).
    """
    where, base = "the model", None if folder is None else os.fspath(folder)
    if isinstance(source, (str, os.PathLike)):
        where = os.fspath(source)
        base = os.path.dirname(where) if base is None else base
        with open(_open_file(where), "rb") as file:
            return _build(_parse(file, os.fstat(file.fileno()).st_size, where), where, base)
    if isinstance(source, bytes):
        return _build(_parse(io.BytesIO(source), len(source), where), where, base)
    if isinstance(source, onnx.ModelProto):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        return _build(_Parsed(source), where, base)
    raise UsageError(
        f"A {type(source).__name__} is not an ONNX model.", fix="Give a path, bytes or an onnx.ModelProto."
    )


def _build(parsed: _Parsed, where: str, base: str | None) -> ir.Model:
    try:
        checksums = check_structure(parsed.proto, where, parsed.sizes())
    except UnicodeDecodeError as error:
        raise InvalidModelError("A text in the model is not UTF-8.", where=where, why=str(error)) from error
    with _library_errors("The model cannot be read.", where):
        model = ir.serde.deserialize_model(parsed.proto)
        _restore_inputs(model.graph, parsed.proto.graph)
    with ModelFolder(base, checksums) as files:
        for name, span in parsed.by_name().items():
            _fill(model.graph.initializers[name], span, cast(io.BufferedIOBase, parsed.file), where)
        for graph in all_graphs(model):
            _own_tensors(graph, files, where)
    return model


def _restore_inputs(graph: ir.Graph, proto: onnx.GraphProto) -> None:
    """Gives inputs that are outputs too the types that they have as inputs: `onnx_ir` took those of the outputs."""
    outputs = {info.name for info in proto.output}
    for value, info in zip(graph.inputs, proto.input, strict=True):
        if info.name in outputs:
            ir.serde.deserialize_value_info_proto(info, value)


def all_graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The model's graph, the bodies of its functions, and all their subgraphs."""
    yield from model.graphs()
    for function in model.functions.values():
        yield function.graph
        yield from function.subgraphs()


def forget_tensors(model: ir.Model) -> None:
    """Lets go of all elements. Models refer to themselves: else the elements would wait for the garbage collector."""
    for graph in list(all_graphs(model)):
        for value in graph.initializers.values():
            value.const_value = None
        for node in graph:
            node.attributes.clear()


def tensor_array(tensor: ir.TensorProtocol, where: str) -> Array:
    """A tensor's elements as a read-only array; narrow types are those of ml_dtypes, one element per byte.

    Mapped data stays mapped. Raises UnsupportedError for strings, InvalidModelError if the data is not what
    the tensor claims.
    """
    if tensor.dtype == ir.DataType.STRING:
        raise UnsupportedError("The model has a tensor of strings.", where=where, why="gcomp computes on numbers.")
    with _library_errors("A tensor cannot be read.", where):
        array = cast(Array, tensor.numpy()).view()
    if array.shape != _dims(tensor) or array.dtype != tensor.dtype.numpy():
        raise InvalidModelError(
            "A tensor's data does not match its shape and dtype.", where=where, why=f"It is {array.dtype}{array.shape}."
        )
    # A boolean byte of 2 would be neither true nor false.
    if array.dtype == np.bool_ and array.size and int(array.view(np.uint8).max()) > 1:
        raise InvalidModelError("A tensor of booleans has bytes other than 0 and 1.", where=where)
    array.flags.writeable = False
    return array


@contextlib.contextmanager
def _library_errors(what: str, where: str) -> Generator[None]:
    """Turns any error of the libraries underneath into an InvalidModelError: they raise all kinds for bad models."""
    try:
        yield
    except (GcompError, MemoryError):
        raise
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise InvalidModelError(
            what,
            where=where,
            why=f"{type(cause).__name__}: {str(cause)[:300]}",
            fix="Check that the file was copied whole and that `onnx.checker` accepts it; else export it again.",
        ) from error


def _open_file(path: str) -> int:
    try:
        # O_NONBLOCK: opening a named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidModelError("The model is not a regular file.", where=path)
    return descriptor


def _unreadable(path: str, error: OSError | ValueError) -> InvalidModelError:
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return InvalidModelError(
        "The model cannot be opened.", where=path, why=why, fix="Check the path and its permissions."
    )


def _parse(file: io.BufferedIOBase, size: int, where: str) -> _Parsed:
    if not size:
        raise InvalidModelError("The model is empty.", where=where, fix="Check that the file was copied whole.")
    try:
        found = outline(file, size)
        if found is None and size > MAX_BYTES:
            raise InvalidModelError(
                "The model's file is too large to be ONNX.",
                where=where,
                why=f"It has {size} bytes; protobuf ends at {MAX_BYTES}.",
                fix="Save the model with external data.",
            )
        file.seek(0)
        # With its size, `read` makes one buffer that fits.
        message = file.read(size) if found is None else found.message
    except OSError as error:
        raise _unreadable(where, error) from error
    proto = onnx.ModelProto()
    with _library_errors("This is not an ONNX model, or it is damaged.", where):
        proto.ParseFromString(message)
    return _Parsed(proto) if found is None else _Parsed(proto, found.raw_data, file)


def _fill(value: ir.Value, span: Span, file: io.BufferedIOBase, where: str) -> None:
    """Gives an initializer its raw data back, read straight into memory that a device can share.

    It is read and not mapped: weights inside a file are hardly ever aligned, so a mapping would be copied anyway, and
    whoever then exports the model anew over its old file would crash the process.
    """
    where = f"{where}: initializer `{value.name}`"
    tensor = cast(ir.TensorProtocol, value.const_value)
    if tensor.dtype == ir.DataType.STRING:
        return
    data = allocate_aligned(span.size)
    try:
        file.seek(span.start)
        count = file.readinto(data.data)
    except OSError as error:
        raise _unreadable(where, error) from error
    if count != span.size:
        raise InvalidModelError("The model's file became shorter while it was read.", where=where)
    data.flags.writeable = False
    with _library_errors("A tensor cannot be read.", where):
        value.const_value = _from_bytes(tensor, data.data)


def _own_tensors(graph: ir.Graph, files: ModelFolder, where: str) -> None:
    """Replaces the tensors of a graph by ones that hold no protobuf and open no file."""
    where = f"{where}: graph `{graph.name}`"
    for name, value in graph.initializers.items():
        if value.const_value is not None:
            value.const_value = _own(value.const_value, files, f"{where}, initializer `{name}`")
    for node in graph:
        for attribute in list(node.attributes.values()):
            if attribute.is_ref() or attribute.type not in (ir.AttributeType.TENSOR, ir.AttributeType.TENSORS):
                continue
            text = f"{where}, node `{node.name}` ({node.op_type}), attribute `{attribute.name}`"
            if attribute.type == ir.AttributeType.TENSOR:
                owned: Any = _own(attribute.as_tensor(), files, text)
            else:
                owned = tuple(_own(tensor, files, text) for tensor in attribute.as_tensors())
            node.attributes[attribute.name] = ir.Attr(
                attribute.name, attribute.type, owned, doc_string=attribute.doc_string
            )


def _own(tensor: ir.TensorProtocol, files: ModelFolder, where: str) -> ir.TensorProtocol:
    if isinstance(cast(object, tensor), (ir.Tensor, ir.PackedTensor)):
        return tensor  # filled already
    with _library_errors("A tensor cannot be read.", where):
        if isinstance(tensor, ir.ExternalTensor):
            location = str(cast(Any, tensor).location)
            data = files.read(location, tensor.offset or 0, tensor.nbytes, where)
            return _from_bytes(tensor, data)
        if isinstance(tensor, ir.StringTensor):
            return ir.StringTensor(list(tensor.string_data()), **_labels(tensor))
        proto = cast(onnx.TensorProto, tensor.raw)
        if proto.HasField("raw_data"):
            return _from_bytes(tensor, memoryview(proto.raw_data))
        _check_narrow(tensor.dtype, proto, where)
        array = cast(Array, tensor.numpy())
        array.flags.writeable = False
        return ir.Tensor(array, tensor.dtype, **_labels(tensor))


def _dims(tensor: ir.TensorProtocol) -> tuple[int, ...]:
    # A tensor's dims are never symbolic.
    return tuple(int(cast(int, dim)) for dim in tensor.shape)


def _labels(tensor: ir.TensorProtocol) -> dict[str, Any]:
    """All of a tensor but its dtype and elements, as keyword arguments."""
    return {
        "shape": ir.Shape(_dims(tensor)),
        "name": tensor.name,
        "doc_string": tensor.doc_string,
        "metadata_props": dict(tensor.metadata_props),
    }


def _from_bytes(tensor: ir.TensorProtocol, data: memoryview) -> ir.TensorProtocol:
    """A tensor over bytes in ONNX's raw form (little-endian, narrow types packed), without a copy."""
    raw = np.frombuffer(data, np.uint8)
    if tensor.dtype.bitwidth < 8:
        return ir.PackedTensor(raw, tensor.dtype, **_labels(tensor))
    array = raw.view(tensor.dtype.numpy()).reshape(_dims(tensor))
    return ir.Tensor(array, tensor.dtype, **_labels(tensor))


def _check_narrow(dtype: ir.DataType, proto: onnx.TensorProto, where: str) -> None:
    """`int32_data` holds narrow types in wide entries; one that does not fit would silently become another value."""
    if not proto.int32_data or dtype.bitwidth >= 32:
        return
    bits = 1 if dtype == ir.DataType.BOOL else max(dtype.bitwidth, 8)
    lowest, highest = min(proto.int32_data), max(proto.int32_data)
    if lowest < (0 if bits == 1 else -(1 << (bits - 1))) or highest >= 1 << bits:
        raise InvalidModelError(
            "A tensor's entries do not fit its dtype.",
            where=where,
            why=f"{dtype.name} with entries from {lowest} to {highest}.",
        )
