"""ONNX models whose initializers stay open: for training, each becomes an input of the program, whatever its size.

As an input, nothing computes with it at import and no pass folds it away: however often a model uses, transposes or
reshapes it, it is one parameter. What must be known at import (the scales of a Resize, say) stays a constant, and so do
the statistics by which a BatchNormalization normalizes at inference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir
from xdsl.ir import Block, SSAValue

from gcomp.dtypes import is_float, text_of
from gcomp.errors import UnsupportedError
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.reading import tensor_array
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.records import record

Array = np.ndarray[Any, Any]
Frozen = Callable[[str, Array], str]
"""Says of an initializer why it does not train; an empty text where it does."""


@record
class Open:
    """A program whose last inputs are parameters.

    `parameters` has their values, `fixed` why other initializers are constants, `updates` the outputs that are the next
    values of parameters which training sets without a gradient: running statistics.
    """

    program: Program
    parameters: Mapping[str, Array]
    fixed: Mapping[str, str]
    updates: Mapping[str, str]


class NeedsConstantsError(Exception):
    """A node needs to know initializers at import: it has to begin anew, with these as constants."""

    def __init__(self, names: Sequence[str], why: str) -> None:
        super().__init__(why)
        self.names, self.why = names, why


@dataclass
class Opening:
    """One import's open initializers. `training` asks nodes to behave as in training, however they were exported."""

    frozen: Frozen = lambda name, array: "it is a constant"
    training: bool = False
    fixed: dict[str, str] = field(default_factory=dict[str, str])
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    updates: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    _statistics: dict[str, str] = field(default_factory=dict[str, str])

    def begin(self, graph: onnx_ir.Graph, program: Program, where: str) -> dict[onnx_ir.Value, Value]:
        """Add an input for each trainable initializer; the map from initializers to their values."""
        found: dict[onnx_ir.Value, Value] = {}
        for name, value in graph.initializers.items():
            if value.const_value is None or value.const_value.dtype == onnx_ir.DataType.STRING or name in self.fixed:
                continue
            array = tensor_array(value.const_value, f"{where}, `{name}`")
            if not is_float(text_of(array.dtype)):
                continue
            if why := self.frozen(name, array):
                self.fixed[name] = why
                continue
            argument = program.add_input(name, tensor(array.shape, text_of(array.dtype)))
            self.arrays[name], self._names[argument] = array, name
            found[value] = Value.of(argument)
        return found

    def need(self, operands: Sequence[AnyValue | None], why: str) -> None:
        """Called before a node is refused as its operands are no constants, which they need to be for the reason given.

        Raises NeedsConstantsError where some could be.
        """
        small = [v for v in operands if isinstance(v, Value) and v.ssa in self._names and len(v.shape) < 2]
        if small:
            raise NeedsConstantsError([self._names[v.ssa] for v in small if v.ssa is not None], why)

    def normalizes(self, statistics: Sequence[Value], running: Sequence[SSAValue], where: str) -> None:
        """Note the statistics of a BatchNormalization, and, in training, their next values."""
        for i, value in enumerate(statistics):
            name = self._names.get(value.ssa) if value.ssa is not None else None
            if name is None:
                continue
            if not running:
                self._statistics[name] = "it is a statistic of a BatchNormalization in inference mode"
                continue
            if name in self.updates or not isinstance(running[i].owner.parent, Block) or _inner(running[i]):
                raise UnsupportedError(
                    f"the running statistic {name!r} cannot be a state",
                    where=where,
                    why="two nodes update it, or one inside of a branch or loop",
                    fix="freeze it, or export the model in inference mode",
                )
            self.updates[name] = running[i]

    def end(self) -> None:
        """Raises NeedsConstantsError for statistics that turned out not to be parameters."""
        if self._statistics:
            raise NeedsConstantsError(list(self._statistics), next(iter(self._statistics.values())))

    def again(self, error: NeedsConstantsError) -> Opening:
        """What the next import begins with."""
        return Opening(self.frozen, self.training, self.fixed | dict.fromkeys(error.names, error.why))


def _inner(value: SSAValue) -> bool:
    """Whether a value is made inside of a region of an op."""
    block = value.owner.parent if not isinstance(value.owner, Block) else value.owner
    outer = block.parent_op() if block is not None else None
    return outer is None or outer.name != "func.func"
