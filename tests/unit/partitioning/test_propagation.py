"""Propagation gives what Shardy's gives: with Shardy's rules exactly, with gcomp's but for what rules explain."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from jaxlib.mlir import ir as jaxlib
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, static_shape
from gcomp.partitioning import rule_of
from gcomp.partitioning.network import Network
from gcomp.partitioning.propagation import Propagation, propagate
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.graph.dce import DeadCodeElimination
from gcomp.passes.sharding.propagate_shardings import PropagateShardings
from gcomp.passes.sharding.shard import Shard
from gcomp.sharding import AxisRef, DimensionSharding, Mesh, Sharding, SubAxis
from gcomp.testing.check import check_pass
from gcomp.testing.generate.program import seeded_program
from tests.support.sharding_reasons import reasons
from tests.support.shardy import propagated, rules_of, with_own_constants
from tools.sharding_table import linked_by_rule, linked_by_text

MESHES = (
    (("a", 2), ("b", 2)), (("a", 2), ("b", 4)), (("x", 3), ("y", 2)), (("a", 4),), (("a", 4), ("b", 2)), (("a", 8),),
)  # fmt: skip


def random_sharding(rng: random.Random, mesh: Mesh, value: SSAValue) -> Sharding:
    """Axes that divide dimensions, parts of axes, open and closed dimensions, priorities."""
    axes = [AxisRef(a.name) for a in mesh.axes]
    rng.shuffle(axes)
    dims: list[DimensionSharding] = []
    for size in static_shape(value) or ():
        own, pieces = list[AxisRef](), 1
        for axis in [*axes] if rng.random() < 0.5 else []:
            if size and size % (pieces * axis.size(mesh)) == 0 and rng.random() < 0.7:
                own.append(axis)
                axes.remove(axis)
                pieces *= axis.size(mesh)
        is_open = rng.random() <= 0.3
        if own and own[-1].size(mesh) in (4, 8) and rng.random() < 0.2:
            own[-1] = AxisRef(own[-1].name, SubAxis(rng.choice([1, 2]), 2))
        priority = rng.choice([None, None, None, None, 1, 2]) if own or is_open else None
        dims.append(DimensionSharding(tuple(own), not is_open, priority))
    return Sharding("mesh", tuple(dims))


def sharded_program(seed: int) -> Program | None:
    """A random program of static sizes with random shardings of arguments, results and values; None of some seeds."""
    program, rng = seeded_program(seed), random.Random(seed)
    DeadCodeElimination().run(program, PassContext())
    # Calls are inlined before; of `if` Shardy knows nothing: JAX writes `case`.
    if any(isinstance(op, CallOp | hlo.IfOp) for op in program.module.walk()):
        return None
    if any(is_tensor(v.type) and static_shape(v) is None for v in values(program)):
        return None
    mesh = Mesh.of(rng.choice(MESHES))
    sdy.add_mesh(program.module, mesh)
    main = program.main
    arguments = [random_sharding(rng, mesh, a) if rng.random() < 0.6 else None for a in main.body.block.args]
    sdy.set_argument_shardings(main, arguments)
    last = main.body.block.last_op
    assert last is not None
    results = [
        random_sharding(rng, mesh, v) if is_tensor(v.type) and rng.random() < 0.3 else None for v in last.operands
    ]
    sdy.set_result_shardings(main, results)
    for op in [*main.body.block.ops][:-1]:
        if len(op.results) == 1 and is_tensor(op.results[0].type) and rng.random() < 0.15:
            constrain(op, sdy.ShardingAttr(random_sharding(rng, mesh, op.results[0])), rng.random() < 0.7)
    return program


def values(program: Program) -> Iterator[SSAValue]:
    """All values of a program."""
    for op in program.module.walk():
        yield from op.results
        yield from (arg for region in op.regions for block in region.blocks for arg in block.args)


def constrain(op: Operation, sharding: sdy.ShardingAttr, used: bool) -> None:
    """Put a constraint behind an op, which others use or not."""
    (value,) = op.results
    placed = sdy.ShardingConstraintOp.of(value, types=(value.type,), sharding=sharding)
    assert op.parent is not None
    op.parent.insert_op_after(placed, op)
    if used:
        value.replace_uses_with_if(placed.result, lambda use: use.operation is not placed)


def cuts(sharding: Sharding | None) -> tuple[tuple[AxisRef, ...], ...] | None:
    """The axes of each dimension; None where nothing is cut."""
    return None if sharding is None or not sharding.cuts else tuple(d.axes for d in sharding.dimensions)


def differences(found: Propagation, theirs: Program) -> list[str]:
    """Where values lie otherwise than Shardy says."""
    ours, wrong = found.network.program, list[str]()

    def hold(what: str, mine: Sharding | None, other: Sharding | None) -> None:
        if cuts(mine) != cuts(other):
            wrong.append(f"{what}: {mine and mine.text()}, Shardy has {other and other.text()}")

    nodes = found.network.nodes
    for a, said in zip(ours.main.body.block.args, sdy.argument_shardings(theirs.main), strict=True):
        hold(f"argument {a.index}", nodes[a].sharding, said)
    for mine, other in zip(ours.main.walk(), theirs.main.walk(), strict=True):
        assert mine.name == other.name
        for k, (x, y) in enumerate(zip(mine.results, other.results, strict=True)):
            hold(f"{mine.name} result {k}", nodes[x].sharding if x in nodes else None, sdy.sharding_of(y))
    returned = iter(found.network.returned)
    last = ours.main.body.block.last_op
    assert last is not None
    for k, said in enumerate(sdy.result_shardings(theirs.main)):
        if is_tensor(last.operands[k].type):
            hold(f"function result {k}", next(returned)[1].sharding, said)
    return wrong


def unequal_rules(program: Program) -> set[str]:
    """The ops of a program whose rules are not Shardy's; those on tensors without elements say nothing."""
    theirs = rules_of(program)
    found: set[str] = set()
    for op in program.main.walk():
        mine, other = rule_of(op), theirs(op)
        if not op.name.startswith("sdy.") and (linked_by_rule(mine) if mine else frozenset()) != (
            linked_by_text(str(other)) if other and other.factors else frozenset()
        ):
            found.add(op.name)
    return found


