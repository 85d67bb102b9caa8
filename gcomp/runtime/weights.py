"""Weights as one safetensors member: written tensor by tensor, read as views of the mapped file.

Source: the safetensors format (8 bytes of header size, a JSON header, the data without holes). Every tensor
starts at a multiple of 64 bytes; the zeros in between are tensors of their own, named `__pad_N`, because the
format allows no holes. Element types that safetensors cannot name are stored one element per byte as `I8` or
`U8` (complex<f64> as pairs of `F64`); the manifest names the true type. Integers that passes made wider, and
those that they multiplied by scales, such as the kernels of quantized convolutions, are stored as narrow as they
were, and widened when they are first asked for (`narrowing`); scales follow as `__scales_NAME`. The header is a
function of the manifest's weights table, so reading compares it instead of parsing it. The `safetensors` library
is not used here: it reads whole files only, copies, and knows fewer element types; tests hold the two against
each other.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gcomp.dtypes import DTYPES, bit_width, text_of
from gcomp.errors import ArtifactError, UsageError
from gcomp.records import record
from gcomp.runtime import narrowing
from gcomp.runtime.archive import Stream, damage_error, same_bytes
from gcomp.runtime.manifest import WeightSpec
from gcomp.runtime.narrowing import Narrow, scales_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64
MAX_HEADER = 100_000_000  # safetensors' own limit

_PART = 1 << 22
"""Bytes of an array that is not contiguous which are laid out at a time."""

_NAMES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "f8E5M2": "F8_E5M2",
    "f8E4M3FN": "F8_E4M3",
    "f8E5M2FNUZ": "F8_E5M2FNUZ",
    "f8E4M3FNUZ": "F8_E4M3FNUZ",
    "f8E8M0FNU": "F8_E8M0",
    "i1": "BOOL",
    **{f"i{width}": f"I{width}" for width in (8, 16, 32, 64)},
    **{f"ui{width}": f"U{width}" for width in (8, 16, 32, 64)},
    **{"i2": "I8", "i4": "I8"},
    "complex<f32>": "C64",
    "complex<f64>": "F64",
}
"""Element type text -> safetensors name; all others are `U8`."""


@record
class Layout:
    """Where things are in a safetensors member: the header's bytes, then each tensor's span behind it."""

    header: bytes
    spans: Mapping[str, tuple[int, int]]
    size: int


def layout_of(specs: Sequence[WeightSpec]) -> Layout:
    """The layout of these tensors, in order. Raises ArtifactError for reserved names and absurd sizes."""
    table: dict[str, dict[str, Any]] = {}
    spans: dict[str, tuple[int, int]] = {}
    end = 0
    for spec in specs:
        _check_spec(spec, table)
        for name, dtype, dims in _tensors(spec):
            start = -(-end // ALIGNMENT) * ALIGNMENT
            if start != end:
                table[f"__pad_{len(table)}"] = {
                    "dtype": "U8",
                    "shape": [start - end],
                    "data_offsets": [end, start],
                }
            end = start + math.prod(dims) * DTYPES[dtype].itemsize
            shape = stored_shape(dtype, dims)
            table[name] = {"dtype": stored_name(dtype), "shape": shape, "data_offsets": [start, end]}
            spans[name] = (start, end)
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise ArtifactError("There are too many weights for one file.", why=f"Their table has {len(text)} bytes.")
    header = len(text).to_bytes(8, "little") + text
    shifted = {name: (start + len(header), stop + len(header)) for name, (start, stop) in spans.items()}
    return Layout(header, shifted, len(header) + end)


def _tensors(spec: WeightSpec) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The tensors of the file that a weight is, each with its element type and shape."""
    yield spec.name, spec.kept_as, spec.dims
    if spec.scales is not None:
        yield _scales_name(spec.name), spec.dtype, spec.scales


def _scales_name(name: str) -> str:
    return f"__scales_{name}"


def stored_name(dtype: str) -> str:
    """What safetensors calls the elements by which those of a type are stored."""
    return _NAMES.get(dtype, "U8")


def stored_shape(dtype: str, dims: Sequence[int]) -> list[int]:
    """The shape in which they are stored."""
    return [*dims, 2] if dtype == "complex<f64>" else list(dims)


def _check_spec(spec: WeightSpec, taken: Mapping[str, object]) -> None:
    if spec.name == "__metadata__" or spec.name.startswith(("__pad_", "__scales_")) or spec.name in taken:
        raise ArtifactError(
            "A weight has a name that is taken.",
            where=repr(spec.name[:80]),
            fix="Give the weight another name.",
        )
    if math.prod(dim for dim in spec.dims if dim) * DTYPES[spec.dtype].itemsize >= 2**63:
        raise ArtifactError("A weight is too large to exist.", where=repr(spec.name[:80]), why=f"dims {spec.dims}")


def describe_weight(name: str, array: Array, argument: int, *, narrow: bool = True) -> WeightSpec:
    """The manifest's row for an array, with the hash of its bytes. Raises UsageError for an unknown dtype.

    It may be stored as a narrower type, unless `narrow` is False.
    """
    try:
        dtype = text_of(array.dtype)
    except KeyError as error:
        raise UsageError(f"Arrays of {array.dtype} cannot be stored as weights.", where=name) from error
    how = narrowing.narrow(array, dtype) if narrow else None
    digest = hashlib.sha256()
    for _, stored in _stored(name, array, how):
        for part in _parts(stored):
            digest.update(part)
    scales = None if how is None or how.scales is None else how.scales.shape
    return WeightSpec(name, dtype, array.shape, digest.hexdigest(), argument, how and how.dtype, scales)


