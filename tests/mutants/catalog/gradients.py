"""Mistakes in derivatives: those that the field has made, and others like them."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

back = partial(edits.wrong, target="vjp")
forth = partial(edits.wrong, target="jvp")

# ---- reverse mode ----

back(
    "vjp-shared-value-once", classes=(36,), about="of a value that is used twice (a shared parameter) one use counts",
    edits=[("autodiff.sweeps:_Sweep.add", "derivative if known is None else self.b.add(known, derivative)",
            "derivative")],
)  # fmt: skip
back(
    "vjp-slice-scatter-zeroed", classes=(36,), about="what is written into a slice gets no cotangent",
    edits=[("autodiff.movement:_dynamic_update", "hlo.DynamicSliceOp, g,", "hlo.DynamicSliceOp, zeros(b, g),")],
)  # fmt: skip
back(
    "vjp-maximum-ties-all", classes=(36,), about="each of several equal maxima gets the whole cotangent",
    edits=[("autodiff.reduction:_extreme", "b.divide(total, b.reduce(hlo.AddOp, hit, axes))", "total")],
)  # fmt: skip
back(
    "vjp-gather-duplicates", classes=(31, 36), about="of an element that is gathered twice the larger cotangent counts",
    edits=[("autodiff.indexing:_given_back", "scalar_region(hlo.AddOp,", "scalar_region(hlo.MaximumOp,")],
)  # fmt: skip
back(
    "vjp-scatter-overwritten", classes=(31, 36), about="what a scatter overwrites gets the cotangent, not the update",
    edits=[("autodiff.indexing:_replaced", "lambda args: [args[1]]", "lambda args: [args[0]]")],
)  # fmt: skip
back(
    "vjp-while-carried-alias", classes=(34, 36), about="of two carried values that are one value one cotangent counts",
    edits=[("autodiff.loops:_Iteration.built", "inner.add(value, cotangent)", "inner.put(value, cotangent)")],
)  # fmt: skip
back(
    "vjp-while-turns-forward", classes=(34, 36), about="the turns are taken from the first on",
    edits=[("autodiff.loops:_Backward.run", "b.subtract(last, block.args[0])", "block.args[0]")],
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
edits.right(
    "vjp-sums-the-other-way", "vjp", about="a cotangent is added to the left of what there was",
    edits=[("autodiff.sweeps:_Sweep.add", "self.b.add(known, derivative)", "self.b.add(derivative, known)")],
)  # fmt: skip

back(
    "vjp-recomputed-from-the-first", classes=(36,), about="an op that runs again reads one operand for all of a type",
    edits=[("autodiff.saving:_Again._copy", "dict(zip(op.operands, operands, strict=True))",
            "dict(zip(op.operands, [operands[0] if x.type == op.operands[0].type else y for x, y in "
            "zip(op.operands, operands)], strict=True))")],
)  # fmt: skip
back(
    "vjp-recomputed-for-another", classes=(36,), about="an op that reads several values made again gets one for all",
    edits=[("autodiff.saving:_Again.run", "self._values[v] if v in values else v",
            "self._values[values[0] if v.type == values[0].type else v] if v in values else v")],
)  # fmt: skip
back(
    "vjp-softmax-by-element", classes=(36,), about="the elements of a softmax do not depend on each other",
    edits=[("autodiff.calls:_softmax", "b.subtract(t, mean)", "t")],
)  # fmt: skip
back(
    "vjp-log-softmax-weights", classes=(36,), about="logarithms of weights are taken for the weights",
    edits=[("autodiff.calls:_of_logarithm", "b.emit(hlo.ExponentialOp, y)", "y")],
)  # fmt: skip

back(
    "vjp-stack-begun-forgotten", classes=(34, 36), about="what was in a stack keeps the cotangent of what is written",
    edits=[("autodiff.loops:_fills", " or sweep.wants(op.operands[place])", "")],
)  # fmt: skip
back(
    "vjp-stack-out-of-range", classes=(30, 34, 36), about="places beyond the end of a stack count as places",
    edits=[("autodiff.loops:_fills", "is not None and low >= 0", "is not None")],
)  # fmt: skip

# ---- forward mode ----

forth(
    "jvp-one-operand", classes=(36,), about="an elementwise op has the derivative in its first operand only",
    edits=[("autodiff.table:Partials.push", "zip(op.operands, self.factors, strict=True)",
            "zip(op.operands[:1], self.factors, strict=False)")],
)  # fmt: skip
forth(
    "jvp-branch-lost", classes=(36, 37), about="branches have a tangent only where all of them do",
    edits=[("autodiff.control:Branches.push", "and any(inner.get", "and all(inner.get")],
)  # fmt: skip
forth(
    "jvp-sort-in-place", classes=(31, 36), about="tangents stay where they are when their elements are sorted",
    edits=[("autodiff.indexing:sort", "gathering.take_along(b, t, order, axis)", "t")],
)  # fmt: skip
forth(
    "jvp-clamped-moves", classes=(6, 36), about="a bound that cuts nothing off has a derivative",
    edits=[("autodiff.elementwise:clamp", "(under, inside, over)", "(inside, inside, over)")],
)  # fmt: skip
