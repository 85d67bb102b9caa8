"""What a name of the ONNX graph stands for during import: an SSA value, a known value, or both.

A *known* value is a NumPy array of constants, or an object array of sizes (ints and `Dim`s) for integers that depend
on shapes only. Known values become ops only when something reads them as a tensor, so that the shape arithmetic of
dynamic exports leaves nothing behind in the IR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import onnx_ir
from xdsl.ir import Block, SSAValue

from gcomp.dims import Dim, Size
from gcomp.dtypes import dtype_of, is_integer, text_of
from gcomp.ir.builder import INLINE_BYTES, Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.types import dtype_text, shape_of, tensor

Array: TypeAlias = np.ndarray[Any, Any]

_D = onnx_ir.DataType
ELEMENTS: dict[onnx_ir.DataType, str] = {
    _D.FLOAT: "f32",
    _D.DOUBLE: "f64",
    _D.FLOAT16: "f16",
    _D.BFLOAT16: "bf16",
    _D.BOOL: "i1",
    _D.INT8: "i8",
    _D.INT16: "i16",
    _D.INT32: "i32",
    _D.INT64: "i64",
    _D.UINT8: "ui8",
    _D.UINT16: "ui16",
    _D.UINT32: "ui32",
    _D.UINT64: "ui64",
    _D.INT4: "i4",
    _D.UINT4: "ui4",
    _D.INT2: "i2",
    _D.UINT2: "ui2",
    _D.COMPLEX64: "complex<f32>",
    _D.COMPLEX128: "complex<f64>",
    _D.FLOAT8E4M3FN: "f8E4M3FN",
    _D.FLOAT8E4M3FNUZ: "f8E4M3FNUZ",
    _D.FLOAT8E5M2: "f8E5M2",
    _D.FLOAT8E5M2FNUZ: "f8E5M2FNUZ",
    _D.FLOAT8E8M0: "f8E8M0FNU",
    _D.FLOAT4E2M1: "f4E2M1FN",
    _D.FLOAT6E2M3: "f6E2M3FN",
    _D.FLOAT6E3M2: "f6E3M2FN",
}
"""ONNX's dtypes -> element type texts. Strings have none."""

FOLD_LIMIT = 4096
"""Known values of more elements are not computed with at import: that is the constant folding pass's matter."""


class Value:
    """One value of the ONNX graph. Build it with `of`, `constant` or `sizes`."""

    __slots__ = ("_built", "_ssa", "_weight", "element", "known", "name")

    def __init__(self, element: str, known: Array | None, ssa: SSAValue | None, name: str = "") -> None:
        self.element = element
        self.known = known
        self.name = name
        self._ssa = ssa
        self._built: dict[Block, SSAValue] = {}
        self._weight: str | None = None

    @staticmethod
    def of(ssa: SSAValue) -> Value:
        """The value of an op's result or a block argument."""
        return Value(dtype_text(ssa.type), None, ssa)

    @staticmethod
    def constant(array: Array, name: str = "") -> Value:
        """A constant; `name` is the weight's name when it is large."""
        return Value(text_of(array.dtype), array, None, name)

    @staticmethod
    def sizes(sizes: Size | Sequence[Size] | Array, element: str = "i64") -> Value | None:
        """Integers that may be symbolic, of rank 0, 1 or an array's; None where one does not fit the element type."""
        array = integers(sizes, element)
        return None if array is None else Value(element, array, None)

    @property
    def shape(self) -> tuple[Size, ...]:
        """The shape."""
        return self.known.shape if self.known is not None else shape_of(cast(SSAValue, self._ssa))

    @property
    def small(self) -> bool:
        """Whether it is known and small enough to compute with at import."""
        return self.known is not None and self.known.size <= FOLD_LIMIT

    @property
    def symbolic(self) -> bool:
        """Whether it is known, and depends on symbolic sizes."""
        return self.known is not None and self.known.dtype == object

    @property
    def ssa(self) -> SSAValue | None:
        """The SSA value, if one was built."""
        return self._ssa

    def read(self, b: Builder) -> SSAValue:
        """The SSA value at the builder's point; known values are built there when they have to be."""
        if self._ssa is not None:
            return self._ssa
        # What stands in `main` already is before the point; what stands in another region may not be used in this one.
        here = b.point.block
        for block in (here, b.program.block):
            if (built := self._built.get(block)) is not None:
                return built
        self._built[here] = self._build(b)
        return self._built[here]

    def _build(self, b: Builder) -> SSAValue:
        known = cast(Array, self.known)
        if known.dtype == object:
            return _build_sizes(b, known, self.element)
        if known.nbytes <= INLINE_BYTES or known.size == 1:
            return b.constant(known)
        if self._weight is None and (splat := _splat(known)) is not None:
            return b.full(known.shape, splat, self.element)
        if self._weight is None:
            read = b.weight(self.name or "constant", known)
            self._weight = cast(Any, read.owner).symbol
            return read
        return b.insert(WeightOp.read(self._weight, tensor(known.shape, self.element))).results[0]


def _build_sizes(b: Builder, known: Array, element: str) -> SSAValue:
    flat: list[Size] = known.reshape(-1).tolist()
    if not known.shape:
        return b.dim(flat[0], element)
    parts = [b.reshape(b.dim(size, element), (1,)) for size in flat]
    joined = b.concatenate(parts, 0)
    return b.reshape(joined, known.shape)


def _splat(array: Array) -> Any:
    """The one element that a large array repeats, or None. Looks at a few before it looks at all."""
    flat = array.reshape(-1)
    if flat.itemsize not in (1, 2, 4, 8):
        return None
    bits = flat.view(f"u{flat.itemsize}")
    # The first few lie together: a mapped array that differs there is not read from end to end.
    looks = (bits[:16], bits[:: max(1, bits.size // 16)], bits)
    return flat[0] if all(bool((look == bits[0]).all()) for look in looks) else None


# ---- arrays of sizes ---------------------------------------------------------------------------------------------


def as_objects(array: Array) -> Array:
    """An array of constants as an object array of Python numbers."""
    return array if array.dtype == object else array.astype(object)


def integers(sizes: Any, element: str) -> Array | None:
    """An array of ints (of the element type) or, where one is symbolic, of sizes; None where one does not fit."""
    array = objects(sizes)
    flat: list[Any] = array.reshape(-1).tolist()
    if any(isinstance(s, Dim) for s in flat):
        return array
    dtype = dtype_of(element)
    if is_integer(element):
        low, high = limits(element)
        if not all(low <= int(s) <= high for s in flat):
            return None
    return array.astype(dtype)


def limits(element: str) -> tuple[int, int]:
    """The least and the greatest value of an integer element type, or of booleans."""
    import ml_dtypes

    if element == "i1":
        return 0, 1

    info = ml_dtypes.iinfo(dtype_of(element))
    return int(info.min), int(info.max)


def objects(sizes: Any) -> Array:
    """Sizes as an object array: a size becomes one of rank 0, a sequence one of rank 1."""
    if isinstance(sizes, np.ndarray):
        return as_objects(cast(Array, sizes))
    if isinstance(sizes, (int, Dim, np.integer, np.bool_)):
        array: Array = np.empty((), object)
        array[()] = sizes
        return array
    items = list(cast("Sequence[Size]", sizes))
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def size_list(array: Array) -> list[Size]:
    """The sizes of an array, flattened."""
    return [s if isinstance(s, Dim) else int(s) for s in as_objects(array).reshape(-1).tolist()]
