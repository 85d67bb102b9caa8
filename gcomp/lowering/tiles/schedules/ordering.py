"""Rows to sort: operands, the order of their elements, and how many of the first are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from xdsl.ir import Attribute, SSAValue

from gcomp.analysis.indexing.maps import d, linear
from gcomp.dims import Size, product
from gcomp.dtypes import bit_width
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import pack
from gcomp.lowering.tiles.elements.elementwise import apply_region, total_order
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.functions import kind_of
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, is_covered
from gcomp.lowering.tiles.tile import HELD, element
from gcomp.records import record

ROW = 0
"""The coordinate of a row."""
LANES = 16
"""Elements that are compared, moved or copied at a time, where a program is one thread."""

Tiles = Sequence[SSAValue]
Before = Callable[[TileBuilder, Tiles, Tiles], SSAValue]
"""Whether elements, one of each operand, come before others."""


@record
class Keys:
    """What elements are compared by: of these operands, tiles of some types, in an order of their own."""

    operands: tuple[int, ...]
    kinds: tuple[str, ...]
    of: Callable[[TileBuilder, Tiles], Tiles]
    before: Before


@record
class Problem:
    """Rows to sort: the operands, the dimension along which rows lie, the order, how many elements are kept, and what
    they may be compared by instead."""

    operands: tuple[SSAValue, ...]
    dimension: int
    before: Before
    kept: Size
    keys: Keys

    @property
    def shape(self) -> tuple[Size, ...]:
        """The shape of the operands."""
        return shape_of(self.operands[0])

    @property
    def length(self) -> Size:
        """How many elements a row has."""
        return self.shape[self.dimension] if self.shape else 1

    @property
    def rows(self) -> Size:
        """How many rows there are."""
        return product(n for k, n in enumerate(self.shape) if k != self.dimension)

    @property
    def kept_shape(self) -> tuple[Size, ...]:
        """The shape of the results."""
        return tuple([self.kept if k == self.dimension else n for k, n in enumerate(self.shape)])

    def scratch_types(self, wanted: Sequence[int]) -> list[Attribute]:
        """The types in which scratch memory holds the operands, and positions where they are wanted."""
        positions = [ELEMENT_TYPES["i32"]] if len(self.operands) in wanted else []
        return [*map(_scratch_type, self.operands), *positions]

    def indices(self, place: Size) -> tuple[Size, ...]:
        """The element at a place of the row `d(ROW)`."""
        others = iter(delinearize(d(ROW), [n for k, n in enumerate(self.shape) if k != self.dimension]))
        return tuple([place if k == self.dimension else next(others) for k in range(len(self.shape))])


def problem_of(launch: LaunchOp) -> tuple[Problem, list[int]]:
    """What a sort kernel sorts, and the numbers of its results: of the operands, or the number of positions, which no
    operand has."""
    op = next(op for op in launch.block.ops if isinstance(op, hlo.SortOp | chlo.TopKOp))
    problem = _top_k(op) if isinstance(op, chlo.TopKOp) else _sort(op)
    found: list[SSAValue] = list(launch.returned.operands)
    if first := next((v.owner for v in found if isinstance(v.owner, hlo.SliceOp)), None):
        # The kernel keeps the first elements of its rows (`analysis/fusion/kernels.py`), the same ones of all results.
        problem = replace(problem, kept=shape_of(first.result)[problem.dimension])
        found = [cast(hlo.SliceOp, v.owner).operand for v in found]
    return problem, [list(op.results).index(v) for v in found]  # type: ignore[arg-type]


def _sort(op: hlo.SortOp) -> Problem:
    shape = shape_of(op.operands[0])
    block = op.comparator.block
    ops = list(block.ops)
    plain = None
    if len(ops) == 2 and isinstance(ops[0], hlo.CompareOp) and kind_of(dtype_text(ops[0].lhs.type)) != "complex":
        plain = _plain(ops[0], list(block.args))

    def before(b: TileBuilder, one: Tiles, two: Tiles) -> SSAValue:
        if plain is not None:
            k, direction = plain
            return _last_nan(b, one[k], two[k], direction)
        return apply_region(b, block, [v for pair in zip(one, two, strict=True) for v in pair])[0]

    dimension: int = op.value("dimension")
    operands, kept = tuple(op.operands), shape[dimension] if shape else 1
    return Problem(operands, dimension % max(1, len(shape)), before, kept, _keys(op, before))


def _keys(op: hlo.SortOp, before: Before) -> Keys:
    """The keys of a sort: of floats integers, of which one instruction says which comes first."""
    operands = tuple(op.operands)
    kinds = tuple([HELD.get(kind, kind) for kind in (dtype_text(v.type) for v in operands)])
    order = _order_of_floats(op)
    if order is None or kinds[order[0]] not in ("f32", "f64"):
        return Keys(tuple(range(len(operands))), kinds, lambda b, found: found, before)
    k, direction, nan_first = order
    kind, greatest = kinds[k], (1 << (bit_width(kinds[k]) - 1)) - 1
    integer = f"i{bit_width(kind)}"
    nan = greatest if nan_first == (direction == "gt") else -greatest - 1

    def of(b: TileBuilder, found: Tiles) -> Tiles:
        """Zeros of both signs are one."""
        (x,) = found
        number = total_order(b, b.add(x, b.constant(0.0, kind)))
        return [b.apply("select", b.apply("ne", x, x), b.constant(nan, integer), number)]

    return Keys((k,), (integer,), of, lambda b, one, two: b.apply(direction, one[0], two[0]))


def _order_of_floats(op: hlo.SortOp) -> tuple[int, str, bool] | None:
    """The operand that `<` or `>` compares as floats, which of them, and whether NaN is first: it is last, or where the
    comparator says it, as `a > b or (a != a and b == b)`."""
    *ops, returned = op.comparator.block.ops
    arguments: list[SSAValue] = list(op.comparator.block.args)
    root = returned.operands[0].owner if len(returned.operands) == 1 else None
    compared, nan_first = (root, False) if len(ops) == 1 else (None, None)
    if isinstance(root, hlo.OrOp) and len(ops) == 5:
        sides = [v.owner for v in root.operands]
        compared = next((side for side in sides if isinstance(side, hlo.CompareOp)), None)
        both = next((side for side in sides if isinstance(side, hlo.AndOp)), None)
        nan_first = None if both is None else _is_first(both, arguments)
    if not isinstance(compared, hlo.CompareOp) or nan_first is None:
        return None
    plain = _plain(compared, arguments)
    return None if plain is None or plain[1] not in ("lt", "gt") else (*plain, nan_first)


def _is_first(op: hlo.AndOp, arguments: list[SSAValue]) -> bool | None:
    """Whether NaN comes first where one of two is NaN and the other is not; None where that is not what it says."""
    found: dict[str, int] = {}
    for side in (v.owner for v in op.operands):
        if not isinstance(side, hlo.CompareOp) or side.lhs is not side.rhs or side.lhs not in arguments:
            return None
        if side.value("compare_type") == "TOTALORDER":
            return None
        found[side.value("comparison_direction")] = arguments.index(side.lhs)
    if found.keys() != {"NE", "EQ"} or found["NE"] ^ found["EQ"] != 1:
        return None
    return found["NE"] % 2 == 0


def _plain(op: hlo.CompareOp, arguments: list[SSAValue]) -> tuple[int, str] | None:
    """The operand that `<`, `<=`, `>` or `>=` compares as floats, and which of them."""
    direction: str = op.value("comparison_direction")
    if op.value("compare_type") == "TOTALORDER" or direction not in ("LT", "LE", "GT", "GE"):
        return None
    if kind_of(dtype_text(op.lhs.type)) not in ("f32", "f64", "narrow"):
        return None
    places = arguments.index(op.lhs), arguments.index(op.rhs)
    return (places[0] // 2, direction.lower()) if places[0] % 2 == 0 and places[1] == places[0] + 1 else None


def _last_nan(b: TileBuilder, one: SSAValue, two: SSAValue, direction: str) -> SSAValue:
    if kind_of(element(one)) == "narrow":
        one, two = b.cast(one, "f32"), b.cast(two, "f32")
    ordered, odd = b.apply("eq", one, one), b.apply("ne", two, two)
    return b.apply("or", b.apply(direction, one, two), b.apply("and", ordered, odd))


def _top_k(op: chlo.TopKOp) -> Problem:
    """The greatest come first; floats are in total order."""

    def before(b: TileBuilder, one: Tiles, two: Tiles) -> SSAValue:
        kind = kind_of(element(one[0]))
        keys = [total_order(b, v[0]) if kind in ("f32", "f64", "narrow") else v[0] for v in (one, two)]
        return b.apply("gt", *keys)

    shape, kind = shape_of(op.operand), dtype_text(op.operand.type)
    keys = Keys((0,), (HELD.get(kind, kind),), lambda b, found: found, before)
    if kind in ("f32", "f64"):
        keys = Keys((0,), (f"i{bit_width(kind)}",), lambda b, found: [total_order(b, found[0])],
                    lambda b, one, two: b.apply("gt", one[0], two[0]))  # fmt: skip
    return Problem((op.operand,), len(shape) - 1, before, op.value("k"), keys)


def _scratch_type(value: SSAValue) -> Attribute:
    """The type in which scratch memory holds a value's elements."""
    kind = dtype_text(value.type)
    return ELEMENT_TYPES[HELD.get(kind, kind)]


def write_kept(
    writer: KernelWriter, frame: Frame, problem: Problem, wanted: Sequence[int], buffers: Sequence[SSAValue],
    source: SSAValue,
) -> None:  # fmt: skip
    """Copy the first elements of a row, which begin at `source` in scratch memory, to where the results lie."""
    b, place = writer.b, frame.declare(problem.kept)

    def copy(at: SSAValue, _: Tiles) -> Tiles:
        along = b.add(at, b.iota(LANES, 0, 1))
        frame.bind(place, along, partial=not is_covered(frame, problem.kept, LANES))
        mask = frame.mask((), {d(place).text})
        target = frame.position(linear(problem.kept_shape, problem.indices(0 if problem.kept == 1 else d(place))))
        for j, n in enumerate(wanted):
            found = b.load(buffers[n], b.add(source, along), mask)
            b.store(writer.outputs[j], target, pack(b, found, dtype_text(writer.launch.results[j].type)), mask)
        return []

    b.loop(b.position(0), frame.position(problem.kept), LANES, [], copy)


__all__ = ["LANES", "ROW", "Before", "Keys", "Problem", "Tiles", "problem_of", "write_kept"]
