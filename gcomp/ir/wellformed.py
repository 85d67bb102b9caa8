"""What makes a module well formed beyond its ops' own constraints: blocks, definitions before uses, no recursion.

xDSL verifies ops one by one and leaves these out; an interpreter, an exporter and every pass rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import NoTerminator

from gcomp.ir.sdy.validity import sharding_problems
from gcomp.ir.stablehlo.extension import CompositeOp
from gcomp.ir.types import check_element, check_encoding
from gcomp.ir.walking import walk

Problem = tuple[Operation, str]


def problems(module: Operation) -> Iterator[Problem]:
    """Every op that breaks a rule of form, and the rule."""
    for op in walk(module):
        yield from _structure_problems(op, module)
    for region in module.regions:
        yield from _order_problems(region, set())
    yield from _recursion_problems(module)
    yield from _symbol_problems(module)
    yield from sharding_problems(module)


def _structure_problems(op: Operation, module: Operation) -> Iterator[Problem]:
    if isinstance(op, ModuleOp) and op is not module:
        yield op, "modules do not nest"
    if isinstance(op, FuncOp) and op.body.blocks.first is None:
        yield op, f"the function {op.sym_name.data!r} has no body"
    for region in op.regions:
        if len(region.blocks) > 1:
            yield op, "a region has several blocks; control flow is written with if, case and while"
        for block in region.blocks:
            if block.last_op is None and not op.has_trait(NoTerminator):
                yield op, "a region's block is empty; it must end by returning its results"
            for arg in block.args:
                if why := check_encoding(arg.type) or check_element(arg.type):
                    yield op, f"argument {arg.index}: {why}"
    for result in op.results:
        if why := check_element(result.type):
            yield op, f"result {result.index}: {why}"


def _order_problems(region: Region, visible: set[SSAValue]) -> Iterator[Problem]:
    for block in region.blocks:
        defined: list[SSAValue] = [*block.args]
        visible.update(defined)
        for op in block.ops:
            for i, operand in enumerate(op.operands):
                if operand not in visible:
                    yield op, f"operand {i} is used before it is defined"
            for inner in op.regions:
                yield from _order_problems(inner, visible)
            defined += op.results
            visible.update(op.results)
        visible.difference_update(defined)


def _recursion_problems(module: Operation) -> Iterator[Problem]:
    calls: dict[str, dict[str, CallOp]] = {}
    for op in walk(module):
        if isinstance(op, CallOp) and (caller := _function_around(op)) is not None:
            calls.setdefault(caller.sym_name.data, {})[op.callee.root_reference.data] = op
    done: set[str] = set()
    for name in calls:
        if (call := _cycle(name, calls, done)) is not None:
            yield call, f"the function {call.callee.root_reference.data!r} calls itself; programs do not recurse"


def _symbol_problems(module: Operation) -> Iterator[Problem]:
    names = {op.sym_name.data for op in walk(module) if isinstance(op, FuncOp)}
    for op in walk(module):
        called = op.decomposition_name if isinstance(op, CompositeOp) else None
        if isinstance(op, CallOp):
            called = op.callee.root_reference.data
        if called is not None and called not in names:
            yield op, f"it names the function {called!r}, which does not exist"


def _function_around(op: Operation) -> FuncOp | None:
    around = op.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        around = around.parent_op()
    return around


def _cycle(start: str, calls: Mapping[str, Mapping[str, CallOp]], done: set[str]) -> CallOp | None:
    """A call that leads back to a function it is made in, below `start`; adds what was searched to `done`."""
    path: dict[str, Iterator[tuple[str, CallOp]]] = {start: iter(calls[start].items())}
    while path:
        name = next(reversed(path))
        callee, call = next(path[name], (None, None))
        if callee is None:
            done.add(name)
            del path[name]
        elif callee in path:
            return cast(CallOp, call)
        elif callee in calls and callee not in done:
            path[callee] = iter(calls[callee].items())
    return None
