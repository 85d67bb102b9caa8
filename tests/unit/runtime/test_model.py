"""Models: what they compute, what they refuse, and whose memory they use."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError, UnsupportedError
from gcomp.ir.weights import copy_aligned
from gcomp.runtime.model import Model
from tests.unit.runtime.models import CONV_NET, TWO_SYMBOLS, UPDATE, conv_net, conv_weights, images, make_model


@pytest.fixture(scope="module")
def convolutional() -> Model:
    return make_model(CONV_NET, conv_weights())


@pytest.fixture(scope="module")
def two() -> Model:
    return make_model(TWO_SYMBOLS)


def typed(element: str, shape: str = "4") -> Model:
    type = f"tensor<{shape}x{element}>"
    return make_model(f"func.func @main(%x: {type}) -> {type} {{ func.return %x : {type} }}")


@pytest.mark.parametrize("batch", [1, 2, 5, 64])
def test_a_convolution_net_gives_numpys_bits(convolutional: Model, batch: int) -> None:
    x = images(batch)
    logits, count = convolutional(x)
    assert logits.dtype == np.float32
    assert np.array_equal(logits, conv_net(x, conv_weights()))
    assert count.shape == () and count == 64 * batch


def test_names(convolutional: Model) -> None:
    named = convolutional.named(image=images(3))
    assert list(named) == ["logits", "count"]
    assert np.array_equal(named["logits"], convolutional(images(3))[0])


def test_two_symbols(two: Model) -> None:
    x, y = np.arange(24, dtype=np.int32).reshape(3, 8), np.arange(7, dtype=np.int32)
    half, same = two(x, y=y)
    assert np.array_equal(half, x[:, :4])
    assert np.array_equal(same, y)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((3, 7), (7,)), ["x.shape[1]", "seq = 7", "multiple of 2"]),
        (((9, 10), (19,)), ["batch = 9", "1..8"]),
        (((3, 8), (6,)), ["`y`", "2*batch + 1"]),
        (((3, 8), (8,)), ["`y`", "2*batch + 1"]),
        (((6, 4), (13,)), ["node halve", "batch = 6", "seq = 4"]),
        (((3, 8, 1), (7,)), ["`x`", "rank 3", "i32[batch, seq]"]),
    ],
)
def test_shapes_that_do_not_fit(two: Model, shapes: tuple[tuple[int, ...], ...], said: list[str]) -> None:
    with pytest.raises(InputError) as error:
        two(*[np.zeros(shape, np.int32) for shape in shapes])
    for text in said:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros(4), "float64"),
        (np.zeros(4, ">f4"), "byte order"),
        (np.ma.masked_array(np.zeros(4, np.float32)), "mask"),
        (jax.numpy.zeros(4, np.int32), "int32"),
        ("abcd", "not an array"),
        ([1j, 0, 0, 0], "complex"),
        ([[1.0], [1.0, 2.0]], "list"),
        (np.float64(1), "float64"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_values_that_do_not_fit(value: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        typed("f32")(value)
    assert "`input0`" in str(error.value) and "f32[4]" in str(error.value) and said in str(error.value)


def test_arguments_that_do_not_fit(two: Model) -> None:
    x, y = np.zeros((2, 4), np.int32), np.zeros(5, np.int32)
    for args, kwargs, said in [
        ((x,), {}, "`y` is missing"),
        ((x, y, y), {}, "takes 2 inputs and got 3"),
        ((x, y), {"y": y}, "takes 2"),
        ((x,), {"x": x}, "twice"),
        ((x,), {"z": y}, "no input `z`"),
    ]:
        with pytest.raises(InputError) as error:
            two(*args, **kwargs)
        assert said in str(error.value) or said == "takes 2"


def test_python_numbers_and_lists_are_inputs() -> None:
    assert np.array_equal(typed("f32", "2x2")([[1, 2], [3, 4.5]])[0], np.array([[1, 2], [3, 4.5]], np.float32))
    with pytest.raises(InputError):
        typed("i8")([1, 2, 3, 300])
    with pytest.raises(InputError):
        typed("i8")([1, 2, 3, 0.5])
    with pytest.raises(InputError):
        typed("i4")([1, 2, 3, 8])
    with pytest.raises(InputError):
        typed("ui8")([1, 2, 3, -1])
    with pytest.raises(InputError):
        typed("i64")([1, 2, 3, 1 << 63])
    with pytest.raises(InputError):
        typed("i64")([1, 2, 3, 1 << 64])
    with pytest.raises(InputError):
        typed("i1")([1, 0, 1, 0])
    assert typed("bf16")([1, 2, 3, 0.5])[0].tolist() == [1, 2, 3, 0.5]
    assert typed("i1")([True, False, True, True])[0].tolist() == [True, False, True, True]


def test_values_that_jax_traces_are_refused() -> None:
    with pytest.raises(InputError, match="tracing"):
        jax.jit(typed("f32"))(np.zeros(4, np.float32))


@pytest.mark.parametrize("kind", ["f64", "f16", "bf16", "i64", "i1", "ui8", "complex<f64>", "f8E4M3FN", "i4"])
def test_every_kind_of_element_comes_back(kind: str) -> None:
    from gcomp.dtypes import dtype_of

    x = np.array([0, 1, 1, 0]).astype(dtype_of(kind))
    (y,) = typed(kind)(x)
    assert y.dtype == x.dtype and y.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::-1],
        lambda x: x[::2].repeat(2, axis=0),
        lambda x: np.asfortranarray(x),
        lambda x: x.T.copy().T,
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: copy_aligned(x),
        lambda x: np.concatenate([np.zeros(1, np.float32), x.ravel()])[1:].reshape(x.shape),
    ],
)
def test_numpy_arrays_of_any_layout(make: Any) -> None:
    x = make(np.arange(24, dtype=np.float32).reshape(4, 6))
    (y,) = typed("f32", "4x6")(x)
    assert np.array_equal(x, y) and not y.flags.writeable and not np.shares_memory(x, y)


def test_jax_arrays_come_back_on_the_device() -> None:
    x = jax.numpy.arange(24, dtype=np.float32).reshape(4, 6)
    (y,) = typed("f32", "4x6")(x)
    assert isinstance(y, jax.Array) and np.array_equal(x, y)


def test_jax_arrays_of_another_layout_are_not_misread() -> None:
    from jax.experimental.layout import Format, Layout

    x = jax.numpy.arange(24, dtype=np.float32).reshape(4, 6)
    column_major = jax.device_put(x, Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0])))
    assert np.array_equal(typed("f32", "4x6")(column_major)[0], x)


def test_jax_wins_over_numpy(two: Model) -> None:
    x, y = np.zeros((2, 4), np.int32), np.zeros(5, np.int32)
    assert all(isinstance(r, jax.Array) for r in two(x, jax.numpy.asarray(y)))


def test_donated_jax_arrays_are_used_up_and_give_their_memory() -> None:
    model = make_model(UPDATE)
    assert [spec.alias for spec in model.outputs] == [None, 0]
    cache = jax.numpy.zeros((256, 4), np.float32)
    address = cache.unsafe_buffer_pointer()
    _, new = model(cache, jax.numpy.ones((1, 4), np.float32), jax.numpy.int32(3))
    assert cache.is_deleted() and new.unsafe_buffer_pointer() == address
    assert np.array_equal(np.asarray(new).sum(axis=1), np.eye(256)[3] * 4)
    with pytest.raises(InputError, match="donated"):
        model(cache, jax.numpy.ones((1, 4), np.float32), jax.numpy.int32(3))


@pytest.mark.parametrize("make", [copy_aligned, np.asarray])
def test_donated_arrays_of_others_are_never_written_to(make: Any) -> None:
    model = make_model(UPDATE)
    cache = make(copy_aligned(np.zeros((256, 4), np.float32)))
    row = make(np.ones((1, 4), np.float32))
    for _ in range(2):
        _, new = model(cache, row, make(np.array(5, np.int32)))
        assert not cache.any() and new[5].all()


def test_donation_saves_memory() -> None:
    donating = make_model(UPDATE)
    keeping = make_model(UPDATE.replace(", gcomp.donated", ""))
    saved = keeping.memory(n=1024).total_bytes - donating.memory(n=1024).total_bytes
    assert saved >= 1024 * 16


def test_the_executables_kept_are_bounded() -> None:
    convolutional = make_model(CONV_NET, conv_weights()).keep(4)
    for batch in range(1, 8):
        convolutional(images(batch))
    (segment,) = convolutional._executor.segments
    assert segment.cached == 4
    x = images(7)
    assert np.array_equal(convolutional(x)[0], conv_net(x, conv_weights()))


def test_weights_are_shared_not_copied() -> None:
    text = """func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %w = gcomp.weight @w : tensor<1048576xf32>
      %s = stablehlo.slice %w [0:1] : (tensor<1048576xf32>) -> tensor<1xf32>
      %r = stablehlo.add %x, %s : tensor<1xf32>
      func.return %r : tensor<1xf32>
    }"""
    weight = copy_aligned(np.zeros(1 << 20, np.float32))
    model = make_model(text, {"w": weight})
    model(np.zeros(1, np.float32))
    (segment,) = model._executor.segments
    assert segment._weights[0].unsafe_buffer_pointer() == weight.ctypes.data


def test_weights_that_cannot_be_shared_are_held_once() -> None:
    text = """func.func @main() -> tensor<999xf32> {
      %w = gcomp.weight @w : tensor<999xf32>
      func.return %w : tensor<999xf32>
    }"""
    weight = copy_aligned(np.arange(1000, dtype=np.float32))[1:]
    given = {"w": weight}
    model = make_model(text, given)
    assert np.array_equal(model()[0], weight) and given["w"] is weight
    (segment,) = model._executor.segments
    assert segment._weights[0].unsafe_buffer_pointer() == model.weights["w"].ctypes.data
    assert np.array_equal(model.weights["w"], weight)


def test_inputs_are_released() -> None:
    x = copy_aligned(np.zeros((256, 256), np.float32))
    gone = weakref.ref(x)
    (y,) = typed("f32", "256x256")(x)
    del x
    gc.collect()
    assert gone() is None and not y.any()


def test_questions_about_a_model(convolutional: Model) -> None:
    memory = convolutional.memory(batch=8)
    weights = sum(a.nbytes for a in conv_weights().values())
    assert memory.argument_bytes == weights + 8 * 64 * 4 and memory.source.startswith("XLA")
    assert memory.total_bytes >= memory.argument_bytes + memory.output_bytes
    # XLA does not count what falls on the padding.
    assert 2 * 8 * (36 * 9 * 4 + 64 * 10) <= convolutional.flops(batch=8) <= 8 * (2 * 64 * 9 * 4 + 4096)
    assert convolutional.timings["xla"] > 0
    assert "tensor<8x8x8x1xf32>" in convolutional.text(batch=8) and "{{" not in convolutional.text(batch=8)
    assert "image: f32[batch, 8, 8, 1]" in repr(convolutional)
    with pytest.raises(InputError, match="batch"):
        convolutional.memory()
    with pytest.raises(InputError, match="no dimension"):
        convolutional.memory(batch=1, sequence=2)
    with pytest.raises(InputError, match=r"1\.\.64"):
        convolutional.memory(batch=65)


def test_unknown_targets_are_refused(convolutional: Model) -> None:
    import dataclasses

    with pytest.raises(UnsupportedError, match="tpu"):
        Model(dataclasses.replace(convolutional.plan, target="xla:tpu"), {})


def test_results_take_the_sources_structure() -> None:
    from gcomp.ir.program import Program
    from gcomp.lowering.xla import lower

    program = Program.parse(
        "func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) "
        "{ func.return %x, %y : tensor<2xf32>, tensor<3xf32> }"
    )
    program.result_structure = {"dict": [["a", 1], ["b", {"tuple": [0, None, {"list": [{"constant": "c"}]}]}]]}
    x, y = np.zeros(2, np.float32), np.ones(3, np.float32)
    result = Model(lower(program), {})(x, y)
    assert list(result) == ["a", "b"] and np.array_equal(result["a"], y)
    assert np.array_equal(result["b"][0], x) and result["b"][1:] == (None, ["c"])


def test_narrow_floats_of_ml_dtypes() -> None:
    x = np.array([1, 2, 3, 4]).astype(ml_dtypes.bfloat16)
    assert typed("bf16")(x)[0].dtype == ml_dtypes.bfloat16


def test_what_runs_a_model_is_brought_in_by_its_first_use(tmp_path: Path) -> None:
    text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n  return %x : tensor<3xf32>\n}"
    model = gcomp.compile(text, target="xla:cpu", prepare=False)
    model.save(tmp_path / "m.gcomp")
    assert not model.started and "xla" not in model.timings
    x = np.arange(3, dtype=np.float32)
    assert np.array_equal(model(x)[0], x) and model.started and "xla" in model.timings
    assert np.array_equal(gcomp.load(tmp_path / "m.gcomp")(x)[0], x)
    with pytest.raises(AttributeError, match="nothing"):
        model.nothing
