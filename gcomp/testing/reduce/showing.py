"""What the RUN line of a case needs to show its failure again: nothing, or a file of inputs beside it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.judging import Failure, judge
from gcomp.passes.verifying import Follower
from gcomp.testing.check import Inputs, reference_of

Array = np.ndarray[Any, Any]


def inputs_to_show(
    step: Pass, program: Program, failure: Failure, inputs: Inputs | None = None, *, seeds: Sequence[int] = (0,)
) -> list[Array] | None:
    """Inputs to pass to `gcomp opt --check-each` so that it shows a failure; None where its own inputs do.

    `inputs`, and all that `check_pass` makes from the seeds, are tried. None, too, where none of them shows it.
    """
    if _shows(step, program, failure, None):
        return None
    tried = _given_inputs(step, program, inputs, seeds)
    return next((arrays for arrays in tried if _shows(step, program, failure, arrays)), None)


def inputs_option(option: str, path: Path) -> str:
    """The option of a RUN line that names a file of inputs beside the case."""
    return f" {option} {shlex.quote(f'%S/{path.name}')}"


def _shows(step: Pass, program: Program, failure: Failure, arrays: list[Array] | None) -> bool:
    with suppress(GcompError):  # the reference cannot run it
        found = judge(step, Follower(arrays, settles=True).reference(program))
        return found is not None and found.fingerprint() == failure.fingerprint()
    return False


def _given_inputs(step: Pass, program: Program, inputs: Inputs | None, seeds: Sequence[int]) -> Iterator[list[Array]]:
    with suppress(GcompError):
        if inputs is not None:
            yield from reference_of(step, program, inputs).inputs
    for seed in seeds:
        reference = reference_of(step, program, seed=seed)
        with suppress(GcompError):
            judge(step, reference)  # it adds sizes at which the pass decides otherwise
        yield from reference.inputs


__all__ = ["inputs_option", "inputs_to_show"]
