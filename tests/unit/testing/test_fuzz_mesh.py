"""The judge of programs for several devices: what it generates runs, and what is wrong is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.lowering.xla.lower import lower
from gcomp.partitioning.exchange import Exchange
from gcomp.partitioning.local import Local
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.door import Seen
from gcomp.testing.fuzz.mesh import COLLECTIVES, OnMesh
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.sharded import sharded_program

LOCKSTEP = [n for n in range(90) if "xla" not in OnMesh().topic(n)]


def failures(numbers: list[int], size: int = 8) -> tuple[Counter[Any], Coverage]:
    door, coverage, found = OnMesh(), Coverage(), Counter[Any]()
    for number in numbers:
        failure = door.attempt(number, size, coverage)
        if failure is not None:
            found[failure.key[1]] += 1
    return found, coverage


def test_programs_verify_and_use_all_collectives() -> None:
    seen: Counter[str] = Counter()
    for number in range(200):
        program = sharded_program(Seeded(number), 4)
        program.verify("as generated")
        if number < 20:
            assert Program.parse(program.text()).text() == program.text()
        seen.update(op.name for op in program.ops())
    assert {f"stablehlo.{name}" for name in COLLECTIVES} <= {*seen}, seen
    assert seen["sdy.sharding_constraint"] > 10


def test_parts_compute_what_the_whole_does() -> None:
    found, coverage = failures(LOCKSTEP[:60])
    assert not found
    assert coverage.unsupported.total() < 10, "most programs are cut evenly"


def wrong_reduction(self: Exchange, value: Any, combine: str, axis: str) -> Any:
    return value


def wrong_place(self: Exchange, axes: Any) -> Any:
    return self.b.constant(0, "i64")


def wrong_iota(self: Local, tensor: int, dim: int) -> Any:
    return self.exchange.b.constant(0, "i64")


@pytest.fixture(scope="module")
def programs() -> dict[int, Program]:
    """Made before anything is wrong."""
    return {number: OnMesh().program(number, 8) for number in LOCKSTEP}


@pytest.mark.parametrize(
    ("of", "name", "wrong"),
    [(Exchange, "all_reduce", wrong_reduction), (Exchange, "place", wrong_place), (Local, "offset", wrong_iota)],
    ids=["sums that are not added", "the first part for all", "places that do not count"],
)
def test_wrong_twins_are_found(
    of: type, name: str, wrong: Callable[..., Any], programs: dict[int, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OnMesh, "program", lambda self, number, size: programs[number].clone())
    monkeypatch.setattr(of, name, wrong)
    assert any(OnMesh().attempt(number, 8, Coverage()) for number in LOCKSTEP)


@pytest.mark.slow
def test_xla_computes_what_the_reference_does() -> None:
    found, _ = failures([6, 13, 20, 27])
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["a", "b"])
@pytest.mark.parametrize("at", [-3, 5, 200])
def test_updates_that_begin_outside_move_in(axis: str, at: int) -> None:
    """XLA's partitioner leaves them out."""
    cut = '{"a"}, {}' if axis == "a" else '{}, {"a"}'
    size = "1x4" if axis == "a" else "4x1"
    placed = f"{{sdy.sharding = #sdy.sharding<@mesh, [{cut}]>}}"
    program = Program.parse(f"""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4x4xi32> {placed}, %u: tensor<{size}xi32>, %i: tensor<i64>)
        -> (tensor<4x4xi32> {placed}) {{
      %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
        : (tensor<4x4xi32>, tensor<{size}xi32>, tensor<i64>, tensor<i64>) -> tensor<4x4xi32>
      return %0 : tensor<4x4xi32>
    }}""")
    update = np.full([int(n) for n in size.split("x")], -1, np.int32)
    assert OnMesh()._by_xla(program, [], [np.zeros((4, 4), np.int32), update, np.int64(at)]) is None  # pyright: ignore


