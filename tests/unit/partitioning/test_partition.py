"""A partitioned program computes what the program does, and sends what its plan says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from benchmarks.sharding import SMALL, opened
from gcomp.analysis.work import Nominal
from gcomp.corpus.store import corpus
from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.collectives import CollectiveOp
from gcomp.partitioning.cuts import Cut, Move, steps
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import plan_of
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.sharding import Mesh, Sharding, piece_of
from tests.support.partitioned import Array
from tests.unit.partitioning.models import transformer

MESH = Mesh.of([("a", 2), ("b", 2), ("c", 2)])


def agree(expected: Sequence[Array], found: Sequence[Array]) -> None:
    """Parts of sums are added in another order."""
    for a, b in zip(expected, found, strict=True):
        largest = np.nan_to_num(np.abs(a), posinf=0.0).max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * largest)


def sent_by(program: Program) -> list[tuple[str, int]]:
    """(kind, bytes) of each collective that a program states, in order of size."""
    nominal = Nominal(program.ranges)
    return sorted(
        (op.name.partition(".")[2], max(nominal.bytes(op.operands[0]), nominal.bytes(op.results[0])))
        for op in program.ops()
        if isinstance(op, CollectiveOp | hlo.CollectivePermuteOp)
    )


@pytest.mark.parametrize(
    ("mesh", "batch", "gradients"),
    [("data=2,model=4", 1, False), ("model=8", 1, True), ("data=4,model=2", 8, False)],
)
def test_transformers_send_what_the_plan_says(mesh: str, batch: int, gradients: bool) -> None:
    program = transformer(2, batch=batch, gradients=gradients)
    inputs = [np.asarray(x) * 0.2 for x in sample_inputs(program, 0)]
    inputs = [x.astype(np.float32) for x in inputs]
    expected = interpret(program, inputs)
    plan = plan_of(program, mesh_named(mesh), SMALL)
    said = sorted((str(m.sent.kind), m.sent.bytes) for m in plan.messages())
    apply(plan)
    assert Partition().run(program, PassContext())
    program.verify("after partition")
    assert sent_by(program) == said
    agree(expected, interpret(program, inputs))
    assert not Partition().run(program, PassContext()), "what is partitioned stays as it is"


@pytest.mark.parametrize("name", ["onnx/yolo", "onnx/tagger", "torch/graph_attention", "jax/experts", "jax/adam_step"])
def test_plans_of_the_corpus(name: str) -> None:
    """Loops that read what lies in parts, steps on the host, lookups, and updates."""
    program = opened(corpus([name]).members[0])
    inputs = sample_inputs(program, 0)
    expected = interpret(program, inputs)
    plan = plan_of(program, mesh_named("model=4"), SMALL, memory=0.6 * plan_of(program, mesh_named("x=1"), SMALL).peak)
    said = sorted((str(m.sent.kind), m.sent.bytes) for m in plan.messages())
    apply(plan)
    Partition().run(program, PassContext())
    program.verify("after partition")
    assert sent_by(program) == said
    agree(expected, interpret(program, inputs))


# ---- from one cut to another ----------------------------------------------------------------------------------------


def cuts(rank: int) -> list[Cut]:
    """All cuts along some of the axes, in all orders of two of them."""
    found: set[Cut] = set()
    for places in product((-1, *range(rank)), repeat=3):
        for order in (("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")):
            at = dict(zip("abc", places, strict=True))
            found.add(tuple(tuple(x for x in order if at[x] == dim) for dim in range(rank)))
    return sorted(found)


def test_steps_lead_from_any_cut_to_any_other() -> None:
    """Each step is done on pieces as devices hold them: at the end they hold the pieces of the other cut."""

    def piece(cut: Cut, device: int) -> Array:
        return whole[piece_of(whole.shape, Sharding.of("mesh", cut), MESH, device)]

    for old, new, size in product(cuts(2), cuts(2), (2, 4, 8)):
        whole = np.arange(size * 8).reshape(size, 8)
        if any(size % 2 ** len(cut[0]) for cut in (old, new)):
            continue
        found = steps(old, new, whole.shape, MESH)
        assert (found[-1].cut if found else old) == new
        cut = old
        for step in found:
            group = next(g for g in MESH.groups((step.axis,)) if 0 in g)
            if step.move is Move.ALL_GATHER:
                assert step.source is not None
                made = np.concatenate([piece(cut, d) for d in group], step.source)
                assert np.array_equal(made, piece(step.cut, 0)), "parts of a group, side by side, are one part"
            elif step.move is Move.ALL_TO_ALL:
                assert step.source is not None and step.target is not None
                parts = [np.split(piece(cut, d), 2, step.target)[0] for d in group]
                assert np.array_equal(np.concatenate(parts, step.source), piece(step.cut, 0))
            elif step.move is Move.SLICE:
                assert step.target is not None
                assert np.array_equal(np.split(piece(cut, 0), 2, step.target)[0], piece(step.cut, 0))
            else:
                assert sorted(map(sorted, cut)) == sorted(map(sorted, step.cut))
            cut = step.cut


@pytest.mark.parametrize(
    ("old", "new", "shape", "moves"),
    [
        ((("a",), ()), (("a",), ()), (8, 8), []),
        ((("a",), ()), (("a", "b"), ("c",)), (8, 8), [Move.SLICE, Move.SLICE]),
        ((("a", "b"), ()), ((), ()), (8, 8), [Move.ALL_GATHER, Move.ALL_GATHER]),
        ((("a",), ()), ((), ("a",)), (8, 8), [Move.ALL_TO_ALL]),
        ((("a", "b"),), (("b",),), (8,), [Move.PERMUTE, Move.ALL_GATHER]),
        ((("a",), ("b",)), (("b",), ("a",)), (2, 2), [Move.ALL_GATHER, Move.ALL_TO_ALL, Move.SLICE]),
    ],
    ids=["stays", "cut further", "gathered", "exchanged", "turned", "no room"],
)
def test_steps(old: Cut, new: Cut, shape: tuple[int, ...], moves: list[Move]) -> None:
    assert [step.move for step in steps(old, new, shape, MESH)] == moves


def test_ways_that_begin_alike_are_gone_once() -> None:
    """A value that is taken cut along one axis of two, and whole: it is gathered along the other axis once."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=2, "b"=2]>
    func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
        -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
            tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
      %0 = sdy.sharding_constraint %x <@mesh, [{"a"}, {}]> : tensor<8x4xf32>
      %1 = sdy.sharding_constraint %x <@mesh, [{}, {}]> : tensor<8x4xf32>
      %2 = stablehlo.tanh %0 : tensor<8x4xf32>
      %3 = stablehlo.negate %1 : tensor<8x4xf32>
      return %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>
    }""")
    inputs = [np.arange(32, dtype=np.float32).reshape(8, 4)]
    expected = interpret(program, inputs)
    Partition().run(program, PassContext())
    assert sent_by(program) == [("all_gather", 64), ("all_gather", 128)]
    agree(expected, interpret(program, inputs))


def test_what_is_not_cut_evenly_is_refused() -> None:
    program = Program.parse("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<3x4xf32> {
      %0 = stablehlo.negate %x : tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }""")
    with pytest.raises(UnsupportedError, match="is not cut into equal parts"):
        Partition().run(program, PassContext())


