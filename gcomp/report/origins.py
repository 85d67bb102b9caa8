"""Where an op of a program comes from, as a page shows it: name, module and source line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import dropwhile
from pathlib import Path

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, NameLoc
from xdsl.ir import Attribute

from gcomp.ir.locations import describe, parts
from gcomp.records import record

AROUND = 2
"""Lines of source that are shown before and after an op's own."""


@record
class Origin:
    """One place that an op comes from: what the source calls it, the modules around it, and `file:line`."""

    name: str
    scope: tuple[str, ...]
    line: str

    @cached_property
    def text(self) -> str:
        """The lines of source around it, where the file is at hand; the line itself is marked."""
        file, _, number = self.line.rpartition(":")
        if not file or not number.isdecimal():
            return ""
        lines, row = _lines(file), int(number)
        if row > len(lines):
            return ""
        shown = range(max(1, row - AROUND), min(len(lines), row + AROUND) + 1)
        return "\n".join(f"{'>' if n == row else ' '} {n:>4}  {lines[n - 1]}" for n in shown)


@lru_cache(64)
def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


class Origins:
    """The origins of a program's ops. `modules` are those of `frontends.onnx.model.modules.node_modules`."""

    def __init__(self, modules: Mapping[str, tuple[str, str]]) -> None:
        self._modules = modules
        self.all: list[Origin] = []
        self._numbers: dict[Attribute, int] = {}

    def of(self, location: Attribute) -> list[int]:
        """The numbers of a location's origins, in order; each part of a fused location is one."""
        if isinstance(location, FusedLoc):
            found = [n for part in location.locations.data for n in self.of(part)]  # pyright: ignore
            return list(dict.fromkeys(found))
        if (text := describe(location)) == "":
            return []
        if location not in self._numbers:
            self._numbers[location] = len(self.all)
            self.all.append(self._origin(location, text))
        return [self._numbers[location]]

    def _origin(self, location: Attribute, text: str) -> Origin:
        names, line = list[str](), ""
        for part in parts(location):
            match part:
                case NameLoc():
                    names.append(part.desc.data)
                case FileLineColLoc():
                    line = line or f"{part.filename.data}:{part.line.data}"
                case CallSiteLoc():
                    pass
                case _:
                    pass
        known = next((self._modules[name] for name in names if name in self._modules), None)
        if known is not None:
            return Origin(text, _scope(known[0]), known[1] or line)
        # What a composite was opened to is named after it, outermost.
        own = list(dropwhile(lambda name: name.startswith("gcomp."), names))
        scope = own[0] if len(own) > 1 and not self._modules else ""
        return Origin(text, _scope(scope), line)


def _scope(module: str) -> tuple[str, ...]:
    return tuple([name for name in module.split(".") if name])


def common_scope(origins: list[Origin]) -> tuple[str, ...]:
    """The innermost module that holds all of them."""
    if not origins:
        return ()
    first, *rest = [origin.scope for origin in origins]
    for scope in rest:
        same = 0
        while same < min(len(first), len(scope)) and first[same] == scope[same]:
            same += 1
        first = first[:same]
    return first


__all__ = ["LocationAttr", "Origin", "Origins", "common_scope"]