def _stored(name: str, array: Array, how: Narrow | None) -> Iterator[tuple[str, Array]]:
    """What is stored for an array, by the names of tensors: its own numbers, or integers and their scales."""
    yield name, array if how is None else how.integers(array)
    if how is not None and how.scales is not None:
        yield _scales_name(name), how.scales


def _how(spec: WeightSpec, array: Array) -> Narrow | None:
    """How an array is stored."""
    if spec.stored is None:
        return None
    return Narrow(spec.stored, None if spec.scales is None else scales_of(array, spec.scales))


def weights_stream(specs: Sequence[WeightSpec], arrays: Mapping[str, Array]) -> Stream:
    """The safetensors member with these weights, taking each array from `arrays` only when its turn comes.

    Raises UsageError, while it is written, if an array is not what its spec says.
    """
    layout = layout_of(specs)
    return Stream(layout.size, _buffers(layout, specs, arrays))


def _buffers(layout: Layout, specs: Sequence[WeightSpec], arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    yield layout.header
    written = len(layout.header)
    for spec in specs:
        array = arrays[spec.name]
        if array.shape != spec.dims or text_of(array.dtype) != spec.dtype:
            raise UsageError(
                "A weight is not what the manifest says.",
                where=spec.name,
                why=f"It is {array.dtype}{list(array.shape)}, and should be {spec.dtype}{list(spec.dims)}.",
            )
        for name, stored in _stored(spec.name, array, _how(spec, array)):
            start, end = layout.spans[name]
            yield bytes(start - written)
            yield from _parts(stored)
            written = end


def _parts(array: Array) -> Iterator[memoryview]:
    """The array's little-endian bytes in row-major order: at once where they are so already, else in parts.

    Packed and transposed weights are views when a model is written that nobody calls here: as much memory again
    would be filled only to be written and let go.
    """
    if array.flags.c_contiguous or array.nbytes <= _PART:
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        yield plain.reshape(-1).view(np.uint8).data
        return
    rows = _PART // (array.nbytes // len(array))
    if rows:
        for i in range(0, len(array), rows):
            yield from _parts(array[i : i + rows])
    else:
        for row in array:
            yield from _parts(row)


def _allocate(spec: WeightSpec) -> Array:
    """Room for a tensor where devices can read it in place."""
    size = math.prod(spec.dims) * DTYPES[spec.dtype].itemsize
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].view(DTYPES[spec.dtype]).reshape(spec.dims)


class Weights(Mapping[str, Array]):
    """The weights of an artifact as read-only arrays. They share the mapped file's memory where none is widened.

    Each tensor's hash is checked when it is first asked for, once. Raises ArtifactError when a hash does not
    match, and on construction when the member is not laid out as its table says.
    """

    def __init__(self, data: memoryview, specs: Sequence[WeightSpec], where: str) -> None:
        self._data = data
        self._where = where
        self._specs = {spec.name: spec for spec in specs}
        self._layout = layout_of(specs)
        self._verified: set[str] = set()
        self._widened: dict[str, Array] = {}
        self._check_layout()

    def __getitem__(self, name: str) -> Array:
        if name in self._widened:
            return self._widened[name]
        spec = self._specs[name]
        raw = self._bytes(name)
        factors = None if spec.scales is None else self._bytes(_scales_name(name))
        if name not in self._verified:
            self._verify(spec, raw, factors)
            self._verified.add(name)
        array = raw.view(DTYPES[spec.kept_as]).reshape(spec.dims)
        if spec.stored is not None:
            wide = _allocate(spec)
            scales = None if factors is None else factors.view(DTYPES[spec.dtype]).reshape(spec.scales or ())
            narrowing.widen(array, scales, wide)
            self._widened[name] = array = wide
        array.flags.writeable = False
        return array

    def _bytes(self, name: str) -> Array:
        start, end = self._layout.spans[name]
        return np.frombuffer(self._data[start:end], np.uint8)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def verify(self) -> None:
        """Checks the hashes of all tensors that have not been used yet."""
        for name in self:
            self[name]

    def _verify(self, spec: WeightSpec, raw: Array, factors: Array | None) -> None:
        digest = hashlib.sha256(raw.data)
        if factors is not None:
            digest.update(factors.data)
        if digest.hexdigest() != spec.sha256:
            raise damage_error(self._where, f"the data of weight `{spec.name[:80]}` does not match its SHA-256")
        # A boolean byte of 2 would be neither true nor false, and equal `i4` values could differ in unused bits.
        bits = bit_width(spec.kept_as)
        if bits < 8 and raw.size and int(raw.max()) >> bits:
            raise damage_error(self._where, f"weight `{spec.name[:80]}` has bytes that are no {spec.dtype}")

    def _check_layout(self) -> None:
        layout = self._layout
        if len(self._data) != layout.size or not same_bytes(self._data[: len(layout.header)], layout.header):
            raise damage_error(self._where, "its weights are not laid out as its manifest says")
        previous = len(layout.header)
        for start, end in layout.spans.values():
            if any(self._data[previous:start]):
                raise damage_error(self._where, "there is something between its weights")
            previous = end
