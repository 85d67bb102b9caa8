"""Factorizations and prints become host steps, for targets that have no library to call.

Those of the entry function do, also within its branches and loops: there, a target's code calls the host, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import lapack
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.host import HostOp
from gcomp.ir.kernel import outermost
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites
from gcomp.reference.numpy.lapack import routine_of

Config = dict[str, Any]


def _cholesky(op: hlo.CholeskyOp) -> tuple[str, Config]:
    return "cholesky", {"lower": bool(op.value("lower"))}


def _triangular_solve(op: hlo.TriangularSolveOp) -> tuple[str, Config]:
    flags = {name: bool(op.value(name)) for name in ("left_side", "lower", "unit_diagonal")}
    return "triangular_solve", {**flags, "transpose_a": op.value("transpose_a")}


def _routine(op: hlo.CustomCallOp) -> tuple[str, Config] | None:
    target: str = op.value("call_target_name")
    return None if routine_of(target) is None else ("lapack", {"target": target, **lapack.settings(op)})


def _print(op: PrintOp) -> tuple[str, Config] | None:
    return ("print_line", {"format": op.value("format")}) if op.results else None


_FUNCTIONS: Mapping[type[Operation], Callable[[Any], tuple[str, Config] | None]] = {
    hlo.CholeskyOp: _cholesky,
    hlo.TriangularSolveOp: _triangular_solve,
    hlo.CustomCallOp: _routine,
    PrintOp: _print,
}
"""Op class -> its host function and the function's configuration, if there is one."""


class LibraryCall(Pattern):
    """A factorization, or a print with its place among all, is a host function.

    Those of the `entry` block and of control flow in it are, or without one those of any function.
    """

    name = "library-to-host"
    roots = tuple(_FUNCTIONS)

    def __init__(self, entry: Block | None = None) -> None:
        self._entry = entry

    def rewrite(self, op: Operation, b: Builder) -> Sequence[SSAValue] | None:
        around = _function_block(op)
        if around is None or around is not (self._entry or around):
            return None
        found = _FUNCTIONS[type(op)](op)
        if found is None:
            return None
        function, config = found
        types = [cast(Any, r.type) for r in op.results]
        return b.emit_all(HostOp, *op.operands, types=types, function=function, config=config)


def _function_block(op: Operation) -> Block | None:
    """The block of a function that an op stands in, with nothing but control flow around it; None elsewhere."""
    op = outermost(op)
    return op.parent if isinstance(op.parent_op(), FuncOp) else None


@dataclass(frozen=True)
class LibraryToHost(Pass):
    """Have the host compute factorizations, and write lines."""

    name: ClassVar[str] = "library-to-host"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (LibraryCall(program.block),), context)
