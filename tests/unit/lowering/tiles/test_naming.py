"""Formulas of a launch's sizes get names where they stand alone, and results are the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import gcomp
from gcomp.dims import parse, symbols_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.naming import with_named_sizes
from gcomp.lowering.tiles.schedules import schedule
from gcomp.testing.tiles import as_kernel
from tests.unit.onnx.graphs import model, numbers

HALVES = 'tensor<?x?x8xf32, ["floordiv(h + 1, 2)", "w", "8"]>'
ADDED = f"func.func @main(%x: {HALVES}) -> {HALVES} {{ %r = stablehlo.add %x, %x : {HALVES} return %r : {HALVES} }}"


def launch_of(program: Program, kind: str = "loop") -> LaunchOp:
    (launch,) = (op for op in as_kernel(program, kind).ops() if isinstance(op, LaunchOp))
    return launch


def test_a_formula_that_stands_alone_has_a_name() -> None:
    program = Program.parse(ADDED)
    launch = launch_of(program)
    named = with_named_sizes(launch, program.ranges)
    assert named.formulas == {"size0": parse("floordiv(h + 1, 2)")}
    assert [str(size) for size in shape_of(named.launch.block.args[0])] == ["size0", "w", "8"]
    assert (named.ranges["size0"].lo, named.ranges["size0"].hi) == (1, None)
    scheduled = schedule(named.launch, "kernel", named.ranges, settings_for(named.launch, named.ranges, 256))
    for step in named.at_call(scheduled).steps:
        given = [b.size for b in step.bindings if b.kind == "size"]
        assert {name for size in (*step.grid, *given) for name in symbols_of(size)} <= {"h", "w"}
    assert str(shape_of(launch.block.args[0])[0]) == "floordiv(h + 1, 2)"


@pytest.mark.parametrize("other", ["h", "floordiv(h, 2)", "h + w"])
def test_what_another_size_says_more_of_keeps_its_formula(other: str) -> None:
    given = f'tensor<?x?xf32, ["floordiv(h + 1, 2)", "{other}"]>'
    text = f"func.func @main(%x: {given}) -> {given} {{ %r = stablehlo.negate %x : {given} return %r : {given} }}"
    program = Program.parse(text)
    assert with_named_sizes(launch_of(program), program.ranges).formulas == {}


def test_equal_layers_of_images_of_other_sizes_share_a_kernel() -> None:
    texts = []
    for formula in ("floordiv(h + 1, 2)", "floordiv(h + 3, 4)"):
        program = Program.parse(ADDED.replace("floordiv(h + 1, 2)", formula))
        named = with_named_sizes(launch_of(program), program.ranges)
        texts.append([str(shape_of(v)) for v in (*named.launch.block.args, *named.launch.results)])
    assert texts[0] == texts[1]


def test_the_sizes_of_a_call_change_no_bit() -> None:
    graph = """({shape} x) => (float[a, 4, b, c] y) {{
        p = Conv <kernel_shape = [3, 3], strides = [2, 2]> (x, k)
        q = Relu (p)
        r = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (q)
        s = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (r, v)
        y = Add (r, s)
    }}"""
    weights = [onnx.numpy_helper.from_array(numbers(*shape), name) for name, shape in
               (("k", (4, 3, 3, 3)), ("v", (4, 4, 3, 3)))]  # fmt: skip

    def compiled(shape: str) -> gcomp.Model:
        proto = model(graph.format(shape=shape), 20)
        proto.graph.initializer.extend(weights)
        return gcomp.compile(proto, target="cpu", numerics="exact")

    anyhow = compiled("float[n, 3, h, w]")
    for n, h, w in ((1, 7, 7), (2, 15, 8), (1, 19, 24)):
        x = numbers(n, 3, h, w)
        assert np.array_equal(anyhow(x)[0], compiled(f"float[{n}, 3, {h}, {w}]")(x)[0])


SCALED = f"""func.func @main(%x: {HALVES}) -> {HALVES} {{
  %r = stablehlo.composite "a.b" %x {{decomposition = @twice}} : ({HALVES}) -> {HALVES}
  return %r : {HALVES}
}}
func.func private @twice(%x: {HALVES}) -> {HALVES} {{ %r = stablehlo.add %x, %x : {HALVES} return %r : {HALVES} }}"""


def test_a_composite_has_the_sizes_of_its_function() -> None:
    program = Program.parse(SCALED)
    assert with_named_sizes(launch_of(program, "library"), program.ranges).formulas == {}
