"""The worker's side: `python -m gcomp.testing.oracles.worker EVALUATOR` answers messages until its input ends."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from gcomp.runtime.folders import turn_off
from gcomp.testing.garbage import collect_garbage
from gcomp.testing.oracles import compiled, stablehlo_cpp, xla
from gcomp.testing.oracles.process import pack, unpack

Array = np.ndarray[Any, Any]
Evaluator = Callable[[str, Sequence[Array]], list[Array]]

EVALUATORS: dict[str, Callable[[], Evaluator]] = {
    "stablehlo_cpp": stablehlo_cpp.make_evaluator,
    "xla": xla.make_evaluator,
}
"""By name; `compiled TARGET` is any target of gcomp."""


_PROGRAMS = 25
"""How many programs are taken between two collections of garbage."""


def main(name: str) -> None:
    """Answer requests from standard input on standard output."""
    turn_off()  # Programs are made up: none comes twice.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    kind, _, target = name.partition(" ")
    evaluate = compiled.make_evaluator(target) if kind == "compiled" else EVALUATORS[name]()
    source = sys.stdin.buffer

    def read(count: int) -> bytes:
        data = source.read(count)
        if len(data) != count:
            raise EOFError
        return data

    for count in itertools.count():
        if count % _PROGRAMS == 0:
            collect_garbage()
        try:
            head, arrays = unpack(read)
        except EOFError:
            return
        _answer(answers, evaluate, head["text"], arrays)


def _answer(answers: IO[bytes], evaluate: Evaluator, text: str, arrays: Sequence[Array]) -> None:
    try:
        message = pack({"ok": True}, evaluate(text, arrays))
    except Exception as error:
        # Whatever a foreign evaluator raises is its refusal, and the caller's to judge.
        message = pack({"ok": False, "reason": f"{type(error).__name__}: {error}"[:4000]}, [])
    answers.write(message)
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
