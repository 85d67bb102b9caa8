"""Reading sizes from text: what `str` prints, and the spellings of other tools.

    size    = term (("+" | "-") term)*
    term    = factor (("*" | "//" | "%" | "mod") factor)*
    factor  = "-" factor | primary (("^" | "**") integer)?
    primary = integer | name | "(" size ")" | function "(" size ("," size)* ")"

Functions are floordiv, ceildiv, mod, min and max. The text may come from a model file, so length, nesting and
the size of intermediate results are limited, and every failure is a DimError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from gcomp.dims.algebra import (
    MAX_COEFFICIENT,
    MAX_DEGREE,
    MAX_TEXT,
    DimError,
    DimLimitError,
    Size,
    abridge,
    ceildiv,
    floordiv,
    mod,
    symbol,
)
from gcomp.dims.functions import dmax, dmin

# Nested functions and parentheses; above the nesting that canonical text can have.
MAX_NESTING = 80
_DIGITS = len(str(MAX_COEFFICIENT))
_TOKEN = re.compile(r"[ \t\r\n]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|\*\*|[-+*%^(),]))")

_FUNCTIONS: dict[str, tuple[Callable[..., Size], int | None]] = {
    "floordiv": (floordiv, 2),
    "ceildiv": (ceildiv, 2),
    "mod": (mod, 2),
    "min": (dmin, None),
    "max": (dmax, None),
}
"""Function and number of arguments (None: one or more) by name."""


@lru_cache(4096)
def parse(text: str) -> Size:
    """The size that `text` denotes. Raises DimError for anything else."""
    try:
        parser = _Parser(_tokens(text))
        size = parser.sum(MAX_NESTING)
        if parser.peek():
            raise DimError(f"unexpected '{abridge(parser.peek())}'")
    except DimError as error:
        raise type(error)(f"bad dimension {abridge(repr(text))}: {error}") from None
    return size


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_TEXT:
        raise DimLimitError(f"longer than {MAX_TEXT} characters")
    tokens: list[str] = []
    position, end = 0, len(text.rstrip(" \t\r\n"))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise DimError(f"unexpected text at {abridge(repr(text[position:]))}")
        tokens.append(match[match.lastindex or 0])
        position = match.end()
    return [*tokens, ""]


def _read_name(token: str) -> str:
    return f"'{abridge(token)}'" if token else "the end"


def _check_size(size: Size) -> Size:
    if isinstance(size, int) and abs(size) >= MAX_COEFFICIENT:
        raise DimLimitError("number too large")
    return size


class _Parser:
    """Recursive descent over tokens; `depth` counts down the nesting still allowed."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def next(self) -> str:
        token = self.tokens[self.position]
        if token:
            self.position += 1
        return token

    def expect(self, token: str) -> None:
        found = self.next()
        if found != token:
            raise DimError(f"expected '{token}', found {_read_name(found)}")

    def sum(self, depth: int) -> Size:
        if not depth:
            raise DimLimitError(f"nested deeper than {MAX_NESTING}")
        total = self.term(depth)
        while self.peek() in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            total = _check_size(total + sign * self.term(depth))
        return total

    def term(self, depth: int) -> Size:
        result = self.factor(depth)
        while True:
            match self.peek():
                case "*":
                    self.next()
                    result = _check_size(result * self.factor(depth))
                case "//":
                    self.next()
                    result = _check_size(floordiv(result, self.factor(depth)))
                case "%" | "mod":
                    self.next()
                    result = _check_size(mod(result, self.factor(depth)))
                case _:
                    return result

    def factor(self, depth: int) -> Size:
        sign = 1
        while self.peek() == "-":
            self.next()
            sign = -sign
        base = self.primary(depth)
        if self.peek() in ("^", "**"):
            self.next()
            exponent = self.integer(self.next())
            if exponent > MAX_DEGREE:
                raise DimLimitError(f"exponent above {MAX_DEGREE}")
            base = _check_size(base**exponent)
        return sign * base

    def primary(self, depth: int) -> Size:
        token = self.next()
        if token == "(":
            size = self.sum(depth - 1)
            self.expect(")")
            return size
        if token[:1].isdigit():
            return self.integer(token)
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise DimError(f"expected a size, found {_read_name(token)}")
        return self.call(token, depth) if self.peek() == "(" else symbol(token)

    def call(self, name: str, depth: int) -> Size:
        if name not in _FUNCTIONS:
            raise DimError(f"unknown function '{abridge(name)}' (known: {', '.join(_FUNCTIONS)})")
        function, arity = _FUNCTIONS[name]
        self.expect("(")
        args = [self.sum(depth - 1)]
        while self.peek() == ",":
            self.next()
            args.append(self.sum(depth - 1))
        self.expect(")")
        if arity is not None and len(args) != arity:
            raise DimError(f"'{name}' takes {arity} sizes, found {len(args)}")
        return _check_size(function(*args))

    def integer(self, token: str) -> int:
        if not token[:1].isdigit():
            raise DimError(f"expected an integer, found {_read_name(token)}")
        if len(token) > _DIGITS:
            raise DimLimitError("number too large")
        value = int(token)
        _check_size(value)
        return value
