"""Imperative patterns, as far as they can be looked at: the object that the compiler runs, on left sides named here.

A pattern does not say what it matches, so nothing can be proved of it; but what it does to the programs that are
enumerated from these terms is decided exactly as for rules. What comes out is `checked`, for left sides of these forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.rules import Attr, Const, Op, Term, Var
from gcomp.passes.rewriting import Pattern
from gcomp.testing.prove.cases import Imperative
from gcomp.testing.prove.choices import row_of
from gcomp.testing.prove.proof import Proof

_X, _Y, _Z = Var("x"), Var("y"), Var("z")


def _view(of: Term, name: str = "p") -> Op:
    return Op(hlo.TransposeOp, of, permutation=Attr(name))


_SEVERAL = (hlo.ComplexOp, hlo.ClampOp, hlo.SelectOp)
"""Ops whose operands are not all of one type."""


def _elementwise(pattern: Pattern) -> Iterator[Op]:
    """Each op on views; the first of two also with a broadcast and with a constant beside it."""
    for op in pattern.roots:
        if not issubclass(op, GraphOp) or op in _SEVERAL or row_of(op) is None:
            continue
        operands = len(op.get_irdl_definition().operands)
        yield Op(op, _view(_X)) if operands == 1 else Op(op, _view(_X), _view(_Y))
    yield Op(hlo.SelectOp, _view(_X), _view(_Y), _view(_Z))
    yield Op(hlo.ClampOp, _Y, _view(_X), _Z)
    yield Op(hlo.SubtractOp, _view(_X), Op(hlo.BroadcastInDimOp, _Y))
    yield Op(hlo.SubtractOp, Const(value=2), _view(_X))


_LEFT_SIDES: Mapping[str, tuple[Op, ...]] = {
    "slice-all": (Op(hlo.SliceOp, _X),),
    "slice-of-slice": (Op(hlo.SliceOp, Op(hlo.SliceOp, _X)),),
    "pad-nothing": (Op(hlo.PadOp, _X, _Y),),
    "transpose-of-unit-dims": (Op(hlo.TransposeOp, _X),),
    "transpose-into-dot": (
        Op(hlo.DotGeneralOp, _view(_X), _Y),
        Op(hlo.DotGeneralOp, _X, _view(_Y)),
    ),
    "sink-transpose-pad": (Op(hlo.PadOp, _view(_X), _Y),),
    "sink-transpose-slice": (Op(hlo.SliceOp, _view(_X)),),
    "sink-transpose-concatenate": (Op(hlo.ConcatenateOp, _view(_X), _view(_Y)),),
    "sink-transpose-broadcast": (Op(hlo.BroadcastInDimOp, _view(_X)),),
}


def left_sides(pattern: type[Pattern]) -> list[Imperative]:
    """The forms of a pattern's left side that are looked at; none where the prover has no meaning for its ops."""
    made: Any = pattern()
    terms = _elementwise(made) if pattern.name == "sink-transpose-elementwise" else _LEFT_SIDES.get(pattern.name, ())
    return [Imperative(f"{pattern.name}: {term.op.name.partition('.')[2]}", term, made) for term in terms]


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
