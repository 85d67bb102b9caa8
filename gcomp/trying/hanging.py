"""A pass that does not end: the program on which it does not, made small in a process of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import load_options, pipeline_option
from gcomp.testing import workers
from gcomp.testing.fuzz import directed
from gcomp.testing.reduce import op_count, reduce_program
from gcomp.trying.conduct import Late, limited
from gcomp.trying.correct import Counterexample

_ENDS = 0.4
"""Seconds of the processor after which a pass on a candidate is taken not to end: milliseconds are usual."""
_MEMORY = 4 << 30


def reduce_hanging(step: Pass, number: int, folder: Path, seconds: float) -> Counterexample | None:
    """The program of a number, on which a pass does not end, made small within about so many seconds and written to a
    file. None where it ends there after all, or does not let itself be stopped."""
    limits = workers.Limits(3 * seconds + 10, _MEMORY)
    for _, found in workers.run_tasks(partial(_reduce, step, seconds), [number], 1, limits):
        if isinstance(found, str):
            return _written(step, number, found, folder)
    return None


def _reduce(step: Pass, seconds: float, number: int) -> str | None:
    try:
        return reduce_program(directed.program_of(step, number), partial(hangs_on, step), seconds=seconds).text()
    except GcompError:
        return None  # it ends on it


def hangs_on(step: Pass, program: Program) -> bool:
    """Whether a pass does not end on a program, which stays as it is."""
    copy = program.clone()
    try:
        with limited(_ENDS):
            step.run(copy, PassContext())
    except Late:
        return True
    except Exception:  # it ends
        return False
    return False


def _written(step: Pass, number: int, text: str, folder: Path) -> Counterexample:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"hangs-{step.name}-{number}.mlir"
    command = f"gcomp opt {path} {pipeline_option([step])}{load_options([step])}"
    message = f"the pass {step.name} does not end"
    path.write_text(f"// {message}: {command}\n{text.rstrip()}\n", "utf-8")
    return Counterexample("hangs", message, op_count(Program.parse(text)), text.strip(), str(path), command)


__all__ = ["hangs_on", "reduce_hanging"]
