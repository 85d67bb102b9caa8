"""An op whose results nobody uses, and that has no effect, is removed; so are functions that nobody calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, Region
from xdsl.rewriter import Rewriter

from gcomp.dims import symbols_of
from gcomp.ir.host import HostOp, symbols_of_op
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import is_dead


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Remove dead ops, uncalled private functions, and weights that nothing reads."""

    name: ClassVar[str] = "dce"

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        for function in program.functions():
            changed |= _sweep(function.body)
        while _drop_host_steps(program):
            changed = True
            _sweep(program.main.body)
        changed |= _drop_functions(program)
        read = {op.symbol for op in program.ops() if isinstance(op, WeightOp)}
        if any(name not in read for name in program.weights):
            program.weights.keep_only(read)
        return changed


def _sweep(region: Region) -> bool:
    """One backward walk: users come after what they use, so a dead user is gone before its operands are looked at."""
    changed = False
    for block in region.blocks:
        op = block.last_op
        while op is not None:
            previous = op.prev_op
            for inner in op.regions:
                changed |= _sweep(inner)
            if is_dead(op):
                Rewriter.erase_op(op)
                changed = True
            op = previous
    return changed


def _drop_host_steps(program: Program) -> bool:
    """Remove the last host step that nobody needs: no result is used, and no type or constraint names what it binds."""
    steps = [op for op in program.block.ops if isinstance(op, HostOp)]
    unused = [op for op in steps if all(r.first_use is None for r in op.results)]
    if not unused:
        return False
    bound = {name for port in program.inputs() for size in port.shape for name in symbols_of(size)}
    mentions = Counter(name for op in program.ops() for name in symbols_of_op(op))
    # A size may be used by the name of another that it must equal: then all that tells it is the constraint.
    mentions.update(name for constraint in program.constraints for name in constraint.symbols)
    for op in steps:
        new, bound = op.symbols - bound, bound | op.symbols
        if op in unused and all(mentions[name] == 1 for name in new):
            Rewriter.erase_op(op)
            return True
    return False


def _drop_functions(program: Program) -> bool:
    """Remove private functions that cannot be reached from the public ones."""
    functions = {f.sym_name.data: f for f in program.functions()}
    pending = [f for f in functions.values() if f.sym_visibility is None or f.sym_visibility.data != "private"]
    reached = {f.sym_name.data for f in pending}
    while pending:
        for name in _mentioned_names(pending.pop().walk()):
            if name in functions and name not in reached:
                reached.add(name)
                pending.append(functions[name])
    for name, function in functions.items():
        if name not in reached:
            Rewriter.erase_op(cast(Operation, function))
    return len(reached) < len(functions)


def _mentioned_names(ops: Iterable[Operation]) -> Iterable[str]:
    for op in ops:
        if isinstance(op, CallOp):
            yield op.callee.root_reference.data
        for attribute in op.properties.values():
            if isinstance(attribute, SymbolRefAttr):
                yield attribute.root_reference.data
