"""Proofs of rules: right ones are proved, wrong ones refuted with a counterexample, and nothing more is claimed."""

from __future__ import annotations

import importlib
import sys
import time
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import z3
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.errors import UsageError
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.ir.types import dtype_text, shape_of, tensor
from gcomp.passes.base import PassContext
from gcomp.passes.graph.canonicalize import RULES
from gcomp.passes.rewriting import Pattern, apply_rewrites
from gcomp.reference.interpreter import interpret
from gcomp.testing.prove import Proof, Status, fingerprint, prove
from gcomp.testing.prove.cases import Imperative, cases
from gcomp.testing.prove.catalog import own_patterns, own_rules, pattern_status, results, status_of
from gcomp.testing.prove.choices import Scope, symbols
from gcomp.testing.prove.obligation import Answer, Question, Solver
from gcomp.testing.prove.prover import prove as prove_subject
from gcomp.testing.prove.translation import Abstract, Exact
from tests.mutants.conditions import weakened, why_asked
from tests.support.imperative import left_sides, look
from tests.support.thinning import thinned
from tests.support.twins import EQUIVALENT, rebuilt, twins

x, y, v = Var("x"), Var("y"), Var("v")
OWN = {rule.name: rule for rule in own_rules()}
QUICK = ("not-of-not", "maximum-idempotent", "subtract-zero", "xor-self", "select-true", "transpose-identity",
         "transpose-of-transpose", "reverse-of-reverse", "reshape-identity", "concatenate-one",
         "pad-nothing", "transpose-of-unit-dims", "sink-transpose-reduce")  # fmt: skip
ENOUGH = 120.0
"""Seconds for what ends by itself in less than 20 on a machine that has nothing else to do."""


# ---- gcomp's own rules -------------------------------------------------------------------------------------------


def test_every_condition_of_a_rule_is_dropped() -> None:
    rules = {rule.name: {one.condition for one in weakened(rule)} for rule in own_rules()}
    assert rules["pad-nothing"] == {"where", "where: any for all((amount == 0 for amount in (*low, *high, *gap)))"}
    assert rules["multiply-by-one"] == {"the constant is 1", "there is a constant 1", "where"}
    assert rules["xor-self"] == {"x is the same value (place 2)"}
    assert rules["slice-all"] >= {f"where: {part}" for part in ("b == shape_of(x)", "all((i == 0 for i in a))")}
    assert rules["reverse-nothing"] == {"dimensions is ()"}


@pytest.mark.parametrize("name", QUICK)
def test_rule_is_proved_needs_its_conditions_and_its_wrong_twins_are_refuted(name: str) -> None:
    proof = prove(OWN[name], seconds=ENOUGH)
    assert proof.status is Status.PROVED, proof
    assert proof.cases >= 15
    for one in weakened(OWN[name]):
        less = prove(one.rule, seconds=ENOUGH)
        assert less.status is Status.REFUTED or why_asked(one), f"{one.condition}: {less}"
    for twin in twins(OWN[name]):
        wrong = prove(twin.rule)
        assert wrong.status is Status.REFUTED, f"{twin.name}: {wrong}"
        assert wrong.confirmed, f"the reference does not show it: {wrong}"


@pytest.mark.parametrize("name", OWN)
def test_every_rule_has_a_committed_proof_and_a_twin(name: str) -> None:
    """Renew with `python -m tools.prove_table`."""
    assert status_of(OWN[name]) == "proved"
    assert 0 < results()[name]["refuted"] == results()[name]["twins"]


def test_changes_that_are_right_are_changes_of_rules() -> None:
    assert {rule for rule, _ in EQUIVALENT} <= set(OWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_all_rules_and_all_twins(name: str) -> None:
    assert prove(OWN[name], seconds=ENOUGH).status is Status.PROVED
    for twin in twins(OWN[name]):
        assert prove(twin.rule).status is Status.REFUTED, twin.name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), EQUIVALENT)
def test_changes_that_are_right_are_proved(name: str, change: str) -> None:
    from tests.support.twins import BY_NAME, MUTATORS

    mutators = (*MUTATORS, *([BY_NAME[name]] if name in BY_NAME else ()))
    found = dict(pair for mutate in mutators for pair in mutate(OWN[name]))
    assert prove(found[change], seconds=ENOUGH).status is Status.PROVED


# ---- rules as one may write them ---------------------------------------------------------------------------------


def sliced(of: Term, start: str, limit: str, stride: str) -> Op:
    return Op(hlo.SliceOp, of, start_indices=Attr(start), limit_indices=Attr(limit), strides=Attr(stride))


def transposed(of: Term) -> Op:
    return Op(hlo.TransposeOp, of, permutation=Attr("p"))


