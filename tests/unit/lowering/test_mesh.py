"""Programs for several devices on `xla:cpu`: eight virtual devices of one process, beside JAX and beside one device."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gcomp
from gcomp.errors import GcompError, UnsupportedError, UsageError
from tests.support.devices import on_devices
from tests.support.sharded import CASES, evaluated, operands

Array = np.ndarray[Any, Any]


def close(result: Array, wanted: Array) -> None:
    """Sums of at most 32 terms in another order."""
    assert result.shape == wanted.shape and result.dtype == wanted.dtype
    assert np.abs(result - wanted).max() <= 32 * np.finfo(np.float32).eps * np.abs(wanted).max()


@cache
def jaxs(name: str) -> Array:
    return on_devices(evaluated, name)["result"]


def compiled(name: str, file: str) -> tuple[Array, Array]:
    """By gcomp, and by what it writes."""
    x, w, *_ = operands()
    model = gcomp.compile(CASES[name].function, x, w, target="xla:cpu", verify="each")
    model.save(file)
    return np.asarray(model(x, w)), np.asarray(gcomp.load(file)(x, w))


@pytest.mark.parametrize("name", CASES)
def test_results_are_jaxs_to_the_bit(name: str, tmp_path: Path) -> None:
    """XLA partitions the same program on the same shardings: passes of gcomp's change no sum of these."""
    for result in on_devices(compiled, name, str(tmp_path / "model.gcomp")):
        if CASES[name].to_the_bit:
            assert result.dtype == jaxs(name).dtype and result.tobytes() == jaxs(name).tobytes()
        else:
            close(result, jaxs(name))


# ---- shardings that are said to gcomp -------------------------------------------------------------------------------

NETWORK = """func.func @main(%x: tensor<?x16xf32, ["n", "16"]> {gcomp.name = "x"}) -> (tensor<?x8xf32, ["n", "8"]> {gcomp.name = "y"}) {
  %w = gcomp.weight @w : tensor<16x32xf32>
  %v = gcomp.weight @v : tensor<32x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x16xf32, ["n", "16"]>, tensor<16x32xf32>) -> tensor<?x32xf32, ["n", "32"]>
  %1 = stablehlo.tanh %0 : tensor<?x32xf32, ["n", "32"]>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<?x32xf32, ["n", "32"]>, tensor<32x8xf32>) -> tensor<?x8xf32, ["n", "8"]>
  return %2 : tensor<?x8xf32, ["n", "8"]>
}"""  # noqa: E501
TRAINED = {"x": "data,*", "labels": "data,*", "w": "*,model", "v": "model,*"}
TENSOR_PARALLEL = {"x": "data,*", "w": "*,model", "v": "model,*", "y": "data,*"}


def network() -> Any:
    from gcomp.ir.program import Program

    program, rng = Program.parse(NETWORK), np.random.default_rng(3)
    program.weights.add("w", rng.normal(size=(16, 32)).astype(np.float32))
    program.weights.add("v", rng.normal(size=(32, 8)).astype(np.float32))
    return program


def batch(size: int) -> Array:
    return np.random.default_rng(size).normal(size=(size, 16)).astype(np.float32)


def tensor_parallel(file: str) -> tuple[list[Array], str, dict[str, int], int]:
    """Two sizes; what each device runs; bytes of a call on one device and on each of eight."""
    model = gcomp.compile(network(), target="xla:cpu", mesh="data=4,model=2", shardings=TENSOR_PARALLEL)
    model.save(file)
    loaded = gcomp.load(file)
    results = [np.asarray(m(batch(size))[0]) for size in (8, 64) for m in (model, loaded)]
    alone = gcomp.compile(network(), target="xla:cpu")
    partitioned: str = loaded._executor.partitioned({"n": 64})  # pyright: ignore
    bytes_of = {"mesh": loaded.memory(n=64).argument_bytes, "one": alone.memory(n=64).argument_bytes}
    return results, partitioned, bytes_of, len(loaded.plan.mesh)


def test_shardings_by_name(tmp_path: Path) -> None:
    results, partitioned, bytes_of, axes = on_devices(tensor_parallel, str(tmp_path / "model.gcomp"))
    alone = gcomp.compile(network(), target="xla:cpu")
    for result, size in zip(results, (8, 8, 64, 64), strict=True):
        wanted = np.asarray(alone(batch(size))[0])
        close(result, wanted)
    assert axes == 2
    assert "all-reduce" in partitioned and "f32[16,16]" in partitioned and "f32[16,8]" in partitioned
    assert bytes_of["mesh"] == 64 * 16 * 4 // 4 + (16 * 32 + 32 * 8) * 4 // 2
    assert bytes_of["one"] == (64 * 16 + 16 * 32 + 32 * 8) * 4


def by_pattern() -> str:
    given = {"v": "model,*", "[vw]": "*,model", "x": "data,*"}
    return gcomp.compile(network(), target="xla:cpu", mesh="data=2,model=2", shardings=given).text(n=8)


