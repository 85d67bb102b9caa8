"""Uniform quantization by the specification's formulas."""

from __future__ import annotations

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.quantization import uniform_dequantize, uniform_quantize

I8 = np.dtype(np.int8)


def test_quantize_rounds_clamps_and_shifts() -> None:
    x = np.array([0.0, 0.25, 0.75, -1.0, 1e9, -1e9, np.nan], np.float32)
    scale, zero = np.array(0.5, np.float32), np.array(3, np.int8)
    assert uniform_quantize(x, scale, zero, dtype=I8).tolist() == [3, 4, 4, 1, 127, -128, 0]
    limited = uniform_quantize(x, scale, zero, dtype=I8, storage_min=-5, storage_max=5)
    assert limited.tolist() == [3, 4, 4, 1, 5, -5, 0]


def test_dequantize_inverts_every_storage_value() -> None:
    for text in ("i4", "ui4", "i8", "ui8"):
        values = np.arange(256, dtype=np.uint8).astype(np.int8 if text[0] == "i" else np.uint8).astype(DTYPES[text])
        zero = np.array([1, 2], DTYPES[text]).reshape(2, 1)
        scale = np.array([0.25, 3.0], np.float32).reshape(2, 1)
        real = uniform_dequantize(np.stack([values, values]), scale, zero)
        assert real.dtype == np.float32
        back = uniform_quantize(real, scale, zero, dtype=DTYPES[text])
        assert back.tolist() == np.stack([values, values]).tolist()
