"""How the left side of a rule becomes ops: one recipe for each kind of op, and random steps for all others.

A recipe builds the operands of a term, and says which properties and result type make an op of them. A property that
the rule captures is drawn; one that it names is as the rule says. What a rule's condition asks for beyond that is found
by trying again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue

from gcomp.dims import Size
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.rules import Attr, Calc, Const, Op, Term, Var
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import (
    ELEMENT_TYPES,
    Tensor,
    dtype_text,
    element_of,
    rank_of,
    shape_of,
    tensor,
    tensor_of,
    with_element,
    with_shape,
)
from gcomp.reference.values import small_pool
from gcomp.testing.generate.elementwise import DIRECTIONS, elements_with_meaning
from gcomp.testing.generate.growth import MOST_RANK, STEPS, Growth
from gcomp.testing.generate.movement import padding_of, regroup_shape, slice_of, spread

_PERTURBED = 0.15


class Impossible(Exception):
    """This try at building a left side failed."""


@dataclass(frozen=True)
class Need:
    """What an operand must be like: of a type, or of one of some element types and of a rank in a range."""

    type: Tensor | None = None
    elements: AbstractSet[Attribute] | None = None
    least: int = 0
    most: int = MOST_RANK

    def among(self, elements: AbstractSet[Attribute]) -> Need:
        """The same, with an element type among `elements` too."""
        return replace(self, elements=elements if self.elements is None else self.elements & elements)


@dataclass
class Draft:
    """One try at building a left side. A `loose` one strays a little from the rule, so that it may just not match.

    For a rule that does not pay everywhere, a `choosy` one prefers what such rules ask for: constants, weights, and
    channels-first orders.
    """

    g: Growth
    loose: bool = False
    choosy: bool = False
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])

    def build(self, term: Term, need: Need) -> SSAValue:
        """A value that the term matches."""
        match term:
            case Var():
                return self._variable(term, need)
            case Const():
                return self._constant(term, need)
            case Op():
                return self._op(term, need)

    def strays(self) -> bool:
        """Whether to depart from the rule here."""
        return self.loose and self.g.choices.flag(_PERTURBED)

    def _variable(self, term: Var, need: Need) -> SSAValue:
        known = self.values.get(term.name)
        if known is not None and not self.strays():
            return known
        if self.choosy and self.g.choices.flag():
            found = self._chosen(need)
        elif need.type is not None:
            found = self.g.of_type(need.type)
        else:
            if need.elements is not None and not need.elements:
                raise Impossible
            found = self.g.pick(need.elements, least=need.least, most=need.most)
        self.values[term.name] = found
        return found

    def _chosen(self, need: Need) -> SSAValue:
        """A weight or a constant, of a rank that has channels and space if nothing is known of it."""
        g, type = self.g, need.type
        if type is None:
            type = tensor(g.shape(max(need.least, 3), need.most), g.text_among(need.elements))
        sizes = [s for s in shape_of(type) if isinstance(s, int)]
        if len(sizes) < len(shape_of(type)) or g.choices.flag():
            return g.constant(type)
        return g.b.weight("w", g.choices.fill(small_pool(dtype_text(type)), math.prod(sizes)).reshape(sizes))

    def _constant(self, term: Const, need: Need) -> SSAValue:
        type = need.type
        if type is None:
            shape = self.g.shape(need.least, need.most, static=True)
            type = tensor(shape, self.g.text_among(need.elements))
        if term.value is None or self.strays():
            return self.g.constant(type)
        symbolic = any(not isinstance(s, int) for s in shape_of(type))
        return self.g.splat(type, term.value, broadcast=symbolic or self.g.choices.flag(0.4))

    def _op(self, term: Op, need: Need) -> SSAValue:
        recipe = next((RECIPES[kind] for kind in term.op.__mro__ if kind in RECIPES), None)
        if recipe is None:
            return self._by_steps(term)
        operands, types, properties = recipe(self, term, need)
        if term.commutes and self.g.choices.flag(0.4):
            operands = operands[::-1]
        return self.g.b.emit(term.op, *operands, types=types, **properties)

    def _by_steps(self, term: Op) -> SSAValue:
        """An op that a random step makes of the operands; whether it is as the rule wants, the match says."""
        g = self.g
        operands = [self.build(t, Need()) for t in term.operands]
        steps = [s for s in STEPS.values() if term.op in s.makes]
        if not steps:
            raise Impossible
        outer, last = g.values, g.b.block.last_op
        g.values = list(operands)
        try:
            g.choices.chosen(steps).grow(g)
        finally:
            g.values = outer
        op = g.b.block.last_op
        while op is not None and op is not last:
            if isinstance(op, term.op):
                return op.results[0]
            op = op.prev_op
        raise Impossible

    def property(self, term: Op, name: str, draw: Callable[[], Any]) -> Any:
        """A property as the rule says: literal, captured before, or drawn now."""
        wanted = term.properties.get(name)
        if isinstance(wanted, Attr):
            if wanted.name in self.attributes and not self.strays():
                return self.attributes[wanted.name]
            self.attributes[wanted.name] = value = draw()
            return value
        if wanted is not None and not isinstance(wanted, Calc) and not self.strays():
            return wanted
        return draw()

    def length(self, term: Op, name: str) -> int | None:
        """How long a list property must be, where the rule or an earlier capture says so."""
        wanted = term.properties.get(name)
        known = self.attributes.get(wanted.name) if isinstance(wanted, Attr) else wanted
        return len(known) if isinstance(known, tuple | list) else None  # pyright: ignore


Ingredients = tuple[Sequence[SSAValue], Sequence[Attribute] | None, Mapping[str, Any]]
Recipe = Callable[[Draft, Op, Need], Ingredients]
RECIPES: dict[type[GraphOp], Recipe] = {}
"""A recipe by the class of op that it makes, or a base of it."""


def recipe(*kinds: type[GraphOp]) -> Callable[[Recipe], Recipe]:
    """Register the recipe of some kinds of ops."""

    def register(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(kinds, function))
        return function

    return register


def _alike(d: Draft, term: Op, terms: Sequence[Term], need: Need) -> list[SSAValue]:
    """Values of one type for some terms; what determines its own type comes first."""
    order = sorted(range(len(terms)), key=lambda i: _freedom(d, terms[i]))
    built: dict[int, SSAValue] = {}
    for i in order:
        built[i] = d.build(terms[i], need)
        need = Need(tensor_of(built[i]))
    return [built[i] for i in range(len(terms))]


def _freedom(d: Draft, term: Term) -> int:
    match term:
        case Var():
            return 0 if term.name in d.values else 2
        case Op():
            return 1
        case Const():
            return 3


@recipe(hlo.UnaryOp, chlo.FunctionOp)
def unary(d: Draft, term: Op, need: Need) -> Ingredients:
    """An operand that the op takes; what is wanted of the result is wanted of it."""
    return [d.build(term.operands[0], need.among(elements_with_meaning(term.op)))], None, {}


@recipe(hlo.AbsOp, hlo.RealOp, hlo.ImagOp, hlo.IsFiniteOp, chlo.PredicateOp)
def unary_of_other_type(d: Draft, term: Op, need: Need) -> Ingredients:
    """An operand of the wanted shape that the op takes."""
    inner = Need(None, term.op.ELEMENTS, need.least, need.most)
    return [d.build(term.operands[0], inner)], None, {}


@recipe(hlo.BinaryOp, hlo.ComplexOp)
def binary(d: Draft, term: Op, need: Need) -> Ingredients:
    """Two operands of one type."""
    if term.op is hlo.ComplexOp:
        need = Need()
    return _alike(d, term, term.operands, need.among(elements_with_meaning(term.op))), None, {}


def _of_any_element(d: Draft, need: Need) -> Need:
    """The wanted shape, of any element type: at times of complex numbers, which few programs have."""
    text = d.g.choices.chosen(("complex<f32>", "complex<f64>")) if d.g.choices.flag(0.1) else None
    if need.type is not None:
        return Need(with_element(need.type, text or d.g.text_among(None)))
    return Need(None, None if text is None else frozenset({ELEMENT_TYPES[text]}), need.least, need.most)


@recipe(hlo.CompareOp)
def compare(d: Draft, term: Op, need: Need) -> Ingredients:
    """Two operands of one type, in the wanted shape."""
    operands = _alike(d, term, term.operands, _of_any_element(d, need))
    complex_ = "complex" in dtype_text(operands[0].type)
    direction = d.property(term, "comparison_direction", lambda: d.g.choices.chosen(DIRECTIONS[: 2 if complex_ else 6]))
    kind = d.property(term, "compare_type", lambda: None)
    return operands, None, {"comparison_direction": direction, "compare_type": kind}


@recipe(hlo.SelectOp)
def select(d: Draft, term: Op, need: Need) -> Ingredients:
    """Two branches of one type, and a predicate of their shape or of rank 0."""
    branches = _alike(d, term, term.operands[1:], need)
    type = tensor((), "i1") if d.g.choices.flag(0.3) else with_element(branches[0], "i1")
    return [d.build(term.operands[0], Need(type)), *branches], None, {}


@recipe(hlo.ClampOp)
def clamp(d: Draft, term: Op, need: Need) -> Ingredients:
    """An operand, and bounds of its type or of rank 0."""
    low, x, high = term.operands
    value = d.build(x, need)
    types = [tensor((), element_of(value)) if d.g.choices.flag() else tensor_of(value) for _ in range(2)]
    return [d.build(low, Need(types[0])), value, d.build(high, Need(types[1]))], None, {}


@recipe(hlo.ConvertOp)
def convert(d: Draft, term: Op, need: Need) -> Ingredients:
    """To the wanted element type, the operand's own, or any."""
    x = d.build(term.operands[0], _of_any_element(d, need))
    text = dtype_text(x.type) if d.g.choices.flag() else d.g.text_among(need.elements)
    return [x], (need.type or with_element(x, text),), {}


