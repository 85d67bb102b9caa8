"""Fourier transforms."""

from __future__ import annotations

from gcomp.frontends.jaxpr.avals import sizes
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo


@imports("fft")
def fft(ctx: EqnContext) -> Results:
    """The discrete Fourier transform over one to three trailing dimensions."""
    lengths, x = sizes(ctx.params["fft_lengths"]), ctx[0]
    if not lengths:
        return x
    if len(lengths) > 3:
        ctx.unsupported("it transforms more than three dimensions", "transform them one after the other")
    return ctx.b.emit(hlo.FftOp, x, fft_type=ctx.params["fft_type"].name, fft_length=lengths)
