"""The search finds the plan that takes the least time: as trying all does, within memory, and as XLA runs it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sharding import SMALL, opened
from gcomp.corpus.store import corpus
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.classes import Classes, classes_of
from gcomp.partitioning.search.devices import KNOWN, Devices, Link, devices_named, mesh_named
from gcomp.partitioning.search.layouts import WHOLE, Network
from gcomp.partitioning.search.planning import Plan, moments, plan_of
from gcomp.partitioning.search.problem import Problem
from gcomp.partitioning.search.solving import Solution
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.shard import Shard, apply
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from tests.support.partitioned import Array, run_partitioned, with_weights_as_inputs
from tests.unit.partitioning.models import transformer

CPU = KNOWN["cpu"]
SLOW = Devices("slow links", 1e11, 1e11, 2e10, 1e10, Link(1e9, 1e-5))

MLP = """
func.func @main(%x: tensor<{b}x{d}xf32>, %up: tensor<{d}x{h}xf32>, %down: tensor<{h}x{d}xf32>) -> tensor<{b}x{d}xf32> {{
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] :
    (tensor<{b}x{d}xf32>, tensor<{d}x{h}xf32>) -> tensor<{b}x{h}xf32>
  %1 = stablehlo.tanh %0 : tensor<{b}x{h}xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] :
    (tensor<{b}x{h}xf32>, tensor<{h}x{d}xf32>) -> tensor<{b}x{d}xf32>
  %3 = stablehlo.add %2, %x : tensor<{b}x{d}xf32>
  return %3 : tensor<{b}x{d}xf32>
}}
"""


def mlp(b: int, d: int, h: int) -> Program:
    """Two products, one after another, and a residual."""
    return Program.parse(MLP.format(b=b, d=d, h=h))


def best_of_all(program: Program, mesh: str, devices: Devices, memory: float) -> float:
    """The least time of all plans that fit, each tried."""
    problem = Problem.of(program, Network(mesh_named(mesh), devices))
    apart = Classes({n: i for i, n in enumerate(problem.nodes)}, [1] * len(problem.nodes), problem.nodes, {})
    best, full = np.inf, moments(problem)
    for chosen in product(*[range(len(node.choices)) for node in problem.nodes]):
        plan = Plan(problem, apart, Solution(chosen, 0.0, 0.0, 0))
        if plan.seconds < best and all(plan.memory(live) <= memory for live in full):
            best = plan.seconds
    return best


@pytest.mark.parametrize(
    ("program", "memory"),
    [(mlp(16, 8, 8), 1e9), (mlp(1, 64, 256), 1e9), (mlp(16, 8, 8), 1200), (mlp(4, 64, 64), 20_000)],
    ids=["many rows", "one row", "little memory", "large weights"],
)
@pytest.mark.parametrize("devices", [CPU, SLOW], ids=["fast", "slow"])
def test_no_plan_takes_less(program: Program, memory: float, devices: Devices) -> None:
    expected = best_of_all(program, "a=2", devices, memory)
    plan = plan_of(program, mesh_named("a=2"), devices, memory=memory, gap=0.0)
    assert plan.seconds == pytest.approx(expected, rel=1e-6)
    assert plan.solution.seconds == pytest.approx(plan.seconds), "the integer program counts what is sent"
    assert plan.solution.bound <= plan.seconds * (1 + 1e-6) and plan.peak <= memory


def test_many_rows_are_cut_and_nothing_is_sent() -> None:
    plan = plan_of(transformer(2, batch=8), mesh_named("data=2,model=4"), CPU)
    assert plan.communicating == 0 and plan.layout(plan.problem.program.block.args[-1]) == (0, 0)


def test_with_one_row_weights_are_cut_and_sums_are_sent() -> None:
    """Megatron's way: columns of the first weight, rows of the second, and one sum at the end."""
    plan = plan_of(mlp(1, 1024, 4096), mesh_named("model=4"), Devices("d", 1e12, 1e12, 1e10, 1e10, Link(1e10, 1e-6)))
    _, up, down = plan.problem.program.block.args
    assert (plan.layout(up), plan.layout(down)) == ((1,), (0,))
    assert {m.sent.kind for m in plan.messages()} <= {"all_reduce", "reduce_scatter", "all_gather"}


def test_little_memory_cuts_weights_that_are_gathered() -> None:
    """FSDP's way: each device keeps a part of the weights."""
    program = mlp(4096, 256, 1024)
    mesh, weights = mesh_named("data=4"), 2 * 4 * 256 * 1024
    free = plan_of(program, mesh, CPU)
    assert free.layout(program.block.args[1]) == (WHOLE,) and free.communicating == 0
    tight = plan_of(program, mesh, CPU, memory=free.peak - 0.5 * weights)
    assert tight.layout(program.block.args[1]) != (WHOLE,) and tight.peak <= free.peak - 0.5 * weights
    assert any(m.sent.kind == "all_gather" and not m.is_sum for m in tight.messages())


def test_layers_that_repeat_are_solved_once() -> None:
    few, many = (plan_of(transformer(n, batch=2), mesh_named("data=2,model=2"), CPU) for n in (8, 12))
    assert len(few.classes.counts) == len(many.classes.counts) < len(many.problem.nodes) / 2
    assert few.solution.variables == many.solution.variables
    assert many.gap <= 0.02


