"""Mistakes in indexing maps: what ops read, how maps are composed and simplified, and how much they reach."""

from __future__ import annotations

from tests.mutants import edits

edits.wrong(
    "map-captured-not-read", "indexing", classes=(26,), about="what a region takes from around it is not read",
    edits=[("analysis.indexing.paths:reads", "captured = [(v, whole", "captured = [] and [(v, whole")],
)  # fmt: skip
edits.right(
    "map-summed-otherwise", "indexing", about="the start and the strides of a slice are added in the other order",
    edits=[("analysis.indexing.movement:slice_", "start + stride * x", "x * stride + start")],
)  # fmt: skip
