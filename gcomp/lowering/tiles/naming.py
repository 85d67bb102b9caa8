"""Sizes of a launch by names of their own: how long formulas come about is no business of its kernels.

In a network of convolutions the image of a late layer has `floordiv(max(0, floordiv(h - 1, 2) - 1), 2)` rows. Where
that is all that a launch's sizes have of the symbols in it, a kernel is given the value, and not the symbols: positions
are short formulas, and equal layers of other sizes share a kernel. A formula is left as it is where another one, or a
symbol by itself, says how it relates to others in the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Block, SSAValue

from gcomp.dims import (
    Atom,
    Dim,
    Range,
    Ranges,
    Size,
    atom_size,
    replace_atoms,
    substitute,
    symbol,
    symbols_of,
    terms_of,
)
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.sizes import change_sizes, sizes_in
from gcomp.ir.types import map_dims
from gcomp.lowering.tiles.schedules.kernel import Scheduled


@dataclass(frozen=True)
class Named:
    """A launch whose formulas have names, the ranges of these, and what they stand for."""

    launch: LaunchOp
    ranges: Ranges
    formulas: Mapping[str, Size]

    def at_call(self, scheduled: Scheduled) -> Scheduled:
        """What a schedule made of the launch, in the symbols of the program."""
        formulas = self.formulas
        if not formulas:
            return scheduled
        steps = [
            replace(
                step,
                bindings=tuple([replace(b, size=substitute(b.size, formulas)) for b in step.bindings]),
                grid=tuple([substitute(size, formulas) for size in step.grid]),
                moved=None if step.moved is None else substitute(step.moved, formulas),
            )
            for step in scheduled.steps
        ]
        scratch = [replace(space, count=substitute(space.count, formulas)) for space in scheduled.scratch]
        return replace(scheduled, steps=tuple(steps), scratch=tuple(scratch))


def with_named_sizes(launch: LaunchOp, ranges: Ranges) -> Named:
    """A launch in which formulas that stand alone have names: a copy, or the launch itself where there are none.

    A composite keeps its formulas, since those of the function that it names are the same.
    """
    if any(isinstance(op, hlo.CompositeOp) for op in launch.block.ops):
        return Named(launch, ranges, {})
    sizes = list(sizes_in(launch))
    names = _names(sizes)
    if not names:
        return Named(launch, ranges, {})

    def named(atom: Atom) -> Size:
        return symbol(names[atom]) if atom in names else atom_size(atom)

    def change(size: Size) -> Size:
        return replace_atoms(size, named)

    operands = Block(arg_types=[map_dims(value.type, change) for value in launch.operands]).args
    given: dict[SSAValue, SSAValue] = dict(zip(launch.operands, operands, strict=True))
    copy = launch.clone(given)
    for op in copy.walk():
        change_sizes(op, change)
    formulas = {name: atom_size(atom) for atom, name in names.items()}
    known = {name: _range_of(formula, ranges) for name, formula in formulas.items()}
    return Named(copy, ranges.with_ranges(known), formulas)


def _range_of(formula: Size, ranges: Ranges) -> Range:
    low, high = ranges.bounds(formula)
    return Range(max(0, low or 0), high)


def _names(sizes: list[Size]) -> dict[Atom, str]:
    """Names of the functions of symbols that occur nowhere else, in the order in which they are met."""
    atoms = dict.fromkeys(atom for size in sizes for atom in _outermost(size))
    users: dict[str, set[Atom]] = {}
    for atom in atoms:
        for name in symbols_of(atom_size(atom)):
            users.setdefault(name, set()).add(atom)
    alone = [atom for atom in atoms if atom.args and all(users[n] == {atom} for n in symbols_of(atom_size(atom)))]
    taken, found = set(users), dict[Atom, str]()
    for atom in alone:
        name = next(name for k in range(len(taken) + 1) if (name := f"size{k}") not in taken)
        taken.add(name)
        found[atom] = name
    return found


def _outermost(size: Size) -> Iterator[Atom]:
    if isinstance(size, Dim):
        for monomial, _ in terms_of(size):
            for atom, _ in monomial:
                yield atom


__all__ = ["Named", "with_named_sizes"]
