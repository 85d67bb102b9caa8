"""ImageDecoder: pixels of encoded images by Pillow, which is an extra; bytes that are no image."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError, InvalidModelError, UnsupportedError
from gcomp.reference.numpy.images import decode_image
from tests.unit.onnx.graphs import imported, model

Image: Any = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'gcomp[images]'")

PIXELS = (np.arange(5 * 7 * 3) * 37 % 251).astype(np.uint8).reshape(5, 7, 3)


def encoded(pixels: np.ndarray, kind: str) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


def graph(pixel_format: str) -> str:
    return f'(uint8[n] x) => (uint8[h, w, c] y) {{ y = ImageDecoder<pixel_format = "{pixel_format}">(x) }}'


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF"])
def test_pixels_in_every_order_of_channels(kind: str) -> None:
    x = encoded(PIXELS, kind)
    for pixel_format, wanted in (("RGB", PIXELS), ("BGR", PIXELS[:, :, ::-1])):
        np.testing.assert_array_equal(decode_image(x, pixel_format=pixel_format)[0], wanted)
    (gray,) = decode_image(x, pixel_format="Grayscale")
    luma = PIXELS @ np.array([0.299, 0.587, 0.114])
    assert gray.shape == (5, 7, 1) and np.abs(gray[:, :, 0] - luma).max() <= 1


def test_what_has_other_channels_becomes_what_is_asked_for() -> None:
    gray = encoded(PIXELS[:, :, 0], "PNG")
    np.testing.assert_array_equal(decode_image(gray, pixel_format="RGB")[0], np.repeat(PIXELS[:, :, :1], 3, 2))


def test_a_compiled_model_decodes_images_of_all_sizes() -> None:
    compiled = gcomp.compile(model(graph("BGR")))
    for pixels in (PIXELS, PIXELS[:1, :2], np.repeat(PIXELS, 3, 0)):
        np.testing.assert_array_equal(compiled(encoded(pixels, "PNG"))[0], pixels[:, :, ::-1])


def test_what_is_no_image_is_refused() -> None:
    compiled, png = gcomp.compile(model(graph("RGB"))), encoded(PIXELS, "PNG")
    for data in (b"not an image", png.tobytes()[:40], encoded(PIXELS, "GIF").tobytes()):
        with pytest.raises(InputError, match="not an image"):
            compiled(np.frombuffer(data, np.uint8))
    with pytest.raises(InvalidModelError, match="pixel_format is 'CMYK'"):
        imported(graph("CMYK"))


def test_without_pillow_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError, match="gcomp\\[images\\]"):
        decode_image(np.zeros(1, np.uint8), pixel_format="RGB")
