"""Sharding rules are proved for all sizes, and what says more than is true is refuted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from xdsl.ir import Operation

from gcomp.ir.program import Program
from gcomp.partitioning import RULES, rule_of
from gcomp.testing.prove.sharding import Status, prove_rule
from gcomp.testing.prove.sharding.family import cuts
from gcomp.testing.prove.sharding.forms import forms
from gcomp.testing.prove.sharding.laws import LAWS
from gcomp.testing.prove.sharding.lemmas import is_true, lemmas
from gcomp.testing.prove.sharding.obligations import obligations
from gcomp.testing.prove.sharding.prover import local_factors
from gcomp.testing.prove.theory import z3
from tests.support.cut_ops import MADE
from tests.support.samples import samples
from tests.unit.partitioning.programs import OPS, op
from tests.unit.partitioning.test_rules import twins
from tools.sharding_proofs import statuses, subjects


def first_samples() -> dict[str, Operation]:
    """The first sample of each op that has a factor to cut; of some ops only the enumerated forms have one."""
    found: dict[str, Operation] = {}

    def programs() -> Iterator[Operation]:
        for text in samples().values():
            yield from Program.parse(text).module.walk()
        yield from forms()

    for each in programs():
        rule = rule_of(each) if each.name not in found and not isinstance(each, MADE) else None
        if rule is not None and local_factors(rule):
            found[each.name] = each
    return found


SAMPLES = first_samples()


@pytest.mark.parametrize("name", statuses().proved)
def test_a_rule_that_is_said_to_be_proved_is_proved(name: str) -> None:
    proof = prove_rule(SAMPLES[name])
    assert proof.status is Status.PROVED and proof.cases, proof


def test_most_rules_are_proved() -> None:
    proved, left, nothing = statuses()
    assert {*proved, *left, *nothing} == {kind.name for kind in RULES}
    assert {*proved, *left} == {*SAMPLES}
    assert len(proved) > 9 * len(left)


@pytest.mark.slow
def test_all_forms_are_proved() -> None:
    proved = {*statuses().proved}
    for each in subjects(20):
        rule = rule_of(each) if each.name in proved else None
        if rule is not None and local_factors(rule):
            proof = prove_rule(each)
            assert proof.status is Status.PROVED, f"{proof}\n{each}"


def test_wrong_twins_are_refuted() -> None:
    """Those of the rules that are proved; most by an index at which the parts have something else than the whole."""
    refuted, indices = Counter[str](), 0
    for name in OPS:
        each = op(name)
        rule = rule_of(each)
        assert rule is not None
        for change, twin in twins(rule) if each.name in statuses().proved else ():
            proof = prove_rule(each, twin)
            assert proof.status is Status.REFUTED and proof.counterexample is not None, f"{name}, {change}: {proof}"
            refuted[change.partition(" ")[2]] += 1
            indices += "index" in proof.counterexample
    assert refuted.total() >= 50 and indices >= 20


def test_what_is_known_is_not_absurd() -> None:
    """From facts that contradict each other anything would follow."""
    for name in OPS:
        each = op(name)
        rule = rule_of(each)
        assert rule is not None
        for factor in local_factors(rule):
            for cut in cuts(each, rule, rule, factor):
                for obligation in obligations(cut, LAWS[type(each)](cut.whole)):
                    solver = z3.Solver()
                    fixed = [(z3.Int(size), z3.IntVal(2)) for size in obligation.sizes]
                    solver.add(*(z3.substitute(term, *fixed) for term in obligation.known))
                    assert solver.check() == z3.sat, f"{name}: {obligation.name}"


def test_a_counterexample_names_sizes_device_and_index() -> None:
    each = op("slice")
    rule = rule_of(each)
    assert rule is not None
    twin = next(twin for change, twin in twins(rule) if "passes through" in change)
    found = prove_rule(each, twin).counterexample
    # Of 6 elements, 1 to 4: device 1 begins at 3 + 1, and the whole result's part at 2 + 1.
    assert found == "2 parts of 3, i = 1; device 1, index d0 = 0, d1 = 0"


def test_unknown_sizes_are_not_cut_alone() -> None:
    """The rule of a constant in the shape of what is not cut cut its result: its part was no op."""
    program = Program.parse("""func.func @main(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
      %0 = "chlo.constant_like"(%x) <{value = 1.5 : f32}> : (tensor<2x?xf32>) -> tensor<2x?xf32>
      return %0 : tensor<2x?xf32>
    }""")
    each = next(o for o in program.block.ops if o.name == "chlo.constant_like")
    rule = rule_of(each)
    assert rule is not None and local_factors(rule) == []


def test_lemmas_are_true() -> None:
    wrong = [name for name, formula in lemmas() if not is_true(formula)]
    assert wrong == []
