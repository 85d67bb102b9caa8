"""What a mutant is: one named mistake in gcomp, made by patching modules in a process that is thrown away afterwards.

    @mutant("cse-ignores-properties", "cse", classes=(38,), about="two ops that differ in a property are merged")
    def _() -> None:
        cse._key = ...

A control is the same with a correct change: the suite must let it live.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.mutants.classes import CLASSES

Apply = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """A mistake (or, with `right`, a correct change) and what it is about.

    `target` decides which judge looks for it: the name of a pass, or `import`, `xla`, `reference`, `inference`. `apply`
    patches this process for good, so it must only run in a forked one. `bug_classes` are numbers of `classes.CLASSES`.
    """

    name: str
    about: str
    bug_classes: tuple[int, ...]
    target: str
    apply: Apply
    right: bool = False


_known: dict[str, Mutant] = {}


def mutant(name: str, target: str, *, about: str, classes: Sequence[int] = ()) -> Callable[[Apply], Apply]:
    """Register the function below, which makes a mistake, as a mutant."""
    return _registered(name, target, about, classes, right=False)


def control(name: str, target: str, *, about: str) -> Callable[[Apply], Apply]:
    """Register the function below, which changes how something is done and not what, as a control."""
    return _registered(name, target, about, (), right=True)


def _registered(name: str, target: str, about: str, classes: Sequence[int], *, right: bool) -> Callable[[Apply], Apply]:
    if name in _known:
        raise ValueError(f"there are two mutants {name}")
    if unknown := set(classes) - CLASSES.keys():
        raise ValueError(f"{name}: there are no classes {sorted(unknown)}")

    def add(apply: Apply) -> Apply:
        _known[name] = Mutant(name, about, tuple(classes), target, apply, right)
        return apply

    return add


@cache
def all_mutants() -> dict[str, Mutant]:
    """Every mutant and control of the catalog, by name."""
    for path in sorted((Path(__file__).parent / "catalog").glob("*.py")):
        import_module(f"tests.mutants.catalog.{path.stem}")
    return dict(sorted(_known.items()))


__all__ = ["Apply", "Mutant", "all_mutants", "control", "mutant"]
