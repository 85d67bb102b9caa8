"""Mistakes in what becomes a host step."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

HOST = "passes.convert.library_to_host"
library = partial(edits.wrong, target="library-to-host")
library_right = partial(edits.right, target="library-to-host")

library(
    "triangular-solve-sides-swapped",
    classes=(38,),
    about="the side of the triangle comes from another attribute, where both sides are of one size",
    edits=[
        (
            f"{HOST}:_triangular_solve",
            "bool(op.value(name)) for name in",
            "bool(op.value('lower' if name == 'left_side' and op.b.type.get_shape()[-1] == "
            "op.b.type.get_shape()[-2] else name)) for name in",
        )
    ],
)
library_right(
    "library-flags-one-by-one",
    about="the flags of a triangular solve are read in another order",
    edits=[
        (
            f"{HOST}:_triangular_solve",
            '("left_side", "lower", "unit_diagonal")',
            '("unit_diagonal", "lower", "left_side")',
        )
    ],
)
