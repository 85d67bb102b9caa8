"""Weights: they survive bit by bit, are aligned, checked at first use, and safetensors reads the same file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES, bit_width, text_of
from gcomp.errors import ArtifactError, UsageError
from gcomp.runtime.archive import bytes_of
from gcomp.runtime.manifest import WeightSpec, check_manifest
from gcomp.runtime.strict_json import JsonError
from gcomp.runtime.weights import ALIGNMENT, Weights, describe_weight, layout_of, weights_stream
from tests.unit.runtime.artifacts import ARRAYS, Arrays, manifest_for, specs_of

SPECS = specs_of(ARRAYS)


def _member(arrays: Arrays) -> bytes:
    stream = weights_stream(specs_of(arrays), arrays)
    data = b"".join(bytes_of(buffer) for buffer in stream.buffers)
    assert len(data) == stream.size
    return data


@st.composite
def _arrays(draw: st.DrawFn) -> Arrays:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name in draw(st.lists(st.text("abé/.0", min_size=1, max_size=4), unique=True, max_size=5)):
        text = draw(st.sampled_from(sorted(DTYPES)))
        shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
        size = int(np.prod(shape)) * DTYPES[text].itemsize
        raw = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
        if bit_width(text) < 8:
            raw = raw & ((1 << bit_width(text)) - 1)
        arrays[name] = raw.view(DTYPES[text]).reshape(shape)
    return arrays


@settings(deadline=None)
@given(_arrays())
def test_weights_survive_bit_by_bit(arrays: Arrays) -> None:
    data = memoryview(_member(arrays))
    weights = Weights(data, specs_of(arrays), "test")
    weights.verify()
    assert list(weights) == list(arrays)
    for name, array in weights.items():
        assert (array.dtype, array.shape) == (arrays[name].dtype, arrays[name].shape)
        assert array.tobytes() == arrays[name].tobytes()
        assert not array.flags.writeable
    peer = {name: tensor for name, tensor in safetensors.deserialize(bytes(data)) if not name.startswith("__pad_")}
    assert {name: bytes(tensor["data"]) for name, tensor in peer.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    layout = layout_of(specs_of(arrays))
    assert all(start % ALIGNMENT == 0 for start, _ in layout.spans.values())


def test_reading_copies_nothing() -> None:
    data = _member(ARRAYS)
    owner = np.frombuffer(data, np.uint8)
    weights = Weights(memoryview(data), SPECS, "test")
    assert np.shares_memory(weights["w"], owner)


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(6)[::2], np.arange(3, dtype=">i4"), np.ones(3, ">f8")]
)
def test_strided_and_big_endian_arrays_are_stored_in_order(array: np.ndarray[Any, Any]) -> None:
    arrays = {"a": array}
    read = Weights(memoryview(_member(arrays)), specs_of(arrays), "test")["a"]
    assert np.array_equal(read, array)
    assert text_of(read.dtype) == text_of(array.dtype)


@pytest.mark.parametrize("most", [1, 24, 100, 1 << 22])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_views_are_laid_out_in_parts(most: int, order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed weights are views of what a model's file holds, until they are written."""
    monkeypatch.setattr("gcomp.runtime.weights._PART", most)
    base = np.arange(7 * 8 * 5, dtype=np.float32).reshape(7, 8, 5) + 0.5
    turned = np.transpose(base, order)
    views = {
        "turned": turned,
        "part": turned[1:, ::2],
        "one": turned[:1, :, 2:3],
        "same": np.broadcast_to(base[0], (3, 8, 5)),
    }
    written = _member(views)
    assert written == _member({name: np.ascontiguousarray(view) for name, view in views.items()})
    specs = [describe_weight(name, view, n) for n, (name, view) in enumerate(views.items())]
    read = Weights(memoryview(written), specs, "test")
    for name, view in views.items():
        assert np.array_equal(read[name], view)