def test_parts_of_an_iota_of_floats_round_once() -> None:
    """341 is no number of bf16, but 341 + 1 is."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=3]>
    func.func @main(%x: tensor<1023xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<1023xbf16> {
      %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<1023xbf16>
      %1 = stablehlo.add %x, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<1023xbf16>
      return %1 : tensor<1023xbf16>
    }""")
    zeros = np.zeros(1023, dtype_of("bf16"))
    (expected,) = interpret(program, [zeros])
    Partition().run(program, PassContext())
    assert "sdy.manual_computation" in program.text()
    assert np.array_equal(interpret(program, [zeros])[0], expected)


def test_weights_in_branches_are_operands() -> None:
    """The computation is isolated: what a branch reads comes in."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %p: tensor<i1>) -> tensor<4xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = gcomp.weight @w : tensor<4xf32>
        stablehlo.return %1 : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }""")
    program.weights.add("w", np.arange(4, dtype=np.float32))
    Partition().run(program, PassContext())
    Program.parse(program.text())
    for taken, wanted in ((True, np.arange(4)), (False, np.ones(4))):
        assert np.array_equal(interpret(program, [np.ones(4, np.float32), np.array(taken)])[0], wanted)


def test_computations_for_one_device_go_on() -> None:
    """A computation along all axes is written into the one that holds all."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4x4xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : tensor<4x4xf32>
      %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
          manual_axes={"a"} (%p: tensor<2x4xf32>) {
        %2 = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
            channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          %s = stablehlo.add %l, %r : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
        sdy.return %2 : tensor<2x4xf32>
      } : (tensor<4x4xf32>) -> tensor<2x4xf32>
      return %1 : tensor<2x4xf32>
    }""")
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    Partition().run(program, PassContext())
    program.verify("after partition")
    assert [kind for kind, _ in sent_by(program)] == ["all_reduce", "all_to_all"]
    assert len([op for op in program.ops() if isinstance(op, sdy.ManualComputationOp)]) == 1
    assert np.array_equal(interpret(program, [x])[0], -(x[:2] + x[2:]))
