"""Iteration spaces: a kernel computes elements at coordinates, and a frame says which tile holds each coordinate.

Where an element lies is a formula of coordinates, from the indexing maps (`gcomp.analysis.indexing`): the same maps
that decided the fusion. A frame turns formulas into tiles of positions, and conditions into masks. The coordinates of
a frame are those of its maps' domain: `d(i)` is held by `tiles[i]`, and takes the values below `extents[i]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap, compose, d, linear, r
from gcomp.analysis.indexing.simplify import Known, simplify
from gcomp.dims import Atom, Ranges, Size, atom_size, floordiv, mod, product, symbols_of
from gcomp.dims.algebra import Monomial, terms_of
from gcomp.lowering.tiles.build import TileBuilder

SizeArgument = Callable[[str], SSAValue]
"""Of a symbol of the program: the scalar that holds its value."""


class Frame:
    """Tiles for coordinates. `partial` are the coordinates whose tiles may reach beyond the extent."""

    def __init__(self, b: TileBuilder, ranges: Ranges, symbol: SizeArgument) -> None:
        self.b = b
        self.ranges = ranges
        self.symbol = symbol
        self.extents: list[Size] = []
        self.tiles: list[SSAValue | None] = []
        self.partial: set[int] = set()
        self._known: Known | None = None

    def declare(self, extent: Size) -> int:
        """A coordinate that has no tile yet."""
        self.extents.append(extent)
        self.tiles.append(None)
        return len(self.extents) - 1

    def bind(self, coordinate: int, tile: SSAValue, *, partial: bool = False) -> None:
        """Give a coordinate its tile."""
        self.tiles[coordinate] = tile
        self.partial.discard(coordinate)
        if partial:
            self.partial.add(coordinate)

    def coordinate(self, extent: Size, tile: SSAValue, *, partial: bool = False) -> int:
        """A new coordinate with its tile."""
        found = self.declare(extent)
        self.bind(found, tile, partial=partial)
        return found

    @property
    def domain(self) -> tuple[Size, ...]:
        """The domain of maps in this frame."""
        return tuple(self.extents)

    # ---- maps ----

    def access(self, shape: tuple[Size, ...], indices: Sequence[Size]) -> IndexingMap:
        """The element at these indices, formulas of coordinates."""
        return self.simplify(IndexingMap(self.domain, shape, tuple(indices)))

    def place(self, shape: Sequence[Size], indices: Sequence[Size]) -> Size:
        """Where in memory the element at these indices lies, in simplest form."""
        return self.access((1,), (linear(shape, indices),)).indices[0]

    def simplify(self, m: IndexingMap) -> IndexingMap:
        """A map in simplest form, over all coordinates that there are by now."""
        domain = self.domain
        return simplify(m if m.domain == domain else replace(m, domain=domain), self.ranges)

    def through(self, access: IndexingMap, inner: IndexingMap, ranged: Sequence[Size] = ()) -> IndexingMap:
        """What an element reads through an op's map; `ranged` are the formulas of the map's range variables."""
        found = compose(access, inner)
        if inner.ranges:
            found = replace(found, ranges=()).substitute({r(j).text: size for j, size in enumerate(ranged)})
        return self.simplify(found)

    # ---- tiles of positions ----

    def position(self, size: Size) -> SSAValue:
        """The tile of a formula's values."""
        if isinstance(size, int):
            return self.b.position(size)
        found: SSAValue | None = None
        # Scalars first, so that what is added to whole tiles is one value.
        for atoms, factor in sorted(_by_tiles(size), key=lambda part: len(part[0])):
            term: SSAValue | None = None
            for atom, exponent in atoms:
                for _ in range(exponent):
                    value = self._atom(atom)
                    term = value if term is None else self.b.multiply(term, value)
            if term is None or factor != 1:
                scale = self._scalar(factor)
                term = scale if term is None else self.b.multiply(term, scale)
            found = term if found is None else self.b.add(found, term)
        return self.b.position(0) if found is None else found

    def _scalar(self, size: Size) -> SSAValue:
        """The value of a formula of sizes alone."""
        if isinstance(size, int):
            return self.b.position(size)
        found: SSAValue | None = None
        for monomial, coefficient in terms_of(size):
            term: SSAValue | None = None
            for atom, exponent in monomial:
                for _ in range(exponent):
                    value = self._atom(atom)
                    term = value if term is None else self.b.multiply(term, value)
            if term is None:
                term = self.b.position(coefficient)
            elif coefficient != 1:
                term = self.b.multiply(term, self.b.position(coefficient))
            found = term if found is None else self.b.add(found, term)
        assert found is not None
        return found

    def _atom(self, atom: Atom) -> SSAValue:
        if not atom.args:
            return self._symbol(atom.head)
        if atom.head in ("min", "max"):
            first, *rest = map(self.position, atom.args)
            for value in rest:
                first = self.b.apply("minimum" if atom.head == "min" else "maximum", first, value)
            return first
        number, divisor = atom.args
        return self._divide(number, divisor) if atom.head == "floordiv" else self._modulo(number, divisor)

    def _divide(self, number: Size, divisor: Size) -> SSAValue:
        """The quotient, rounded down. Division is by what is above 0 only: simplest forms may have turned the sign."""
        if self.holds(divisor):
            return self.b.apply(f"divide_{self._form(number)}", self.position(number), self.position(divisor))
        if self.holds(-divisor):
            return self._divide(-number, -divisor)
        sign = self._sign(divisor)
        turned = (self.b.multiply(self.position(size), sign) for size in (number, divisor))
        return self.b.apply("divide_floor", *turned)

    def _modulo(self, number: Size, divisor: Size) -> SSAValue:
        """The remainder, which has the sign of the divisor."""
        if self.holds(divisor):
            return self.b.apply(f"modulo_{self._form(number)}", self.position(number), self.position(divisor))
        if self.holds(-divisor):
            return self.b.multiply(self._modulo(-number, -divisor), self.b.position(-1))
        sign = self._sign(divisor)
        turned = (self.b.multiply(self.position(size), sign) for size in (number, divisor))
        return self.b.multiply(self.b.apply("modulo_floor", *turned), sign)

    def _form(self, number: Size) -> str:
        """How to divide a number: towards zero and down are the same for what is never negative."""
        return "positive" if self.holds(number) else "floor"

    def _sign(self, size: Size) -> SSAValue:
        """-1 where a size is below 0, else 1."""
        b = self.b
        below = b.apply("lt", self.position(size), b.position(0))
        return b.apply("select", below, b.position(-1), b.position(1))

    def _symbol(self, name: str) -> SSAValue:
        if not name.startswith("$d"):
            return self.symbol(name)
        tile = self.tiles[int(name[2:])]
        if tile is None:
            raise LookupError(f"the coordinate {name} has no tile here")
        return tile

    def holds(self, size: Size) -> bool:
        """Whether a formula is known to be at least 0 while coordinates are within their extents."""
        if self._known is None or len(self._known.bounds) != len(self.extents):
            bounds = {d(i).text: (0, extent - 1) for i, extent in enumerate(self.extents)}
            self._known = Known.within(bounds, self.ranges)
        return self._known.holds(size)

    # ---- masks ----

    def mask(self, conditions: Sequence[Condition], coordinates: Iterable[str]) -> SSAValue | None:
        """Where conditions hold and these coordinates (by symbol) are within their extents; None for everywhere."""
        masks = [self._within(int(name[2:])) for name in sorted(coordinates) if name.startswith("$d")]
        return self.b.both(*masks, *[m for c in conditions for m in self._holds(c)])

    def full_mask(self) -> SSAValue | None:
        """Where all coordinates that have tiles are within their extents."""
        return self.b.both(*[self._within(i) for i in range(len(self.extents))])

    def _within(self, coordinate: int) -> SSAValue | None:
        tile = self.tiles[coordinate]
        if coordinate not in self.partial or tile is None:
            return None
        return self.b.apply("lt", tile, self.position(self.extents[coordinate]))

    def _holds(self, condition: Condition) -> list[SSAValue]:
        value = self.position(condition.expr)
        found: list[SSAValue] = []
        if not self.holds(condition.expr - condition.lo):
            found.append(self.b.apply("ge", value, self.position(condition.lo)))
        if not self.holds(condition.hi - 1 - condition.expr):
            found.append(self.b.apply("lt", value, self.position(condition.hi)))
        return found

    def used(self, access: IndexingMap) -> set[str]:
        """The coordinates that an access depends on."""
        return {name for name in access.variables if name.startswith("$d")}