@pytest.mark.slow
@pytest.mark.parametrize("text", ["f32", "bf16"])
@pytest.mark.parametrize("fold", ["maximum", "minimum"])
def test_nan_comes_through_between_devices(text: str, fold: str) -> None:
    """XLA's collectives on processors forget it."""
    program = Program.parse(f"""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<8x{text}>) -> tensor<4x{text}> {{
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a"}}]>] out_shardings=[<@mesh, [{{}}]>]
          manual_axes={{"a"}} (%p: tensor<4x{text}>) {{
        %1 = "stablehlo.all_reduce"(%p) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
            channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{
        ^bb0(%l: tensor<{text}>, %r: tensor<{text}>):
          %s = stablehlo.{fold} %l, %r : tensor<{text}>
          stablehlo.return %s : tensor<{text}>
        }}) : (tensor<4x{text}>) -> tensor<4x{text}>
        sdy.return %1 : tensor<4x{text}>
      }} : (tensor<8x{text}>) -> tensor<4x{text}>
      return %0 : tensor<4x{text}>
    }}""")
    x = np.array([np.nan, 1, -np.inf, -2, 3, np.nan, -np.nan, -5], np.float32).astype(dtype_of(text))
    assert OnMesh()._by_xla(program, [], [x]) is None  # pyright: ignore


REPEATED = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %i: tensor<f32>) -> tensor<6xf32> {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.multiply across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}"""  # noqa: E501


def test_init_values_are_taken_once() -> None:
    """Each device folds its part; one of them begins with the init value."""
    door, x = OnMesh(), np.full((4, 6), 2, np.float32)
    assert door.judge(Program.parse(REPEATED), [x, np.float32(3)], 0, Seen()) is None


def test_axes_of_one_device_cut_once() -> None:
    """They have no parts, and still cut one dimension of a value alone."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=1, "b"=2]>
    func.func @main(%x: tensor<8x4x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}, {"a"}]>})
        -> tensor<8x4x1xf32> {
      %0 = stablehlo.negate %x : tensor<8x4x1xf32>
      %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}, {}]>]>} : tensor<8x4x1xf32>
      return %1 : tensor<8x4x1xf32>
    }""")
    assert OnMesh().judge(program, [np.ones((8, 4, 1), np.float32)], 1, Seen()) is None


NARROW = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %i: tensor<3x1xi16>) -> tensor<3x2xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}>
    : (tensor<4x2xf32>, tensor<3x1xi16>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}"""  # noqa: E501


def test_narrow_indices_are_widened_for_xla() -> None:
    """XLA's partitioner ends the process for indices of 16 bits."""
    text = next(iter(lower(Program.parse(NARROW)).texts.values()))
    assert "tensor<3x1xi32>" in text and hlo.ConvertOp.name in text


