"""Relocations between places of one image, which hold wherever it is mapped, at the begin of a page.

Each machine has a table by its own numbers, from its processor supplement to the ELF specification. What depends on the
address of the image itself is in none of them, nor what goes through tables of addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gcomp.lowering.llvm.elf import AARCH64, RISCV64, X86_64

PAGE = 4096
"""The least that an image is aligned to."""

Apply = Callable[[bytearray, int, int], None]
"""Writes, into an image and at a place, where another place lies. ValueError where it is too far or not aligned."""


def _check_signed(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"a distance of {value} bytes does not fit {bits} bits")
    return value & (1 << bits) - 1


def _check_aligned(value: int, unit: int) -> int:
    if value % unit:
        raise ValueError(f"the place {value:#x} is not aligned to {unit} bytes")
    return value


def _word(code: bytearray, place: int) -> int:
    return int.from_bytes(code[place : place + 4], "little")


def _put(code: bytearray, place: int, bits: int, mask: int) -> None:
    """Replace the masked bits of an instruction."""
    code[place : place + 4] = (_word(code, place) & ~mask | bits).to_bytes(4, "little")


def _distance(code: bytearray, place: int, target: int, *, size: int) -> None:
    """Data: how far it is, in so many bytes."""
    code[place : place + size] = _check_signed(target - place, 8 * size).to_bytes(size, "little")


# ---- aarch64 --------------------------------------------------------------------------------------------------------


def _branch(code: bytearray, place: int, target: int, *, bits: int, at: int) -> None:
    """A jump, in words, or a load of a word."""
    distance = _check_signed(_check_aligned(target - place, 4), bits + 2) >> 2
    _put(code, place, distance << at, (1 << bits) - 1 << at)


def _adr(code: bytearray, place: int, distance: int) -> None:
    distance = _check_signed(distance, 21)
    _put(code, place, (distance & 3) << 29 | distance >> 2 << 5, 0x60FFFFE0)


def _address(code: bytearray, place: int, target: int) -> None:
    _adr(code, place, target - place)


def _page(code: bytearray, place: int, target: int) -> None:
    _adr(code, place, target // PAGE - place // PAGE)


def _in_page(code: bytearray, place: int, target: int, *, unit: int) -> None:
    _put(code, place, _check_aligned(target % PAGE, unit) // unit << 10, 0xFFF << 10)


_AARCH64: Mapping[int, Apply] = {
    260: partial(_distance, size=8),  # PREL64
    261: partial(_distance, size=4),  # PREL32
    262: partial(_distance, size=2),  # PREL16
    273: partial(_branch, bits=19, at=5),  # LD_PREL_LO19
    274: _address,  # ADR_PREL_LO21
    275: _page,  # ADR_PREL_PG_HI21
    277: partial(_in_page, unit=1),  # ADD_ABS_LO12_NC
    278: partial(_in_page, unit=1),  # LDST8_ABS_LO12_NC
    279: partial(_branch, bits=14, at=5),  # TSTBR14
    280: partial(_branch, bits=19, at=5),  # CONDBR19
    282: partial(_branch, bits=26, at=0),  # JUMP26
    283: partial(_branch, bits=26, at=0),  # CALL26
    284: partial(_in_page, unit=2),  # LDST16_ABS_LO12_NC
    285: partial(_in_page, unit=4),  # LDST32_ABS_LO12_NC
    286: partial(_in_page, unit=8),  # LDST64_ABS_LO12_NC
    299: partial(_in_page, unit=16),  # LDST128_ABS_LO12_NC
    314: partial(_distance, size=4),  # PLT32
}


# ---- riscv64 --------------------------------------------------------------------------------------------------------


def _write_scattered(code: bytearray, place: int, target: int, *, bits: int, size: int, fields: str) -> None:
    """A jump whose distance lies in pieces: of each, its lowest bit, how many there are, and where they lie."""
    distance = _check_signed(_check_aligned(target - place, 2), bits)
    word, old = 0, int.from_bytes(code[place : place + size], "little")
    for field in fields.split():
        low, count, at = map(int, field.split(":"))
        mask = (1 << count) - 1
        old &= ~(mask << at)
        word |= (distance >> low & mask) << at
    code[place : place + size] = (old | word).to_bytes(size, "little")


def _upper(distance: int) -> int:
    """The upper 20 bits of a distance of which the lower 12 are added as a signed number."""
    return _check_signed(distance + 0x800, 32) & 0xFFFFF000


def _high(code: bytearray, place: int, target: int) -> None:
    _put(code, place, _upper(target - place), 0xFFFFF000)


def _low(code: bytearray, place: int, distance: int) -> None:
    _put(code, place, (distance & 0xFFF) << 20, 0xFFF << 20)


def _low_of_store(code: bytearray, place: int, distance: int) -> None:
    _put(code, place, (distance >> 5 & 0x7F) << 25 | (distance & 0x1F) << 7, 0xFE000F80)


def _call(code: bytearray, place: int, target: int) -> None:
    _high(code, place, target)
    _low(code, place + 4, target - place)


def _write_added(code: bytearray, place: int, target: int, *, size: int, sign: int) -> None:
    old = int.from_bytes(code[place : place + size], "little")
    code[place : place + size] = (old + sign * target & (1 << 8 * size) - 1).to_bytes(size, "little")


_RISCV64: Mapping[int, Apply] = {
    16: partial(_write_scattered, bits=13, size=4, fields="1:4:8 5:6:25 11:1:7 12:1:31"),  # BRANCH
    17: partial(_write_scattered, bits=21, size=4, fields="1:10:21 11:1:20 12:8:12 20:1:31"),  # JAL
    18: _call,  # CALL
    19: _call,  # CALL_PLT
    23: _high,  # PCREL_HI20
    **{33 + i: partial(_write_added, size=1 << i, sign=1) for i in range(4)},  # ADD8 to ADD64
    **{37 + i: partial(_write_added, size=1 << i, sign=-1) for i in range(4)},  # SUB8 to SUB64
    44: partial(_write_scattered, bits=9, size=2, fields="1:2:3 3:2:10 5:1:2 6:2:5 8:1:12"),  # RVC_BRANCH
    45: partial(
        _write_scattered, bits=12, size=2, fields="1:3:3 4:1:11 5:1:2 6:1:7 7:1:6 8:2:9 10:1:8 11:1:12"
    ),  # RVC_JUMP
    57: partial(_distance, size=4),  # 32_PCREL
    59: partial(_distance, size=4),  # PLT32
}

APPLY: Mapping[int, Mapping[int, Apply]] = {
    X86_64: {
        2: partial(_distance, size=4),  # PC32
        4: partial(_distance, size=4),  # PLT32
        24: partial(_distance, size=8),  # PC64
    },
    AARCH64: _AARCH64,
    RISCV64: _RISCV64,
}
"""By machine and number."""

HIGHS: Mapping[int, frozenset[int]] = {RISCV64: frozenset({23})}
"""Upper halves of distances, whose lower halves are relocations of their own, against the place of the upper one."""
LOWS: Mapping[int, Mapping[int, Apply]] = {RISCV64: {24: _low, 25: _low_of_store}}
"""Lower halves (PCREL_LO12_I, PCREL_LO12_S): they are given the distance, not the target."""
SUMS: Mapping[int, Mapping[int, int]] = {RISCV64: {**{33 + i: 1 for i in range(4)}, **{37 + i: -1 for i in range(4)}}}
"""Places that are added or taken away: a distance only where as many are added as are taken away."""
IGNORED: Mapping[int, frozenset[int]] = {RISCV64: frozenset({51})}
"""RELAX: the code may be made shorter, and need not be."""

__all__ = ["APPLY", "HIGHS", "IGNORED", "LOWS", "PAGE", "SUMS", "Apply"]
