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
ALGEBRA, BINDING = "dims.algebra", "dims.binding"

# ---- result types ----

wrong(
    "symbolic-windows-round-up", classes=(28, 39, 40), about="the same, of symbolic sizes alone",
    edits=[(f"{CONTRACTION}:window_size", "dims.floordiv(span, stride) + 1", "dims.ceildiv(span, stride) + 1")],
)  # fmt: skip
wrong(
    "empty-dilated-is-one", classes=(3, 39), about="an empty dim with base dilation counts as one of one element",
    edits=[(f"{CONTRACTION}:dilated_size", "0 if size == 0 else (size - 1) * dilation + 1",
            "dims.dmax(size - 1, 0) * dilation + 1")],
)  # fmt: skip
wrong(
    "convolution-dilations-swapped", classes=(27, 38, 39), about="the dilations of input and kernel are swapped",
    edits=[(f"{CONTRACTION}:ConvolutionOp.result_shape", 'w["rhs_dilation"][i]', 'w["lhs_dilation"][i]')],
)  # fmt: skip
wrong(
    "dot-free-dims-swapped", classes=(5, 39), about="the free dims of the right operand come first",
    edits=[(f"{CONTRACTION}:DotGeneralOp.result_shape", "(*batch, *free_l, *free_r)", "(*batch, *free_r, *free_l)")],
)  # fmt: skip
wrong(
    "pad-interior-of-nothing", classes=(3, 23, 40), about="interior padding makes an empty dim smaller than empty",
    edits=[(f"{MOVEMENT}:PadOp.infer", "dims.dmax(size - 1, 0) * gap", "(size - 1) * gap")],
)  # fmt: skip
wrong(
    "concatenate-multiplies", classes=(24, 39), about="the size is the first operand's times their number",
    edits=[(f"{MOVEMENT}:ConcatenateOp.infer", "total + shape[axis]", "total + shape_of(first)[axis]")],
)  # fmt: skip
wrong(
    "gather-offsets-last", classes=(30, 38, 39), about="the dims of slices stand behind those of the indices",
    edits=[(f"{INDEXING}:_combine", "[next(inside if i in window_dims else rest) for i in range(len(batch) +"
            " len(window))]", "[*rest, *inside]")],
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
    "reshape-of-symbols-unchecked", classes=(25, 40, 42), about="a reshape of symbolic sizes is never refuted",
    edits=[(f"{MOVEMENT}:ReshapeOp.check", "if differ_always(before, after):",
            "if isinstance(before, int) and isinstance(after, int) and before != after:")],
)  # fmt: skip

# ---- symbolic sizes ----

wrong(
    "broadcast-takes-symbol", classes=(4, 40), about="a number that meets a symbol broadcasts to the symbol",
    edits=[(f"{BINDING}:broadcast_dim", "(a if isinstance(a, int) else b)", "(b if isinstance(a, int) else a)")],
)  # fmt: skip

# ---- correct changes ----

right(
    "ceildiv-by-negation", about="rounding up as the negative of rounding the negative down",
    edits=[(f"{ALGEBRA}:ceildiv", "if isinstance(b, int) and b > 0:", "if isinstance(b, int) and b > 1 << 40:")],
)  # fmt: skip
