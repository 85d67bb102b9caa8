"""Building tile programs: methods for what schedules do all the time; what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.errors import UnsupportedError
from gcomp.ir import locations
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.types import ELEMENT_TYPES, Tensor, dtype_text
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.descriptors import DescribeOp, DescriptorType, LoadBoxOp
from gcomp.lowering.tiles.functions import FUNCTIONS
from gcomp.lowering.tiles.tile import BufferType, broadcast_shapes, element, static_shape

Combine = Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""Of two groups of scalars: one group of the combined."""


@lru_cache(4096)
def integer(value: int) -> IntegerAttr[Any]:
    """An integer property."""
    return IntegerAttr(value, i64)


@cache
def _word(text: str) -> StringAttr:
    """A function's name, as a property."""
    return StringAttr(text)


@lru_cache(4096)
def _number(value: int, index: str) -> ElementsAttr:
    """A position, as a property. Raises UnsupportedError for one beyond all memory."""
    try:
        return ElementsAttr.of(value, tile.tile((), ELEMENT_TYPES[index]))
    except OverflowError:
        raise UnsupportedError(
            "A tensor of the program is larger than any memory.",
            why=f"a position in it would be {value}, and positions have {index[1:]} bits",
            fix="Use smaller inputs, or check the sizes in the model.",
        ) from None


def _type(dtype: str | Attribute) -> Attribute:
    return ELEMENT_TYPES[tile.HELD.get(dtype, dtype)] if isinstance(dtype, str) else dtype


def known_position(value: SSAValue) -> int | None:
    """The number that a position is, where it is a constant."""
    op = value.owner
    if not isinstance(op, tile.ConstantOp) or static_shape(value) or element(value) not in ("i32", "i64"):
        return None
    return int(op.value.splat())


def is_counted(value: SSAValue) -> bool:
    """Whether elements are functions of their places in a tile alone, none of them below 0."""
    op = value.owner
    if isinstance(op, tile.CastOp):
        return is_counted(op.operand)
    if isinstance(op, tile.ElementwiseOp):
        known = op.function_name in ("divide_positive", "modulo_positive", "add", "multiply")
        return known and all(map(is_counted, op.operands))
    number = known_position(value)
    return isinstance(op, tile.IotaOp) or (number is not None and number >= 0)


def _parts_of(value: SSAValue) -> list[SSAValue]:
    """What a sum of positions is of."""
    op = value.owner
    if isinstance(op, tile.ElementwiseOp) and op.function_name == "add":
        return [part for v in op.operands for part in _parts_of(v)]
    return [value]


def _factor(value: SSAValue) -> tuple[SSAValue | None, int]:
    """A position as a value, or 1, and a number."""
    if (number := known_position(value)) is not None:
        return None, number
    op = value.owner
    if isinstance(op, tile.ElementwiseOp) and op.function_name == "multiply":
        for one, other in (op.operands, op.operands[::-1]):
            if (number := known_position(other)) is not None:
                return one, number
    return value, 1


class RefusedError(Exception):
    """A function of tiles is not to be built (`TileBuilder.refused`)."""


