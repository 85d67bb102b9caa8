"""RNN, GRU and LSTM as one `stablehlo.while` for each direction.

What the input contributes to the gates is one matrix product over all steps, before the loop; the loop holds only the
product with the state. A sequence of one step has no loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.activation import ACTIVATIONS, Activation
from gcomp.frontends.onnx.operators.elementwise import bound_values
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, shape_of

Unary = Callable[[SSAValue], SSAValue]
Product = Callable[[int, int, SSAValue, SSAValue], SSAValue]
"""`x @ w.T` for the weights of an operand (1: of the input, 2: of the state) and a direction."""

_PLAIN: dict[str, tuple[Activation, dict[str, float]]] = {
    "Tanh": (lambda b, x, a: b.emit(hlo.TanhOp, x), {}),
    "Sigmoid": (lambda b, x, a: b.emit(hlo.LogisticOp, x), {}),
    "Affine": (lambda b, x, a: b.add(b.scale(x, a["alpha"]), b.scalar_like(x, a["beta"])),
               {"alpha": 1.0, "beta": 0.0}),
    "ScaledTanh": (lambda b, x, a: b.scale(b.emit(hlo.TanhOp, b.scale(x, a["beta"])), a["alpha"]),
                   {"alpha": 1.0, "beta": 1.0}),
}  # fmt: skip
_NAMES = ("Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "Softsign", "Softplus")
GATES: dict[str, tuple[Activation, dict[str, float]]] = {**_PLAIN, **{n: ACTIVATIONS[n] for n in _NAMES}}
"""Activation functions that recurrent operators may name, and the defaults of their parameters."""


@dataclass
class Cell(ABC):
    """One direction of a recurrent operator: its weights and how a step computes the next state."""

    b: Builder
    hidden: int
    recurrence: SSAValue
    """(gates * hidden, hidden)."""
    bias: SSAValue | None
    """The recurrence's bias where it must be added inside the loop, (hidden)."""
    peepholes: Sequence[SSAValue]
    activations: Sequence[Unary]
    clip: float | None
    flag: bool
    """LSTM's `input_forget`, GRU's `linear_before_reset`."""
    multiply: Callable[[SSAValue, SSAValue], SSAValue]
    """`h @ w.T` for rows of the recurrence."""

    gates: ClassVar[int]
    defaults: ClassVar[tuple[str, ...]]

    @abstractmethod
    def step(self, x: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        """The next state (the hidden part first) from what the input contributes, (batch, gates * hidden)."""

    def product(self, h: SSAValue, first: int, last: int) -> SSAValue:
        """`h @ R.T` for the gates from `first` up to `last`."""
        rows = self.b.slice_axis(self.recurrence, 0, first * self.hidden, last * self.hidden)
        return self.multiply(h, rows)

    def gate(self, x: SSAValue, index: int) -> SSAValue:
        """The columns of one gate."""
        return self.b.slice_axis(x, 1, index * self.hidden, (index + 1) * self.hidden)

    def activate(self, index: int, x: SSAValue) -> SSAValue:
        """An activation function, of the clipped argument."""
        if self.clip is not None:
            low, high = (self.b.scalar_like(x, v) for v in (-self.clip, self.clip))
            x = bound_values(self.b, x, low, high)
        return self.activations[index](x)

    def peep(self, x: SSAValue, index: int, c: SSAValue) -> SSAValue:
        """`x` plus a peephole's weights times the cell."""
        return self.b.add(x, self.b.multiply(c, self.peepholes[index])) if self.peepholes else x


class RnnCell(Cell):
    """`f(x + h R)`."""

    gates = 1
    defaults = ("Tanh",)

    def step(self, x: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.activate(0, self.b.add(x, self.product(state[0], 0, 1)))]


class GruCell(Cell):
    """Gates update, reset, hidden."""

    gates = 3
    defaults = ("Sigmoid", "Tanh")

    def step(self, x: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        b, h = self.b, state[0]
        sums = b.add(b.slice_axis(x, 1, 0, 2 * self.hidden), self.product(h, 0, 2))
        update = self.activate(0, self.gate(sums, 0))
        reset = self.activate(0, self.gate(sums, 1))
        if self.flag:
            inner = self.product(h, 2, 3)
            inner = b.multiply(reset, inner if self.bias is None else b.add(inner, self.bias))
        else:
            inner = self.product(b.multiply(reset, h), 2, 3)
        candidate = self.activate(1, b.add(self.gate(x, 2), inner))
        kept = b.multiply(update, h)
        return [b.add(b.multiply(b.subtract(b.scalar_like(h, 1), update), candidate), kept)]


class LstmCell(Cell):
    """Gates input, output, forget, cell; peepholes input, output, forget."""

    gates = 4
    defaults = ("Sigmoid", "Tanh", "Tanh")

    def step(self, x: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        b, (h, c) = self.b, state
        sums = b.add(x, self.product(h, 0, 4))
        enter = self.activate(0, self.peep(self.gate(sums, 0), 0, c))
        if self.flag:
            forget = b.subtract(b.scalar_like(h, 1), enter)
        else:
            forget = self.activate(0, self.peep(self.gate(sums, 2), 2, c))
        candidate = self.activate(1, self.gate(sums, 3))
        after = b.add(b.multiply(forget, c), b.multiply(enter, candidate))
        leave = self.activate(0, self.peep(self.gate(sums, 1), 1, after))
        return [b.multiply(leave, self.activations[2](after)), after]


_CELLS: dict[str, tuple[type[Cell], int, str]] = {
    "RNN": (RnnCell, 1, ""),
    "GRU": (GruCell, 1, "linear_before_reset"),
    "LSTM": (LstmCell, 2, "input_forget"),
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@imports("RNN", "GRU", "LSTM")
def recurrent(ctx: NodeContext) -> Results:
    """RNN, GRU, LSTM: results are all steps' hidden states, and the last states."""

    def product(operand: int, index: int, x: SSAValue, w: SSAValue) -> SSAValue:
        return ctx.b.dot(x, w, DotDimensions((), (), (len(shape_of(x)) - 1,), (1,)))

    return recurrent_by(ctx, product)


def recurrent_by(ctx: NodeContext, product: Product) -> Results:
    """A recurrent operator whose matrix products are computed by `product`."""
    b, batch_first = ctx.b, ctx.flag("layout")
    directions = _DIRECTIONS.get(ctx.string("direction", "forward"))
    if directions is None:
        ctx.invalid(f"direction is {ctx.string('direction')!r}", f"it must be one of {', '.join(_DIRECTIONS)}")
    if any(ctx.rank(i) != 3 for i in (1, 2)):
        ctx.invalid(f"W and R have ranks {ctx.rank(1)} and {ctx.rank(2)}", "rank 3 is expected")
    if ctx.rank() != 3 or any(ctx.ranges.equal(ctx.shape(i)[0], len(directions)) is False for i in (1, 2)):
        ctx.invalid(
            f"its input has rank {ctx.rank()} and W {shape_of(ctx[1])[0]} directions",
            f"rank 3 and {len(directions)} are expected",
        )
    x = b.transpose(ctx[0], (1, 0, 2)) if batch_first else ctx[0]
    runs = [_direction(ctx, x, i, backward, batch_first, product) for i, backward in enumerate(directions)]
    every = [_stack(ctx, [run[0] for run in runs], 1)]
    every += [_stack(ctx, [run[1][k] for run in runs], 0) for k in range(len(runs[0][1]))]
    if not batch_first:
        return every
    return [b.transpose(every[0], (2, 0, 1, 3)), *(b.transpose(v, (1, 0, 2)) for v in every[1:])]


def _stack(ctx: NodeContext, values: Sequence[SSAValue], axis: int) -> SSAValue:
    b = ctx.b
    shape = shape_of(values[0])
    return b.concatenate([b.reshape(v, (*shape[:axis], 1, *shape[axis:])) for v in values], axis)


def _direction(
    ctx: NodeContext, x: SSAValue, index: int, backward: bool, batch_first: bool, product: Product
) -> tuple[SSAValue, list[SSAValue]]:
    """All steps (sequence, batch, hidden) of one direction, and its last states."""
    b = ctx.b
    kind, states, flag = _CELLS[ctx.op_type]
    weights, recurrence = _at(ctx, 1, index), _at(ctx, 2, index)
    hidden = ctx.static(shape_of(recurrence)[1], "hidden size")
    rows = ctx.static(shape_of(recurrence)[0], "size of all gates")
    if ctx.integer("hidden_size", hidden) != hidden or rows != kind.gates * hidden:
        ctx.invalid(f"R has shape {shape_of(ctx[2])}", f"hidden_size is {ctx.integer('hidden_size', hidden)}")
    before, inside = _biases(ctx, index, kind.gates * hidden, hidden)
    peepholes = _peepholes(ctx, index, hidden)
    activations = list(_activations(ctx, index, kind.defaults))
    clip = ctx.number("clip") if ctx.attribute("clip") is not None else None
    cell = kind(b, hidden, recurrence, inside, peepholes, activations, clip, bool(flag) and ctx.flag(flag),
                partial(product, 2, index))  # fmt: skip
    x, weights = ctx.match_dims(x, 2, weights, 1)
    gates = product(1, index, x, weights)
    gates = gates if before is None else b.add(gates, before)
    initial = [_initial(ctx, 5 + k, index, (shape_of(x)[1], hidden), batch_first) for k in range(states)]
    return _run(ctx, cell, gates, initial, backward)


def _at(ctx: NodeContext, operand: int, index: int) -> SSAValue:
    """One direction's part of an operand."""
    x = ctx[operand]
    return ctx.b.reshape(ctx.b.slice_axis(x, 0, index, index + 1), shape_of(x)[1:])


def _biases(ctx: NodeContext, index: int, width: int, hidden: int) -> tuple[SSAValue | None, SSAValue | None]:
    """The bias to add before the loop, and GRU's to add inside it."""
    if not ctx.has(3):
        return None, None
    b, both = ctx.b, _at(ctx, 3, index)
    first, second = b.slice(both, (0,), (width,)), b.slice(both, (width,), (2 * width,))
    if ctx.op_type != "GRU" or not ctx.flag("linear_before_reset"):
        return b.add(first, second), None
    outer = b.pad(b.slice(second, (0,), (2 * hidden,)), ctx.b.scalar_like(second, 0), (0,), (hidden,))
    return b.add(first, outer), b.slice(second, (2 * hidden,), (width,))


def _peepholes(ctx: NodeContext, index: int, hidden: int) -> list[SSAValue]:
    if ctx.op_type != "LSTM" or not ctx.has(7):
        return []
    weights = _at(ctx, 7, index)
    return [ctx.b.slice(weights, (k * hidden,), ((k + 1) * hidden,)) for k in range(3)]


def _activations(ctx: NodeContext, index: int, defaults: Sequence[str]) -> Iterator[Unary]:
    count = len(defaults)
    names = ctx.strings("activations") or list(defaults) * (index + 1)
    if len(names) < count * (index + 1):
        ctx.invalid(f"it names {len(names)} activations", f"{count} for each direction are expected")
    given: dict[str, Iterator[float]] = {
        "alpha": iter(ctx.numbers("activation_alpha") or ()),
        "beta": iter(ctx.numbers("activation_beta") or ()),
    }
    for position, name in enumerate(names):
        found = {n.lower(): n for n in GATES}.get(name.lower())
        if found is None:
            ctx.unsupported(f"the activation {name!r} is not one of {', '.join(GATES)}")
        function, parameters = GATES[found]
        values = {p: next(given[p], default) for p, default in parameters.items()}
        if index * count <= position < (index + 1) * count:
            yield _bind_activation(ctx.b, function, values)


def _bind_activation(b: Builder, function: Activation, values: Mapping[str, float]) -> Unary:
    return lambda x: function(b, x, values)


def _initial(ctx: NodeContext, operand: int, index: int, shape: tuple[Size, int], batch_first: bool) -> SSAValue:
    if not ctx.has(operand):
        return ctx.b.full(shape, 0, ctx.element())
    x = ctx[operand]
    if batch_first:
        x = ctx.b.transpose(x, (1, 0, 2))
    x = ctx.restate(x, {1: shape[0], 2: shape[1]})
    return ctx.b.reshape(ctx.b.slice_axis(x, 0, index, index + 1), shape)


def _run(
    ctx: NodeContext, cell: Cell, gates: SSAValue, initial: Sequence[SSAValue], backward: bool
) -> tuple[SSAValue, list[SSAValue]]:
    b, (length, batch, width) = ctx.b, shape_of(gates)
    lengths = ctx.restate(b.convert(ctx[4], "i64"), {0: batch}) if ctx.has(4) else None

    def step(at: SSAValue, x: SSAValue, state: Sequence[SSAValue]) -> tuple[SSAValue, list[SSAValue]]:
        after = cell.step(x, state)
        if lengths is None:
            return after[0], after
        running = b.broadcast(b.compare(at, lengths, "LT"), shape_of(after[0]), (0,))
        kept = [b.select(running, new, old) for new, old in zip(after, state, strict=True)]
        return b.select(running, after[0], b.full_like(after[0], 0)), kept

    if length == 1:
        y, last = step(b.constant(0, "i64"), b.reshape(gates, (batch, width)), initial)
        return b.reshape(y, (1, *shape_of(y))), last
    zero, one = b.constant(0, "i64"), b.constant(1, "i64")
    total = b.dim(length)

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        count, steps, *state = args
        at = b.subtract(b.subtract(total, one), count) if backward else count
        x = b.emit(hlo.DynamicSliceOp, gates, at, zero, zero, slice_sizes=(1, batch, width))
        y, after = step(at, b.reshape(x, (batch, width)), state)
        row = b.reshape(y, (1, *shape_of(y)))
        return [b.add(count, one), b.emit(hlo.DynamicUpdateSliceOp, steps, row, at, zero, zero), *after]

    everything = b.full((length, *shape_of(initial[0])), 0, element_of(initial[0]))
    carried = [zero, everything, *initial]
    types = [v.type for v in carried]
    regions = (b.region(types, lambda args: [b.compare(args[0], total, "LT")]), b.region(types, body))
    _, steps, *last = b.emit_all(hlo.WhileOp, *carried, regions=regions)
    return steps, last
