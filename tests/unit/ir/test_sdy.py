"""Meshes and shardings: Shardy's text both ways, Shardy's verifier beside gcomp's, and the programs that JAX writes."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxlib.mlir import ir as jaxlib

import gcomp
from gcomp.errors import GcompError, UnsupportedError
from gcomp.ir import sdy, text
from gcomp.ir.program import Program
from gcomp.sharding import AxisRef, DimensionSharding, Mesh, Sharding, SubAxis, local_shape, piece_of
from tests.support.thinning import examples

MESH = Mesh.of([("a", 2), ("b", 4), ("c", 3)])


@cache
def context() -> jaxlib.Context:
    return mlir.make_ir_context()


def shardys(program: str, *, generic: bool = False) -> str:
    """A program as Shardy's own parser, verifier and printer have it."""
    module = jaxlib.Module.parse(program, context())
    module.operation.verify()
    return module.operation.get_asm(print_generic_op_form=generic)


def gcomps(program: str, *, generic: bool = False) -> str:
    module = text.parse_module(program)
    text.verify_module(module)
    return text.print_module(module, generic=generic)


def placed(sharding: Sharding, mesh: Mesh = MESH) -> str:
    return f"""sdy.mesh @mesh = {mesh.text()}
func.func @main(%x: tensor<24x24xf32> {{sdy.sharding = #sdy.sharding{sharding.text()}}}) -> tensor<24x24xf32> {{
  %0 = stablehlo.abs %x {{sdy.sharding = #sdy.sharding_per_value<[{sharding.text()}]>}} : tensor<24x24xf32>
  %1 = sdy.sharding_constraint %0 {sharding.text()} : tensor<24x24xf32>
  func.return %1 : tensor<24x24xf32>
}}"""


MANUAL = """sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>, %t: !stablehlo.token) -> (tensor<8x8xf32>, tensor<16x8xf32>) {
  %0:2 = sdy.manual_computation(%x, %t) in_shardings=[<@mesh, [{"a"}, {?}]>, <@mesh, []>] out_shardings=[<@mesh, [{"a", "b"}, {}]>, <@mesh, [{"a", ?}, {}], replicated={"b"}>] manual_axes={"a"} (%y: tensor<4x8xf32>, %s: !stablehlo.token) {
    %1 = stablehlo.concatenate %y, %y, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    sdy.return %y, %1 : tensor<4x8xf32>, tensor<8x8xf32>
  } : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, tensor<16x8xf32>)
  func.return %0#0, %0#1 : tensor<8x8xf32>, tensor<16x8xf32>
}"""  # noqa: E501
EVERYTHING = """sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @ordered = <["x"=4, "y"=2], device_ids=[7, 1, 2, 3, 4, 5, 6, 0]>
sdy.mesh @placeholder = <[]>
sdy.mesh @one = <[], device_ids=[3]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1], replicated={"b":(1)2}, unreduced={"b":(2)2}>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
  %0 = sdy.reshard %x <mesh<["x"=8]>, [{"x":(2)2}]> : tensor<8xf32>
  sdy.sharding_group %0 group_id=3 : tensor<8xf32>
  func.return {sdy.sharding = #sdy.sharding_per_value<[]>} %0 : tensor<8xf32>
}"""  # noqa: E501


@pytest.mark.parametrize("program", [MANUAL, EVERYTHING])
def test_text_goes_both_ways(program: str) -> None:
    expected = shardys(program)
    for generic in (False, True):
        for source in (program, shardys(program, generic=True), expected):
            assert shardys(gcomps(source, generic=generic)) == expected
    once = gcomps(program)
    assert gcomps(once) == once
    for line in (line.strip() for line in program.splitlines() if "sdy." in line and "%" not in line):
        assert line in once


# ---- validity is Shardy's ------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "d"])
parts = st.one_of(
    st.none(), st.none(), st.builds(SubAxis, st.sampled_from([0, 1, 2, 3]), st.sampled_from([1, 2, 3, 4]))
)
axes = st.lists(st.builds(AxisRef, names, parts), max_size=2).map(tuple)
dimensions = st.builds(DimensionSharding, axes, st.booleans(), st.one_of(st.none(), st.integers(0, 2)))
shardings = st.builds(
    Sharding,
    st.sampled_from(["mesh", "mesh", "mesh", "absent"]),
    st.lists(dimensions, min_size=2, max_size=2).map(tuple),
    st.one_of(st.just(()), axes),
    st.one_of(st.just(()), axes),
)
meshes = st.builds(
    Mesh.of,
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=3),
    st.one_of(st.just(()), st.permutations(range(6)).map(lambda ids: ids[:4]), st.permutations(range(4))),
)


def accepts(check: object, program: str) -> bool:
    try:
        check(program)  # pyright: ignore
    except (GcompError, jaxlib.MLIRError):
        return False
    return True


