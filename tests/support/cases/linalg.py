"""Linear algebra, Fourier transforms and normalization."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import dtype_of, is_complex
from tests.support.cases.case import Array, Case, Rng, apply, ints, tensor, type_of
from tests.support.cases.values import moderate

_ABSENT = "does not have the op"
_IRFFT = "gets IRFFT of odd lengths wrong"
_NUMBERS = ("f32", "f64", "complex<f32>", "complex<f64>")


def _flag(value: bool) -> str:
    return "true" if value else "false"


def cholesky(rng: Rng, full: bool) -> Iterator[Case]:
    """Positive definite matrices, batched; sizes 0 and 1."""
    for text in _NUMBERS:
        for shape in ((0, 0), (1, 1), (2, 3, 3)):
            x = moderate(rng, text, shape).astype(np.complex128 if is_complex(text) else np.float64)
            a = (x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(shape[-1])).astype(dtype_of(text))
            for lower in (True, False):
                label = f"{text}-{'x'.join(map(str, shape))}-{'lower' if lower else 'upper'}"
                code = apply("stablehlo.cholesky", [a], [type_of(a)], {"lower": _flag(lower)})
                yield Case("stablehlo.cholesky", label, code, (a,), "norm", _ABSENT)


def triangular_solve(rng: Rng, full: bool) -> Iterator[Case]:
    """Both sides, both triangles, all transposes; one matrix, since the C++ interpreter mixes batches up."""
    for text in _NUMBERS:
        for left in (True, False):
            for lower in (True, False):
                for unit in (True, False):
                    for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                        yield _solve(rng, text, left, lower, unit, transpose)


def _solve(rng: Rng, text: str, left: bool, lower: bool, unit: bool, transpose: str) -> Case:
    a = (moderate(rng, text, (4, 4)) / 8 + 2 * np.eye(4)).astype(dtype_of(text))
    b = moderate(rng, text, (4, 3) if left else (3, 4))
    attributes = {
        "left_side": _flag(left),
        "lower": _flag(lower),
        "unit_diagonal": _flag(unit),
        "transpose_a": f"#stablehlo<transpose {transpose}>",
    }
    label = (
        f"{text}-{'left' if left else 'right'}-{'lower' if lower else 'upper'}-{'unit' if unit else 'full'}-{transpose}"
    )
    code = apply("stablehlo.triangular_solve", [a, b], [type_of(b)], attributes)
    reason = "dies of ADJOINT" if transpose == "ADJOINT" else ""
    return Case("stablehlo.triangular_solve", label, code, (a, b), "norm", reason)


def fft(rng: Rng, full: bool) -> Iterator[Case]:
    """All four kinds over one to three dimensions, odd and even lengths."""
    for shape, rank in (((1,), 1), ((7,), 1), ((2, 8), 1), ((3, 4), 2), ((2, 3, 5), 3)):
        for text in ("f32", "f64"):
            lengths = shape[-rank:]
            half = (*shape[:-1], shape[-1] // 2 + 1)
            complex_ = f"complex<{text}>"
            forms: tuple[tuple[str, Array, tuple[int, ...], str], ...] = (
                ("FFT", moderate(rng, complex_, shape), shape, complex_),
                ("IFFT", moderate(rng, complex_, shape), shape, complex_),
                ("RFFT", moderate(rng, text, shape), half, complex_),
                ("IRFFT", _spectrum(moderate(rng, text, shape), lengths), shape, text),
            )
            for kind, x, result, element in forms:
                attributes = {"fft_type": f"#stablehlo<fft_type {kind}>", "fft_length": ints(lengths)}
                code = apply("stablehlo.fft", [x], [tensor(result, element)], attributes)
                label = f"{kind}-{text}-{'x'.join(map(str, shape))}-{rank}"
                reason = "dies of single precision" if text == "f32" else ""
                reason = reason or (_IRFFT if kind == "IRFFT" and lengths[-1] % 2 else "")
                yield Case("stablehlo.fft", label, code, (x,), "norm", reason)


def _spectrum(x: Array, lengths: tuple[int, ...]) -> Array:
    """The half spectrum of a real signal."""
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    return np.fft.rfftn(x.astype(np.float64), axes=axes).astype(
        np.complex64 if x.dtype == np.float32 else np.complex128
    )


def batch_norm(rng: Rng, full: bool) -> Iterator[Case]:
    """Inference, training and gradient, the feature dimension anywhere."""
    for text in ("f32", "f64", "bf16"):
        for shape, feature in (((4, 3), 1), ((2, 3, 4), 0), ((1, 2, 3, 2), 2)):
            x, grad = moderate(rng, text, shape), moderate(rng, text, shape)
            scale, offset, mean = (moderate(rng, text, (shape[feature],)) for _ in range(3))
            variance = abs(moderate(rng, text, (shape[feature],))) + np.ones((), x.dtype)
            attributes = {"epsilon": "1.000000e-03 : f32", "feature_index": f"{feature} : i64"}
            whole, per_feature = type_of(x), type_of(scale)
            for op, inputs, results in (
                ("inference", (x, scale, offset, mean, variance), [whole]),
                ("training", (x, scale, offset), [whole, per_feature, per_feature]),
                ("grad", (x, scale, mean, variance, grad), [whole, per_feature, per_feature]),
            ):
                name = f"stablehlo.batch_norm_{op}"
                label = f"{text}-{'x'.join(map(str, shape))}-{feature}"
                yield Case(name, label, apply(name, inputs, results, attributes), inputs, "norm", _ABSENT)
