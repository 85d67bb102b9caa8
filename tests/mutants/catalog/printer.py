"""Mistakes in printing tile programs as LLVM IR: integers at their limits, orders of sums, conversions, constants."""

from __future__ import annotations

from functools import partial

from gcomp.lowering.llvm import printing
from tests.mutants import edits
from tests.mutants.mutant import control

FUNCTIONS, CASTS, DOTS, FOLDS = (f"lowering.llvm.{name}" for name in ("functions", "casts", "dots", "folds"))
printer = partial(edits.wrong, target="printer")

# ---- integers ----

printer(
    "printer-sign-of-zero", about="the sign of the integer 0 is 1", classes=(9, 14),
    edits=[(f"{FUNCTIONS}:_integer_sign", '"icmp sgt" if signed', '"icmp sge" if signed')],
)  # fmt: skip
printer(
    "printer-quotient-by-zero", about="the quotient of integers by 0 is 0", classes=(9, 14),
    edits=[(f"{FUNCTIONS}:_divide", '_choose(w, dtype, count, zero, _constant(dtype, count, "-1"), found)',
            '_choose(w, dtype, count, zero, _constant(dtype, count, "0"), found)')],
)  # fmt: skip
printer(
    "printer-remainder-by-zero", about="the remainder of integers by 0 is 0", classes=(9, 14),
    edits=[(f"{FUNCTIONS}:_remainder", "_choose(w, dtype, count, zero, x, found)", "found")],
)  # fmt: skip
printer(
    "printer-quotient-by-minus-one", about="quotients by -1 are not negated", classes=(9, 14),
    edits=[(f"{FUNCTIONS}:_divide", "_choose(w, dtype, count, minus, negated, found)", "found")],
)  # fmt: skip
printer(
    "printer-sign-lost-in-shift", about="arithmetic shifts by the width or more leave the number, not its sign",
    classes=(9, 14), edits=[(f"{FUNCTIONS}:_shift_arithmetic", "str(bit_width(dtype) - 1)", '"0"')],
)  # fmt: skip

# ---- sums ----

printer(
    "printer-product-rounded", about="f32 products are rounded before they are added", classes=(22,),
    edits=[(f"{DOTS}:_multiply_add", '("f32", "f64")', '("f64",)')],
)  # fmt: skip
printer(
    "printer-terms-descending", about="the terms of an iteration are added from the last to the first", classes=(22,),
    edits=[(f"{DOTS}:_block", "for t in range(count)", "for t in reversed(range(count))")],
)  # fmt: skip
printer(
    "printer-scan-one-stays", about="in each step of a scan, one element too many stays", classes=(13,),
    edits=[
        (f"{FOLDS}:_step", "else place < distance", "else place <= distance"),
        (f"{FOLDS}:_step", 'else "slt"', 'else "sle"'),
    ],
)  # fmt: skip

# ---- conversions and constants ----

printer(
    "printer-extended-by-zeros", about="signed integers are widened by zeros", classes=(14, 18),
    edits=[(f"{CASTS}:_code", '"sext" if one == "signed"', '"zext" if one == "signed"')],
)  # fmt: skip
printer(
    "printer-signed-as-unsigned", about="negative integers become great floats", classes=(14, 16),
    edits=[(f"{CASTS}:_code", '"sitofp" if one == "signed"', '"uitofp" if one == "signed"')],
)  # fmt: skip
printer(
    "printer-rounded-twice", about="f64 becomes narrow by way of f32, rounded to nearest both times", classes=(18, 22),
    edits=[(f"{CASTS}:_convert", 'if source == "f64" else', 'if source == "" else')],
)  # fmt: skip
printer(
    "printer-bytes-of-constants", about="bytes of constants of narrow floats are in the other order", classes=(18,),
    edits=[("lowering.llvm.lanes:constant", '"little"', '"big"')],
)  # fmt: skip

# ---- what changes no bit ----

edits.right(
    "printer-other-blocks", "printer", about="products in blocks of the worst shape, each sum in the same order",
    edits=[(f"{DOTS}:block_of", "return max(blocks", "return min(blocks")],
)  # fmt: skip
edits.right(
    "printer-rows-by-address", "printer", about="rows of tiles are reached without a table of addresses",
    edits=[("lowering.llvm.memory:_rows", "offset.rows > MOST_ROWS", "offset.rows > 0")],
)  # fmt: skip


@control("printer-loops-of-few", "printer", about="loops of few iterations are printed as loops")
def _() -> None:
    printing.UNROLLED = 0
