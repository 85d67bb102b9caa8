"""Groups stay acyclic and in order whatever merges; kernels are priced by what they move."""

from __future__ import annotations

import random
from collections.abc import Hashable
from itertools import product

import pytest

from gcomp.analysis.fusion.dataflow import Dataflow
from gcomp.analysis.fusion.decide import decide
from gcomp.analysis.fusion.groups import Groups
from gcomp.analysis.fusion.kernels import Kernel, Refusal, kernel_of
from gcomp.analysis.machines import machine_named
from gcomp.analysis.work import Nominal
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.testing.generate.program import seeded_program

H200 = machine_named("sm_90")


@pytest.mark.parametrize("number", range(60))
def test_order_survives_any_merges(number: int) -> None:
    """Random merges that `between` allows leave ranks that put each group after what it reads."""
    program = seeded_program(number, 25)
    choice = random.Random(number)
    groups = Groups(Dataflow(program.block, Nominal(program.ranges)))
    for _ in range(20):
        pairs = [
            (a, b) for a in groups.ordered() for b in groups.ordered() if a.rank < b.rank and not a.fixed | b.fixed
        ]
        if not pairs:
            break
        first, last = choice.choice(pairs)
        if (region := groups.between(first, last)) is not None:
            groups.merge(first, last, region)
        ordered = groups.ordered()
        assert len({g.rank for g in ordered}) == len(ordered)
        for group in ordered:
            assert {*groups.sources(group)} == {*group.predecessors}
            assert all(p.rank < group.rank for p in group.predecessors)


def test_ops_of_one_form_are_one_kernel() -> None:
    """What is known of some ops holds for all of their form, wherever they stand."""
    repeated = 0
    for number in range(40):
        program = seeded_program(number, 40)
        flow = Dataflow(program.block, Nominal(program.ranges))
        found: dict[Hashable, Kernel | Refusal] = {}
        for length, start in product((1, 2, 3), range(len(flow.ops))):
            members = [i for i in range(start, min(start + length, len(flow.ops))) if not flow.fixed[i]]
            outputs = [i for i in members if i in flow.returned or set(flow.users[i]) - set(members)]
            if members:
                form = flow.form(members, outputs)
                repeated += form in found
                assert kernel_of(flow, members, outputs, H200) == found.setdefault(
                    form, kernel_of(flow, members, outputs, H200)
                )
    assert repeated > 100


def test_forms_tell_what_is_read_twice() -> None:
    program = Program.parse("""
      func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
        %0 = stablehlo.add %x, %y : tensor<8xf32>
        %1 = stablehlo.add %x, %x : tensor<8xf32>
        %2 = stablehlo.add %y, %y : tensor<8xf32>
        return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
      }""")
    flow = Dataflow(program.block, Nominal(program.ranges))
    mixed, first, second = (flow.form([i], [i]) for i in range(3))
    assert mixed != first == second


def chain(count: int) -> Program:
    lines = [f"  %{i + 1} = stablehlo.negate %{i} : tensor<1024x1024xf32>" for i in range(count)]
    text = "\n".join(["func.func @main(%0: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {", *lines])
    return Program.parse(f"{text}\n  return %{count} : tensor<1024x1024xf32>\n}}")


def test_a_chain_moves_its_ends_only() -> None:
    program = chain(40)
    (group,) = (decisions := decide(program.block, Nominal(program.ranges), H200)).kernels()
    kernel = decisions.kernel(group)
    assert (kernel.kind, kernel.read_bytes, kernel.written_bytes) == ("loop", 4 << 20, 4 << 20)
    assert kernel.flops == 40 << 20


def test_a_limit_on_ops_is_kept() -> None:
    program = chain(40)
    decisions = decide(program.block, Nominal(program.ranges), H200, max_ops=16)
    assert all(len(g.members) <= 16 for g in decisions.kernels())
    assert sum(len(g.members) for g in decisions.kernels()) == 40


def test_a_slice_reads_what_it_keeps() -> None:
    program = Program.parse("""
      func.func @main(%x: tensor<1000x64xf32>) -> tensor<10x64xf32> {
        %0 = stablehlo.slice %x [0:10, 0:64] : (tensor<1000x64xf32>) -> tensor<10x64xf32>
        %1 = stablehlo.exponential %0 : tensor<10x64xf32>
        return %1 : tensor<10x64xf32>
      }""")
    flow = Dataflow(program.block, Nominal(program.ranges))
    kernel = kernel_of(flow, [0, 1], [1], H200)
    assert isinstance(kernel, Kernel)
    assert kernel.read_bytes == kernel.written_bytes == 10 * 64 * 4


@pytest.mark.parametrize("first", [0, 10])
def test_part_of_a_product_is_no_end_of_its_kernel(first: int) -> None:
    """A product's schedule writes the elements that it computes: what takes some of them is another kernel."""
    program = Program.parse(f"""
      func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x30xf32>) -> tensor<8x10xf32> {{
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x30xf32>) -> tensor<8x30xf32>
        %1 = stablehlo.slice %0 [0:8, {first}:{first + 10}] : (tensor<8x30xf32>) -> tensor<8x10xf32>
        return %1 : tensor<8x10xf32>
      }}""")  # noqa: E501
    kernel = kernel_of(Dataflow(program.block, Nominal(program.ranges)), [0, 1], [1], H200)
    assert isinstance(kernel, Refusal)
    assert "does not take the elements" in kernel.reason


def test_verdicts_say_why() -> None:
    program = Program.parse("""
      func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {
        %0 = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
        %3 = stablehlo.subtract %x, %2 : tensor<64x64xf32>
        %4 = stablehlo.reduce(%3 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
        return %4 : tensor<64xf32>
      }""")  # noqa: E501
    refused = [v.reason for v in decide(program.block, Nominal(program.ranges), H200).verdicts if not v.fused]
    assert any("rows" in reason for reason in refused)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="sm_90"):
        machine_named("sm_9")
