"""Fewer ops: cut them out, go round them, put what they hold in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode
from gcomp.ir.kernel import outermost
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.elementwise import UnaryOp
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import element_of, is_tensor, retype, shape_of, static_shape, tensor_of, with_shape
from gcomp.testing.reduce.reducer import Edit
from gcomp.testing.reduce.signature import add_input, drop_inputs, fresh_name, set_outputs
from gcomp.testing.reduce.sizes import dot_shape
from gcomp.testing.reduce.values import makes_one_small, put_constant

_NUMBERS = 4
"""How many of a program's own numbers are tried in an op's place."""

# ---- outputs ----


def output_count(program: Program) -> int:
    """How many outputs there are."""
    return len(program.returned.operands)


def drop_outputs(program: Program, chunk: range) -> bool:
    """Drop these outputs, but not all there are."""
    outputs = program.named_outputs()
    kept = [o for i, o in enumerate(outputs) if i not in chunk]
    if not kept or len(kept) == len(outputs):
        return False
    set_outputs(program, kept)
    return True


# ---- cutting ops out of main ----


def main_ops(program: Program) -> list[Operation]:
    """The ops of main itself, without the return."""
    return [op for op in program.block.ops if not op.has_trait(IsTerminator)]


def main_op_count(program: Program) -> int:
    """How many ops main itself has."""
    return len(main_ops(program))


def cut(program: Program, chunk: range) -> bool:
    """Cut these ops out of main: what they made comes in as new inputs, and what only they used goes out.

    All other ops stay alive, on operands of the same types.
    """
    ops = main_ops(program)[chunk.start : chunk.stop]
    inside = {inner for op in ops for inner in op.walk()}
    made = [r for op in ops for r in op.results if any(use.operation not in inside for use in r.uses)]
    if not ops or not all(is_tensor(value.type) for value in made):
        return False
    used = {v: None for op in ops for inner in op.walk() for v in inner.operands if isinstance(v, OpResult)}
    loose = [v for v in used if v.op not in inside and all(use.operation in inside for use in v.uses)]
    arguments: set[SSAValue] = set()
    for value in made:
        new = add_input(program, value.type, fresh_name(program, value.name_hint or "v"))
        new.name_hint = value.name_hint
        value.replace_all_uses_with(new)
        arguments.add(new)
    outputs = [o for o in program.named_outputs() if o[1] not in arguments]
    outputs += [(v.name_hint or "r", v) for v in loose if is_tensor(v.type) and v.op.parent is program.block]
    set_outputs(program, outputs or program.named_outputs()[:1])
    erase(ops)
    return True


def erase(ops: Sequence[Operation]) -> None:
    """Erase ops, the last first."""
    for op in reversed(ops):
        Rewriter.erase_op(op)


# ---- going round ops ----


def bypass(program: Program, chunk: range) -> bool:
    """Replace the results of these ops of main by their own operands of the same types."""
    done: list[Operation] = []
    for op in main_ops(program)[chunk.start : chunk.stop]:
        replacements = [next((v for v in op.operands if v.type == r.type), None) for r in op.results]
        if op.results and all(v is not None for v in replacements):
            for result, value in zip(op.results, replacements, strict=True):
                assert value is not None
                result.replace_all_uses_with(value)
            done.append(op)
    erase(done)
    return bool(done)


def all_ops(program: Program) -> list[Operation]:
    """All ops but functions and what ends a block."""
    return [op for op in program.ops() if not op.has_trait(IsTerminator) and op.parent_op() is not None
            and not isinstance(op, FuncOp)]  # fmt: skip


def any_op_count(program: Program) -> int:
    """How many ops there are, nested ones included."""
    return len(all_ops(program))


def replacements(program: Program, index: int) -> list[Edit]:
    """Edits that replace an op's results by earlier values of the same types: operands first, then the nearest."""
    edits, places = _replacements(program, index), _counterparts(program, index)
    if len(places) < 2:
        return [*edits, *_fewer_sources(program, index)]
    together = [_bring_in(*places)] if _sees_main(all_ops(program)[index]) else []
    return [*together, *(_in_step(places, n) for n in range(len(edits))), *edits]


def _replacements(program: Program, index: int) -> list[Edit]:
    op = all_ops(program)[index]
    if all(r.first_use is None for r in op.results):
        return [lambda p: _drop(all_ops(p)[index])]
    edits: list[Edit] = []
    choices = [_choices(op, r) for r in op.results]
    if all(choices):
        count = min(2 if len(op.results) == 1 else 1, max(map(len, choices)))
        edits += [_replace(index, n) for n in range(count)]
    if _twin(op) is not None:
        edits.insert(0, lambda p: _merge(all_ops(p)[index]))
    if op.parent is not program.block and _sees_main(op):
        edits.append(_bring_in(index))
    return edits


def _counterparts(program: Program, index: int) -> list[int]:
    """Where an op in a region is, and where its like is in regions nearby that hold the same kinds of ops."""
    ops = all_ops(program)
    around = ops[index].parent_op()
    while around is not None and around.parent is not None and not isinstance(around, FuncOp):
        kinds = [op.name for op in around.walk()]
        alike = [ops.index(o) for o in around.parent.ops if [op.name for op in o.walk()] == kinds]
        if len(alike) > 1:
            return [place + index - ops.index(around) for place in alike]
        around = around.parent_op()
    return []


