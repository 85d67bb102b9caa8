"""Programs for several devices, as XLA takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import dtype_text, element_of, is_tensor, rank_of, shape_of, with_element
from gcomp.runtime.plan import MeshAxis
from gcomp.sharding import Sharding

_SCOPES = (FuncOp, hlo.IfOp, hlo.CaseOp, hlo.WhileOp, sdy.ManualComputationOp)
"""Ops whose regions hold values that may lie anywhere; bodies of folds are said by what they apply."""


def mesh_of_program(program: Program) -> tuple[MeshAxis, ...]:
    """The mesh that a program is for; none where it says nothing of devices."""
    declared = list(dict.fromkeys(sdy.all_meshes(program.module)))
    meshes = [mesh for mesh in declared if mesh.axes]  # one without axes is a single device, as callbacks have it
    if len(meshes) > 1:
        raise UnsupportedError(
            "The program has shardings on several meshes.", why=f"They are {' and '.join(m.text() for m in meshes)}.",
            fix="Write them on one mesh, with an axis for each part that is cut apart.",
        )  # fmt: skip
    if not declared and sdy.is_sharded(program.module):
        raise UnsupportedError("The program has shardings, and no mesh.", fix="Declare it: sdy.mesh @mesh = <[...]>.")
    return tuple(MeshAxis(axis.name, axis.size) for mesh in meshes for axis in mesh.axes)


def constrain(program: Program) -> None:
    """Say by constraints what ops say of their results: exported ops have no attributes."""
    for op in list(program.ops()):
        said = op.attributes.get(sdy.SHARDING)
        if not isinstance(said, sdy.ShardingPerValueAttr) or not isinstance(op.parent_op(), _SCOPES):
            continue
        b = Builder(program, InsertPoint.after(op))
        for result, sharding in zip(op.results, said.data, strict=True):
            if sharding != Sharding.open(sharding.mesh, sharding.rank):
                uses = tuple(result.uses)
                constraint = b.emit(sdy.ShardingConstraintOp, result, sharding=sdy.ShardingAttr(sharding))
                for use in uses:
                    use.operation.operands[use.index] = constraint


def refuse_narrow(program: Program) -> None:
    """Raises UnsupportedError for integers of 2 bits: XLA's all-gather of them is wrong, its sums do not compile."""
    for op in program.ops():
        if any(is_tensor(v.type) and dtype_text(v.type) in ("i2", "ui2") for v in (*op.operands, *op.results)):
            raise UnsupportedError(
                "A program for several devices has integers of 2 bits.", where=where(op),
                why="XLA does not send them between devices.", fix="Convert them to 8 bits.",
            )  # fmt: skip


def keep_nan(program: Program) -> None:
    """Let devices find the greatest and the least of floats as integers in the same order, with NaN at the end that is
    looked for: on processors, XLA's collectives forget NaN."""
    for op in list(program.ops()):
        if not isinstance(op, hlo.AllReduceOp | hlo.ReduceScatterOp) or len(op.operands) != 1:
            continue
        text, applied = dtype_text(op.operands[0].type), sdy.folded_op(op.computation)
        if text not in _ORDERED or applied not in (hlo.MaximumOp, hlo.MinimumOp):
            continue
        b = Builder(program, InsertPoint.before(op))
        keys = _keys(b, op.operands[0], greatest=applied is hlo.MaximumOp)
        made = type(op).create(
            operands=[keys], result_types=[with_element(op.results[0], element_of(keys))],
            properties=dict(op.properties), regions=[scalar_region(applied, element_of(keys))],
            attributes=dict(op.attributes),
        )  # fmt: skip
        b.insert(made)
        found = b.emit(hlo.BitcastConvertOp, _turned(b, made.results[0]), types=(op.results[0].type,))
        op.results[0].replace_all_uses_with(found)
        Rewriter.erase_op(op)


_ORDERED = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}
"""Float -> the integer of its bits."""


def _keys(b: Builder, x: SSAValue, *, greatest: bool) -> SSAValue:
    """Integers in the order of floats; NaN is greater than all, or less than all."""
    text = dtype_text(x.type)
    keys = _turned(b, b.emit(hlo.BitcastConvertOp, x, types=(with_element(x, _ORDERED[text]),)))
    end = np.iinfo(dtype_of(_ORDERED[text]))
    return b.select(b.compare(x, x, "NE"), b.full_like(keys, end.max if greatest else end.min), keys)


def _turned(b: Builder, keys: SSAValue) -> SSAValue:
    """Bits of floats as integers in their order, and back: of negative ones all bits but the sign are turned."""
    end = np.iinfo(dtype_of(dtype_text(keys.type)))
    sign = b.emit(hlo.ShiftRightArithmeticOp, keys, b.full_like(keys, end.bits - 1))
    return b.emit(hlo.XorOp, keys, b.emit(hlo.AndOp, sign, b.full_like(keys, end.max)))


def make_empty(program: Program) -> None:
    """Let manual computations make operands without elements: XLA folds these away, and finds no operand then
    ("expected at least one operand ... to be produced by a GlobalToLocalShape")."""
    for op in [op for op in program.ops() if isinstance(op, sdy.ManualComputationOp)]:
        empty = [i for i, value in enumerate(op.operands) if is_tensor(value.type) and 0 in shape_of(value)]
        if not empty:
            continue
        b = Builder(program, InsertPoint.at_start(op.block))
        for i in reversed(empty):
            argument = op.block.args[i]
            argument.replace_all_uses_with(b.full(shape_of(argument), 0, element_of(argument)))
            op.block.erase_arg(argument)
        kept = [i for i in range(len(op.operands)) if i not in empty]
        _remake(program, op, [op.operands[i] for i in kept], [op.inner[i] for i in kept])


def carry_weights(program: Program) -> None:
    """Let manual computations take weights as operands: their bodies are isolated, and weights become arguments.

    Each device reads the whole weight. Computations inside of others hand their weights on.
    """
    computations = [op for op in program.ops() if isinstance(op, sdy.ManualComputationOp)]
    for op in reversed(computations):
        reads: dict[str, list[WeightOp]] = {}
        for inner in list(op.block.ops):
            for read in [o for o in inner.walk() if isinstance(o, WeightOp)]:
                reads.setdefault(read.symbol, []).append(read)
        if reads:
            _carry(program, op, reads)


def _carry(program: Program, op: sdy.ManualComputationOp, reads: dict[str, list[WeightOp]]) -> None:
    b = Builder(program, InsertPoint.before(op))
    mesh = next(s.mesh for s in (*op.inner, *op.outer))
    given: list[SSAValue] = []
    for found in reads.values():
        given.append(b.insert(found[0].clone()).results[0])
        argument = op.block.insert_arg(found[0].result.type, len(op.block.args))
        for read in found:
            read.result.replace_all_uses_with(argument)
            Rewriter.erase_op(read)
    uncut = [Sharding.open(mesh, rank_of(value)).closed() for value in given]
    _remake(program, op, [*op.operands, *given], [*op.inner, *uncut])


def _remake(
    program: Program, op: sdy.ManualComputationOp, operands: Sequence[SSAValue], inner: Sequence[Sharding]
) -> None:
    """Put a computation of other operands, which its body has arguments for, in the place of one."""
    made = sdy.ManualComputationOp.along(op.axes, operands, inner, op.outer, op.detach_region(0), op.result_types)
    made.attributes.update(op.attributes)
    Builder(program, InsertPoint.before(op)).insert(made)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
