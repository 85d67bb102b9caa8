"""Formulas of sizes as LLVM IR, in i64: what `gcomp.dims` computes with integers of any size, for sizes that fit."""

from __future__ import annotations

from collections.abc import Mapping

from gcomp.dims import Atom, Size, terms_of
from gcomp.errors import UnsupportedError
from gcomp.lowering.llvm.writer import Writer

MOST = (1 << 63) - 1


class Sizes:
    """Computes formulas of symbols, whose values are given. What is computed twice is computed once."""

    def __init__(self, writer: Writer, symbols: Mapping[str, str]) -> None:
        self._w, self._symbols = writer, symbols

    def value(self, size: Size) -> str:
        """The value of a formula. Division by a size that is 0 gives any number; no such plan runs."""
        if isinstance(size, int):
            return str(_number(size))
        total: str | None = None
        for monomial, coefficient in terms_of(size):
            term: str | None = None if coefficient == 1 and monomial else str(_number(coefficient))
            for atom, exponent in monomial:
                for _ in range(exponent):
                    found = self._atom(atom)
                    term = found if term is None else self._w.pure(f"mul i64 {term}, {found}")
            assert term is not None
            total = term if total is None else self._w.pure(f"add i64 {total}, {term}")
        return total or "0"

    def product(self, sizes: tuple[Size, ...]) -> str:
        """The product of formulas."""
        found = "1"
        for size in sizes:
            factor = self.value(size)
            found = factor if found == "1" else found if factor == "1" else self._w.pure(f"mul i64 {found}, {factor}")
        return found

    def _atom(self, atom: Atom) -> str:
        if not atom.args:
            return self._symbols[atom.head]
        values = [self.value(arg) for arg in atom.args]
        if atom.head in ("min", "max"):
            found = values[0]
            for value in values[1:]:
                found = self._w.call(f"llvm.s{atom.head}.i64", "i64", [("i64", found), ("i64", value)])
            return found
        quotient, rest = self._floor_divide(*values)
        return quotient if atom.head == "floordiv" else rest

    def _floor_divide(self, number: str, divisor: str) -> tuple[str, str]:
        """As Python divides: the quotient is rounded down, and the remainder has the sign of the divisor."""
        w = self._w
        if not divisor.lstrip("-").isdigit():
            zero = w.pure(f"icmp eq i64 {divisor}, 0")
            divisor = w.pure(f"select i1 {zero}, i64 1, i64 {divisor}")
        cut, rest = w.pure(f"sdiv i64 {number}, {divisor}"), w.pure(f"srem i64 {number}, {divisor}")
        exact = w.pure(f"icmp eq i64 {rest}, 0")
        signs = w.pure(f"icmp slt i64 {w.pure(f'xor i64 {number}, {divisor}')}, 0")
        down = w.pure(f"select i1 {exact}, i1 false, i1 {signs}")
        quotient = w.pure(f"select i1 {down}, i64 {w.pure(f'sub i64 {cut}, 1')}, i64 {cut}")
        return quotient, w.pure(f"select i1 {down}, i64 {w.pure(f'add i64 {rest}, {divisor}')}, i64 {rest}")


def _number(value: int) -> int:
    if not -MOST <= value <= MOST:
        raise UnsupportedError("A size of the model does not fit 64 bits.", why=f"{str(value)[:40]} is too large")
    return value


__all__ = ["MOST", "Sizes"]
