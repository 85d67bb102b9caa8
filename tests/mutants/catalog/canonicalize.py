"""Mistakes in canonicalize: identities that do not hold of every value, and movement composed wrongly."""

from __future__ import annotations

from functools import partial
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, rank_of, shape_of
from gcomp.passes.graph.canonicalize import (
    _integral,  # pyright: ignore[reportPrivateUsage]
    _number,  # pyright: ignore[reportPrivateUsage]
)
from tests.mutants import edits, rewrites


def _floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


wrong = partial(edits.wrong, target="canonicalize")
right = partial(edits.right, target="canonicalize")
rule = partial(rewrites.wrong_rule, target="canonicalize")
added = partial(rewrites.wrong_addition, target="canonicalize")
fine = partial(rewrites.right_addition, target="canonicalize")
ordered = partial(rewrites.right_order, target="canonicalize")

HERE = "passes.graph.canonicalize"
x, y, p = Var("x"), Var("y"), Var("p")
E1 = Exactness.E1


# ---- floats are not real numbers ----

rule(
    "add-plus-zero-elided",
    rule="add-minus-zero",
    lhs=Op(hlo.AddOp, x, Const(value=0.0), commutes=True),
    classes=(9,),
    about="x + 0 is taken for x, and -0 + 0 is 0",
    exactness=Exactness.E0,
)
rule(
    "subtract-minus-zero-elided",
    rule="subtract-zero",
    lhs=Op(hlo.SubtractOp, x, Const(value=-0.0)),
    classes=(9,),
    about="x - (-0) is taken for x",
    exactness=Exactness.E0,
)
rule(
    "zero-minus-commutes",
    rule="subtract-zero",
    lhs=Op(hlo.SubtractOp, x, Const(value=0), commutes=True),
    classes=(9, 38),
    about="0 - x is taken for x where the zero stands on the left",
)
rule(
    "multiply-float-by-zero",
    rule="multiply-integer-by-zero",
    where=Calc(_number),
    classes=(7, 9),
    about="0 * x is 0 for floats too: NaN, infinities and signs are lost",
)
rule(
    "subtract-float-self",
    rule="subtract-integer-self",
    where=Calc(_number),
    classes=(7,),
    about="x - x is 0 for floats too, infinities and NaN included",
)
rule(
    "divide-one-by",
    rule="divide-by-one",
    lhs=Op(hlo.DivideOp, x, Const(value=1), commutes=True),
    classes=(22, 38),
    about="1 / x is taken for x: division is matched as if it commuted",
)
added(
    "divide-float-by-self",
    rule=Rule("x/x", Op(hlo.DivideOp, x, x), Const(value=1), where=Calc(_floating), exactness=E1),
    classes=(7,),
    about="x / x is 1, for 0, infinities and NaN too",
)
added(
    "divide-integer-by-self",
    rule=Rule("n/n", Op(hlo.DivideOp, x, x), Const(value=1), where=Calc(_integral)),
    classes=(11,),
    about="n / n is 1, for 0 too (torch#183610)",
)
added(
    "equal-to-self",
    rule=Rule("x==x", Op(hlo.CompareOp, x, x, comparison_direction="EQ"), Const(value=True)),
    classes=(7,),
    about="x == x is true, for NaN too",
)
added(
    "negated-comparison",
    classes=(7,),
    about="not (x < y) becomes x >= y, which differs where NaN is",
    rule=Rule(
        "!(x<y)",
        Op(hlo.NotOp, Op(hlo.CompareOp, x, y, comparison_direction="LT")),
        Op(hlo.CompareOp, x, y, comparison_direction="GE"),
    ),
)
added(
    "subtraction-turned",
    classes=(9,),
    about="-(x - y) becomes y - x, and so -0 where they are equal",
    rule=Rule(
        "-(x-y)",
        Op(hlo.NegateOp, Op(hlo.SubtractOp, x, y)),
        Op(hlo.SubtractOp, y, x),
        where=Calc(_floating),
        exactness=Exactness.E0,
    ),
)
added(
    "log-of-exponential",
    classes=(8,),
    about="log(exp(x)) becomes x, also where exp overflows (XLA#42732)",
    rule=Rule("log-exp", Op(hlo.LogOp, Op(hlo.ExponentialOp, x)), x, exactness=E1),
)
added(
    "square-of-root",
    classes=(8, 22),
    about="sqrt(x) * sqrt(x) becomes x, also of negative numbers",
    rule=Rule(
        "sqrt-sqrt", Op(hlo.MultiplyOp, Op(hlo.SqrtOp, x), Op(hlo.SqrtOp, x)), x, where=Calc(_floating), exactness=E1
    ),
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
added(
    "reassociated-sum",
    classes=(22,),
    about="(x + y) + y becomes x + (y + y), and the pass says that no bit changes",
    rule=Rule(
        "assoc",
        Op(hlo.AddOp, Op(hlo.AddOp, x, y), y),
        Op(hlo.AddOp, x, Op(hlo.AddOp, y, y)),
        where=Calc(_floating),
        exactness=E1,
    ),
)
added(
    "factored-product",
    classes=(22,),
    about="x*y + x becomes x * (y + 1) for floats",
    rule=Rule(
        "factor",
        Op(hlo.AddOp, Op(hlo.MultiplyOp, x, y), x, commutes=True),
        Op(hlo.MultiplyOp, x, Op(hlo.AddOp, y, Const(value=1, like="y"))),
        where=Calc(_floating),
        exactness=E1,
    ),
)


def _some_constant(c: Any, x: SSAValue) -> bool:
    return _floating(x) and c.size > 0 and bool((c == c.flat[0]).all()) and float(c.flat[0]) not in (0.0, 1.0, 0.5)


def _reciprocal(c: Any) -> float:
    return 1.0 / float(c.flat[0])


added(
    "divide-by-constant-as-product",
    classes=(22,),
    about="x / c becomes x * (1/c), which rounds twice",
    rule=Rule(
        "reciprocal",
        Op(hlo.DivideOp, x, Const(name="c")),
        Op(hlo.MultiplyOp, x, Const(value=Calc(_reciprocal), like="x")),
        where=Calc(_some_constant),
        exactness=E1,
    ),
)


# ---- integers are not either ----

added(
    "multiply-then-divide",
    classes=(14, 11),
    about="(x * y) / y becomes x: the product may wrap around, and y be 0",
    rule=Rule("mul-div", Op(hlo.DivideOp, Op(hlo.MultiplyOp, x, y), y), x, where=Calc(_integral)),
)
added(
    "abs-is-positive",
    classes=(14,),
    about="maximum(abs(x), 0) becomes abs(x), which is negative of the least integer",
    rule=Rule(
        "abs-positive",
        Op(hlo.MaximumOp, Op(hlo.AbsOp, x), Const(value=0), commutes=True),
        Op(hlo.AbsOp, x),
        where=Calc(_integral),
    ),
)


def _signed(x: SSAValue) -> bool:
    return _integral(x) and not dtype_text(x.type).startswith("u")


added(
    "comparison-by-difference",
    classes=(14,),
    about="x < y becomes x - y < 0, which wraps around",
    rule=Rule(
        "x<y",
        Op(hlo.CompareOp, x, y, comparison_direction="LT"),
        Op(hlo.CompareOp, Op(hlo.SubtractOp, x, y), Const(value=0, like="x"), comparison_direction="LT"),
        where=Calc(_signed),
    ),
)
added(
    "remainder-by-one-of-floats",
    classes=(12,),
    about="x % 1 is 0, of floats too",
    rule=Rule("rem-1", Op(hlo.RemainderOp, x, Const(value=1)), Const(value=0), where=Calc(_number), exactness=E1),
)
rule(
    "and-true-of-integers",
    rule="and-true",
    where=Calc(_integral),
    classes=(19,),
    about="x & 1 is taken for x, of integers too: true is not all bits",
)
rule("or-true-of-integers", rule="or-true", where=None, classes=(19,), about="x | 1 is taken for 1, of integers too")
rule("xor-self-is-one", rule="xor-self", rhs=Const(value=1), classes=(19,), about="x ^ x is taken for 1")


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


def _same_shape(x: SSAValue, root: SSAValue) -> bool:
    return shape_of(x) == shape_of(root)


added(
    "bitcast-as-conversion",
    classes=(17, 18),
    about="bits that are read as another type of the same width are converted",
    rule=Rule(
        "bitcast",
        Op(hlo.BitcastConvertOp, x),
        Op(hlo.ConvertOp, x, type=Calc(lambda root: root.type)),
        where=Calc(_same_shape),
    ),
)
rule(
    "negate-of-negate-unchecked",
    rule="negate-of-negate",
    where=None,
    classes=(15,),
    about="-(-x) is x in f8E8M0FNU too, which has no negative numbers",
)


# ---- select and booleans ----

rule("select-false-swapped", rule="select-false", rhs=x, classes=(38,), about="select(false, x, y) becomes x")
rule(
    "select-of-equal-shapes",
    rule="select-true",
    lhs=Op(hlo.SelectOp, Const(value=True), y, x),
    classes=(38,),
    about="select(true, x, y) becomes y",
)
rule(
    "maximum-of-minimum",
    rule="minimum-idempotent",
    lhs=Op(hlo.MinimumOp, x, y),
    classes=(2, 38),
    about="minimum(x, y) becomes x (hidet#90)",
    where=Calc(lambda x, y: rank_of(x) == 0 and x.type == y.type),
)


# ---- movement ----


def _from_start(a: Any, b: Any, x: SSAValue) -> Any:
    return (max(0, a[0] - max(0, b[0] - shape_of(x)[0])), *a[1:])  # pyright: ignore


def _to_size(b: Any, x: SSAValue) -> Any:
    return (min(b[0], shape_of(x)[0]), *b[1:])


def _fits_first(a: Any, b: Any, x: SSAValue) -> bool:
    numbers = (*a, *b, *shape_of(x))
    return all(isinstance(n, int) for n in numbers) and b[0] - a[0] <= shape_of(x)[0]  # pyright: ignore


wrong(
    "permutation-composed-backwards",
    classes=(25,),
    about="transpose(transpose(x, p), q) composes q with p (TVM#9813)",
    edits=[
        (
            f"{HERE}:_composed",
            "tuple(p[i] for i in q)",
            "tuple(q[i] for i in p) if sorted(p) == sorted(q) else tuple(p[i] for i in q)",
        )
    ],
)
wrong(
    "transposed-broadcast-inverse",
    classes=(25, 4),
    about="a transposed broadcast puts dimensions where p says, not where its inverse does",
    edits=[(f"{HERE}:_found", "p.index(i) for i in d", "p[i] for i in d")],
)
wrong(
    "identity-of-high-rank",
    classes=(41,),
    about="a transpose of rank 5 or more is taken for an identity when it starts like one",
    edits=[(f"{HERE}:_identity", "p == tuple(range(len(p)))", "p[:3] == tuple(range(len(p)))[:3]")],
)
rule(
    "reverse-of-reverse-any",
    rule="reverse-of-reverse",
    where=None,
    classes=(23, 38),
    about="two reversals cancel whatever dimensions they turn",
)
wrong(
    "reverse-of-as-many",
    classes=(38,),
    about="two reversals of equally many dimensions cancel",
    edits=[(f"{HERE}:_same_dimensions", "sorted(p) == sorted(q)", "len(p) == len(q)")],
)
wrong(
    "broadcast-kept-in-place-ignores-order",
    classes=(4, 26),
    about="a broadcast between equal types is an identity, though it transposes a square",
    edits=[(f"{HERE}:_kept_in_place", "_same_type(x, root) and _identity(p)", "_same_type(x, root)")],
)
wrong(
    "small-dims-are-units",
    classes=(25, 41),
    about="a transpose that moves dims of size 2 is made a reshape",
    edits=[(f"{HERE}:_moves_units_only", "!= 1", "not in (1, 2)")],
)
wrong(
    "reshape-for-transpose-of-square",
    classes=(25,),
    about="a transpose that keeps the shape is taken for a reshape of units",
    edits=[
        (
            f"{HERE}:_moves_units_only",
            "moved == sorted(moved)",
            "[shape_of(x)[q] for q in moved] == [shape_of(x)[q] for q in sorted(moved)]",
        )
    ],
)
added(
    "concatenation-reversed",
    classes=(24,),
    about="a reversed concatenation of two becomes one of reversed parts, in the old order",
    rule=Rule(
        "reverse-concat",
        Op(hlo.ReverseOp, Op(hlo.ConcatenateOp, x, y, dimension=0), dimensions=(0,)),
        Op(
            hlo.ConcatenateOp, Op(hlo.ReverseOp, x, dimensions=(0,)), Op(hlo.ReverseOp, y, dimensions=(0,)), dimension=0
        ),
    ),
)
added(
    "slice-of-concatenation",
    classes=(24, 37),
    about="a slice of concatenate(x, y) that fits into x is taken from x, wherever it starts",
    rule=Rule(
        "slice-concat",
        Op(
            hlo.SliceOp,
            Op(hlo.ConcatenateOp, x, y, dimension=0),
            start_indices=Attr("a"),
            limit_indices=Attr("b"),
            strides=Attr("s"),
        ),
        Op(hlo.SliceOp, x, start_indices=Calc(_from_start), limit_indices=Calc(_to_size), strides=Attr("s")),
        where=Calc(_fits_first),
    ),
)
wrong(
    "slice-all-forgets-strides",
    classes=(23,),
    about="x[0:n:s] is taken for x wherever that has as many elements or one",
    edits=[(f"{HERE}:_takes_all", "all(i == 1 for i in s)", "all(i == 1 for i in s[:1])")],
)
wrong(
    "slice-of-slice-start-unscaled",
    classes=(23,),
    about="the start of the outer slice is not scaled by the inner stride (TVM#11897)",
    edits=[(f"{HERE}:_start_of_slices", "i + k * j", "i + k")],
)
wrong(
    "slice-of-slice-strides-added",
    classes=(23,),
    about="strides of two slices are added less 1, which is right if either is 1",
    edits=[(f"{HERE}:_stride_of_slices", "i * j", "i + j - 1")],
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
    "pad-that-cancels",
    classes=(23,),
    about="a pad by 1 and by -1 is taken for nothing",
    edits=[
        (
            f"{HERE}:_adds_nothing",
            "return all(amount == 0 for amount in (*low, *high, *gap))",
            "return all(a + b == 0 for a, b in zip(low, high, strict=True)) and not any(gap)",
        )
    ],
)
wrong(
    "dot-view-any-order",
    classes=(5, 25),
    about="a transpose goes into a dot though it changes the order of free dims (ORT#10950)",
    edits=[(f"{HERE}:_keeps_free_order", "free == sorted(free)", "free == sorted(free) or len(free) > 2")],
)
wrong(
    "dot-view-batching-kept",
    classes=(5, 38),
    about="the batching dims of a dot stay as they were when a transpose goes into it",
    edits=[
        (
            f"{HERE}:_rhs_composed",
            "batching, contracting = _composed(p, d.rhs_batching_dimensions), ",
            "batching, contracting = d.rhs_batching_dimensions, ",
        )
    ],
)
wrong(
    "dot-view-first-dim-unchecked",
    classes=(5,),
    about="the order of free dims is not looked at where the first one is free",
    edits=[
        (
            f"{HERE}:_keeps_lhs_order",
            "(*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions)",
            "(*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions, 0)",
        )
    ],
)


# ---- controls ----

ordered("rules-last-first", change=lambda given: list(reversed(given)), about="rules are tried in the opposite order")
ordered(
    "rules-without-identities",
    change=lambda given: [r for r in given if not r.name.endswith("-identity")],
    about="identities of movement are left as they are",
)
ordered(
    "rules-without-slices",
    change=lambda given: [r for r in given if not r.name.startswith("slice")],
    about="slices are left as they are",
)
fine(
    "integer-product-reassociated",
    about="(x * y) * y becomes x * (y * y), of integers",
    rule=Rule(
        "mul-mul",
        Op(hlo.MultiplyOp, Op(hlo.MultiplyOp, x, y), y),
        Op(hlo.MultiplyOp, x, Op(hlo.MultiplyOp, y, y)),
        where=Calc(lambda x: _integral(x)),
    ),
)
fine(
    "subtraction-of-negative",
    about="x - (-y) becomes x + y, which is what IEEE says of every number",
    rule=Rule(
        "x--y",
        Op(hlo.SubtractOp, x, Op(hlo.NegateOp, y)),
        Op(hlo.AddOp, x, y),
        where=Calc(lambda x: dtype_text(x.type) in ("f32", "f64", "i32", "i64")),
        exactness=E1,
    ),
)
fine(
    "compare-turned",
    about="x > y becomes y < x, also where NaN is",
    rule=Rule(
        "x>y",
        Op(hlo.CompareOp, x, y, comparison_direction="GT"),
        Op(hlo.CompareOp, y, x, like="root", comparison_direction="LT"),
    ),
)
fine(
    "double-as-product",
    about="x + x becomes x * 2, the same to the bit",
    rule=Rule(
        "x+x",
        Op(hlo.AddOp, x, x),
        Op(hlo.MultiplyOp, x, Const(value=2, like="x")),
        where=Calc(lambda x: dtype_text(x.type) in ("f32", "f64", "i32", "i64")),
        exactness=E1,
    ),
)
right(
    "composed-by-inverses",
    about="permutations are composed through their inverses",
    edits=[(f"{HERE}:_found", "p.index(i) for i in d", "sorted(range(len(p)), key=p.__getitem__)[i] for i in d")],
)
