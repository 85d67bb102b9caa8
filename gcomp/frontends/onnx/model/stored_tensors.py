"""Checks of tensors as a model's protobuf stores them: that their data is of the size that they claim, in one place."""

from __future__ import annotations

import math
import re

import onnx
import onnx_ir as ir

from gcomp.errors import InvalidModelError, UnsupportedError

MAX_RANK = 64  # NumPy's own limit

_D = ir.DataType
_TYPED_FIELDS: dict[ir.DataType, tuple[str, int, int]] = {
    _D.FLOAT: ("float_data", 1, 1),
    _D.COMPLEX64: ("float_data", 2, 1),
    _D.DOUBLE: ("double_data", 1, 1),
    _D.COMPLEX128: ("double_data", 2, 1),
    _D.INT64: ("int64_data", 1, 1),
    _D.UINT64: ("uint64_data", 1, 1),
    _D.UINT32: ("uint64_data", 1, 1),
    _D.STRING: ("string_data", 1, 1),
    _D.INT4: ("int32_data", 1, 2),
    _D.UINT4: ("int32_data", 1, 2),
    _D.FLOAT4E2M1: ("int32_data", 1, 2),
    _D.INT2: ("int32_data", 1, 4),
    _D.UINT2: ("int32_data", 1, 4),
}
"""Dtype -> (field of TensorProto, entries, per this many elements); all others have one `int32_data` entry each."""

_DATA_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_EXTERNAL_KEYS = {"location", "offset", "length", "checksum", "basepath"}
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


def check_tensor(tensor: onnx.TensorProto, where: str, checksums: dict[str, str], cut: int | None = None) -> None:
    """Raises InvalidModelError for a tensor that does not hold what it claims, wherever its data lies.

    `cut` is the size of its raw data, where that was cut out. The checksums stated for files go into `checksums`.
    """
    # Each look at `raw_data` copies it.
    raw = len(tensor.raw_data) if cut is None else cut
    dtype, size = _checked_size(tensor, where)
    entries = {name: len(getattr(tensor, name)) for name in _DATA_FIELDS}
    entries = {name: count for name, count in entries.items() if count}
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        if entries or raw or dtype == _D.STRING:
            raise InvalidModelError("A tensor has its data in the model and in a file too.", where=where)
        _check_external(tensor, size, where, checksums)
        return
    if tensor.HasField("raw_data") and dtype != _D.STRING:
        held, expected = raw if not entries else -1, size
    else:
        name, count, per = _TYPED_FIELDS.get(dtype, ("int32_data", 1, 1))
        held, expected = entries.pop(name, 0), -(-math.prod(tensor.dims) * count // per)
        held = held if not entries else -1
    if held != expected:
        raise InvalidModelError(
            "A tensor's data does not match its shape and dtype.",
            where=where,
            why=f"{dtype.name}{list(tensor.dims)} needs {expected} bytes or entries, in one field; "
            + (f"it has {held}." if held >= 0 else "it has several fields."),
            fix="The model is damaged or was written wrongly: export it again.",
        )


def _check_external(tensor: onnx.TensorProto, size: int, where: str, checksums: dict[str, str]) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    numbers = {key: entries[key] for key in ("offset", "length") if key in entries}
    if (
        len(entries) != len(tensor.external_data)
        or not entries.get("location")
        or not entries.keys() <= _EXTERNAL_KEYS
        or not all(_NUMBER.fullmatch(text) for text in numbers.values())
    ):
        raise InvalidModelError(
            "A tensor's reference to external data is malformed.",
            where=where,
            why=f"It has {', '.join(repr((k[:40], v[:200])) for k, v in list(entries.items())[:8])}.",
        )
    if "length" in numbers and int(numbers["length"]) != size:
        raise InvalidModelError(
            "A tensor's external data does not match its shape and dtype.",
            where=where,
            why=f"It states a length of {numbers['length']} bytes and needs {size}.",
        )
    checksum = entries.get("checksum")
    if checksum and checksums.setdefault(entries["location"], checksum) != checksum:
        raise InvalidModelError("The model states two checksums for one file.", where=where)


def _checked_size(tensor: onnx.TensorProto, where: str) -> tuple[ir.DataType, int]:
    """The tensor's dtype, and the bytes that its data takes packed. Only Python's integers are used: no overflow."""
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError:
        dtype = _D.UNDEFINED
    if dtype == _D.UNDEFINED or tensor.HasField("segment"):
        raise InvalidModelError(
            "A tensor has no known dtype, or is stored in segments.",
            where=where,
            why=f"Its data type is {tensor.data_type}.",
        )
    if len(tensor.dims) > MAX_RANK:
        raise UnsupportedError(f"A tensor has more than {MAX_RANK} dims.", where=where)
    bits = 8 if dtype == _D.STRING else dtype.bitwidth
    # A dim of 0 does not excuse the others: NumPy and `onnx_ir` multiply them all.
    largest = math.prod(dim for dim in tensor.dims if dim) * bits
    if any(dim < 0 for dim in tensor.dims) or largest >= 2**63:
        raise InvalidModelError(
            "A tensor has an impossible shape.", where=where, why=f"Its dims are {list(tensor.dims)}."
        )
    return dtype, -(-math.prod(tensor.dims) * bits // 8)