@recipe(hlo.TransposeOp)
def transpose(d: Draft, term: Op, need: Need) -> Ingredients:
    """Any order, of as many dimensions as the rule or the wanted type says."""
    length = d.length(term, "permutation")
    inner = Need(None, need.elements, max(need.least, 3 if d.choosy else 0), need.most)
    if length is not None:
        inner = Need(None, need.elements, length, length)
    if need.type is not None:
        shape = shape_of(need.type)
        order: tuple[int, ...] = d.property(term, "permutation", lambda: _order(d, len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise Impossible
        x = d.build(term.operands[0], Need(with_shape(need.type, [shape[order.index(i)] for i in range(len(order))])))
        return [x], None, {"permutation": order}
    x = d.build(term.operands[0], inner)
    units = [i for i, size in enumerate(shape_of(x)) if size == 1]
    return [x], None, {"permutation": d.property(term, "permutation", lambda: _order(d, rank_of(x), units))}


def _order(d: Draft, rank: int, units: Sequence[int] = ()) -> tuple[int, ...]:
    """An order of dimensions: channels first, as they are, any, or one that moves only those of size 1."""
    if d.choosy and d.g.choices.flag(0.75):
        return (0, rank - 1, *range(1, rank - 1)) if rank else ()
    if d.g.choices.flag(0.25):
        return tuple(range(rank))
    order = d.g.choices.permutation(rank)
    if units and d.g.choices.flag():
        others = iter([i for i in range(rank) if i not in units])
        order = [i if i in units else next(others) for i in order]
    return tuple(order)


@recipe(hlo.ReshapeOp)
def reshape(d: Draft, term: Op, need: Need) -> Ingredients:
    """To another shape of as many elements, or the same."""
    if need.type is not None:
        x = d.build(term.operands[0], Need(with_shape(need.type, regroup_shape(d.g, shape_of(need.type)))))
        return [x], (need.type,), {}
    x = d.build(term.operands[0], Need(None, need.elements))
    shape = shape_of(x) if d.g.choices.flag(0.3) else regroup_shape(d.g, shape_of(x))
    return [x], (with_shape(x, shape),), {}


@recipe(hlo.BroadcastInDimOp)
def broadcast(d: Draft, term: Op, need: Need) -> Ingredients:
    """To a larger shape, or the same; the wanted type is spread from a scalar."""
    length = d.length(term, "broadcast_dimensions")
    if need.type is not None:
        x = d.build(term.operands[0], Need(tensor((), element_of(need.type))))
        return [x], (need.type,), {"broadcast_dimensions": d.property(term, "broadcast_dimensions", tuple)}
    inner = Need(None, need.elements) if length is None else Need(None, need.elements, length, length)
    x = d.build(term.operands[0], inner)
    target, places = list(shape_of(x)), list(range(rank_of(x)))
    if d.g.choices.flag(0.7):
        target, places = spread(d.g, shape_of(x))
    dimensions = d.property(term, "broadcast_dimensions", lambda: tuple(places))
    return [x], (with_shape(x, target),), {"broadcast_dimensions": dimensions}


@recipe(hlo.ReverseOp)
def reverse(d: Draft, term: Op, need: Need) -> Ingredients:
    """Along any dimensions; captured twice under other names they are mostly the same ones."""
    x = d.build(term.operands[0], need)

    def draw() -> tuple[int, ...]:
        lists = [cast("tuple[int, ...]", v) for v in d.attributes.values() if isinstance(v, tuple)]
        known = [v for v in lists if all(i < rank_of(x) for i in v)]
        if known and d.g.choices.flag(0.7):
            again = known[-1]
            return tuple([again[i] for i in d.g.choices.permutation(len(again))])
        return tuple(d.g.choices.some(range(rank_of(x))))

    return [x], None, {"dimensions": d.property(term, "dimensions", draw)}


@recipe(hlo.ConcatenateOp)
def concatenate(d: Draft, term: Op, need: Need) -> Ingredients:
    """Operands of one type, one after another; parts of the wanted type."""
    parts = len(term.operands)
    shape = _static(need)
    along = [i for i, size in enumerate(shape or ()) if size >= parts]
    if shape is not None and need.type is not None and along:
        axis = d.property(term, "dimension", lambda: d.g.choices.chosen(along))
        if axis not in along:
            raise Impossible
        sizes: list[int] = [shape[axis] - parts + 1, *(1 for _ in range(parts - 1))]
        types = [with_shape(need.type, [n if i == axis else s for i, s in enumerate(shape)]) for n in sizes]
        found = [d.build(t, Need(type)) for t, type in zip(term.operands, types, strict=True)]
        return found, (need.type,), {"dimension": axis}
    values = _alike(d, term, term.operands, Need(None, need.elements, max(need.least, 1), need.most))
    rank = rank_of(values[0])
    if not rank:
        raise Impossible
    return values, None, {"dimension": d.property(term, "dimension", lambda: d.g.choices.integer(0, rank - 1))}


@recipe(hlo.SliceOp)
def slice(d: Draft, term: Op, need: Need) -> Ingredients:
    """Any part of the operand; one of the wanted type, of a larger one."""
    shape = _static(need)
    if shape is not None and need.type is not None and not term.properties:
        edges = [(d.g.choices.chosen((0, 0, 1)), d.g.choices.chosen((0, 0, 1, 2))) for _ in shape]
        larger = with_shape(need.type, [low + s + high for s, (low, high) in zip(shape, edges, strict=True)])
        starts = [low for low, _ in edges]
        limits = [low + s for s, low in zip(shape, starts, strict=True)]
        drawn = {"start_indices": starts, "limit_indices": limits, "strides": [1] * len(shape)}
        return [d.build(term.operands[0], Need(larger))], (need.type,), _properties(d, term, drawn)
    x = d.build(term.operands[0], Need(None, need.elements, need.least, need.most))
    starts, limits, strides = slice_of(d.g, shape_of(x))
    drawn: dict[str, Any] = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    return [x], None, _properties(d, term, drawn)


@recipe(hlo.PadOp)
def pad(d: Draft, term: Op, need: Need) -> Ingredients:
    """Any padding, none too; of the wanted type, one that adds and crops along some dimensions."""
    shape = _static(need)
    if shape is not None and need.type is not None and not term.properties:
        low, high = [0] * len(shape), [0] * len(shape)
        for i in d.g.choices.some(range(len(shape))):
            low[i], high[i] = (d.g.choices.chosen((0, 1, 2, -1, -2)) for _ in range(2))
        inner = [s - a - b for s, a, b in zip(shape, low, high, strict=True)]
        if min(inner, default=0) < 0:
            raise Impossible
        x = d.build(term.operands[0], Need(with_shape(need.type, inner)))
        value = d.build(term.operands[1], Need(tensor((), element_of(x))))
        drawn = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": [0] * len(shape)}
        return [x, value], (need.type,), _properties(d, term, drawn)
    x = d.build(term.operands[0], Need(None, need.elements, need.least, need.most))
    value = d.build(term.operands[1], Need(tensor((), element_of(x))))
    low, high, gaps = padding_of(d.g, shape_of(x))
    drawn: dict[str, Any] = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": gaps}
    return [x, value], None, _properties(d, term, drawn)


def _properties(d: Draft, term: Op, drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: d.property(term, name, lambda v=value: tuple(v)) for name, value in drawn.items()}


def _static(need: Need) -> tuple[int, ...] | None:
    """The sizes of the wanted type, where they are known."""
    if need.type is None:
        return None
    sizes = tuple([s for s in shape_of(need.type) if isinstance(s, int)])
    return sizes if len(sizes) == len(shape_of(need.type)) else None


def _starts(d: Draft, terms: Sequence[Term]) -> list[SSAValue]:
    """Scalars that say where a slice begins, of one type: that of one which is there."""
    known = [d.values[t.name] for t in terms if isinstance(t, Var) and t.name in d.values]
    type = tensor_of(known[0]) if known else tensor((), d.g.choices.chosen(("i32", "i64")))
    if rank_of(type):
        raise Impossible
    return [d.build(t, Need(type)) for t in terms]


@recipe(hlo.DynamicSliceOp)
def dynamic_slice(d: Draft, term: Op, need: Need) -> Ingredients:
    """A part of an operand of as many dimensions as there are starts."""
    rank, shape = len(term.operands) - 1, _static(need)
    if shape is not None and need.type is not None:
        larger = with_shape(need.type, [s + d.g.choices.chosen((0, 1, 2)) for s in shape])
        x = d.build(term.operands[0], Need(larger))
        sizes: Sequence[int] = shape
    else:
        x = d.build(term.operands[0], Need(None, need.elements, rank, rank))
        sizes = [d.g.choices.integer(min(1, s), s) for s in shape_of(x) if isinstance(s, int)]
    if len(sizes) != rank:
        raise Impossible
    drawn = d.property(term, "slice_sizes", lambda: tuple(sizes))
    return [x, *_starts(d, term.operands[1:])], None, {"slice_sizes": drawn}


@recipe(hlo.DynamicUpdateSliceOp)
def dynamic_update_slice(d: Draft, term: Op, need: Need) -> Ingredients:
    """A value and a part to put into it, of as many dimensions as there are starts."""
    rank = len(term.operands) - 2
    x = d.build(term.operands[0], need if need.type is not None else Need(None, need.elements, rank, rank))
    if rank_of(x) != rank:
        raise Impossible
    smaller = [d.g.choices.integer(min(1, s), s) if isinstance(s, int) else 1 for s in shape_of(x)]
    element = frozenset({element_of(x)})
    inner = Need(with_shape(x, smaller)) if isinstance(term.operands[1], Var) else Need(None, element, rank, rank)
    return [x, d.build(term.operands[1], inner), *_starts(d, term.operands[2:])], (tensor_of(x),), {}


@recipe(hlo.DotGeneralOp)
def dot(d: Draft, term: Op, need: Need) -> Ingredients:
    """A product over the last or first dimension of the left, the first or second of the right, or as the rule says."""
    wanted = term.properties.get("dot_dimension_numbers")
    named = d.attributes.get(wanted.name) if isinstance(wanted, Attr) else wanted
    least = 1 if named is None else max((*named[0], *named[2]), default=-1) + 1
    x = d.build(term.operands[0], Need(None, hlo.SubtractOp.ELEMENTS, least, 4))
    summed = 0 if d.g.choices.flag(0.2) else rank_of(x) - 1
    usual = DotDimensions((), (), (summed,), (1 if d.g.choices.flag(0.3) else 0,))
    numbers = DotDimensions(*d.property(term, "dot_dimension_numbers", lambda: usual))
    lhs, text = shape_of(x), dtype_text(x.type)
    met = dict(zip((*numbers[1], *numbers[3]), (*numbers[0], *numbers[2]), strict=True))
    rank = max(met, default=-1) + 1 + d.g.choices.integer(0, 1)
    shape: list[Size] = [lhs[met[i]] if i in met else 2 for i in range(rank)]
    if isinstance(term.operands[1], Op):
        y = d.build(term.operands[1], Need(tensor(shape, text)) if d.g.choices.flag() else
                    Need(None, frozenset({element_of(x)}), 1, 2))  # fmt: skip
    else:
        y = d.build(term.operands[1], Need(tensor(shape, text)))
    rhs = shape_of(y)
    result = [lhs[i] for i in numbers[0]]
    result += [s for i, s in enumerate(lhs) if i not in {*numbers[0], *numbers[2]}]
    result += [s for i, s in enumerate(rhs) if i not in {*numbers[1], *numbers[3]}]
    return [x, y], (tensor(result, text),), {"dot_dimension_numbers": numbers}
