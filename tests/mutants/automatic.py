"""Automatic mutants of gcomp/passes: a comparison turned round, a number off by one, a condition negated, a loop cut.

    python -m tests.mutants.automatic [--sample 300] [--seed 0] [--jobs 2] [--write]

Cosmic Ray makes them. Each is tried in a process of its own: first the textual tests of all passes, then the property
suite that judges named mutants, then the unit tests of passes. What changes only types and texts is left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from rich.console import Console
from rich.progress import track

import gcomp.passes
from gcomp.passes.registry import all_passes
from gcomp.testing.filetests import runs_in
from gcomp.testing.workers import Died, Hung, Limits, run_tasks
from tests.mutants.judges import JUDGES, PREPARE, Kill, load_judges
from tests.mutants.mutant import Mutant

ROOT = Path(gcomp.passes.__file__).parent
TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "automatic_mutants.md"

OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add", "ReplaceBinaryOperator_Mul_Add",
    "ReplaceBinaryOperator_FloorDiv_Mul", "ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd",
    "ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq", "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt", "ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is", "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer",
    "ZeroIterationForLoop",
)  # fmt: skip
LIMITS = Limits(120.0, 4 << 30)


@dataclass(frozen=True)
class Automatic:
    """One changed source: the module, the operator, the lines that differ, and the whole text."""

    module: str
    operator: str
    line: int
    before: str
    after: str
    source: str


def mutants() -> Iterator[Automatic]:
    """All automatic mutants of all passes and the pattern driver."""
    files = [*sorted((ROOT / "graph").glob("[a-z]*.py")), *sorted((ROOT / "convert").glob("[a-z]*.py"))]
    for path in (*files, ROOT / "rewriting.py"):
        source = path.read_text("utf-8")
        module = ".".join(("gcomp", "passes", *path.relative_to(ROOT).with_suffix("").parts))
        meaning, seen = _meaning(source), set[str]()
        for name in OPERATORS:
            operator, occurrence = get_operator(f"core/{name}")(), 0
            while (changed := mutate_code(source, operator, occurrence)) is not None:
                occurrence += 1
                if changed not in seen and _meaning(changed) != meaning:
                    seen.add(changed)
                    yield _described(module, name, source, changed)


def _described(module: str, operator: str, source: str, changed: str) -> Automatic:
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    line, (before, after) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return Automatic(module, operator, line, before.strip(), after.strip(), changed)


def _meaning(source: str) -> str:
    """A module without annotations and the texts of messages: what runs."""
    try:
        return ast.dump(_Bare().visit(ast.parse(source)))
    except SyntaxError:
        return ""


class _Bare(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        # That lengths agree is checked, and they do.
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        if isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar"):
            node.args[0] = ast.Constant(None)
        return self.generic_visit(node)


# ---- one mutant -----------------------------------------------------------------------------------------------------


def apply(mutant: Automatic) -> None:
    """Run the changed source in its module, and let the registry see its classes."""
    modules = [import_module(cls.__module__) for cls in all_passes().values()]
    changed = import_module(mutant.module)
    _run(mutant.source, changed)
    if changed not in modules:
        # All passes hold names of the pattern driver.
        for module in modules:
            _run(Path(str(module.__file__)).read_text("utf-8"), module)
    for name, cls in list(all_passes().items()):
        all_passes()[name] = getattr(import_module(cls.__module__), cls.__name__)


def _run(source: str, module: ModuleType) -> None:
    exec(compile(source, str(module.__file__), "exec"), vars(module))  # noqa: S102 - that is the point


def try_mutant(seed: int, mutant: Automatic) -> str | None:
    """What kills a mutant; None for nothing."""
    try:
        apply(mutant)
    except Exception as error:  # a module that cannot be imported is found at once
        return f"import: {type(error).__name__}"
    for path in sorted((TESTS / "filetests").glob("*/*.mlir")):
        for number, run in enumerate(runs_in(path.read_text("utf-8"))):
            try:
                run.run(path)
            except (Exception, AssertionError):
                return f"filetest: {path.parent.name}/{path.name}, run {number}"
    own = [name for name, cls in all_passes().items() if cls.__module__ == mutant.module] or ["canonicalize"]
    for name in own:
        found = JUDGES[name](seed, Mutant("automatic", "", (), name, lambda: None))
        if isinstance(found, Kill):
            return f"property: {found.message.splitlines()[0][:80]}"
    return _unit_tests()


def _unit_tests() -> str | None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        places = [str(TESTS / "unit" / "passes"), str(TESTS / "unit" / "test_writing_passes.py")]
        status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *places])
    return None if status == 0 else "unit tests"


# ---- all ------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Try a sample, and print what survives."""
    parser = argparse.ArgumentParser(description="automatic mutants of gcomp/passes")
    parser.add_argument("--sample", type=int, default=300, help="how many (300; 0 for all)")
    parser.add_argument("--seed", type=int, default=0, help="which (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--write", action="store_true", help="write docs/automatic_mutants.md")
    options = parser.parse_args()
    console = Console(stderr=True)
    known = list(mutants())
    chosen = known if not options.sample else Random(options.seed).sample(known, min(options.sample, len(known)))
    console.print(f"{len(chosen)} of {len(known)} mutants")
    load_judges()
    for name in track(all_passes(), "programs", console=console):
        PREPARE[name](options.seed)
    start, results = time.monotonic(), dict[Automatic, str | None]()
    tasks = run_tasks(partial(try_mutant, options.seed), chosen, options.jobs, LIMITS, per_worker=1)
    for mutant, found in track(tasks, "mutants", total=len(chosen), console=console):
        results[mutant] = "time" if isinstance(found, Hung) else "crash" if isinstance(found, Died) else found
    seconds = time.monotonic() - start
    alive = sorted((m for m, how in results.items() if how is None), key=lambda m: (m.module, m.line))
    out = Console(soft_wrap=True, highlight=False, markup=False)
    for mutant in alive:
        out.print(f"{mutant.module}:{mutant.line} {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}")
    killed = len(results) - len(alive)
    out.print(f"{killed} of {len(results)} killed ({killed / len(results):.1%}), {seconds:.0f} s")
    if options.write:
        PAGE.write_text(_page(results, len(known), options.seed), "utf-8")


def _page(results: dict[Automatic, str | None], count: int, seed: int) -> str:
    how = [(found or "alive").partition(":")[0] for found in results.values()]
    killed = sum(found is not None for found in results.values())
    lines = [
        "# Automatic mutants of passes",
        "",
        f"Generated by `python -m tests.mutants.automatic --sample {len(results)} --seed {seed} --write`; do not edit.",
        "",
        f"Cosmic Ray's operators make {count} different changes to gcomp/passes; of a sample of {len(results)},",
        f"{killed} are killed: **{killed / len(results):.1%}**. The first that finds a mutant counts:",
        "",
        "| found by | mutants |",
        "|---|---|",
        *(f"| {name} | {how.count(name)} |" for name in sorted(set(how))),
        "",
        "## Alive",
        "",
        "| place | before | after |",
        "|---|---|---|",
        *(
            f"| {m.module}:{m.line} | `{_cell(m.before)}` | `{_cell(m.after)}` |"
            for m, found in sorted(results.items(), key=lambda item: (item[0].module, item[0].line))
            if found is None
        ),
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
