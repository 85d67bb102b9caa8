"""Programs for several devices: random programs whose values lie somewhere, and computations for one device of a mesh.

Arguments, results of ops and results of the program are cut evenly along random axes, in any order; constraints stand
between ops and their users, and computations for one device, with collectives, take values of the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.dims import Size
from gcomp.dtypes import is_integer
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor, shape_of, with_shape
from gcomp.partitioning.cuts import Cut, counts, part_shape
from gcomp.partitioning.exchange import Exchange
from gcomp.sharding import Mesh, Sharding
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.program import grow
from gcomp.testing.reduce.signature import set_outputs

MESHES = tuple(
    Mesh.of(sizes)
    for sizes in (
        (("a", 2),), (("a", 2), ("b", 2)), (("a", 4),), (("a", 2), ("b", 4)), (("a", 4), ("b", 2)), (("a", 8),),
        (("a", 2), ("b", 2), ("c", 2)), (("a", 3), ("b", 2)), (("a", 1), ("b", 2)),
    )
)  # fmt: skip
"""Of at most eight devices."""
_SIZES = (2, 4, 8, 6)


def sharded_program(choices: Choices, size: int) -> Program:
    """A program of about `size` ops with shardings on a mesh of `MESHES`."""
    program = grow(choices, size, symbolic=0.0, sizes=_SIZES).program
    mesh = choices.chosen(MESHES)
    name = sdy.add_mesh(program.module, mesh)
    placing = _Placing(program, choices, mesh, name)
    if choices.flag(0.4):
        placing.compute()
    placing.place()
    return program


class _Placing:
    """Says how values of a program lie."""

    def __init__(self, program: Program, choices: Choices, mesh: Mesh, name: str) -> None:
        self.program, self.choices, self.mesh, self.name = program, choices, mesh, name

    def cut(self, shape: Sequence[Size], often: float = 0.6) -> Cut:
        """A cut of a tensor into equal parts; axes come in any order."""
        found: Cut = ((),) * len(shape)
        axes = [*self.mesh.names]
        while axes:
            axis = axes.pop(self.choices.integer(0, len(axes) - 1))
            fitting = [further for further in _further(found, axis) if part_shape(shape, further, self.mesh)]
            if fitting and self.choices.flag(often):
                found = self.choices.chosen(fitting)
        return found

    def sharding(self, cut: Cut) -> Sharding:
        """The cut as a closed sharding."""
        return Sharding.of(self.name, cut)

    def of(self, value: SSAValue) -> Sharding:
        """A random sharding of a value; whole where it is no tensor."""
        return self.sharding(self.cut(shape_of(value)) if is_tensor(value.type) else ())

    def place(self) -> None:
        """Place arguments, results, and what some ops give."""
        program, choices = self.program, self.choices
        main, block = program.main, program.block
        sdy.set_argument_shardings(main, [self.of(a) if choices.flag(0.8) else None for a in block.args])
        given = [self.of(v) if choices.flag() else None for v in program.returned.operands]
        sdy.set_result_shardings(main, given)
        for op in [*block.ops][:-1]:
            if op.name.startswith("sdy.") or not op.results or not all(is_tensor(v.type) for v in op.results):
                continue
            if choices.flag(0.3):
                sdy.set_sharding(op, [self.of(v) for v in op.results])
            if choices.flag(0.2):
                b = Builder(program, InsertPoint.after(op))
                value = choices.chosen(op.results)
                uses = choices.some([*value.uses], 0.7)
                placed = b.emit(sdy.ShardingConstraintOp, value, sharding=sdy.ShardingAttr(self.of(value)))
                for use in uses:
                    use.operation.operands[use.index] = placed

    # ---- computations for one device ----

    def compute(self) -> None:
        """One more result, of a computation for one device on a value of the program."""
        program, choices = self.program, self.choices
        values = [v for op in [*program.block.ops][:-1] for v in op.results if is_tensor(v.type)]
        values = [v for v in (*program.block.args, *values) if all(s for s in shape_of(v))]
        if not values:
            return
        value = choices.chosen(values)
        cut = self.cut(shape_of(value), 0.8)
        block = Block(arg_types=[with_shape(value, part_shape(shape_of(value), cut, self.mesh) or ())])
        exchange = Exchange(Builder(program, block), self.mesh)
        part, lies = self._collectives(exchange, block.args[0], cut)
        exchange.b.insert(sdy.ReturnOp.of(part))
        shape = [
            s * n if isinstance(s, int) else s for s, n in zip(shape_of(part), counts(lies, self.mesh), strict=True)
        ]
        made = sdy.ManualComputationOp.along(
            self.mesh.names, [value], [self.sharding(cut)], [self.sharding(lies)], Region(block),
            [with_shape(part, shape)],
        )  # fmt: skip
        Builder(program, InsertPoint.before(program.returned)).insert(made)
        named = [(port.name, v) for port, v in zip(program.outputs(), program.returned.operands, strict=True)]
        set_outputs(program, [*named, ("computed", made.results[0])])

    def _collectives(self, exchange: Exchange, part: SSAValue, cut: Cut) -> tuple[SSAValue, Cut]:
        """A part after a few collectives, and how it lies then."""
        for _ in range(self.choices.integer(1, 3)):
            step = self.choices.chosen((self._moved, self._reduced, self._scattered, self._computed))
            part, cut = step(exchange, part, cut)
        return part, cut

    def _moved(self, exchange: Exchange, part: SSAValue, cut: Cut) -> tuple[SSAValue, Cut]:
        shape = [int(str(s)) * n for s, n in zip(shape_of(part), counts(cut, self.mesh), strict=True)]
        other = self.cut(shape)
        return exchange.move(part, cut, other), other

    def _reduced(self, exchange: Exchange, part: SSAValue, cut: Cut) -> tuple[SSAValue, Cut]:
        axis = self.choices.chosen(self.mesh.names)
        return exchange.all_reduce(part, self._combine(part), axis), _without(cut, axis)

    def _scattered(self, exchange: Exchange, part: SSAValue, cut: Cut) -> tuple[SSAValue, Cut]:
        axis = self.choices.chosen(self.mesh.names)
        size = self.mesh.axis_size(axis)
        dims = [d for d, s in enumerate(shape_of(part)) if isinstance(s, int) and s and s % size == 0]
        if not dims:
            return part, cut
        dim = self.choices.chosen(dims)
        further = tuple([(*axes, axis) if d == dim else axes for d, axes in enumerate(_without(cut, axis))])
        return exchange.reduce_scatter(part, self._combine(part), axis, dim), further

    def _computed(self, exchange: Exchange, part: SSAValue, cut: Cut) -> tuple[SSAValue, Cut]:
        kind = hlo.MaximumOp if is_integer(dtype_text(part.type)) else hlo.AddOp
        return exchange.b.emit(kind, part, part), cut

    def _combine(self, part: SSAValue) -> str:
        text = dtype_text(part.type)
        if text == "i1":
            return self.choices.chosen(("or", "and"))
        return "add" if text.startswith("complex") else self.choices.chosen(("add", "maximum", "minimum"))


def _further(cut: Cut, axis: str) -> list[Cut]:
    return [tuple([(*axes, axis) if d == dim else axes for d, axes in enumerate(cut)]) for dim in range(len(cut))]


def _without(cut: Cut, axis: str) -> Cut:
    return tuple([tuple([a for a in axes if a != axis]) for axes in cut])


__all__ = ["MESHES", "sharded_program"]
