"""The random numbers of a model: one stream for each random node, all of them moved by the caller's seed.

Philox has a key of 64 bits and a counter of 128. A node's key is made of its name, its `seed` attribute and how often
a node of that name was met before, so that no two nodes share one. The counter's upper half is the caller's seed, its
lower half counts blocks of 128 bits from 0. Streams of two seeds are therefore disjoint parts of one sequence.

In the body of a loop the key is drawn anew in each iteration, from the key outside of the loop and the iteration.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.types import tensor

_KEYS = (1 << 64) - 1
"""The lower half of the counters from which loops draw their keys: no stream of numbers gets that far."""


class Streams:
    """The streams of one import."""

    def __init__(self, builder: Builder) -> None:
        self._b = builder
        self._seen: Counter[str] = Counter()
        self._iterations: list[SSAValue] = []
        self._seed: SSAValue | None = None
        self._drawn: list[SSAValue] = []

    @contextmanager
    def iteration(self, index: SSAValue) -> Generator[None]:
        """Inside the `with`, the body of a loop is imported; `index` (rank 0, i64) counts its iterations."""
        self._iterations.append(index)
        try:
            yield
        finally:
            self._iterations.pop()

    def bits(self, name: str, shape: Sequence[Size], element: str) -> SSAValue:
        """Random bits for a node: ui32 or ui64 of a shape."""
        key = self._b.constant(np.array([self._key(name)], np.uint64))
        for index in self._iterations:
            key = self._draw(key, self._row(self._b.convert(index, "ui64")), _KEYS, (1,), "ui64")
        self._drawn.append(self._draw(key, self._row(self.seed()), 0, shape, element))
        return self._drawn[-1]

    def seed(self) -> SSAValue:
        """The program's seed: an input of rank 0 that callers may leave out. It is made when first asked for."""
        if self._seed is None:
            program = self._b.program
            taken = {port.name for port in program.inputs()}
            names = ("seed" if i == 0 else f"seed_{i}" for i in range(len(taken) + 1))
            self._seed = program.add_input(next(n for n in names if n not in taken), tensor((), "ui64"), 0)
        return self._seed

    def check(self) -> None:
        """Raises UnsupportedError for a random node in a loop that would give the same numbers in each iteration."""
        for bits in self._drawn:
            op = cast(Operation, bits.owner)
            if (loop := _repeated_loop(op)) is not None:
                raise UnsupportedError(
                    "gcomp does not import this random node inside a loop.",
                    where=where(op),
                    why=f"it would give the same numbers in each iteration of the loop at {where(loop)}",
                    fix="draw the numbers outside of the loop",
                )

    def _key(self, name: str) -> int:
        self._seen[name] += 1
        text = f"{name}\0{self._seen[name]}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def _row(self, x: SSAValue) -> SSAValue:
        return self._b.reshape(x, (1,))

    def _draw(self, key: SSAValue, high: SSAValue, low: int, shape: Sequence[Size], element: str) -> SSAValue:
        b = self._b
        state = b.concatenate([key, b.constant(np.array([low], np.uint64)), high], 0)
        types = (state.type, tensor(shape, element))
        return b.emit_all(hlo.RngBitGeneratorOp, state, types=types, rng_algorithm="PHILOX")[1]


def _repeated_loop(op: Operation) -> Operation | None:
    """A loop around a random op whose iterations the op's state does not depend on."""
    around = op.parent_op()
    while around is not None:
        if isinstance(around, hlo.WhileOp) and not _depends(op.operands[0], around):
            return around
        around = around.parent_op()
    return None


def _depends(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is computed from what a loop carries."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        found = pending.pop()
        if found in seen:
            continue
        seen.add(found)
        if isinstance(found.owner, Block):
            if found.owner.parent_op() is loop:
                return True
        else:
            pending += found.owner.operands
    return False