PAD = Op(hlo.PadOp, x, v, edge_padding_low=Attr("low"), edge_padding_high=Attr("high"), interior_padding=Attr("gap"))

RIGHT = (
    Rule("sink-through-concatenate",
         Op(hlo.ConcatenateOp, transposed(x), transposed(y), dimension=Attr("n")),
         transposed(Op(hlo.ConcatenateOp, x, y, dimension=Calc(lambda p, n: p[n])))),
    Rule("reassociate-integers", Op(hlo.AddOp, Op(hlo.AddOp, x, y), v), Op(hlo.AddOp, x, Op(hlo.AddOp, y, v)),
         Calc(lambda x: dtype_text(x.type)[0] in "iu")),
    Rule("clamp-is-minimum-of-maximum", Op(hlo.ClampOp, y, x, v), Op(hlo.MinimumOp, Op(hlo.MaximumOp, x, y), v),
         Calc(lambda x, y, v: x.type == y.type == v.type and dtype_text(x.type) in ("f16", "bf16", "i32", "ui8"))),
)  # fmt: skip


@pytest.mark.parametrize("rule", RIGHT, ids=lambda rule: rule.name)
def test_right_rules_are_proved(rule: Rule) -> None:
    proof = prove(rule)
    assert proof.status is Status.PROVED, proof


LATE = Rule("r", sliced(Op(hlo.NegateOp, x), "a", "b", "s"), Op(hlo.NegateOp, sliced(x, "a", "b", "s")))


def test_strides_may_be_any_number() -> None:
    proof = prove(LATE, max_rank=2)
    assert proof.status is Status.PROVED, proof


@pytest.mark.parametrize(
    "where", [lambda s: all(isinstance(n, int) for n in s), lambda s: max(s, default=0) in range(9)], ids=["int", "max"]
)
def test_numbers_that_a_condition_must_know_are_a_bound(where: Any) -> None:
    proof = prove(replace(LATE, where=Calc(where, ("s",))), max_rank=1)
    assert proof.status is Status.CHECKED, proof
    assert "strides" in proof.how


def test_a_rule_must_be_right_where_it_does_not_pay() -> None:
    identity = Calc(lambda p: p == tuple(range(len(p))))
    assert prove(Rule("r", transposed(x), x, where=identity)).status is Status.PROVED
    assert prove(Rule("r", transposed(x), x, profit=identity)).status is Status.REFUTED


@pytest.mark.slow
def test_settings_that_a_right_side_forgets_are_missed() -> None:
    rule = OWN["transpose-into-dot-lhs"]
    assert isinstance(rule.rhs, Op)
    forgetful = replace(rule, rhs=rebuilt(rule.rhs, like=""))
    assert prove(forgetful, max_rank=1).status is Status.TESTED
    assert prove(rule, max_rank=1).status is Status.PROVED


def floats(x: SSAValue) -> bool:
    return dtype_text(x.type) in ("f16", "f32")


SLICE_OF_SLICE: Any = OWN["slice-of-slice"]

WRONG = {
    "-x + x is not 0": (
        Rule("r", Op(hlo.AddOp, Op(hlo.NegateOp, x), x), Const(value=0.0), Calc(floats), Exactness.E1), "before nan"),
    "NaN's payload is lost": (Rule("r", Op(hlo.MaximumOp, x, x), x, Calc(floats)), "nan"),
    "x / 3 is not x * (1 / 3)": (
        Rule("r", Op(hlo.DivideOp, x, Const(value=3)), Op(hlo.MultiplyOp, x, Const(value=1 / 3)),
             Calc(lambda x: dtype_text(x.type) == "f16")), "before"),
    "0 * x is not 0": (
        Rule("r", Op(hlo.MultiplyOp, x, Const(value=0.0)), Const(value=0.0), Calc(floats), Exactness.E1), "before nan"),
    "log(exp(x)) overflows": (
        Rule("r", Op(hlo.LogOp, Op(hlo.ExponentialOp, x)), x, Calc(floats), Exactness.E1), "after"),
    "float addition is not associative": (
        Rule("r", Op(hlo.AddOp, Op(hlo.AddOp, x, y), v), Op(hlo.AddOp, x, Op(hlo.AddOp, y, v)), Calc(floats)),
        "before"),
    "multiplying and dividing wraps": (
        Rule("r", Op(hlo.DivideOp, Op(hlo.MultiplyOp, x, Const(value=2)), Const(value=2)), x,
             Calc(lambda x: dtype_text(x.type) == "i32")), "before"),
    "square matrices have types that do not change": (
        Rule("r", transposed(x), x, Calc(lambda x, root: x.type == root.type)), "x_n0 = 2"),
    "a transpose is no reshape": (Rule("r", transposed(x), Op(hlo.ReshapeOp, x)), "at [0, 1]"),
    "power is not commutative": (
        Rule("r", Op(hlo.PowerOp, transposed(x), transposed(y)), transposed(Op(hlo.PowerOp, y, x))), "before"),
    "the start of the inner slice counts in its strides": (
        replace(SLICE_OF_SLICE, rhs=rebuilt(SLICE_OF_SLICE.rhs, properties={
            **SLICE_OF_SLICE.rhs.properties, "start_indices": Calc(lambda a, c: tuple(map(sum, zip(a, c))))})),
        "strides=(2)"),
    "gaps are padding": (Rule("r", PAD, x, Calc(lambda low, high: not any(i != 0 for i in (*low, *high)))), "type"),
    "reversing is not the identity on one side": (
        Rule("r", Op(hlo.ReverseOp, x, dimensions=Attr("d")), x), "bits at [0]"),
    "operands of a subtraction have an order": (
        Rule("r", Op(hlo.SubtractOp, x, y), Op(hlo.SubtractOp, y, x), Calc(lambda x: dtype_text(x.type) == "ui64")),
        "before"),
}  # fmt: skip


