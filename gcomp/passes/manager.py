"""Runs a pipeline, with instruments that watch it: timing, printing, verification, checking, reproduction."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from gcomp.dims import DimLimitError, comparisons
from gcomp.errors import GcompError, InternalError, UnsupportedError, UserCodeError
from gcomp.ir.program import Program
from gcomp.owners import is_own, line_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import load_options, pipeline_option


class Instrument:
    """Watches passes; every hook may be left out."""

    def begin(self, context: PassContext) -> None:
        """Called before the first pass of a run, with what all its passes share."""

    def before(self, step: Pass, program: Program) -> None:
        """Called before a pass runs."""

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        """Called after a pass ran."""


@dataclass
class Timing(Instrument):
    """Seconds, ops and whether anything changed, per pass."""

    rows: list[tuple[str, float, int, bool]] = field(default_factory=list[tuple[str, float, int, bool]])

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        self.rows.append((str(step.spec()), seconds, program.op_count(), changed))


@dataclass
class PrintAfterChange(Instrument):
    """Prints the program after every pass that changed it."""

    write: Callable[[str], object]

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        if changed:
            self.write(f"// ----- after {step.spec()}\n{program.text()}")


class VerifyEach(Instrument):
    """Verifies the whole program after every pass that changed it."""

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        if changed:
            program.verify(f"after the pass {step.spec()}")


@dataclass
class CheckUnchanged(Instrument):
    """Holds passes to what they return: a pass that says it changed nothing must not have."""

    text: str = ""

    def before(self, step: Pass, program: Program) -> None:
        self.text = program.text()

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        if not changed and program.text() != self.text:
            raise InternalError(f"the pass {step.spec()} changed the program and did not say so")


@dataclass
class CheckEach(Instrument):
    """Compares the program's meaning before and after every pass (`check` raises when they differ)."""

    check: Callable[[Pass, Program, Program], None]
    original: Program | None = None

    def before(self, step: Pass, program: Program) -> None:
        self.original = program.clone()

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        if changed and self.original is not None:
            self.check(step, self.original, program)
        self.original = None


@dataclass
class PassManager:
    """Runs passes in order on a program, in place."""

    passes: Sequence[Pass]
    instruments: Sequence[Instrument] = ()
    reproducer: Path | None = None
    """Where to write the program and the rest of the pipeline when a pass crashes."""
    _history: _History | None = field(default=None, init=False, repr=False)

    def run(self, program: Program, context: PassContext | None = None) -> bool:
        """Run all passes; whether any changed the program. A crash in a pass is an InternalError with a reproducer."""
        context = context or PassContext()
        for instrument in self.instruments:
            instrument.begin(context)
        changed = False
        settled: set[Pass] = set()
        """The passes that ran since the last change: running one of them again would change nothing."""
        # A copy, not its text: to print a program takes as long as many passes.
        self._history = _History(program.clone(), context.with_same_limits()) if self.reproducer is not None else None
        for index, step in enumerate(self.passes):
            if step in settled:
                continue
            if self._run_one(program, step, context, self.passes[index:]):
                changed = True
                settled.clear()
                if self._history is not None:
                    self._history.changes.append(step)
            if step.keeps_meaning:
                settled.add(step)
        self._history = None
        return changed

    def _run_one(self, program: Program, step: Pass, context: PassContext, rest: Sequence[Pass]) -> bool:
        try:
            for instrument in self.instruments:
                instrument.before(step, program)
            started = time.perf_counter()
            with comparisons(context.looked_at):
                changed = step.run(program, context)
            seconds = time.perf_counter() - started
            for instrument in self.instruments:
                instrument.after(step, program, changed, seconds)
            return changed
        except InternalError as error:
            written = self._reproduce(rest)
            if not is_own(_file_of(step)):
                raise _of_users(step, error, context, written) from error
            raise
        except GcompError:
            raise
        except DimLimitError as error:
            raise UnsupportedError(
                "The formulas of the program's symbolic sizes are too large.",
                where=f"the pass {step.spec()}",
                why=str(error),
                fix="give more of the symbols sizes, or the inputs that sizes depend on as constants",
            ) from error
        except Exception as error:
            written = self._reproduce(rest)
            if not is_own(_file_of(step)):
                raise _of_users(step, error, context, written) from error
            raise InternalError(
                f"the pass {step.spec()} crashed",
                where=" on ".join(context.failed) if context.failed is not None else context.last or None,
                why=f"{type(error).__name__}: {error}",
                fix=f"report it with {written}" if written else "run again with a crash reproducer and report it",
            ) from error

    def _reproduce(self, rest: Sequence[Pass]) -> str | None:
        if self.reproducer is None or self._history is None:
            return None
        before, passes, context = self._history.replay(rest)
        limit = "" if context.bisect_limit is None else f" --bisect-limit {context.bisect_limit - context.applications}"
        command = f"gcomp opt {quote(str(self.reproducer))} {pipeline_option(passes)}{load_options(passes)}{limit}"
        try:
            self.reproducer.write_text(f"// {command}\n{before.text(locations=True)}", "utf-8")
        except OSError:
            # The crash itself is what must be told, also from a folder where nothing can be written.
            return None
        return str(self.reproducer)


@dataclass
class _History:
    """The program and the context that a pipeline was given, and the passes that have changed the program since."""

    program: Program
    context: PassContext
    changes: list[Pass] = field(default_factory=list[Pass])

    def replay(self, rest: Sequence[Pass]) -> tuple[Program, Sequence[Pass], PassContext]:
        """The program before the pass that crashed, the rest of the pipeline, and the context in which that runs.

        All three are those of the beginning where a pass does not do as before.
        """
        program, context = self.program.clone(), self.context.with_same_limits()
        try:
            for step in self.changes:
                step.run(program, context)
        except Exception:
            # Whatever it is, the crash that is reported is the first one.
            return self.program, [*self.changes, *rest], self.context
        return program, rest, context


def _file_of(step: Pass) -> str:
    """The file that a pass is written in."""
    return getattr(sys.modules.get(type(step).__module__), "__file__", None) or ""


def _of_users(step: Pass, error: Exception, context: PassContext, written: str | None) -> UserCodeError:
    """The error of a pass that is not gcomp's own: what it did, in which line, and to what."""
    rewrite = f", in the rewrite {' on '.join(context.failed)}" if context.failed is not None else ""
    said = f"{error.what} ({error.where})" if isinstance(error, GcompError) else f"{type(error).__name__}: {error}"
    return UserCodeError(
        f"the pass {step.spec()} failed{rewrite}",
        where=line_of(error.__traceback__) or _file_of(step) or None,
        why=said,
        fix=f"mend it there; {written} is the program that it was given" if written else "mend it there",
    )