def test_classes_do_not_count_alike_what_is_not() -> None:
    problem = Problem.of(mlp(16, 8, 8), Network(mesh_named("a=2"), CPU))
    classes = classes_of(problem)
    assert len({classes.of[n] for n in problem.nodes}) == len(problem.nodes)


def test_restricted_plans_are_never_better() -> None:
    program, mesh = transformer(1, batch=2), mesh_named("data=2,model=2")
    best = plan_of(program, mesh, CPU, gap=0.0)

    for kind in BY_HAND.values():
        other = plan_of(program, mesh, CPU, kind=kind, weights=program.block.args[:-1], gap=0.0)
        assert other.seconds >= best.seconds * (1 - 1e-9)


def test_plans_by_hand_are_of_their_kind() -> None:
    program, mesh = transformer(1, batch=8), mesh_named("data=2,model=2")
    weights = program.block.args[:-1]
    plans = {n: plan_of(program, mesh, CPU, kind=k, weights=weights) for n, k in BY_HAND.items()}
    down, _, o, q, up, _ = ({n: p.layout(w) for n, p in plans.items()} for w in weights)
    assert {layouts["data parallel"] for layouts in (down, o, q, up)} == {(WHOLE, WHOLE)}
    assert [layouts["Megatron"][1] for layouts in (q, o, up, down)] == [1, 0, 1, 0]
    assert WHOLE not in q["fully sharded"]
    assert plans["data parallel"].communicating == 0 < plans["Megatron"].communicating
    assert plans["fully sharded"].peak < plans["data parallel"].peak


def test_alternatives_cost_no_less() -> None:
    plan = plan_of(mlp(16, 64, 256), mesh_named("a=2,b=2"), CPU, gap=0.0)
    for node in plan.problem.nodes:
        assert all(more >= -1e-12 for _, more in plan.alternatives(node))


def test_what_has_no_elements_stays_whole() -> None:
    program = Program.parse("""func.func @main(%x: tensor<0x4xf32>, %y: tensor<4x4xf32>) -> tensor<0x4xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
        (tensor<0x4xf32>, tensor<4x4xf32>) -> tensor<0x4xf32>
      return %0 : tensor<0x4xf32>
    }""")
    plan = plan_of(program, mesh_named("a=2"), CPU)
    assert plan.layout(program.block.args[0]) == (WHOLE,)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no plan was found that fits"):
        plan_of(mlp(16, 8, 8), mesh_named("a=2"), CPU, memory=10)


def test_devices_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rack.toml"
    path.write_text(
        "[device]\nflops = 1e12\nbandwidth = 1e11\nmemory = 1e9\n[link]\nbandwidth = 1e10\nlatency = 1e-6\n"
        "[links.data]\nbandwidth = 1e9\nlatency = 1e-4\n"
    )
    found = devices_named(str(path))
    assert (found.name, found.narrow_flops, found.link_of("data")) == ("rack", 1e12, Link(1e9, 1e-4))
    assert found.link_of("model") == Link(1e10, 1e-6)
    path.write_text("[device]\nflops = 0\n")
    with pytest.raises(UsageError, match="flops is 0"):
        devices_named(str(path))
    with pytest.raises(UsageError, match="did you mean 'h100'"):
        devices_named("h10")


@pytest.mark.parametrize("text", ["", "data", "data=0", "a=2,a=2", "a=x"])
def test_what_is_no_mesh_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no mesh"):
        mesh_named(text)


def test_the_pass_says_how_values_lie() -> None:
    program = mlp(16, 64, 256)
    assert Shard(mesh="data=2,model=2").run(program, PassContext())
    program.verify("after shard")
    assert all(s is not None for s in (*sdy.argument_shardings(program.main), *sdy.result_shardings(program.main)))
    assert not Shard(mesh="data=4").run(program, PassContext()), "a program that has shardings stays as it is"


@pytest.mark.slow
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
@pytest.mark.parametrize("mesh", ["data=2,model=4", "model=8", "a=2,b=2,c=2"])
@pytest.mark.parametrize("batch", [1, 8])
def test_plans_run_on_virtual_devices(mesh: str, batch: int, gradients: bool, tmp_path: Path) -> None:
    program = transformer(2, batch=batch, gradients=gradients)
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal(tuple(int(str(s)) for s in p.shape)).astype(np.float32) * 0.2 for p in program.inputs()
    ]
    expected = interpret(program, inputs)
    Shard(mesh=mesh).run(program, PassContext())
    found, _ = run_partitioned(program, inputs, tmp_path)
    agree(expected, found)


def agree(expected: Sequence[Array], found: Sequence[Array]) -> None:
    """Parts of sums are added in another order, and XLA's functions round in other ways."""
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * np.abs(a).max(initial=0.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["onnx/clip", "onnx/unet", "torch/vit", "torch/encoder", "jax/experts", "jax/adam_step"]
)
def test_plans_of_the_corpus_run_on_virtual_devices(name: str, tmp_path: Path) -> None:
    program = opened(corpus([name]).members[0])
    inputs = sample_inputs(program, 0)
    expected = interpret(program, inputs)
    weights = with_weights_as_inputs(program)
    plan = plan_of(program, mesh_named("data=2,model=4"), SMALL)
    apply(plan)
    found, counts = run_partitioned(program, [*inputs, *weights], tmp_path)
    agree(expected, found)
    sent = {m.sent.kind for m in plan.messages()}
    assert not sent or counts.total() > 0
