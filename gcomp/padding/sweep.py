"""Going through a program, op by op, and building the padded one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gcomp.analysis.indexing import d, operand_maps
from gcomp.dims import Size, product, symbols_of
from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.host import symbols_of_op
from gcomp.ir.locations import where
from gcomp.ir.structures import GatherDimensions
from gcomp.ir.types import dtype_text, is_tensor, shape_of, with_shape
from gcomp.ir.walking import captures, walk
from gcomp.padding.layouts import Factors, Layout, Sizes, extent
from gcomp.padding.lengths import Lengths
from gcomp.reference.interpreter import evaluate_op

Scalar = np.ndarray[Any, Any]
"""An array of rank 0."""


@dataclass(frozen=True)
class Padded:
    """A value of the padded program.

    `fill` is the number that all its elements are, padding too, where that is known: then a mask may not be needed.
    What any other value's padding holds is not known.
    """

    value: SSAValue
    layout: Layout
    fill: Scalar | None = None


Rule = Callable[["Sweep", Any, Sequence[Padded]], Sequence[Padded]]
"""Of a sweep, an op of the original program and its operands: its results."""


@dataclass(frozen=True)
class Row:
    """What an op does with padding: a kind, and how it is built."""

    kind: str
    rule: Rule
    reason: str = ""


class Sweep:
    """Builds a padded program by the rows of its ops: `values` holds what became of each value of the original."""

    def __init__(
        self, b: Builder, sizes: Sizes, lengths: Mapping[str, SSAValue], rows: Mapping[type[Operation], Row]
    ) -> None:
        self.b, self.sizes, self._rows = b, sizes, rows
        self.lengths = Lengths(b, sizes, lengths)
        self.values: dict[SSAValue, Padded] = {}
        self._neutral: list[dict[Any, Padded]] = [{}]

    # ---- blocks and ops ----

    def block(self, block: Block, arguments: Sequence[Padded]) -> list[Padded]:
        """Build a block's ops where the builder inserts; what the block returns."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            if isinstance(op, hlo.ReturnOp | FuncReturnOp):
                return [self.values[v] for v in op.operands]
            with self.b.at(op.location):
                results = self.op(op)
            self.values.update(zip(op.results, results, strict=True))
        return []

    def region(self, block: Block, arguments: Sequence[Padded], into: Block) -> list[Padded]:
        """Build a block's ops inside a region; what it returns, without a return."""
        self.lengths.enter()
        self._neutral.append({})
        with self.b.inside(into):
            results = self.block(block, arguments)
        self._neutral.pop()
        self.lengths.leave()
        return results

    def op(self, op: Operation) -> Sequence[Padded]:
        """Build one op; its results."""
        operands = [self.values[v] for v in op.operands]
        if not self.touched(op):
            return self.copied(op, operands)
        row = self._rows.get(type(op))
        if row is None:
            refuse(self, op, "no row is known for it")
        if any(is_tensor(v.type) and "_" in _symbols(v.type) for v in (*op.operands, *op.results)):
            refuse(self, op, "its sizes are known at run time only", "run the pass infer-shapes first")
        results = row.rule(self, op, operands)
        for result in results:
            self._check_sizes(op, result)
        return results

    def touched(self, op: Operation) -> bool:
        """Whether padding changes anything that an op, or what is inside it, has or says."""
        used = (*op.operands, *captures(op))
        return any(map(self._is_touched, used)) or not self.sizes.padded.isdisjoint(self.mentioned(op))

    def mentioned(self, op: Operation) -> frozenset[str]:
        """The symbols in an op, in its regions and in the functions that it calls."""
        found = frozenset[str]().union(*map(symbols_of_op, walk(op)))
        for inner in walk(op):
            function = self.called(inner)
            if function is not None:
                found |= self.mentioned(function)
        return found

    def called(self, op: Operation) -> FuncOp | None:
        """The function that an op calls or stands for."""
        if isinstance(op, hlo.CompositeOp):
            return self.b.program.function(op.decomposition_name)
        return self.b.program.function(op.callee.root_reference.data) if isinstance(op, CallOp) else None

    def _is_touched(self, value: SSAValue) -> bool:
        return any(self.sizes.is_padded(factors) for factors in self.values[value].layout)

    def copied(self, op: Operation, operands: Sequence[Padded]) -> list[Padded]:
        """The op itself on the new operands; its results have plain layouts."""
        return [Padded(v, self.plain(v), _splat(op)) for v in self.clone(op, [operand.value for operand in operands])]

    def clone(self, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """A copy of the op on these operands where the builder inserts."""
        mapping = {v: self.values[v].value for v in captures(op)}
        copy = op.clone(mapping | {v: self.values[v].value for v in op.operands})
        for i, value in enumerate(operands):
            copy.operands[i] = value
        return self.b.insert(copy).results

    def around(self, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """As `clone`, of an op that is padded: what is inside it must not say a size."""
        inner = next((i for i in walk(op) if i is not op and not self.sizes.padded.isdisjoint(self.mentioned(i))), None)
        if inner is not None:
            refuse(self, op, f"its body has {inner.name}, which says a padded size")
        return self.clone(op, operands)

    def plain(self, value: SSAValue) -> Layout:
        """The layout in which each dimension is a prefix; that of what is no tensor has no dimensions."""
        return self.sizes.plain(shape_of(value)) if is_tensor(value.type) else ()

    def _check_sizes(self, op: Operation, result: Padded) -> None:
        for factors in result.layout:
            for factor in factors:
                if not self.sizes.grows(factor):
                    refuse(self, op, f"its size {factor} may be less for a longer input, so that padding does not fit")

    # ---- what rows are made of ----

    def carried(self, op: Operation, operands: Sequence[Padded]) -> list[Layout | None]:
        """The results' layouts as far as the indexing maps show the op to be independent along padded dimensions.

        None for a result of which an element reads others than those at its own place there.
        """
        return [self._carried(result, row, operands) for result, row in zip(op.results, operand_maps(op), strict=True)]

    def _carried(self, result: SSAValue, maps: Sequence[Any], operands: Sequence[Padded]) -> Layout | None:
        shape = shape_of(result)
        own = {d(j): j for j in range(len(shape))}
        found: dict[int, Factors] = {}
        for operand, reads in zip(operands, maps, strict=True):
            for k, factors in enumerate(operand.layout):
                if reads is None or not self.sizes.is_padded(factors):
                    continue
                j = own.get(reads.indices[k])
                if j is None or shape[j] != extent(factors) or found.setdefault(j, factors) != factors:
                    return None
        return tuple([found.get(j, (size,)) for j, size in enumerate(shape)])

    def compact(self, x: Padded, dimensions: Sequence[int] | None = None) -> Padded:
        """The value itself if its layout is plain in these dimensions, or in all; else in a layout that is plain."""
        wanted = range(len(x.layout)) if dimensions is None else dimensions
        if all(self.sizes.is_plain(x.layout[i]) for i in wanted):
            return x
        return self.relaid(x, [extent(factors) for factors in x.layout])

    def relaid(self, x: Padded, shape: Sequence[Size]) -> Padded:
        """The real elements in row-major order with another shape, in a plain layout."""
        source = [extent(factors) for factors in x.layout]
        if 0 in source:
            return Padded(self.b.reshape(x.value, shape), self.sizes.plain(shape))
        value = self.b.emit(
            hlo.GatherOp, self.b.reshape(x.value, (product(source),)), self._sources(x.layout, shape),
            dimension_numbers=GatherDimensions((), (0,), (), (), (0,), len(shape)), slice_sizes=(1,),
        )  # fmt: skip
        return Padded(value, self.sizes.plain(shape))

    def _sources(self, layout: Layout, shape: Sequence[Size]) -> SSAValue:
        """Where in row-major order the elements of a plain tensor lie in one of another layout: [*shape, 1]."""
        b, wide = self.b, list(shape)

        def spread(number: SSAValue) -> SSAValue:
            return b.broadcast(number, wide, ())

        place = spread(b.constant(0, "i64"))
        for i, size in enumerate(shape):
            place = b.add(b.multiply(place, spread(self.lengths.true(size))), b.iota(wide, i))
        source = spread(b.constant(0, "i64"))
        stride: Size = 1
        for factor in reversed([f for factors in layout for f in factors]):
            # A size of 0 has no elements to look for, and must not divide.
            count = spread(b.maximum(self.lengths.true(factor), b.constant(1, "i64")))
            digit, place = b.emit(hlo.RemainderOp, place, count), b.emit(hlo.DivideOp, place, count)
            source = b.add(source, b.multiply(digit, spread(b.dim(stride))))
            stride = stride * factor
        return b.reshape(source, (*shape, 1))

    def unified(self, values: Sequence[Padded]) -> list[Padded]:
        """Values of one shape with one layout."""
        if all(x.layout == values[0].layout for x in values):
            return list(values)
        return [self.compact(x) for x in values]

    def neutral(self, x: Padded, dimensions: Sequence[int], fill: Any) -> Padded:
        """The value with `fill` in place of its padding along these dimensions."""
        element = dtype_text(x.value.type)
        scalar = np.asarray(fill, dtype_of(element))
        touched = tuple([i for i in dimensions if self.sizes.is_padded(x.layout[i])])
        if not touched or (x.fill is not None and same(x.fill, scalar)):
            return x
        key = x.value, touched, scalar.tobytes()
        found = next((scope[key] for scope in reversed(self._neutral) if key in scope), None)
        if found is None:
            other = self.b.full((), scalar, element)
            found = Padded(self.lengths.kept(x.value, x.layout, touched, other), x.layout)
            self._neutral[-1][key] = found
        return found

    def expanded(
        self,
        op: Operation,
        operands: Sequence[Padded],
        built: Callable[[Builder, Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> list[Padded]:
        """The results of other ops: `built` makes them, of a builder and operands of the original types."""
        block = Block(arg_types=[v.type for v in op.operands])
        inner = Builder(self.b.program, block)
        inner.location = op.location
        results = built(inner, list(block.args))
        inner.insert(hlo.ReturnOp.of(*results))
        made = self.block(block, operands)
        block.erase()
        return made

    def evaluated(self, op: Operation, fills: Sequence[Scalar]) -> Scalar | None:
        """What an elementwise op makes of scalars, by the reference."""
        block = Block(arg_types=[_scalar(v.type) for v in op.operands])
        copy = type(op).create(
            operands=block.args, result_types=[_scalar(v.type) for v in op.results], properties=dict(op.properties)
        )
        (result,) = evaluate_op(copy, list(fills))
        return np.asarray(result)


def refuse(sweep: Sweep, op: Operation, why: str, fix: str | None = None) -> NoReturn:
    """Say that an op cannot be padded."""
    names = ", ".join(sorted(sweep.sizes.padded))
    raise UnsupportedError(
        f"{names} cannot be padded: {op.name} has no padded form here", where=where(op), why=why,
        fix=fix or f"compile without buckets for {names}, or take this op out of what depends on it",
    )  # fmt: skip


def same(a: Scalar, b: Scalar) -> bool:
    """Whether two scalars have the same bits."""
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _scalar(type: Attribute) -> Attribute:
    return with_shape(type, ())


def _symbols(type: Attribute) -> frozenset[str]:
    return frozenset(name for size in shape_of(type) for name in symbols_of(size))


def _splat(op: Operation) -> Scalar | None:
    """The value of a constant whose elements are all the same."""
    if not isinstance(op, hlo.ConstantOp):
        return None
    array = op.elements_attr.array()
    first = array.reshape(-1)[:1]
    if not array.size or (array.size > 1 and array.tobytes() != first.tobytes() * array.size):
        return None
    return first.reshape(())