@pytest.mark.parametrize("why", thinned(WRONG, lambda why: why != "float addition is not associative"))
def test_wrong_rules_are_refuted_with_a_counterexample(why: str) -> None:
    rule, expected = WRONG[why]
    proof = prove(rule)
    assert proof.status is Status.REFUTED, proof
    assert proof.confirmed
    assert expected in (proof.counterexample or ""), proof


# ---- what cannot be proved is not claimed ------------------------------------------------------------------------


def test_a_rule_that_never_applies_is_not_proved() -> None:
    proof = prove(Rule("r", Op(hlo.NegateOp, x), x, Calc(lambda x: False)))
    assert (proof.status, proof.cases) == (Status.TESTED, 0)


def test_functions_without_theory_are_only_tested() -> None:
    odd = Rule(
        "r", Op(hlo.TanhOp, Op(hlo.NegateOp, x)), Op(hlo.NegateOp, Op(hlo.TanhOp, x)), Calc(floats), Exactness.E1
    )
    proof = prove(odd)
    assert proof.status is Status.TESTED
    assert "tanh on f32" in proof.how


@pytest.mark.parametrize(("exactness", "where"), [(Exactness.E1, lambda x: "complex" not in str(x.type)),
                                                  (Exactness.E2, None)])  # fmt: skip
def test_what_the_reference_s_functions_are_off_by_refutes_nothing(exactness: Exactness, where: Any) -> None:
    """NumPy's power in double is off by an ulp, x * x is not: the rule is right."""
    condition = None if where is None else Calc(where)
    rule = Rule("square", Op(hlo.PowerOp, x, Const(value=2.0)), Op(hlo.MultiplyOp, x, x), exactness=exactness,
                where=condition)  # fmt: skip
    assert prove(rule, seconds=5).status is not Status.REFUTED
    wrong = replace(rule, rhs=Op(hlo.MultiplyOp, x, Op(hlo.AbsOp, x)))
    assert prove(wrong, seconds=5).status is Status.REFUTED


def test_captured_constants_are_a_bound() -> None:
    rule = Rule("r", Op(hlo.AndOp, x, Const("c")), x, Calc(lambda c: bool((c == 3).all()) and c.dtype.name == "uint2"))
    proof = prove(rule)
    assert (proof.status, "constants" in proof.how) == (Status.CHECKED, True)
    assert prove(replace(rule, where=None)).status is Status.REFUTED


def test_functions_of_16_bits_are_run_on_all_values() -> None:
    half = Calc(lambda x: dtype_text(x.type) in ("f16", "bf16"))
    odd = Rule("r", Op(hlo.TanhOp, Op(hlo.NegateOp, x)), Op(hlo.NegateOp, Op(hlo.TanhOp, x)), half, Exactness.E1)
    proof = prove(odd)
    assert (proof.status, "all values run" in proof.how) == (Status.PROVED, True)


def test_ops_without_meaning_are_no_proof() -> None:
    assert prove(Rule("r", Op(hlo.CholeskyOp, x), x)).status is Status.TESTED


def test_fingerprints_follow_the_functions_that_a_rule_calls() -> None:
    def once(p: Any) -> bool:
        return len(p) > 0

    def twice(p: Any) -> bool:
        return len(p) > 1

    rules = [Rule("r", transposed(x), x, Calc(f)) for f in (once, twice)]
    assert fingerprint(rules[0]) != fingerprint(rules[1])
    assert fingerprint(rules[0]) == fingerprint(Rule("r", transposed(x), x, Calc(once)))
    assert status_of(replace(OWN["select-same"], rhs=Var("p"))) == "unproved"


