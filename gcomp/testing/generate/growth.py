"""A program that grows: its values so far, the choices that steer it, and the steps that add to it.

A step is a function registered in `STEPS` by `@step(name, ops...)`; it picks operands among what there is (`pick`,
`like`, `of_type`), adds ops, and `keep`s results. Whatever is missing is made: `of_type` converts, broadcasts, or falls
back on constants and new inputs, so that every step succeeds on every program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.rewriter import InsertPoint

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of, is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode
from gcomp.ir.builder import Builder
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import ELEMENT_TYPES, Tensor, dtype_text, element_of, shape_of, tensor, tensor_of
from gcomp.reference.values import about, edge_pool, index_pool, small_pool
from gcomp.testing.generate.choices import Choices

Array = np.ndarray[Any, Any]

MOST_ELEMENTS, MANY_ELEMENTS = 96, 600
"""Values of more elements are not made: the interpreter's time should go into ops, not into elements. Few programs
have many."""

MOST_RANK = 6
_MOST_INPUTS = 6


# ---- steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One way to make a program grow: the ops it makes, how often it is taken, and the function that does it."""

    name: str
    makes: tuple[type[Operation], ...]
    weight: float
    grow: Callable[[Growth], None]
    nests: bool = False
    """Whether it makes regions in which the program grows on."""


STEPS: dict[str, Step] = {}
"""All steps by name, simplest first."""


def step(
    name: str, *makes: type[Operation], weight: float = 1.0, nests: bool = False
) -> Callable[[Callable[[Growth], None]], Callable[[Growth], None]]:
    """Register a step."""

    def register(grow: Callable[[Growth], None]) -> Callable[[Growth], None]:
        STEPS[name] = Step(name, makes, weight, grow, nests)
        return grow

    return register


@lru_cache(maxsize=1)
def _tables() -> Mapping[bool, tuple[list[Step], list[float]]]:
    """The steps and the running totals of their weights, with and without those that nest."""
    tables: dict[bool, tuple[list[Step], list[float]]] = {}
    for nested in (False, True):
        steps = [s for s in STEPS.values() if nested or not s.nests]
        totals = np.cumsum([s.weight for s in steps])
        tables[nested] = steps, [float(t) for t in totals]
    return tables


# ---- building, fast -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 15)
def _encode_attribute(name: str, value: Any) -> Attribute:
    return encode(name, value)


@cache
def _defaults(op: type[GraphOp]) -> Mapping[str, Attribute]:
    known = op.get_irdl_definition().properties
    return {name: p.default_value for name, p in known.items() if p.default_value is not None}


def _hashable(value: Any) -> Any:
    return tuple([_hashable(v) for v in value]) if isinstance(value, list) else value  # pyright: ignore


@lru_cache(maxsize=1 << 12)
def splat(text: str, shape: tuple[int, ...], bits: bytes) -> ElementsAttr:
    """The data of a constant whose elements all have these bits."""
    value = np.frombuffer(bits, dtype_of(text))[0] if math.prod(shape) else np.empty(shape, dtype_of(text))
    return ElementsAttr.of(value, tensor(shape, text))


