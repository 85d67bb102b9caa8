"""Programs around one thing: an elementwise op, or what a step of random programs makes, each in its turn.

A table of rules for ops (derivatives, padding) is tried with these: a random program has most ops seldom, and rarely
one whose value is used and stands alone enough to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import cast

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import COMPLEX, FLOATS
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.elementwise import CHLO_BROADCASTING, CHLO_FUNCTIONS, EXACT_UNARY, FUNCTIONS
from gcomp.testing.generate.growth import STEPS, Growth
from gcomp.testing.generate.patterns import ragged_dot
from gcomp.testing.generate.program import finish, start_growth

Grow = Callable[[Growth], object]

ARITHMETIC = (
    hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp, hlo.DivideOp, hlo.RemainderOp, hlo.PowerOp,
    hlo.Atan2Op,
)  # fmt: skip
_OF_ONE_OP = frozenset({"unary", "binary", "function", "chlo-function", "chlo-broadcasting"})
"""Steps that make one of many elementwise ops: these have a turn each."""
_OFTEN = frozenset({
    "convolution", "dot", "gather", "scatter", "reduce", "reduce-window", "select-and-scatter", "pad", "slice", "sort",
    "while", "if", "scan", "concatenate", "broadcast", "reshape", "dynamic-slice", "dynamic-update-slice", "cumulative",
    "batch-norm", "fft", "triangular-solve",
})  # fmt: skip
"""Steps that have three turns: there is much that they choose."""
_NO_FLOATS = (hlo.NotOp, hlo.PopcntOp, hlo.CountLeadingZerosOp)
_INTEGERS = (
    chlo.BroadcastAndOp, chlo.BroadcastOrOp, chlo.BroadcastXorOp, chlo.BroadcastShiftLeftOp,
    chlo.BroadcastShiftRightLogicalOp, chlo.BroadcastShiftRightArithmeticOp,
)  # fmt: skip


@cache
def turns() -> Sequence[tuple[str, Grow]]:
    """What programs are made around, by name, one after the other."""
    ops = (*EXACT_UNARY, *FUNCTIONS, *CHLO_FUNCTIONS, *ARITHMETIC, *CHLO_BROADCASTING)
    kept = [op for op in dict.fromkeys(ops) if op not in (*_NO_FLOATS, *_INTEGERS)]
    found: list[tuple[str, Grow]] = [(op.name, partial(_emit, op)) for op in kept if op is not chlo.BroadcastCompareOp]
    for step in STEPS.values():
        if step.name not in _OF_ONE_OP:
            found += [(step.name, step.grow)] * (3 if step.name in _OFTEN else 1)
    return [*found, ("ragged-dot", ragged_dot), ("view-as-real", _view)]


def _view(g: Growth) -> None:
    """Complex numbers as pairs, and back, which random programs do not have."""
    pairs = g.emit(ViewAsRealOp, g.pick(COMPLEX))
    g.emit(ViewAsComplexOp, g.like(pairs))


def topic_of(number: int, steps: Sequence[str] = ()) -> str:
    """What has its turn in the program of a number."""
    return steps[number % len(steps)] if steps else turns()[number % len(turns())][0]


def _emit(op: type[GraphOp], g: Growth) -> None:
    """The op on a value of floats, or of complex numbers where it takes these, and on others of its type."""
    count = len(op.get_irdl_definition().operands)
    for elements in (FLOATS | COMPLEX, FLOATS):
        x = g.pick(elements, empty=False)
        operands = [x, *(g.like(x) for _ in range(count - 1))]
        try:
            made = g.b.emit(op, *operands)
        except VerifyException:  # it has no result of such types
            continue
        try:
            cast(GraphOp, made.owner).verify_()
        except VerifyException:
            Rewriter.erase_op(cast(GraphOp, made.owner))
            continue
        g.keep(made)
        return


def around(
    number: int,
    choices: Choices,
    size: int = 4,
    palette: Sequence[str] | None = None,
    *,
    symbolic: float | None = None,
    steps: Sequence[str] = (),
    closed: bool = False,
) -> Program:
    """The program of a number: what has its turn (of all, or of `steps` by name), with a few steps before it and after.

    Where it is `closed`, these are of `steps` too. Symbols come with a probability, as in random programs where none
    is given.
    """
    g = start_growth(choices, size, palette, symbolic=symbolic)

    def others() -> None:
        for _ in range(choices.near(3)):
            if closed:
                STEPS[choices.chosen(steps)].grow(g)
            else:
                g.take(nested=False)

    others()
    turn = STEPS[steps[number % len(steps)]].grow if steps else turns()[number % len(turns())][1]
    before = len(g.values)
    turn(g)
    if choices.flag(0.3):
        turn(g)
    others()
    finish(g, [v for v in g.values[before:][:1] if isinstance(v.owner, Operation) and v.owner.parent is g.entry])
    return g.program


def plain(number: int, choices: Choices, element: str = "f32") -> Program:
    """The program of a number with nothing in it but what has its turn, on numbers of one type and of known sizes: what
    takes any programs takes these."""
    g = start_growth(choices, 4, (element,), symbolic=0.0)
    turns()[number % len(turns())][1](g)
    finish(g, [])
    return g.program


__all__ = ["around", "plain", "topic_of", "turns"]
