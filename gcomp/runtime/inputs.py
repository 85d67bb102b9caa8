"""What a caller may give for an input: arrays, numbers, and what is no array, with errors that name the input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gcomp.dtypes import bit_width, is_complex, is_float, is_integer
from gcomp.errors import GcompError
from gcomp.runtime.manifest import InputSpec
from gcomp.runtime.signature import Signature

Array = np.ndarray[Any, Any]

_SCALARS: tuple[type[Any], ...] = (bool, int, float, complex, list, tuple, np.generic)


class Inputs:
    """The inputs of a signature, and what values may stand for them on the host."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._dtypes = signature.dtypes

    def host(self, i: int, value: Any) -> Array:
        """A value that is no tensor of torch as an ndarray of the input's dtype. Raises InputError."""
        if isinstance(value, np.ma.MaskedArray):
            raise self.mismatch(i, "a masked array", "its mask would be lost", "Pass x.filled(...).")
        if is_key(value):
            value = self.of_key(i, value)
        if isinstance(value, np.ndarray) or type(value).__module__.startswith("ml_dtypes"):
            array = np.asarray(cast(Any, value))
        elif isinstance(value, _SCALARS):
            return self._from_python(i, value)
        elif hasattr(value, "__dlpack__"):
            try:
                # NumPy has no name for some types that others hand over by themselves.
                array = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
            except (TypeError, ValueError, BufferError, RuntimeError) as error:
                raise self.mismatch(i, f"a {type(value).__qualname__}", str(error)[:200]) from None
        else:
            raise self.mismatch(i, f"a {type(value).__module__}.{type(value).__qualname__}", "it is not an array")
        if array.dtype != self._dtypes[i]:
            raise self.wrong_dtype(i, array.dtype)
        return array

    def of_key(self, i: int, value: Any) -> Any:
        """The integers of typed random keys, as an array of JAX. Raises InputError."""
        random: Any = sys.modules["jax"].random
        given, wanted = str(random.key_impl(value)), self._signature.inputs[i].key
        if given != wanted:
            why = None if wanted is None else f"the model was compiled for keys of {wanted}"
            raise self.mismatch(i, f"keys of {given}", why)
        return random.key_data(value)

    def torch_memory(self, i: int, tensor: Any, devices: Sequence[str]) -> Array:
        """The memory of a torch tensor for an input, as `torch_dense` checks it, as an array."""
        return array_of(self.torch_dense(i, tensor, devices), self._dtypes[i])

    def torch_dense(self, i: int, tensor: Any, devices: Sequence[str]) -> Any:
        """A torch tensor for an input: itself, or a contiguous one of the same values.

        Raises InputError for one of another layout or type, or on none of these devices.
        """
        torch: Any = sys.modules["torch"]
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise self.mismatch(i, f"a tensor of layout {tensor.layout}", None, "Pass a dense tensor.")
        if tensor.device.type not in devices:
            why = f"it is on {tensor.device}, and the model runs on {devices[0]}"
            raise self.mismatch(i, "a tensor on another device", why, f'Pass x.to("{devices[0]}").')
        dtype = getattr(torch, self._dtypes[i].name, None)
        if tensor.dtype is not dtype:
            raise self.mismatch(i, f"dtype {tensor.dtype}", None, f"Pass x.to(torch.{self._dtypes[i].name}).")
        return tensor.detach().resolve_conj().resolve_neg().contiguous()

    def _from_python(self, i: int, value: Any) -> Array:
        """Python numbers, which have no width of their own, and lists of them; NumPy scalars keep theirs."""
        dtype, text = self._dtypes[i], self._signature.inputs[i].dtype
        try:
            array = np.asarray(value)
            if isinstance(value, np.generic) and array.dtype != dtype:
                raise self.wrong_dtype(i, array.dtype)
            if "biufc".find(array.dtype.kind.replace("u", "i")) > _generality(text) or array.dtype.kind not in "biufc":
                raise self.wrong_dtype(i, array.dtype)
            result = array.astype(dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.mismatch(i, f"a {type(cast(object, value)).__name__}", str(error)) from None
        if is_integer(text) and array.size and not _fits(array, text):
            raise self.mismatch(i, "an integer out of range", f"{text} does not hold it")
        return result

    def wrong_dtype(self, i: int, dtype: np.dtype[Any]) -> GcompError:
        """The error for an array of another element type."""
        expected = self._dtypes[i]
        fix = f"Pass x.astype({expected.name!r})."
        if dtype.newbyteorder("=") == expected:
            return self.mismatch(i, f"dtype {dtype.str} (foreign byte order)", None, fix)
        return self.mismatch(i, f"dtype {dtype}", None, fix)

    def mismatch(self, i: int, got: str, why: str | None, fix: str | None = None) -> GcompError:
        """The error for a value that an input does not take."""
        spec: InputSpec = self._signature.inputs[i]
        return self._signature.mismatch(spec, got, why, fix)


def _fits(array: Array, text: str) -> bool:
    """Whether an integer type holds all elements of an array of integers or booleans."""
    bits = bit_width(text)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if text[0] == "i" else (0, 1 << bits)
    return low <= int(array.min()) and int(array.max()) < high


def _generality(text: str) -> int:
    """The place of an element type's kind in `biufc`."""
    if is_complex(text):
        return 4
    return 3 if is_float(text) else 1 if is_integer(text) else 0


def array_of(tensor: Any, dtype: np.dtype[Any]) -> Array:
    """The memory of a contiguous tensor on the host as an array, also of types that torch does not give to NumPy."""
    if dtype.isbuiltin == 1:
        return tensor.numpy()
    torch: Any = sys.modules["torch"]
    return tensor.reshape(-1).view(torch.uint8).numpy().view(dtype).reshape(tuple(tensor.shape))


def is_key(value: Any) -> bool:
    """Whether a value is JAX's typed random keys, if JAX is imported at all; one that is traced is none."""
    jax: Any = sys.modules.get("jax")
    if jax is None or not isinstance(value, jax.Array) or isinstance(value, jax.core.Tracer):
        return False
    return bool(jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key))


def is_torch(value: object) -> bool:
    """Whether a value is a tensor of torch, if torch is imported at all."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
