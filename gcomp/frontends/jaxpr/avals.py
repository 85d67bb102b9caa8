"""JAX's types in gcomp's: element types, sizes, and what holds a value of an extended type.

A typed key (`key<fry>[]`) is held as the integers that it stands for (`ui32[2]`), in trailing dimensions; `float0`, the
type of tangents of integers, as booleans.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import text_of
from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr.jax_api import dtypes, jax
from gcomp.ir.types import Tensor, tensor

Aval = Any
"""A `jax.core.ShapedArray`."""


@lru_cache(256)
def is_key(dtype: Any) -> bool:
    """Whether a dtype is that of typed random keys."""
    return bool(dtypes.issubdtype(dtype, dtypes.prng_key))


def generator_of(aval: Aval) -> str | None:
    """The name of the generator whose keys an array holds, if it does."""
    dtype = getattr(aval, "dtype", None)
    return dtype._impl.name if dtype is not None and is_key(dtype) else None


def key_shape(dtype: Any) -> tuple[int, ...]:
    """The trailing dimensions of the integers that hold a key."""
    return tuple(dtype._impl.key_shape)


def trailing(aval: Aval) -> tuple[int, ...]:
    """The dimensions that hold a key, where an array's elements are keys: they move with it."""
    return key_shape(aval.dtype) if is_key(aval.dtype) else ()


@lru_cache(256)
def element_text(dtype: Any) -> str:
    """The element type for a JAX dtype. Raises UnsupportedError where there is none."""
    if dtype == dtypes.float0:
        return "i1"
    if is_key(dtype):
        return "ui32"
    try:
        return text_of(np.dtype(dtype))
    except (KeyError, TypeError):
        raise UnsupportedError(f"gcomp has no element type for {dtype}") from None


def size_of(size: Any) -> Size:
    """A size for one of JAX's: an integer, or a symbolic dimension of `jax.export`."""
    return int(cast(int, size)) if isinstance(size, int | np.integer) else dims.parse(str(size))


def shape_of_aval(aval: Aval) -> tuple[Size, ...]:
    """The shape of the tensor that holds a value of a JAX type."""
    return (*[size_of(s) for s in aval.shape], *trailing(aval))


def type_of(aval: Aval) -> Tensor:
    """The tensor type that holds values of a JAX type. Raises UnsupportedError for what is no array."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise UnsupportedError(f"a value of type {aval} is not an array", why="gcomp compiles functions of arrays")
    return tensor(shape_of_aval(aval), element_text(aval.dtype))


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """The data of a constant: an array, a scalar, a typed key."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and is_key(dtype):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return np.zeros(array.shape, np.bool_) if array.dtype == dtypes.float0 else array


def sizes(shape: Sequence[Any]) -> list[Size]:
    """Sizes for JAX's."""
    return [size_of(s) for s in shape]


def literal_array(literal: Any) -> np.ndarray[Any, Any]:
    """The data of a literal, in its type: a Python scalar may stand for an element of any."""
    array, aval = array_of(literal.val), literal.aval
    return array if is_key(aval.dtype) or aval.dtype == dtypes.float0 else np.asarray(array, aval.dtype)
