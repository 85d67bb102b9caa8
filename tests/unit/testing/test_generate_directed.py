"""Directed programs contain what their rule matches: the driver applies it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.verdicts
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Var
from gcomp.ir.structures import DotDimensions
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import all_passes, load_passes
from gcomp.passes.rewriting import apply_rewrites
from gcomp.testing.generate.chains import chain_ops
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.directed import instance, known_rules, random_matching
from gcomp.testing.generate.growth import STEPS
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.mentioned import compared_numbers, mentioned_ops
from gcomp.testing.generate.negated import negations
from gcomp.testing.generate.passes import named_by, program_for
from gcomp.testing.generate.program import finish, start_growth
from gcomp.testing.near import touch

x, y = Var("x"), Var("y")

OTHERS = (
    Rule("relu-of-relu", Op(hlo.MaximumOp, Op(hlo.MaximumOp, x, Const(value=0.0)), Const(value=0.0)),
         Op(hlo.MaximumOp, x, Const(value=0.0))),
    Rule("distribute", Op(hlo.AddOp, Op(hlo.MultiplyOp, x, Var("z")), Op(hlo.MultiplyOp, y, Var("z"))),
         Op(hlo.MultiplyOp, Op(hlo.AddOp, x, y), Var("z"))),
    Rule("transposed-sum", Op(hlo.AddOp, Op(hlo.TransposeOp, x, permutation=Attr("p")),
                              Op(hlo.TransposeOp, y, permutation=Attr("p"))),
         Op(hlo.TransposeOp, Op(hlo.AddOp, x, y), permutation=Calc(lambda p: p))),
    Rule("not-less", Op(hlo.NotOp, Op(hlo.CompareOp, x, y, comparison_direction="LT")),
         Op(hlo.CompareOp, x, y, comparison_direction="GE")),
    Rule("vector-dot", Op(hlo.DotGeneralOp, x, y, dot_dimension_numbers=DotDimensions((), (), (0,), (0,))), x),
    Rule("any-constant", Op(hlo.SubtractOp, Const("c"), x), Op(hlo.NegateOp, x)),
    Rule("slice-of-pad", Op(hlo.SliceOp, Op(hlo.PadOp, x, y, interior_padding=Attr("i")), strides=Attr("s")), x,
         where=Calc(lambda i, s: not any(i) and set(s) <= {1})),
    Rule("nested-update",
         Op(hlo.DynamicUpdateSliceOp, x,
            Op(hlo.DynamicUpdateSliceOp, Op(hlo.DynamicSliceOp, x, Var("i"), slice_sizes=Attr("s")), y, Var("j")),
            Var("i")), x),
)  # fmt: skip


@pytest.mark.parametrize("rule", [*known_rules().values(), *OTHERS], ids=lambda rule: rule.name)
def test_the_driver_applies_the_rule_to_its_programs(rule: Rule) -> None:
    for seed in range(6):
        program = random_matching(rule, Seeded(seed), 8, verify=True)
        assert inputs_for(program, seed) is not None
        if rule in OTHERS:
            continue
        context = PassContext()
        apply_rewrites(program, [rule], context)
        assert context.counts[rule.name] >= 1


def test_no_left_side_has_a_remainder_of_complex_numbers() -> None:
    rule = Rule("remainders", Op(hlo.RemainderOp, x, y), x)
    assert random_matching(rule, Seeded(0), 8, of="f32") is not None
    with pytest.raises(UsageError, match="no program was found"):  # the specification leaves its meaning open
        random_matching(rule, Seeded(0), 8, of="complex<f32>")


def test_all_rules_of_the_passes_are_known() -> None:
    assert {"transpose-of-transpose", "select-true", "add-minus-zero"} <= known_rules().keys()


def test_near_misses_verify_and_mostly_still_look_like_the_rule() -> None:
    for rule in known_rules().values():
        for seed in range(3):
            growth = start_growth(Seeded(seed), 8)
            root = instance(growth, rule, loose=True)
            assert root is not None
            assert root.op.name == rule.lhs.op.name  # type: ignore[attr-defined]
            finish(growth, [root])
            growth.program.verify()


SUMS = Rule("sums", Op(hlo.AddOp, Op(hlo.TransposeOp, x, permutation=Attr("p")),
                       Op(hlo.TransposeOp, x, permutation=Attr("p"))), x,
            where=Calc(lambda p: p == tuple(range(len(p)))))  # fmt: skip


def test_what_a_rule_asks_for_is_denied_one_by_one() -> None:
    """The condition, that attributes are the same, that values are: each is a program in which only that fails."""
    denied = negations(SUMS)
    assert len(denied) == 1 + 2 * 2
    programs = [random_matching(rule, Seeded(seed), 4, verify=True) for rule in denied for seed in range(4)]
    for program in programs:
        assert any(isinstance(op, hlo.AddOp) for op in program.ops())
    orders = {
        op.value("permutation") for program in programs for op in program.ops() if isinstance(op, hlo.TransposeOp)
    }
    assert any(p != tuple(sorted(p)) for p in orders)


def test_programs_of_denied_rules_are_built_for_all_rules() -> None:
    """A few ask for what every program has, or for element types that are rare: there is none of these."""
    rules = {rule.family or rule.name: rule for rule in known_rules().values()}.values()
    missing = [rule.name for known in rules for rule in negations(known) if not _is_built(rule)]
    assert len(missing) < 8, missing


def _is_built(rule: Rule) -> bool:
    try:
        random_matching(rule, Seeded(3), 4, verify=True)
    except UsageError:
        return False
    return True


def test_what_a_pass_names_is_what_it_and_its_patterns_use() -> None:
    """Not what else stands in its file."""
    wrong = load_wrong_passes()
    assert hlo.Atan2Op in mentioned_ops(wrong["atan2-swapped"]) and hlo.ReduceOp not in mentioned_ops(
        wrong["atan2-swapped"]
    )
    assert mentioned_ops(wrong["maximum-without-init"]) >= {hlo.ReduceOp, hlo.MaximumOp}
    assert hlo.Atan2Op not in mentioned_ops(wrong["maximum-without-init"])
    assert 1e30 in map(abs, compared_numbers(wrong["maximum-without-init"]))
    assert hlo.TransposeOp in mentioned_ops(all_passes()["canonicalize"]), "its rules come from other files"


CLOSED = """
from dataclasses import dataclass
from typing import ClassVar

