"""A target in a process of its own, its answers held to the reference, and its bits to its tile programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.errors import GcompError, InternalError, UnsupportedError, VerificationError
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.judging.targets import TargetFailure, target_failure
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.references import MAX_STEPS
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.testing.machine import all_differences
from gcomp.testing.oracles import OracleFailure, WorkerOracle
from gcomp.testing.oracles.compiled import CompiledOracle
from gcomp.testing.plans import evaluated, keeps_bits
from gcomp.testing.reduce.reducer import Predicate
from gcomp.testing.reduce.weights import weights_as_inputs
from gcomp.testing.sorts import unordered_elements

Array = np.ndarray[Any, Any]


def command_showing(target: str, kind: str, passes: str = "") -> tuple[str, str]:
    """The command that shows a failure of this kind on a file, with options that name passes; its option for inputs."""
    if kind == "bits":  # which compiling does not compare
        return f"gcomp bisect %s --target {target} --run-target{passes}", "--inputs"
    return f"gcomp compile %s --target {target} --verify full{passes}", "--verify-inputs"


class TargetCheck:
    """Compares what a target computes, in a worker process, with the reference. Usable as a context manager.

    Where a target's bits are part of the meaning (`cpu`), they are also compared with those that the evaluator of its
    tile programs computes, with no tolerance.

    One run of the target takes at most `timeout`, and no longer than until the `deadline`.
    """

    def __init__(
        self, target: str, passes: Sequence[Pass] = (), *, timeout: float = 60.0, deadline: Deadline | None = None
    ) -> None:
        self.target, self.passes, self.timeout, self.deadline = target, passes, timeout, deadline
        self.kept: TargetFailure | None = None
        """What was wrong on the last program that `keeps` took."""
        self.oracle: WorkerOracle = CompiledOracle(target, timeout=timeout)

    def __enter__(self) -> TargetCheck:
        return self

    def __exit__(self, *_: object) -> None:
        self.oracle.close()

    def failure(
        self, program: Program, inputs: Sequence[Array] | None = None, *, seed: int = 0
    ) -> TargetFailure | None:
        """What the target does wrong on a program, if anything. GcompError where the reference has no answer, or the
        time ended."""
        self._check_time()
        arrays = list(inputs) if inputs is not None else sample_inputs(program, seed)
        expected = interpret(program, arrays, max_steps=MAX_STEPS)
        self._check_time()
        optimized = program.clone()
        for step in self.passes:
            try:
                step.run(optimized, PassContext())
            except Exception as error:  # as the worker says what is raised there
                kind = "unsupported" if isinstance(error, UnsupportedError) else "refused"
                return TargetFailure(kind, f"{type(error).__name__}: {error} (in {step.name})")
        planned, weights = weights_as_inputs(optimized)
        self.oracle.timeout = self.timeout if self.deadline is None else min(self.timeout, self.deadline.left)
        actual = self.oracle.run(planned.text(), [*arrays, *weights])
        if isinstance(actual, OracleFailure):
            if actual.kind == "timeout":
                self._check_time()
            kind = "unsupported" if actual.reason.startswith(UnsupportedError.__name__) else actual.kind
            return TargetFailure(kind, actual.reason)
        failure = target_failure(program, arrays, expected, actual, max_steps=MAX_STEPS, deadline=self.deadline)
        if failure is not None and not failure.allowed:
            return failure
        if keeps_bits(self.target):
            found = self._differences(planned, [*arrays, *weights], actual)
            if found and not any(mask.any() for mask in unordered_elements(program, arrays, expected)):
                return TargetFailure("bits", "; ".join(found))
        return failure

    def _differences(self, planned: Program, inputs: Sequence[Array], actual: Sequence[Array]) -> list[str]:
        """Where the machine's bits are not those of the tile programs, which a target's kernels are to have."""
        try:
            return all_differences(evaluated(planned, self.target, inputs), actual)
        except (VerificationError, InternalError) as error:  # memory is misused
            return [str(error)]

    def _check_time(self) -> None:
        if self.deadline is not None:
            self.deadline.check()

    def keeps(
        self,
        failure: TargetFailure,
        inputs: Callable[[Program], Sequence[Array] | None] | None = None,
        *,
        seed: int = 0,
    ) -> Predicate:
        """A predicate for the reducer: whether the target still fails in the same way on a candidate, on its inputs."""

        def interesting(program: Program) -> bool:
            given = None if inputs is None else inputs(program)
            try:
                found = self.failure(program, given, seed=seed)
            except GcompError:
                return False
            same = found is not None and found.fingerprint() == failure.fingerprint()
            self.kept = found if same else self.kept
            return same

        return interesting
