"""Random numbers: of torch's distributions, from the program's own streams (`streams`).

The numbers are others than eager torch's. Those of a run of `torch.compile` follow from torch's generator, which is
asked for a seed at each call: `torch.manual_seed` makes them come again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import bit_width, is_complex, is_float
from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.definitions import defines
from gcomp.frontends.fx.registry import Results, imports, refuses
from gcomp.frontends.fx.torch_api import torch
from gcomp.ir import stablehlo as hlo
from gcomp.ir.drawing import standard_normal, unit_interval
from gcomp.ir.gathering import sort_along
from gcomp.ir.types import dtype_text, shape_of, tensor

Draw = Callable[[NodeContext, Sequence[Size], str], SSAValue]

_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
"""Element type -> how many bits a number in [0, 1) has, so that each is exact and none is 1."""

refuses(
    "gcomp draws no numbers by rejection, whose count depends on data",
    "poisson", "_standard_gamma", "_sample_dirichlet", "binomial",
)  # fmt: skip


def _check(ctx: NodeContext) -> None:
    if ctx.has("generator"):
        ctx.unsupported("it has a generator of its own", "use torch's default generator: torch.manual_seed")


def _unit(ctx: NodeContext, shape: Sequence[Size], text: str) -> SSAValue:
    """Uniform numbers in [0, 1) with as many bits as the element type holds; those of f64 alone are in f64."""
    if text not in _DIGITS:
        ctx.unsupported(f"there are no random numbers of {text}", "draw floats, and convert them")
    wide = text == "f64"
    drawn = ctx.importer.streams.bits(shape, "ui64" if wide else "ui32")
    return unit_interval(ctx.b, drawn, _DIGITS[text], "f64" if wide else "f32")


def _normal(ctx: NodeContext, shape: Sequence[Size], text: str) -> SSAValue:
    """Numbers of the standard normal distribution."""
    wide = "f64" if text == "f64" else "f32"
    return ctx.b.convert(standard_normal(ctx.b, _unit(ctx, shape, wide), _DIGITS[wide]), text)


def _of_parts(ctx: NodeContext, draw: Draw, scale: float = 1.0) -> SSAValue:
    """Numbers of the result's type; both parts of complex ones are drawn."""
    text, shape, b = ctx.out_dtype(), ctx.out_shape(), ctx.b
    if not is_complex(text):
        return b.convert(draw(ctx, shape, text), text)
    part = text.removeprefix("complex<").removesuffix(">")
    real, imaginary = (b.scale(b.convert(draw(ctx, shape, part), part), scale) for _ in range(2))
    return b.emit(hlo.ComplexOp, real, imaginary)


@imports("rand", "rand_like")
def rand(ctx: NodeContext) -> Results:
    """Uniform numbers in [0, 1)."""
    _check(ctx)
    return _of_parts(ctx, _unit)


@imports("randn", "randn_like")
def randn(ctx: NodeContext) -> Results:
    """Standard normal numbers; complex ones have the variance 1 in all."""
    _check(ctx)
    return _of_parts(ctx, _normal, math.sqrt(0.5))


@imports("uniform")
def uniform(ctx: NodeContext) -> Results:
    """Uniform numbers in [from, to)."""
    _check(ctx)
    low, high = float(ctx.arg("from", 0.0)), float(ctx.arg("to", 1.0))
    unit = _unit(ctx, ctx.out_shape(), ctx.out_dtype())
    moved = ctx.b.add(ctx.b.scale(unit, high - low), ctx.b.full((), low, dtype_text(unit.type)))
    return ctx.b.convert(moved, ctx.out_dtype())


@imports("normal", "normal_functional")
def normal(ctx: NodeContext) -> Results:
    """Normal numbers of a mean and a standard deviation, numbers or tensors."""
    _check(ctx)
    b, text = ctx.b, ctx.out_dtype()
    if not is_float(text):
        ctx.unsupported(f"its numbers are of {text}", "draw real numbers")
    noise = _normal(ctx, ctx.out_shape(), text)
    mean, deviation = (ctx.scalar(ctx.arg(name, default), text) for name, default in (("mean", 0.0), ("std", 1.0)))
    return b.add(b.multiply(noise, b.broadcast_to(deviation, ctx.out_shape())), b.broadcast_to(mean, ctx.out_shape()))


@imports("randint", "randint_like")
def randint(ctx: NodeContext) -> Results:
    """Integers from `low` up to `high`, which is not included: 64 random bits modulo how many there are."""
    _check(ctx)
    low, high = (ctx.b.broadcast_to(ctx.scalar(ctx.arg(name, 0), "i64"), ctx.out_shape()) for name in ("low", "high"))
    return ctx.b.convert(_integers(ctx, low, high), ctx.out_dtype())


def _integers(ctx: NodeContext, low: SSAValue, high: SSAValue) -> SSAValue:
    b = ctx.b
    count = b.convert(b.subtract(high, low), "ui64")
    drawn = ctx.importer.streams.bits(shape_of(low), "ui64")
    return b.add(b.convert(b.emit(hlo.RemainderOp, drawn, count), "i64"), low)


