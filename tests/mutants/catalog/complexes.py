"""Mistakes in how complex numbers become pairs of real ones, and pairs what memory holds."""

from __future__ import annotations

from functools import partial

from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Op, Var
from tests.mutants import edits, rewrites

pairs = partial(edits.wrong, target="complex-to-pairs")
pairs_right = partial(edits.right, target="complex-to-pairs")
pairs_rule = partial(rewrites.wrong_rule, target="complex-to-pairs")
view = partial(edits.wrong, target="view-as-real")
view_right = partial(edits.right, target="view-as-real")
FUNCTIONS, STRUCTURE, TRANSFORMS = "pairs.functions", "pairs.structure", "pairs.transforms"
x, y = Var("x"), Var("y")


def _re(of: Var) -> Op:
    return Op(hlo.RealOp, of)


def _im(of: Var) -> Op:
    return Op(hlo.ImagOp, of)


# ---- complex-to-pairs ----

pairs_rule(
    "pairs-product-sign", rule="pairs-of-multiply", classes=(38,),
    about="the product of the imaginary parts is added",
    rhs=Op(hlo.ComplexOp,
           Op(hlo.AddOp, Op(hlo.MultiplyOp, _re(x), _re(y)), Op(hlo.MultiplyOp, _im(x), _im(y))),
           Op(hlo.AddOp, Op(hlo.MultiplyOp, _re(x), _im(y)), Op(hlo.MultiplyOp, _im(x), _re(y)))),
)  # fmt: skip
pairs_rule(
    "pairs-equal-by-either", rule="pairs-of-compare-eq", classes=(7,),
    about="numbers are equal where one part is",
    rhs=Op(hlo.OrOp, Op(hlo.CompareOp, _re(x), _re(y), like="root"), Op(hlo.CompareOp, _im(x), _im(y), like="root")),
)  # fmt: skip
pairs_rule(
    "pairs-parts-swapped", rule="imag-of-pair", classes=(38,), about="the imaginary part of two parts is the first",
    rhs=x,
)  # fmt: skip
pairs(
    "pairs-root-branch", classes=(9,), about="the root of a number left of the origin is not the principal one",
    edits=[(f"{FUNCTIONS}:sqrt", "left.choose(other, root) * back", "left.choose(-other, root) * back")],
)  # fmt: skip
pairs(
    "pairs-comparator-mixed", classes=(31, 34), about="a comparator gets both parts of one number for two numbers",
    edits=[(f"{STRUCTURE}:spread_op", "2 if isinstance(op, hlo.SortOp) else 1", "1")],
)  # fmt: skip
pairs(
    "pairs-fold-always-apart", classes=(1, 22), about="a fold by any binary op does it to either part by itself",
    edits=[(f"{STRUCTURE}:_apart", "[type(o) for o in inner] == [hlo.AddOp]",
            "[type(o) for o in inner] in ([hlo.AddOp], [hlo.MultiplyOp])")],
)  # fmt: skip
pairs(
    "pairs-scatter-keeps", classes=(31,), about="a scatter that puts what comes keeps what was",
    edits=[(f"{STRUCTURE}:_apart", "block.args.index(returned.operands[0])", "0")],
)  # fmt: skip
pairs(
    "pairs-inverse-unscaled", classes=(38,), about="the inverse transform is not divided by its length",
    edits=[(f"{TRANSFORMS}:_Transform.of", "if self.sign > 0:", "if False:")],
)  # fmt: skip
pairs(
    "pairs-twiddles-forgotten", classes=(22,), about="transforms of two factors are not turned between them",
    edits=[(f"{TRANSFORMS}:_Transform._by_factors",
            "self._times(first, *self._roots(np.outer(np.arange(inner), np.arange(outer)), outer * inner))", "first")],
)  # fmt: skip
pairs(
    "pairs-spectrum-mirrored-plain", classes=(38,), about="the second half of a real signal's spectrum is the first's",
    edits=[(f"{TRANSFORMS}:_Transform._mirrored", "b.emit(hlo.NegateOp, mirror(imag))", "mirror(imag)")],
)  # fmt: skip
pairs_right(
    "pairs-longer-matrices", about="transforms are cut into factors only above 128",
    edits=[(f"{TRANSFORMS}:_Transform._last", "n <= LARGEST_MATRIX", "n <= 128")],
)  # fmt: skip

# ---- view-as-real ----

PART, WHOLE = "passes.convert.view_as_real:PartOfView.rewrite", "passes.convert.view_as_real:ViewOfParts.rewrite"
view(
    "view-parts-swapped", classes=(38,), about="the imaginary part is taken to come first",
    edits=[(PART, "int(isinstance(op, hlo.ImagOp))", "int(isinstance(op, hlo.RealOp))")],
)  # fmt: skip
view(
    "view-of-real-numbers", classes=(19,), about="the real part of a real number is looked for in pairs, too",
    edits=[(PART, "not holds_complex(x) or ", "")],
)  # fmt: skip
view(
    "view-sides-reversed", classes=(24, 38), about="the parts stand side by side the other way round",
    edits=[(WHOLE, "b.concatenate(sides, len(shape))", "b.concatenate(sides[::-1], len(shape))")],
)  # fmt: skip
view_right(
    "view-parts-by-place", about="which part it is follows from the op's name",
    edits=[(PART, "int(isinstance(op, hlo.ImagOp))", 'int(op.name.endswith("imag"))')],
)  # fmt: skip
