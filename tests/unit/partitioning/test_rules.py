"""Which dimensions of an op may be cut together: what rules say, and that parts make the whole on the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from xdsl.ir import Operation

from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.partitioning import LOCAL, RULES, Factor, Kind, ShardingRule, rule_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import seeded_program
from tests.support.cut_ops import Checked, check_rule, difference
from tests.support.samples import samples
from tests.unit.partitioning.programs import OPS, op

SAID = {
    "add": "([i, j], [i, j])->([i, j]) {i=4, j=6}",
    "select": "([], [i], [i])->([i]) {i=4}",
    "transpose": "([i, j])->([j, i]) {i=4, j=6}",
    "broadcast": "([i])->([j, i]) {i=6, j=4}",
    "split": "([ij])->([i, j]) {i=4, j=6}",
    "join": "([i, j, k])->([ij, k]) {i=2, j=4, k=6}",
    "regroup": "([i, jk])->([ij, k]) {i=4, j=2, k=3}",
    "reverse": "([i, j])->([i, j]) {i=4, j=6} permutation={j}",
    "slice": "([i, j])->([i, j]) {i=4, j=6} permutation={j}",
    "concatenate": "([i, j], [i, j])->([i, j]) {i=4, j=2} permutation={j}",
    "dot": "([i, j], [j, k])->([i, k]) {i=4, j=6, k=8} reduction={j}",
    "batched dot": "([i, j, k], [i, k, l])->([i, j, l]) {i=2, j=4, k=4, l=4} reduction={k}",
    "sum": "([i, j], [])->([i]) {i=4, j=6} reduction={j}",
    "gather": "([i, j], [k, l])->([k, j]) {i=4, j=6, k=8, l=1} reduction={i}",
    "scatter": "([i, j], [k, l], [k, j])->([i, j]) {i=4, j=6, k=8, l=1} reduction={k}",
    "sort": "([i, j])->([i, j]) {i=4, j=6} need_replication={j}",
    "cholesky": "([i, j, k])->([i, j, k]) {i=2, j=4, k=4} need_replication={j, k}",
    "iota": "()->([i, j]) {i=4, j=6}",
    "grouped convolution": "([i, j, kl], [m, l, kn])->([i, j, kn]) {i=2, j=8, k=2, l=4, m=3, n=3} reduction={l} "
    "need_replication={m} permutation={j}",
}


@pytest.mark.parametrize("name", OPS)
def test_rules_in_shardys_text(name: str) -> None:
    assert str(rule_of(op(name))) == SAID[name]


def sampled() -> Iterator[tuple[Operation, ShardingRule]]:
    """The ops of the sample programs, with their rules."""
    for text in samples().values():
        for each in Program.parse(text).module.walk():
            if (rule := rule_of(each)) is not None:
                yield each, rule


def test_every_op_with_a_row_has_a_rule_in_the_samples() -> None:
    assert {kind.name for kind in RULES} - {each.name for each, _ in sampled()} <= {"gcomp.dim", "gcomp.weight"}


def test_parts_of_the_samples_make_the_whole() -> None:
    found = Checked()
    for each, rule in sampled():
        try:
            check_rule(each, rule, Seeded(0), found)
        except UnsupportedError:  # it has no meaning on the reference
            continue
    assert found.wrong == [] and found.programs > 700


@pytest.mark.parametrize("name", OPS)
def test_parts_make_the_whole(name: str) -> None:
    each = op(name)
    rule = rule_of(each)
    assert rule is not None
    assert check_rule(each, rule, Seeded(1)).wrong == []


def random_ops(seeds: range) -> Checked:
    """The ops of random programs, cut in every way."""
    found = Checked()
    for seed in seeds:
        program = seeded_program(seed)
        for each in program.block.ops:
            if (rule := rule_of(each)) is not None:
                try:
                    check_rule(each, rule, Seeded(seed), found)
                except UnsupportedError:
                    continue
    return found


def test_parts_of_random_ops_make_the_whole() -> None:
    found = random_ops(range(40))
    assert found.wrong == [] and found.programs > 1000


@pytest.mark.slow
def test_parts_of_many_random_ops_make_the_whole() -> None:
    found = random_ops(range(1000))
    assert found.wrong == [] and found.programs > 30_000


def test_updates_at_the_first_element_stay_on_one_device() -> None:
    program = Program.parse("""func.func @main(%x: tensor<4x6xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>)
        -> tensor<4x6xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x6xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }""")
    each = next(o for o in program.block.ops if o.name == "stablehlo.scatter")
    rule = rule_of(each)
    assert rule is not None and check_rule(each, rule, Seeded(0)).wrong == []
    looser = rule.changed({1: Factor(6)})
    assert check_rule(each, looser, Seeded(0)).wrong != []


def test_what_is_scattered_by_windows_of_one_element_is_cut_as_these() -> None:
    """Nothing of them is read, and there are as many of them as sources."""
    program = Program.parse("""func.func @main(%x: tensor<4x3xf32>, %s: tensor<4x1xf32>, %z: tensor<f32>)
        -> tensor<4x3xf32> {
      %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 1, 1>,
          window_strides = array<i64: 1, 3>, padding = dense<[[0, 0], [1, -1]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) : (tensor<4x3xf32>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x3xf32>
      func.return %0 : tensor<4x3xf32>
    }""")  # fmt: skip
    (op,) = [op for op in program.block.ops if op.name == "stablehlo.select_and_scatter"]
    rule = rule_of(op)
    assert rule is not None and str(rule).startswith("([i, j], [i, j], [])->([i, j])")


def test_an_argmax_is_combined_by_its_own_body() -> None:
    program = Program.parse("""
    func.func @main(%x: tensor<3x8xf32>, %i: tensor<3x8xi32>, %lo: tensor<f32>, %z: tensor<i32>)
        -> (tensor<3xf32>, tensor<3xi32>) {
      %0:2 = stablehlo.reduce(%x init: %lo), (%i init: %z) across dimensions = [1] :
        (tensor<3x8xf32>, tensor<3x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
        reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
          %p = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
          %j = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
          stablehlo.return %v, %j : tensor<f32>, tensor<i32>
        }
      return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>
    }""")
    each = next(o for o in program.block.ops if o.name == "stablehlo.reduce")
    rule = rule_of(each)
    assert rule is not None and rule.factors[1] == Factor(8, Kind.REDUCTION, "body")
    x = np.random.default_rng(0).permutation(24).reshape(3, 8).astype(np.float32)
    args = [x, np.tile(np.arange(8, dtype=np.int32), (3, 1)), np.float32(-np.inf), np.int32(0)]
    arrays = [np.asarray(a) for a in args]
    assert difference(each, rule, {1: 4}, arrays) is None
    assert difference(each, rule, {0: 3, 1: 2}, arrays) is None


# ---- wrong twins ----


def twins(rule: ShardingRule) -> Iterator[tuple[str, ShardingRule]]:
    """Rules that say more than is true: a factor that would need nothing, another reducer, or dimensions that are cut
    apart or in another order."""
    for i, factor in enumerate(rule.factors):
        if factor.kind not in LOCAL:
            yield f"{factor.kind} {i} passes through", rule.changed({i: Factor(factor.size)})
        if factor.kind is Kind.REDUCTION:
            yield f"{i} passes through", rule.changed({i: Factor(factor.size)})
            other = "maximum" if factor.combine == "add" else "add"
            yield f"{i} by {other}", rule.changed({i: replace(factor, combine=other)})
        if factor.kind is Kind.PASS_THROUGH and len(places := [*rule.places(i)]) > 1:
            for t, _ in places[:-1]:
                yield f"{i} is not in tensor {t}", apart(rule, i, t)
    for t, dims in enumerate(rule.operands):
        if len(dims) == 2 and rule.factors[dims[0][0]].size == rule.factors[dims[1][0]].size:
            swapped = tuple(dims[::-1] if k == t else own for k, own in enumerate(rule.operands))
            yield f"operand {t} is turned", replace(rule, operands=swapped)
        for k, own in enumerate(dims):
            if len(own) > 1:
                turned = (*dims[:k], own[::-1], *dims[k + 1 :])
                operands = tuple(turned if j == t else each for j, each in enumerate(rule.operands))
                yield f"factors of operand {t} are turned", replace(rule, operands=operands)


def apart(rule: ShardingRule, factor: int, tensor: int) -> ShardingRule:
    """The rule with a factor of one operand's own in place of one that it has in common with others."""
    new = len(rule.factors)

    def renamed(dims: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(new if f == factor else f for f in own) for own in dims)

    operands = tuple(renamed(dims) if t == tensor else dims for t, dims in enumerate(rule.operands))
    alone = Factor(rule.factors[factor].size, Kind.NEED_REPLICATION)
    return replace(rule, factors=(*rule.factors, alone), operands=operands)


def test_wrong_twins_are_refuted() -> None:
    refuted = Counter[str]()
    for name in OPS:
        each = op(name)
        rule = rule_of(each)
        assert rule is not None
        for change, twin in twins(rule):
            found = [check_rule(each, twin, Seeded(seed)) for seed in range(2)]
            assert any(c.wrong for c in found), f"{name}: {change}: {twin}"
            refuted[change.partition(" ")[2]] += 1
    assert refuted.total() >= 30


@pytest.mark.parametrize("reducer", ["add", "multiply", "maximum", "minimum"])
def test_folds_of_complex_numbers_are_cut_where_they_have_a_unit(reducer: str) -> None:
    """A NaN in one part is lost where the greater of two is taken, and a product with 1 makes one of infinity."""
    folded = """func.func @main(%x: tensor<4x6xcomplex<f32>>, %z: tensor<complex<f32>>) -> tensor<4xcomplex<f32>> {{
      %0 = stablehlo.reduce(%x init: %z) applies stablehlo.{0} across dimensions = [1]
          : (tensor<4x6xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
      return %0 : tensor<4xcomplex<f32>>
    }}"""
    scattered = """func.func @main(%x: tensor<4xcomplex<f32>>, %i: tensor<6x1xi32>, %u: tensor<6xcomplex<f32>>)
        -> tensor<4xcomplex<f32>> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) <{{indices_are_sorted = false, unique_indices = false,
          scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %1 = stablehlo.{0} %a, %b : tensor<complex<f32>>
        stablehlo.return %1 : tensor<complex<f32>>
      }}) : (tensor<4xcomplex<f32>>, tensor<6x1xi32>, tensor<6xcomplex<f32>>) -> tensor<4xcomplex<f32>>
      return %0 : tensor<4xcomplex<f32>>
    }}"""
    for text in (folded, scattered):
        (found,) = [each for each in Program.parse(text.format(reducer)).block.ops if len(each.operands) > 1]
        rule = rule_of(found)
        assert rule is not None
        assert any(factor.kind is Kind.REDUCTION for factor in rule.factors) == (reducer == "add")
