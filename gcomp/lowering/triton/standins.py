"""What Triton's interpreter lacks or gets wrong, put in its place in the process that interprets kernels.

Functions of libdevice give nothing in the interpreter: NumPy's stand in for them, so that names, arguments and their
order are checked; accuracy is not. Narrow floats are truncated where they should be rounded, products of bf16 are
taken of their bits, comparisons of scalars give integers, and indices of loops are plain numbers
(docs/guides/upstream_bugs.md). Run by `worker.py`, and imports nothing of gcomp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def run(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf if function is math.lgamma else math.nan

    return np.vectorize(run, otypes=[np.float64])


def _erf_inv(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    found = math.copysign(NormalDist().inv_cdf((1 - abs(x)) / 2) / math.sqrt(2), x)
    if abs(x) < 0.5:  # Newton's step, as the quantile loses small numbers beside 1
        found -= (math.erf(found) - x) * math.exp(found * found) * math.sqrt(math.pi) / 2
    return found


def _away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.asarray(np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole))


def _rsqrt(x: Array) -> Array:
    return np.asarray(1 / np.sqrt(x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "erf": _each(math.erf), "erfc": _each(math.erfc), "erfinv": _each(_erf_inv), "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "fmod": np.fmod, "lgamma": _each(math.lgamma), "log": np.log,
    "log1p": np.log1p, "log2": np.log2, "nextafter": np.nextafter, "pow": np.power, "rint": np.rint, "round": _away,
    "rsqrt": _rsqrt, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
"""Functions of libdevice on floats, by name."""

_OWN = ("nextafter",)
"""Those that are about the type itself; others are computed in f64, and rounded."""


def install() -> None:
    """Put all of it in place."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    tl: Any = import_module("triton.language")
    libdevice = import_module("triton.language.extra.libdevice")
    for name, function in FUNCTIONS.items():
        setattr(libdevice, name, _standing(name, function, interpreter, tl))
    builder = interpreter.InterpreterBuilder
    floats = {
        tl.bfloat16: ml_dtypes.bfloat16, tl.float8e4nv: ml_dtypes.float8_e4m3fn, tl.float8e5: ml_dtypes.float8_e5m2,
    }  # fmt: skip
    as_before, dot = builder.cast_impl, builder.create_dot

    def convert(self: Any, source: Any, to: Any, *_: Any) -> Any:
        kinds = source.dtype.scalar, to.scalar
        if not any(kind in floats for kind in kinds):
            return as_before(self, source, to)
        with np.errstate(all="ignore"):
            numbers = source.data.view(floats[kinds[0]]) if kinds[0] in floats else source.data
            if kinds[1] not in floats:
                return interpreter.TensorHandle(numbers.astype(interpreter._get_np_dtype(to)), kinds[1])
            # In f32 first, as to this from f64 there and back would be rounded twice.
            found = numbers.astype(floats[kinds[1]])
            return interpreter.TensorHandle(found.view(interpreter._get_np_dtype(to)), kinds[1])

    def multiply(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        if a.dtype.scalar in floats and b.dtype.scalar in floats:
            a, b = (convert(self, x, tl.float32) for x in (a, b))
        return dot(self, a, b, d, *rest)

    builder.cast_impl, builder.create_fp_to_fp, builder.create_dot = convert, convert, multiply
    patch = interpreter._patch_lang_core

    def patched(lang: Any, scope: Any) -> None:
        patch(lang, scope)
        scope.set_attr(lang, "range", partial(_count, lang.range, interpreter, tl))

    interpreter._patch_lang_core = patched
    names: list[str] = [*vars(builder)]
    for name in names:
        if name.startswith(("create_icmp", "create_fcmp")):
            setattr(builder, name, _comparing(getattr(builder, name), tl))


def _count(plain: Callable[..., Any], interpreter: Any, tl: Any, *bounds: Any, **options: Any) -> Iterator[Any]:
    """Indices of loops as tensors, of the type of the bounds: as plain numbers they have no type to convert."""
    kind = next((b.dtype for b in bounds if isinstance(b, tl.tensor)), tl.int32)
    for index in plain(*bounds, **options):
        yield tl.tensor(interpreter.TensorHandle(np.array([index], interpreter._get_np_dtype(kind)), kind), kind)


def _comparing(function: Callable[..., Any], tl: Any) -> Callable[..., Any]:
    """A comparison that gives truth values: the interpreter gives them the type of what is compared."""

    def run(self: Any, first: Any, second: Any) -> Any:
        found = function(self, first, second)
        found.dtype = tl.int1
        return found

    return run


def _standing(name: str, function: Callable[..., Any], interpreter: Any, tl: Any) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        kind = operands[0].dtype.scalar
        shapes = [x.handle.data for x in operands]
        with np.errstate(all="ignore"):
            wide = shapes if name in _OWN else [x.astype(np.float64) for x in shapes]
            found = np.asarray(function(*np.broadcast_arrays(*wide))).astype(shapes[0].dtype)
        handle = interpreter.TensorHandle(found, kind)
        is_block = any(x.type.is_block() for x in operands)
        return tl.tensor(handle, tl.block_type(kind, list(found.shape)) if is_block else kind)

    return run
