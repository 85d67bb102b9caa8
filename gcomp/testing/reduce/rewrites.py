"""What the pass at fault did rightly before it went wrong: the program as its first rewrites leave it."""

from __future__ import annotations

from contextlib import suppress

from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.testing.reduce.reducer import Edit, op_count

_MOST = 16
"""A pass that applies more rewrites is tried with so many at most."""


def rewritten(program: Program, step: Pass) -> list[Edit]:
    """Edits that apply the first rewrites of a pass, the most first, where fewer ops are left then.

    A rewrite that is at fault in what another has made, such as the scale of a norm that was found before, is seen in
    a program that has it from the start.
    """
    context = PassContext(bisect_limit=_MOST)
    with suppress(Exception):  # it is at fault: the rewrites before that are counted
        step.run(program.clone(), context)
    return [lambda p, n=n: _apply(p, step, n) for n in reversed(range(1, context.applications))]


def _apply(program: Program, step: Pass, count: int) -> bool:
    before = op_count(program)
    step.run(program, PassContext(bisect_limit=count))
    return op_count(program) < before
