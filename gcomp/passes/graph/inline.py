"""A call is replaced by a copy of what it calls.

Functions are opened from the inside out: what a function calls is in it before its own callers copy it. Those that
nothing calls any more stay, for `dce` to remove. Memory is planned for programs without calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.ir.locations import UNKNOWN, where
from gcomp.ir.program import Program
from gcomp.ir.walking import walk
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.inlining import inline_function


@dataclass(frozen=True)
class Inline(Pass):
    """Inline every call, where the program then has at most `max-ops` ops. Functions that call themselves are refused.

    A chain of functions that each call the next one twice doubles the program with each function.
    """

    name: ClassVar[str] = "inline"

    max_ops: int = 1_000_000

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        functions = {f.sym_name.data: f for f in program.functions()}
        ordered = callees_first(functions)
        self._check_growth(ordered, self.max_ops - program.op_count())
        for function in ordered:
            for call in _calls(function):
                if context.allow(self.name, where(call)):
                    caller = call.location
                    inline_function(call, functions[_name(call)], lambda at, caller=caller: _call_location(at, caller))
                    changed = True
        return changed

    def _check_growth(self, ordered: Sequence[FuncOp], left: int) -> None:
        """UnsupportedError where copies would make more ops than are left: counted, so that it is known at once."""
        sizes: dict[str, int] = {}
        for function in ordered:
            size = sum(1 for _ in walk(function))
            for call in _calls(function):
                copied = sizes[_name(call)]
                size += copied - 3  # the call gives way to what it calls, without that function's op and its return
                left -= copied
                if left < 0:
                    raise UnsupportedError(
                        f"inlined, the program has more than {self.max_ops} ops", where=where(call),
                        fix="raise the limit, as in inline{max-ops=10000000}, or leave the calls as they are",
                    )  # fmt: skip
            sizes[function.sym_name.data] = size


def callees_first(functions: dict[str, FuncOp]) -> list[FuncOp]:
    """The functions, callees before callers. InvalidModelError for recursion and for unknown callees."""
    ordered: dict[str, FuncOp] = {}
    around: dict[str, None] = {}
    pending = [(name, False) for name in reversed(functions)]
    while pending:
        name, opened = pending.pop()
        if opened:
            del around[name]
            ordered[name] = functions[name]
        elif name not in ordered:
            around[name] = None
            pending.append((name, True))
            for call in _calls(functions[name]):
                if (callee := _name(call)) not in functions:
                    raise InvalidModelError(f"there is no function {callee!r}", where=where(call))
                if callee in around:
                    raise InvalidModelError(
                        f"the function {callee!r} calls itself", where=where(call), why="programs do not recurse"
                    )
                pending.append((callee, False))
    return list(ordered.values())


def _calls(function: Operation) -> list[CallOp]:
    return [op for op in walk(function) if isinstance(op, CallOp)]


def _name(call: CallOp) -> str:
    return call.callee.root_reference.data


def _call_location(callee: LocationAttr, caller: LocationAttr) -> LocationAttr:
    """Where a copy comes from: what it copies, and the call."""
    if UNKNOWN in (callee, caller):
        return caller if callee == UNKNOWN else callee
    return CallSiteLoc(callee, caller)