def test_patterns_place_all_that_they_name() -> None:
    """A name says more than a pattern, wherever it stands."""
    text = on_devices(by_pattern)
    said = r'"sdy.sharding_constraint"\(%w(\d)\) <\{sharding = #sdy.sharding<@mesh, (\[.*?\])>\}>'
    assert re.findall(said, text) == [("0", '[{}, {"model"}]'), ("1", '[{"model"}, {}]')]
    with pytest.raises(UsageError, match="no input, output or weight 'u\\*'"):
        gcomp.compile(network(), target="xla:cpu", prepare=False, mesh="data=2", shardings={"u*": "data"})


def searched(mesh: str) -> tuple[Array, str, str]:
    """By shardings that a search finds, with few rows; the text that XLA gets, and what each device runs."""
    model = gcomp.compile(network(), target="xla:cpu", mesh=mesh, shardings="auto", dims={"n": 2})
    partitioned: str = model._executor.partitioned({})  # pyright: ignore
    return np.asarray(model(batch(2))[0]), model.text(), partitioned


@pytest.mark.parametrize("mesh", ["data=4,model=2", "model=8"])
def test_shardings_that_are_found(mesh: str) -> None:
    """XLA sends what the text says, and no more."""
    result, text, partitioned = on_devices(searched, mesh)
    close(result, np.asarray(gcomp.compile(network(), target="xla:cpu")(batch(2))[0]))
    for stated, sent in (("all_reduce", "all-reduce"), ("all_gather", "all-gather"), ("all_to_all", "all-to-all")):
        assert text.count(f'"stablehlo.{stated}"') == partitioned.count(f" {sent}(")
    assert "sdy.manual_computation" in text


def trained(file: str | None) -> tuple[list[float], dict[str, Array], int]:
    """Losses of five steps of AdamW, the last two after the state was saved and loaded; the state; bytes of a call."""
    options: dict[str, Any] = {} if file is None else {"mesh": "data=4,model=2", "shardings": TRAINED}
    step = gcomp.train_step(network(), loss="mse", optimizer="adamw:lr=0.01", target="xla:cpu", **options)
    rng, losses = np.random.default_rng(9), list[float]()
    for number in range(5):
        if file is not None and number == 3:
            step.save_state(file)
            step.reset()
            step.load_state(file)
        losses.append(
            float(np.asarray(step(batch(8 + 8 * number), rng.normal(size=(8 + 8 * number, 8)).astype(np.float32))))
        )
    return losses, {name: np.asarray(value) for name, value in step.state.items()}, step.memory(n=64).argument_bytes


def test_a_training_step(tmp_path: Path) -> None:
    """What AdamW keeps of a parameter lies as that does; all five batches differ in size."""
    (losses, state, held), (wanted, alone, whole) = (
        on_devices(trained, str(tmp_path / "state")),
        on_devices(trained, None),
    )
    assert np.allclose(losses, wanted, rtol=1e-5) and losses[0] != losses[1]
    assert state.keys() == alone.keys() and state["step"].dtype == np.int64 and state["step"] == 5
    for name, value in alone.items():
        assert np.allclose(state[name], value, rtol=1e-4, atol=1e-5), name
    parameters, labels = 4 * (16 * 32 + 32 * 8), 4 * 64 * 8
    assert whole == 3 * parameters + 4 * 64 * 16 + labels + 8
    assert held == 3 * parameters // 2 + (4 * 64 * 16 + labels) // 4 + 8


SAID = """sdy.mesh @mesh = <["data"=8]>
func.func @main(%x: tensor<16x4xf32> {gcomp.name = "x"}) -> (tensor<16x4xf32> {gcomp.name = "y"}, tensor<4xf32> {gcomp.name = "z"}) {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<16x4xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<16x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<4xf32>
}"""  # noqa: E501


def said_by_ops() -> tuple[list[Array], str, str]:
    model = gcomp.compile(SAID, target="xla:cpu")
    results = [np.asarray(value) for value in model(np.ones((16, 4), np.float32))]
    return results, model.text(), model._executor.partitioned({})  # pyright: ignore


def test_what_ops_say_of_their_results_is_told_to_xla() -> None:
    (y, z), text, partitioned = on_devices(said_by_ops)
    close(y, np.tanh(np.ones((16, 4), np.float32)))
    close(z, 16 * np.tanh(np.ones(4, np.float32)))
    assert text.count("sdy.sharding_constraint") == 1
    assert "f32[2,4]" in partitioned and "all-reduce" in partitioned


def whole_numbers() -> tuple[Array, Array, Array]:
    """An i64 too large for 32 bits and a rank-0 input, on a mesh."""
    text = """func.func @main(%x: tensor<8xi64> {gcomp.name = "x"}, %c: tensor<i64> {gcomp.name = "c"}) -> (tensor<8xi64> {gcomp.name = "y"}) {
      %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<8xi64>
      %1 = stablehlo.add %x, %0 : tensor<8xi64>
      return %1 : tensor<8xi64>
    }"""  # noqa: E501
    x, c = np.arange(8, dtype=np.int64) << 40, np.array(1 << 41, np.int64)
    model = gcomp.compile(text, target="xla:cpu", mesh="data=8", shardings={"x": "data"})
    return np.asarray(model(x, c)[0]), x, c