def _by_tiles(size: Size) -> Sequence[tuple[Monomial, Size]]:
    """A formula as a sum of products of coordinates, each times a formula of sizes: one value for all lanes."""
    found: dict[Monomial, Size] = {}
    for monomial, coefficient in terms_of(size):
        tiles = tuple([(atom, n) for atom, n in monomial if _is_local(atom)])
        sizes = product([atom_size(atom) ** n for atom, n in monomial if not _is_local(atom)])
        found[tiles] = found.get(tiles, 0) + coefficient * sizes
    return [*found.items()]


def _is_local(atom: Atom) -> bool:
    return any(name.startswith("$") for name in _names(atom))


def _names(atom: Atom) -> set[str]:
    return {name for arg in atom.args for name in symbols_of(arg)} if atom.args else {atom.head}


def delinearize(place: Size, shape: Sequence[Size]) -> tuple[Size, ...]:
    """The indices of the element at a place in row-major order; the place is below the number of elements."""
    if 0 in shape:
        return (0,) * len(shape)
    indices: list[Size] = []
    stride: Size = 1
    for i in reversed(range(len(shape))):
        if shape[i] == 1:
            indices.append(0)
            continue
        quotient = floordiv(place, stride)
        outermost = all(size == 1 for size in shape[:i])
        indices.append(quotient if outermost else mod(quotient, shape[i]))
        stride = stride * shape[i]
    return tuple(reversed(indices))
