"""A composite whose name the target does not use is replaced by its decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.locations import named, where
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class InlineComposites(Pass):
    """Inline every composite but those named in `keep`."""

    name: ClassVar[str] = "inline-composites"

    keep: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        functions = {f.sym_name.data: f for f in program.functions()}
        pending = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
        while pending:
            op = pending.pop()
            if op.composite_name in self.keep or not context.allow(self.name, where(op)):
                continue
            function = functions.get(op.decomposition_name)
            if function is None:
                raise InvalidModelError(
                    f"the composite {op.composite_name} names a decomposition that does not exist", where=where(op)
                )
            pending += inline_function(op, function)
            changed = True
        return changed


def inline_function(op: hlo.CompositeOp, function: FuncOp) -> list[hlo.CompositeOp]:
    """Replace a composite by a copy of its function's body; the composites that came in with it."""
    mapping: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, op.operands, strict=True))
    inner: list[hlo.CompositeOp] = []
    point = InsertPoint.before(op)
    location: LocationAttr = named(op.composite_name, op.location)
    results: Sequence[SSAValue] = ()
    for source in function.body.block.ops:
        if source is function.body.block.last_op:
            results = [mapping.get(v, v) for v in source.operands]
            break
        copy = source.clone(mapping)
        copy.location = location
        Rewriter.insert_op(copy, point)
        inner += [o for o in copy.walk() if isinstance(o, hlo.CompositeOp)]
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
    return inner
