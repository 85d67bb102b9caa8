"""A Loop node as it is read: trip count, condition, what is carried, and which of that stays or only grows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import onnx_ir
from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.frontends.onnx.operators.iteration import tensors
from gcomp.records import record


@record
class Growth:
    """A carried value that grows along an axis, at its end or (`backward`) at its beginning."""

    axis: int
    backward: bool


@record
class LoopForm:
    """A Loop node."""

    ctx: NodeContext
    graph: onnx_ir.Graph
    trips: Size | None
    """The trip count, where it is known."""
    begins: bool | None
    """Whether the condition holds at first, where that is known."""
    initial: Sequence[AnyValue]

    @staticmethod
    def of(ctx: NodeContext) -> LoopForm:
        """Read the node. Raises InvalidModelError when the body does not fit it."""
        graph, trips = ctx.graph("body"), _scalar(ctx, 0, "trip count")
        initial = [ctx.any_value(i) for i in range(2, len(ctx.values))]
        count = None if trips is None else trips.tolist()
        if count is not None and not isinstance(count, Dim):
            count = max(int(count), 0)
        begins = _scalar(ctx, 1, "condition") if ctx.has(1) else np.asarray(True)
        form = LoopForm(
            ctx,
            graph,
            ctx.greater(count, 0) if isinstance(count, Dim) else count,
            None if begins is None else bool(begins),
            initial,
        )
        if form.scans < 0 or len(graph.inputs) != 2 + len(initial) or ctx.result_count > len(graph.outputs) - 1:
            ctx.invalid(
                f"its body has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs",
                f"{len(initial)} values are carried, and the node has {ctx.result_count} outputs",
            )
        return form

    @property
    def scans(self) -> int:
        """How many scan outputs there are."""
        return len(self.graph.outputs) - 1 - len(self.initial)

    @cached_property
    def constant(self) -> frozenset[int]:
        """Which carried values the body passes on as they are."""
        pairs = enumerate(zip(self.graph.inputs[2:], self.graph.outputs[1:], strict=False))
        return frozenset(i for i, (before, after) in pairs if i < len(self.initial) and _origin(after) is before)

    @cached_property
    def growing(self) -> dict[int, Growth]:
        """Which carried values only grow."""
        found = {i: self._growth(i) for i in range(len(self.initial)) if i not in self.constant}
        return {i: growth for i, growth in found.items() if growth is not None}

    def _growth(self, index: int) -> Growth | None:
        value, before, after = self.initial[index], self.graph.inputs[index + 2], self.graph.outputs[index + 1]
        node = after.producer()
        if (
            not isinstance(value, Value)
            or node is None
            or node.op_type != "Concat"
            or node.domain not in ("", "ai.onnx")
        ):
            return None
        uses = [use.node for use in before.uses()]
        outputs = list(self.graph.outputs)
        if (
            uses != [node]
            or list(after.uses())
            or len(node.inputs) != 2
            or outputs.count(after) != 1
            or before in outputs
        ):
            return None
        attr, rank = node.attributes.get("axis"), len(value.shape)
        if attr is None or attr.is_ref() or attr.type != onnx_ir.AttributeType.INT or not -rank <= attr.as_int() < rank:
            return None
        return Growth(attr.as_int() % rank, node.inputs[1] is before)

    def iteration(self, index: SSAValue | int) -> Value:
        """The iteration as the body takes it: of rank 0, or of rank 1 where the body says so."""
        shape = self.graph.inputs[0].shape
        single = shape is not None and len(shape) == 1
        if isinstance(index, int):
            return Value.constant(np.asarray([index] if single else index, np.int64))
        return Value.of(self.ctx.b.reshape(index, (1,) if single else ()))

    def condition_of(self, value: AnyValue) -> Value:
        """The condition that an iteration gives. Raises InvalidModelError when it is none."""
        if not isinstance(value, Value) or value.element != "i1":
            self.ctx.invalid("its body's first output is not a boolean", "it says whether the loop goes on")
        known = self.ctx.evaluate(value)
        if not self.ctx.has(1) and (known is None or not np.all(known)):
            # The specification ignores the body's condition then; ONNX Runtime stops where it does not hold.
            self.ctx.unsupported(
                "it has no condition, and its body gives one that may not hold",
                fix="give it a condition (input 1) that is true, or let the body give true",
            )
        return value

    def rows_of(self, results: Sequence[AnyValue]) -> list[SSAValue]:
        """What an iteration gives to the scan outputs."""
        return tensors(self.ctx, results[1 + len(self.initial) :], "scan output")


def _scalar(ctx: NodeContext, index: int, role: str) -> Array | None:
    """A known operand of one element, of rank 0; None where it is absent or depends on data."""
    known = ctx.known_value(index) if ctx.has(index) else None
    if known is not None and known.size != 1:
        ctx.invalid(f"its {role} has shape {known.shape}", "one element is expected")
    return None if known is None else known.reshape(())


def _origin(value: onnx_ir.Value) -> onnx_ir.Value:
    """The value that Identity nodes pass on."""
    seen = 0
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.domain in ("", "ai.onnx"):
        source = node.inputs[0] if len(node.inputs) == 1 else None
        if source is None or seen > 64:
            break
        value, seen = source, seen + 1
    return value
