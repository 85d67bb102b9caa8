"""What XLA takes on each device is predicted from the partitioned program."""

from __future__ import annotations

import pytest

import gcomp
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from tests.support.device_memory import predicted_memory
from tests.support.devices import on_devices

GATHERED = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    %w: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = sdy.sharding_constraint %w <@mesh, [{}, {}]> : tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] :
    (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.tanh %1 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}"""


def partitioned() -> Program:
    program = Program.parse(GATHERED)
    Partition().run(program, PassContext())
    return program


def figure() -> int:
    """XLA's, of each device."""
    model = gcomp.compile(partitioned(), target="xla:cpu", pipeline="")
    memory = model._executor.memory({})  # pyright: ignore
    return memory["arguments"] + memory["outputs"] + memory["temporaries"] - memory["shared"]


def test_what_is_gathered_lies_beside_its_part() -> None:
    half, whole = 64 * 32 * 4, 64 * 64 * 4
    assert predicted_memory(partitioned()) == 2 * half + half + whole + half, "inputs, result, gathered, product"


@pytest.mark.slow
def test_it_is_near_the_figure() -> None:
    """XLA writes the result over the product besides, which is not known."""
    assert predicted_memory(partitioned()) == pytest.approx(on_devices(figure) + 64 * 32 * 4, rel=0.01)
