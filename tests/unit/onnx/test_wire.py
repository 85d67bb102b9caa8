"""Cutting weights out of a model's bytes: what is read is what protobuf would have read, and held once."""

from __future__ import annotations

import contextlib
import gc
import io
import random
import struct
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from gcomp.errors import GcompError, InvalidModelError
from gcomp.frontends.onnx.engine.importer import import_onnx
from gcomp.frontends.onnx.model import reading, wire
from gcomp.frontends.onnx.model.reading import read_model, tensor_array
from gcomp.ir.weights import Weights
from tests.unit.onnx.tensor_models import DENSE, arrays, in_initializer, inline, model_of, saved, tensors

COUNT = wire.LARGE // 4 + 1  # the least float32 elements that are cut out
RAW_DATA = b"\x4a"  # the tag of TensorProto.raw_data


def outlined(data: bytes) -> wire.Outline | None:
    return wire.outline(io.BytesIO(data), len(data))


def filled(data: bytes, found: wire.Outline) -> onnx.ModelProto:
    """The model of an outline with its raw data put back."""
    model = onnx.ModelProto.FromString(found.message)
    for index, span in found.raw_data.items():
        tensor = model.graph.initializer[index]
        assert tensor.raw_data == b""
        tensor.raw_data = data[span.start : span.start + span.size]
    return model


def weight(name: str, count: int = COUNT) -> TensorProto:
    return inline(name, np.random.default_rng(count).standard_normal(count).astype(np.float32))


