"""What has to hold of a cut op: at each index of the part's result, the part reads what the whole reads at its index.

`obligations` are formulas over integers, true of all devices, indices and sizes, if the rule is right. Indices are the
indexing maps of the whole op and of its part, which are looked up in the table for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gcomp.analysis.indexing import IndexingMap, d, operand_maps, r, simplify
from gcomp.dims import (
    Atom,
    Dim,
    Size,
    atom_size,
    floordiv,
    mod,
    product,
    replace_atoms,
    substitute,
    symbol,
    symbols_of,
    terms_of,
)
from gcomp.ir.builder import identity
from gcomp.ir.stablehlo.reduction import COMMUTATIVE
from gcomp.ir.types import dtype_text, shape_of
from gcomp.partitioning.derive import Slot
from gcomp.partitioning.lookup import looked_up, put
from gcomp.partitioning.rule import Kind
from gcomp.testing.prove.sharding.family import Cut
from gcomp.testing.prove.sharding.laws import Element
from gcomp.testing.prove.theory import Term, z3
from gcomp.testing.prove.views import number

DEVICE = symbol("device")
"""Which of the parts a device has."""


class Broken(Exception):
    """What is wrong at every size: the law does not allow the cut, or maps have nothing in common."""


@dataclass(frozen=True)
class Obligation:
    """`goal` follows from `known`, whatever the integers are."""

    name: str
    goal: Term
    known: tuple[Term, ...]
    sizes: frozenset[str]
    """The symbols that are sizes."""


def obligations(cut: Cut, element: Element) -> Iterator[Obligation]:
    """All that has to hold. Broken where something cannot."""
    yield from _Theorem(cut, element).all()


class _Integers:
    """Arithmetic on the solver's integers."""

    def number(self, size: Size) -> Term:
        return number(size)

    def minus(self, x: Term, y: Term) -> Term:
        return x - y

    def clamped(self, x: Term, least: Term, most: Term) -> Term:
        above = z3.If(x < least, least, x)
        return z3.If(above > most, most, above)

    def within(self, x: Term, least: Term, end: Term) -> Term:
        return z3.And(least <= x, x < end)

    def chosen(self, condition: Term, x: Term, y: Term) -> Term:
        return z3.If(condition, x, y)


