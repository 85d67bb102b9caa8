"""Windows over spatial dims: kernel sizes, strides, dilations and padding, as Conv and the pools share them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.records import record

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@record
class Windows:
    """Windows over the spatial dims of an (N, C, spatial...) tensor. `low` and `high` pad; they may be symbolic."""

    spatial: tuple[Size, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    ceil: bool = False

    @staticmethod
    def of(ctx: NodeContext, kernel: Sequence[int], spatial: Sequence[Size]) -> Windows:
        """The windows that a node's attributes describe."""
        n = len(spatial)
        strides = _positive(ctx, "strides", n)
        dilations = _positive(ctx, "dilations", n)
        mode = ctx.string("auto_pad", "NOTSET")
        if mode not in AUTO_PADS:
            ctx.invalid(f"auto_pad is {mode!r}", f"it must be one of {', '.join(AUTO_PADS)}")
        if len(kernel) != n or any(k < 1 for k in kernel):
            ctx.invalid(f"the kernel shape is {list(kernel)}", f"{n} positive sizes are expected")
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        low, high = _padding(ctx, mode, spatial, reach, strides)
        ceil = ctx.flag("ceil_mode") and mode == "NOTSET"
        windows = Windows(tuple(spatial), tuple(kernel), strides, dilations, low, high, ceil)
        if any(isinstance(count, int) and count < 0 for count in windows.counts()):
            ctx.invalid(f"its windows reach over {reach} elements", f"the spatial dims have sizes {_text(spatial)}")
        return windows

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements a window spans, its gaps included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def fit(self, ctx: NodeContext) -> None:
        """Note that dims of symbolic size must hold at least one window."""
        for size, low, high, reach in zip(self.spatial, self.low, self.high, self.reach, strict=True):
            if not isinstance(size, int) and not ctx.at_most(reach, size + low + high):
                ctx.require("le", reach, size + low + high)

    def counts(self) -> tuple[Size, ...]:
        """How many windows there are along each dim."""
        return tuple(self._count(i) for i in range(len(self.kernel)))

    def _count(self, i: int) -> Size:
        span = self.spatial[i] + self.low[i] + self.high[i] - self.reach[i]
        if not self.ceil:
            return dims.floordiv(span, self.strides[i]) + 1
        # The last window must start inside the input or its left padding: the least of two quotients by one number.
        inside = self.spatial[i] + self.low[i]
        return dims.ceildiv(dims.dmin(span + self.strides[i], inside), self.strides[i])

    def excess(self) -> tuple[Size, ...]:
        """How far the last window reaches past the padding (less than 0 where it stops short of it)."""
        return tuple(
            (count - 1) * s + r - (n + lo + hi)
            for count, s, r, n, lo, hi in zip(
                self.counts(), self.strides, self.reach, self.spatial, self.low, self.high, strict=True
            )
        )

    def apply(self, ctx: NodeContext, x: SSAValue, fill: SSAValue) -> tuple[SSAValue, list[tuple[int, int]]]:
        """The input, and the padding that the windowed op shall add: none where it had to be padded symbolically."""
        extra: tuple[Size, ...] = self.excess() if self.ceil else (0,) * len(self.kernel)
        high = [h + e for h, e in zip(self.high, extra, strict=True)]
        pairs = list(zip(self.low, high, strict=True))
        static = [(lo, hi) for lo, hi in pairs if isinstance(lo, int) and isinstance(hi, int)]
        if len(static) == len(pairs):
            return x, static
        lead = len(self.spatial)
        rank_low: list[Size] = [0, 0, *self.low]
        return ctx.b.pad(x, fill, rank_low, [0, 0, *high]), [(0, 0)] * lead


def _text(sizes: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _positive(ctx: NodeContext, name: str, count: int) -> tuple[int, ...]:
    values = ctx.integers(name) or [1] * count
    if len(values) != count or any(v < 1 for v in values):
        ctx.invalid(f"{name} is {values}", f"{count} positive numbers are expected")
    return tuple(values)


def _padding(
    ctx: NodeContext, mode: str, spatial: Sequence[Size], reach: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    n = len(spatial)
    if mode == "NOTSET":
        pads = ctx.integers("pads") or [0] * (2 * n)
        if len(pads) != 2 * n or any(p < 0 for p in pads):
            ctx.invalid(f"pads is {pads}", f"{2 * n} numbers from 0 on are expected")
        return tuple(pads[:n]), tuple(pads[n:])
    if mode == "VALID":
        return (0,) * n, (0,) * n
    totals = [
        ctx.greater((dims.ceildiv(size, s) - 1) * s + r - size, 0)
        for size, r, s in zip(spatial, reach, strides, strict=True)
    ]
    small = tuple(dims.floordiv(t, 2) for t in totals)
    large = tuple(t - s for t, s in zip(totals, small, strict=True))
    return (small, large) if mode == "SAME_UPPER" else (large, small)
