"""gcomp's sharding rules are Shardy's, but for what is listed with a reason."""

from __future__ import annotations

import json

import pytest

from gcomp.partitioning import RULES, rule_of
from tests.support.shardy import rule_texts
from tests.unit.partitioning.programs import OPS, op
from tools.sharding_table import CHECKS, PAGE, REASONS, check, compare, linked_by_rule, linked_by_text, render

DIFFERENT = {"concatenate", "sort", "grouped convolution"}


def test_each_difference_has_a_reason_and_each_reason_a_difference() -> None:
    assert {d.op for d in compare().different} == {*REASONS}


def test_most_rules_are_equal() -> None:
    assert compare().equal.total() > 100


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == render(compare())


@pytest.mark.parametrize("name", sorted({*OPS} - DIFFERENT))
def test_rules_of_larger_sizes_are_equal(name: str) -> None:
    each = op(name)
    rule = rule_of(each)
    module = each.parent_op()
    while module is not None and module.parent_op() is not None:
        module = module.parent_op()
    (theirs,) = rule_texts(module)[each.name]  # pyright: ignore[reportArgumentType]
    if theirs is None:
        assert name == "iota"  # it has no operand from or to which anything propagates
        return
    assert rule is not None and linked_by_rule(rule) == linked_by_text(theirs)


def test_texts_are_compared_by_what_they_say() -> None:
    a = linked_by_text("([i, k], [k, j])->([i, j]) {i=3, j=5, k=4} reduction={k}")
    assert a == linked_by_text("([i, j], [j, k])->([i, k]) {i=3, j=4, k=5} reduction={j}")
    assert a != linked_by_text("([i, j], [j, k])->([i, k]) {i=3, j=4, k=5}")
    assert a != linked_by_text("([i, j], [k, j])->([i, k]) {i=3, j=4, k=5} reduction={j}")


def test_the_page_counts_checks_of_all_ops_with_a_rule() -> None:
    counted = json.loads(CHECKS.read_text("utf-8"))["ops"]
    assert {kind.name for kind in RULES} <= {*counted}
    fresh = check(2)
    assert sum(fresh.values()) > 700 and {n for n, count in fresh.items() if count} <= {
        n for n in counted if counted[n]
    }