# --- the same model


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Models with initializers of all sizes around the limit, stored in all ways, among fields of all kinds."""
    counts = st.sampled_from([0, 1, 31, 32, 33, COUNT - 1, COUNT, COUNT + 1, 4 * COUNT, 70_000])
    weights: list[TensorProto] = []
    for index, count in enumerate(draw(st.lists(counts, max_size=6))):
        tensor = weight(f"w{index}", count)
        if draw(st.booleans()) and count <= COUNT:
            values = numpy_helper.to_array(tensor)
            tensor.ClearField("raw_data")
            tensor.float_data.extend(values)
        tensor.doc_string = draw(st.text(max_size=200))
        weights.append(tensor)
    model = model_of([helper.make_node("Identity", ["flag"], ["y"])], initializer=weights)
    model.producer_name = draw(st.text(max_size=200))
    for key in draw(st.lists(st.text(min_size=1, max_size=3), max_size=3)):
        model.graph.metadata_props.add(key=key, value="v" * draw(st.integers(0, 5000)))
    return model


@given(models())
def test_an_outline_and_its_raw_data_are_the_model(model: onnx.ModelProto) -> None:
    data = model.SerializeToString()
    large = {i for i, tensor in enumerate(model.graph.initializer) if len(tensor.raw_data) > wire.LARGE}
    found = outlined(data)
    assert (found is None) == (not large)
    if found is not None:
        assert set(found.raw_data) == large
        assert filled(data, found) == model
        assert len(found.message) < len(data) - sum(span.size for span in found.raw_data.values())


@given(models())
def test_tensors_are_those_that_onnx_reads(model: onnx.ModelProto) -> None:
    data = model.SerializeToString()
    initializers = read_model(data).graph.initializers
    expected = onnx.load_from_string(data).graph.initializer
    assert len(initializers) == len(expected)
    for tensor in expected:
        read = initializers[tensor.name].const_value
        assert read is not None
        assert tensor_array(read, "test").tobytes() == numpy_helper.to_array(tensor).tobytes()
        assert read.doc_string == tensor.doc_string


@pytest.mark.parametrize("dtype", ["int4", "float8_e4m3fn", "bfloat16", "bool", "int64", "complex128"])
def test_large_weights_of_every_width(dtype: str, tmp_path: Path) -> None:
    import ml_dtypes

    array = np.resize([1, 0, 1, 1], (7, 3001)).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    model = in_initializer(inline(array=array))
    for source in (saved(tmp_path, model), model.SerializeToString(), model):
        (read,) = arrays(read_model(source))
        assert read.dtype == array.dtype
        assert read.shape == array.shape
        assert read.tobytes() == array.tobytes()
        assert not read.flags.writeable


@pytest.mark.parametrize("place", DENSE)
def test_large_tensors_elsewhere_are_read_too(place: Any) -> None:
    values = np.arange(3 * COUNT, dtype=np.float32)
    found = arrays(read_model(place(inline(array=values)).SerializeToString()))
    assert any(np.array_equal(array, values) for array in found)


# --- encodings that are not cut


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


TENSOR = weight("w").SerializeToString()
MODEL = in_initializer(weight("w"))
GRAPH = MODEL.graph.SerializeToString()
REST = onnx.ModelProto(ir_version=10, opset_import=MODEL.opset_import).SerializeToString()


def with_tensor(tensor: bytes, before: bytes = b"") -> bytes:
    """A model whose graph has an initializer of these bytes."""
    graph = onnx.GraphProto.FromString(GRAPH)
    graph.ClearField("initializer")
    return REST + before + field(7, field(5, tensor) + graph.SerializeToString())


def test_the_ways_to_write_a_model_by_hand_are_right() -> None:
    found = outlined(with_tensor(TENSOR))
    assert found is not None
    assert filled(with_tensor(TENSOR), found) == MODEL


PADDED_LENGTH = varint(4 * COUNT)[:-1] + bytes([varint(4 * COUNT)[-1] | 0x80, 0])
HEAD = TENSOR[: TENSOR.index(RAW_DATA)]
ODD = {
    "raw data twice": with_tensor(TENSOR + field(9, bytes(8))),
    "raw data twice, the large one last": with_tensor(HEAD + field(9, bytes(8)) + field(9, bytes(4 * COUNT))),
    "two graphs": with_tensor(TENSOR, before=field(7, GRAPH)),
    "a group": with_tensor(TENSOR, before=varint(1000 << 3 | 3) + varint(1000 << 3 | 4)),
    "an end of a group": with_tensor(TENSOR, before=varint(1000 << 3 | 4)),
    "an unknown wire type": with_tensor(TENSOR, before=varint(1000 << 3 | 6)),
    "field 0": with_tensor(TENSOR, before=b"\x02\x00"),
    "a long tag": with_tensor(TENSOR, before=b"\xc0\xbe\x00\x01"),
    "a long length": with_tensor(HEAD + RAW_DATA + PADDED_LENGTH + bytes(4 * COUNT)),
    "a varint without end": with_tensor(TENSOR, before=b"\xc0\x3e" + b"\xff" * 11),
    "a varint past 64 bits": with_tensor(TENSOR, before=b"\xc0\x3e" + b"\xff" * 9 + b"\x7f"),
    "a length beyond the tensor": with_tensor(HEAD + RAW_DATA + varint(4 * COUNT + 1) + bytes(4 * COUNT)),
    "a huge length": with_tensor(HEAD + RAW_DATA + varint(2**63) + bytes(4 * COUNT)),
    "truncated": with_tensor(TENSOR)[:-1],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_encodings_are_left_to_protobuf(name: str) -> None:
    data = ODD[name]
    assert outlined(data) is None
    try:
        expected = onnx.ModelProto.FromString(data)
    except DecodeError:
        with pytest.raises(InvalidModelError):
            read_model(data)
        return
    try:
        theirs = [array.tobytes() for array in arrays(read_model(expected))]
    except GcompError as error:
        with pytest.raises(type(error)):
            read_model(data)
    else:
        assert [array.tobytes() for array in arrays(read_model(data))] == theirs


@pytest.mark.parametrize("kind", [0, 1, 5])
def test_fields_of_another_wire_type_are_kept(kind: int) -> None:
    # Protobuf treats a known number with another wire type as an unknown field.
    value = {0: b"\x05", 1: bytes(8), 5: bytes(4)}[kind]
    for data in (
        with_tensor(TENSOR + varint(9 << 3 | kind) + value),
        with_tensor(TENSOR, before=varint(7 << 3 | kind) + value),
    ):
        found = outlined(data)
        assert found is not None
        assert filled(data, found).SerializeToString() == onnx.ModelProto.FromString(data).SerializeToString()


def test_files_of_very_many_fields_are_left_to_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    data = MODEL.SerializeToString()
    monkeypatch.setattr(wire, "MAX_FIELDS", 5)
    assert outlined(data) is None


def test_a_model_larger_than_protobuf_is_read_if_its_rest_is_small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (wire, reading):
        monkeypatch.setattr(module, "MAX_BYTES", 8000)
    large = in_initializer(weight("w", 10_000))
    (array,) = arrays(read_model(saved(tmp_path, large)))
    assert array.tobytes() == large.graph.initializer[0].raw_data
    large.doc_string = "x" * 9000
    with pytest.raises(InvalidModelError, match="too large"):
        read_model(saved(tmp_path, large))


# --- claims and damage


@pytest.mark.parametrize("dims", [[COUNT + 1], [COUNT - 1], [2**40], [-1], [], [COUNT, 2]])
@pytest.mark.parametrize("external", [False, True])
def test_cut_weights_are_checked_as_others_are(dims: list[int], external: bool) -> None:
    tensor = weight("w")
    tensor.dims[:] = dims
    if external:
        tensor.dims[:] = [COUNT]
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
    data = in_initializer(tensor).SerializeToString()
    assert outlined(data) is not None
    with pytest.raises(InvalidModelError):
        read_model(data)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, in_initializer(weight("w", 100_000)))
    check = reading.check_structure

    def truncating(*args: Any) -> dict[str, str]:
        with path.open("r+b") as file:
            file.truncate(5000)
        return check(*args)

    monkeypatch.setattr(reading, "check_structure", truncating)
    with pytest.raises(InvalidModelError, match="shorter"):
        read_model(path)


def use(data: bytes) -> list[bytes] | None:
    """The bytes of all tensors that can be read; only GcompErrors may come out."""
    with contextlib.suppress(GcompError):
        return [tensor_array(tensor, "test").tobytes() for tensor in tensors(read_model(data))]
    return None


@pytest.mark.parametrize("seed", range(4))
def test_mutated_models_are_read_as_protobuf_reads_them(seed: int) -> None:
    chance = random.Random(seed)
    original = model_of(
        [helper.make_node("Identity", ["w"], ["y"])], initializer=[weight("w"), inline("small"), weight("v", 2 * COUNT)]
    ).SerializeToString()
    found = outlined(original)
    assert found is not None
    payloads = [range(span.start, span.start + span.size) for span in found.raw_data.values()]
    places = [i for i in range(len(original)) if not any(i in payload[8:-8] for payload in payloads)]
    for _ in range(300):
        data = bytearray(original)
        for place in sorted(chance.sample(places, chance.randint(1, 3)), reverse=True):
            kind = chance.randrange(4)
            if kind == 0:
                data[place] ^= 1 << chance.randrange(8)
            elif kind == 1:
                data[place] = chance.choice((0, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                del data[place : place + chance.randint(1, 4)]
            else:
                data[place:place] = struct.pack("<Q", chance.getrandbits(64))[: chance.randint(1, 8)]
        try:
            parsed = onnx.ModelProto.FromString(data)
        except DecodeError:
            assert use(bytes(data)) is None
            continue
        found = outlined(bytes(data))
        if found is not None:
            assert filled(bytes(data), found).SerializeToString() == parsed.SerializeToString()
        use(bytes(data))


def test_truncated_models_are_refused() -> None:
    data = MODEL.SerializeToString()
    for length in [*range(200), *range(len(data) - 200, len(data))]:
        assert use(data[:length]) is None


# --- memory


def products(names: list[str]) -> onnx.ModelProto:
    """A chain of products with the named weights."""
    size = 64
    rng = np.random.default_rng(0)
    weights = [inline(name, rng.standard_normal((size, size)).astype(np.float32)) for name in sorted(set(names))]
    nodes = [helper.make_node("Mul", [f"x{i}", name], [f"x{i + 1}"]) for i, name in enumerate(names)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [size, size])],
        [helper.make_tensor_value_info(f"x{len(names)}", TensorProto.FLOAT, [size, size])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_embedded_weights_are_read_once_to_where_they_stay(tmp_path: Path) -> None:
    path = saved(tmp_path, products(["a", "b"]))
    program = import_onnx(path)
    path.write_bytes(b"another file by now")
    before = dict(program.weights.items())
    assert len(before) == 2
    program.weights.materialize()
    for name, array in program.weights.items():
        assert array is before[name]
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable


def test_two_uses_of_a_weight_share_its_memory(tmp_path: Path) -> None:
    program = import_onnx(saved(tmp_path, products(["a", "b", "a", "a"])))
    assert len(program.weights) == 2
    weights = Weights()
    view = next(array for _, array in program.weights.items()).T
    names = [weights.add(name, array) for name, array in (("a", view), ("b", view[:]), ("c", view[1:]))]
    weights.materialize()
    a, b, c = (weights[name] for name in names)
    assert a is b
    assert not np.shares_memory(a, c)
    assert np.array_equal(a, view)
    assert np.array_equal(c, view[1:])


def test_nothing_but_the_program_holds_a_weight(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        program = import_onnx(saved(tmp_path, products(["a", "b"])))
        names = list(program.weights)
        owners = [weakref.ref(owner(program.weights[name])) for name in names]
        for name in names:
            program.weights.remove(name)
        assert [ref() for ref in owners] == [None, None]
    finally:
        gc.enable()


def owner(array: Any) -> Any:
    """What holds an array's memory."""
    while True:
        base = array.obj if isinstance(array, memoryview) else array.base
        if base is None:
            return array
        array = base
