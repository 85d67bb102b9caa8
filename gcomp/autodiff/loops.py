"""Derivatives of while: tangents are carried along, and cotangents back through as many iterations as the loop made.

Backward, a second loop takes the iterations in reverse. What it needs of an iteration is saved by the first loop, in
stacks with a place for each iteration, but for what is cheap to compute again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp import dims
from gcomp.autodiff.control import copy_ops, replace_op, returns
from gcomp.autodiff.sweeps import (
    Forward,
    Maybe,
    Reverse,
    Row,
    differentiable,
    reached_values,
    register,
    sweep_dead_block,
)
from gcomp.autodiff.trips import Trips, line_of, trips_of
from gcomp.dtypes import is_integer
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.looping import put_item, take_item
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.types import dtype_text, element_of, is_tensor, rank_of, shape_of, tensor
from gcomp.ir.walking import captures


def moving(op: Any, carried: Iterable[int], outside: Iterable[SSAValue]) -> list[int]:
    """The carried values that have a derivative in some of them, or in values from around the loop."""
    block, found, outer = op.body.block, set(carried), list(outside)
    while True:
        inside = reached_values(list(block.ops), [*(block.args[i] for i in found), *outer])
        after = {i for i, v in enumerate(block.last_op.operands) if v in inside or v in outer} | found
        after = {i for i in after if differentiable(block.args[i])}
        if after == found:
            return sorted(found)
        found = after


def _live_carried(op: Any, carried: Sequence[int], wanted: Iterable[int]) -> list[int]:
    """The carried values that values whose cotangents are there depend on, in any iteration."""
    block, found = op.body.block, {i for i in wanted if i in carried}
    ops, returned = list(block.ops), block.last_op.operands
    inside = {j: reached_values(ops, [block.args[j]]) for j in carried}
    while True:
        after = found | {j for j in carried if any(returned[i] in inside[j] for i in found)}
        if after == found:
            return sorted(found)
        found = after


class While(Row):
    """The row of while."""

    def push(self, sweep: Forward, op: Any) -> None:
        b, count = sweep.b, len(op.operands)
        outer = [v for v in captures(op) if sweep.get(v) is not None]
        carried = moving(op, [i for i, v in enumerate(op.operands) if sweep.get(v) is not None], outer)
        starts = [sweep.derivative_at(op.operands[i]) for i in carried]
        cond, body = op.cond.clone(), op.body.clone()
        for region in (cond, body):
            for i in carried:
                region.block.insert_arg(op.operands[i].type, len(region.block.args))
        block, inner = body.block, sweep.inside()
        for place, i in enumerate(carried):
            inner.put(block.args[i], block.args[count + place])
        inner.run(list(block.ops)[:-1])
        returns(b, block, lambda values: [inner.derivative_at(values[i]) for i in carried])
        new = b.insert(hlo.WhileOp.of(*op.operands, *starts, regions=(cond, body)))
        old = list(op.results)
        replace_op(op, new)
        for place, i in enumerate(carried):
            # Who built the op may still ask by its old result.
            for result in (old[i], new.results[i]):
                sweep.put(result, new.results[count + place])

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        trips = trips_of(sweep.b.program, op)
        if trips is None:
            raise UnsupportedError(
                "a loop that nothing bounds cannot be differentiated backward", where=where(op),
                why="what its iterations carried must be saved, and how many iterations there are at most is not known",
                fix="count the iterations, and go on only while the counter is below a constant or a size (and so on)",
            )  # fmt: skip
        if trips.most == 0:
            for operand, cotangent in zip(op.operands, cotangents, strict=True):
                if sweep.wants(operand):
                    sweep.add(operand, cotangent)
            return
        _Backward(sweep, op, trips).run(cotangents)


@dataclass
class _Backward:
    """One loop on its way back."""

    sweep: Reverse
    op: Any
    trips: Trips

    def run(self, cotangents: Sequence[Maybe]) -> None:
        """Build the loop that goes back, and let the first one save what it needs."""
        sweep, op, b = self.sweep, self.op, self.sweep.b
        outer = [v for v in captures(op) if sweep.wants(v)]
        operands = list(op.operands)
        carried = moving(op, [i for i, v in enumerate(operands) if sweep.wants(v)], outer)
        carried = _live_carried(op, carried, [i for i, c in enumerate(cotangents) if c is not None])
        starts = [b.full_like(operands[i], 0) if (c := cotangents[i]) is None else c for i in carried]
        iteration = _Iteration.begin(sweep, op, carried, outer, self.trips)
        saved = iteration.values_to_save()
        stacks, iterations = _saving(sweep, op, self.trips, [original for _, original in saved])
        block = iteration.block
        with sweep.at(InsertPoint.at_start(block)):
            one = b.constant(1, "i64")
            last = b.dim(self.trips.most - 1) if iterations is None else b.subtract(iterations, one)
            place = b.subtract(last, block.args[0])
            iteration.place.replace_all_uses_with(place)
            for (value, _), stack in zip(saved, stacks, strict=True):
                value.replace_all_uses_with(take_item(b, stack, place))
        iteration.close()
        totals = [sweep.take(v) for v in iteration.outer]
        regions = (self._condition(block.arg_types, iterations), Region(block))
        results = b.emit_all(hlo.WhileOp, b.constant(0, "i64"), *starts, *totals, regions=regions)[1:]
        for i, result in zip(carried, results[: len(carried)], strict=True):
            if sweep.wants(operands[i]):
                sweep.add(operands[i], result)
        for value, result in zip(iteration.outer, results[len(carried) :], strict=True):
            sweep.add(value, result)

    def _limit(self, iterations: SSAValue | None) -> SSAValue:
        return self.sweep.b.dim(self.trips.most) if iterations is None else iterations

    def _condition(self, types: Sequence[Attribute], iterations: SSAValue | None) -> Region:
        """As many iterations as there were; where that is data, with a bound, for the derivative of this loop."""
        b = self.sweep.b

        def test(args: Sequence[SSAValue]) -> list[SSAValue]:
            below = b.compare(args[0], self._limit(iterations), "LT")
            if iterations is None:
                return [below]
            return [b.emit(hlo.AndOp, below, b.compare(args[0], b.dim(self.trips.most), "LT"))]

        return b.region(types, test)


@dataclass
class _Iteration:
    """The body of the loop that goes back: an iteration computed again, and then cotangents back through it."""

    block: Block
    held: Sequence[BlockArgument]
    """The block arguments for the values at the start of the iteration."""
    originals: dict[SSAValue, SSAValue]
    """Recomputed value -> the original value."""
    copies: set[Operation]
    place: BlockArgument
    """What stands for the number of the iteration, counted from the first one."""
    outer: Sequence[SSAValue]
    """The values from around the loop that get cotangents."""

    @staticmethod
    def begin(sweep: Reverse, op: Any, carried: Sequence[int], outer: Sequence[SSAValue], trips: Trips) -> _Iteration:
        """Differentiate the body, with placeholder arguments for the values that will be saved."""
        b, body = sweep.b, op.body.block
        own = [tensor((), "i64"), *(op.operands[i].type for i in carried), *(v.type for v in outer)]
        block = Block(arg_types=[*own, *body.arg_types, tensor((), "i64")])
        incoming = block.args[1 : 1 + len(carried)]
        totals = block.args[1 + len(carried) : len(own)]
        *held, place = block.args[len(own) :]
        mapping: dict[SSAValue, SSAValue] = dict(zip(body.args, held, strict=True))
        with b.inside(block):
            sources = list(body.ops)[:-1]
            copies = copy_ops(b, sources, mapping)
            inner = sweep.inner(copies, [*(held[i] for i in carried), *outer])
            for value, total in zip(outer, totals, strict=True):
                inner.put(value, total)
            for i, cotangent in zip(carried, incoming, strict=True):
                returned: SSAValue = body.last_op.operands[i]
                value = mapping.get(returned, returned)
                if inner.wants(value):
                    inner.add(value, cotangent)
            inner.run(copies)
            added = [v for v, total in zip(outer, totals, strict=True) if inner.get(v) is not total]
            after = [inner.derivative_at(held[i]) for i in carried]
            for k, (i, cotangent) in enumerate(zip(carried, incoming, strict=True)):
                if _only_zeroes(after[k], cotangent) and _fills(sweep, op, i, trips):
                    after[k] = cotangent
            after += [inner.derivative_at(v) for v in added]
            b.insert(hlo.ReturnOp.of(b.add(block.args[0], b.constant(1, "i64")), *after))
        with sweep.at(InsertPoint.at_start(block)):
            for i, argument in enumerate(body.args):
                # What stays what it was at first, or counts the iterations, need not be saved.
                if body.last_op.operands[i] is argument:
                    held[i].replace_all_uses_with(op.operands[i])
                elif (step := _step(op, i)) is not None:
                    held[i].replace_all_uses_with(_counter_at(b, op.operands[i], step, place))
        # Copies remember what is inside their regions too, which is not the iteration's own.
        own = {*held, *(result for copy in copies for result in copy.results)}
        originals = {copy: original for original, copy in mapping.items() if copy in own}
        for value, total in zip(outer, totals, strict=True):
            if value not in added:
                block.erase_arg(total)
        return _Iteration(block, held, originals, set(copies), place, added)

    def values_to_save(self) -> list[tuple[SSAValue, SSAValue]]:
        """The values of an iteration that its cotangents need, and what they are copies of, but for what is cheap."""
        sweep_dead_block(self.block, pure=True)
        saved: dict[SSAValue, None] = {}
        pending = [v for v in self.originals if any(self._outside(use.operation) for use in v.uses)]
        seen = set(pending)
        while pending:
            value = pending.pop()
            if isinstance(value, OpResult) and _cheap(value.op, self.originals):
                more = [v for v in value.op.operands if v in self.originals and v not in seen]
                seen.update(more)
                pending += more
            else:
                saved[value] = None
        return [(v, self.originals[v]) for v in saved]

    def _outside(self, user: Operation) -> bool:
        """Whether a user is none of the copies, nor inside one."""
        while user.parent is not self.block:
            around = user.parent_op()
            assert around is not None
            user = around
        return user not in self.copies

    def close(self) -> None:
        """Drop what is not computed again, and the arguments that stood for what is saved."""
        sweep_dead_block(self.block, pure=True)
        for argument in (self.place, *reversed(self.held)):
            self.block.erase_arg(argument)


def _only_zeroes(after: SSAValue, before: SSAValue) -> bool:
    """Whether a cotangent differs from the one before where an iteration has written only, by zeros."""
    return isinstance(after.owner, hlo.DynamicUpdateSliceOp) and after.owner.operand is before


def _fills(sweep: Reverse, op: Any, place: int, trips: Trips) -> bool:
    """Whether a loop writes each place of a carried value once at most, and nobody asks for the cotangent of what was
    there before: then it does not matter what that is."""
    own, write = op.body.block.args[place], op.body.block.last_op.operands[place].owner
    if not isinstance(write, hlo.DynamicUpdateSliceOp) or write.operand is not own or sweep.wants(op.operands[place]):
        return False
    lowest = sweep.b.program.ranges.bounds
    for index, size, part in zip(write.start_indices, shape_of(own), shape_of(write.update), strict=True):
        if part != 1 or (line := line_of(op, index)) is None or line.slope == 0:
            continue
        ends = (line.start, line.start + line.slope * (trips.most - 1))
        # An index that is out of range is moved to a place that another iteration may have written.
        if all((low := lowest(room)[0]) is not None and low >= 0 for e in ends for room in (e, size - 1 - e)):
            return True
    return False


def _step(op: Any, place: int) -> SSAValue | None:
    """The constant that each iteration adds to a carried whole number, if it does that."""
    own, change = op.body.block.args[place], op.body.block.last_op.operands[place].owner
    if rank_of(own) or not is_integer(dtype_text(own.type)) or not isinstance(change, hlo.AddOp):
        return None
    other = change.rhs if change.lhs is own else change.lhs if change.rhs is own else None
    return other if other is not None and isinstance(other.owner, hlo.ConstantOp) else None


def _number(value: SSAValue) -> int | None:
    source = value.owner
    return int(source.elements_attr.array().reshape(())) if isinstance(source, hlo.ConstantOp) else None


def _counter_at(b: Builder, start: SSAValue, step: SSAValue, place: SSAValue) -> SSAValue:
    """The value of a counter at an iteration."""
    count = b.convert(place, element_of(start))
    size = _number(step)
    count = count if size == 1 else b.multiply(count, b.full_like(count, size))
    return count if _number(start) == 0 else b.add(start, count)


_FREE = (hlo.ConstantOp, hlo.IotaOp, DimOp, WeightOp)
_VIEWS = (hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.TransposeOp, hlo.ReverseOp, hlo.ConvertOp)


def _cheap(op: Operation, inside: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether an op is better computed again than saved: it moves elements, reads what is there, or is on scalars."""
    if isinstance(op, hlo.DynamicSliceOp):
        return op.operand not in inside
    if isinstance(op, (*_FREE, *_VIEWS)):
        return True
    values = (*op.operands, *op.results)
    return not op.regions and all(is_tensor(v.type) and rank_of(v) == 0 for v in values)


