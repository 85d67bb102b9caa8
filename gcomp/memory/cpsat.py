"""Offsets by OR-tools' CP-SAT, an optional dependency: two-dimensional no-overlap with fixed lifetimes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from gcomp.errors import UsageError
from gcomp.memory.problem import Ints, Problem

WORKERS = 1
"""One worker and a fixed seed: the same plan each time, unless the clock ends the search."""


def solver_module() -> Any:
    """OR-tools' CP-SAT, or what to install."""
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ModuleNotFoundError as error:
        raise UsageError(
            "The method cp-sat needs OR-tools, which is not installed.",
            fix="pip install 'gcomp[ortools]', or choose another method",
        ) from error


def solve(problem: Problem, bound: int, hint: Ints, ceiling: int, seconds: float) -> tuple[Ints | None, int, bool]:
    """Offsets with a peak at most `ceiling`, if any were found; a proven bound; whether the clock ended the search.

    `hint` is an assignment to start from. With a capacity, any assignment within it is enough.
    """
    cp = solver_module()
    model = cp.CpModel()
    peak = model.new_int_var(bound, ceiling, "peak")
    starts: list[Any] = []
    times: list[Any] = []
    places: list[Any] = []
    for index, buffer in enumerate(problem.buffers):
        if ceiling < buffer.size:
            return None, buffer.size, False
        multiple = model.new_int_var(0, (ceiling - buffer.size) // buffer.alignment, "")
        start = multiple * buffer.alignment
        starts.append(start)
        model.add_hint(multiple, int(hint[index]) // buffer.alignment)
        model.add(start + buffer.size <= peak)
        if buffer.offset is not None:
            model.add(start == buffer.offset)
        if buffer.size:
            times.append(model.new_fixed_size_interval_var(buffer.lower, buffer.upper - buffer.lower, ""))
            places.append(model.new_fixed_size_interval_var(start, buffer.size, ""))
    model.add_no_overlap_2d(times, places)
    if problem.capacity is None:
        model.minimize(peak)
    solver = cp.CpSolver()
    solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    solver.parameters.num_workers = WORKERS
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status == cp.INFEASIBLE:
        return None, ceiling + 1, False
    if status not in (cp.OPTIMAL, cp.FEASIBLE):
        return None, bound, True
    offsets = np.array([int(solver.value(start)) for start in starts], np.int64)
    proven = bound if problem.capacity is not None else max(bound, int(solver.best_objective_bound))
    return offsets, proven, status == cp.FEASIBLE