def cuts_single_indices(program: Program) -> bool:
    """Whether a dimension of size 1 is cut: Shardy does, and gcomp's rules tie no such dimensions."""
    return any(
        size == 1 and dimension.axes
        for op in program.main.walk()
        for value in op.results
        if (said := sdy.sharding_of(value)) is not None
        for size, dimension in zip(static_shape(value) or (), said.dimensions, strict=False)
    )


def programs(seeds: Iterable[int]) -> Iterator[tuple[int, Program, Program]]:
    """(seed, program with constants of its own, the same as Shardy propagates it)."""
    for seed in seeds:
        if (program := sharded_program(seed)) is not None:
            try:
                split = with_own_constants(program)
                yield seed, split, propagated(split)
            except jaxlib.MLIRError:  # an element type, or an op, that jaxlib does not have
                continue


def compare(seeds: Iterable[int]) -> int:
    """Compare the propagation of random programs; how many were compared."""
    count = 0
    for seed, split, theirs in programs(seeds):
        count += 1
        assert differences(propagate(Network(split, rules_of(split))), theirs) == [], seed
        if found := differences(propagate(Network(split)), theirs):
            assert unequal_rules(split) or cuts_single_indices(theirs), (seed, found)
    return count


def test_random_programs_are_propagated_as_shardy_does() -> None:
    assert compare((*range(70), 373)) > 30


@pytest.mark.slow
def test_many_random_programs_are_propagated_as_shardy_does() -> None:
    assert compare(range(70, 1500)) > 700


def judged(step: Pass, found: Iterator[Program | None]) -> int:
    """Hold a pass to its promises on programs; how many there were."""
    count = 0
    for program in found:
        if program is not None:
            count += 1
            assert check_pass(step, program, max_steps=20_000) is None
    return count


def test_the_passes_keep_their_promises() -> None:
    assert judged(PropagateShardings(), map(sharded_program, range(12))) > 5
    assert judged(Shard(mesh="data=2,model=2"), map(seeded_program, range(12))) == 12


@pytest.mark.slow
def test_the_passes_keep_their_promises_on_many_programs() -> None:
    assert judged(PropagateShardings(), map(sharded_program, range(12, 400))) > 200
    assert judged(Shard(mesh="data=2,model=2"), map(seeded_program, range(12, 400))) == 388


MLP = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<64x16xf32>, %bias: tensor<64xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] :
    (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xf32>) -> tensor<8x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x64xf32>
  %3 = stablehlo.tanh %2 : tensor<8x64xf32>
  %4 = stablehlo.dot_general %3, %down, contracting_dims = [1] x [0] :
    (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}
"""


def test_a_column_cut_reaches_the_rows_of_the_next_weight() -> None:
    program = Program.parse(MLP)
    assert PropagateShardings().run(program, PassContext())
    x, up, down, bias = [cuts(s) for s in sdy.argument_shardings(program.main)]
    data, model = (AxisRef("data"),), (AxisRef("model"),)
    assert (x, up, down, bias) == ((data, ()), ((), model), (model, ()), (model,))
    assert cuts(sdy.result_shardings(program.main)[0]) == (data, ())
    program.verify("after propagation")
    assert not PropagateShardings().run(program, PassContext()), "it is idempotent"


def test_reasons_name_what_the_program_says_and_the_way() -> None:
    program = Program.parse(MLP)
    lines = [*reasons(propagate(Network(program)))]
    assert 'argument 0 dim 0 by "data": the program says so' in lines
    (line,) = [line for line in lines if line.startswith("argument 2 dim 0")]
    assert line.startswith('argument 2 dim 0 by "model": from argument 1, of which the program says so, through ')
    assert line.count("stablehlo.") == 4 and line.index("dot_general") < line.index("tanh") < line.index("add")


def test_a_program_without_shardings_stays_as_it_is() -> None:
    program = seeded_program(3)
    before = program.text()
    assert not PropagateShardings().run(program, PassContext()) and program.text() == before


def test_each_use_of_a_constant_has_a_part_of_its_own() -> None:
    program = Program.parse("""
    sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                    %y: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
        -> (tensor<4x4xf32>, tensor<4x4xf32>) {
      %c = stablehlo.constant dense<1.0> : tensor<4x4xf32>
      %0 = stablehlo.add %x, %c : tensor<4x4xf32>
      %1 = stablehlo.add %y, %c : tensor<4x4xf32>
      return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
    }""")
    PropagateShardings().run(program, PassContext())
    a = (AxisRef("a"),)
    found = [cuts(sdy.sharding_of(op.results[0])) for op in program.block.ops if isinstance(op, hlo.ConstantOp)]
    assert found == [(a, ()), ((), a)] or found == [((), a), (a, ())]
