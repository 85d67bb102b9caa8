"""Imperative patterns, as far as they can be looked at: the object that the compiler runs, on left sides named here.

A pattern does not say what it matches, so nothing can be proved of it; but what it does to the programs that are
enumerated from these terms is decided exactly as for rules. What comes out is `checked`, for left sides of these forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Attr, Op, Term, Var
from gcomp.passes.rewriting import Pattern
from gcomp.testing.prove.cases import Imperative
from gcomp.testing.prove.proof import Proof

_X, _Y, _Z = Var("x"), Var("y"), Var("z")


def _view(of: Term) -> Op:
    return Op(hlo.TransposeOp, of, permutation=Attr("p"))


_LEFT_SIDES: Mapping[str, tuple[Op, ...]] = {
    "sink-transpose-concatenate": (
        Op(hlo.ConcatenateOp, _view(_X), _view(_Y)),
        Op(hlo.ConcatenateOp, _view(_X), _view(_Y), _view(_Z)),
    ),
}


def left_sides(pattern: type[Pattern]) -> list[Imperative]:
    """The forms of a pattern's left side that are looked at; none where the prover has no meaning for its ops."""
    made: Any = pattern()
    return [Imperative(pattern.name, term, made) for term in _LEFT_SIDES.get(pattern.name, ())]


def look(pattern: type[Pattern], seconds: float = 20.0) -> Proof | None:
    """What can be said of a pattern on its left sides here, each within `seconds`; None where there are none.

    The weakest finding counts.
    """
    from gcomp.testing.prove.prover import prove

    proofs = [prove(form, seconds) for form in left_sides(pattern)]
    if not proofs:
        return None
    weakest = max(proofs, key=lambda proof: proof.status.rank)
    how = ", ".join(dict.fromkeys(part for proof in proofs for part in proof.how.split("; ")))
    count, time = sum(p.cases for p in proofs), sum(p.seconds for p in proofs)
    text, shown = weakest.counterexample, weakest.confirmed
    return Proof(pattern.name, weakest.status, how, time, count, text, shown)
