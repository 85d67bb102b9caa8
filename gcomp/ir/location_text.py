"""Reading locations as MLIR prints them: aliases that are defined after they are used (JAX's `as_text(debug_info=True)`
puts them at the end), ranges of lines and columns, of which the beginning is kept, and fused ones with metadata."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, LocationAttr, NoneAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind

_DEFINITION = re.compile(r"^(#[A-Za-z_][\w$.]*)[ \t]*=[ \t]*loc\(", re.MULTILINE)
_MAX_CHAIN = 64
"""How many aliases may stand one behind the other."""


class LocationsParser(Parser):
    """xDSL's parser, with MLIR's other forms of locations."""

    _texts: dict[str, str] | None = None
    """What stands in the parentheses of each alias, and after them; found when the first unknown one is met."""
    _locations: dict[str, LocationAttr | None] | None = None
    """The aliases that were read before their definition; None while one is being read."""

    def _parse_location(self) -> LocationAttr:
        token = self._current_token
        if token.kind == MLIRTokenKind.HASH_IDENT and token.text not in self.attribute_aliases:
            location = self._defined_later(token.text)
            self._consume_token()
            return location
        if token.kind == MLIRTokenKind.BARE_IDENT and token.text == "fused":
            return self._parse_fused()
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            self.parse_optional_integer(allow_boolean=False, allow_negative=False)
            self.parse_punctuation(":")
            self.parse_integer(allow_boolean=False, allow_negative=False)
        return location

    def _parse_fused(self) -> LocationAttr:
        self.parse_keyword("fused")
        metadata: Attribute = NoneAttr()
        if self.parse_optional_punctuation("<") is not None:
            metadata = self.parse_attribute()
            self.parse_punctuation(">")
        return FusedLoc(tuple(self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)), metadata)

    def _defined_later(self, alias: str) -> LocationAttr:
        """The location that an alias will be defined as, below."""
        if self._texts is None or self._locations is None:
            self._texts, self._locations = _definitions(self._current_token.span.input.content), {}
        if alias not in self._locations:
            if alias not in self._texts or sum(found is None for found in self._locations.values()) >= _MAX_CHAIN:
                self.raise_error(f"undefined location alias '{alias}'")
            self._locations[alias] = None
            inner = type(self)(self.ctx, self._texts[alias], alias)
            inner.attribute_aliases = self.attribute_aliases
            inner._texts, inner._locations = self._texts, self._locations
            self._locations[alias] = inner._parse_location()
            inner.parse_punctuation(")")
        if (location := self._locations[alias]) is None:
            self.raise_error(f"the location alias '{alias}' is defined by itself")
        return location


def _definitions(text: str | bytes) -> dict[str, str]:
    """The text of each location alias from its parenthesis on, up to the next one's."""
    content = text if isinstance(text, str) else text.decode("utf-8", "replace")
    starts = list(_DEFINITION.finditer(content))
    ends = [match.start() for match in starts[1:]] + [len(content)] * bool(starts)
    return {match[1]: content[match.end() : end] for match, end in zip(starts, ends, strict=True)}
