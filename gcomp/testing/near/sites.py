"""Which ops of a program a pass touches, and what is near them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult
from xdsl.traits import IsTerminator

from gcomp.ir.program import Program
from gcomp.ir.stablehlo import CompositeOp
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.structure import computes_otherwise

_MOST_REWRITES = 2000


@dataclass(frozen=True)
class Touched:
    """Where, in the order of all its ops, a program has those that a pass erased or changed itself; which rewrites
    it applied. Ops that only read what was replaced do not count."""

    places: tuple[int, ...]
    rewrites: tuple[str, ...]

    @property
    def applied(self) -> bool:
        """Whether the pass did more than drop what is dead."""
        return bool(self.rewrites)


def touch(step: Pass, program: Program) -> Touched:
    """What a pass does to a program; where it raises, what it did before."""
    copy, context = program.clone(), PassContext(bisect_limit=_MOST_REWRITES)
    ops = list(copy.ops())
    known = [(op, _state(op)) for op in ops]
    with suppress(Exception):  # whoever judges the pass says what it is
        changed = step.run(copy, context)
        if changed and not (context.known or context.counts) and computes_otherwise(step, program, copy):
            context.counts[step.name] += 1  # it counts no rewrites
    left = set(copy.ops())
    places = [i for i, (op, state) in enumerate(known) if op not in left or _state(op) != state]
    return Touched(tuple(places), tuple(context.counts))


def _state(op: Operation) -> tuple[object, ...]:
    if isinstance(op, ModuleOp | FuncOp):
        return ()
    return dict(op.properties), dict(op.attributes), tuple(op.result_types), len(op.operands)


def near(program: Program, places: Iterable[int], distance: int = 2) -> list[Operation]:
    """The ops at some places, and those near them: makers of operands, users, what is in regions and in functions.

    The nearer one is, the more often it is in the list.
    """
    ops = list(program.ops())
    found: list[Operation] = []
    ring = computing(dict.fromkeys(ops[i] for i in places))
    seen = dict.fromkeys(ring)
    for far in range(distance + 1):
        found += [op for op in ring for _ in range(1 << (distance - far))]
        ring = [op for op in computing(_around(program, ring)) if op not in seen]
        seen.update(dict.fromkeys(ring))
    return found or computing(ops)


def computing(ops: Iterable[Operation]) -> list[Operation]:
    """Those that compute something."""
    return [op for op in ops if op.results and not isinstance(op, ModuleOp | FuncOp) and not op.has_trait(IsTerminator)]


def callee(op: CallOp | CompositeOp) -> str:
    """The name of the function that an op stands for, or calls."""
    return op.decomposition_name if isinstance(op, CompositeOp) else op.callee.root_reference.data


def _around(program: Program, ops: Sequence[Operation]) -> Iterable[Operation]:
    found: dict[Operation, None] = {}
    for op in ops:
        found.update(dict.fromkeys(v.op for v in op.operands if isinstance(v, OpResult)))
        found.update(dict.fromkeys(inner for region in op.regions for inner in region.walk()))
        if isinstance(op, CompositeOp | CallOp) and (function := program.function(callee(op))) is not None:
            found.update(dict.fromkeys(function.body.walk()))
        found.update(dict.fromkeys(use.operation for result in op.results for use in result.uses))
    return found


__all__ = ["Touched", "callee", "computing", "near", "touch"]
