"""Encoded images as pixels, by Pillow, which is an extra."""

from __future__ import annotations

import io
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from gcomp.errors import InputError, UnsupportedError

Array = np.ndarray[Any, Any]

CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}
"""How many channels the pixels of each format have."""
_FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
"""What files may be: those that ONNX names."""


def decode_image(x: Array, *, pixel_format: str) -> tuple[Array, ...]:
    """The pixels of an encoded image: u8[height, width, channel].

    Raises InputError for bytes that are no image, UnsupportedError where Pillow is not installed.
    """
    try:
        pillow: Any = import_module("PIL.Image")
    except ImportError:
        fix = "pip install 'gcomp[images]'"
        raise UnsupportedError("decoding images needs Pillow, which is not installed", fix=fix) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            image = pillow.open(io.BytesIO(x.tobytes()), formats=_FORMATS)
            pixels = np.asarray(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise InputError("The bytes are not an image that can be decoded.", why=why) from None
    if pixel_format == "Grayscale":
        return (np.ascontiguousarray(pixels[:, :, None]),)
    return (np.ascontiguousarray(pixels[:, :, ::-1] if pixel_format == "BGR" else pixels),)
