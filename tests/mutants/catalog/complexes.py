"""Mistakes in how complex numbers become pairs of real ones, and pairs what memory holds."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

pairs = partial(edits.wrong, target="complex-to-pairs")
pairs_right = partial(edits.right, target="complex-to-pairs")
view = partial(edits.wrong, target="view-as-real")
STRUCTURE, TRANSFORMS = "pairs.structure", "pairs.transforms"


# ---- complex-to-pairs ----

pairs(
    "pairs-scatter-keeps", classes=(31,), about="a scatter that puts what comes keeps what was",
    edits=[(f"{STRUCTURE}:_apart", "block.args.index(returned.operands[0])", "0")],
)  # fmt: skip
pairs_right(
    "pairs-longer-matrices", about="transforms are cut into factors only above 128",
    edits=[(f"{TRANSFORMS}:_Transform._last", "n <= LARGEST_MATRIX", "n <= 128")],
)  # fmt: skip

# ---- view-as-real ----

WHOLE = "passes.convert.view_as_real:ViewOfParts.rewrite"
view(
    "view-sides-reversed", classes=(24, 38), about="the parts stand side by side the other way round",
    edits=[(WHOLE, "b.concatenate(sides, len(shape))", "b.concatenate(sides[::-1], len(shape))")],
)  # fmt: skip