class _Theorem:
    """The theorem of one cut: names and facts, and what follows from them."""

    def __init__(self, cut: Cut, element: Element) -> None:
        self.cut, self.element = cut, element
        self.operands = len(cut.whole.operands)
        self.shapes = [shape_of(v) for v in (*cut.whole.operands, *cut.whole.results)]
        self.parts = [shape_of(v) for v in (*cut.part.operands, *cut.part.results)]
        self.slots = frozenset(cut.rule.places(cut.factor))
        self.is_sum = cut.rule.factors[cut.factor].kind is Kind.REDUCTION
        self.looked_up = self.slots & element.looked_up if self.is_sum else frozenset[Slot]()

    def all(self) -> Iterator[Obligation]:
        """The obligations of each result and operand."""
        self._look_at_law()
        yield from self._by_data()
        wholes, parts = operand_maps(self.cut.whole), operand_maps(self.cut.part)
        for i, (whole, part) in enumerate(zip(wholes, parts, strict=True)):
            folded = self._folded(whole)
            if self.element.counted is not None:
                yield self._counted(i, self.element.counted)
            for t, (w, p) in enumerate(zip(whole, part, strict=True)):
                if (w is None) != (p is None):
                    raise Broken(f"operand {t} is read by the whole or the part alone")
                if w is not None and p is not None:
                    yield from self._reads(i, t, w, p, folded)

    # ---- the law ----

    def _look_at_law(self) -> None:
        """The function of an element must not take what differs between devices."""
        cut, element = self.cut, self.element
        factor = cut.rule.factors[cut.factor]
        slots = self.slots
        for t, dim in sorted(slots & element.places - {element.counted} - element.put_at):
            raise Broken(f"an element depends on its place along dimension {dim} of {self._tensor(t)}, which is "
                         "index + part on device 1")  # fmt: skip
        if self.looked_up:
            unit = identity(COMMUTATIVE[f"stablehlo.{factor.combine}"], dtype_text(cut.whole.results[0].type))
            if unit != 0 or len(slots) > 1:
                raise Broken(f"devices that do not have an element give 0, which counts in {factor.combine}")
            return
        if not self.is_sum:
            return
        if factor.combine != element.combine:
            raise Broken(f"it is folded by {element.combine}, and parts are combined by {factor.combine}")
        if any(t >= self.operands for t, _ in slots):
            raise Broken("what is summed over is cut in a result")
        if element.together and slots not in element.together:
            raise Broken("the terms of the sum are cut in one operand, and not in another")

    def _tensor(self, t: int) -> str:
        return f"operand {t}" if t < self.operands else f"result {t - self.operands}"

    def _folded(self, maps: Sequence[IndexingMap | None]) -> list[set[int]]:
        """For each operand, the range variables that count the terms of the cut factor."""
        found = [set[int]() for _ in maps]
        if not self.is_sum or self.looked_up:
            return found
        for t, m in enumerate(maps):
            for k, factors in enumerate(self.cut.rule.operands[t]) if m is not None else ():
                if m is not None and self.cut.factor in factors:
                    found[t] |= {j for j in range(len(m.ranges)) if r(j).text in symbols_of(m.indices[k])}
        if not any(found):
            raise Broken("nothing runs over what is summed")
        # The operands of a contraction have their range variables in common.
        return found if self.element.together else [set[int]().union(*found)] * len(maps)

    # ---- indices ----

    def place(self, slot: Slot, index: Size) -> Size:
        """The index in the whole of what a device has at an index of its part."""
        factors = self.cut.rule.tensors[slot[0]][slot[1]]
        if self.cut.factor not in factors:
            return index
        at = factors.index(self.cut.factor)
        if at == 0:
            return DEVICE * self.parts[slot[0]][slot[1]] + index
        block = product(self.cut.rule.factors[f].size for f in factors[at + 1 :]) * self.cut.size
        return floordiv(index, block) * (self.cut.count * block) + DEVICE * block + mod(index, block)

    def _moved(self, i: int, w: IndexingMap, p: IndexingMap, folded: set[int]) -> dict[str, Size]:
        """Where a coordinate, and a term of the sum, of the part lies in the whole."""
        result = self.operands + i
        found = {d(k).text: self.place((result, k), d(k)) for k in range(len(w.domain))}
        return found | {r(j).text: DEVICE * p.ranges[j] + r(j) for j in folded if j < len(w.ranges)}

    def _reads(self, i: int, t: int, w: IndexingMap, p: IndexingMap, folded: list[set[int]]) -> Iterator[Obligation]:
        """The part's members of the family are the whole's."""
        if len(w.ranges) != len(p.ranges):
            raise Broken(f"{self._tensor(t)} is read along {len(w.ranges)} dimensions by the whole, and along "
                         f"{len(p.ranges)} by the part")  # fmt: skip
        moved = self._moved(i, w, p, folded[t])
        known = self._known(p)
        by_data = {dim for at, dim in self.looked_up if at == t}
        chosen = {name for k in by_data for name in symbols_of(w.indices[k])}
        name = f"result {i} of {self._tensor(t)}"
        sizes = [
            number(n) == number(m * self.cut.count if j in folded[t] else m)
            for j, (n, m) in enumerate(zip(w.ranges, p.ranges, strict=True))
            if r(j).text not in chosen
        ]
        yield self._obligation(f"{name}: as many are read", z3.And(*sizes), known)
        known += [*self._guesses(w, p, moved), *self._guesses(p, p, {})]
        holds = [_holds(w, moved), _holds(p, {})]
        indices = [
            _moved_term(index, moved) == _expanded(number(self.place((t, k), own)))
            for k, (index, own) in enumerate(zip(w.indices, p.indices, strict=True))
            if k not in by_data
        ]
        yield self._obligation(f"{name}: they are there in both", holds[0] == holds[1], known)
        yield self._obligation(f"{name}: they are the same", z3.Implies(holds[1], z3.And(*indices)), known)

    def _by_data(self) -> Iterator[Obligation]:
        """Where an index is data, any number: one device has what it names, and what is put there comes there."""
        begin, own, index = number(DEVICE * self.cut.size), self.cut.size, z3.Int("index")
        if self.looked_up:
            fits, here = looked_up(_Integers(), index, begin, self.cut.count * own, own)
            named = _Integers().clamped(index, z3.IntVal(0), number(self.cut.count * own - 1))
            holder = named / number(own)
            known = [*self._facts(), *self._nearest(holder, z3.IntVal(0), number(self.cut.count))]
            known += self._nearest(holder, number(DEVICE))
            one = z3.And(holder >= 0, holder < number(self.cut.count), fits == (holder == number(DEVICE)))
            yield self._obligation("one device has the element", one, known)
            yield self._obligation("it takes the element", z3.Implies(fits, begin + here == named), self._facts())
        for t, dim in sorted(self.slots & self.element.put_at):
            there = z3.Int("there")
            known = [*self._facts(), there >= 0, there < number(own)]
            goal = (put(_Integers(), index, begin, own) == there) == (index == begin + there)
            yield self._obligation(f"dimension {dim} of {self._tensor(t)}: what is put there comes there", goal, known)

    def _nearest(self, x: Term, *numbers: Term) -> Iterator[Term]:
        """Products of differences with the size of a part: two numbers that differ do so by one part or more."""
        own = number(self.cut.size)
        for y in numbers:
            yield z3.Or(x == y, z3.And(x > y, (x - y) * own >= own), z3.And(x < y, (y - x) * own >= own))

    def _counted(self, i: int, slot: Slot) -> Obligation:
        """What counts from 0 on each device, and is added where the part begins, counts in the whole."""
        t, dim = slot
        own = d(dim) + DEVICE * self.parts[t][dim] if self.cut.factor in self.cut.rule.tensors[t][dim] else d(dim)
        p = IndexingMap(self.parts[t], self.parts[t], tuple(map(d, range(len(self.parts[t])))))
        goal = number(own) == number(self.place(slot, d(dim)))
        return self._obligation(f"result {i}: it counts on", goal, self._known(p))

    # ---- facts ----

    def _obligation(self, name: str, goal: Term, known: Sequence[Term]) -> Obligation:
        return Obligation(name, goal, (*known, *_quotients([goal, *known])), self._symbols())

    def _symbols(self) -> frozenset[str]:
        sizes = [size for shape in (*self.shapes, *self.parts) for size in shape]
        return frozenset[str]().union(*map(symbols_of, (*sizes, self.cut.count, self.cut.size)))

    def _known(self, p: IndexingMap) -> list[Term]:
        """Indices of the part are in range, and the rest."""
        found = self._facts()
        for variable, size in [
            *((d(k), n) for k, n in enumerate(p.domain)),
            *((r(j), n) for j, n in enumerate(p.ranges)),
        ]:
            found += [number(variable) >= 0, number(variable) < number(size)]
        return found

    def _facts(self) -> list[Term]:
        """Sizes are 1 or more, the device is one of them; and products of what is not negative are not."""
        device, count = number(DEVICE), number(self.cut.count)
        found = [z3.Int(name) >= 1 for name in sorted(self._symbols())] + [device >= 0, device < count]
        blocks = {size for shape in (*self.shapes, *self.parts) for size in shape if isinstance(size, Dim)}
        blocks |= {product(shape[k:]) for shape in self.parts for k in range(len(shape))}
        for block in blocks:
            found += [number(block * DEVICE) >= 0, number(block * (self.cut.count - 1 - DEVICE)) >= 0]
        return found

    def _guesses(self, m: IndexingMap, p: IndexingMap, moved: dict[str, Size]) -> Iterator[Term]:
        """For each quotient in a map's indices: it is what the algebra makes of it (or that less the quotients that are
        left in it), or the remainder is not in range.

        That is so of any number, by what a quotient is: the solver has to show the range.
        """
        rank = len(p.domain)
        as_coordinate = {name: substitute(size, {DEVICE.text: d(rank)}) for name, size in moved.items()}
        for atom in dict.fromkeys(a for index in m.indices for a in _divisions(index)):
            e, b = atom.args
            quotient = substitute(floordiv(e, b), as_coordinate)
            on = IndexingMap((*p.domain, self.cut.count), (self.cut.count,), (quotient,), p.ranges)
            (guess,) = simplify(on, keep_ranges=True).substitute({d(rank).text: DEVICE}).indices
            dividend, divisor = _moved_term(e, moved), _moved_term(b, moved)
            for each in dict.fromkeys((guess, _without_quotients(guess, substitute(b, moved)))):
                left = _expanded(dividend - number(each) * divisor)
                found = z3.And(dividend / divisor == number(each), dividend % divisor == left)
                yield z3.Or(found, left < 0, left >= divisor)