class TileBuilder:
    """Inserts tile ops at the end of a block. A pure op that was built before, here or around, is not built again."""

    def __init__(self, block: Block, index: Attribute = i32) -> None:
        self.block = self._outermost = block
        self.index = index
        """The type of positions: i32, or i64 where buffers are large."""
        self.location: LocationAttr = locations.UNKNOWN
        self.refused: frozenset[str] = frozenset()
        """Functions that raise RefusedError where they would be built of tiles, and not of single numbers: who tries
        what has none of them need not finish it."""
        self._known: list[dict[tuple[object, ...], SSAValue]] = [{}]

    @contextmanager
    def inside(self, block: Block, *, isolated: bool = False) -> Generator[None]:
        """Build at the end of a region's block; what is built there is known there only.

        A region that is `isolated` is a function of its own: it knows nothing of what is around it.
        """
        outer, known = self.block, self._known
        self.block, self._known = block, [{}] if isolated else [*known, {}]
        try:
            yield
        finally:
            self.block, self._known = outer, known

    @contextmanager
    def outermost(self) -> Generator[None]:
        """Build before all loops that are being built, from what is known there."""
        outer, known = self.block, self._known
        self.block, self._known = self._outermost, known[:1]
        try:
            yield
        finally:
            self.block, self._known = outer, known

    @contextmanager
    def at(self, location: LocationAttr) -> Generator[None]:
        """Stamp ops with a location."""
        outer, self.location = self.location, location
        try:
            yield
        finally:
            self.location = outer

    def insert(self, op: Operation) -> Operation:
        """Put an op at the end of the block."""
        op.location = self.location
        Rewriter.insert_op(op, InsertPoint.at_end(self.block))
        return op

    def _pure(
        self, kind: type[Operation], operands: Sequence[SSAValue], type: Attribute, **properties: Attribute
    ) -> SSAValue:
        key = (kind, *operands, type, *sorted(properties.items()))
        for known in reversed(self._known):
            if key in known:
                return known[key]
        op = self.insert(kind.create(operands=operands, result_types=[type], properties=properties))
        self._known[-1][key] = op.results[0]
        return op.results[0]

    # ---- values from nothing ----

    def program_id(self, axis: int) -> SSAValue:
        """The program's position along an axis of the grid, as an index."""
        found = self._pure(tile.ProgramIdOp, (), tile.tile((), i32), axis=integer(axis))
        return self.cast(found, self.index)

    def iota(self, count: int, axis: int, rank: int) -> SSAValue:
        """0, 1, 2, ... along an axis of a tile of some rank, as indices."""
        shape = [1] * rank
        shape[axis] = count
        found = self._pure(tile.IotaOp, (), tile.tile(shape, i32), dimension=integer(axis))
        return self.cast(found, self.index)

    def constant(self, value: Any, dtype: str | Attribute, shape: Sequence[int] = ()) -> SSAValue:
        """A tile filled with a value."""
        type = tile.tile(shape, _type(dtype))
        return self._pure(tile.ConstantOp, (), type, value=ElementsAttr.of(value, type))

    def position(self, value: int) -> SSAValue:
        """A constant index."""
        found = _number(value, dtype_text(self.index))
        return self._pure(tile.ConstantOp, (), found.type, value=found)

    # ---- values from values ----

    def apply(self, function: str, *operands: SSAValue) -> SSAValue:
        """An elementwise function by name."""
        kind = FUNCTIONS[function].result([element(v) for v in operands])
        shape = broadcast_shapes(*map(static_shape, operands))
        if shape and function in self.refused:
            if (found := self._by_parts(function, *operands)) is not None:
                return found
            raise RefusedError(function)
        type = tile.tile(shape, ELEMENT_TYPES[kind])
        return self._pure(tile.ElementwiseOp, operands, type, function=_word(function))

    def _by_parts(self, function: str, number: SSAValue, divisor: SSAValue) -> SSAValue | None:
        """The quotient or remainder of scalars that are multiples of a size, and of places that are counted: what the
        latter give is known. None for other numbers."""
        if (size := known_position(divisor)) is None or size <= 0:
            return None
        parts, counted = list[SSAValue](), list[SSAValue]()
        for part in _parts_of(number):
            (counted if static_shape(part) else parts).append(part)
        factors = [_factor(part) for part in parts]
        if len(counted) != 1 or not is_counted(counted[0]) or any(factor % size for _, factor in factors):
            return None
        found = self._pure(
            tile.ElementwiseOp,
            (counted[0], divisor),
            counted[0].type,
            function=_word(function.replace("floor", "positive")),
        )
        if not function.startswith("divide"):
            return found
        for value, factor in factors:
            term = self.position(factor // size)
            found = self.add(term if value is None else self.multiply(value, term), found)
        return found

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b of positions."""
        known = known_position(a), known_position(b)
        if 0 in known:
            return a if known[1] == 0 else b
        return self.apply("add", a, b)

    def multiply(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b of positions."""
        known = known_position(a), known_position(b)
        if 0 in known or 1 in known:
            return a if known[0] == 0 or known[1] == 1 else b
        return self.apply("multiply", a, b)

    def both(self, *masks: SSAValue | None) -> SSAValue | None:
        """Where all masks hold; None holds everywhere."""
        found: SSAValue | None = None
        for mask in masks:
            if mask is not None:
                found = mask if found is None else self.apply("and", found, mask)
        return found

    def cast(self, x: SSAValue, dtype: str | Attribute) -> SSAValue:
        """The same numbers in another type."""
        kind = _type(dtype)
        if cast(Tensor, x.type).element_type == kind:
            return x
        return self._pure(tile.CastOp, (x,), tile.tile(static_shape(x), kind))

    def bitcast(self, x: SSAValue, dtype: str) -> SSAValue:
        """The same bits in another type."""
        return self._pure(tile.BitcastOp, (x,), tile.tile(static_shape(x), _type(dtype)))

    def broadcast(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A tile repeated to a shape; no op when it has that."""
        if static_shape(x) == tuple(shape):
            return x
        return self._pure(tile.BroadcastOp, (x,), tile.tile(shape, cast(Tensor, x.type).element_type))

    def reshape(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The elements in another shape; no op when it has that."""
        if static_shape(x) == tuple(shape):
            return x
        return self._pure(tile.ReshapeOp, (x,), tile.tile(shape, cast(Tensor, x.type).element_type))

    def transpose(self, x: SSAValue) -> SSAValue:
        """The two dimensions swapped."""
        return self._pure(tile.TransposeOp, (x,), tile.tile(static_shape(x)[::-1], cast(Tensor, x.type).element_type))

    def dot(
        self, lhs: SSAValue, rhs: SSAValue, acc: SSAValue, precision: str, groups: int = 1, *, words: bool = False
    ) -> SSAValue:  # fmt: skip
        """lhs @ rhs + acc, of so many products side by side; `rhs` has `words` of four terms of a column."""
        properties: dict[str, Attribute] = {"groups": integer(groups)} if groups > 1 else {}
        if words:
            properties["words"] = UnitAttr()
        return self._pure(tile.DotOp, (lhs, rhs, acc), acc.type, precision=StringAttr(precision), **properties)

    # ---- folds ----

    def reduce(
        self, operands: Sequence[SSAValue], axis: int, combine: Combine, chains: int = 0
    ) -> Sequence[SSAValue]:  # fmt: skip
        """All elements along an axis in one, in so many chains where there are more elements."""
        properties = {"chains": integer(chains)} if 0 < chains < static_shape(operands[0])[axis] else {}
        return self._fold(combining.ReduceOp, operands, axis, combine, **properties)

    def scan(self, operands: Sequence[SSAValue], axis: int, combine: Combine, reverse: bool) -> Sequence[SSAValue]:
        """Each element combined with those before it along an axis."""
        return self._fold(combining.ScanOp, operands, axis, combine, reverse=integer(int(reverse)))

    def _fold(
        self,
        kind: type[combining.Folding],
        operands: Sequence[SSAValue],
        axis: int,
        combine: Combine,
        **properties: Attribute,
    ) -> Sequence[SSAValue]:
        scalars = [tile.tile((), cast(Tensor, v.type).element_type) for v in operands]
        block = Block(arg_types=[*scalars, *scalars])
        with self.inside(block, isolated=True):
            results = combine(block.args[: len(scalars)], block.args[len(scalars) :])
            self.insert(tile.YieldOp.create(operands=results))
        shape = static_shape(operands[0])
        folded = (*shape[:axis], 1, *shape[axis + 1 :]) if kind is combining.ReduceOp else shape
        types = [tile.tile(folded, s.element_type) for s in scalars]
        properties["dimension"] = integer(axis)
        op = kind.create(operands=operands, result_types=types, properties=properties, regions=[Region(block)])
        return self.insert(op).results

    # ---- memory ----

    def memory(self, dtype: str, count: int) -> SSAValue:
        """A buffer of the program's own."""
        type = BufferType(ELEMENT_TYPES[dtype])
        op = tile.MemoryOp.create(result_types=[type], properties={"count": integer(count)})
        return self.insert(op).results[0]

    def load(self, buffer: SSAValue, offset: SSAValue, mask: SSAValue | None, evict: str | None = None) -> SSAValue:
        """Elements of a buffer; 0 where the mask is false."""
        shape = static_shape(offset) if mask is None else broadcast_shapes(static_shape(offset), static_shape(mask))
        type = tile.tile(shape, cast(BufferType, buffer.type).element)
        properties = {} if evict is None else {"evict": StringAttr(evict)}
        operands = [buffer, self.broadcast(offset, shape), *([] if mask is None else [mask])]
        op = tile.LoadOp.create(operands=operands, result_types=[type], properties=properties)
        return self.insert(op).results[0]

    def store(self, buffer: SSAValue, offset: SSAValue, value: SSAValue, mask: SSAValue | None) -> None:
        """Write a tile where the mask is true."""
        masks = [] if mask is None else [mask]
        shape = broadcast_shapes(*map(static_shape, (offset, value, *masks)))
        operands = [buffer, self.broadcast(offset, shape), self.broadcast(value, shape), *masks]
        self.insert(tile.StoreOp.create(operands=operands))

    def atomic(self, function: str, buffer: SSAValue, offset: SSAValue, value: SSAValue, mask: SSAValue | None) -> None:
        """Combine elements of a buffer with a tile where the mask is true."""
        masks = [] if mask is None else [mask]
        shape = broadcast_shapes(*map(static_shape, (offset, value, *masks)))
        operands = [buffer, self.broadcast(offset, shape), self.broadcast(value, shape), *masks]
        self.insert(tile.AtomicOp.create(operands=operands, properties={"function": StringAttr(function)}))

    def describe(
        self, buffer: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue], box: Sequence[int]
    ) -> SSAValue:
        """A tensor in a buffer, of which boxes of a shape can be loaded."""
        type = DescriptorType(tile.tile(box, cast(BufferType, buffer.type).element))
        return self._pure(DescribeOp, (buffer, *sizes, *strides), type)

    def load_box(self, descriptor: SSAValue, offsets: Sequence[SSAValue]) -> SSAValue:
        """The box of a described tensor that begins at these indices."""
        type = cast(DescriptorType, descriptor.type).box
        operands = [descriptor, *[self.cast(offset, i32) for offset in offsets]]
        return self.insert(LoadBoxOp.create(operands=operands, result_types=[type])).results[0]

    # ---- control ----

    def loop(
        self, lower: SSAValue, upper: SSAValue, step: int, carried: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]], *, flatten: bool = False,
        rolled: bool = False,
    ) -> Sequence[SSAValue]:  # fmt: skip
        """A loop over positions; `body` takes the position and what is carried, and returns what is."""
        types = [v.type for v in carried]
        block = Block(arg_types=[lower.type, *types])
        with self.inside(block):
            results = body(block.args[0], block.args[1:])
            self.insert(tile.YieldOp.create(operands=results))
        op = tile.ForOp.create(
            operands=[lower, upper, *carried],
            result_types=types,
            properties={
                "step": integer(step),
                **{name: UnitAttr() for name, asked in (("flatten", flatten), ("rolled", rolled)) if asked},
            },
            regions=[Region(block)],
        )
        return self.insert(op).results
