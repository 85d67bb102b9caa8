"""The random numbers of a program: a stream for each random node, all of them moved by one seed, an input.

Philox has a key of 64 bits and a counter of 128. A node's key is its place among the random nodes of the program; the
upper half of its counter is the seed, the lower half counts blocks of bits from 0. The numbers are not those of
torch's own generator, and their distribution is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.types import tensor

SEED = "seed"
"""The name of the input that moves all streams."""


class Streams:
    """The streams of one import."""

    def __init__(self, builder: Builder) -> None:
        self._b = builder
        self.seed: SSAValue | None = None
        """The input, once a node asked for it."""
        self._drawn: list[Operation] = []
        self._replayed: SSAValue | None = None

    def state(self) -> SSAValue:
        """Where the next node's stream starts, ui64[2], for `from_state`: its number, and the seed."""
        if self._replayed is not None:
            return self._replayed
        b = self._b
        if self.seed is None:
            taken = {port.name for port in b.program.inputs()}
            name = next(n for i in range(len(taken) + 1) if (n := f"{SEED}_{i}" if i else SEED) not in taken)
            self.seed = b.program.add_input(name, tensor((), "ui64"), 0)
        number = b.constant(np.array([len(self._drawn)], np.uint64))
        return b.concatenate([number, b.reshape(self.seed, (1,))], 0)

    @contextmanager
    def from_state(self, state: SSAValue) -> Generator[None]:
        """Inside the `with`, draw the numbers again that were drawn from a state."""
        self._replayed = state
        try:
            yield
        finally:
            self._replayed = None

    def bits(self, shape: Sequence[Size], element: str) -> SSAValue:
        """Random bits for a node: ui32 or ui64 of a shape."""
        b, state = self._b, self.state()
        number, seed = b.slice_axis(state, 0, 0, 1), b.slice_axis(state, 0, 1, 2)
        types = (tensor((3,), "ui64"), tensor(shape, element))
        start = b.concatenate([number, b.constant(np.array([0], np.uint64)), seed], 0)
        found = b.emit_all(hlo.RngBitGeneratorOp, start, types=types, rng_algorithm="PHILOX")[1]
        self._drawn.append(cast(Operation, found.owner))
        if self._replayed is not None:
            self._replayed = b.concatenate([b.add(number, b.full((1,), 1, "ui64")), seed], 0)
        return found

    def check(self) -> None:
        """Raises UnsupportedError for a random node in a loop, which would give the same numbers in each iteration."""
        for op in self._drawn:
            around = op.parent_op()
            while around is not None:
                if isinstance(around, hlo.WhileOp):
                    raise UnsupportedError(
                        "gcomp does not import this random operator inside of a loop",
                        where=where(op), why="it would give the same numbers in each iteration",
                        fix="draw the numbers outside of the loop",
                    )  # fmt: skip
                around = around.parent_op()
