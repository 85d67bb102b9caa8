"""Objects become one image of machine code, which is right wherever it lies: no linker and no loader is needed.

Code comes first, constants behind it. All relocations are distances within the image; what needs more (symbols from
elsewhere, addresses, data that is written to) is refused, so nothing is left to do where an image is mapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gcomp.errors import InternalError
from gcomp.lowering.llvm import elf, relocations
from gcomp.lowering.llvm.elf import Object, Relocation, Section, Symbol
from gcomp.records import record

_UNUSED = (".eh_frame",)
"""Sections for those who unwind stacks: no exception passes through this code."""
_ALIGNMENT = 64
"""What an image's size is a multiple of, so that images can be told apart by sizes of cache lines."""


@record
class Image:
    """Code that runs at any address that is a multiple of a page, and where each function begins in it, by name."""

    code: bytes
    entries: Mapping[str, int]


@dataclass
class _Link:
    """Where sections (numbers of object and section) and global symbols lie."""

    objects: list[Object]
    code: bytearray = field(default_factory=bytearray)
    places: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    globals: dict[str, int] = field(default_factory=dict[str, int])
    entries: dict[str, int] = field(default_factory=dict[str, int])


def link(objects: Sequence[bytes], base: Image | None = None) -> Image:
    """One image of several objects for the same machine, whose symbols are visible to each other.

    They are added to a `base`, if one is given: they see its entries. Raises InternalError for what no image can hold,
    with the symbol's name.
    """
    work = _Link([elf.read_object(data) for data in objects])
    if base is not None:
        work.code += base.code
        work.globals.update(base.entries)
        work.entries.update(base.entries)
    machines = {item.machine for item in work.objects}
    if len(machines) != 1 or not machines <= relocations.APPLY.keys():
        raise InternalError("Objects of an image are for one known machine.", why=f"These are for {sorted(machines)}.")
    _lay_out(work)
    _define(work)
    for number, item in enumerate(work.objects):
        for index, section in enumerate(item.sections):
            if (number, index) in work.places:
                _relocate(work, number, section, work.places[number, index])
    return Image(bytes(work.code), work.entries)


def _lay_out(work: _Link) -> None:
    """Copy the sections, those with code first."""
    loaded = [
        (number, index, section)
        for number, item in enumerate(work.objects)
        for index, section in enumerate(item.sections)
        if section.flags & elf.ALLOCATED and section.size and section.name not in _UNUSED
    ]
    for number, index, section in sorted(loaded, key=lambda one: not one[2].flags & elf.EXECUTABLE):
        if section.flags & (elf.WRITABLE | elf.THREAD_LOCAL):
            names = [s.name for s in work.objects[number].symbols if s.section == index and s.name]
            raise InternalError(
                f"An image has no data that is written to: {', '.join(names) or section.name}", where=section.name
            )
        if section.alignment > relocations.PAGE:
            raise InternalError(f"An image is aligned to a page, and a section to {section.alignment} bytes.")
        work.code += bytes(-len(work.code) % max(section.alignment, 1))
        work.places[number, index] = len(work.code)
        work.code += section.data if section.type != elf.NO_DATA else bytes(section.size)
    work.code += bytes(-len(work.code) % _ALIGNMENT)


def _define(work: _Link) -> None:
    """Find the place of every symbol that objects give each other."""
    for number, item in enumerate(work.objects):
        for symbol in item.symbols:
            place = work.places.get((number, symbol.section))
            if symbol.is_local or place is None:
                continue
            if symbol.name in work.globals:
                raise InternalError(f"Two objects of an image define {symbol.name}.")
            work.globals[symbol.name] = place + symbol.offset
            if symbol.type == elf.FUNCTION:
                work.entries[symbol.name] = place + symbol.offset


def _relocate(work: _Link, number: int, section: Section, begin: int) -> None:
    """Apply a section's relocations."""
    machine = work.objects[number].machine
    highs, lows = relocations.HIGHS.get(machine, frozenset()), relocations.LOWS.get(machine, {})
    known, sums = relocations.APPLY[machine], relocations.SUMS.get(machine, {})
    distances: dict[int, int] = {}
    balance = Counter[int]()
    later: list[tuple[Relocation, Symbol, int, int]] = []
    for relocation, symbol, place, target in _resolve(work, number, section, begin):
        if relocation.kind in highs:
            distances[place] = target - place
        balance[place] += sums.get(relocation.kind, 0)
        if relocation.kind in lows:
            later.append((relocation, symbol, place, target))
        elif relocation.kind in known:
            _apply(known[relocation.kind], work.code, place, target, symbol)
        else:
            raise _refusal(symbol, section, f"its relocation has the type {relocation.kind}")
    for relocation, symbol, place, target in later:
        if target not in distances:
            raise _refusal(symbol, section, "the lower half of a distance has no upper half")
        _apply(lows[relocation.kind], work.code, place, distances[target], symbol)
    if unpaired := [place for place, left in balance.items() if left]:
        raise InternalError(
            f"An image holds distances, and no address, which {section.name}+{unpaired[0] - begin:#x} is."
        )


def _resolve(work: _Link, number: int, section: Section, begin: int) -> Iterator[tuple[Relocation, Symbol, int, int]]:
    """A section's relocations with their symbols, their places and their targets."""
    item = work.objects[number]
    for relocation in section.relocations:
        symbol = item.symbols[relocation.symbol]
        if relocation.kind in relocations.IGNORED.get(item.machine, ()):
            continue
        if (number, symbol.section) in work.places:
            target = work.places[number, symbol.section] + symbol.offset
        elif symbol.section == elf.UNDEFINED and symbol.name in work.globals:
            target = work.globals[symbol.name]
        else:
            raise _refusal(symbol, section, _ELSEWHERE.get(symbol.section, "it lies in a section that is not loaded"))
        yield relocation, symbol, begin + relocation.offset, target + relocation.addend


_ELSEWHERE = {
    elf.UNDEFINED: "nothing in the image defines it",
    elf.ABSOLUTE: "it is an address",
    elf.COMMON: "it is data that is written to",
}


def _apply(apply: relocations.Apply, code: bytearray, place: int, target: int, symbol: Symbol) -> None:
    size = len(code)
    try:
        apply(code, place, target)
    except ValueError as error:
        raise InternalError(f"An image cannot hold the distance to {symbol.name}.", why=str(error)) from None
    if len(code) != size:
        raise InternalError(f"A relocation of {symbol.name} lies outside of the image.")


def _refusal(symbol: Symbol, section: Section, why: str) -> InternalError:
    name = symbol.name or f"something in {section.name}"
    return InternalError(f"An image cannot refer to {name}.", where=section.name, why=f"{why[0].upper()}{why[1:]}.")


__all__ = ["Image", "link"]
