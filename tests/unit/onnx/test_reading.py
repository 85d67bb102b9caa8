"""Reading ONNX models: every tensor arrives bit by bit, and nothing a model says makes the reader misbehave."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx.model.reading import read_model, tensor_array
from tests.unit.onnx.tensor_models import (
    DENSE,
    RAW,
    SPARSE,
    VALUES,
    arrays,
    external,
    in_function,
    in_initializer,
    inline,
    model_of,
    saved,
    tensors,
)

# --- values


@pytest.mark.parametrize("place", DENSE)
def test_tensors_arrive_from_every_place(place: Callable[[TensorProto], onnx.ModelProto], tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"....." + RAW + b"...")
    tensor = external("sub/w.bin", offset=5, length=len(RAW))
    for model in (read_model(saved(tmp_path, place(tensor))), read_model(place(inline()))):
        assert len(arrays(model)) in (1, 2)
        for array in arrays(model):
            assert array.dtype == np.float32
            assert np.array_equal(array, VALUES)
            assert not array.flags.writeable


@pytest.mark.parametrize("place", SPARSE)
def test_sparse_tensors_are_refused_and_not_dropped(place: Callable[[TensorProto], onnx.ModelProto]) -> None:
    with pytest.raises(UnsupportedError, match="sparse"):
        read_model(place(inline(array=np.ones(6, np.float32))))


def _typed_tensor(dtype: int, dims: list[int], entries: list[int], field: str = "int32_data") -> TensorProto:
    tensor = TensorProto(name="w", data_type=dtype, dims=dims)
    getattr(tensor, field).extend(entries)
    return tensor


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (inline(array=np.array([-8, 7, -1]).astype(ml_dtypes.int4)), np.array([-8, 7, -1])),
        (inline(array=np.array([1, 2, 15]).astype(ml_dtypes.uint4)), np.array([1, 2, 15])),
        (_typed_tensor(TensorProto.INT4, [3], [0x78, 0x0F]), np.array([-8, 7, -1])),
        (_typed_tensor(TensorProto.BFLOAT16, [1], [0x3F80]), np.array([1.0])),
        (_typed_tensor(TensorProto.FLOAT16, [1], [0x3C00]), np.array([1.0])),
        (_typed_tensor(TensorProto.INT8, [2], [-1, 5]), np.array([-1, 5])),
        (_typed_tensor(TensorProto.BOOL, [2], [0, 1]), np.array([False, True])),
        (_typed_tensor(TensorProto.UINT32, [1], [2**32 - 1], "uint64_data"), np.array([2**32 - 1])),
        (_typed_tensor(TensorProto.COMPLEX64, [1], [1, 2], "float_data"), np.array([1 + 2j])),
        (_typed_tensor(TensorProto.FLOAT, [], [4], "float_data"), np.array(4.0)),
        (_typed_tensor(TensorProto.FLOAT, [0, 5], []), np.zeros((0, 5))),
    ],
)
def test_every_way_to_store_elements_is_read(tensor: TensorProto, expected: np.ndarray[Any, Any]) -> None:
    (array,) = arrays(read_model(in_initializer(tensor)))
    assert array.shape == expected.shape
    assert np.array_equal(array.astype(expected.dtype), expected)


@pytest.mark.parametrize("dtype", ["int4", "float8_e4m3fn", "bfloat16", "bool", "int64", "complex128"])
def test_external_data_of_every_width(dtype: str, tmp_path: Path) -> None:
    array = np.array([1, 0, 1, 1, 0]).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    inside = inline(array=array)
    (tmp_path / "w.bin").write_bytes(inside.raw_data)
    outside = external("w.bin")
    outside.data_type, outside.dims[:] = inside.data_type, inside.dims
    (read,) = arrays(read_model(saved(tmp_path, in_initializer(outside))))
    assert read.dtype == array.dtype
    assert read.tobytes() == array.tobytes()


def test_external_data_is_mapped_and_not_read(tmp_path: Path) -> None:
    count = 1 << 30
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * count)
    tensor = external("w.bin")
    tensor.dims[:] = [count]
    tracemalloc.start()
    (array,) = arrays(read_model(saved(tmp_path, in_initializer(tensor))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert array.shape == (count,)
    assert array[-1] == 0
    assert peak < 16 << 20


_RESIDENT = """
import sys
from gcomp.frontends.onnx.model.reading import read_model
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = resident()
model = read_model(sys.argv[1])
assert resident() - before < 1.5 * 200e6, resident() - before
"""


def test_raw_data_is_not_held_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, in_initializer(inline(array=np.ones(50_000_000, np.float32))))
    subprocess.run([sys.executable, "-c", _RESIDENT, str(path)], check=True)


def test_a_given_protobuf_is_left_as_it_is() -> None:
    proto = in_function(inline())
    before = proto.SerializeToString()
    read_model(proto)
    assert proto.SerializeToString() == before


def test_strings_are_unsupported_as_numbers_but_may_be_in_a_model() -> None:
    model = read_model(in_initializer(helper.make_tensor("w", TensorProto.STRING, [1], [b"text"])))
    with pytest.raises(UnsupportedError, match="strings"):
        arrays(model)


# --- claims


@pytest.mark.parametrize("dims", [[2**40], [2**62, 2**62], [-1], [0, 2**62, 4], [2**31, 2**31], [1] * 1000])
@pytest.mark.parametrize("is_external", [False, True])
@pytest.mark.parametrize("place", DENSE)
def test_huge_claims_are_refused_before_any_allocation(
    place: Callable[[TensorProto], onnx.ModelProto], is_external: bool, dims: list[int], tmp_path: Path
) -> None:
    (tmp_path / "w.bin").write_bytes(RAW)
    tensor = external("w.bin") if is_external else inline()
    tensor.dims[:] = dims
    path = saved(tmp_path, place(tensor))
    tracemalloc.start()
    with pytest.raises(GcompError):
        read_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def _both_fields() -> TensorProto:
    tensor = inline()
    tensor.float_data.extend(VALUES.flat)
    return tensor


@pytest.mark.parametrize(
    "tensor",
    [
        _typed_tensor(TensorProto.FLOAT, [2], [1], "float_data"),
        _typed_tensor(TensorProto.FLOAT, [1], [1], "int64_data"),
        _typed_tensor(TensorProto.FLOAT, [3], []),
        _typed_tensor(TensorProto.BOOL, [1], [2]),
        _typed_tensor(TensorProto.INT8, [1], [256]),
        _typed_tensor(TensorProto.INT8, [1], [-129]),
        _typed_tensor(TensorProto.UNDEFINED, [1], [1]),
        _typed_tensor(12345, [1], [1]),
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], raw_data=b"123"),
        TensorProto(name="w", data_type=TensorProto.INT4, dims=[3], raw_data=b"1"),
        _both_fields(),
    ],
)
def test_data_that_does_not_fit_is_refused(tensor: TensorProto) -> None:
    for place in DENSE:
        with pytest.raises(InvalidModelError):
            read_model(place(tensor))


def test_booleans_other_than_0_and_1_are_refused() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.BOOL, dims=[2], raw_data=b"\0\2")
    model = read_model(in_initializer(tensor))
    with pytest.raises(InvalidModelError, match="booleans"):
        arrays(model)


# --- structure


def _nested(depth: int) -> onnx.ModelProto:
    model = model_of([helper.make_node("Constant", [], ["y"], value=inline())])
    graph = model.graph
    for index in range(depth):
        node = graph.node.add(op_type="Loop", output=[f"n{index}"])
        node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
        graph = node.attribute[0].g
    return model


def test_deep_subgraphs_are_refused_whether_parsed_or_built() -> None:
    assert read_model(_nested(30)) is not None
    for depth in (40, 2000):
        with pytest.raises(UnsupportedError, match="nested"):
            read_model(_nested(depth))
    with pytest.raises(InvalidModelError):
        read_model(_nested(90).SerializeToString())


def _calling(calls: dict[str, list[str]]) -> onnx.ModelProto:
    model = model_of([helper.make_node(next(iter(calls)), [], ["y"], domain="local")])
    model.opset_import.append(helper.make_opsetid("local", 1))
    for name, callees in calls.items():
        nodes = [helper.make_node(callee, [], [f"v{i}"], domain="local") for i, callee in enumerate(callees)]
        nodes.append(helper.make_node("Constant", [], ["out"], value_float=1.0))
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
        model.functions.append(helper.make_function("local", name, [], ["out"], nodes, opsets))
    return model


def test_functions_that_call_themselves_are_refused() -> None:
    for calls in ({"f": ["f"]}, {"f": ["g"], "g": ["h"], "h": ["f"]}, {"f": [], "g": ["g"]}):
        with pytest.raises(InvalidModelError, match="calls itself"):
            read_model(_calling(calls))


def test_calls_that_expand_without_measure_are_refused() -> None:
    chain = {f"f{i}": [f"f{i + 1}"] for i in range(5000)}
    doubling = {f"f{i}": [f"f{i + 1}"] * 2 for i in range(50)}
    for calls, last in ((chain, "f5000"), (doubling, "f50")):
        with pytest.raises(UnsupportedError, match="too deeply"):
            read_model(_calling({**calls, last: []}))
    assert read_model(_calling({"f": ["g", "g"], "g": ["h"], "h": []})) is not None


def _with(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = in_function(inline())
    change(model)
    return model


def _add_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(model.graph.input[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.graph.node[0].input.append("nowhere"),
        lambda model: model.functions[0].node[0].input.append("nowhere"),
        lambda model: setattr(model.graph.output[0], "name", "nowhere"),
        lambda model: model.functions[0].output.append("nowhere"),
        lambda model: model.graph.node.append(model.graph.node[0]),
        lambda model: model.functions.append(model.functions[0]),
        lambda model: model.opset_import.append(model.opset_import[0]),
        lambda model: model.ClearField("opset_import"),
        lambda model: model.ClearField("graph"),
        lambda model: model.ClearField("ir_version"),
        lambda model: setattr(model.functions[0], "name", ""),
        lambda model: setattr(model.functions[0].node[0].attribute[0], "type", 0),
        lambda model: model.functions[0].node[0].attribute.append(model.functions[0].node[0].attribute[0]),
        lambda model: model.graph.initializer.extend([inline(), inline()]),
        lambda model: model.graph.initializer.append(inline("")),
        lambda model: model.graph.initializer.append(inline("y")),
        _add_input,
    ],
)
def test_models_that_contradict_themselves_are_refused(change: Callable[[onnx.ModelProto], object]) -> None:
    with pytest.raises(InvalidModelError):
        read_model(_with(change))


def test_a_newer_ir_version_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="IR version"):
        read_model(_with(lambda model: setattr(model, "ir_version", onnx.IR_VERSION + 1)))


def test_a_subgraph_sees_the_names_around_it() -> None:
    branch = helper.make_graph([helper.make_node("Identity", ["w"], ["z"])], "b", [], [onnx.ValueInfoProto(name="z")])
    other = helper.make_graph([helper.make_node("Identity", ["w"], ["x"])], "c", [], [onnx.ValueInfoProto(name="x")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=other)
    model = read_model(model_of([node], initializer=[inline()]))
    graphs = {graph.name: graph for graph in model.graphs()}
    assert graphs["b"][0].inputs[0] is graphs["main"].initializers["w"]


# --- files


@pytest.mark.parametrize("content", [b"", b"\0", b"garbage", b"PK\x03\x04" + bytes(100), b"\x08\x0a", b'{"a": 1}'])
def test_files_that_are_no_models_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    for source in (path, str(path), content):
        with pytest.raises(InvalidModelError) as caught:
            read_model(source)
        assert caught.value.where is not None


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 31)
    for name in ("missing", "pipe", "large", "", "nul\0"):
        with pytest.raises(InvalidModelError):
            read_model(tmp_path / name)


def test_other_objects_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="int"):
        read_model(3)  # type: ignore[arg-type]


# --- damage


def test_texts_that_are_not_utf8_are_refused() -> None:
    # Protobuf hands these out as bytes, so a name would silently be something else than text.
    for place in DENSE:
        data = place(inline()).SerializeToString()
        for text in (b"flag", b"main", b"Identity", b"Constant", b"local", b"then_branch", b"out"):
            if text in data:
                with pytest.raises(InvalidModelError, match="UTF-8"):
                    read_model(data.replace(text, b"\xff" + text[1:]))


def _use(source: bytes) -> None:
    """Reads a model and all its tensors; only GcompErrors may come out."""
    with contextlib.suppress(GcompError):
        for tensor in tensors(read_model(source)):
            with contextlib.suppress(GcompError):
                tensor_array(tensor, "test")


SEEDS = [place(inline()).SerializeToString() for place in [*DENSE, *SPARSE]] + [
    in_initializer(tensor).SerializeToString()
    for tensor in (
        _typed_tensor(TensorProto.INT4, [3], [0x78, 0x0F]),
        external("w.bin", offset=0, length=24),
        helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"]),
    )
]


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_truncated_models_raise_gcomp_errors_only(seed: int) -> None:
    for length in range(len(SEEDS[seed])):
        _use(SEEDS[seed][:length])


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_mutated_models_raise_gcomp_errors_only(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        data = bytearray(SEEDS[seed])
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[place] ^= 1 << chance.randrange(8)
            elif kind == 1:
                data[place] = chance.choice((0, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                del data[place : place + chance.randint(1, 4)]
            else:
                data[place:place] = struct.pack("<Q", chance.getrandbits(64))[: chance.randint(1, 8)]
        _use(bytes(data))


def test_garbage_raises_gcomp_errors_only() -> None:
    chance = random.Random(0)
    for _ in range(300):
        _use(chance.randbytes(chance.randint(1, 200)))