def test_answers_are_not_taken_for_another_width() -> None:
    """x ** 4 is x ** 2 in two bits, and the text of that claim is the same for eight."""
    square = Op(hlo.MultiplyOp, x, x)
    rule = Rule("r", Op(hlo.MultiplyOp, square, square), square)
    solver = Solver(time.process_time() + 20)
    for element, expected in (("i2", Answer.NEVER), ("i8", Answer.DIFFER)):
        case = next(cases(rule, Scope(((),), element)))
        assert solver.decide(case, Exact()).answer is expected


@pytest.mark.parametrize("name", ["reshape-of-reshape", "broadcast-of-broadcast"])
def test_what_is_assumed_can_be_true(name: str) -> None:
    """From a contradiction everything would follow."""
    for case in islice(cases(OWN[name], Scope((symbols("n", 3),), "f32", 3)), 40):
        solver = z3.SimpleSolver()
        solver.add(*Question(case, Abstract()).assumptions, *[z3.Int(name) == 1 for name in case.symbols])
        assert solver.check() == z3.sat, case


SEEN = ("sink-transpose-concatenate",)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [p for p in own_patterns() if p.name in SEEN], ids=lambda p: p.name)
def test_imperative_patterns_are_checked_on_named_left_sides(pattern: type[Pattern]) -> None:
    proof = look(pattern)
    assert proof is not None
    assert proof.status is Status.CHECKED, proof
    assert proof.cases > 20


def test_every_pattern_that_is_looked_at_has_a_committed_finding() -> None:
    """Renew with `python -m tools.prove_table`."""
    assert {p.name: pattern_status(p) for p in own_patterns() if left_sides(p)} == {
        p.name: "checked" for p in own_patterns() if left_sides(p)
    }


class Backwards(Pattern):
    """A slice's strides are forgotten."""

    name = "backwards"
    roots = (hlo.SliceOp,)

    def rewrite(self, op: hlo.SliceOp, b: Builder) -> list[SSAValue] | None:
        starts, strides = sizes_of(op.start_indices), op.value("strides")
        counts = shape_of(op.result)
        if all(s == 1 for s in strides) or not all(isinstance(c, int) for c in counts):
            return None
        limits = [start + count for start, count in zip(starts, counts, strict=True)]
        return [b.slice(op.operand, starts, limits)]


def test_wrong_imperative_patterns_are_refuted() -> None:
    proof = prove_subject(Imperative("backwards", Op(hlo.SliceOp, x), Backwards()))
    assert proof.status is Status.REFUTED
    assert proof.confirmed, proof


def test_results_as_text() -> None:
    text = str(Proof("r", Status.REFUTED, "counterexample", 0.12, 3, "x = 1"))
    assert text == "r: refuted, counterexample (3 cases, 0.1 s)\nx = 1"


def test_without_the_solver_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith("gcomp.testing.prove.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(UsageError, match="z3") as caught:
        importlib.import_module("gcomp.testing.prove").prove(RULES[0])
    assert "gcomp[prove]" in (caught.value.fix or "")


# ---- what the proofs found ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "number"), [(hlo.SubtractOp, 0), (hlo.AddOp, -0.0), (hlo.NegateOp, None)], ids=["x - 0", "x + -0", "--x"]
)
def test_f8E8M0FNU_has_neither_zero_nor_sign(op: type[GraphOp], number: float | None) -> None:
    """Its constant 0 is NaN, and so is what it negates: canonicalize took both for identities."""

    def program() -> Program:
        made = Program.empty([("x", tensor((2,), "f8E8M0FNU"))])
        b, value = Builder(made), made.block.args[0]
        result = (
            b.emit(op, b.emit(op, value)) if number is None else b.emit(op, value, b.full((2,), number, "f8E8M0FNU"))
        )
        made.finish([("r", result)])
        return made

    before, after = program(), program()
    apply_rewrites(after, RULES, PassContext())
    numbers = np.array([1, 0.5]).astype(dtype_of("f8E8M0FNU"))
    expected, found = interpret(before, [numbers])[0], interpret(after, [numbers])[0]
    assert expected.tobytes() == found.tobytes()
    assert np.isnan(expected.astype(np.float32)).all()


def test_a_captured_size_may_be_symbolic() -> None:
    """It was captured as text."""
    from gcomp.dims import symbol

    captured: list[Any] = []
    rule = Rule("r", sliced(x, "a", "b", "s"), x, Calc(lambda a, b: captured.append((a, b)) or False))
    program = Program.empty([("x", tensor((symbol("n"),), "f32"))])
    part = Builder(program).slice(program.block.args[0], [1], [symbol("n") - 1])
    program.finish([("r", part)])
    apply_rewrites(program, [rule], PassContext())
    assert captured == [((1,), (symbol("n") - 1,))]