_WHOLE = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""Element type -> up to which power of 2 it has all integers."""


@imports("random")
def random(ctx: NodeContext) -> Results:
    """Integers from 0, or `from`, up to `to`, which is not included: without it, all that the element type has."""
    _check(ctx)
    b, text = ctx.b, ctx.out_dtype()
    most = 1 << (_WHOLE[text] if is_float(text) else bit_width(text) - (not text.startswith("ui") and text != "i1"))
    most = min(most + is_float(text), (1 << 63) - 1)
    low, high = ctx.arg("from", 0), ctx.arg("to", most)
    return b.convert(_integers(ctx, *(b.full(ctx.out_shape(), n, "i64") for n in (low, high))), text)


@imports("randperm")
def randperm(ctx: NodeContext) -> Results:
    """The numbers below `n` in random order: that of as many random numbers of 64 bits."""
    _check(ctx)
    order = sort_along(ctx.b, ctx.importer.streams.bits(ctx.out_shape(), "ui64"), 0, descending=False)[1]
    return ctx.b.convert(order, ctx.out_dtype())


@imports("bernoulli")
def bernoulli(ctx: NodeContext) -> Results:
    """1 with the probability `p`, or with that which each element of self is; else 0."""
    _check(ctx)
    b, shape = ctx.b, ctx.out_shape()
    chance: Any = ctx.arg("p", ctx["self"])
    wide = "f64" if ctx.dtype() == "f64" else "f32"
    drawn = _unit(ctx, shape, wide)
    return b.convert(b.compare(drawn, b.broadcast_to(ctx.scalar(chance, wide), shape), "LT"), ctx.out_dtype())


@imports("native_dropout")
def dropout(ctx: NodeContext) -> Results:
    """Each element is 0 with the probability `p`, and otherwise 1 / (1 - p) times as large; and which ones are kept."""
    b, x, p = ctx.b, ctx["input"], float(ctx.arg("p"))
    if ctx.arg("train") is False:
        return [x, b.full(shape_of(x), True, "i1")]
    drawn = _unit(ctx, shape_of(x), "f32")
    kept = b.compare(drawn, b.full_like(drawn, p), "GE")
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return [b.scale(b.multiply(x, b.convert(kept, ctx.dtype("input"))), scale), kept]


# ---- numbers that are drawn again: in the backward graph of what is checkpointed -----------------------------------

_STATE_BYTES = 16


@imports("higher_order::run_and_save_rng_state")
def run_and_save(ctx: NodeContext) -> Results:
    """The state of the random numbers, in as many bytes as torch's generator has, and an operator's results."""
    b, size = ctx.b, int(torch.get_rng_state().numel())
    start = ctx.importer.streams.state()
    raw = b.emit(hlo.BitcastConvertOp, start, types=(tensor((2, 8), "ui8"),))
    flat = b.pad(b.reshape(raw, (_STATE_BYTES,)), b.constant(0, "ui8"), [0], [size - _STATE_BYTES])
    return [flat, ctx.importer.call(ctx.node, 0)]  # pyright: ignore[reportReturnType] - a list in a list, as torch has


@imports("higher_order::run_with_rng_state")
def run_again(ctx: NodeContext) -> Results:
    """An operator's results, with the random numbers of a state."""
    b = ctx.b
    raw = b.reshape(b.slice_axis(ctx["0"], 0, 0, _STATE_BYTES), (2, 8))
    state = b.emit(hlo.BitcastConvertOp, raw, types=(tensor((2,), "ui64"),))
    with ctx.importer.streams.from_state(state):
        return ctx.importer.call(ctx.node, 1)


# ---- by simpler operators -------------------------------------------------------------------------------------------


@defines("multinomial")
def _(self: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    if generator is not None:
        raise UnsupportedError(
            "gcomp does not import this aten::multinomial",
            why="it has a generator of its own",
            fix="use torch's default generator: torch.manual_seed",
        )
    if not replacement:
        # The first ones by exponential times, each with its rate; what has none never comes.
        times = -torch.log1p(-torch.rand_like(self))
        first = torch.where(self > 0, self / times.clamp(min=torch.finfo(self.dtype).tiny), -1.0)
        return torch.topk(first, num_samples, dim=-1).indices
    sums = self.cumsum(-1)
    drawn = torch.rand((*self.shape[:-1], num_samples), dtype=self.dtype) * sums[..., -1:]
    places = (sums.unsqueeze(-2) <= drawn.unsqueeze(-1)).sum(-1)
    return places.clamp(max=self.shape[-1] - 1)


@defines("rrelu_with_noise_functional")
def _(self: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False,
      generator: Any = None) -> Any:  # fmt: skip
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2), noise
    slope = torch.where(self <= 0, torch.rand_like(self) * (upper - lower) + lower, 1.0)
    return self * slope, slope