@given(shardings)
@settings(max_examples=examples(400), deadline=None)
def test_shardings_are_valid_where_shardy_says_so(sharding: Sharding) -> None:
    program = placed(sharding)
    assert accepts(gcomps, program) == accepts(shardys, program)


@given(meshes)
@settings(max_examples=examples(200), deadline=None)
def test_meshes_are_valid_where_shardy_says_so(mesh: Mesh) -> None:
    program = f"sdy.mesh @mesh = {mesh.text()}"
    assert accepts(gcomps, program) == accepts(shardys, program)


# ---- pieces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec", [("a",), ("b", "a"), (("a", "b"),), (("b", "a"), "c"), (None, ("c", "a")), ((), "b")], ids=str
)
def test_pieces_are_jaxs(spec: tuple[object, ...]) -> None:
    """Which device holds what of an array is what JAX's own sharding says."""
    shape = (24, 24)
    mesh = Mesh.of([("a", 2), ("b", 2), ("c", 2)])
    theirs = NamedSharding(AbstractMesh((2, 2, 2), ("a", "b", "c")), PartitionSpec(*spec))
    entries = [() if e is None else (e,) if isinstance(e, str) else e for e in (*spec, *(None,) * (2 - len(spec)))]
    ours = Sharding.of(mesh, entries)
    assert local_shape(shape, ours, mesh) == theirs.shard_shape(shape)
    held = np.zeros(shape, int)
    for device in mesh.devices:
        held[piece_of(shape, ours, mesh, device)] += 1
    assert (held == 8 // np.prod([d.pieces(mesh) for d in ours.dimensions])).all()


def test_parts_of_axes_cut_like_axes_of_their_sizes() -> None:
    """An axis of 8 is three axes of 2."""
    whole, split = Mesh.of([("a", 8)]), Mesh.of([("x", 2), ("y", 2), ("z", 2)])
    part = {name: AxisRef("a", SubAxis(2**i, 2)) for i, name in enumerate("xyz")}
    for names in (("x",), ("y",), ("z",), ("z", "x"), ("y", "z", "x")):
        ours = Sharding.of(whole, [[part[n] for n in names]])
        for device in range(8):
            assert piece_of((24,), ours, whole, device) == piece_of((24,), Sharding.of(split, [names]), split, device)


def test_what_does_not_divide_is_shorter_at_the_end() -> None:
    mesh = Mesh.of([("a", 4)])
    pieces = [piece_of((5,), Sharding.of(mesh, [["a"]]), mesh, d)[0] for d in range(4)]
    assert pieces == [slice(0, 2), slice(2, 4), slice(4, 5), slice(5, 5)]


def test_groups_differ_along_the_axes_alone() -> None:
    mesh = Mesh.of([("a", 2), ("b", 2)], [3, 1, 2, 0])
    assert mesh.groups(["a"]) == ((3, 2), (1, 0))
    assert mesh.groups(["b", "a"]) == ((3, 2, 1, 0),)
    assert mesh.groups([]) == ((3,), (1,), (2,), (0,))


# ---- programs ------------------------------------------------------------------------------------------------------


def test_programs_of_jax_are_read() -> None:
    mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        h = jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, PartitionSpec("data", None)))
        spec = PartitionSpec("data", "model")
        summed = jax.shard_map(
            lambda y: jax.lax.psum(y, "model"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec("data")
        )
        return summed(h)

    x, w = jax.ShapeDtypeStruct((8, 4), jnp.float32), jax.ShapeDtypeStruct((4, 6), jnp.float32)
    shardings = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec(None, "model"))
    lowered = jax.jit(step, in_shardings=shardings).trace(x, w).lower(lowering_platforms=("cpu",)).as_text()
    module = text.parse_module(lowered)
    text.verify_module(module)
    assert sdy.meshes_of(module) == {"mesh": Mesh.of([("data", 4), ("model", 2)])}
    assert shardys(text.print_module(module)) == shardys(lowered)


def test_ports_keep_their_shardings() -> None:
    program = Program.parse(placed(Sharding.of("mesh", [["a"], []])))
    program.donate({program.inputs()[0].name})
    assert [port.sharding for port in program.inputs()] == [Sharding.of("mesh", [["a"], []])]
    assert sdy.argument_shardings(program.main) == [Sharding.of("mesh", [["a"], []])]
    assert program.inputs()[0].donated


def test_meshes_are_named_once() -> None:
    module = text.parse_module("func.func @main() { func.return }")
    names = [sdy.add_mesh(module, Mesh.of([("a", size)])) for size in (2, 2, 4, 2)]
    assert names == ["mesh", "mesh", "mesh_0", "mesh"]
    assert sdy.is_sharded(module)


@pytest.mark.parametrize("target", ["cpu", "triton:sm_90"])
def test_targets_of_one_device_refuse(target: str) -> None:
    with pytest.raises(UnsupportedError, match="several devices are not run on the target"):
        gcomp.compile(placed(Sharding.of("mesh", [["a"], []])), target=target)
