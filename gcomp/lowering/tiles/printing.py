"""Tile programs as text, as xDSL prints them: types and properties, of which a program has few, are printed once."""

from __future__ import annotations

from io import StringIO

from xdsl.ir import Attribute
from xdsl.printer import Printer

from gcomp.lowering.tiles.tile import KernelOp

_MOST = 4096
_texts: dict[int, tuple[Attribute, str]] = {}
"""The identity of an attribute -> the attribute, which keeps its identity from another's, and its text."""


class _Printer(Printer):
    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text or self.stream is None:
            super().print_string(text, indent=indent)
        else:
            self.stream.write(text)  # in which column is of interest to diagnostics alone

    def print_attribute(self, attribute: Attribute) -> None:
        found = _texts.get(id(attribute))
        if found is None:
            stream = StringIO()
            Printer(stream=stream).print_attribute(attribute)
            found = attribute, stream.getvalue()
            if len(_texts) >= _MOST:
                _texts.clear()
            _texts[id(attribute)] = found
        self.print_string(found[1])


def kernel_text(kernel: KernelOp) -> str:
    """The text of a kernel, which is that of `str`."""
    stream = StringIO()
    _Printer(stream=stream).print_op(kernel)
    return stream.getvalue()


__all__ = ["kernel_text"]
