"""Programs that contain the left side of a rewrite rule, made from the rule itself.

The left side is built term by term (`recipes`) among the values of a growing program, until the pattern driver's own
`match` says that the rule applies; then the program grows on. Near misses are wanted too: `loose` ones differ from the
left side in a value, a constant or a property, and show whether a rule looks closely enough.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.passes.registry import all_passes
from gcomp.passes.rewriting import match
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.elementwise import EVERY_ELEMENT
from gcomp.testing.generate.growth import USUAL, Growth, element, step
from gcomp.testing.generate.recipes import Draft, Impossible, Need

TRIES = 180
_RARE, _RARE_TRIES = 0.2, 4
FAULTS = (Impossible, VerifyException, IndexError, KeyError, ValueError, TypeError)
"""What a draft may raise whose properties do not fit its operands."""


@lru_cache(maxsize=1)
def known_rules() -> dict[str, Rule]:
    """All rules of all passes by name."""
    modules = {cls.__module__ for cls in all_passes().values()}
    return {rule.name: rule for name in sorted(modules) for rule in rules_among(vars(sys.modules[name]).values())}


def rules_among(values: Iterable[Any]) -> Iterator[Rule]:
    """The rules among some values, and in tuples and lists of them."""
    for value in values:
        if isinstance(value, Rule):
            yield value
        elif isinstance(value, tuple | list):
            yield from (v for v in value if isinstance(v, Rule))  # pyright: ignore


def instance(
    g: Growth, rule: Rule, *, loose: bool = False, tries: int = TRIES, of: str | None = None
) -> SSAValue | None:
    """A value whose op the rule matches (a `loose` one may not), or None where no try gave one.

    `of` is an element type that the left side is to have.
    """
    first, rare = g.choices.integer(0, len(USUAL) - 1), g.choices.flag(_RARE)
    for attempt in range(tries):
        start = mark(g)
        # A condition may ask for an element type that the program does not have: all are tried in turn.
        any_type = frozenset({element(USUAL[(first + attempt) % len(USUAL)])}) if attempt > 1 else None
        if rare and attempt < _RARE_TRIES:
            any_type = frozenset({element(g.choices.chosen(EVERY_ELEMENT))})
        if of is not None:
            any_type = frozenset({element(of)})
        if attempt % 4 == 3:
            # What there is may not suit at all: a constant that a rule names has no value in an empty tensor.
            g.values = []
        try:
            root = Draft(g, loose, rule.profit is not None).build(rule.lhs, Need(elements=any_type))
            assert isinstance(root, OpResult)
            verify_since(g, start)
        except FAULTS:
            roll_back(g, start)
            continue
        if loose or _applies(rule, root.op):
            g.values = [*start[2], *(v for v in g.values if v not in start[2])]
            return g.keep(root)
        roll_back(g, start)
    return None


def _applies(rule: Rule, op: Operation) -> bool:
    """Whether a rule matches; a condition that raises is worth a program, too."""
    try:
        return match(rule, op) is not None
    except Exception:  # the pass will raise it, and who judges it says so
        return True


Mark = tuple[Any, int, list[SSAValue], int]


def mark(g: Growth) -> Mark:
    """Where a program is now, to go back to."""
    return g.b.block.last_op, len(g.entry.args), list(g.values), g.b.made


def verify_since(g: Growth, start: Mark) -> None:
    """Verify the ops made since. VerifyException for one that is not valid."""
    op = g.b.block.last_op
    while op is not None and op is not start[0]:
        op.verify_()
        op = op.prev_op


def roll_back(g: Growth, start: Mark) -> None:
    """Erase what was made since."""
    last, args, g.values, g.b.made = start
    block = g.b.block
    while block.last_op is not None and block.last_op is not last:
        block.erase_op(block.last_op, safe_erase=False)
    for arg in g.entry.args[args:]:
        g.entry.erase_arg(arg, safe_erase=False)


@step("rule", weight=2)
def any_rule(g: Growth) -> None:
    """A program that matches, or nearly matches, the left side of a rule chosen at random."""
    families: dict[str, list[Rule]] = {}
    for known in known_rules().values():
        families.setdefault(known.family or known.name, []).append(known)
    rule = g.choices.chosen(g.choices.chosen(list(families.values())))
    if instance(g, rule, loose=g.choices.flag(0.35), tries=8) is None:
        g.pick()


def random_matching(
    rule: Rule, choices: Choices, size: int = 10, *, verify: bool = False, loose: bool = False,
    of: str | None = None,
) -> Program:  # fmt: skip
    """A program of about `size` ops that contains the rule's left side (or nearly, if `loose`), with it in use.

    `of` is an element type that the left side is to have.

    Raises UsageError where no way was found to build the left side.
    """
    from gcomp.testing.generate.program import finish, start_growth

    growth = start_growth(choices, size)
    for _ in range(choices.integer(0, size // 3)):
        choices.span(lambda: growth.take(nested=False))
    root = instance(growth, rule, loose=loose, of=of)
    if root is None:
        raise UsageError(f"no program was found that the rule {rule.name} matches", why=f"{TRIES} tries did not match")
    for _ in range(choices.integer(0, size // 3)):
        choices.span(lambda: growth.take(nested=False))
    finish(growth, [root])
    if verify:
        growth.program.verify("as generated")
    return growth.program
