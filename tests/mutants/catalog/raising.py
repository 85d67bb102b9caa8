"""Mistakes in finding what a name stands for: patterns that take in what means something else, or say it wrongly."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

# ---- raise-softmax ----

SOFTMAX = "passes.raising.raise_softmax"
soft = partial(edits.wrong, target="raise-softmax")

soft(
    "raise-softmax-any-axis", classes=(25, 38), about="the sum may go along another dimension than the maximum",
    edits=[(f"{SOFTMAX}:RaiseSoftmax.rewrite", "total[1] != found[2] or ", "")],
)  # fmt: skip
soft(
    "raise-softmax-first-axis", classes=(38,), about="a softmax goes along the first dimension",
    edits=[(f"{SOFTMAX}:RaiseSoftmax.rewrite", '{"axis": min(found[2])}', '{"axis": 0}')],
)  # fmt: skip
soft(
    "raise-logsumexp-unjoined", classes=(8, 22), about="the maximum that is added need not be the one subtracted",
    edits=[(f"{SOFTMAX}:RaiseLogSumExp.rewrite",
            "kept.value is not highest.value or kept.places != total.places or not highest.ordered",
            "kept.value.type != highest.value.type")],
)  # fmt: skip
soft(
    "raise-log-softmax-first-axis", classes=(38,), about="a logarithm of a softmax goes along the first dimension",
    edits=[(f"{SOFTMAX}:RaiseLogSoftmax.rewrite", '{"axis": min(found[2])}', '{"axis": 0}')],
)  # fmt: skip

# ---- raise-norms ----

NORMS = "passes.raising.raise_norms"
norm = partial(edits.wrong, target="raise-norms")

norm(
    "raise-norm-epsilon-lost", classes=(38,), about="the epsilon is that of a default",
    edits=[(f"{NORMS}:RaiseLayerNorm.rewrite", '"epsilon": epsilon', '"epsilon": 1e-5')],
)  # fmt: skip
norm(
    "raise-norm-variance-of-x", classes=(22,), about="the mean square of x passes for its variance",
    edits=[(f"{NORMS}:variance", "same(inner, centered)", "(same(inner, centered) or same(inner, x))")],
)  # fmt: skip
norm(
    "raise-norm-scale-of-rows", classes=(4, 25), about="a scale that varies along other dimensions is taken in",
    edits=[(f"{NORMS}:vector",
            "if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:\n        return None",
            "if len(kept) == 1 and read.shape[kept[0]] == read.shape[axis]: kept = [axis]\n"
            "    if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:\n        return None")],
)  # fmt: skip
norm(
    "raise-norm-axes-not-last", classes=(25,), about="a norm over other dimensions than the last ones counts",
    edits=[(f"{NORMS}:trailing", "axes and axes == frozenset(range(first, rank))", "axes")],
)  # fmt: skip
norm(
    "raise-batch-norm-swapped", classes=(38,), about="mean and variance of a batch norm change places",
    edits=[(f"{NORMS}:RaiseBatchNorm.rewrite", "[scale, bias, mean, v]", "[scale, bias, v, mean]")],
)  # fmt: skip

# ---- raise-activations ----

ACTIVATIONS = "passes.raising.raise_activations"
active = partial(edits.wrong, target="raise-activations")

active(
    "raise-gelu-any-half", classes=(22,), about="any factor passes for one half",
    edits=[(f"{ACTIVATIONS}:RaiseGelu.rewrite", "number != 0.5", "number <= 0")],
)  # fmt: skip
active(
    "raise-gelu-square", classes=(22,), about="a square passes for the cube",
    edits=[(f"{ACTIVATIONS}:_is_power", "len(found[1]) == times", "len(found[1]) in (times, 2)")],
)  # fmt: skip
active(
    "raise-silu-of-anything", classes=(37,), about="the gate may be of another value of the type",
    edits=[(f"{ACTIVATIONS}:RaiseSilu._gated", "other.owner.operand is x", "other.owner.operand.type == x.type")],
)  # fmt: skip
active(
    "raise-gelu-approximation-lost", classes=(38,), about="a GELU by tanh is said to be exact",
    edits=[(f"{ACTIVATIONS}:gate", 'return "tanh"', 'return "none"')],
)  # fmt: skip

# ---- raise-rotary ----

ROTARY = "passes.raising.raise_rotary"
rotary = partial(edits.wrong, target="raise-rotary")

rotary(
    "raise-rotary-unturned", classes=(24,), about="the halves may stand in any order",
    edits=[(f"{ROTARY}:RaiseRotary._turned", "(first[1], second[1]) != (0, 1)", "first[1] == second[1]")],
)  # fmt: skip
rotary(
    "raise-rotary-tables-swapped", classes=(38,), about="cosines and sines change places",
    edits=[(f"{ROTARY}:RaiseRotary.rewrite", "compact([cosine, sine], b)",
            "compact([sine, cosine], b)")],
)  # fmt: skip
rotary(
    "raise-rotary-any-sine", classes=(37,), about="the second half may be turned by other sines",
    edits=[(f"{ROTARY}:RaiseRotaryHalves._adds", "any(same(s, sine) for s in products(right, x, 0))",
            "any(True for _ in products(right, x, 0))")],
)  # fmt: skip

# ---- raise-attention ----

ATTENTION = "passes.raising.raise_attention"
attention = partial(edits.wrong, target="raise-attention")

attention(
    "raise-attention-scale-inverted", classes=(22,), about="a divisor of the scores is taken for a factor",
    edits=[(f"{ATTENTION}:_scaled", "found.scale / number if", "found.scale * number if")],
)  # fmt: skip
attention(
    "raise-attention-fill-lost", classes=(38,), about="masked scores are -inf, whatever they were",
    edits=[(f"{ATTENTION}:RaiseAttention._build", "scores.selected[1]", 'float("-inf")')],
)  # fmt: skip
attention(
    "raise-attention-one-mask", classes=(37,), about="of masks that are added only the first counts",
    edits=[(f"{ATTENTION}:RaiseAttention._build", "for mask in added[1:]:", "for mask in added[2:]:")],
)  # fmt: skip
attention(
    "raise-attention-result-unmoved", classes=(25,), about="the result stays in the composite's order, if it fits",
    edits=[(f"{ATTENTION}:RaiseAttention._restored", "b.transpose(result, [present.index(label) for label in kept])",
            "result")],
)  # fmt: skip
attention(
    "raise-attention-guard-lost", classes=(6, 42), about="a query that sees no key gives NaN",
    edits=[(f"{ATTENTION}:RaiseAttention.rewrite", "safe=safe", "safe=False")],
)  # fmt: skip
edits.right(
    "raise-attention-masks-backwards", "raise-attention", about="masks are added from the last on",
    edits=[(f"{ATTENTION}:RaiseAttention._build", "for mask in scores.added]", "for mask in scores.added[::-1]]")],
)  # fmt: skip
