"""Mistakes in result types, in verifiers, and in the algebra of symbolic sizes."""

from __future__ import annotations

from functools import partial

from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong

wrong = partial(_wrong, target="inference")
right = partial(_right, target="inference")

HLO = "ir.stablehlo"
CONTRACTION, MOVEMENT, INDEXING = f"{HLO}.contraction", f"{HLO}.movement", f"{HLO}.indexing"
REDUCTION, ELEMENTWISE = f"{HLO}.reduction", f"{HLO}.elementwise"
ALGEBRA, FUNCTIONS, BINDING, RANGES = "dims.algebra", "dims.functions", "dims.binding", "dims.ranges"

# ---- result types ----

wrong(
    "windows-round-up", classes=(27, 28, 39), about="a last window that does not fit counts",
    edits=[(f"{CONTRACTION}:window_size", "span // stride + 1\n", "-(-span // stride) + 1\n")],
)  # fmt: skip
wrong(
    "symbolic-windows-round-up", classes=(28, 39, 40), about="the same, of symbolic sizes alone",
    edits=[(f"{CONTRACTION}:window_size", "dims.floordiv(span, stride) + 1", "dims.ceildiv(span, stride) + 1")],
)  # fmt: skip
wrong(
    "base-dilation-behind-the-last", classes=(27, 39), about="a gap is counted behind the last element, too",
    edits=[(f"{CONTRACTION}:window_size", "dims.dmax(size - 1, -1) * base_dilation + 1", "size * base_dilation")],
)  # fmt: skip
wrong(
    "window-dilation-of-gaps", classes=(27, 39), about="the reach of a dilated window is its size times the dilation",
    edits=[(f"{CONTRACTION}:window_size", "(window - 1) * window_dilation + 1", "window * window_dilation")],
)  # fmt: skip
wrong(
    "empty-dilated-is-one", classes=(3, 39), about="an empty dim with base dilation counts as one of one element",
    edits=[(f"{CONTRACTION}:window_size", "size == 0:", "size < 0:"),
           (f"{CONTRACTION}:window_size", "dims.dmax(size - 1, -1)", "dims.dmax(size - 1, 0)")],
)  # fmt: skip
wrong(
    "convolution-dilations-swapped", classes=(27, 38, 39), about="the dilations of input and kernel are swapped",
    edits=[(f"{CONTRACTION}:ConvolutionOp.result_shape", 'w["rhs_dilation"][i]', 'w["lhs_dilation"][i]')],
)  # fmt: skip
wrong(
    "dot-free-dims-swapped", classes=(5, 39), about="the free dims of the right operand come first",
    edits=[(f"{CONTRACTION}:DotGeneralOp.result_shape", "*free_l, *free_r", "*free_r, *free_l")],
)  # fmt: skip
wrong(
    "pad-interior-behind-the-last", classes=(23, 39), about="interior padding is counted behind the last element, too",
    edits=[(f"{MOVEMENT}:PadOp.infer", "dims.dmax(size - 1, 0) * gap", "size * gap")],
)  # fmt: skip
wrong(
    "pad-interior-of-nothing", classes=(3, 23, 40), about="interior padding makes an empty dim smaller than empty",
    edits=[(f"{MOVEMENT}:PadOp.infer", "dims.dmax(size - 1, 0) * gap", "(size - 1) * gap")],
)  # fmt: skip
wrong(
    "slice-rounds-down", classes=(23, 39), about="the last element of a strided slice is not counted",
    edits=[(f"{MOVEMENT}:SliceOp.infer", "dims.ceildiv(limit - start, stride)",
            "dims.floordiv(limit - start, stride)")],
)  # fmt: skip
wrong(
    "concatenate-multiplies", classes=(24, 39), about="the size is the first operand's times their number",
    edits=[(f"{MOVEMENT}:ConcatenateOp.infer", "total + shape[axis]", "total + shape_of(first)[axis]")],
)  # fmt: skip
wrong(
    "transpose-inverse", classes=(25, 39), about="the shape is that of the inverse permutation",
    edits=[(f"{MOVEMENT}:TransposeOp.infer", "[shape[p] for p in permutation]",
            "[shape[permutation.index(i)] for i in range(len(shape))]")],
)  # fmt: skip
wrong(
    "gather-offsets-last", classes=(30, 38, 39), about="the dims of slices stand behind those of the indices",
    edits=[(f"{INDEXING}:_combine", "[next(inside if i in window_dims else rest) for i in range(len(batch) +"
            " len(window))]", "[*rest, *inside]")],
)  # fmt: skip
wrong(
    "gather-index-vector-last", classes=(30, 38, 39), about="the indices' last dim is taken for the index vector",
    edits=[(f"{INDEXING}:_gathered_shape", "(d.index_vector_dim,)",
            "(len(indices) - 1,)")],
)  # fmt: skip
wrong(
    "reduce-keeps-named", classes=(1, 25, 39), about="negative zero dims: the first dim is kept where all are reduced",
    edits=[(f"{REDUCTION}:ReduceOp.infer", "if i not in dimensions]", "if i not in dimensions or s == 1]")],
)  # fmt: skip
wrong(
    "modulus-is-complex", classes=(19, 39), about="the modulus of complex numbers is complex",
    edits=[(f"{ELEMENTWISE}:AbsOp.infer", "with_element(self.operand, real_element(self.operand))",
            "self.operand.type")],
)  # fmt: skip

