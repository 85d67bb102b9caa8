"""The files of a case: IR text under a RUN line and what is to be said of it, and the inputs that it fails on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.ir.program import Program
from gcomp.passes.checking import as_stored
from gcomp.testing.reduce.record import recorded_inputs

Array = np.ndarray[Any, Any]


def case_text(program: Program, run: str, said: Sequence[str], check: str = "CHECK-LABEL: @main") -> str:
    """A file that a test runs: `run` shows the failure, the lines of `said` tell of it, `check` is what it prints when
    all is well."""
    lines = [f"RUN: {run}", "", *said, "", check]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines) + program.text()


def write_inputs(path: Path, program: Program, known: Mapping[str, Array]) -> bool:
    """Write the recorded inputs of a program as .npz; False, and nothing written, where they were not all recorded."""
    arrays = recorded_inputs(program, known)
    if arrays is None:
        return False
    with path.open("wb") as stream:
        named: dict[str, Any] = {port.name: a for port, a in zip(program.inputs(), arrays, strict=True)}
        np.savez(stream, **named)
    return True


def read_inputs(path: Path, program: Program) -> list[Array] | None:
    """The inputs that `write_inputs` wrote for a program; None where there is no such file. ValueError for another."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as known:
        return [as_stored(np.asarray(known[port.name]), port.dtype) for port in program.inputs()]
