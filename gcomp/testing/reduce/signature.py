"""Inputs and outputs of a program, added and dropped in place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import symbols_of
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.host import symbols_of_op
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.graph.dce import DeadCodeElimination

_NAME = "gcomp.name"


def input_attributes(program: Program) -> list[DictionaryAttr]:
    """The attributes of the inputs, each with its name."""
    attrs, ports = program.main.arg_attrs, program.inputs()
    known: list[Mapping[str, Attribute]] = [{} for _ in ports]
    if attrs is not None and len(attrs.data) == len(ports):
        known = [a.data for a in attrs.data]
    return [DictionaryAttr({**data, _NAME: StringAttr(p.name)}) for data, p in zip(known, ports, strict=True)]


def fresh_name(program: Program, base: str) -> str:
    """A name that no input has: `base`, or `base` and a number."""
    taken = {port.name for port in program.inputs()}
    return next(name for i in range(len(taken) + 1) if (name := f"{base}{i or ''}") not in taken)


def add_input(program: Program, type: Attribute, name: str) -> SSAValue:
    """One more input."""
    attributes = input_attributes(program)
    block = program.block
    arg = block.insert_arg(type, len(block.args))
    program.main.arg_attrs = ArrayAttr([*attributes, DictionaryAttr({_NAME: StringAttr(name)})])
    program.main.update_function_type()
    return arg


def drop_inputs(program: Program, positions: Collection[int]) -> bool:
    """Drop those of the inputs at `positions` that nothing uses; whether there were any."""
    attributes, block = input_attributes(program), program.block
    dropped = {i for i in positions if block.args[i].first_use is None}
    for i in sorted(dropped, reverse=True):
        block.erase_arg(block.args[i])
    program.main.arg_attrs = ArrayAttr([a for i, a in enumerate(attributes) if i not in dropped])
    program.main.update_function_type()
    return bool(dropped)


def set_outputs(program: Program, outputs: Sequence[tuple[str, SSAValue]]) -> None:
    """Return these values instead; names that come twice are numbered."""
    program.returned.operands = [value for _, value in outputs]
    names: dict[str, None] = {}
    for name, _ in outputs:
        unique, i = name, 1
        while unique in names:
            unique, i = f"{name}_{i}", i + 1
        names[unique] = None
    program.main.update_function_type()
    program.main.res_attrs = ArrayAttr([DictionaryAttr({_NAME: StringAttr(name)}) for name in names])


def tidy(program: Program) -> bool:
    """Drop dead ops, functions, weights and inputs, and what is said of symbols that are gone."""
    changed = DeadCodeElimination().run(program, PassContext())
    changed |= drop_inputs(program, [i for i, arg in enumerate(program.block.args) if arg.first_use is None])
    return drop_symbols(program) | changed


def drop_symbols(program: Program) -> bool:
    """Drop the ranges of symbols that nothing mentions, and constraints on such."""
    used = {name for op in program.ops() for name in symbols_of_op(op)}
    used |= {name for port in program.inputs() for size in port.shape for name in symbols_of(size)}
    constraints = program.constraints
    kept = [c for c in constraints if c.symbols <= used]
    ranges = dict(program.ranges)
    left = {name: known for name, known in ranges.items() if name in used}
    if len(kept) == len(constraints) and len(left) == len(ranges):
        return False
    program.constraints = kept
    program.ranges = type(program.ranges)(left)
    return True


def read_weights(program: Program) -> dict[str, list[WeightOp]]:
    """The ops that read each weight."""
    found: dict[str, list[WeightOp]] = {}
    for op in program.ops():
        if isinstance(op, WeightOp):
            found.setdefault(op.symbol, []).append(op)
    return found


__all__ = [
    "add_input", "drop_inputs", "drop_symbols", "fresh_name", "input_attributes", "is_side_effect_free", 
    "read_weights", "set_outputs", "tidy",
]  # fmt: skip
