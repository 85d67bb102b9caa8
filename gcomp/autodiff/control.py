"""Derivatives of branches, barriers and tuples; loops are in `loops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.autodiff.sweeps import Forward, Maybe, Reverse, Row, differentiable, register
from gcomp.autodiff.table import nothing, refuses
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.locations import where
from gcomp.ir.printing import PrintOp
from gcomp.ir.walking import captures, walk


def copy_ops(b: Builder, ops: Sequence[Operation], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of ops where the builder inserts; `mapping` learns what became of their results.

    What has an effect (random numbers from hidden state) would not be the same again, and is refused. Prints are left
    out.
    """
    made: list[Operation] = []
    for op in ops:
        if isinstance(op, PrintOp):
            continue
        found = [inner for inner in walk(op) if not inner.regions and not is_side_effect_free(inner)]
        if any(not isinstance(inner, PrintOp) for inner in found):
            raise UnsupportedError(
                "a branch or loop body with an effect cannot be differentiated backward", where=where(op),
                why="the body is computed again for its derivative, which this op does not allow",
                fix="take it out of the body: draw random numbers before, or by rng_bit_generator with a state",
            )  # fmt: skip
        made.append(b.insert(op.clone(mapping)))
        for inner in [inner for inner in walk(made[-1]) if isinstance(inner, PrintOp)] if found else []:
            Rewriter.erase_op(inner)
    return made


def replace_op(old: Operation, new: Operation) -> None:
    """Put an op, whose first results are those of another, in that one's place."""
    for before, after in zip(old.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    Rewriter.erase_op(old)


def returns(b: Builder, block: Block, more: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]) -> None:
    """Let a block return more values than it does: `more` builds them, and is given what it returns."""
    last, point = block.last_op, b.point
    assert last is not None
    b.point = InsertPoint.before(last)
    b.insert(hlo.ReturnOp.of(*last.operands, *more(list(last.operands))))
    b.point = point
    Rewriter.erase_op(last)


class Branches(Row):
    """if and case: the derivative is in the same branch."""

    def push(self, sweep: Forward, op: Operation) -> None:
        b = sweep.b
        regions = [region.clone() for region in op.regions]
        found: list[tuple[Block, Forward]] = []
        for region in regions:
            block, inner = region.block, sweep.inside()
            inner.run(list(block.ops)[:-1])
            found.append((block, inner))
        moving = [
            i for i, result in enumerate(op.results)
            if differentiable(result) and any(inner.get(_result(block, i)) is not None for block, inner in found)
        ]  # fmt: skip
        for block, inner in found:
            returns(b, block, lambda values, inner=inner: [inner.derivative_at(values[i]) for i in moving])
        new = b.insert(type(op).of(*op.operands, regions=regions))  # type: ignore[attr-defined]
        count = len(op.results)
        old = list(op.results)
        replace_op(op, new)
        for place, i in enumerate(moving):
            # Who built the op may still ask by its old result.
            for result in (old[i], new.results[i]):
                sweep.put(result, new.results[count + place])

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        b, read = sweep.b, [v for v in captures(op) if sweep.wants(v)]
        if not read:
            return
        regions = [Region(self._branch(sweep, region.block, read, cotangents)) for region in op.regions]
        results = b.emit_all(type(op), *op.operands, regions=regions)  # type: ignore[arg-type]
        for value, cotangent in zip(read, results, strict=True):
            sweep.add(value, cotangent)

    def _branch(self, sweep: Reverse, block: Block, read: Sequence[SSAValue], cotangents: Sequence[Maybe]) -> Block:
        b, made = sweep.b, Block()
        with b.inside(made):
            mapping: dict[SSAValue, SSAValue] = {}
            ops = copy_ops(b, list(block.ops)[:-1], mapping)
            inner = sweep.inner(ops, read)
            for i, cotangent in enumerate(cotangents):
                value = _result(block, i)
                inner.add(mapping.get(value, value), cotangent)
            inner.run(ops)
            b.insert(hlo.ReturnOp.of(*[inner.derivative_at(v) for v in read]))
        return made


def _result(block: Block, i: int) -> SSAValue:
    last = block.last_op
    assert last is not None
    return last.operands[i]


class Passed(Row):
    """Results that are operands: barriers."""

    def push(self, sweep: Forward, op: Operation) -> None:
        for operand, result in zip(op.operands, op.results, strict=True):
            sweep.add(result, sweep.get(operand))

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        for operand, cotangent in zip(op.operands, cotangents, strict=True):
            if sweep.wants(operand):
                sweep.add(operand, cotangent)


register(Branches(), hlo.IfOp, hlo.CaseOp)
register(Passed(), hlo.OptimizationBarrierOp)
nothing("it orders effects", hlo.AfterAllOp, hlo.CreateTokenOp)
nothing("it is printed once, where it was computed first", PrintOp)
nothing("it ends a region", hlo.ReturnOp)
refuses(
    "values in tuples have no cotangents of their own", hlo.TupleOp, hlo.GetTupleElementOp,
    fix="use the values themselves: tuples within a function are resolved by the pass canonicalize",
)  # fmt: skip

__all__ = ["copy_ops", "replace_op", "returns"]
