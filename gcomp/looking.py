"""Looking inside of a compiled program: its values, in executables of their own beside it, and checks within it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.checks import table_of
from gcomp.ir.fetching import fetching
from gcomp.ir.locations import where
from gcomp.ir.printing import PrintOp
from gcomp.ir.prints import prints_of, remove_prints
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import pipeline_for
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.transform.thread_prints import OUTPUT as PRINTED
from gcomp.runtime.checks import EXTRA, Check
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Signature


@dataclass(frozen=True)
class Look:
    """What is to be seen of a program: the program of what is fetched and printed, and what finds more; None for no."""

    aside: Program | None = None
    finder: Callable[[tuple[str, ...]], Model] | None = None

    def plan(self, plan: Plan, program: Program) -> Plan:
        """The plan of a program that was looked into: it gives what is fetched, too, and its checks are no outputs."""
        if checks := tuple(Check(**row) for row in table_of(program)):
            plan = replace(plan, checks=checks, signature=_without(plan.signature, EXTRA))
        if self.aside is None:
            return plan
        from gcomp.lowering.xla import beside, lower

        aside = lower(self.aside, plan.target)
        if self.aside.outputs()[-1].name == PRINTED:
            aside = replace(aside, results=aside.results[:-1], signature=_without(aside.signature, 1))
        return beside(plan, aside, program.weights, self.aside.weights)


def _without(signature: Signature, count: int) -> Signature:
    """A signature without its last outputs."""
    return replace(signature, outputs=signature.outputs[:-count])


def look_into(
    program: Program, target: str, fetch: Sequence[str] | None, checks: Sequence[str], *, padded: bool = False
) -> Look:
    """Prepare a program, as it was imported: checks go into it, and prints out of it, to what runs beside it.

    Raises UsageError, UnsupportedError.
    """
    fetch = [fetch] if isinstance(fetch, str) else fetch
    checks = checks.split(",") if isinstance(checks, str) else checks
    outputs = {port.name for port in program.outputs()}
    keys = [key for key in dict.fromkeys(fetch or ()) if key not in outputs]
    prints = prints_of(program)
    _check_target(target, keys, checks, prints, padded=padded)
    aside = _aside(program, keys, target) if keys or prints else None
    remove_prints(program)
    finder = None if fetch is None else _finder(program, target)
    if checks:
        # Where a check fails, the state stays what it was, so that its memory cannot be the next one's.
        program.donate({port.name for port in program.inputs() if port.donated and port.state is None})
        kinds = ",".join(dict.fromkeys(checks))
        PassManager(parse_pipeline(f"inline,insert-checks{{kinds={kinds}}}")).run(program)
    return Look(aside, finder)


def _check_target(
    target: str, keys: Sequence[str], checks: Sequence[str], prints: Sequence[PrintOp], *, padded: bool
) -> None:
    what = f"{keys[0]!r} is not fetched" if keys else "checks are not compiled" if checks else "nothing is printed"
    if not (keys or checks or prints):
        return
    place = where(prints[0]) if prints and not (keys or checks) else None
    if padded:
        why = "its values have parts that mean nothing"
        raise UsageError(f"{what} in a padded model", where=place, why=why, fix="leave buckets out to look into it")
    if not target.startswith("xla:"):
        fix = "look into the model with the target xla:cpu"
        raise UnsupportedError(f"{what} on the target {target}", where=place, fix=fix)


def _aside(program: Program, keys: Sequence[str], target: str) -> Program:
    """The program of fetched values and prints, optimized for a target. The program itself stays as it is.

    Prints are in order by their data, whatever a target does with effects.
    """
    aside = fetching(program, keys)
    PassManager(parse_pipeline(f"{_THREAD},{pipeline_for(target)}")).run(aside)
    if (drawn := next((op for op in aside.ops() if isinstance(op, hlo.RngOp)), None)) is not None:
        raise UnsupportedError(
            "a value that depends on random numbers without a key cannot be looked at",
            where=where(drawn),
            why="what is fetched or printed is computed beside the program, and other numbers would be drawn",
            fix="return it from the model, or draw the numbers from a key",
        )
    aside.weights.materialize()
    return aside


_THREAD = "dce,inline,inline-composites,thread-prints"


def _finder(program: Program, target: str) -> Callable[[tuple[str, ...]], Model]:
    """What compiles a model of any values of a program, as it is now."""
    original = program.clone()

    def find(keys: tuple[str, ...]) -> Model:
        from gcomp.lowering.xla import lower

        aside = _aside(original, keys, target)
        return Model(lower(aside, target), dict(aside.weights.items()))

    return find


__all__ = ["Look", "look_into"]