def _in_step(places: Sequence[int], n: int) -> Edit:
    """The n-th edit of each of these ops, all at once: some failures need two ops whose regions are alike."""

    def edited(program: Program) -> bool:
        for place in reversed(places):  # which leaves the places of those before
            edits = _replacements(program, place)
            if n >= len(edits) or not edits[n](program):
                return False
        return True

    return edited


def _sees_main(op: Operation) -> bool:
    """Whether an op is in main, in branches and loops only, so that it may use main's inputs."""
    around = outermost(op).parent_op()
    return isinstance(around, FuncOp) and around.sym_name.data == "main"


def _bring_in(*places: int) -> Edit:
    """Replaces the results of a nested op by new inputs; those of several ops by the same ones."""
    return lambda p: _bring_ops_in(p, [all_ops(p)[i] for i in places])


def _bring_ops_in(program: Program, ops: Sequence[Operation]) -> bool:
    if not all(is_tensor(r.type) for r in ops[0].results) or len({tuple(op.result_types) for op in ops}) > 1:
        return False
    for results in zip(*(op.results for op in ops), strict=True):
        name = fresh_name(program, results[0].name_hint or "v")
        value = add_input(program, results[0].type, name)
        for result in results:
            result.replace_all_uses_with(value)
    erase(ops)
    return True


def _drop(op: Operation) -> bool:
    Rewriter.erase_op(op)
    return True


def _replace(index: int, n: int) -> Edit:
    """Uses the n-th value that may stand in for each result of an op."""
    return lambda p: _replace_op(all_ops(p)[index], n)


def _replace_op(op: Operation, n: int) -> bool:
    for result in op.results:
        found = _choices(op, result)
        result.replace_all_uses_with(found[min(n, len(found) - 1)])
    Rewriter.erase_op(op)
    return True


def _choices(op: Operation, result: SSAValue) -> list[SSAValue]:
    """Values of the result's type that may stand in its place: the op's operands, then what comes before it."""
    near = dict.fromkeys([*op.operands, *_before(op)])
    return [v for v in near if v.type == result.type and v is not result]


def _before(op: Operation) -> Iterator[SSAValue]:
    """Values that are visible at an op, the nearest first."""
    around: Operation | None = op
    while around is not None and not isinstance(around, FuncOp):
        previous = around.prev_op
        while previous is not None:
            yield from previous.results
            previous = previous.prev_op
        block = around.parent
        if block is not None:
            yield from block.args
        around = around.parent_op()


# ---- the same op or value twice, what was moved before it is computed, and constants ----


def _twin(op: Operation) -> Operation | None:
    """The nearest earlier op that computes the same."""
    previous = op.prev_op
    while previous is not None and not op.regions:
        if (previous.name, previous.operands, previous.properties, previous.result_types) == (
            op.name, op.operands, op.properties, op.result_types,
        ):  # fmt: skip
            return previous
        previous = previous.prev_op
    return None


def _merge(op: Operation) -> bool:
    twin = _twin(op)
    if twin is None:
        return False
    for result, value in zip(op.results, twin.results, strict=True):
        result.replace_all_uses_with(value)
    Rewriter.erase_op(op)
    return True


def _becomes(index: int, number: Any) -> Edit:
    """Replace the result of an op by a constant."""
    return lambda p: put_constant(all_ops(p)[index], number)


def _numbers(program: Program, type: Attribute) -> list[Any]:
    """Numbers of the program's constants of a tensor's element type: what is at a limit is often one of them."""
    attrs = [op.elements_attr for op in program.ops() if isinstance(op, hlo.ConstantOp)]
    found = [attr.splat() for attr in attrs if attr.is_splat and element_of(attr.type) == element_of(type)]
    return list({np.asarray(number).tobytes(): number for number in found}.values())[:_NUMBERS]


def _fewer_sources(program: Program, index: int) -> list[Edit]:
    """Edits after which an op needs fewer others: its operands become one value, or it is spared by a moved input."""
    op = all_ops(program)[index]
    edits: list[Edit] = []
    for j in range(1, len(op.operands)):
        if op.operands[j].type == op.operands[0].type and op.operands[j] is not op.operands[0]:
            edits.append(lambda p, j=j: _uses_first(all_ops(p)[index], j))
    if isinstance(op, hlo.DotGeneralOp) and op.lhs is not op.rhs:
        edits.append(lambda p: _square(p, index, 0))
        edits.append(lambda p: _square(p, index, 1))
    if _moves_computed(op):
        edits.append(lambda p: _move_before(p, all_ops(p)[index]))
    if makes_one_small(op) and not isinstance(op, hlo.ConstantOp):
        edits += [_becomes(index, number) for number in (1, 0, -1, *_numbers(program, op.results[0].type))]
    return edits


def _uses_first(op: Operation, position: int) -> bool:
    op.operands[position] = op.operands[0]
    return True