from gcomp.ir import stablehlo as hlo
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Cancel(Pattern):
    name = "cancel"
    roots = (hlo.AddOp,)

    def rewrite(self, op, b):
        inner = getattr(op.rhs, "op", None)
        return [inner.lhs] if isinstance(inner, hlo.SubtractOp) and inner.rhs is op.lhs else None


class Other(Pattern):
    name = "other"
    roots = (hlo.TanhOp,)

    def rewrite(self, op, b):
        return None


def make(named, *rewrites):
    @dataclass(frozen=True)
    class Made(Pass):
        name: ClassVar[str] = named

        def run(self, program, context):
            return apply_rewrites(program, rewrites, context)

    return Made


CANCEL, OTHER = make("cancels", Cancel()), make("others", Other())
"""


def test_what_a_pass_is_given_from_elsewhere_counts_and_operands_are_shared(tmp_path: Path) -> None:
    """The pattern is in a closure; it applies where an operand of an operand is the other operand."""
    (tmp_path / "closed.py").write_text(CLOSED)
    load_passes(tmp_path / "closed.py")
    try:
        step = all_passes()["cancels"]()
        assert named_by(step)[1] == {hlo.AddOp, hlo.SubtractOp}
        assert named_by(all_passes()["others"]())[1] == {hlo.TanhOp}
        applied = sum(touch(step, program_for(step, Seeded(seed), 4, seed)).applied for seed in range(300))
        assert applied > 2
    finally:
        for name in ("cancels", "others"):
            all_passes().pop(name)  # type: ignore[attr-defined]


def load_wrong_passes() -> dict[str, type[Pass]]:
    names = load_passes(Path(tests.verdicts.__file__).with_name("wrong.py"))
    return {name: all_passes()[name] for name in names}


def test_folds_begin_near_numbers_that_a_pass_compares_with() -> None:
    step = load_wrong_passes()["maximum-without-init"]()
    applied = sum(touch(step, program_for(step, Seeded(seed), 4, seed)).applied for seed in range(600))
    assert applied >= 9, applied


def test_ops_that_a_pass_names_read_what_others_of_them_give() -> None:
    named = frozenset({hlo.ConvolutionOp, hlo.PadOp})
    padded = 0
    for seed in range(60):
        g = start_growth(Seeded(seed), 6)
        g.named = named
        chain_ops(g, STEPS["convolution"].grow)
        finish(g, [])
        g.program.verify("as generated")
        padded += any(isinstance(op, hlo.ConvolutionOp) and any(isinstance(v.owner, hlo.PadOp) for v in op.operands)
                      for op in g.program.ops())  # fmt: skip
    assert padded > 20
