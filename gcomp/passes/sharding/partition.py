"""A program whose values lie as shardings say becomes what one device runs, with all that devices send stated.

`main` is one manual computation along all axes: each op is cut along the factors of its rule by which its operands lie,
parts of sums are reduced (or reduced and scattered, where the result lies so), and where an op takes a value in another
cut than it lies in, collectives bring it there (`gcomp.partitioning.cuts`). What has no rule, or is cut in a way that
parts alone cannot compute, is computed whole on each device. A program without shardings stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.errors import UnsupportedError
from gcomp.exactness import Exactness
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.host import HostOp
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, rank_of, shape_of, with_shape
from gcomp.ir.walking import captures, inputs_of, walk
from gcomp.partitioning.cuts import Cut, cut_of, part_shape, uncut
from gcomp.partitioning.exchange import Exchange
from gcomp.partitioning.local import Local
from gcomp.partitioning.rule import Kind, ShardingRule
from gcomp.partitioning.search.problem import KEEPERS, MAKERS
from gcomp.partitioning.table import rule_of
from gcomp.passes.base import Pass, PassContext
from gcomp.sharding import Mesh, Sharding


@dataclass(frozen=True)
class Partition(Pass):
    """Write `main` as one device runs it, with collectives."""

    name: ClassVar[str] = "partition"
    places_values: ClassVar[bool] = True
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        meshes = {name: mesh for name, mesh in sdy.meshes_of(program.module).items() if mesh.axes}
        if not meshes or not sdy.is_sharded(program.module) or _is_written(program):
            return False
        if len({*meshes.values()}) > 1 or any(mesh.device_ids for mesh in meshes.values()):
            raise UnsupportedError(
                "a program on several meshes, or on devices in another order, is not partitioned",
                fix="write it on one mesh, whose devices are in plain order",
            )
        name, mesh = next(iter(meshes.items()))
        _Partitioning(program, name, mesh).run()
        return True


def _is_written(program: Program) -> bool:
    """Whether one manual computation along all axes is all that `main` does on devices."""
    ops = [op for op in program.block.ops if not isinstance(op, WeightOp)]
    return len(ops) > 1 and isinstance(ops[0], sdy.ManualComputationOp) and _ends(ops[1])


def _ends(op: Operation) -> bool:
    """Whether what runs on devices ends before an op."""
    return isinstance(op, HostOp) or op.next_op is None


class _Partitioning:
    """Writes the ops of `main`, one by one, into the body of a manual computation."""

    def __init__(self, program: Program, name: str, mesh: Mesh) -> None:
        self.program, self.name = program, name
        self.mesh = mesh
        self.axes = [axis.name for axis in mesh.axes if axis.size > 1]
        self.body = Block()
        self.b = Builder(program, self.body)
        self.exchange = Exchange(self.b, mesh)
        self.homes: dict[SSAValue, Cut] = {}
        """How each value lies; what is computed from constants lies nowhere."""
        self.known: dict[tuple[SSAValue, Cut], SSAValue] = {}
        """The device's part of a value in a cut, once it is there."""

    def run(self) -> None:
        self._lift_weights()
        ops = [*self.program.block.ops]
        # What begins with a step on the host is computed there, on whole values.
        count = next(i for i, op in enumerate(ops) if _ends(op))
        ops, rest = ops[:count], ops[count:]
        inputs: list[SSAValue] = [*self.program.block.args, *[op.result for op in ops if isinstance(op, WeightOp)]]
        ops = [op for op in ops if not isinstance(op, WeightOp)]
        self._refuse_others(ops)
        for value in inputs:
            cut = self._stated(value) or uncut(rank_of(value))
            part = self.body.insert_arg(with_shape(value, self._part(value, cut)), len(self.body.args))
            part.name_hint = value.name_hint
            self.homes[value], self.known[value, cut] = cut, part
        for op in ops:
            with self.b.at(op.location):
                self._write(op)
        self._replace(inputs, ops, rest)

    def _lift_weights(self) -> None:
        """Read at the beginning what regions read: the computation takes weights as operands."""
        block = self.program.block
        for op in [*self.program.main.walk()]:
            if isinstance(op, WeightOp) and op.parent is not block:
                lifted = op.clone()
                Rewriter.insert_op(lifted, InsertPoint.at_start(block))
                op.result.replace_all_uses_with(lifted.result)
                Rewriter.erase_op(op)

    def _refuse_others(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if isinstance(op, PrintOp):
                _refuse(op, "each device would print for itself", "compile the program for one device")
            if isinstance(op, sdy.ManualComputationOp) and {*op.axes} < {*self.mesh.names}:
                _refuse(op, "it is written for one device along some axes alone", "name all axes of the mesh")
            if any(not is_tensor(v.type) for v in (*op.operands, *op.results)):
                _refuse(op, "it has values that are no tensors", "leave them out")

    def _replace(self, inputs: Sequence[SSAValue], ops: Sequence[Operation], rest: Sequence[Operation]) -> None:
        """Put the computation in place of these ops; the rest takes its results."""
        main = self.program.main
        stated: dict[SSAValue, Sharding] = {}
        value: SSAValue
        for value, said in zip(rest[-1].operands, sdy.result_shardings(main), strict=True):
            if said is not None:
                stated.setdefault(value, said)
        made_here: set[SSAValue] = {*inputs, *[result for op in ops for result in op.results]}
        taken = [v for v in dict.fromkeys(v for op in rest for v in inputs_of(op)) if v in made_here]
        cuts = [self._cut(stated[v], v) if v in stated else self.homes.get(v, uncut(rank_of(v))) for v in taken]
        self.b.insert(sdy.ReturnOp.of(*[self.in_cut(v, cut) for v, cut in zip(taken, cuts, strict=True)]))
        given, outer = [self._sharding(self.homes[v]) for v in inputs], [self._sharding(cut) for cut in cuts]
        made = sdy.ManualComputationOp.along(
            self.mesh.names, inputs, given, outer, Region(self.body), [v.type for v in taken]
        )
        Rewriter.insert_op(made, InsertPoint.before(rest[0]))
        for value, result in zip(taken, made.results, strict=True):
            result.name_hint = value.name_hint
            value.replace_uses_with_if(result, lambda use: not _is_before(use.operation, made))
        for op in reversed(ops):
            Rewriter.erase_op(op)
        count = len(main.body.block.args)
        sdy.set_argument_shardings(main, given[:count])
        for value, sharding in zip(inputs[count:], given[count:], strict=True):
            sdy.set_sharding(cast(OpResult, value).op, [sharding])
        lies: dict[SSAValue, Sharding] = dict(zip(made.results, outer, strict=True))
        sdy.set_result_shardings(main, [lies.get(v) for v in rest[-1].operands])

    # ---- cuts ----

    def _cut(self, sharding: Sharding, value: SSAValue) -> Cut:
        """What a sharding says of a value. UnsupportedError where parts would not be of one size."""
        if sharding.unreduced or any(axis.part is not None for axis in sharding.axes()):
            raise UnsupportedError(
                f"the sharding {sharding.text()} is not partitioned", where=_place(value),
                why="it has parts of axes, or sums that are not reduced", fix="name whole axes alone",
            )  # fmt: skip
        cut = tuple([tuple([a for a in axes if a in self.axes]) for axes in cut_of(sharding)])
        self._part(value, cut)
        return cut

    def _part(self, value: SSAValue, cut: Cut) -> list[Any]:
        found = part_shape(shape_of(value), cut, self.mesh)
        if found is None:
            raise UnsupportedError(
                f"a tensor of shape {shape_of(value)} is not cut into equal parts as {self._sharding(cut).text()} says",
                where=_place(value), fix="cut it along fewer axes, or pad it",
            )  # fmt: skip
        return found

    def _sharding(self, cut: Cut) -> Sharding:
        return Sharding.of(self.name, cut)

    def _stated(self, value: SSAValue) -> Cut | None:
        """What the program says of how a value lies."""
        said = sdy.sharding_of(value)
        return None if said is None else self._cut(said, value)

    def in_cut(self, value: SSAValue, cut: Cut) -> SSAValue:
        """The device's part of a value in a cut: brought there once, from where it lies."""
        key = value, cut
        if key not in self.known:
            home = self.homes.get(value)
            self.known[key] = (
                self._make(cast(OpResult, value), cut)
                if home is None
                else self.exchange.move(self.known[value, home], home, cut)
            )
        return self.known[key]

    def _make(self, value: OpResult, cut: Cut) -> SSAValue:
        """A part of what is computed from constants alone."""
        op = value.op
        with self.b.at(op.location):
            data = op.properties.get("value") if isinstance(op, hlo.ConstantOp) else None
            chosen = {axis: dim for dim, axes in enumerate(cut) for axis in axes}
            if not chosen:
                return self._whole(op)[value.index]
            if isinstance(data, ElementsAttr) and data.is_splat:
                type = with_shape(value, self._part(value, cut))
                return self.b.emit(hlo.ConstantOp, value=ElementsAttr.of(data.splat(), type))
            rule = None if data is not None else rule_of(op)
            if rule is not None:
                factors = {a: rule.results[value.index][chosen[a]][0] for a in self.axes if a in chosen}
                in_order = all(list(axes) == [a for a in self.axes if a in axes] for axes in cut)
                if in_order and all(map(rule.is_cuttable, factors.values())) and self._divides(op, rule, factors):
                    return self._local(op, rule, factors)[value.index]
            whole = self.in_cut(value, uncut(rank_of(value)))
            return self.exchange.move(whole, uncut(rank_of(value)), cut)

    # ---- ops ----

    def _write(self, op: Operation) -> None:
        if isinstance(op, MAKERS) or (isinstance(op, KEEPERS) and not any(v in self.homes for v in op.operands)):
            return
        if isinstance(op, sdy.ShardingGroupOp):
            return
        if isinstance(op, sdy.PlacingOp):
            cut = self._cut(op.layout, op.result)
            self._settle(op.result, self.in_cut(op.input, cut), cut)
        elif isinstance(op, sdy.ManualComputationOp):
            self._inline(op)
        else:
            rule = rule_of(op)
            chosen = {} if rule is None else self._chosen(op, rule)
            if rule is None or not chosen:
                made, cuts = self._whole(op), [uncut(rank_of(v)) for v in op.results]
            else:
                made, cuts = self._reduced(op, rule, chosen, self._local(op, rule, chosen))
            for result, part, cut in zip(op.results, made, cuts, strict=True):
                wanted = self._stated(result) or cut
                self._settle(result, self.exchange.move(part, cut, wanted), wanted)

    def _settle(self, value: SSAValue, part: SSAValue, cut: Cut) -> None:
        self.homes[value], self.known[value, cut] = cut, part

    def _whole(self, op: Operation) -> list[SSAValue]:
        """An op on whole values, as all devices compute it."""
        taken = {v: self.in_cut(v, uncut(rank_of(v))) for v in (*op.operands, *captures(op))}
        return [*self.b.insert(_bare(op.clone(taken))).results]

    def _inline(self, op: sdy.ManualComputationOp) -> None:
        """A computation that is written for one device already."""
        operands = [self.in_cut(v, self._cut(s, v)) for v, s in zip(op.operands, op.inner, strict=True)]
        taken: dict[SSAValue, SSAValue] = dict(zip(op.block.args, operands, strict=True))
        for inner in op.block.ops:
            if isinstance(inner, sdy.ReturnOp):
                for result, sharding, value in zip(op.results, op.outer, inner.operands, strict=True):
                    self._settle(result, taken[value], self._cut(sharding, result))
            else:
                self.b.insert(inner.clone(taken))

    def _chosen(self, op: Operation, rule: ShardingRule) -> dict[str, int]:
        """Which factor each axis cuts, by how operands lie, and then by how results are to lie."""
        stated = [self._stated(v) for v in op.results]
        found: dict[str, int] = {}
        for axis in self.axes:
            given = _factors(axis, zip(rule.operands, map(self.homes.get, op.operands), strict=True))
            wanted = _factors(axis, zip(rule.results, stated, strict=True))
            both = [f for f in given if f in wanted]
            for factor in (*both, *given, *wanted):
                if rule.is_cuttable(factor) and self._divides(op, rule, found | {axis: factor}):
                    found[axis] = factor
                    break
        return found

    def _divides(self, op: Operation, rule: ShardingRule, chosen: dict[str, int]) -> bool:
        """Whether all tensors have parts of one size."""
        for f in {*chosen.values()}:
            size, count = rule.factors[f].size, Local(op, rule, chosen, self.exchange).part.counts[f]
            if not isinstance(size, int) or size % count:
                return False
        values = zip((*op.operands, *op.results), rule.tensors, strict=True)
        return all(part_shape(shape_of(v), self._natural(dims, chosen), self.mesh) is not None for v, dims in values)

    def _natural(self, dims: Iterable[tuple[int, ...]], chosen: dict[str, int]) -> Cut:
        """How a tensor lies whose dimensions have these factors."""
        return tuple([tuple([a for a, f in chosen.items() if factors[:1] == (f,)]) for factors in dims])

    def _local(self, op: Operation, rule: ShardingRule, chosen: dict[str, int]) -> list[SSAValue]:
        """The results of an op on parts; parts of sums are not combined."""
        pairs = zip(op.operands, rule.operands, strict=True)
        operands = [self.in_cut(v, self._natural(dims, chosen)) for v, dims in pairs]
        taken = {v: self.in_cut(v, uncut(rank_of(v))) for v in captures(op)}
        regions: list[Region] = []
        for region in op.regions:
            copy = Region()
            region.clone_into(copy, value_mapper=dict(taken))
            regions.append(copy)
        return Local(op, rule, chosen, self.exchange).run(operands, regions)

    def _reduced(
        self, op: Operation, rule: ShardingRule, chosen: dict[str, int], parts: list[SSAValue]
    ) -> tuple[list[SSAValue], list[Cut]]:
        """The results with parts of sums combined, and how they lie: an axis that is to cut a result keeps a part."""
        summed = [a for a, f in chosen.items() if rule.factors[f].kind is Kind.REDUCTION]
        cuts: list[Cut] = []
        for i, result in enumerate(op.results):
            cut = self._natural(rule.results[i], chosen)
            stated = self._stated(result) or cut
            places = {axis: dim for dim, axes in enumerate(stated) for axis in axes}
            for axis in sorted(summed, key=lambda a: a not in places):
                combine = rule.factors[chosen[axis]].combine
                assert combine is not None
                further = cut if axis not in places else _cut_further(cut, places[axis], axis)
                if axis in places and part_shape(shape_of(result), further, self.mesh) is not None:
                    parts[i] = self.exchange.reduce_scatter(parts[i], combine, axis, places[axis])
                    cut = further
                else:
                    parts[i] = self.exchange.all_reduce(parts[i], combine, axis)
            cuts.append(cut)
        return parts, cuts


def _is_before(op: Operation, other: Operation) -> bool:
    """Whether an op stands before another of `main`, or in an op that does, or is that one."""
    block = other.parent
    while op.parent is not block:
        around = op.parent_op()
        assert around is not None
        op = around
    return op is other or op.is_before_in_block(other)


def _factors(axis: str, tensors: Iterable[tuple[Any, Cut | None]]) -> list[int]:
    """The major factors of the dimensions that an axis cuts."""
    return [
        dims[dim][0]
        for dims, cut in tensors
        for dim, axes in enumerate(cut or ())
        if axis in axes and dims[dim]
    ]  # fmt: skip


def _cut_further(cut: Cut, dim: int, axis: str) -> Cut:
    return tuple([(*axes, axis) if k == dim else axes for k, axes in enumerate(cut)])


def _bare(op: Operation) -> Operation:
    """The op without what it says of how values lie."""
    for inner in [*walk(op)]:
        inner.attributes.pop(sdy.SHARDING, None)
        if isinstance(inner, sdy.PlacingOp):
            inner.result.replace_all_uses_with(inner.input)
            Rewriter.erase_op(inner)
    return op


def _place(value: SSAValue) -> str | None:
    return where(value.op) if isinstance(value, OpResult) else value.name_hint


def _refuse(op: Operation, why: str, fix: str) -> NoReturn:
    raise UnsupportedError(f"{op.name} is not partitioned", where=where(op), why=why, fix=fix)