@pytest.mark.parametrize("place", range(0, len(_member(ARRAYS)), 7))
def test_a_flipped_byte_is_found_at_the_latest_when_it_is_used(place: int) -> None:
    data = bytearray(_member(ARRAYS))
    data[place] ^= 0x10
    with pytest.raises(ArtifactError):
        Weights(memoryview(bytes(data)), SPECS, "test").verify()


def test_only_the_damaged_weight_is_refused() -> None:
    data = bytearray(_member(ARRAYS))
    data[layout_of(SPECS).spans["w"][0]] ^= 1
    weights = Weights(memoryview(bytes(data)), SPECS, "test")
    assert weights["scalar"] == 3
    with pytest.raises(ArtifactError, match="`w`"):
        weights["w"]
    with pytest.raises(ArtifactError, match="`w`"):
        weights["w"]


@pytest.mark.parametrize(("dtype", "raw"), [("i1", 2), ("i4", 0xF7), ("ui2", 4)])
def test_bytes_that_are_no_elements_are_refused(dtype: str, raw: int) -> None:
    arrays = {"a": np.array([raw], np.uint8).view(DTYPES[dtype])}
    with pytest.raises(ArtifactError, match="no " + dtype):
        Weights(memoryview(_member(arrays)), specs_of(arrays), "test")["a"]


@pytest.mark.parametrize("name", ["__metadata__", "__pad_3"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ArtifactError, match="taken"):
        layout_of([WeightSpec(name, "f32", (1,), "0" * 64, 0)])


@pytest.mark.parametrize("dims", [(2**62, 2**62), (0, 2**62, 4)])
def test_absurd_sizes_are_refused_without_allocation(dims: tuple[int, ...]) -> None:
    with pytest.raises(ArtifactError, match="too large"):
        Weights(memoryview(b""), [WeightSpec("a", "f32", dims, "0" * 64, 0)], "test")


def test_arrays_must_be_what_their_specs_say() -> None:
    specs = [dataclasses.replace(SPECS[0], dims=(8,))]
    with pytest.raises(UsageError):
        list(weights_stream(specs, {"w": ARRAYS["w"]}).buffers)


WIDE: dict[str, tuple[object, str | None]] = {
    "i8": (np.arange(-128, 128, dtype=np.float32), "i8"),
    "ui8": (np.arange(256, dtype=np.float64), "ui8"),
    "i16": (np.arange(-255, 256, dtype=np.int32), "i16"),
    "words": (np.arange(2**20, 2**20 + 256, dtype=np.int64), None),
    "minus zero": (np.where(np.arange(300) == 299, np.float32(-0.0), np.float32(1)), None),
    "NaN": (np.where(np.arange(300) == 299, np.float32("nan"), np.float32(1)), None),
    "fraction": (np.where(np.arange(300) == 299, np.float32(2**-0.5), np.float32(1)), None),
    "halves of f64": (np.where(np.arange(300) == 299, 0.5, 1.0), None),
    "few": (np.zeros(8, np.float32), None),
    "halves": (np.zeros(4096, np.float16), None),
}


@pytest.mark.parametrize("name", WIDE)
def test_small_integers_are_stored_narrow_and_read_wide(name: str) -> None:
    array, stored = WIDE[name]
    assert isinstance(array, np.ndarray)
    (spec,) = specs = specs_of({"w": array})
    assert spec.stored == stored
    data = _member({"w": array})
    kept = np.dtype(DTYPES[stored or spec.dtype])
    assert len(data) == len(layout_of(specs).header) + array.size * kept.itemsize
    weights = Weights(memoryview(data), specs, "test")
    read = weights["w"]
    assert read.dtype == array.dtype and read.tobytes() == array.tobytes() and not read.flags.writeable
    if stored is not None:
        assert read.ctypes.data % ALIGNMENT == 0 and weights["w"] is read, "devices share one array"
        assert bytes(safetensors.deserialize(data)[0][1]["data"]) == array.astype(kept).tobytes()


def _quantized(dims: tuple[int, ...], scales: tuple[int, ...], least: int = -127) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(0)
    factors = random.uniform(1e-4, 1e-2, scales).astype(np.float32)
    return random.integers(least, least + 255, dims).astype(np.float32) * factors


ONE_OF = np.arange(1200).reshape(40, 30) == 7
SCALED: dict[str, tuple[np.ndarray[Any, Any], tuple[str, tuple[int, ...]] | None]] = {
    "all": (_quantized((40, 30), (1, 1)), ("i8", (1, 1))),
    "columns": (_quantized((3, 3, 8, 16), (1, 1, 1, 16)), ("i8", (1, 1, 1, 16))),
    "rows": (_quantized((16, 64), (16, 1)), ("i8", (16, 1))),
    "columns of panels": (_quantized((4, 32, 16), (4, 1, 16)), ("i8", (4, 1, 16))),
    "with a zero point": (_quantized((40, 30), (1, 1), 0), ("ui8", (1, 1))),
    "both ways": (
        np.concatenate([_quantized((40, 30), (1, 1), -255), _quantized((40, 30), (1, 1), 0)]),
        ("i16", (1, 1)),
    ),
    "columns of zeros": (np.where(np.arange(16) % 2, _quantized((64, 16), (1, 16)), np.float32(0)), ("i8", (1, 16))),
    "laid out in another order": (_quantized((64, 16), (1, 16)).T, ("i8", (16, 1))),
    "minus zero": (np.where(ONE_OF, np.float32(-0.0), _quantized((40, 30), (1, 1))), None),
    "NaN": (np.where(ONE_OF, np.float32("nan"), _quantized((40, 30), (1, 1))), None),
    "one more bit": (np.nextafter(_quantized((40, 30), (1, 1)), np.float32(1)), None),
    "small": (np.full((40, 30), np.float32(1e-45)), ("i8", (1, 1))),
    "any": (np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32), None),
}