CUT_WRONGLY = {
    "groups of features under a kernel of one element": (
        """(%x: tensor<2x8x4xf32>, %w: tensor<8x2x1xf32>)
            -> (tensor<2x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>}) {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
            {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
            : (tensor<2x8x4xf32>, tensor<8x2x1xf32>) -> tensor<2x8x4xf32>
        return %0 : tensor<2x8x4xf32>""",
        ((2, 8, 4), (8, 2, 1)),
    ),
    "groups of a batch": (
        """(%x: tensor<2x2xf32>) -> tensor<1x2xf32> {
        %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[i, o]->[b, f], window = {}
            {batch_group_count = 2 : i64, feature_group_count = 1 : i64,
             sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
            : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
        return %0 : tensor<1x2xf32>""",
        ((2, 2),),
    ),
    "padding between, and less at an end": (
        """(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>) -> tensor<3xf32> {
        %0 = stablehlo.pad %x, %z, low = [-1], high = [0], interior = [2]
            : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>""",
        ((2,), ()),
    ),
    "padding between one element, and less at an end": (
        """(%x: tensor<1xf32>, %z: tensor<f32>)
            -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
        %0 = stablehlo.pad %x, %z, low = [-1], high = [2], interior = [2]
            : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>""",
        ((1,), ()),
    ),
    "windows over such padding": (
        """(%x: tensor<4xf32>, %z: tensor<f32>)
            -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
        %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 3>, base_dilations = array<i64: 2>,
            window_dilations = array<i64: 2>, padding = dense<[[-1, 0]]> : tensor<1x2xi64>}> ({
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          %s = stablehlo.add %l, %r : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>""",
        ((4,), ()),
    ),
    "a kernel as great as a part": (
        """(%x: tensor<1x1x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"a"}]>}, %w: tensor<1x1x4xf32>)
            -> tensor<1x1x3xf32> {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2]}
            {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x1x8xf32>, tensor<1x1x4xf32>) -> tensor<1x1x3xf32>
        return %0 : tensor<1x1x3xf32>""",
        ((1, 1, 8), (1, 1, 4)),
    ),
    "one window, and a step": (
        """(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>) -> tensor<1xf32> {
        %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 9>,
            padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          %s = stablehlo.add %l, %r : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
        return %0 : tensor<1xf32>""",
        ((2,), ()),
    ),
    "a Fourier transform of rows that are gathered": (
        """(%x: tensor<3x4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>})
            -> (tensor<3x4x4xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
        %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<3x4x6xf32>) -> tensor<3x4x4xcomplex<f32>>
        %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"a"}, {}]> : tensor<3x4x4xcomplex<f32>>
        return %1 : tensor<3x4x4xcomplex<f32>>""",
        ((3, 4, 6),),
    ),
    "a fold that no collective has": (
        """(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%l: tensor<f32>, %r: tensor<f32>) {
          stablehlo.return %l : tensor<f32>
        }
        return %0 : tensor<f32>""",
        ((4,), ()),
    ),
    "a slice of one element, with a longer step than a part": (
        """(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<4x1xf32> {
        %0 = stablehlo.slice %x [0:4, 1:2:3] : (tensor<4x2xf32>) -> tensor<4x1xf32>
        return %0 : tensor<4x1xf32>""",
        ((4, 2),),
    ),
    "a slice of one element, that ends behind the next": (
        """(%x: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x1xf32> {
        %0 = stablehlo.slice %x [0:2, 0:2:3] : (tensor<2x2xf32>) -> tensor<2x1xf32>
        return %0 : tensor<2x1xf32>""",
        ((2, 2),),
    ),
    "a convolution without an image": (
        """(%x: tensor<2x2xf32>, %w: tensor<2x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
            -> tensor<2x1xf32> {
        %z = stablehlo.constant dense<1.0> : tensor<f32>
        %p = stablehlo.pad %x, %z, low = [0, -2], high = [0, 2], interior = [0, 0]
            : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
        %0 = stablehlo.convolution(%p, %w) dim_numbers = [b, f]x[i, o]->[b, f], window = {}
            {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
        return %0 : tensor<2x1xf32>""",
        ((2, 2), (2, 1)),
    ),
    "groups of features of which devices have parts": (
        """(%x: tensor<1x2x1x2xf32>,
            %w: tensor<2x1x1x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {"a", "b"}]>})
            -> tensor<1x4x1x4xf32> {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {stride = [1, 1], pad = [[1, 2], [0, 0]]}
            {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
            : (tensor<1x2x1x2xf32>, tensor<2x1x1x4xf32>) -> tensor<1x4x1x4xf32>
        return %0 : tensor<1x4x1x4xf32>""",
        ((1, 2, 1, 2), (2, 1, 1, 4)),
    ),
    "sources of windows that reach into other parts": (
        """(%x: tensor<1x4xf32>, %s: tensor<1x3xf32>, %z: tensor<f32>) -> tensor<1x4xf32> {
        %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 1, 2>,
            window_strides = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %g : tensor<i1>
        }, {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %t = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %t : tensor<f32>
        }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
          : (tensor<1x4xf32>, tensor<1x3xf32>, tensor<f32>) -> tensor<1x4xf32>
        return %0 : tensor<1x4xf32>""",
        ((1, 4), (1, 3), ()),
    ),
    "sources of windows over what is cropped": (
        """(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}, %s: tensor<5xf32>, %z: tensor<f32>)
            -> tensor<6xf32> {
        %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 1>,
            window_strides = array<i64: 1>, padding = dense<[[0, -1]]> : tensor<1x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %g : tensor<i1>
        }, {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %t = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %t : tensor<f32>
        }) : (tensor<6xf32>, tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
        return %0 : tensor<6xf32>""",
        ((6,), (5,), ()),
    ),
    "what is concatenated, and written into": (
        """(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %i: tensor<1xf32>, %u: tensor<f32>)
            -> tensor<6xf32> {
        %j = stablehlo.convert %i : (tensor<1xf32>) -> tensor<1xi32>
        %c = stablehlo.concatenate %x, %x, %x, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}
            : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<6xf32>
        %0 = "stablehlo.scatter"(%c, %j, %u) <{scatter_dimension_numbers =
            #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          stablehlo.return %r : tensor<f32>
        }) : (tensor<6xf32>, tensor<1xi32>, tensor<f32>) -> tensor<6xf32>
        return %0 : tensor<6xf32>""",
        ((2,), (1,), ()),
    ),
    "an update from the tensor that it updates": (
        """(%x: tensor<2x2x1x3x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}, {}, {}, {}]>}, %v: tensor<4xf32>,
            %i: tensor<1xf32>) -> (tensor<2x2x1x3x1xui16>, tensor<4xf32>) {
        %0 = stablehlo.convert %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}, {"a", "b"}, {}]>]>}
            : (tensor<2x2x1x3x1xf32>) -> tensor<2x2x1x3x1xui16>
        %j = stablehlo.convert %i : (tensor<1xf32>) -> tensor<1xi32>
        %k = stablehlo.reshape %j : (tensor<1xi32>) -> tensor<i32>
        %s = stablehlo.dynamic_slice %v, %k, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
        %l = stablehlo.constant dense<1> : tensor<i32>
        %1 = stablehlo.dynamic_update_slice %v, %s, %l : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
        return %0, %1 : tensor<2x2x1x3x1xui16>, tensor<4xf32>""",
        ((2, 2, 1, 3, 1), (4,), (1,)),
    ),
    "a kernel that is cut, over an image that is spread apart": (
        """(%x: tensor<1x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>},
            %w: tensor<2x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"a"}]>}) -> tensor<1x2x2xf32> {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[i, o, 0]->[b, 0, f],
            window = {stride = [1], pad = [[0, 0]], lhs_dilate = [2]}
            {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x2x2xf32>, tensor<2x2x2xf32>) -> tensor<1x2x2xf32>
        return %0 : tensor<1x2x2xf32>""",
        ((1, 2, 2), (2, 2, 2)),
    ),
    "one element, spread apart": (
        """(%x: tensor<1xf32>, %z: tensor<f32>) -> tensor<3xf32> {
        %0 = stablehlo.pad %x, %z, low = [0], high = [2], interior = [2]
            : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<3xf32>
        return %1 : tensor<3xf32>""",
        ((1,), ()),
    ),
    "elements spread apart, as many on each device": (
        """(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %z: tensor<f32>)
            -> (tensor<9x4xf32>, tensor<4x9xi32>) {
        %0 = stablehlo.pad %x, %z, low = [0, 0], high = [0, 2], interior = [0, 1]
            : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x9xf32>
        %1 = stablehlo.sine %0 : tensor<4x9xf32>
        %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x9xf32>) -> tensor<9x4xf32>
        %3 = stablehlo.convert %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>}
            : (tensor<4x9xf32>) -> tensor<4x9xi32>
        return %2, %3 : tensor<9x4xf32>, tensor<4x9xi32>""",
        ((4, 4), ()),
    ),
    "windows over elements that are spread apart": (
        """(%x: tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %z: tensor<f32>) -> tensor<2x16xf32> {
        %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1>,
            base_dilations = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x16xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"a"}]> : tensor<2x16xf32>
        %2 = stablehlo.negate %1 : tensor<2x16xf32>
        return %2 : tensor<2x16xf32>""",
        ((2, 8), ()),
    ),
    "a dynamic slice of the first elements beside all of its operand": (
        """(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>)
            -> (tensor<f32>, tensor<1xf32>) {
        %i = stablehlo.constant dense<0> : tensor<i32>
        %0 = stablehlo.dynamic_slice %x, %i, sizes = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}
            : (tensor<2xf32>, tensor<i32>) -> tensor<1xf32>
        %1, %2 = stablehlo.reduce(%x init: %z), (%x init: %z) across dimensions = [0]
          : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
          reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
          stablehlo.return %a, %c : tensor<f32>, tensor<f32>
        }
        return %1, %0 : tensor<f32>, tensor<1xf32>""",
        ((2,), ()),
    ),
    "folds of which one looks at its own elements": (
        """(%x: tensor<1x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"a"}]>}, %z: tensor<f32>)
            -> tensor<1x4xf32> {
        %0, %1 = stablehlo.reduce(%x init: %z), (%x init: %z) across dimensions = [2]
          : (tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<f32>, tensor<f32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
          reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
          %f = stablehlo.constant dense<false> : tensor<i1>
          %s = stablehlo.select %f, %a, %b : tensor<i1>, tensor<f32>
          %k = stablehlo.constant dense<0.0> : tensor<f32>
          stablehlo.return %s, %k : tensor<f32>, tensor<f32>
        }
        return %0 : tensor<1x4xf32>""",
        ((1, 4, 2), ()),
    ),
    "a convolution into wider elements": (
        """(%x: tensor<1x1x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"b"}, {"a"}]>},
            %w: tensor<1x1x1x1xf32>) -> tensor<1x1x3x1xf64> {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[0, 1, o, i]->[b, 0, 1, f],
            window = {stride = [1, 1], pad = [[-1, 0], [0, 1]]}
            {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x1xf64>
        return %0 : tensor<1x1x3x1xf64>""",
        ((1, 1, 2, 2), (1, 1, 1, 1)),
    ),
    "a slice beside all of its operand": (
        """(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>})
            -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
        %z = stablehlo.constant dense<0.0> : tensor<2xf32>
        %s = stablehlo.slice %x [0:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}
            : (tensor<8xf32>) -> tensor<6xf32>
        %0 = stablehlo.concatenate %s, %z, dim = 0 : (tensor<6xf32>, tensor<2xf32>) -> tensor<8xf32>
        return %0, %x : tensor<8xf32>, tensor<8xf32>""",
        ((8,),),
    ),
    "what is cropped in a branch": (
        """(%x: tensor<1x2xf32>, %z: tensor<f32>) -> tensor<1x2xf32> {
        %f = stablehlo.compare GT, %z, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %0 = "stablehlo.if"(%f) ({
          stablehlo.return %x : tensor<1x2xf32>
        }, {
          %1 = stablehlo.pad %x, %z, low = [0, -2], high = [0, 2], interior = [0, 0]
              : (tensor<1x2xf32>, tensor<f32>) -> tensor<1x2xf32>
          stablehlo.return %1 : tensor<1x2xf32>
        }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : (tensor<i1>) -> tensor<1x2xf32>
        return %0 : tensor<1x2xf32>""",
        ((1, 2), ()),
    ),
    "folds of which one takes an element": (
        """(%x: tensor<2x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %z: tensor<f32>) -> tensor<1xf32> {
        %y = stablehlo.add %x, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<2x1xf32>
        %0, %1 = stablehlo.reduce(%y init: %z), (%y init: %z) across dimensions = [0]
          : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<f32>, tensor<f32>) -> (tensor<1xf32>, tensor<1xf32>)
          reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
          stablehlo.return %a, %c : tensor<f32>, tensor<f32>
        }
        return %0 : tensor<1xf32>""",
        ((2, 1), ()),
    ),
    "bits that devices fold": (
        """(%x: tensor<4x4xf32>) -> tensor<4x2xi32> {
        %i = stablehlo.convert %x : (tensor<4x4xf32>) -> tensor<4x4xi32>
        %0 = sdy.manual_computation(%i) in_shardings=[<@mesh, [{}, {"a"}]>] out_shardings=[<@mesh, [{}, {}]>]
            manual_axes={"a"} (%p: tensor<4x2xi32>) {
          %1 = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
          ^bb0(%l: tensor<i32>, %r: tensor<i32>):
            %s = stablehlo.xor %l, %r : tensor<i32>
            stablehlo.return %s : tensor<i32>
          }) : (tensor<4x2xi32>) -> tensor<4x2xi32>
          sdy.return %1 : tensor<4x2xi32>
        } : (tensor<4x4xi32>) -> tensor<4x2xi32>
        return %0 : tensor<4x2xi32>""",
        ((4, 4),),
    ),
    "bits that devices fold and cut": (
        """(%x: tensor<4x4xf32>) -> tensor<4x2xi32> {
        %i = stablehlo.convert %x : (tensor<4x4xf32>) -> tensor<4x4xi32>
        %0 = sdy.manual_computation(%i) in_shardings=[<@mesh, [{}, {"a"}]>] out_shardings=[<@mesh, [{"a"}, {}]>]
            manual_axes={"a"} (%p: tensor<4x2xi32>) {
          %1 = "stablehlo.reduce_scatter"(%p) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
              scatter_dimension = 0 : i64}> ({
          ^bb0(%l: tensor<i32>, %r: tensor<i32>):
            %s = stablehlo.or %l, %r : tensor<i32>
            stablehlo.return %s : tensor<i32>
          }) : (tensor<4x2xi32>) -> tensor<2x2xi32>
          sdy.return %1 : tensor<2x2xi32>
        } : (tensor<4x4xi32>) -> tensor<4x2xi32>
        return %0 : tensor<4x2xi32>""",
        ((4, 4),),
    ),
    "complex zeros that devices add": (
        """() -> tensor<2xcomplex<f32>> {
        %z = stablehlo.constant dense<(0.0, 0.0)> : tensor<4xcomplex<f32>>
        %0 = sdy.manual_computation(%z) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{}]>]
            manual_axes={"a"} (%p: tensor<2xcomplex<f32>>) {
          %1 = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
          ^bb0(%l: tensor<complex<f32>>, %r: tensor<complex<f32>>):
            %s = stablehlo.add %l, %r : tensor<complex<f32>>
            stablehlo.return %s : tensor<complex<f32>>
          }) : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
          sdy.return %1 : tensor<2xcomplex<f32>>
        } : (tensor<4xcomplex<f32>>) -> tensor<2xcomplex<f32>>
        return %0 : tensor<2xcomplex<f32>>""",
        (),
    ),
    "a computation of nothing": (
        """(%x: tensor<0x2xf32>) -> tensor<4xf32> {
        %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"a"}]>]
            manual_axes={"a"} (%p: tensor<0x2xf32>) {
          %z = stablehlo.constant dense<1.0> : tensor<f32>
          %1 = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0]
              : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        } : (tensor<0x2xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>""",
        ((0, 2),),
    ),
    "a window that begins outside, looked up beside a batch": (
        """(%x: tensor<1x5x1xf32>) -> (tensor<1x1x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"a"}]>}) {
        %i = stablehlo.constant dense<3> : tensor<1x1x1xi32>
        %0 = "stablehlo.gather"(%x, %i) <{indices_are_sorted = false, dimension_numbers = #stablehlo.gather<
            offset_dims = [2], operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 1],
            start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4, 1>}>
            : (tensor<1x5x1xf32>, tensor<1x1x1xi32>) -> tensor<1x1x4xf32>
        return %0 : tensor<1x1x4xf32>""",
        ((1, 5, 1),),
    ),
    "columns of a product that are cut as the rows of its result": (
        """(%x: tensor<4x4xf32>, %y: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
            -> tensor<4x2xf32> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c", "b"}, {"a"}]>]>}
            : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
        return %0 : tensor<4x2xf32>""",
        ((4, 4), (4, 2)),
    ),
    "columns of a product that are cut as the rows of its result, after a function": (
        """(%x: tensor<4x4xf32>, %y: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
            -> tensor<4x2xf32> {
        %0 = stablehlo.negate %y : tensor<4x2xf32>
        %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0]
            {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c", "b"}, {"a"}]>]>}
            : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
        return %1 : tensor<4x2xf32>""",
        ((4, 4), (4, 2)),
    ),
}

