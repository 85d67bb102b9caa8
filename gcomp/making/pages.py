"""Pages that say how something is added to gcomp, as steps: new files, changes of files, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gcomp.records import record

_STEP = re.compile(r"`((?:gcomp|tests|tools)/[\w/.]+\.(?:py|mlir))`|^```(\w+)\n(.*?)^```$", re.M | re.S)


@record
class Step:
    """What a block of a page asks for: a `diff` of a file, a new file of `python`, or `console` commands."""

    path: str
    language: str
    text: str


def steps_of(page: str) -> Iterator[Step]:
    """The steps of a page, in its order: each block belongs to the file that is named last before it."""
    path = ""
    for named, language, block in _STEP.findall(page):
        path = named or path
        if language in ("diff", "python", "console"):
            yield Step(path, language, block)


def patched(text: str, diff: str) -> str | None:
    """A text after a change: lines that begin with a minus go, those with a plus come. None where it does not fit."""
    lines = diff.splitlines()
    old = "\n".join(line[1:] for line in lines if line[:1] != "+")
    new = "\n".join(line[1:] for line in lines if line[:1] != "-")
    if f"\n{text}".count(f"\n{old}\n") != 1:
        return None
    return f"\n{text}".replace(f"\n{old}\n", f"\n{new}\n")[1:]


__all__ = ["Step", "patched", "steps_of"]