@pytest.mark.parametrize("name", SCALED)
def test_integers_times_scales_are_stored_narrow_and_read_to_the_bit(name: str) -> None:
    array, stored = SCALED[name]
    (spec,) = specs = specs_of({"w": array})
    assert (None if spec.stored is None else (spec.stored, spec.scales)) == stored
    check_manifest(manifest_for(specs))
    data = _member({"w": array})
    layout = layout_of(specs)
    assert len(data) == layout.size
    read = Weights(memoryview(data), specs, "test")["w"]
    assert read.dtype == array.dtype and read.tobytes() == array.tobytes() and not read.flags.writeable
    if stored is not None:
        assert len(data) < len(layout.header) + array.nbytes and read.ctypes.data % ALIGNMENT == 0
        tensors = dict(safetensors.deserialize(data))
        assert list(tensors["__scales_w"]["shape"]) == list(stored[1])


def test_a_flipped_byte_of_a_scale_is_found() -> None:
    specs = specs_of({"w": SCALED["columns"][0]})
    data = bytearray(_member({"w": SCALED["columns"][0]}))
    data[layout_of(specs).spans["__scales_w"][0]] ^= 1
    with pytest.raises(ArtifactError, match="does not match its SHA-256"):
        Weights(memoryview(data), specs, "test")["w"]


@pytest.mark.parametrize("scales", [(), (1,), (1, 1, 1, 3), (2, 1, 1, 16)])
def test_scales_are_one_or_all_of_a_dimension(scales: tuple[int, ...]) -> None:
    (spec,) = specs_of({"w": SCALED["columns"][0]})
    for wrong in (dataclasses.replace(spec, scales=scales), dataclasses.replace(spec, stored=None)):
        with pytest.raises(JsonError, match="cannot have scales"):
            check_manifest(manifest_for([wrong]))


def test_only_some_types_stand_for_others() -> None:
    spec = dataclasses.replace(specs_of({"w": np.zeros(4096, np.float32)})[0], stored="f16")
    with pytest.raises(JsonError, match="cannot be stored as 'f16'"):
        check_manifest(manifest_for([spec]))
