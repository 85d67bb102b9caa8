"""Other values for a model's initializers: the same file, in which only their data differ."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from gcomp.errors import InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.model.wire import Span, data_spans

Array = np.ndarray[Any, Any]
_EXTERNAL = onnx.TensorProto.EXTERNAL


def initializer_types(path: Path) -> dict[str, np.dtype[Any]]:
    """The element types of a model's initializers, but those of strings. Raises UsageError, InvalidModelError."""
    return {t.name: _dtype(t) for t in _read(path).graph.initializer if t.data_type != onnx.TensorProto.STRING}


def write_initializers(path: Path, arrays: Mapping[str, Array], output: Path) -> None:
    """Write the model at `path` with other values of initializers to `output`; all else stays as it is, byte by byte.

    (Data that protobuf holds number by number, as few writers have it, is encoded anew.) Raises UsageError for arrays
    that do not fit.
    """
    model = _read(path)
    tensors = {tensor.name: (i, tensor) for i, tensor in enumerate(model.graph.initializer)}
    for name, array in arrays.items():
        _check(name, array, tensors.get(name), path)
    outside = {n: a for n, a in arrays.items() if tensors[n][1].data_location == _EXTERNAL}
    if outside and output.parent.resolve() == path.parent.resolve():
        raise UsageError(
            f"cannot write {output} beside {path}", why="they would share the files of external data",
            fix="write it into another folder",
        )  # fmt: skip
    inside = {tensors[n][0]: _data(a) for n, a in arrays.items() if n not in outside}
    data = path.read_bytes()
    spans = data_spans(io.BytesIO(data), len(data)) or {}
    if all(index in spans and spans[index].size == len(new) for index, new in inside.items()):
        changed = _patch(data, {spans[index]: new for index, new in inside.items()})
    else:
        changed = _encode(model, inside)
    for location in sorted({_external(tensors[n][1])[0] for n in _all_external(model)}):
        _copy(path.parent / location, output.parent / location)
    for name, array in outside.items():
        location, offset = _external(tensors[name][1])
        with (output.parent / location).open("r+b") as file:
            file.seek(offset)
            file.write(_data(array))
    temporary = output.with_name(f".{output.name}.tmp")
    temporary.write_bytes(changed)
    os.replace(temporary, output)


def _read(path: Path) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except DecodeError as error:
        raise InvalidModelError("The model cannot be read.", where=str(path), why=str(error)) from None


def _dtype(tensor: onnx.TensorProto) -> np.dtype[Any]:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))


def _check(name: str, array: Array, found: tuple[int, onnx.TensorProto] | None, path: Path) -> None:
    if found is None:
        raise UsageError(f"the model has no initializer {name!r}", where=str(path))
    _, tensor = found
    if tuple(tensor.dims) != array.shape or _dtype(tensor) != array.dtype:
        raise UsageError(
            f"the initializer {name!r} is {_dtype(tensor)}{list(tensor.dims)}, not {array.dtype}{list(array.shape)}",
            where=str(path),
        )


def _data(array: Array) -> bytes:
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()


def _patch(data: bytes, changes: Mapping[Span, bytes]) -> bytes:
    changed = bytearray(data)
    for span, new in changes.items():
        changed[span.start : span.start + span.size] = new
    return bytes(changed)


def _encode(model: onnx.ModelProto, inside: Mapping[int, bytes]) -> bytes:
    """The model with raw data in place of what its tensors had."""
    for index, new in inside.items():
        tensor = model.graph.initializer[index]
        for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            tensor.ClearField(field)
        tensor.raw_data = new
    return model.SerializeToString(deterministic=True)


def _all_external(model: onnx.ModelProto) -> list[str]:
    return [tensor.name for tensor in model.graph.initializer if tensor.data_location == _EXTERNAL]


def _external(tensor: onnx.TensorProto) -> tuple[str, int]:
    """The file with a tensor's data, which lies in the model's folder, and where in it they start."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location or Path(location).is_absolute() or ".." in Path(location).parts:
        raise UnsupportedError(f"the data of {tensor.name!r} lies outside of the model's folder", where=location[:200])
    return location, int(entries.get("offset", "0"))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.resolve() != target.resolve():
        shutil.copyfile(source, target)
