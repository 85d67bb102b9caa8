"""What ops read, as maps that can be read: each case is a function, and what its result reads of its arguments."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.analysis.indexing import (
    Condition,
    IndexingMap,
    compose,
    d,
    evaluate,
    footprint,
    identity,
    is_broadcast,
    is_injective,
    is_permutation,
    is_pointwise,
    join_maps,
    operand_maps,
    r,
    reads,
    relation,
    simplify,
    strides,
    touched_elements,
)
from gcomp.analysis.indexing.maps import whole
from gcomp.dims import DimError, Range, Ranges, Size, parse, substitute, symbol
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.reference.interpreter import interpret
from tests.support.samples import sample


def paths(body: str, arguments: str, result: str) -> dict[str, list[str]]:
    """Argument -> the maps of the paths from what `%r` is to it; tensor types are written `2xf32`, `%` is `tensor<`."""
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return %r : {result}\n}}"
    program = Program.parse(text)
    found = reads(program.returned.operands[0], program.block.args, program.ranges)
    return {arg.name_hint or "": [str(m).replace("$", "") for m in maps] for arg, maps in found.items()}


def maps_of(op: str, type: str, properties: str = "", regions: str = "") -> list[str]:
    """What the only result of an op reads of each operand."""
    block = Program.parse(sample(f"stablehlo.{op}", type, properties, regions)).block
    first = next(iter(block.ops))
    return [str(m).replace("$", "") for m in operand_maps(first)[0]]


def test_a_transpose_of_a_reshape() -> None:
    """The head dimension of attention is split off and moved to the front; going back leaves nothing to do."""
    split = """
  %s = stablehlo.reshape %x : (tensor<?x768xf32, ["n", "768"]>) -> tensor<?x12x64xf32, ["n", "12", "64"]>
  %t = stablehlo.transpose %s, dims = [1, 0, 2]
      : (tensor<?x12x64xf32, ["n", "12", "64"]>) -> tensor<12x?x64xf32, ["12", "n", "64"]>"""
    there = split.replace("%t", "%r")
    x, heads = 'tensor<?x768xf32, ["n", "768"]>', 'tensor<12x?x64xf32, ["12", "n", "64"]>'
    assert paths(there, f"%x: {x}", heads) == {"x": ["(d0, d1, d2) -> (d1, 64*d0 + d2)"]}
    back = f"""{split}
  %u = stablehlo.transpose %t, dims = [1, 0, 2]
      : ({heads}) -> tensor<?x12x64xf32, ["n", "12", "64"]>
  %r = stablehlo.reshape %u : (tensor<?x12x64xf32, ["n", "12", "64"]>) -> {x}"""
    assert paths(back, f"%x: {x}", x) == {"x": ["(d0, d1) -> (d0, d1)"]}


def test_a_softmax_reads_its_element_and_its_row() -> None:
    program = Program.empty([("x", tensor((4, symbol("n")), "f32"))])
    b = Builder(program)
    (result,) = composite(b, "gcomp.softmax", [program.block.args[0]], {"axis": 1})
    program.finish([("y", result)])
    (row,) = operand_maps(next(iter(program.block.ops)))
    (m,) = row
    assert m is not None and m.exact
    assert str(m).replace("$", "") == "(d0, d1)[r0 < n] -> (d0, r0)"
    function = next(f for f in program.functions() if f.sym_name.data != "main")
    body = function.body.block
    found = reads(body.last_op.operands[0], body.args)[body.args[0]]
    assert [str(m).replace("$", "") for m in found] == ["(d0, d1) -> (d0, d1)", "(d0, d1)[r0 < n] -> (d0, r0)"]
    assert join_maps(found) == m


def test_a_padded_convolution() -> None:
    """Windows leave the image, where nothing is read; the kernel is read there all the same."""
    properties = (
        "batch_group_count = 1 : i64, feature_group_count = 2 : i64, window_strides = array<i64: 2>, "
        "padding = dense<1> : tensor<1x2xi64>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
    )
    assert maps_of("convolution", "3x8x4xf32, 3x2x6xf32 -> 3x4x6xf32", properties) == [
        "(d0, d1, d2)[r0 < 2, r1 < 3] -> (d0, 2*d1 + r1 - 1, r0 + 2*floordiv(d2, 3)) where 1 <= 2*d1 + r1 < 9",
        "(d0, d1, d2)[r0 < 2, r1 < 3] -> (r1, r0, d2)",
    ]


def test_a_pad_of_a_concatenation() -> None:
    """Each piece is read in its own part of the result, by conditions on one coordinate."""
    body = """
  %c = stablehlo.concatenate %x, %y, dim = 0 : (tensor<3xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n + 3"]>
  %r = stablehlo.pad %c, %z, low = [2], high = [1], interior = [0]
      : (tensor<?xf32, ["n + 3"]>, tensor<f32>) -> tensor<?xf32, ["n + 6"]>"""
    arguments = '%x: tensor<3xf32>, %y: tensor<?xf32, ["n"]>, %z: tensor<f32>'
    assert paths(body, arguments, 'tensor<?xf32, ["n + 6"]>') == {
        "x": ["(d0) -> (d0 - 2) where 2 <= d0 < 5"],
        "y": ["(d0) -> (d0 - 5) where 5 <= d0 < n + 5"],
        "z": ["(d0) -> () at most"],
    }


def test_slices_gathers_and_updates_say_where_data_decide() -> None:
    gather = (
        "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        "index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>"
    )
    assert maps_of("gather", "9x5xf32, 2x1xi32 -> 2x5xf32", gather) == [
        "(d0, d1)[r0 < 9] -> (r0, d1) at most, data in [0]",
        "(d0, d1) -> (d0, 0)",
    ]
    assert maps_of("dynamic_slice", "9x5xf32, i32, i32 -> 4x5xf32", "slice_sizes = array<i64: 4, 5>")[0] == (
        "(d0, d1)[r0 < 6] -> (d0 + r0, d1) at most, data in [0]"
    )
    assert maps_of("dynamic_update_slice", "9x5xf32, 1x5xf32, i32, i32 -> 9x5xf32")[:2] == [
        "(d0, d1) -> (d0, d1) at most",
        "(d0, d1) -> (0, d1) at most, data in [0]",
    ]


def test_predicates_tell_kinds_of_maps_apart() -> None:
    n = symbol("n")
    turned = IndexingMap((n, 3), (3, n), (d(1), d(0)))
    spread = IndexingMap((n, 3), (1, 3), (0, d(1)))
    rows = IndexingMap((n,), (n, 3), (d(0), r(0)), (3,))
    third = IndexingMap((n,), (3 * n,), (3 * d(0),))
    window = IndexingMap((n,), (n + 2,), (d(0) + r(0),), (3,))
    kinds = [identity((n, 3)), turned, spread, rows, third, window]
    assert [is_pointwise(m) for m in kinds] == [True, False, False, False, False, False]
    assert [is_permutation(m) for m in kinds] == [True, True, False, False, False, False]
    assert [is_broadcast(m) for m in kinds] == [False, False, True, False, False, False]
    assert [is_injective(m) for m in kinds] == [True, True, False, True, True, False]


def test_elements_are_counted_by_formulas() -> None:
    n = symbol("n")
    kinds = {
        IndexingMap((n, 3), (1, 3), (0, d(1))): 3,
        IndexingMap((n,), (n, 3), (d(0), r(0)), (3,)): 3 * n,
        IndexingMap((n,), (3 * n,), (3 * d(0),)): n,
        IndexingMap((n,), (n + 2,), (d(0) + r(0),), (3,)): n + 2,
        IndexingMap((n + 6,), (n,), (d(0) - 5,), (), (Condition(d(0), 5, n + 5),)): n,
        IndexingMap((6 * n,), (n, 6), (d(0) // 6, d(0) % 6)): 6 * n,
        IndexingMap((n,), (2 * n,), (2 * d(0) + r(0),), (2,)): 2 * n,
        IndexingMap((n,), (3 * n,), (3 * d(0) + r(0),), (2,)): 2 * n,
    }
    for m, count in kinds.items():
        assert touched_elements(m) == (count, True), str(m)
        values = {"n": 4}
        assert touched_elements(m, values).elements == footprint(m, values).sum()
    # A gather may read less than its map.
    assert touched_elements(IndexingMap((n,), (9,), (r(0),), (9,)).loosen(0)) == (9, False)


def test_strides_are_distances_in_memory() -> None:
    n = symbol("n")
    turned = IndexingMap((n, 3), (3, n), (d(1), d(0)))
    assert strides(turned) == (0, (1, n), ())
    assert strides(IndexingMap((4,), (9, 2), (2 * d(0) + 1, r(0)), (2,))) == (2, (4,), (1,))
    assert strides(IndexingMap((6,), (2, 3), (d(0) // 3, d(0) % 3))) == (0, (1,), ())
    assert strides(IndexingMap((6,), (3, 2), (d(0) % 3, d(0) // 3))) is None


@pytest.mark.parametrize(
    ("size", "simple"),
    [
        ("(n*a + b) // n", "a"),
        ("(n*a + b) mod n", "b"),
        ("(2*n*a + 2*b + c) // (2*n)", "a"),
        ("((a*n + b) // n)*n + (a*n + b) mod n", "a*n + b"),
        ("12*(e // 12) + 4*((e // 4) mod 3) + e mod 4", "e"),
        ("min(b, n - 1)", "b"),
        ("(23 - e) // 24", "0"),
        ("(6*e + f) // 12", "floordiv(e, 2)"),
        ("(5 - f) // 6 + f mod 6", "f"),
        ("max(a, 0)", "a"),
    ],
)
def test_bounds_of_coordinates_simplify(size: str, simple: str) -> None:
    n = symbol("n")
    names: dict[str, Size] = {"a": d(0), "b": d(1), "c": d(2), "e": d(3), "f": d(4)}
    domain = (8, n, 2, 24, 6)
    m = IndexingMap(domain, (1 << 20,), (substitute(parse(size), names),))
    assert simplify(m, Ranges({"n": Range(1, 64)})).indices == (substitute(parse(simple), names),)


@pytest.mark.parametrize(
    "size",
    [
        "a mod 4",
        "a // 4",
        "(4*e + a) // 8",
        "(2*e + (b // n)) mod 4",
        "min(a, 3)",
        "max(3, a)",
        "(a - 1) // 4",
        "(3 - a) // 4",
        "((a + 4*e) // 4) - e",
    ],
)
def test_bounds_that_just_do_not_suffice_change_nothing(size: str) -> None:
    """Coordinates reach one more than would make the formula simpler: a is 0 to 4, and b // n is 0 to 2."""
    n = symbol("n")
    names: dict[str, Size] = {"a": d(0), "b": d(1), "e": d(2)}
    m = IndexingMap((5, 2 * n + 1, 3), (1 << 20,), (substitute(parse(size), names),))
    simple = simplify(m, Ranges({"n": Range(1, 64)}))
    for point in np.ndindex(5, 7, 3):
        assert evaluate(simple, point, {"n": 3}) == evaluate(m, point, {"n": 3}), f"{m}\n{simple}"


def test_a_user_s_symbol_is_never_a_coordinate() -> None:
    """No text of a dimension names one; symbols of like names stay themselves."""
    with pytest.raises(DimError):
        parse(str(d(0)))
    own = symbol("d0")
    m = compose(IndexingMap((own,), (own + 1,), (d(0) + 1,)), IndexingMap((own + 1,), (9, own + 1), (own, d(0))))
    assert m.indices == (own, d(0) + 1)


def test_maps_that_do_not_meet_are_refused() -> None:
    with pytest.raises(ValueError, match="rank"):
        compose(identity((2,)), identity((2, 3)))


def test_conditions_that_never_hold_leave_nothing() -> None:
    m = IndexingMap((8,), (4,), (d(0) - 3,), (), (Condition(d(0) - 3, 0, 4), Condition(2 * d(0), 0, 5)))
    assert touched_elements(m) == (0, True)
    assert not footprint(simplify(m)).any()


@pytest.mark.parametrize("lower", [True, False])
def test_a_factorization_reads_one_triangle(lower: bool) -> None:
    """Of a positive definite matrix: elsewhere nothing matters, and there every element does."""
    text = sample("stablehlo.cholesky", "3x3xf64 -> 3x3xf64", f"lower = {str(lower).lower()}")
    program = Program.parse(text)
    ((m,),) = operand_maps(next(iter(program.block.ops)))
    assert m is not None
    matrix = 4 * np.eye(3) + 0.5
    (before,) = interpret(program, [matrix])
    for at in np.ndindex(3, 3):
        other = np.array(matrix)
        other[at] += 0.25
        (after,) = interpret(program, [other])
        assert not ((before != after) & ~relation(m)[(..., *at)]).any()
    assert (footprint(m) == (np.tri(3) if lower else np.tri(3).T)).all()


@pytest.mark.parametrize(("n", "m"), [(1, 4), (4, 4)])
def test_a_size_that_may_be_one_is_repeated_where_it_is(n: int, m: int) -> None:
    operand, result = 'tensor<?xf32, ["n"]>', 'tensor<2x?xf32, ["2", "m"]>'
    body = f"%r = stablehlo.broadcast_in_dim %x, dims = [1] : ({operand}) -> {result}"
    assert paths(body, f"%x: {operand}", result) == {"x": ["(d0, d1) -> (d1*min(1, n - 1))"]}
    program = Program.parse(f"func.func @main(%x: {operand}) -> {result} {{\n{body}\nfunc.return %r : {result}\n}}")
    ((found,),) = operand_maps(next(iter(program.block.ops)))
    assert found is not None
    expected = np.broadcast_to(np.eye(n, dtype=bool), (2, m, n))
    assert (relation(found, {"n": n, "m": m}) == expected).all()


def test_of_unknown_sizes_nothing_is_known() -> None:
    """Two bare `?` look the same, and need not be."""
    assert maps_of("transpose", "?x?xf32 -> ?x?xf32", "permutation = array<i64: 1, 0>") == [
        "(d0, d1)[r0 < _, r1 < _] -> (r0, r1) at most, data in [0, 1]"
    ]


def test_of_a_formula_beyond_the_limits_nothing_is_known() -> None:
    m = IndexingMap((symbol("n"),), (symbol("n"),), (d(0) ** 60,))
    assert compose(m, m) == whole((symbol("n"),), (symbol("n"),), exact=False)


def test_values_that_regions_take_are_read_whole() -> None:
    body = """
  %a = stablehlo.negate %x : tensor<3xf32>
  %r = "stablehlo.if"(%p) ({
    %t = stablehlo.add %a, %y : tensor<3xf32>
    stablehlo.return %t : tensor<3xf32>
  }, {
    stablehlo.return %y : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>"""
    whole_of = "(d0)[r0 < 3] -> (r0) at most, data in [0]"
    found = paths(body, "%p: tensor<i1>, %x: tensor<3xf32>, %y: tensor<3xf32>", "tensor<3xf32>")
    assert found == {"p": ["(d0) -> () at most"], "x": [whole_of], "y": [whole_of]}


def test_a_kernel_reads_what_its_paths_read() -> None:
    body = """
  %r = kernel.launch reduction "norm" (%a = %x, %b = %z) : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32> {
    %s = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1]
        : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
    %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x5xf32>
    %u = stablehlo.divide %a, %t : tensor<4x5xf32>
    stablehlo.return %u : tensor<4x5xf32>
  }"""
    found = paths(body, "%x: tensor<4x5xf32>, %z: tensor<f32>", "tensor<4x5xf32>")
    assert found == {"x": ["(d0, d1)[r0 < 5] -> (d0, r0)"], "z": ["(d0, d1) -> ()"]}
