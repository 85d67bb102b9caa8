"""The formats of print ops: text in which fields in braces are summaries of operands, or their elements.

    h: {shape} mean {mean:.3f}, {nan} NaN      of the first operand
    {0.min} .. {1.max}, {{braces}}             of any operand; doubled braces are braces

A specification after the colon is Python's, for each number that is written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FIELDS = ("shape", "dtype", "mean", "min", "max", "nan", "inf", "values")
"""What may stand in braces."""

_TOKEN = re.compile(r"\{\{|\}\}|\{(?:([0-9]{1,3})\.)?([a-z]+)(?::([^{}]*))?\}|[{}]")
_SPEC = re.compile(r"[ +\-]?#?0?[0-9]{0,3}[_,]?(?:\.[0-9]{1,3})?[bcdeEfFgGnosxX%]?")


class Field(NamedTuple):
    """A summary of an operand, and how its numbers are written."""

    operand: int
    what: str
    spec: str


def parse_format(text: str, operands: int) -> list[str | Field]:
    """The pieces of a format. Raises ValueError, saying why, for one that so many operands do not fill."""
    pieces: list[str | Field] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        end = token.end()
        if token[0] in ("{{", "}}"):
            pieces.append(token[0][0])
        elif token[2] is None:
            raise ValueError(f"a single {token[0]!r} is no field: write it twice, or name one of {', '.join(FIELDS)}")
        else:
            pieces.append(_field(token, operands))
    return [piece for piece in (*pieces, text[end:]) if piece != ""]


def _field(token: re.Match[str], operands: int) -> Field:
    field = Field(int(token[1] or 0), token[2], token[3] or "")
    if field.what not in FIELDS:
        raise ValueError(f"{token[0]} is no field; there are: {', '.join(FIELDS)}")
    if field.operand >= operands:
        raise ValueError(f"{token[0]} is of operand {field.operand}, and there are {operands}")
    if _SPEC.fullmatch(field.spec) is None:
        raise ValueError(f"{field.spec!r} is no format of a number")
    return field


def literal(text: str) -> str:
    """The format that writes a text as it is."""
    return text.replace("{", "{{").replace("}", "}}")


__all__ = ["FIELDS", "Field", "literal", "parse_format"]
