"""The models that a pass is tried on: the corpus, and the user's own, with sizes and inputs to run them at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gcomp.corpus.store import Member
from gcomp.dims import Range, Ranges
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.reference.sizes import symbols_in
from gcomp.sources import FRONTENDS, import_model

SIZE = 16
"""What a symbol is at most where its range is open, and what it is where that is allowed."""
SUFFIXES = tuple(suffix for row in FRONTENDS for suffix in row.suffixes)


@dataclass(frozen=True)
class Model:
    """A model by name: a member of the corpus, or a file."""

    name: str
    source: Member | Path

    @property
    def is_own(self) -> bool:
        """Whether it is the user's."""
        return isinstance(self.source, Path)

    def program(self) -> Program:
        """The program, before any pass; symbols of open ranges are at most `SIZE`. Raises GcompError."""
        program = import_model(str(self.source)) if isinstance(self.source, Path) else self.source.program()
        ranges = dict(program.ranges)
        for name in symbols_in(program):
            known = program.ranges[name]
            if known.hi is None:
                ranges[name] = Range(known.lo, max(known.lo, SIZE), known.multiple_of)
        program.ranges = Ranges(ranges)
        return program


def models_in(folder: Path) -> Iterator[Model]:
    """The models in a folder and in those within it, smallest first. UsageError where there are none."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", fix="--models takes a folder of models")
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    if not paths:
        raise UsageError(
            f"there is no model in {folder}", why=f"models are files of {', '.join(sorted(set(SUFFIXES)))}"
        )
    for path in sorted(paths, key=lambda path: path.stat().st_size):
        yield Model(str(path.relative_to(folder)), path)


__all__ = ["SIZE", "Model", "models_in"]
