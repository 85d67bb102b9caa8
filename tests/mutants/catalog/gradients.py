"""Mistakes in derivatives: those that the field has made, and others like them."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

back = partial(edits.wrong, target="vjp")
forth = partial(edits.wrong, target="jvp")

# ---- reverse mode ----

back(
    "vjp-scatter-overwritten", classes=(31, 36), about="what a scatter overwrites gets the cotangent, not the update",
    edits=[("autodiff.indexing:_replace", "lambda args: [args[1]]", "lambda args: [args[0]]")],
)  # fmt: skip
back(
    "vjp-select-swapped", classes=(36, 38), about="the branches of a select change places",
    edits=[("autodiff.elementwise:_select", "(g, zero) if operand == 1", "(g, zero) if operand == 2")],
)  # fmt: skip
back(
    "vjp-pad-value-everything", classes=(23, 36), about="the padding value gets the cotangents of elements too",
    edits=[("autodiff.movement:_pad", "b.reduce(hlo.AddOp, own, everything))",
            "b.reduce(hlo.AddOp, zeros(b, own), everything))")],
)  # fmt: skip
back(
    "vjp-dot-order", classes=(5, 25), about="what a product gives back for an operand is not put into its order",
    edits=[("autodiff.contraction:_dot", "[now.index(i) for i in range(ranks[operand])]",
            "sorted(now.index(i) for i in range(ranks[operand]))")],
)  # fmt: skip


back(
    "vjp-stack-out-of-range", classes=(30, 34, 36), about="places beyond the end of a stack count as places",
    edits=[("autodiff.loops:_fills", "is not None and low >= 0", "is not None")],
)  # fmt: skip

# ---- forward mode ----

forth(
    "jvp-branch-lost", classes=(36, 37), about="branches have a tangent only where all of them do",
    edits=[("autodiff.control:Branches.push", "and any(inner.get", "and all(inner.get")],
)  # fmt: skip
forth(
    "jvp-clamped-moves", classes=(6, 36), about="a bound that cuts nothing off has a derivative",
    edits=[("autodiff.elementwise:clamp", "(under, inside, over)", "(inside, inside, over)")],
)  # fmt: skip
