"""Mistakes in making GPU kernels: masks, bounds, strides, identities, accumulators, rounding, places of data."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

ELEMENTS, SCHEDULES = "lowering.triton.elements", "lowering.triton.schedules"
FRAMES = "lowering.triton.frames"
tile = partial(edits.wrong, target="tiles")
same = partial(edits.right, target="tiles")

# ---- masks and bounds ----

tile(
    "tile-load-mask-dropped", classes=(13,), about="lanes beyond the last element load too",
    edits=[(f"{ELEMENTS}.table:Elements._load", "frame.mask(access.conditions, frame.used(access))",
            "frame.mask(access.conditions, ())")],
)  # fmt: skip
tile(
    "tile-store-mask-dropped", classes=(13,), about="lanes beyond the last element store too",
    edits=[(f"{SCHEDULES}.kernel:KernelWriter.store",
            "frame.full_mask() if coordinates is None else frame.mask((), coordinates)", "None")],
)  # fmt: skip
tile(
    "tile-bound-off-by-one", classes=(13,), about="the lane after the last element takes part",
    edits=[(f"{FRAMES}:Frame._within", '"lt"', '"le"')],
)  # fmt: skip
tile(
    "tile-condition-starts-late", classes=(23, 24), about="the first element of a piece or after a pad is left out",
    edits=[(f"{FRAMES}:Frame._holds", '"ge"', '"gt"')],
)  # fmt: skip
tile(
    "tile-condition-ends-late", classes=(23, 24), about="an upper bound that is one too high counts as known to hold",
    edits=[(f"{FRAMES}:Frame._holds", "condition.hi - 1 - condition.expr", "condition.hi - condition.expr")],
)  # fmt: skip
tile(
    "tile-blocks-rounded-down", classes=(13,), about="the last, partial block has no program",
    edits=[(f"{SCHEDULES}.kernel:blocks_of", "ceildiv(extent, block)", "extent // block")],
)  # fmt: skip
tile(
    "tile-partial-block-forgotten", classes=(13,), about="blocks of two count as covering every extent",
    edits=[(f"{SCHEDULES}.kernel:covered", "block == 1", "block <= 2")],
)  # fmt: skip

# ---- places of data ----

tile(
    "tile-stride-wrong", classes=(23, 25), about="the stride of a dimension is its own size",
    edits=[(f"{FRAMES}:linear", "place * size + index", "place + index * size")],
)  # fmt: skip
tile(
    "tile-indices-not-wrapped", classes=(25,), about="an inner index counts on over the whole tensor",
    edits=[(f"{FRAMES}:delinearized", "mod(quotient, shape[i])", "quotient")],
)  # fmt: skip
tile(
    "tile-pad-condition-lost", classes=(23,), about="the padding is read from the operand",
    edits=[(f"{ELEMENTS}.movement:_chosen", "[c for c in read.conditions if c not in access.conditions]", "[]")],
)  # fmt: skip
tile(
    "tile-pieces-swapped", classes=(24,), about="a concatenation takes the other piece",
    edits=[(f"{ELEMENTS}.movement:concatenate", "read, tile, found)", "read, found, tile)")],
)  # fmt: skip
tile(
    "tile-gather-not-clamped", classes=(30,), about="indices below zero read before the operand",
    edits=[(f"{ELEMENTS}.indexing:clamped", 'b.apply("maximum", wide, b.constant(0, kind))', "wide")],
)  # fmt: skip
tile(
    "tile-gather-past-the-end", classes=(30,), about="indices that are too large read beyond the operand",
    edits=[(f"{ELEMENTS}.indexing:clamped", 'b.apply("minimum", low, limit)', "low")],
)  # fmt: skip
tile(
    "tile-update-too-wide", classes=(26,), about="an update covers all of a dimension",
    edits=[(f"{ELEMENTS}.indexing:dynamic_update_slice", "Condition(own, 0, size)", "Condition(own, 0, n)")],
)  # fmt: skip
tile(
    "tile-window-padded-backwards", classes=(28,), about="a window's padding moves it the wrong way",
    edits=[(f"{ELEMENTS}.folding:in_window", '- w["padding"]', '+ w["padding"]')],
)  # fmt: skip

# ---- sums ----

tile(
    "tile-identity-of-max", classes=(1, 13), about="lanes without an element hold 0 in a maximum",
    edits=[(f"{SCHEDULES}.identities:identity_of", '"stablehlo.maximum": least', '"stablehlo.maximum": 0')],
)  # fmt: skip
tile(
    "tile-init-forgotten", classes=(1,), about="a reduction begins with the identity, whatever its initial value",
    edits=[(f"{SCHEDULES}.folds:Fold.finish", "if self.identity is None or not _holds(inits[0], self.identity):",
            "if self.identity is None:")],
)  # fmt: skip
tile(
    "tile-order-ignored", classes=(22,), about="regions whose order matters are taken in any",
    edits=[(f"{SCHEDULES}.identities:order_is_open", "and _same(first, run(*b, *a))", "or True")],
)  # fmt: skip
tile(
    "tile-loop-ends-early", classes=(13,), about="the last chunk of a long row is left out",
    edits=[(f"{SCHEDULES}.reduction:Reduction._range", "position(columns.extent)", "position(columns.extent - 1)")],
)  # fmt: skip
tile(
    "tile-fold-starts-late", classes=(1, 28), about="a fold leaves out its first element",
    edits=[(f"{ELEMENTS}.folding:turns", "b.loop(b.position(0)", "b.loop(b.position(1)")],
)  # fmt: skip
tile(
    "tile-accumulator-too-narrow", classes=(18,), about="products of f64 are added in f32",
    edits=[(f"{ELEMENTS}.folding:sum_type", '"f64" if wide == "f64" else "f32"', '"f32"')],
)  # fmt: skip
tile(
    "tile-terms-not-masked", classes=(5, 13), about="what lies beyond the terms of a product is added too",
    edits=[(f"{SCHEDULES}.contraction:_Contraction._factor", "if mask is not None and", "if False and")],
)  # fmt: skip
tile(
    "tile-blocks-swapped", classes=(5, 25), about="a block of rows is taken for one of columns",
    edits=[(f"{SCHEDULES}.contraction:_Contraction._block_of", "floordiv(mod(d(0), share), group)",
            "floordiv(mod(d(0), share), across)")],
)  # fmt: skip

# ---- sums in pieces, and persistent kernels ----

PRODUCTS = f"{SCHEDULES}.contraction:_Contraction"
tile(
    "tile-pieces-leave-a-rest", classes=(5, 13), about="turns that are no multiple of the pieces are left out",
    edits=[(f"{PRODUCTS}.sum_pieces", "ceildiv(blocks_of(terms, self.terms), pieces)",
            "floordiv(blocks_of(terms, self.terms), pieces)")],
)  # fmt: skip
tile(
    "tile-pieces-overlap", classes=(5,), about="a piece goes on to the last term",
    edits=[(f"{PRODUCTS}.sum_pieces", "b.add(first, share)", "lhs.position(terms)")],
)  # fmt: skip
tile(
    "tile-pieces-end-beyond", classes=(13,), about="the last piece of a sum has turns beyond the terms",
    edits=[(f"{PRODUCTS}.sum_pieces", 'b.apply("minimum", lhs.position(terms), b.add(first, share))',
            "b.add(first, share)")],
)  # fmt: skip
tile(
    "tile-last-piece-lost", classes=(5, 28), about="the last piece of a sum is not added",
    edits=[(f"{PRODUCTS}.add_pieces", "b.position(pieces), 1", "b.position(pieces - 1), 1")],
)  # fmt: skip
tile(
    "tile-persistent-once", classes=(13,), about="programs stop after their first block",
    edits=[(f"{PRODUCTS}.run", "tiles.position(count)", "tiles.position(programs)")],
)  # fmt: skip
tile(
    "tile-persistent-steps-too-far", classes=(13,), about="a program passes over a block",
    edits=[(f"{PRODUCTS}.run", "programs, [], turn", "programs + 1, [], turn")],
)  # fmt: skip
tile(
    "tile-persistent-batches", classes=(5, 25), about="the batch of a block counts rows of blocks",
    edits=[(f"{PRODUCTS}.run", "floordiv(d(0), across * down)", "floordiv(d(0), across)")],
)  # fmt: skip

# ---- values ----

tile(
    "tile-clamp-the-other-way", classes=(6,), about="a clamp takes the lower bound last",
    edits=[(f"{ELEMENTS}.elementwise:_clamp", '"minimum", [rounded(b, op, "maximum", [x, least]), most]',
            '"maximum", [rounded(b, op, "minimum", [x, most]), least]')],
)  # fmt: skip
tile(
    "tile-total-order-of-negatives", classes=(7, 9), about="the total order of negative floats is upside down",
    edits=[(f"{ELEMENTS}.elementwise:total_order", "(1 << (width - 1)) - 1", "0")],
)  # fmt: skip
tile(
    "tile-nan-is-one", classes=(16,), about="NaN becomes the integer 1",
    edits=[(f"{ELEMENTS}.elementwise:_to_integer", "b.constant(0.0, source)", "b.constant(1.0, source)")],
)  # fmt: skip
tile(
    "tile-no-saturation", classes=(16,), about="what is too large for an integer becomes 0",
    edits=[(f"{ELEMENTS}.elementwise:_to_integer", "b.constant(int(limits.max), to)", "b.constant(0, to)")],
)  # fmt: skip
tile(
    "tile-rounded-in-f16", classes=(18,), about="what is computed of bf16 is rounded to f16 on the way",
    edits=[(f"{ELEMENTS}.elementwise:rounded", "return narrowed(b, found, kinds[-1])",
            'return narrowed(b, b.cast(b.cast(found, "f16"), "f32"), kinds[-1])')],
)  # fmt: skip
tile(
    "tile-narrow-integers-not-wrapped", classes=(15,), about="integers of 4 bits keep a fifth",
    edits=[(f"{ELEMENTS}.bits:wrapped", "8 - bit_width(dtype)", "7 - bit_width(dtype)")],
)  # fmt: skip

# ---- controls ----

same(
    "tile-small-blocks", about="loops take 64 elements at a time",
    edits=[(f"{SCHEDULES}.loop:_flat_step", '"block", 1024', '"block", 64')],
)  # fmt: skip
same(
    "tile-masks-everywhere", about="no block is known to be covered",
    edits=[(f"{SCHEDULES}.kernel:covered", "return extent != 0 and (", "return False and (")],
)  # fmt: skip
same(
    "tile-nothing-is-known", about="no formula is known not to be negative",
    edits=[(f"{FRAMES}:Frame.holds", "return self._known.holds(size)", "return False")],
)  # fmt: skip
same(
    "tile-pieces-added-in-rows", about="pieces of sums are added in blocks of sixteen rows at most",
    edits=[(f"{PRODUCTS}.add_pieces", "ADDED // self.columns, 1", "16, 1")],
)  # fmt: skip
same(
    "tile-blocks-in-order", about="blocks of a product come row by row",
    edits=[(f"{SCHEDULES}.contraction:_Contraction._block_of", 'self.settings.get("group", GROUP)', "1")],
)  # fmt: skip
