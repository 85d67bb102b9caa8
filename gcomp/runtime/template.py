"""Export text with holes: `tensor<{{2*batch}}x3xf32>` becomes a program once its symbols have values.

A hole holds a size in the canonical text of `gcomp.dims`. Text outside holes never contains `{{`: whoever writes
a template escapes braces in string literals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gcomp import dims
from gcomp.dims import Size

_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def hole(size: Size) -> str:
    """The text of a size in a template: a number, or a hole."""
    return str(size) if isinstance(size, int) else f"{{{{{size}}}}}"


class Template:
    """A text whose holes are sizes. Splitting happens once, so that filling costs little more than joining."""

    def __init__(self, text: str) -> None:
        """Raises DimError when a hole does not hold a size in canonical form."""
        self.text = text
        pieces = _HOLE.split(text)
        self._literals, formulas = pieces[::2], pieces[1::2]
        self._sizes = {formula: _canonical(formula) for formula in formulas}
        self._formulas = formulas

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols that occur in holes."""
        return frozenset[str]().union(*(dims.symbols_of(size) for size in self._sizes.values()))

    def fill(self, env: Mapping[str, int]) -> str:
        """The text with each hole replaced by its size under `env`. Raises DimError for a symbol without value."""
        if not self._formulas:
            return self.text
        values = {formula: str(dims.evaluate(size, env)) for formula, size in self._sizes.items()}
        filled = [self._literals[0]]
        for formula, literal in zip(self._formulas, self._literals[1:], strict=True):
            filled += (values[formula], literal)
        return "".join(filled)


def _canonical(formula: str) -> Size:
    size = dims.parse(formula)
    if str(size) != formula:
        raise dims.DimError(f"{formula!r} is not canonical, write {str(size)!r}")
    return size