def _without_quotients(size: Size, divisor: Size) -> Size:
    """A formula less its terms that are quotients by a divisor."""
    return replace_atoms(size, lambda a: 0 if a.head == "floordiv" and a.args[1] == divisor else atom_size(a))


def _holds(m: IndexingMap, moved: dict[str, Size]) -> Term:
    bounds = [[_moved_term(size, moved) for size in (c.lo, c.expr, c.hi)] for c in m.conditions]
    return z3.And(*[z3.And(lo <= expr, expr < hi) for lo, expr, hi in bounds])


def _moved_term(size: Size, moved: dict[str, Size]) -> Term:
    names = [(z3.Int(name), number(place)) for name, place in moved.items()]
    return _expanded(z3.substitute(number(size), *names))


def _divided(terms: Sequence[Term]) -> Iterator[tuple[Term, Term]]:
    """The dividend and the divisor of each quotient and remainder that stands in some terms."""
    seen, todo = set[int](), list(terms)
    while todo:
        term = todo.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        todo += term.children()
        if term.decl().kind() in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
            dividend, divisor = term.children()
            yield dividend, divisor
            if dividend.decl().kind() == z3.Z3_OP_IDIV:
                todo += [dividend / divisor, _joined(dividend, divisor)]


def _joined(quotient: Term, divisor: Term) -> Term:
    """A quotient of a quotient, as that by both divisors."""
    inner, first = quotient.children()
    return inner / _expanded(first * divisor)


def _quotients(terms: Sequence[Term]) -> list[Term]:
    """What quotients and remainders are, of all that stand in some terms."""
    found: list[Term] = []
    for dividend, divisor in _divided(terms):
        quotient, rest = dividend / divisor, dividend % divisor
        found += [dividend == quotient * divisor + rest, rest >= 0, rest < divisor]
        if dividend.decl().kind() == z3.Z3_OP_IDIV:
            found.append(quotient == _joined(dividend, divisor))
    return found


def _expanded(term: Term) -> Term:
    """A polynomial as a sum of products, so that equal ones are the same."""
    return z3.simplify(term, som=True)


def _divisions(size: Size) -> Iterator[Atom]:
    """The quotients and remainders in a formula, inner ones first."""
    for monomial, _ in terms_of(size):
        for atom, _ in monomial:
            for arg in atom.args:
                yield from _divisions(arg)
            if atom.head in ("floordiv", "mod"):
                yield atom
