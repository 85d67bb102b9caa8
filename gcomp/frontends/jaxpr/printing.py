"""jax.debug.print."""

from __future__ import annotations

from string import Formatter
from typing import Any

from xdsl.dialects.builtin import StringAttr

from gcomp.formats import literal
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir.printing import PrintOp


@imports("debug_print")
def debug_print(ctx: EqnContext) -> Results:
    """A print of the operands' elements; `ordered` makes no difference, all prints are in order."""
    if ctx.params["static_args"]:
        ctx.unsupported("it prints what is no array", "format that into the text: jax.debug.print(f'...')")
    args, kwargs = ctx.params["in_tree"].unflatten(range(len(ctx)))
    ctx.b.insert(PrintOp.of(*ctx.operands, types=(), format=StringAttr(_format(ctx, ctx.params["fmt"], args, kwargs))))
    return []


def _format(ctx: EqnContext, text: str, args: Any, kwargs: Any) -> str:
    """Python's format of arguments by position and name as one of operands."""
    given = {**{str(i): place for i, place in enumerate(args)}, **kwargs}
    pieces: list[str] = []
    unnamed = 0
    for before, field, spec, _ in Formatter().parse(text):
        pieces.append(literal(before))
        if field is None:
            continue
        name, unnamed = (field, unnamed) if field else (str(unnamed), unnamed + 1)
        if not isinstance(given.get(name), int):
            ctx.unsupported(f"its format has {{{field}}}, which is not one array", "print each array by itself")
        pieces.append(f"{{{given[name]}.values{f':{spec}' if spec else ''}}}")
    return "".join(pieces)
