"""From the rule of an op to a finding: each local factor is cut, and each obligation is put to the solver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

from xdsl.ir import Operation

from gcomp.dims import symbols_of
from gcomp.ir.walking import captures
from gcomp.partitioning import LOCAL, ShardingRule, rule_of
from gcomp.partitioning.rule import letter
from gcomp.testing.prove.proof import Proof, Status
from gcomp.testing.prove.sharding.family import PART, PARTS, Cut, Refused, cuts
from gcomp.testing.prove.sharding.laws import LAWS
from gcomp.testing.prove.sharding.obligations import DEVICE, Broken, Obligation, obligations
from gcomp.testing.prove.theory import Term, z3

SMALL = 3
"""Counterexamples are looked for up to so many parts, and with parts and sizes of so many indices."""


def local_factors(rule: ShardingRule) -> list[int]:
    """The factors that a device cuts alone, of a size that is known and not 1: what is to be proved.

    One that is minor in a dimension is cut after the major one, into single indices: then it is the major one, too.
    What the reducer of the op itself (`body`) would have to combine is not cut.
    """
    known = [f.size != 1 and "_" not in symbols_of(f.size) for f in rule.factors]
    return [i for i, found in enumerate(known) if found and rule.is_cuttable(i)]


def prove(op: Operation, twin: ShardingRule | None, effort: int) -> Proof:
    """The weakest finding of all local factors."""
    start, true = time.process_time(), rule_of(op)
    if true is None:
        raise ValueError(f"{op.name} has no rule")
    rule = true if twin is None else twin
    factors = local_factors(true) if twin is None else [i for i, f in enumerate(twin.factors) if f.kind in LOCAL]
    found = [_prove_factor(op, rule, true, factor, effort) for factor in factors]
    spent = time.process_time() - start
    if not found:
        return Proof(op.name, Status.PROVED, "nothing to prove", spent, 0)
    status, how, counterexample = max(found, key=lambda f: f[0].rank)
    return Proof(op.name, status, how, spent, len(factors), counterexample)


Finding = tuple[Status, str, str | None]
_OPEN = Status.TESTED


def _prove_factor(op: Operation, rule: ShardingRule, true: ShardingRule, factor: int, effort: int) -> Finding:
    """What can be said of one factor."""
    name = f"factor {letter(factor)} of {rule}"
    row = LAWS.get(type(op))
    if row is None:
        return _OPEN, "what an element is made of is not known", None
    if captures(op):
        return _OPEN, "its regions use values from outside", None
    bounded = False
    try:
        for cut in cuts(op, rule, true, factor):
            bounded |= isinstance(cut.count, int)
            for each in obligations(cut, row(cut.whole)):
                if (found := _decide(cut, each, effort)) is not None:
                    return found[0], f"{name}: {each.name}", found[1]
    except (Refused, Broken) as wrong:
        return Status.REFUTED, name, f"however it is cut, into 2 parts of 1 for example: {wrong}"
    except ValueError as error:
        return _OPEN, f"{name}: {error}", None
    return Status.PROVED, "indexing maps, at the op's number of groups" if bounded else "indexing maps", None


def _decide(cut: Cut, obligation: Obligation, effort: int) -> tuple[Status, str | None] | None:
    """None where the obligation is met; otherwise what is known of it."""
    if z3.is_true(z3.simplify(obligation.goal)):
        return None
    wrong = z3.Not(obligation.goal)
    solver = z3.Solver()
    solver.set("rlimit", effort)
    solver.add(*obligation.known, wrong)
    if solver.check() == z3.unsat:
        return None
    for sizes in _small(obligation):
        fixed = [(z3.Int(name), z3.IntVal(size)) for name, size in sizes.items()]
        solver = z3.Solver()
        solver.set("rlimit", effort)
        solver.add(*(z3.substitute(term, *fixed) for term in (*obligation.known, wrong)))
        if solver.check() == z3.sat:
            return Status.REFUTED, _shown(cut, sizes, solver.model())
    return _OPEN, None


def _small(obligation: Obligation) -> Iterator[dict[str, int]]:
    """Small sizes, those that are as different as can be first."""
    names = sorted(obligation.sizes)
    others = [name for name in names if name not in (PARTS.text, PART.text)]
    for shift in range(SMALL):
        for count, size in product((2, 3), (2, 1, 3)):
            rest = {name: 1 + (k + shift) % SMALL for k, name in enumerate(others)}
            yield {PARTS.text: count, PART.text: size, **rest}


def _shown(cut: Cut, sizes: dict[str, int], model: Term) -> str:
    """The sizes, the device and the index of a counterexample."""
    symbols = {k: v for k, v in sizes.items() if k not in (PARTS.text, PART.text)}
    count = sizes[PARTS.text] if not isinstance(cut.count, int) else cut.count
    part = sizes[PART.text] if not isinstance(cut.size, int) else cut.size
    values = {str(name): model[name] for name in model.decls()}
    index = ", ".join(f"{k.removeprefix('$')} = {v}" for k, v in sorted(values.items()) if k.startswith("$"))
    others = "".join(f", {name} = {size}" for name, size in sorted(symbols.items()))
    return f"{count} parts of {part}{others}; device {values.get(DEVICE.text, 0)}, index {index or '()'}"
