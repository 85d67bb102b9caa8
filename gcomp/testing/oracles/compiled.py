"""gcomp's own targets in a worker process: a program is lowered, compiled and run as users' programs are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.testing.oracles.process import WorkerOracle

Array = np.ndarray[Any, Any]


class CompiledOracle(WorkerOracle):
    """`CompiledOracle("xla:cpu").run(text, inputs)`: the outputs as the target computes them, or an OracleFailure."""

    def __init__(self, target: str = "xla:cpu", *, timeout: float = 60.0) -> None:
        super().__init__(timeout=timeout)
        self.EVALUATOR = f"compiled {target}"


def make_evaluator(target: str) -> Callable[[str, Sequence[Array]], list[Array]]:
    """The evaluator, for the worker process. It runs no passes: the text is what is lowered."""
    from gcomp.driver import compile

    def evaluate(text: str, inputs: Sequence[Array]) -> list[Array]:
        return [np.asarray(result) for result in compile(text, target=target, pipeline="").flat([*inputs])]

    return evaluate
