"""Programs for a pass: each holds something that the pass looks for, or nearly.

What a pass looks for is the left sides of its rules (`directed`), and for patterns, which do not say it, steps that are
registered by `@seeks(pass names)`: in `complexes`, `decomposed`, `forms`, `known`, `library`, `patterns`, `placed`,
`quantized`, `spelled` and `windows`, and the steps of other programs named here. Of any pass, one that nobody has seen
before too, the ops that its source names say which of all these steps suit it (`mentioned_ops`).
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import cast

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.ir.types import tensor, tensor_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Rewrite
from gcomp.testing.generate.chains import chain_ops
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.control import return_values
from gcomp.testing.generate.directed import TRIES, instance, rules_among
from gcomp.testing.generate.elementwise import EVERY_ELEMENT
from gcomp.testing.generate.growth import STEPS, Growth
from gcomp.testing.generate.mentioned import (
    Ops,
    asks_for_constants,
    compared_numbers,
    makes,
    mentioned_ops,
    named_elements,
)
from gcomp.testing.generate.negated import negations
from gcomp.testing.generate.program import finish, start_growth

Grow = Callable[[Growth], object]
Finish = Callable[[Program, Choices], Program]

_SOUGHT: dict[str, list[tuple[Grow, float]]] = {}
_FINISHED: dict[str, Finish] = {}
_USUAL: dict[str, dict[str, float]] = {
    "canonicalize": {"pad": 1, "slice": 1, "concatenate": 1, "transpose": 1},
    "conv-channels-last": {"convolution": 5, "network": 1},
    "conv-to-arithmetic": {"convolution": 1},
    "cse": {"duplicate": 4, "near-duplicate": 4, "random-numbers": 1, "random-bits": 1, "if": 1, "while": 1,
            "constant": 1, "iota": 1},
    "dce": {"call": 3, "composite": 2, "while": 2, "if": 2, "case": 1, "random-numbers": 2, "constant": 2, "tuple": 1},
    "decompose": {"chlo-broadcasting": 4, "batch-norm": 5, "network": 1, "legacy-dot": 1, "legacy-broadcast": 1,
                  "map": 2, "dynamic-pad": 2, "real-dynamic-slice": 2, "dynamic-gather": 1, "dynamic-iota": 1,
                  "dimension-size": 1, "chlo-function": 2, "complex": 1, "binary": 2},
    "drop-barriers": {"barrier": 4},
    "dot-weight-layout": {"dot": 1, "matmul": 1},
    "expand-chlo": {"scan": 2},
    "fold-batch-norm": {"network": 1},
    "fuse": {"softmax": 2, "norm": 2, "reduce": 3, "matmul": 1, "dot": 1, "convolution": 1, "sort": 1, "concatenate": 1,
             "random-numbers": 1, "while": 1},
    "fold-constants": {"computed-constant": 1},
    "infer-shapes": {"dynamic-reshape": 2, "dynamic-broadcast": 2, "dynamic-iota": 2, "dynamic-pad": 3,
                     "real-dynamic-slice": 3, "call": 2, "dynamic-gather": 1, "dimension-size": 1},
    "inline": {"call": 5, "while": 1, "if": 1, "composite": 1},
    "inline-composites": {"softmax": 2, "norm": 2, "gelu": 1, "attention": 1, "composite": 4},
    "integer-products": {"quantized": 1},
    "library-to-host": {"cholesky": 3, "triangular-solve": 4},
    "order-for-memory": {"while": 2, "if": 1, "random-numbers": 1, "scan": 1, "transpose": 1},
    "plan-memory": {"while": 6, "if": 2, "case": 1, "scan": 2, "reshape": 2, "transpose": 1, "sort": 1,
                    "dynamic-update-slice": 2, "scatter": 2},
    "quantized-products": {"quantized": 1},
    "rematerialize": {"broadcast": 3, "iota": 1, "transpose": 1, "pad": 1, "if": 1, "while": 1, "reshape": 1},
    "window-to-arithmetic": {"reduce-window": 3, "cumulative": 1},
}  # fmt: skip
"""The steps of random programs that make what a pass looks for, by weight."""

_INSIDE, _AGAIN = 0.15, 0.35
_RULE_KINDS = [0.5, 0.7, 1.0]
"""Of a rule: its left side, nearly that, that without one thing that it asks for; as running totals."""
_ANY_ELEMENT, _FEW_TRIES = 0.3, 24
"""What is denied may be something that every program fulfils."""
_OF_SIZES = 0.7
"""How often a program has symbolic sizes, for a pass that asks for them."""
_OF_ELEMENTS = 0.2
"""How often all that a program has is of one element type that the pass names; and of just those, where it names
several."""
_STEPS = (
    "complexes", "decomposed", "forms", "known", "library", "patterns", "placed", "quantized", "spelled", "windows",
)  # fmt: skip
"""The files of steps that are registered for passes."""
_RULES = 0.3
"""What the rules of a pass weigh at least, all together, next to its steps: the more there are, the more."""
_ALIKE, _CHAIN, _CHAINED = 0.2, 3, 0.5
"""What the steps that make ops named in a pass's source weigh, next to its rules and steps; how many at a time; how
often one of them reads what others of them give."""


def seeks(*passes: str, weight: float = 1.0) -> Callable[[Grow], Grow]:
    """Register the function below as one that makes what these passes look for, or nearly."""

    def add(grow: Grow) -> Grow:
        for name in passes:
            _SOUGHT.setdefault(name, []).append((grow, weight))
        return grow

    return add


def finishes(name: str) -> Callable[[Finish], Finish]:
    """Register the function below as what is done to a program for a pass at the end."""

    def add(finish: Finish) -> Finish:
        _FINISHED[name] = finish
        return finish

    return add


def program_for(
    step: Pass, choices: Choices, size: int = 10, turn: int | None = None, *, tries: int = TRIES
) -> Program:
    """A program of about `size` ops with something in it that a pass looks for, or nearly.

    What it is around, which is what has its turn or else is left to the choices, comes first; now and then something
    else that the pass looks for comes, too. Of a pass that nothing is known of, it is any program. The left side of a
    rule is tried to be built so many times.
    """
    numbers, ops = named_by(step)
    elements = _elements_named_by(step)
    palette = _palette(choices, elements)
    g = start_growth(choices, size, palette, symbolic=_OF_SIZES if DimOp in ops else None)
    g.compared, g.named, g.of_constants = numbers, ops, _asks_for_constants(step)
    _grow(g, size // 3)
    kept = _seek_once(step, g, turn, tries)
    if choices.flag(_AGAIN):
        kept += _seek_once(step, g, None, tries)
    _grow(g, size // 3)
    finish(g, kept)
    return _FINISHED[step.name](g.program, choices) if step.name in _FINISHED else g.program


def _palette(choices: Choices, named: Sequence[str]) -> Sequence[str] | None:
    """The element types of a program for a pass that names some: mostly any; at times one of these, or just these."""
    if named and choices.flag(_OF_ELEMENTS):
        return (choices.chosen(named),)
    return named if len(named) > 1 and choices.flag(_OF_ELEMENTS) else None


def _grow(g: Growth, most: int) -> None:
    for _ in range(g.choices.integer(0, most)):
        g.choices.span(lambda: g.take(nested=False))


def topic_of(step: Pass, turn: int) -> str:
    """What a program is around that a turn is given for: a rule, or a function that makes ops."""
    known = sought_by(step)
    chosen = _in_turn(known.totals, turn)
    if chosen < len(known.rules):
        return known.rules[chosen].name
    chosen -= len(known.rules)
    return cast(FunctionType, known.steps[chosen]).__name__ if chosen < len(known.steps) else "ops that it names"


def _in_turn(totals: Sequence[float], turn: int) -> int:
    """One of several weights, given as running totals: in many turns, each has the turns that are its due, spread
    evenly (Weyl's sequence of the golden ratio)."""
    return bisect_right(totals, (turn * _GOLDEN % 2**64) / 2**64 * totals[-1])


_GOLDEN = 0x9E3779B97F4A7C15
"""The golden ratio, of which the whole numbers do not count, in units of 2**-64: turns are too large for floats."""


def _seek_once(step: Pass, g: Growth, turn: int | None, tries: int) -> list[SSAValue]:
    """What the pass looks for, at times inside a branch; the values that must stay in use."""
    if g.choices.flag(_INSIDE):
        _branch(g, lambda: _one(step, g, turn, tries))
        return []
    found = _one(step, g, turn, tries)
    return [] if found is None else [found]


def _one(step: Pass, g: Growth, turn: int | None, tries: int) -> SSAValue | None:
    known = sought_by(step)
    chosen = g.choices.weighted(known.totals) if turn is None else _in_turn(known.totals, turn)
    if chosen < len(known.rules):
        return _rule(g, known.rules[chosen], tries)
    chosen -= len(known.rules)
    if chosen < len(known.steps):
        known.steps[chosen](g)
        return None
    # One after the other: each mostly takes what the one before it made.
    for _ in range(g.choices.integer(1, _CHAIN)):
        grow = known.alike[g.choices.weighted(known.alike_totals)]
        if g.choices.flag(_CHAINED):
            chain_ops(g, grow)
        else:
            grow(g)
    return None


def _rule(g: Growth, rule: Rule, tries: int) -> SSAValue | None:
    """The left side of a rule; or one that strays from it a little; or one that lacks one thing that it asks for."""
    kind = g.choices.weighted(_RULE_KINDS)
    if kind == 2 and (denied := negations(rule)):
        of = g.choices.chosen(EVERY_ELEMENT) if g.choices.flag(_ANY_ELEMENT) else None
        return instance(g, g.choices.chosen(denied), tries=_FEW_TRIES, of=of)
    return instance(g, rule, loose=kind == 1, tries=tries)


@cache
def rules_of(step: Pass) -> tuple[Rule, ...]:
    """The rules of a pass: those that it gives to the pattern driver, or else those in its file."""
    known = _rewrites_of(step)
    found = rules_among(known) if known else rules_among(vars(_module(step)).values())
    return tuple({rule.name: rule for rule in found}.values())


@cache
def _rewrites_of(step: Pass) -> tuple[Rewrite, ...]:
    """The rules and patterns that a pass gives to the pattern driver."""
    context, program = PassContext(), Program.empty([])
    program.finish([])
    with suppress(Exception):  # a pass of another level may refuse it, and one that is wrong may do anything
        step.run(program, context)
    return tuple(context.known.values())


@cache
def named_by(step: Pass) -> tuple[tuple[float, ...], Ops]:
    """The numbers and the ops that a pass and its rewrites name in their source."""
    cls, rewrites = type(step), _rewrites_of(step)
    return compared_numbers(cls, rewrites), mentioned_ops(cls, rewrites)


@cache
def sources_of(step: Pass) -> frozenset[str]:
    """The files of a pass and of its rewrites."""
    modules = [type(step).__module__, *(type(r).__module__ for r in _rewrites_of(step) if not isinstance(r, Rule))]
    return frozenset(file for name in modules if (file := getattr(sys.modules.get(name), "__file__", None)))


@cache
def _elements_named_by(step: Pass) -> tuple[str, ...]:
    return named_elements(type(step), _rewrites_of(step))


@cache
def _asks_for_constants(step: Pass) -> bool:
    return asks_for_constants(type(step), _rewrites_of(step))


def named_places(step: Pass, program: Program) -> tuple[int, ...]:
    """Where, in the order of all its ops, a program has those that the source of a pass names."""
    _, ops = named_by(step)
    return tuple([i for i, op in enumerate(program.ops()) if type(op) in ops])


def _module(step: Pass) -> ModuleType:
    return sys.modules[type(step).__module__]


@dataclass(frozen=True)
class LookedFor:
    """What a pass looks for: its rules, the steps that are registered for it, and those that make ops it names.

    `totals` are the running totals of the weights of each rule, each step, and of those `alike` all together.
    """

    rules: Sequence[Rule]
    steps: Sequence[Grow]
    alike: Sequence[Grow]
    totals: Sequence[float]
    alike_totals: Sequence[float]


@cache
def sought_by(step: Pass) -> LookedFor:
    """What a pass looks for."""
    rules, name = rules_of(step), step.name
    everything = _everything()
    steps: list[tuple[Grow, float]] = [
        *sorted(_SOUGHT.get(name, ()), key=lambda row: _place(row[0])),
        *((STEPS[s].grow, w) for s, w in _USUAL.get(name, {}).items()),
    ]
    weighed = [(grow, _likeness(grow, named_by(step)[1])) for grow in everything]
    alike = [(grow, weight) for grow, weight in weighed if weight > 0] or [(_anything, 1.0)]
    share = max(_RULES, len(rules) / (len(rules) + len(steps) or 1))
    each = share * sum(w for _, w in steps) / len(rules) if steps and rules else 1.0
    weights = [*(each for _ in rules), *(w for _, w in steps)]
    # What is known for certain comes first.
    weights.append(_ALIKE * sum(weights) if weights else 1.0)
    return LookedFor(
        rules, [grow for grow, _ in steps], [grow for grow, _ in alike], _totals(weights),
        _totals([weight for _, weight in alike]),
    )  # fmt: skip


def _totals(weights: Sequence[float]) -> list[float]:
    return [float(t) for t in np.cumsum(weights)]


def get_ready() -> None:
    """Look through all steps once, which takes a second: processes that are forked then need not."""
    for grow in _everything():
        makes(grow)


@cache
def _everything() -> Sequence[Grow]:
    """All steps there are, those that are registered for passes too."""
    for module in _STEPS:
        import_module(f"gcomp.testing.generate.{module}")
    registered = [grow for steps in _SOUGHT.values() for grow, _ in steps]
    return list(dict.fromkeys([*(step.grow for step in STEPS.values()), *sorted(registered, key=_place)]))


def _place(grow: Grow) -> tuple[str, int]:
    """Where a step stands: a number makes the same program whichever file was imported first."""
    function = cast(FunctionType, grow)
    return function.__module__, function.__code__.co_firstlineno


def _likeness(grow: Grow, wanted: Ops) -> float:
    """How much of what a step makes is wanted; a step that makes several wanted ops together counts more."""
    made = makes(grow)
    common = made & wanted
    return len(common) ** 2 / len(made) if common else 0.0


def _anything(g: Growth) -> None:
    g.take(nested=True)


def _branch(g: Growth, grow: Callable[[], object]) -> None:
    """An `if` that grows in one branch and does nothing in the other."""
    x, pred = g.pick(), g.of_type(tensor((), "i1"))
    wanted = [tensor_of(x)]
    regions: list[Region] = []
    for inside in (grow, None):
        block = Block()
        with g.within(block):
            g.values.append(x)
            if inside is not None:
                inside()
            g.b.emit_all(hlo.ReturnOp, *(return_values(g, wanted) if inside is not None else [x]), types=())
        regions.append(Region(block))
    if g.choices.flag():
        regions.reverse()
    g.keep(g.b.emit_all(hlo.IfOp, pred, types=wanted, regions=regions)[0])


__all__ = [
    "LookedFor", "finishes", "get_ready", "named_by", "named_places", "program_for", "rules_of", "seeks", "sought_by",
    "sources_of", "topic_of",
]  # fmt: skip
