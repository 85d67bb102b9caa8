"""Mistakes in canonicalize: identities that do not hold of every value, and movement composed wrongly."""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, rank_of
from gcomp.passes.graph.canonicalize import (
    _integral,  # pyright: ignore[reportPrivateUsage]
    _number,  # pyright: ignore[reportPrivateUsage]
)
from tests.mutants import edits, rewrites

wrong = partial(edits.wrong, target="canonicalize")
right = partial(edits.right, target="canonicalize")
rule = partial(rewrites.wrong_rule, target="canonicalize")
added = partial(rewrites.wrong_addition, target="canonicalize")

HERE = "passes.graph.canonicalize"
x, y = Var("x"), Var("y")
E1 = Exactness.E1


# ---- floats are not real numbers ----

rule(
    "multiply-float-by-zero",
    rule="multiply-integer-by-zero",
    where=Calc(_number),
    classes=(7, 9),
    about="0 * x is 0 for floats too: NaN, infinities and signs are lost",
)
added(
    "divide-integer-by-self",
    rule=Rule("n/n", Op(hlo.DivideOp, x, x), Const(value=1), where=Calc(_integral)),
    classes=(11,),
    about="n / n is 1, for 0 too (torch#183610)",
)
added(
    "log-of-exponential",
    classes=(8,),
    about="log(exp(x)) becomes x, also where exp overflows (XLA#42732)",
    rule=Rule("log-exp", Op(hlo.LogOp, Op(hlo.ExponentialOp, x)), x, exactness=E1),
)
added(
    "maximum-of-negative-as-abs",
    classes=(14, 15),
    about="maximum(x, -x) becomes x * sign(x), of unsigned integers too",
    rule=Rule(
        "max-neg",
        Op(hlo.MaximumOp, x, Op(hlo.NegateOp, x), commutes=True),
        Op(hlo.MultiplyOp, x, Op(hlo.SignOp, x)),
        where=Calc(_number),
        exactness=E1,
    ),
)
added(
    "minimum-of-maximum",
    classes=(6, 38),
    about="minimum(maximum(x, y), x) becomes x, also where x is not NaN and y is (ORT#9753)",
    rule=Rule("absorption", Op(hlo.MinimumOp, Op(hlo.MaximumOp, x, y), x, commutes=True), x, exactness=E1),
)


# ---- integers are not either ----


rule(
    "and-true-of-integers",
    rule="and-true",
    where=Calc(_integral),
    classes=(19,),
    about="x & 1 is taken for x, of integers too: true is not all bits",
)


# ---- conversions ----


def _widens(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type and is_float(dtype_text(x.type))


added(
    "conversion-there-and-back",
    classes=(17, 18),
    about="convert(convert(x)) is x where the types are equal: f32 -> f16 -> f32 too (torch#176565)",
    rule=Rule("round-trip", Op(hlo.ConvertOp, Op(hlo.ConvertOp, x)), x, where=Calc(_widens), exactness=E1),
)
added(
    "conversion-through-another",
    classes=(16, 17),
    about="convert(convert(x)) converts at once: float -> int -> bool loses the truncation (TVM#13048)",
    rule=Rule(
        "convert-twice",
        Op(hlo.ConvertOp, Op(hlo.ConvertOp, x)),
        Op(hlo.ConvertOp, x, type=Calc(lambda root: root.type)),
        exactness=E1,
    ),
)


# ---- select and booleans ----

rule(
    "maximum-of-minimum",
    rule="minimum-idempotent",
    lhs=Op(hlo.MinimumOp, x, y),
    classes=(2, 38),
    about="minimum(x, y) becomes x (hidet#90)",
    where=Calc(lambda x, y: rank_of(x) == 0 and x.type == y.type),
)


# ---- movement ----


wrong(
    "permutation-composed-backwards",
    classes=(25,),
    about="transpose(transpose(x, p), q) composes q with p (TVM#9813)",
    edits=[
        (
            f"{HERE}:_compose",
            "tuple(p[i] for i in q)",
            "tuple(q[i] for i in p) if sorted(p) == sorted(q) else tuple(p[i] for i in q)",
        )
    ],
)
wrong(
    "identity-of-high-rank",
    classes=(41,),
    about="a transpose of rank 5 or more is taken for an identity when it starts like one",
    edits=[(f"{HERE}:_identity", "p == tuple(range(len(p)))", "p[:3] == tuple(range(len(p)))[:3]")],
)
wrong(
    "slice-of-slice-start-unscaled",
    classes=(23,),
    about="the start of the outer slice is not scaled by the inner stride (TVM#11897)",
    edits=[(f"{HERE}:_start_of_slices", "i + k * j", "i + k")],
)
wrong(
    "slice-of-slice-of-nothing",
    classes=(1, 23, 40),
    about="slices of slices are composed where they may be empty",
    edits=[(f"{HERE}:_at_least_one", "return size > 0", "return True")],
)
wrong(
    "pad-nothing-ignores-gaps",
    classes=(23, 38),
    about="a pad by nothing at the edges is taken for its operand, gaps or not (ORT#11828)",
    edits=[(f"{HERE}:_adds_nothing", "(*low, *high, *gap)", "(*low, *high, *gap[1:])")],
)
wrong(
    "dot-view-any-order",
    classes=(5, 25),
    about="a transpose goes into a dot though it changes the order of free dims (ORT#10950)",
    edits=[(f"{HERE}:_keeps_free_order", "free == sorted(free)", "free == sorted(free) or len(free) > 2")],
)


# ---- controls ----

right(
    "composed-by-inverses",
    about="permutations are composed through their inverses",
    edits=[(f"{HERE}:_find_dims", "p.index(i) for i in d", "sorted(range(len(p)), key=p.__getitem__)[i] for i in d")],
)
