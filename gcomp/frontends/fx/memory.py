"""The memory of a graph's inputs, of which they may be parts: what `as_strided` reads of it are inputs of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.fx.values import element_text
from gcomp.ir.builder import Builder
from gcomp.ir.types import tensor


@dataclass(frozen=True)
class Stretch:
    """An input of the program: so many elements of the memory that an input of the graph is a part of."""

    number: int
    """Which of the program's inputs it is."""
    input: int
    """Which of the graph's inputs."""
    start: Size
    count: Size
    is_placed: bool
    """Whether `start` counts from the first element of the memory, not of the input."""

    def of(self, whole: Any, sizes: Mapping[str, int]) -> Any:
        """The stretch beside or around a tensor. RuntimeError, of torch, where there is no such memory."""
        start = dims.evaluate(self.start, sizes) + (0 if self.is_placed else whole.storage_offset())
        return whole.as_strided((dims.evaluate(self.count, sizes),), (1,), start)


class Memory:
    """What one import reads of the memory of its graph's inputs; torch's guards do not say where in it they begin."""

    def __init__(self, builder: Builder, inputs: Mapping[Any, int]) -> None:
        """`inputs` are the nodes of the inputs that are tensors."""
        self._b, self._inputs = builder, inputs
        self.stretches: list[Stretch] = []

    def has(self, node: Any) -> bool:
        """Whether a node is one of the inputs."""
        return node in self._inputs

    def read(self, node: Any, start: Size, count: Size, *, is_placed: bool) -> SSAValue:
        """A stretch of the memory of an input, as a row."""
        program = self._b.program
        number = len(program.block.args)
        type_ = tensor((count,), element_text(node.meta["val"].dtype))
        self.stretches.append(Stretch(number, self._inputs[node], start, count, is_placed))
        return program.add_input(f"{node.name}_memory_{number}", type_)
