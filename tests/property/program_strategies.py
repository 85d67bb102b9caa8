"""Hypothesis strategies for small programs that are full of what passes look for, and for inputs at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor

Draw = Callable[[Any], Any]


class Drawn(Program):
    """A program that Hypothesis shows as its text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text())


Step = Callable[[Draw, Builder, SSAValue, Sequence[SSAValue]], SSAValue]

_MAX_ELEMENTS = 300
EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 0.1], np.float32)
_PAYLOAD = np.array([0x7FC00123, 0xFFC00000], np.uint32).view(np.float32)


def edge_inputs(program: Program) -> list[np.ndarray]:
    """Inputs of zeros of both signs, infinities, NaNs of several payloads, denormals, and integers at their limits."""
    rng = np.random.default_rng(0)
    floats, limits = np.concatenate([EDGES, _PAYLOAD]), np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int32)
    ports = program.inputs()
    return [rng.choice(floats if is_float(p.dtype) else limits, p.shape).astype(dtype_of(p.dtype)) for p in ports]


# ---- programs of elementwise ops and data movement -----------------------------------------------------------------


def _unary(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    return b.emit(draw(st.sampled_from((hlo.NegateOp, hlo.AbsOp))), x)


def _binary(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    ops = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp)
    same = [v for v in values if v.type == x.type]
    return b.emit(draw(st.sampled_from(ops)), x, draw(st.sampled_from(same)))


def _with_constant(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    known = (0.0, -0.0, 1.0, 2.5) if is_float(dtype_text(x.type)) else (0, 1, 3)
    pair = [x, b.full_like(x, draw(st.sampled_from(known)))]
    op = draw(st.sampled_from((hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.DivideOp)))
    return b.emit(op, *(reversed(pair) if draw(st.booleans()) else pair))


def _select(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    same = draw(st.sampled_from([v for v in values if v.type == x.type]))
    taken = b.full(shape_of(x), draw(st.booleans()), "i1") if draw(st.booleans()) else b.compare(x, x, "EQ")
    return b.emit(hlo.SelectOp, taken, x, same)


def _constants(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    size = math.prod(shape_of(x))
    array = np.arange(size, dtype=dtype_of(dtype_text(x.type))).reshape(shape_of(x))
    return b.add(b.constant(array), b.emit(hlo.NegateOp, b.constant(array)))


def _transpose(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    return b.emit(hlo.TransposeOp, x, permutation=draw(st.permutations(range(rank_of(x)))))


def _reshape(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    shape = draw(st.sampled_from([(math.prod(shape_of(x)),), shape_of(x)[::-1], (1, *shape_of(x)), shape_of(x)]))
    return b.emit(hlo.ReshapeOp, x, types=(tensor(shape, element_of(x)),))


def _broadcast(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    extra = draw(st.sampled_from([(), (2,)]))
    kept = range(len(extra), len(extra) + rank_of(x))
    type = tensor((*extra, *shape_of(x)), element_of(x))
    return b.emit(hlo.BroadcastInDimOp, x, types=(type,), broadcast_dimensions=list(kept))


def _slice(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    starts = [draw(st.integers(0, min(s, 1))) for s in shape_of(x)]
    limits = [draw(st.integers(start, s)) for start, s in zip(starts, shape_of(x), strict=True)]
    strides = [draw(st.integers(1, 2)) for _ in shape_of(x)]
    return b.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=strides)


def _pad(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    low, high = ([draw(st.integers(0, 1)) for _ in shape_of(x)] for _ in range(2))
    zero = b.full((), 0, element_of(x))
    gaps = [0] * rank_of(x)
    return b.emit(hlo.PadOp, x, zero, edge_padding_low=low, edge_padding_high=high, interior_padding=gaps)


def _reverse(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    return b.emit(hlo.ReverseOp, x, dimensions=[i for i in range(rank_of(x)) if draw(st.booleans())])


def _convert(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    return b.emit(hlo.ConvertOp, x, types=(x.type,))


def _reduce(draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    axes = [i for i in range(rank_of(x)) if draw(st.booleans())]
    return b.reduce(draw(st.sampled_from((hlo.AddOp, hlo.MaximumOp))), x, axes, keepdims=draw(st.booleans()))


GENERAL: tuple[Step, ...] = (
    _unary, _binary, _with_constant, _select, _constants, _transpose, _reshape, _broadcast, _slice, _pad, _reverse,
    _convert, _reduce,
)  # fmt: skip


@st.composite
def programs(draw: Draw) -> Program:
    """A program of four to ten steps on two f32 inputs and an i32 input of one small shape, size 0 and rank 0 too."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    program = Program.empty([(n, tensor(shape, t)) for n, t in (("x", "f32"), ("y", "f32"), ("i", "i32"))])
    return _grown(draw, program, GENERAL, Builder(program))


def _grown(draw: Draw, program: Program, steps: Sequence[Step], b: Builder) -> Program:
    values: list[SSAValue] = list(program.block.args)
    for _ in range(draw(st.integers(4, 10))):
        fitting = [v for v in values if math.prod(shape_of(v)) <= _MAX_ELEMENTS and rank_of(v) < 5]
        # Mostly the value made last, so that ops chain.
        x = draw(st.sampled_from([*fitting[-1:] * 3, *fitting]))
        values.append(draw(st.sampled_from(steps))(draw, b, x, values))
    return finished(program, [values[-1], *draw(st.lists(st.sampled_from(values), max_size=2))])


def finished(program: Program, results: Sequence[SSAValue]) -> Program:
    """The program with these results, verified."""
    program.finish([(f"r{i}", value) for i, value in enumerate(results)])
    program.verify()
    return Drawn(program.module, program.weights)


# ---- programs of convolutions ---------------------------------------------------------------------------------------

_CHANNELS_FIRST = ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))


def whole_inputs(program: Program) -> list[np.ndarray]:
    """Inputs of small integers: on a program of whole numbers all arithmetic is exact, in whatever order."""
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, port.shape).astype(dtype_of(port.dtype)) for port in program.inputs()]


class Images:
    """Steps of convolutional networks; `whole` ones have numbers with which nothing ever rounds."""

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.steps: tuple[Step, ...] = (
            self.convolution, self.convolution, self.batch_norm, self.batch_norm,
            self.relu, self.residual, self.bias, self.pool,
        )  # fmt: skip

    def vector(self, draw: Draw, size: int) -> np.ndarray:
        rng = np.random.default_rng(draw(st.integers(0, 5)))
        return (rng.integers(-2, 3, size) if self.whole else rng.standard_normal(size)).astype(np.float32)

    def positive(self, draw: Draw, size: int) -> np.ndarray:
        """Numbers above zero; whole programs get powers of four, whose roots are exact."""
        rng = np.random.default_rng(draw(st.integers(0, 5)))
        return (rng.choice([0.25, 1.0, 4.0], size) if self.whole else rng.random(size) + 0.1).astype(np.float32)

    def kernel(self, draw: Draw, *shape: int) -> np.ndarray:
        """A kernel; whole ones have at most two ones per output channel, so that sums stay short."""
        rng = np.random.default_rng(draw(st.integers(0, 5)))
        values = rng.standard_normal(shape)
        if self.whole:
            flat = values.reshape(shape[0], -1)
            values = (flat >= np.sort(flat, axis=1)[:, -2:][:, :1]).astype(np.float32).reshape(shape)
        return values.astype(np.float32)

    def convolution(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        channels = shape_of(x)[1]
        depthwise, size = draw(st.booleans()), draw(st.sampled_from((1, 3)))
        kernel = b.weight("kernel", self.kernel(draw, channels, 1 if depthwise else channels, size, size))
        strides = (draw(st.integers(1, 2)),) * 2
        out = [-(-int(s) // strides[0]) for s in shape_of(x)[2:]]
        return b.emit(
            hlo.ConvolutionOp, x, kernel, types=(tensor((2, channels, *out), "f32"),), window_strides=strides,
            padding=((size // 2, size // 2),) * 2, dimension_numbers=_CHANNELS_FIRST,
            feature_group_count=channels if depthwise else 1, batch_group_count=1,
        )  # fmt: skip

    def batch_norm(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        size = int(shape_of(x)[1])
        makers = (self.positive, self.vector, self.vector, self.positive)
        statistics = [b.weight("bn", make(draw, size)) for make in makers]
        epsilon = 0.0 if self.whole else 1e-3
        return b.emit(hlo.BatchNormInferenceOp, x, *statistics, epsilon=epsilon, feature_index=1)

    def relu(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        return b.maximum(x, b.full_like(x, 0.0))

    def residual(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        return b.add(x, draw(st.sampled_from([v for v in values if v.type == x.type])))

    def bias(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        return b.add(x, b.broadcast(b.constant(self.vector(draw, int(shape_of(x)[1]))), shape_of(x), (1,)))

    def pool(self, draw: Draw, b: Builder, x: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        axes = draw(st.sampled_from([(2, 3), (1, 2, 3), (1,), (0, 2), (0, 1, 2, 3)]))
        total = b.reduce(hlo.MaximumOp if self.whole else hlo.AddOp, x, axes)
        return b.add(x, b.broadcast(total, shape_of(x), [i for i in range(4) if i not in axes]))


@st.composite
def image_programs(draw: Draw, whole: bool) -> Program:
    """A program of channels-first convolutions and what stands around them in networks."""
    program = Program.empty([("x", tensor((2, draw(st.sampled_from((3, 2, 1))), 5, 4), "f32"))])
    return _grown(draw, program, Images(whole).steps, Builder(program))
