"""Products of words: four unsigned bytes by four signed ones, added to a sum in i32, as kinds of processors do it best.

Sums wrap, so that all of these give the same bits. What saturates in between (`vpmaddubsw`) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gcomp.lowering.llvm.lanes import Lanes, splat, vectorial, whole
from gcomp.lowering.llvm.writer import Writer, vector
from gcomp.lowering.tiles.tile import WORD

Multiply = Callable[[str, str, str], str]
"""Of words of unsigned bytes, words of signed bytes, and sums: sums. All are vectors of i32."""


class WordProducts:
    """Prints products of words for vectors of i32. `kind` says what the processor has (`Variant.words`)."""

    def __init__(self, w: Writer, kind: str, lanes: int) -> None:
        self.w, self.kind, self.lanes = w, kind, lanes
        self.type = vector("i32", lanes)

    def right(self, bytes: Lanes) -> list[str]:
        """What is read of the right operand, made ready for `multiply_add`."""
        return _RIGHT[self.kind](self, whole(self.w, bytes))

    def left(self, bytes: Lanes) -> list[str]:
        """A word of the left operand for all lanes, made ready for `multiply_add`."""
        word = self.w.pure(f"bitcast {bytes.type} {whole(self.w, bytes)} to i32")
        return _LEFT[self.kind](self, word)

    def multiply_add(self, left: Sequence[str], right: Sequence[str], sum: Lanes) -> Lanes:
        """The sum with the products of a word for each lane."""
        found = whole(self.w, sum)
        for one, other in zip(left, right, strict=True):
            found = _MULTIPLY[self.kind](self, one, other, found)
        return vectorial("i32", self.lanes, found)

    def shifted(self, op: str, value: str, count: int) -> str:
        """All lanes shifted by so many bits."""
        if not count:
            return value
        return self.w.pure(f"{op} {self.type} {value}, {f'splat (i32 {count})' if self.lanes > 1 else count}")

    def cast(self, value: str, given: str, wanted: str) -> str:
        return self.w.pure(f"bitcast {given} {value} to {wanted}")

    def call(self, name: str, types: Sequence[str], *values: str, result: str) -> str:
        """A call of an intrinsic."""
        self.w.declare(name, result, types)
        given = ", ".join(f"{type} {value}" for type, value in zip(types, values, strict=True))
        return self.w.pure(f"call {result} @{name}({given})")

    @property
    def bytes(self) -> str:
        return vector("i8", WORD * self.lanes)

    @property
    def halves(self) -> str:
        return vector("i16", 2 * self.lanes)


def _whole_left(p: WordProducts, word: str) -> list[str]:
    return [splat(p.w, "i32", word, p.lanes)]


def _whole_right(p: WordProducts, bytes: str) -> list[str]:
    return [p.cast(bytes, p.bytes, p.type)]


def _vnni(p: WordProducts, left: str, right: str, sum: str) -> str:
    """AVX-VNNI, AVX512-VNNI: one instruction for each vector."""
    # From LLVM 21 on the factors' type is bytes.
    name, type = f"llvm.x86.avx512.vpdpbusd.{32 * p.lanes}", p.bytes
    factors = [p.cast(value, p.type, type) for value in (left, right)]
    return p.call(name, (p.type, type, type), sum, *factors, result=p.type)


def _usdot(p: WordProducts, left: str, right: str, sum: str) -> str:
    """I8MM of ARM."""
    factors = [p.cast(value, p.type, p.bytes) for value in (left, right)]
    types = (p.type, p.bytes, p.bytes)
    return p.call(f"llvm.aarch64.neon.usdot.v{p.lanes}i32.v{WORD * p.lanes}i8", types, sum, *factors, result=p.type)


def _pairs_left(p: WordProducts, word: str) -> list[str]:
    """The first and third byte of each word as 16-bit integers, and the second and fourth."""
    all = splat(p.w, "i32", word, p.lanes)
    mask = "splat (i32 16711935)"
    return [p.w.pure(f"and {p.type} {value}, {mask}") for value in (all, p.shifted("lshr", all, 8))]


def _pairs_right(p: WordProducts, bytes: str) -> list[str]:
    halves = p.cast(bytes, p.bytes, p.halves)
    eight = "splat (i16 8)"
    even = p.w.pure(f"ashr {p.halves} {p.w.pure(f'shl {p.halves} {halves}, {eight}')}, {eight}")
    odd = p.w.pure(f"ashr {p.halves} {halves}, {eight}")
    return [p.cast(value, p.halves, p.type) for value in (even, odd)]


_MADD = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}


def _pairs(p: WordProducts, left: str, right: str, sum: str) -> str:
    """`vpmaddwd`: two products of 16-bit integers, and their sum, in each lane."""
    factors = [p.cast(value, p.type, p.halves) for value in (left, right)]
    product = p.call(_MADD[p.lanes], (p.halves, p.halves), *factors, result=p.type)
    return p.w.value(f"add {p.type} {sum}, {product}")


def _single_left(p: WordProducts, word: str) -> list[str]:
    found = [p.w.pure(f"and i32 {p.w.pure(f'lshr i32 {word}, {8 * n}')}, 255") for n in range(WORD)]
    return [splat(p.w, "i32", value, p.lanes) for value in found]


def _single_right(p: WordProducts, bytes: str) -> list[str]:
    words = p.cast(bytes, p.bytes, p.type)
    return [p.shifted("ashr", p.shifted("shl", words, 24 - 8 * n), 24) for n in range(WORD)]


def _single(p: WordProducts, left: str, right: str, sum: str) -> str:
    """One product after the other, in 32 bits."""
    return p.w.value(f"add {p.type} {sum}, {p.w.pure(f'mul {p.type} {left}, {right}')}")


_LEFT: Mapping[str, Callable[[WordProducts, str], list[str]]] = {
    "vnni": _whole_left, "usdot": _whole_left, "pairs": _pairs_left, "": _single_left,
}  # fmt: skip
_RIGHT: Mapping[str, Callable[[WordProducts, str], list[str]]] = {
    "vnni": _whole_right, "usdot": _whole_right, "pairs": _pairs_right, "": _single_right,
}  # fmt: skip
_MULTIPLY: Mapping[str, Callable[[WordProducts, str, str, str], str]] = {
    "vnni": _vnni, "usdot": _usdot, "pairs": _pairs, "": _single,
}  # fmt: skip