def test_whole_numbers_keep_their_bits() -> None:
    result, x, c = on_devices(whole_numbers)
    assert result.dtype == np.int64 and (result == x + c).all()


def jitted() -> list[Array]:
    """`gcomp.jit` as `jax.jit` under a mesh: results are arrays that lie on the devices."""
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    from tests.support.sharded import mesh

    x = jax.device_put(operands()[0], NamedSharding(mesh(), P("data")))
    function = lambda a: jnp.tanh(a @ a.T).sum(0)  # noqa: E731
    ours = gcomp.jit(function, target="xla:cpu")
    first, again = ours(x), ours(x)
    assert len(first.sharding.device_set) == 8
    placed = gcomp.jit(function, target="xla:cpu", out_shardings=NamedSharding(mesh(), P("model")))(x)
    assert placed.sharding.shard_shape(placed.shape) == (4,)
    return [np.asarray(v) for v in (first, again, placed, jax.jit(function)(x))]


def test_jit_under_a_mesh() -> None:
    *ours, theirs = on_devices(jitted)
    for result in ours:
        close(result, theirs)


def with_tables() -> tuple[Array, Array]:
    """Weights that are read inside of computations for one device, one of them inside of another."""
    from jax import lax
    from jax.sharding import PartitionSpec as P

    from tests.support.sharded import mapped

    table = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)

    def inner(x: Any) -> Any:
        along = jax.shard_map(
            lambda y: lax.psum(y @ (jnp.asarray(table)[:8] * 2), "model"), mesh=jax.sharding.get_abstract_mesh(),
            in_specs=P(None, None), out_specs=P(), axis_names={"model"}, check_vma=False,
        )  # fmt: skip
        return along(x) + jnp.asarray(table)[: x.shape[0]]

    function, x = mapped(inner, P("data"), P("data"), ("data",), check=False), operands()[0]
    model = gcomp.compile(function, x, target="xla:cpu")
    assert model.weights
    return np.asarray(model(x)), np.asarray(jax.jit(function)(x))


def test_weights_are_read_inside_of_computations() -> None:
    close(*on_devices(with_tables))


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mesh": "data=2"}, "nothing says how arrays lie"),
        ({"shardings": {"x": "data"}}, "no mesh was given"),
        ({"shardings": "auto"}, "give a mesh"),
        ({"mesh": "data=2", "shardings": "data"}, "shardings='data' says nothing"),
        ({"mesh": "data", "shardings": {"x": "data"}}, "is not a mesh"),
        ({"mesh": {"data": 0}, "shardings": {"x": "data"}}, "is not a mesh"),
        ({"mesh": {"data": 2}, "shardings": {"z": "data"}}, "no input, output or weight 'z'"),
        ({"mesh": {"data": 2}, "shardings": {"x": "model"}}, 'there is no axis "model"'),
        ({"mesh": {"data": 2}, "shardings": {"x": "data,data"}}, 'the axis "data" is used twice'),
        ({"mesh": {"data": 2}, "shardings": {"x": "*,*,data"}}, "speaks of 3 dimensions, and the array has 2"),
        ({"mesh": {"data": 3}, "shardings": {"x": "*,data"}}, "dimension 1 has size 16, and is cut into 3 pieces"),
        ({"mesh": {"data": 2}, "shardings": {"x": "data"}, "buckets": {"n": [8]}}, "has no buckets"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(GcompError, match=why):
        gcomp.compile(network(), target="xla:cpu", prepare=False, **options)


@pytest.mark.parametrize("target", ["cpu", "triton:sm_90"])
def test_other_targets_refuse_by_name(target: str) -> None:
    with pytest.raises(UnsupportedError, match=f"several devices are not run on the target {target}"):
        gcomp.compile(network(), target=target, mesh={"data": 2}, shardings={"x": "data"})


def test_more_devices_than_there_are() -> None:
    model = gcomp.compile(network(), target="xla:cpu", mesh={"data": 2}, shardings={"x": "data"}, prepare=False)
    jax.devices()
    with pytest.raises(UsageError, match="The mesh has 2 devices, and there are 1 of cpu"):
        model(batch(8))


def test_shardings_on_several_meshes_are_refused() -> None:
    """XLA mixes them up: it knows no mesh of the second one's name then."""
    program = """sdy.mesh @mesh = <["a"=2, "b"=4]>
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = sdy.sharding_constraint %x <@mesh, [{"a"}]> : tensor<8xf32>
      %1 = sdy.sharding_constraint %0 <mesh<["x"=8]>, [{"x"}]> : tensor<8xf32>
      return %1 : tensor<8xf32>
    }"""
    with pytest.raises(UnsupportedError, match="several meshes"):
        gcomp.compile(program, target="xla:cpu")


def test_ops_of_one_device_outside_of_a_manual_computation_are_refused() -> None:
    program = """sdy.mesh @mesh = <["a"=2]>
    func.func @main() -> tensor<ui32> {
      %0 = stablehlo.partition_id : tensor<ui32>
      return %0 : tensor<ui32>
    }"""
    with pytest.raises(UnsupportedError, match="stands outside of a manual computation"):
        gcomp.compile(program, target="xla:cpu")
