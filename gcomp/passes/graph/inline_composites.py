"""A composite whose name the target does not use is replaced by its decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import is_trusted, trust
from gcomp.ir.locations import named_location, where
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.inlining import inline_function


@dataclass(frozen=True)
class InlineComposites(Pass):
    """Inline every composite but those named in `keep` whose decompositions are what their names stand for.

    What stays is marked: passes that come later may rewrite the decomposition, and keep its meaning.
    """

    name: ClassVar[str] = "inline-composites"

    keep: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        functions = {f.sym_name.data: f for f in program.functions()}
        pending = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
        while pending:
            op = pending.pop()
            if op.composite_name in self.keep and is_trusted(program, op):
                changed |= trust(op)
                continue
            if not context.allow(self.name, where(op)):
                continue
            function = functions.get(op.decomposition_name)
            if function is None:
                raise InvalidModelError(
                    f"the composite {op.composite_name} names a decomposition that does not exist", where=where(op)
                )
            location = named_location(op.composite_name, op.location)
            copies = inline_function(op, function, lambda _, location=location: location)
            pending += [o for copy in copies for o in copy.walk() if isinstance(o, hlo.CompositeOp)]
            changed = True
        return changed
