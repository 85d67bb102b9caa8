"""The catalog of mutants is complete, every one can be applied, and killing works from end to end."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType

import pytest

from gcomp.passes.registry import all_passes
from tests.mutants import edits, matching, run
from tests.mutants.classes import CLASSES
from tests.mutants.front_doors.folders import FOLDERS
from tests.mutants.judges import JUDGES, Kill, Survival, load_judges, passes
from tests.mutants.mutant import Mutant, all_mutants, mutant

NOT_OF_PASSES = {13, 21, 28, 29, 36, 42, 43, 44}
"""Classes about kernels, machine code, importers and errors: no program of the graph level has them (reach.md)."""

OWN = [name for name, cls in all_passes().items() if cls.__module__.startswith("gcomp.")]


def test_the_catalog_is_complete() -> None:
    wrong = [m for m in all_mutants().values() if not m.right]
    right = [m for m in all_mutants().values() if m.right]
    assert len(wrong) >= 100
    assert len(right) >= 20
    assert {m.target for m in wrong} >= {m.target for m in right}
    load_judges()
    assert {m.target for m in all_mutants().values()} <= JUDGES.keys()
    assert all(m.about and m.bug_classes for m in wrong)


def test_named_mutants_are_of_every_class_that_applies() -> None:
    of_passes = [m for m in all_mutants().values() if m.target in OWN and not m.right]
    assert CLASSES.keys() - NOT_OF_PASSES <= {c for m in of_passes for c in m.bug_classes}


def test_every_pass_has_mutants() -> None:
    """Of its source, which nobody writes; of a new pass too."""
    root = Path(__file__).resolve().parents[3]
    mutated = {module for folder in FOLDERS if folder.is_passes for module in folder.modules(root)}
    assert {all_passes()[name].__module__ for name in OWN} <= mutated


def test_words_are_found_whatever_local_variables_are_called() -> None:
    """Of a function whose variables have other names now: the mistake is the same, in its own names."""
    source = """
def total(values, scale=1):
    found = [v * scale for v in values if v.size != 1]  # none of one
    return sum(found, start=scale) + scale.found
"""
    names = {"values": "given", "scale": "factor", "found": "products", "v": "one"}
    renamed = re.sub(r"(?<!\.)\b(values|scale|found|v)\b", lambda word: names[word[0]], source)
    assert renamed != source
    for old, new in (
        ("v * scale", "v + scale"),
        ("if v.size != 1]", "if v.size != 2 and len(v)]"),
        ("found = [v  *  scale for v in", "found = [scale for v in"),
        ("sum(found, start=scale)", "max(found, default=scale)"),
        ("return sum(found, start=scale) + scale.found", "return scale.found\n"),
    ):
        expected = matching.edited(source, old, new)
        assert expected != source
        assert matching.edited(renamed, old, new) == re.sub(
            r"(?<!\.)\b(values|scale|found|v)\b", lambda word: names[word[0]], expected
        )


def test_a_changed_function_has_the_names_of_its_own() -> None:
    """Through `edits.change`: a function written with other names takes the edit, and does what it says."""

    def less(left: int, right: int) -> bool:
        return left < right

    edits.change(less, "x < y", "y < x")
    assert less(2, 1) and not less(1, 2)


def test_words_that_are_not_there_once_are_refused() -> None:
    source = "def f(a, b):\n    return a - b, b - a, len(a)\n"
    with pytest.raises(LookupError, match="occurs 2 times"):
        matching.edited(source, "x - y", "y - x")
    with pytest.raises(LookupError, match="occurs 0 times"):
        matching.edited(source, "a - a", "a")
    with pytest.raises(LookupError, match="occurs 0 times"):
        matching.edited(source, "sum(a)", "a")

    def twice(a: int) -> int:
        return a + a

    with pytest.raises(LookupError, match=r"names that .* has not: another"):
        edits.change(twice, "a + a", "a + another")


def test_every_mutant_can_be_applied() -> None:
    left = [*all_mutants().values()]
    while left:
        # Where two change the same words, the second one waits for another process.
        refused = _applied_together(left)
        assert len(refused) < len(left), refused
        left = [m for m in left if m.name in refused]


def _applied_together(chosen: Sequence[Mutant]) -> dict[str, str]:
    """Apply mutants one after the other in a process of their own; those that could not be, and why."""
    reader, writer = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        refused: dict[str, str] = {}
        edits._forget = lambda: None  # nothing runs here, so that caches may hold what was
        for one in chosen:
            before = {} if edits.edits_only(one) else _functions()
            try:
                one.apply()
            except Exception as error:
                refused[one.name] = f"{type(error).__name__}: {error}"
            before, changed = _functions() if before else {}, before
            if other := [".".join(k) for k, f in before.items() if k in changed and not _as_callable(f, changed[k])]:
                refused[one.name] = f"takes other arguments than what it stands for: {', '.join(other)}"
        writer.send(refused)
        os._exit(0)
    refused = reader.recv()
    os.waitpid(child, 0)
    return refused


def _functions() -> dict[tuple[str, ...], FunctionType]:
    """The functions of gcomp's modules and of their classes."""
    found: dict[tuple[str, ...], FunctionType] = {}
    for module, loaded in list(sys.modules.items()):
        if not module.startswith("gcomp."):
            continue
        for name, value in list(vars(loaded).items()):
            if isinstance(value, FunctionType):
                found[module, name] = value
            elif isinstance(value, type) and value.__module__ == module:
                inner = [(n, f) for n, f in vars(value).items() if isinstance(f, FunctionType)]
                found |= {(module, name, n): f for n, f in inner}
    return found


def _as_callable(new: FunctionType, old: FunctionType) -> bool:
    """Whether a function can be called with the positional arguments of another: a crash at each call says nothing."""
    if new is old:
        return True
    least, most = _positional(new)
    return least <= _positional(old)[0] and _positional(old)[1] <= most


def _positional(function: FunctionType) -> tuple[float, float]:
    """The fewest and the most positional arguments."""
    parameters = inspect.signature(function).parameters.values()
    own = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return sum(p.default is p.empty for p in own), float("inf") if many else len(own)


def test_a_name_is_taken_once_and_classes_are_known() -> None:
    name = next(iter(all_mutants()))
    with pytest.raises(ValueError, match="two mutants"):
        mutant(name, "cse", about="again")
    with pytest.raises(ValueError, match="no classes"):
        mutant("never", "cse", about="of a class that there is not", classes=(99,))


def test_a_mutant_is_killed_and_a_control_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in (("FOR_PASS", 20), ("PER_RULE", 1)):
        monkeypatch.setattr(passes, name, few)
    passes.corpus.cache_clear()
    chosen = [all_mutants()["guard-the-wrong-way"], all_mutants()["guard-products-only"]]
    results, _ = run.run_seed(0, chosen, 1, run.Console(quiet=True), run.Kept(None, reducing=False))
    killed, alive = (results[m.name, 0] for m in chosen)
    assert killed.right(chosen[0])
    assert isinstance(killed.kill, Kill)
    assert killed.kill.failure is not None
    assert killed.kill.failure.rule == "guard-max-shift"
    assert alive.right(chosen[1])
    assert alive.tried == len(passes.corpus("guard-max-shift", 0).cases)
    passes.corpus.cache_clear()
    assert Survival(3).tried == 3
