"""JAX for several devices: what is imported means what JAX computes on eight virtual devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr import import_jax
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.sharding import AxisRef, DimensionSharding, Mesh, Sharding
from tests.support.devices import on_devices
from tests.support.sharded import CASES, evaluated, mesh, operands

EPSILON = float(np.finfo(np.float32).eps)
MESH = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
Result = tuple[str, list[Any]]


def imported(name: str) -> Result:
    x, w, *_ = operands()
    program = import_jax(CASES[name].function, x, w)
    return program.text(), interpret(program, [x, w])


def exported(name: str) -> Result:
    from gcomp.frontends.jaxpr.files import import_exported

    x, w, *_ = operands()
    jitted = jax.jit(CASES[name].function, in_shardings=(NamedSharding(mesh(), P("data")), None))
    program = import_exported(jax.export.export(jitted)(x, w))
    return program.text(), interpret(program, [x, w])


@cache
def jaxs(name: str) -> Any:
    return on_devices(evaluated, name)["result"]


@pytest.mark.parametrize("name", CASES)
def test_what_is_imported_means_what_jax_computes(name: str) -> None:
    text, (result,) = on_devices(imported, name)
    assert 'sdy.mesh @mesh = <["data"=4, "model"=2]>' in text
    wanted = np.float64(jaxs(name))
    assert np.abs(np.float64(result) - wanted).max() <= 64 * EPSILON * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("name", ["constrained", "sum of an axis", "looped"])
def test_exports_for_devices_are_read(name: str) -> None:
    text, (result,) = on_devices(exported, name)
    main = next(line for line in text.splitlines() if "@main" in line)
    assert main.count('sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>') == 1
    wanted = np.float64(jaxs(name))
    assert np.abs(np.float64(result) - wanted).max() <= 64 * EPSILON * max(1.0, np.abs(wanted).max())


# ---- what is said of inputs, outputs and values ---------------------------------------------------------------------


def shape(*sizes: int, spec: Any = None) -> Any:
    sharding = None if spec is None else NamedSharding(MESH, spec)
    return jax.ShapeDtypeStruct(sizes, jnp.float32, sharding=sharding)


def sharded(*axes: tuple[str, ...]) -> Sharding:
    return Sharding.of("mesh", axes)


def ports(program: Program) -> tuple[list[Sharding | None], list[Sharding | None]]:
    return [p.sharding for p in program.inputs()], [p.sharding for p in program.outputs()]


def test_shardings_of_a_jitted_function_are_those_of_inputs_and_outputs() -> None:
    function = jax.jit(
        lambda x, y: (jnp.sin(x) @ y, x),
        in_shardings=(NamedSharding(MESH, P("data")), None),
        out_shardings=(NamedSharding(MESH, P(None, "model")), None),
    )  # fmt: skip
    program = import_jax(function, shape(8, 4), shape(4, 6))
    assert ports(program) == ([sharded(("data",), ()), None], [sharded((), ("model",)), None])
    assert sdy.meshes_of(program.module) == {"mesh": Mesh.of([("data", 4), ("model", 2)])}
    assert not any(isinstance(op, sdy.ShardingConstraintOp) for op in program.ops())


def test_arrays_bring_their_shardings() -> None:
    program = import_jax(lambda x, y: x + y, shape(8, spec=P(("data", "model"))), shape(8))
    assert ports(program)[0] == [sharded(("data", "model")), None]


def test_a_constraint_on_an_input_that_others_read_stays_where_it_is() -> None:
    program = import_jax(lambda x: (lax.with_sharding_constraint(x, NamedSharding(MESH, P("data"))) * 2, x), shape(8))
    assert ports(program)[0] == [None]
    (op,) = (op for op in program.ops() if isinstance(op, sdy.ShardingConstraintOp))
    assert op.layout == sharded(("data",))


def test_dimensions_that_are_left_open() -> None:
    program = import_jax(
        lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P("data", P.UNCONSTRAINED))) + 1, shape(8, 4)
    )
    (op,) = (op for op in program.ops() if isinstance(op, sdy.ShardingConstraintOp))
    assert op.layout.dimensions == (DimensionSharding((AxisRef("data"),)), DimensionSharding(is_closed=False))


def explicitly() -> str:
    """On a mesh of explicit axes, types say where values lie."""
    explicit = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit, AxisType.Explicit))
    with jax.set_mesh(explicit):
        x = jax.device_put(jnp.ones((8, 4)), NamedSharding(explicit, P("data")))
        function = lambda x: jax.sharding.reshard(jnp.sin(x), P(None, "model")) * 2  # noqa: E731
        program = import_jax(function, x)
        given = np.arange(32, dtype=np.float32).reshape(8, 4)
        assert (
            interpret(program, [given])[0] == interpret(import_jax(lambda x: jnp.sin(x) * 2, given), [given])[0]
        ).all()
        return program.text()


def test_explicit_axes() -> None:
    text = on_devices(explicitly)
    assert "stablehlo.sine" in text
    assert text.count("sdy.sharding_constraint") >= 2
    assert '<@mesh, [{}, {"model"}]>' in text and '[{"data"}, {}]>' in text


def test_devices_know_their_place_where_some_axes_are_not_manual() -> None:
    def function(x: Any) -> Any:
        return jax.shard_map(
            lambda y: y + lax.axis_index("model"), mesh=MESH, in_specs=P("model"), out_specs=P("model"),
            axis_names={"model"},
        )(x)  # fmt: skip

    program = import_jax(function, shape(4))
    assert interpret(program, [np.zeros(4, np.float32)])[0].tolist() == [0, 0, 1, 1]


def test_groups_within_an_axis() -> None:
    def function(x: Any) -> Any:
        pairs = [[0, 2], [1, 3]]
        return jax.shard_map(
            lambda y: lax.all_gather(y, "data", axis_index_groups=pairs, tiled=True), mesh=MESH, in_specs=P("data"),
            out_specs=P("data"), check_vma=False,
        )(x)  # fmt: skip

    program = import_jax(function, shape(4))
    assert interpret(program, [np.arange(4, dtype=np.float32)])[0].tolist() == [0, 2, 1, 3, 0, 2, 1, 3]


def test_large_constants_are_read_inside() -> None:
    table = np.arange(4096, dtype=np.float32)

    def function(x: Any) -> Any:
        return jax.shard_map(lambda y: y + table[:1].sum() + jnp.asarray(table)[-1], mesh=MESH, in_specs=P("data"),
                             out_specs=P("data"))(x)  # fmt: skip

    program = import_jax(function, shape(8))
    assert interpret(program, [np.zeros(8, np.float32)])[0].tolist() == [4095.0] * 8


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: lax.ragged_all_to_all(x, x, *[jnp.zeros(4, jnp.int32)] * 4, axis_name="data"), "sizes of their own"),
        (lambda x: lax.psum(x, "data", axis_index_groups=[[0], [1, 2, 3]]), "groups have different sizes"),
    ],
)  # fmt: skip
def test_what_has_no_form_is_refused_with_its_reason(function: Any, why: str) -> None:
    mapped = jax.shard_map(function, mesh=MESH, in_specs=P(), out_specs=P("data"), check_vma=False)
    with pytest.raises(UnsupportedError, match=why):
        import_jax(mapped, shape(4))