def _saving(
    sweep: Reverse, op: Any, trips: Trips, values: Sequence[SSAValue]
) -> tuple[Sequence[SSAValue], SSAValue | None]:
    """Let a loop stack values of its body; the stacks, and the number of iterations unless that is known."""
    if not values and trips.exact:
        return [], None
    b, count = sweep.b, len(op.operands)
    room = trips.most if isinstance(trips.most, int) else dims.dmax(trips.most, 1)
    counter = next((i for i, v in enumerate(op.operands) if _counts(op, i, v)), None)
    with sweep.at(InsertPoint.before(op)), b.at(op.location):
        stacks = [b.full((room, *shape_of(v)), 0, element_of(v)) for v in values]
        operands = [*op.operands, *([b.constant(0, "i64")] if counter is None else ()), *stacks]
        cond, body = [op.detach_region(region) for region in (op.cond, op.body)]
        for region in (cond, body):
            for operand in operands[count:]:
                region.block.insert_arg(operand.type, len(region.block.args))
        grown = body.block.args[len(operands) - len(values) :]
        iteration = body.block.args[count if counter is None else counter]

        def written(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            rows = [put_item(b, stack, v, iteration) for stack, v in zip(grown, values, strict=True)]
            return [*([b.add(iteration, b.constant(1, "i64"))] if counter is None else ()), *rows]

        returns(b, body.block, written)
        new = b.insert(hlo.WhileOp.of(*operands, regions=(cond, body)))
    replace_op(op, new)
    filled = new.results[len(operands) - len(values) :]
    return filled, None if trips.exact else new.results[count if counter is None else counter]


def _counts(op: Any, place: int, start: SSAValue) -> bool:
    """Whether a carried value is the number of the iteration, from 0 on, in i64."""
    if dtype_text(start.type) != "i64" or rank_of(start) or _number(start) != 0:
        return False
    step = _step(op, place)
    return step is not None and _number(step) == 1


register(While(), hlo.WhileOp)