ALSO_ALONG_B = (
    "a kernel as great as a part", "one window, and a step", "groups of features of which devices have parts",
    "a slice beside all of its operand", "a convolution into wider elements",
    "sources of windows over what is cropped", "an update from the tensor that it updates",
    "a kernel that is cut, over an image that is spread apart",
    "elements spread apart, as many on each device",
    "a dynamic slice of the first elements beside all of its operand",
)  # fmt: skip
"""Of these, XLA's fault shows where there is an axis besides."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT_WRONGLY)
def test_what_the_partitioner_of_xla_cuts_wrongly(name: str) -> None:
    """See upstream_bugs.md: it ends the process, refuses, or computes something else."""
    body, shapes = CUT_WRONGLY[name]
    axes = ", ".join(f'"{axis}"=2' for axis in "abc" if f'"{axis}"' in body or axis in "ab"[name in ALSO_ALONG_B])
    program = Program.parse(f"sdy.mesh @mesh = <[{axes}]>\nfunc.func @main{body}\n}}")
    rng = np.random.default_rng(0)
    numbers = [rng.permutation(prod(shape)) + 3 * i - 3 for i, shape in enumerate(shapes)]
    inputs = [np.asarray(own, np.float32).reshape(shape) for own, shape in zip(numbers, shapes, strict=True)]
    assert OnMesh()._by_xla(program, [], inputs) is None  # pyright: ignore


@pytest.mark.slow
def test_slices_that_begin_outside_move_in() -> None:
    program = Program.parse("""sdy.mesh @mesh = <["a"=3, "b"=2]>
    func.func @main(%x: tensor<6x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}, %i: tensor<i32>)
        -> (tensor<2x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}) {
      %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 6]
        : (tensor<6x6xi32>, tensor<i32>, tensor<i32>) -> tensor<2x6xi32>
      return %0 : tensor<2x6xi32>
    }""")
    x = np.arange(36, dtype=np.int32).reshape(6, 6)
    assert OnMesh()._by_xla(program, [], [x, np.int32(8)]) is None  # pyright: ignore


SLICED = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<1x4x2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {"b"}, {}]>},
    %y: tensor<1x4x2x1xf32>) -> tensor<1x1x1x2xf32> {
  %0 = stablehlo.concatenate %x, %x, %y, dim = 3
    : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x1xf32>) -> tensor<1x4x2x9xf32>
  %1 = stablehlo.slice %0 [0:1:3, 1:2, 1:2:3, 5:8:2] : (tensor<1x4x2x9xf32>) -> tensor<1x1x1x2xf32>
  return %1 : tensor<1x1x1x2xf32>
}"""


