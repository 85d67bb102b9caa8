"""What XLA takes on each device is predicted from the partitioned program."""

from __future__ import annotations

import pytest

import gcomp
from benchmarks.sharding import SMALL
from gcomp.ir.program import Program
from gcomp.partitioning.memory import predicted_memory
from gcomp.partitioning.memory.graph import LINE
from gcomp.partitioning.memory.predicted import Buffer
from gcomp.partitioning.memory.predicted import _height as height  # pyright: ignore[reportPrivateUsage]
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import plan_of
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply
from tests.support.devices import on_devices
from tests.unit.partitioning.models import transformer

HALF, WHOLE = 64 * 32 * 4, 64 * 64 * 4
ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}'
SQUARE = "tensor<64x64xf32>"

GATHERED = f"""func.func @main(%x: {SQUARE} {ROWS}, %w: {SQUARE} {ROWS}) -> ({SQUARE} {ROWS}) {{
  %0 = sdy.sharding_constraint %w <@mesh, [{{}}, {{}}]> : {SQUARE}
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %2 = stablehlo.tanh %1 : {SQUARE}
  return %2 : {SQUARE}
}}"""

CHAIN = f"""func.func @main(%x: {SQUARE} {ROWS}, %w: {SQUARE}) -> ({SQUARE} {ROWS}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  return %2 : {SQUARE}
}}"""

SUMMED = f"""func.func @main(%x: {SQUARE} {ROWS}, %w: {SQUARE}, %b: tensor<64xf32>) -> (tensor<64x1xf32> {ROWS}) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}
  %1 = OP %0 : {SQUARE}
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1]
    : ({SQUARE}, tensor<f32>) -> tensor<64xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<64xf32>) -> {SQUARE}
  %4 = stablehlo.multiply %1, %3 : {SQUARE}
  %5 = stablehlo.dot_general %4, %b, contracting_dims = [1] x [0] : ({SQUARE}, tensor<64xf32>) -> tensor<64xf32>
  %6 = stablehlo.reshape %5 : (tensor<64xf32>) -> tensor<64x1xf32>
  return %6 : tensor<64x1xf32>
}}"""

IMAGES = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}, {}]>}'
CONVOLVED = f"""func.func @main(%x: tensor<4x8x16x16xf32> {IMAGES}, %w: tensor<16x8x3x3xf32>)
    -> (tensor<4x16x16x16xf32> {IMAGES}) {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<4x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<4x16x16x16xf32>
  return %0 : tensor<4x16x16x16xf32>
}}"""

LOOP = f"""func.func @main(%x: {SQUARE} {ROWS}, %w: {SQUARE}) -> ({SQUARE} {ROWS}) {{
  %c = stablehlo.constant dense<0> : tensor<i64>
  %1:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i64>, {SQUARE}
  cond {{
    %n = stablehlo.constant dense<4> : tensor<i64>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<1> : tensor<i64>
    %j = stablehlo.add %i, %o : tensor<i64>
    BODY
    stablehlo.return %j, %s : tensor<i64>, {SQUARE}
  }}
  return %1#1 : {SQUARE}
}}"""
PRODUCT = f"%s = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}"
TANH = f"%s = stablehlo.tanh %a : {SQUARE}"

EXCHANGED = """func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}"""

PREDICTED = {
    # What is gathered lies beside its part; the product lies where the result will.
    "gathered": (GATHERED, 3 * HALF + WHOLE),
    # Of three products in a row, the first lies where the last will, and the second elsewhere.
    "chain": (CHAIN, HALF + WHOLE + HALF + HALF),
    # The product is read twice, and what is multiplied is written over it.
    "cheap": (SUMMED.replace("OP", "stablehlo.negate"), HALF + WHOLE + 256 + 128 + HALF),
    # So are the function's values, which are not computed twice.
    "costly": (SUMMED.replace("OP", "stablehlo.tanh"), HALF + WHOLE + 256 + 128 + HALF),
    # Images with features last, where the result will lie; kernels so, and what is computed, in that order.
    "convolved": (CONVOLVED, 16384 + 4608 + 32768 + 4608 + 32768),
    # What is gathered, and a product that is copied into its place; the table of what the loop has.
    "loop of products": (LOOP.replace("BODY", PRODUCT), HALF + WHOLE + HALF + 2 * WHOLE + 64),
    # What is written over needs no copy; the number of the step, and the table of what the loop has.
    "loop in place": (LOOP.replace("BODY", TANH), HALF + WHOLE + HALF + WHOLE + 2 * LINE),
    # What is exchanged, two parts before and two after, and the table of these.
    "exchanged": (EXCHANGED, 128 + 128 + 5 * LINE),
}


def partitioned(text: str) -> Program:
    program = Program.parse(f'sdy.mesh @mesh = <["a"=2]>\n{text}')
    Partition().run(program, PassContext())
    return program


def figure(text: str) -> int:
    """XLA's, of each device."""
    return figure_of(partitioned(text))


def figure_of(program: Program) -> int:
    model = gcomp.compile(program, target="xla:cpu", pipeline="")
    memory = model._executor.memory({})  # pyright: ignore
    return memory["arguments"] + memory["outputs"] + memory["temporaries"] - memory["shared"]


@pytest.mark.parametrize("name", PREDICTED)
def test_what_is_predicted(name: str) -> None:
    text, expected = PREDICTED[name]
    assert predicted_memory(partitioned(text)) == expected


def test_how_long_a_buffer_stays_is_counted_in_others_that_come_and_go() -> None:
    """The last of four buffers, of which two lie side by side at any time, is put first, and then there are three
    places: by numbers of kernels the second would stay as long, and two would do."""
    big = [Buffer(2 * LINE, 1, 2), Buffer(2 * LINE, 2, 4), Buffer(2 * LINE, 4, 6), Buffer(2 * LINE, 6, 8)]
    small = [Buffer(LINE, 0, 1), Buffer(LINE, 7, 7)]
    assert height([*big, *small]) == 6 * LINE


def plan_beside_figure(mesh: str, kind: str, batch: int) -> tuple[int, int]:
    """What is predicted for a plan of a transformer's gradients, and XLA's figure."""
    program = transformer(3, batch=batch, gradients=True)
    apply(plan_of(program, mesh_named(mesh), SMALL, kind=BY_HAND.get(kind)))
    Partition().run(program, PassContext())
    return predicted_memory(program), figure_of(program)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["the search", "Megatron", "fully sharded"])
def test_plans_of_a_transformer_are_near_the_figure(kind: str) -> None:
    predicted, figure = on_devices(plan_beside_figure, "data=2,model=4", kind, 8)
    assert predicted == pytest.approx(figure, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", PREDICTED)
def test_it_is_near_the_figure(name: str) -> None:
    text, _ = PREDICTED[name]
    assert predicted_memory(partitioned(text)) == pytest.approx(on_devices(figure, text), rel=0.02, abs=LINE)
