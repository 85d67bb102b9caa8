"""Mistakes in making GPU kernels: masks, bounds, strides, identities, accumulators, rounding, places of data."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

ELEMENTS, SCHEDULES = "lowering.tiles.elements", "lowering.tiles.schedules"
FRAMES = "lowering.tiles.frames"
tile = partial(edits.wrong, target="tiles")

# ---- masks and bounds ----

tile(
    "tile-condition-ends-late", classes=(23, 24), about="an upper bound that is one too high counts as known to hold",
    edits=[(f"{FRAMES}:Frame._holds", "condition.hi - 1 - condition.expr", "condition.hi - condition.expr")],
)  # fmt: skip

# ---- places of data ----

tile(
    "tile-gather-not-clamped", classes=(30,), about="indices below zero read before the operand",
    edits=[(f"{ELEMENTS}.indexing:clamp", 'b.apply("maximum", wide, b.constant(0, kind))', "wide")],
)  # fmt: skip

# ---- sums ----

tile(
    "tile-identity-of-max", classes=(1, 13), about="lanes without an element hold 0 in a maximum",
    edits=[(f"{SCHEDULES}.identities:identity_of", '"stablehlo.maximum": least', '"stablehlo.maximum": 0')],
)  # fmt: skip

# ---- sums in pieces, and persistent kernels ----

PRODUCTS = f"{SCHEDULES}.contraction:_Contraction"
tile(
    "tile-last-piece-lost", classes=(5, 28), about="the last piece of a sum is not added",
    edits=[(f"{PRODUCTS}.add_pieces", "b.position(pieces), 1", "b.position(pieces - 1), 1")],
)  # fmt: skip
tile(
    "tile-persistent-batches", classes=(5, 25), about="the batch of a block counts rows of blocks",
    edits=[(f"{PRODUCTS}.run", "floordiv(d(0), across * down)", "floordiv(d(0), across)")],
)  # fmt: skip

# ---- values ----

tile(
    "tile-no-saturation", classes=(16,), about="what is too large for an integer becomes 0",
    edits=[(f"{ELEMENTS}.elementwise:_to_integer", "b.constant(int(limits.max), to)", "b.constant(0, to)")],
)  # fmt: skip
tile(
    "tile-rounded-in-f16", classes=(18,), about="what is computed of bf16 is rounded to f16 on the way",
    edits=[(f"{ELEMENTS}.elementwise:compute_rounded", "return narrow(b, found, kinds[-1])",
            'return narrow(b, b.cast(b.cast(found, "f16"), "f32"), kinds[-1])')],
)  # fmt: skip
tile(
    "tile-narrow-integers-not-wrapped", classes=(15,), about="integers of 4 bits keep a fifth",
    edits=[(f"{ELEMENTS}.bits:sign_extend", "8 - bit_width(dtype)", "7 - bit_width(dtype)")],
)  # fmt: skip