# ---- verifiers ----

wrong(
    "scatter-updates-unchecked", classes=(31, 42), about="updates that are larger than the window are accepted",
    edits=[(f"{INDEXING}:ScatterOp._check_updates", "below(bound, size) if", "below(size, bound) and False if")],
)  # fmt: skip
wrong(
    "permutations-by-sum", classes=(25, 42), about="dims that are named twice are accepted where their number is right",
    edits=[(f"{MOVEMENT}:check_permutation", "len(set(values)) != len(values) or", "")],
)  # fmt: skip
wrong(
    "reshape-of-symbols-unchecked", classes=(25, 40, 42), about="a reshape of symbolic sizes is never refuted",
    edits=[(f"{MOVEMENT}:ReshapeOp.check", "if refuted(before, after):",
            "if isinstance(before, int) and isinstance(after, int) and before != after:")],
)  # fmt: skip
wrong(
    "broadcast-of-zero", classes=(4, 42), about="an empty dim broadcasts to any",
    edits=[(f"{MOVEMENT}:BroadcastInDimOp.check", "size != 1 and refuted(size, 1)", "size not in (0, 1, 2)")],
)  # fmt: skip

# ---- symbolic sizes ----

wrong(
    "nested-floors-add", classes=(39, 40), about="(x // c) // k is taken for x // (c + k)",
    edits=[(f"{ALGEBRA}:_floordiv_by_constant", "numerator, inner * k)", "numerator, inner + k)")],
)  # fmt: skip
wrong(
    "remainders-reach-divisor", classes=(39, 40), about="x % k is taken to be less than k - 1",
    edits=[(f"{ALGEBRA}:_mod_ceiling", "(divisor - 1) ** exponent", "(divisor - 2) ** exponent")],
)  # fmt: skip
wrong(
    "common-factor-of-floor", classes=(39, 40), about="a factor of all but the constant is cancelled without a rest",
    edits=[(f"{ALGEBRA}:_mod_by_constant", "k // shared) + constant", "k // shared)")],
)  # fmt: skip
wrong(
    "ceildiv-by-one-more", classes=(39, 40), about="rounding up adds the divisor, not one less",
    edits=[(f"{ALGEBRA}:ceildiv", "a + (b - 1)", "a + b")],
)  # fmt: skip
wrong(
    "exact-division-drops-constant", classes=(39, 40), about="a constant remainder is no remainder",
    edits=[(f"{ALGEBRA}:exact_div", "if rest == 0", "if isinstance(rest, int)")],
)  # fmt: skip
wrong(
    "maximum-keeps-the-first", classes=(39, 40), about="max(n + 1, n) is the one that comes first",
    edits=[(f"{FUNCTIONS}:_extremum", "best(constant, kept.get(rest, constant))", "kept.get(rest, constant)")],
)  # fmt: skip
wrong(
    "substitution-one-by-one", classes=(40,), about="atoms of functions keep their symbols",
    edits=[(f"{FUNCTIONS}:substitute", "[substitute(arg, mapping) for arg in atom.args]", "atom.args")],
)  # fmt: skip
wrong(
    "intervals-of-products", classes=(39, 40), about="the bounds of a product are the products of the bounds",
    edits=[("dims.intervals:multiply", "return min(corners), max(corners)", "return corners[0], corners[-1]")],
)  # fmt: skip
wrong(
    "interval-of-floor", classes=(39, 40), about="a negative lower bound is divided by the greatest divisor",
    edits=[("dims.intervals:floordiv", "b[1] if a[0] >= 0 else b[0]", "b[1]"),
           ("dims.intervals:modulo", "a if a[1] < b[0] else", "a if a[1] <= b[0] else")],
)  # fmt: skip
wrong(
    "congruence-of-sums", classes=(39, 40), about="a sum is known modulo the larger modulus",
    edits=[("dims.congruence:add", "gcd(a[0], b[0])", "max(a[0], b[0])")],
)  # fmt: skip
wrong(
    "not-less-is-never", classes=(39, 40), about="what is not known to be at most is taken not to be",
    edits=[(f"{RANGES}:Ranges.less_equal", "high is not None and high < 0", "high is None or high < 0")],
)  # fmt: skip
wrong(
    "broadcast-takes-symbol", classes=(4, 40), about="a number that meets a symbol broadcasts to the symbol",
    edits=[(f"{BINDING}:broadcast_dim", "(a if isinstance(a, int) else b)", "(b if isinstance(a, int) else a)")],
)  # fmt: skip
wrong(
    "binding-rounds-down", classes=(40, 42), about="a size that no symbol gives binds it to the next lower",
    edits=[(f"{BINDING}:_solve", "    if remainder:", "    if remainder > 1:"),
           (f"{BINDING}:_check_formula", "if expected != actual:", "if expected > actual:")],
)  # fmt: skip
wrong(
    "divides-swapped", classes=(40, 42), about="the constraint that one size divides another holds them the wrong way"
    " round",
    edits=[(f"{BINDING}:_violation", "(rhs % lhs == 0 if lhs else rhs == 0)", "(lhs % rhs == 0 if rhs else lhs == 0)")],
)  # fmt: skip

# ---- correct changes ----

right(
    "windows-by-ceil", about="the number of windows as the span plus one, divided rounding up",
    edits=[(f"{CONTRACTION}:window_size", "dims.floordiv(span, stride) + 1", "dims.ceildiv(span + 1, stride)")],
)  # fmt: skip
right(
    "slice-by-floor", about="the size of a slice by rounding down",
    edits=[(f"{MOVEMENT}:SliceOp.infer", "dims.ceildiv(limit - start, stride)",
            "dims.floordiv(limit - start + stride - 1, stride)")],
)  # fmt: skip
right(
    "pad-summed-otherwise", about="a padded size with its terms in another order",
    edits=[(f"{MOVEMENT}:PadOp.infer", "lo + size + inner + hi", "hi + (inner + lo) + size")],
)  # fmt: skip
right(
    "ceildiv-by-negation", about="rounding up as the negative of rounding the negative down",
    edits=[(f"{ALGEBRA}:ceildiv", "if isinstance(b, int) and b > 0:", "if isinstance(b, int) and b > 1 << 40:")],
)  # fmt: skip