def test_slices_of_one_element_step_by_one_for_xla() -> None:
    """XLA's verifier refuses the program otherwise."""
    text = next(iter(lower(Program.parse(SLICED)).texts.values()))
    assert "[0:1, 1:2, 1:2, 5:8:2]" in text, text


def test_what_is_not_taken_says_so() -> None:
    """Neither gcomp's refusals nor XLA's count as right."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4xui2> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xui2> {
      return %x : tensor<4xui2>
    }""")
    with pytest.raises(UnsupportedError, match="2 bits"):
        lower(program)


@pytest.mark.slow
def test_an_image_of_few_rows_that_is_spread_apart() -> None:
    """XLA computed zeros where the result is cut along a dimension of fewer rows than devices."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=1, "b"=2]>
    func.func @main(%x: tensor<2x1x1x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}, {}, {}]>},
        %w: tensor<1x1x1x1xi32>) -> tensor<1x2x1x1xi32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [0, f, b, 1]x[0, i, o, 1]->[b, 0, 1, f],
        window = {lhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<2x1x1x1xi32>, tensor<1x1x1x1xi32>) -> tensor<1x2x1x1xi32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}, {"b"}, {}]> : tensor<1x2x1x1xi32>
      return %1 : tensor<1x2x1x1xi32>
    }""")
    inputs = [np.array([2, -3], np.int32).reshape(2, 1, 1, 1), np.full((1, 1, 1, 1), 3, np.int32)]
    assert OnMesh()._by_xla(program, [], inputs) is None  # pyright: ignore