class Maker(Builder):
    """A builder that appends, and keeps the attributes it makes: several times faster than the general one."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.block = program.block
        self.made = 0
        """How many ops were made so far."""

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        before, self.block = self.block, block
        previous, self.point = self.point, InsertPoint.at_end(block)
        try:
            yield
        finally:
            self.block, self.point = before, previous

    def insert(self, op: Operation) -> Operation:
        self.made += 1
        self.block.add_op(op)
        return op

    def emit(self, op: type[GraphOp], *operands: SSAValue, types: Sequence[Attribute] | None = None,
             regions: Sequence[Region] = (), **properties: Any) -> SSAValue:  # fmt: skip
        return self.emit_all(op, *operands, types=types, regions=regions, **properties)[0]

    def emit_all(self, op: type[GraphOp], *operands: SSAValue, types: Sequence[Attribute] | None = None,
                 regions: Sequence[Region] = (), **properties: Any) -> Sequence[SSAValue]:  # fmt: skip
        attributes = dict(_defaults(op))
        for name, value in properties.items():
            if value is not None:
                attributes[name] = value if isinstance(value, Attribute) else _encode_attribute(name, _hashable(value))
        made = op.create(operands=operands, result_types=types or (), properties=attributes, regions=regions)
        if types is None:
            made.results = SSAValues([OpResult(t, made, i) for i, t in enumerate(made.infer())])
        self.made += 1
        self.block.add_op(made)
        return made.results


# ---- growing --------------------------------------------------------------------------------------------------------


class Growth:
    """The state of a growing program."""

    def __init__(self, program: Program, choices: Choices, size: int, palette: Sequence[str]) -> None:
        self.program, self.choices = program, choices
        self.b = Maker(program)
        self.entry = self.b.block
        self.size, self.palette = size, tuple(palette)
        self.values: list[SSAValue] = []
        self.symbols: dict[str, int] = {}
        """The symbols of the program, and the largest size that each can have."""
        self.least: dict[str, int] = {}
        """The smallest size that each symbol can have."""
        self.compared: Sequence[float] = ()
        """Numbers that constants are to be near, since conditions of a pass compare something with them."""
        self.named: AbstractSet[type[Operation]] = frozenset()
        """Ops that are to be taken more often than others, since a pass names them."""
        self.of_constants = False
        """Whether operands are to be constants more often, since a pass asks for them."""
        self.most = MOST_ELEMENTS
        self.preferred: Sequence[int] = ()
        """Sizes that are to be taken more often than others."""
        self.depth = 0
        self.sealed: bool = False
        """Whether ops go into a function of their own, which cannot use inputs of the program."""
        self.taken: list[str] = []
        """The names of the steps taken."""

    # ---- questions about values ----

    def count(self, shape: Sequence[Size]) -> int:
        """How many elements a shape has, symbols at their largest."""
        return math.prod([s if isinstance(s, int) else dims.evaluate(s, self.symbols) for s in shape])

    def maybe_empty(self, size: Size) -> bool:
        """Whether a size may be 0."""
        return (size if isinstance(size, int) else dims.evaluate(size, self.least)) == 0

    def fits(self, shape: Sequence[Size]) -> bool:
        """Whether a value of this shape may be made."""
        return len(shape) <= MOST_RANK and self.count(shape) <= self.most

    # ---- choosing operands ----

    def pick(
        self,
        elements: AbstractSet[Attribute] | None = None,
        *,
        least: int = 0,
        most: int = MOST_RANK,
        static: bool = False,
        empty: bool = True,
    ) -> SSAValue:
        """A value with an element type among `elements` and a rank from `least` to `most`, mostly the latest one.

        Where there is none, a new one is made.
        """
        values, choices = self.values, self.choices
        for _ in range(4):
            if not values:
                break
            found = values[-1 - choices.near(len(values))]
            if self._suits(found, elements, least, most, static) and (
                self.nonempty(found) if not empty else self.nonempty(found) or choices.flag(0.3)
            ):
                return found
        for found in reversed(values):
            if self._suits(found, elements, least, most, static) and self.nonempty(found):
                return found
        return self.adapted(elements, least, most, static=static, empty=empty)

    def _suits(
        self, value: SSAValue, elements: AbstractSet[Attribute] | None, least: int, most: int, static: bool
    ) -> bool:
        type = cast(Tensor, value.type)
        rank = len(type.shape.data)
        if not least <= rank <= most or (elements is not None and type.element_type not in elements):
            return False
        return not static or not self.symbols or all(isinstance(s, int) for s in shape_of(type))

    def nonempty(self, value: SSAValue) -> bool:
        """Whether a value certainly has elements."""
        return 0 not in shape_of(value)

    def adapted(
        self, elements: AbstractSet[Attribute] | None, least: int, most: int, *, static: bool, empty: bool = True
    ) -> SSAValue:
        """A value that suits: the latest one converted where only its element type is wrong, or a new one."""
        if elements is not None and self.values and self.choices.flag(0.7):
            latest = self.values[-1]
            if self._suits(latest, None, least, most, static) and (empty or self.nonempty(latest)):
                return self.convert(latest, self.text_among(elements))
        shape = self.shape(least, most, static=static, empty=empty)
        return self.fresh(tensor(shape, self.text_among(elements)))

    def convert(self, x: SSAValue, text: str) -> SSAValue:
        """The value in another element type."""
        return self.keep(self.b.convert(x, text))

    def text_among(self, elements: AbstractSet[Attribute] | None) -> str:
        """An element type, of the program's own where they allow it."""
        own = [t for t in self.palette if elements is None or element(t) in elements]
        usual = own or [t for t in USUAL if elements is None or element(t) in elements]
        return self.choices.chosen(usual or [t for t in ELEMENT_TYPES if elements is None or element(t) in elements])

    def shape(
        self, least: int = 0, most: int = MOST_RANK, *, static: bool = False, empty: bool = True
    ) -> tuple[Size, ...]:
        """A shape for a new value: often that of another, small, with ones and rarely zeros."""
        choices = self.choices
        if self.values and choices.flag(0.4):
            known = shape_of(self.values[-1 - choices.near(len(self.values))])
            suits = least <= len(known) <= most and (empty or 0 not in known)
            if suits and (not static or all(isinstance(s, int) for s in known)):
                return known
        rank = min(max(_RANKS[choices.weighted(_RANK_TOTALS)], least), most)
        shape: list[Size] = []
        for _ in range(rank):
            size: Size = _SIZES[choices.weighted(_SIZE_TOTALS)]
            if self.preferred and choices.flag(0.7):
                size = choices.chosen(self.preferred)
            if self.symbols and not static and choices.flag(0.4):
                size = self.symbolic_size()
            elif self.most > MOST_ELEMENTS and choices.flag(0.3):
                size = choices.chosen(_LARGE)
            if size == 0 and not empty:
                size = 1
            shape.append(size if self.fits((*shape, size)) else 1)
        return tuple(shape)

    def symbolic_size(self) -> Size:
        """A symbol, or rarely a formula of symbols."""
        choices = self.choices
        size = dims.symbol(choices.chosen(list(self.symbols)))
        return size if choices.flag(0.75) else choices.chosen((2 * size, size + 1, size + 2))

    def like(self, x: SSAValue) -> SSAValue:
        """A value of the type of `x`."""
        return self.of_type(tensor_of(x))

    def of_type(self, type: Tensor) -> SSAValue:
        """A value of a type: one that is there, one adapted from what is there, a constant, or a new input."""
        roll = self.choices.weighted(_SOURCE_TOTALS)
        if roll == 0:
            same = [v for v in self.values if v.type is type]
            if same:
                return same[-1 - self.choices.near(len(same))]
        if roll <= 1 and (found := self.broadcast_from(type)) is not None:
            return found
        if roll <= 2:
            shape = type.shape
            for value in reversed(self.values):
                other = cast(Tensor, value.type)
                if other.shape == shape and other.encoding == type.encoding and other is not type:
                    return self.b.convert(value, type.element_type)
        if roll == 3:
            return self.constant(type)
        return self.fresh(type)

    def broadcast_from(self, type: Tensor) -> SSAValue | None:
        """A value of the type that repeats one of a lower rank, or None where there is none."""
        target, text = shape_of(type), type.element_type
        for value in reversed(self.values[-12:]):
            known = cast(Tensor, value.type)
            if known.element_type is not text or known is type:
                continue
            shape = shape_of(known)
            if len(shape) < len(target) and (places := _align(shape, target)) is not None:
                return self.b.emit(hlo.BroadcastInDimOp, value, types=(type,), broadcast_dimensions=places)
        return None

    def scalar(self, text: str) -> SSAValue:
        """A rank 0 value: where a pass compares something with numbers, a constant near them at times."""
        found = self.compared_with(text) if self.compared and self.choices.flag(_COMPARED) else None
        return self.of_type(tensor((), text)) if found is None else found

    def compared_with(self, text: str) -> SSAValue | None:
        """A constant near a number that the pass compares something with, if there is one of the type."""
        near = about(text, self.choices.chosen(self.compared)) if self.compared else np.empty(0)
        return self.splat(tensor((), text), self.choices.chosen(list(near))) if near.size else None

    # ---- values from nothing ----

    def fresh(self, type: Tensor) -> SSAValue:
        """A new input, or a constant where there are inputs enough."""
        block = self.entry
        if self.sealed or len(block.args) >= _MOST_INPUTS:
            return self.constant(type)
        arg = block.insert_arg(type, len(block.args))
        if self.depth == 0:
            self.values.insert(0, arg)
        return arg

    def constant(self, type: Tensor) -> SSAValue:
        """A constant of the type: a splat of an edge value, a repeated scalar, counting numbers, or edge values."""
        choices, text, shape = self.choices, dtype_text(type), shape_of(type)
        pool = edge_pool(text)
        if self.compared and choices.flag(_COMPARED):
            near = about(text, choices.chosen(self.compared))
            pool = near if near.size else pool
        static = all(isinstance(s, int) for s in shape)
        kind = choices.weighted(_CONSTANT_TOTALS)
        if kind <= 1 or not static:
            value = pool[choices.integer(0, 1) if choices.flag(0.4) else choices.integer(0, pool.size - 1)]
            return self.splat(type, value, broadcast=kind == 1 or not static)
        sizes = tuple([s for s in shape if isinstance(s, int)])
        count = math.prod(sizes)
        if kind == 2:
            array = np.arange(count).astype(pool.dtype)
        elif kind == 3:
            array = choices.fill(small_pool(text), count)
        else:
            array = choices.fill(pool, count)
        if kind == 5 and count:
            return self.b.weight("w", array.reshape(sizes))
        return self.b.emit(hlo.ConstantOp, types=(type,), value=ElementsAttr.of(array.reshape(sizes)))

    def numbers(self, type: Tensor) -> SSAValue:
        """A constant of small whole numbers, mostly 0 and 1."""
        sizes = tuple([s for s in shape_of(type) if isinstance(s, int)])
        pool = index_pool(dtype_text(type))
        array = self.choices.fill(pool, math.prod(sizes)).reshape(sizes)
        return self.b.emit(hlo.ConstantOp, types=(type,), value=ElementsAttr.of(array))

    def sizes(self, shape: Sequence[int]) -> SSAValue:
        """Sizes as a constant."""
        array = np.array(shape, np.int64)
        return self.b.emit(hlo.ConstantOp, types=(tensor(array.shape, "i64"),), value=ElementsAttr.of(array))

    def index(self, number: int) -> SSAValue:
        """A number as a constant of i32."""
        return self.b.emit(
            hlo.ConstantOp, types=(tensor((), "i32"),), value=splat("i32", (), self.small("i32", number))
        )

    def small(self, text: str, number: int) -> bytes:
        """The bytes of a small number."""
        return np.asarray(number).astype(dtype_of(text)).tobytes()

    def splat(self, type: Tensor, value: Any, *, broadcast: bool = False) -> SSAValue:
        """A constant filled with a value; `broadcast` repeats a scalar, as symbolic sizes ask for."""
        text, shape = dtype_text(type), shape_of(type)
        bits = np.asarray(value).astype(dtype_of(text)).tobytes()
        sizes = tuple([s for s in shape if isinstance(s, int)])
        if shape and (broadcast or len(sizes) < len(shape)):
            scalar = self.b.emit(hlo.ConstantOp, types=(tensor((), text),), value=splat(text, (), bits))
            return self.b.emit(hlo.BroadcastInDimOp, scalar, types=(type,), broadcast_dimensions=())
        return self.b.emit(hlo.ConstantOp, types=(type,), value=splat(text, sizes, bits))

    # ---- results ----

    def keep(self, value: SSAValue) -> SSAValue:
        """Add a value to those that later steps may use."""
        self.values.append(value)
        return value

    def emit(self, op: type[GraphOp], *operands: SSAValue, **properties: Any) -> SSAValue:
        """Build an op and keep its first result."""
        return self.keep(self.b.emit(op, *operands, **properties))

    # ---- taking steps ----

    def take(self, *, nested: bool) -> bool:
        """Take one step; True."""
        steps, totals = _tables()[nested]
        chosen = steps[self.choices.weighted(totals)]
        self.taken.append(chosen.name)
        chosen.grow(self)
        return True

    @contextmanager
    def within(self, block: Block, *, sealed: bool = False) -> Generator[None]:
        """Grow inside a block: what is made there is not seen outside. A sealed block does not see what is outside."""
        outer, was_sealed = self.values, self.sealed
        self.values = [*block.args] if sealed else [*outer, *block.args]
        self.depth, self.sealed = self.depth + 1, sealed or was_sealed
        try:
            with self.b.inside(block):
                yield
        finally:
            self.depth, self.sealed = self.depth - 1, was_sealed
            self.values = outer

    def coerced(self, x: SSAValue, type: Tensor) -> SSAValue:
        """What depends on `x` and has a type: itself, converted, reshaped, or folded to a scalar and repeated."""
        text, shape = dtype_text(type), shape_of(type)
        if element_of(x) is not type.element_type:
            x = self.b.convert(x, text)
        if x.type is type:
            return x
        known = shape_of(x)
        if known and dims.product(known) == dims.product(shape):
            return self.b.emit(hlo.ReshapeOp, x, types=(type,))
        if known:
            op = hlo.AddOp if self.choices.flag() or is_complex(text) else hlo.MaximumOp
            x = self.b.reduce(op, x, range(len(known)))
        return self.b.emit(hlo.BroadcastInDimOp, x, types=(type,), broadcast_dimensions=()) if shape else x


