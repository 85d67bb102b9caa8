"""Element types and bits."""

from __future__ import annotations

from gcomp.dtypes import is_complex
from gcomp.frontends.jaxpr.avals import element_text
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo


@imports("convert_element_type")
def convert_element_type(ctx: EqnContext) -> Results:
    """Converted: a complex number loses its imaginary part, a float becomes an integer towards zero, a boolean says
    whether a number is not 0."""
    b, x, target = ctx.b, ctx[0], element_text(ctx.params["new_dtype"])
    if target == "i1" and ctx.dtype() != "i1":
        return b.compare(x, b.full_like(x, 0), "NE")
    if is_complex(ctx.dtype()) and not is_complex(target):
        x = b.emit(hlo.RealOp, x)
    return b.convert(x, target)


@imports("bitcast_convert_type")
def bitcast_convert_type(ctx: EqnContext) -> Results:
    """The same bits in another type; a dimension appears or vanishes where widths differ."""
    return ctx.b.emit(hlo.BitcastConvertOp, ctx[0], types=(ctx.out_type(),))
