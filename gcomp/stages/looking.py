"""Looking inside of a compiled program: its values, in executables of their own beside it, and checks within it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.checks import table_of
from gcomp.ir.fetching import fetching
from gcomp.ir.locations import where
from gcomp.ir.printing import PrintOp
from gcomp.ir.prints import prints_of, remove_prints
from gcomp.ir.program import Program
from gcomp.options import Options, nobody
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.transform.thread_prints import OUTPUT as PRINTED
from gcomp.runtime.checks import EXTRA, Check
from gcomp.runtime.engine import Ability
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Signature
from gcomp.stages.base import Stage
from gcomp.targets.base import Target


class Looking(Stage):
    """Fetched values and prints, computed by a second executable; and runtime checks, inserted into the program."""

    def __init__(self, options: Options, target: Target) -> None:
        fetch, checks = options.fetch, options.checks
        self.target, self.is_padded = target, bool(options.buckets)
        self.fetch = [fetch] if isinstance(fetch, str) else fetch
        self.checks = checks.split(",") if isinstance(checks, str) else checks
        self._aside: Program | None = None
        self._finder: Callable[[tuple[str, ...]], Model] | None = None

    def before_passes(self, program: Program) -> None:
        """Checks go into the program as it was imported, and prints out of it. Raises UsageError, UnsupportedError."""
        outputs = {port.name for port in program.outputs()}
        keys = [key for key in dict.fromkeys(self.fetch or ()) if key not in outputs]
        prints = prints_of(program)
        self._check(keys, prints)
        self._aside = _aside(program, keys, self.target) if keys or prints else None
        remove_prints(program)
        self._finder = None if self.fetch is None else _finder(program, self.target)
        if self.checks:
            # Where a check fails, the state stays what it was, so that its memory cannot be the next one's.
            program.donate({port.name for port in program.inputs() if port.donated and port.state is None})
            kinds = ",".join(dict.fromkeys(self.checks))
            PassManager(parse_pipeline(f"inline,insert-checks{{kinds={kinds}}}")).run(program)

    def _check(self, keys: Sequence[str], prints: Sequence[PrintOp]) -> None:
        if not (keys or self.checks or prints):
            return
        unfetched = f"{keys[0]!r} is not fetched" if keys else None
        what = unfetched or ("checks are not compiled" if self.checks else "nothing is printed")
        place = where(prints[0]) if prints and not (keys or self.checks) else None
        if self.is_padded:
            why = "its values have parts that mean nothing"
            raise UsageError(f"{what} in a padded model", where=place, why=why, fix="leave buckets out to look into it")
        self.target.require(Ability.LOOKING, what, place)

    def on_plan(self, plan: Plan, program: Program) -> Plan:
        """The plan gives what is fetched, too, and its checks are no outputs."""
        if checks := tuple(Check(**row) for row in table_of(program)):
            plan = replace(plan, checks=checks, signature=_without(plan.signature, EXTRA))
        if self._aside is None:
            return plan
        aside = self.target.lower(self._aside, report=nobody)
        if self._aside.outputs()[-1].name == PRINTED:
            aside = replace(aside, results=aside.results[:-1], signature=_without(aside.signature, 1))
        return self.target.join(plan, program, aside, self._aside)

    def on_model(self, model: Model) -> None:
        model.finder = self._finder


def _without(signature: Signature, count: int) -> Signature:
    """A signature without its last outputs."""
    return replace(signature, outputs=signature.outputs[:-count])


def _aside(program: Program, keys: Sequence[str], target: Target) -> Program:
    """The program of fetched values and prints, optimized for a target. The program itself stays as it is.

    Prints are in order by their data, whatever a target does with effects.
    """
    aside = fetching(program, keys)
    PassManager(parse_pipeline(f"{_THREAD},{target.pipeline()}")).run(aside)
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


def _finder(program: Program, target: Target) -> Callable[[tuple[str, ...]], Model]:
    """What compiles a model of any values of a program, as it is now."""
    original = program.clone()

    def find(keys: tuple[str, ...]) -> Model:
        aside = _aside(original, keys, target)
        return Model(target.lower(aside, report=nobody), dict(aside.weights.items()))

    return find
