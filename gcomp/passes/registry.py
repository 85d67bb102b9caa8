"""All passes by name, and the text of pipelines: `canonicalize,fold-constants{max-bytes=4096},cse`.

Other packages add passes through the entry point group `gcomp.passes`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from xdsl.utils.arg_spec import parse_pipeline as parse_specs
from xdsl.utils.exceptions import ArgSpecParseError

from gcomp.errors import UsageError, UserCodeError, suggest
from gcomp.owners import line_of
from gcomp.passes.base import LEVELS, Pass

_PACKAGES = ("graph", "convert", "raising", "fusion", "memory", "sharding")
_TRANSFORMING = ("transform",)


@cache
def all_passes() -> Mapping[str, type[Pass]]:
    """Every pass by name: one per file in the packages here, and those of other packages."""
    found = _find_passes(_PACKAGES)
    for entry in entry_points(group="gcomp.passes"):
        found.setdefault(entry.name, entry.load())
    return dict(sorted(found.items()))


@cache
def transformations() -> Mapping[str, type[Pass]]:
    """What pipelines may also hold: transformations to programs that compute something else, such as gradients."""
    return dict(sorted(_find_passes(_TRANSFORMING).items()))


def _find_pass(name: str) -> type[Pass] | None:
    """The pass of a name, imported from the file of that name where that suffices."""
    own = None if all_passes.cache_info().currsize else _own(name)
    return own or all_passes().get(name) or transformations().get(name)


@cache
def _own(name: str) -> type[Pass] | None:
    found: dict[str, type[Pass]] = {}
    for package in _PACKAGES:
        if name.replace("-", "").isalnum() and find_spec(home := f"gcomp.passes.{package}.{name.replace('-', '_')}"):
            _collect(import_module(home), found)
            if name in found:
                break
    return found.get(name)


def _find_passes(packages: Sequence[str]) -> dict[str, type[Pass]]:
    found: dict[str, type[Pass]] = {}
    for package in packages:
        module = import_module(f"gcomp.passes.{package}")
        for info in iter_modules(module.__path__):
            _collect(import_module(f"gcomp.passes.{package}.{info.name}"), found)
    return found


def _collect(module: ModuleType, found: dict[str, type[Pass]]) -> None:
    for value in vars(module).values():
        if isinstance(value, type) and _is_of(value, module) and issubclass(value, Pass):
            name: str | None = getattr(value, "name", None)
            if name is not None:
                found[name] = value


def _is_of(cls: type, module: ModuleType) -> bool:
    """Whether a class belongs to the module that names it; one that a function of another module made does, too."""
    return cls.__module__ == module.__name__ or "<locals>" in cls.__qualname__


_LOADED: dict[str, Path] = {}
"""Pass names, and the file that each was loaded from."""


def is_loaded(path: Path) -> bool:
    """Whether the passes of a file were added to the others."""
    return any(known.resolve() == path.resolve() for known in _LOADED.values())


def load_passes(path: Path) -> list[str]:
    """Import a Python file and add its passes to the others; their names. UsageError for a file that has none."""
    found: dict[str, type[Pass]] = {}
    try:
        spec = spec_from_file_location(f"gcomp_loaded_{path.stem}", path)
        if spec is None or spec.loader is None or not path.is_file():
            why = "it is not a Python file" if path.exists() else "there is no such file"
            raise UsageError(f"cannot load {path}", why=why)
        module = module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise UserCodeError(f"{path} failed when it was loaded", where=line_of(error.__traceback__), why=why) from error
    _collect(module, found)
    if not found:
        raise UsageError(
            f"there is no pass in {path}", fix="a pass is a subclass of gcomp.passes.base.Pass with a name"
        )
    cast("dict[str, type[Pass]]", all_passes()).update(found)
    _LOADED.update(dict.fromkeys(found, path))
    return list(found)


def load_options(steps: Iterable[Pass]) -> str:
    """What a command line needs to know passes by name: ` --load FILE.py` for those of files that were loaded."""
    paths = dict.fromkeys(path for step in steps if (path := _LOADED.get(step.name)) is not None)
    return "".join(f" --load {shlex.quote(str(path))}" for path in paths)


def parse_pipeline(text: str) -> list[Pass]:
    """The passes of a pipeline's text. UsageError, with the nearest name, for what is not one, and for passes of a
    level that the program has left: those of graphs do not know what may be in a kernel."""
    try:
        specs = list(parse_specs(text))
    except ArgSpecParseError as error:
        raise UsageError(f"cannot read the pipeline {text!r}", why=str(error)) from None
    if specs and text.rstrip().endswith(","):
        raise UsageError(f"cannot read the pipeline {text!r}", why="no pass follows its last comma")
    passes: list[Pass] = []
    for spec in specs:
        cls = _find_pass(spec.name)
        if cls is None:
            known = [*all_passes(), *transformations()]
            hint = suggest(spec.name, known).rstrip() or f"the passes are: {', '.join(all_passes())}"
            raise UsageError(f"there is no pass {spec.name!r}", fix=hint)
        try:
            # Without options, nobody asks for their types.
            passes.append(cls.from_spec(spec) if spec.parameters or cls.required_fields() else cls())
        except (ValueError, TypeError) as error:
            raise UsageError(f"wrong options for the pass {spec.name}", why=str(error)) from None
        _check_numbers(passes[-1])
    for before, after in pairwise(passes):
        if _rank(after) < _rank(before):
            raise UsageError(
                f"the pass {after.name} comes after {before.name}", why=f"it works on programs of the {after.level} "
                f"level, and the program is on the {before.level} level then", fix=f"run it before {before.name}",
            )  # fmt: skip
    return passes


def _check_numbers(step: Pass) -> None:
    """UsageError for options that count or limit something, and are negative or no number."""
    for option in fields(step):
        value = getattr(step, option.name)
        if isinstance(value, int | float) and not value >= 0:
            name = option.name.replace("_", "-")
            raise UsageError(f"wrong options for the pass {step.name}", why=f"{name} is {value}, and is at least 0")


def _rank(step: Pass) -> int:
    if step.level not in LEVELS:
        raise UsageError(f"the pass {step.name} has the level {step.level!r}", fix=f"levels are {', '.join(LEVELS)}")
    return LEVELS.index(step.level)


def pipeline_text(passes: Iterable[Pass]) -> str:
    """The text that `parse_pipeline` reads."""
    return ",".join(str(p.spec()) for p in passes)


def pipeline_option(passes: Iterable[Pass]) -> str:
    """What names passes on a command line: `-p "canonicalize,cse"`, so quoted that a shell takes options of passes."""
    text = pipeline_text(passes)
    return f"-p {shlex.quote(text)}" if '"' in text else f'-p "{text}"'


__all__: Sequence[str] = (
    "all_passes", "is_loaded", "load_options", "load_passes", "parse_pipeline", "pipeline_option", "pipeline_text",
    "transformations",
)  # fmt: skip
