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
    "raise-logsumexp-unjoined", classes=(8, 22), about="the maximum that is added need not be the one subtracted",
    edits=[(f"{SOFTMAX}:RaiseLogSumExp.rewrite",
            "kept.value is not highest.value or kept.places != total.places or not highest.ordered",
            "kept.value.type != highest.value.type")],
)  # fmt: skip

# ---- raise-norms ----

NORMS = "passes.raising.raise_norms"
norm = partial(edits.wrong, target="raise-norms")

norm(
    "raise-norm-scale-of-rows", classes=(4, 25), about="a scale that varies along other dimensions is taken in",
    edits=[(f"{NORMS}:vector",
            "if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:\n        return None",
            "if len(kept) == 1 and read.shape[kept[0]] == read.shape[axis]: kept = [axis]\n"
            "    if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:\n        return None")],
)  # fmt: skip

# ---- raise-activations ----

ACTIVATIONS = "passes.raising.raise_activations"
active = partial(edits.wrong, target="raise-activations")

active(
    "raise-silu-of-anything", classes=(37,), about="the gate may be of another value of the type",
    edits=[(f"{ACTIVATIONS}:RaiseSilu._gated", "other.owner.operand is x", "other.owner.operand.type == x.type")],
)  # fmt: skip

# ---- raise-rotary ----

ROTARY = "passes.raising.raise_rotary"
rotary = partial(edits.wrong, target="raise-rotary")

rotary(
    "raise-rotary-unturned", classes=(24,), about="the halves may stand in any order",
    edits=[(f"{ROTARY}:RaiseRotary._turned", "(first[1], second[1]) != (0, 1)", "first[1] == second[1]")],
)  # fmt: skip

# ---- raise-attention ----

ATTENTION = "passes.raising.raise_attention"
attention = partial(edits.wrong, target="raise-attention")

attention(
    "raise-attention-guard-lost", classes=(6, 42), about="a query that sees no key gives NaN",
    edits=[(f"{ATTENTION}:RaiseAttention.rewrite", "safe=safe", "safe=False")],
)  # fmt: skip