@cache
def element(text: str) -> Attribute:
    """The element type of a text."""
    return tensor((), text).element_type


def _align(shape: Sequence[Size], target: Sequence[Size]) -> list[int] | None:
    """Where the dimensions of a shape may stand among those of a target, in order; None where they do not fit."""
    places: list[int] = []
    at = len(target)
    for size in reversed(shape):
        at -= 1
        while at >= 0 and target[at] != size and size != 1:
            at -= 1
        if at < 0:
            return None
        places.append(at)
    return places[::-1]


def _totals(*weights: float) -> list[float]:
    return [float(t) for t in np.cumsum(weights)]


_RANKS = (0, 1, 2, 3, 4, 5, 6)
_RANK_TOTALS = _totals(10, 22, 34, 20, 10, 3, 2)
_SIZES = (1, 2, 3, 0, 4, 5, 6, 7)
_SIZE_TOTALS = _totals(22, 30, 22, 4, 12, 5, 3, 2)
_LARGE = (17, 33, 100, 128, 257)
_SOURCE_TOTALS = _totals(58, 12, 8, 12, 10)
_COMPARED = 0.2
"""How often a constant is near a number that the pass compares something with."""
_CONSTANT_TOTALS = _totals(34, 16, 8, 14, 24, 4)
USUAL = ("f32", "i32", "i1", "f64", "bf16", "f16", "i64", "i8", "ui8", "ui32", "complex<f32>", "i16", "complex<f64>")