def _square(program: Program, index: int, side: int) -> bool:
    """Make a dot one of its left operand with itself (side 0), or of its right one."""
    op = all_ops(program)[index]
    assert isinstance(op, hlo.DotGeneralOp)
    batching, contracting = op.dimensions[side], op.dimensions[2 + side]
    op.operands[1 - side] = op.operands[side]
    same = DotDimensions(batching, batching, contracting, contracting)
    op.properties["dot_dimension_numbers"] = encode("dot_dimension_numbers", same)
    retype(op.result, with_shape(op.result, dot_shape(op)))
    program.main.update_function_type()
    return True


def _moves_computed(op: Operation) -> bool:
    """Whether an op of main moves what an op on one tensor makes element by element."""
    if not isinstance(op, hlo.BroadcastInDimOp | hlo.ReshapeOp | hlo.TransposeOp) or not _sees_main(op):
        return False
    source = op.operands[0].owner
    return isinstance(source, UnaryOp | hlo.ConvertOp)


def _move_before(program: Program, op: Operation) -> bool:
    """Compute from a new input of the moved shape, in place of moving what is computed."""
    source, result = op.operands[0].owner, op.results[0]
    assert isinstance(source, Operation)
    shape, inner = shape_of(result), tensor_of(source.operands[0])
    new = add_input(program, with_shape(inner, shape), fresh_name(program, "m"))
    made = source.clone({source.operands[0]: new})
    retype(made.results[0], result.type)
    Rewriter.insert_op(made, InsertPoint.before(op))
    result.replace_all_uses_with(made.results[0])
    Rewriter.erase_op(op)
    return True


def use_other_input(program: Program, index: int) -> list[Edit]:
    """Edits that use an earlier input in place of an input."""
    args = program.block.args
    same = [i for i in range(index) if args[i].type == args[index].type]

    def edit(p: Program, i: int) -> bool:
        p.block.args[index].replace_all_uses_with(p.block.args[i])
        return True

    return [lambda p, i=i: edit(p, i) for i in same[:2]]


def drop_unused_inputs(program: Program, chunk: range) -> bool:
    """Drop those of these inputs that nothing uses."""
    return drop_inputs(program, chunk)


def input_count(program: Program) -> int:
    """How many inputs there are."""
    return len(program.block.args)


# ---- regions and functions ----


def holders(program: Program) -> list[Operation]:
    """The ops that have something to put in their place: branches, loops, calls, composites."""
    kinds = (hlo.IfOp, hlo.CaseOp, hlo.WhileOp, CallOp, hlo.CompositeOp)
    return [op for op in program.ops() if isinstance(op, kinds)]


def holder_count(program: Program) -> int:
    """How many such ops there are."""
    return len(holders(program))


def unfoldings(program: Program, index: int) -> list[Edit]:
    """Edits that put one branch, one turn of a loop, or a function's body in the place of an op.

    In main also with all that it computes as outputs, in place of those that there are: these may need sizes that only
    another branch had.
    """
    op = holders(program)[index]
    count = len(op.regions) if isinstance(op, hlo.IfOp | hlo.CaseOp) else 1
    ways = (False, True) if op.parent is program.block else (False,)
    return [lambda p, n=n, o=o: _unfold(p, holders(p)[index], n, opened=o) for o in ways for n in range(count)]


def _unfold(program: Program, op: Operation, n: int, *, opened: bool) -> bool:
    match op:
        case hlo.IfOp() | hlo.CaseOp():
            region: Region = op.regions[n]
        case hlo.WhileOp():
            region = op.body
        case _:
            name = op.decomposition_name if isinstance(op, hlo.CompositeOp) else _callee(op)
            function = program.function(name)
            if function is None:
                return False
            region = function.body
    in_main, before = op.parent is program.block, set(program.block.ops)
    results = inline(op, region.block)
    if opened:
        inlined = [one for one in program.block.ops if one not in before]
        made = [r for one in inlined for r in one.results if static_shape(r) is not None]
        set_outputs(program, [(value.name_hint or "r", value) for value in made])
        return bool(made)
    if in_main:
        # What only another branch needed stays alive.
        loose = dict.fromkeys(v for v in results if isinstance(v, OpResult) and v.first_use is None)
        set_outputs(program, [*program.named_outputs(), *((v.name_hint or "r", v) for v in loose if is_tensor(v.type))])
    return True


def _callee(op: Operation) -> str:
    assert isinstance(op, CallOp)
    return op.callee.root_reference.data


def inline(op: Operation, block: Block) -> list[SSAValue]:
    """Put a copy of a block in the place of an op, whose operands are the block's arguments (if it takes any).

    Returns the values that replace the op's results.
    """
    values: list[SSAValue] = []
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, op.operands, strict=True)) if block.args else {}
    point = InsertPoint.before(op)
    for source in block.ops:
        if source.has_trait(IsTerminator):
            values = [mapping.get(v, v) for v in source.operands]
            for old, new in zip(op.results, values, strict=True):
                old.replace_all_uses_with(new)
            break
        Rewriter.insert_op(source.clone(mapping), point)
    Rewriter.erase_op(op)
    return values
