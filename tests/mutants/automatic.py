"""Automatic mutants of gcomp/passes, judged by the suite: changes of `tests.mutants.changes`, tried by tests.

    python -m tests.mutants.automatic [--sample 300] [--seed 0] [--jobs 1] [--results FILE] [--write]

Each is tried in a process of its own: first the textual tests of all passes, then the property suite that judges named
mutants, then the unit tests of passes. With `--results` a run goes on where another ended, and tries what was alive
again. `tests/mutants/equivalent.py` says of which changes it is known that they make no difference. What the commands
find by themselves, of all that transforms, `tests.mutants.front_doors` measures.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from rich.console import Console
from rich.progress import track

import gcomp.passes
from gcomp.passes.registry import all_passes
from gcomp.testing.filetests import FileRun, runs_in
from gcomp.testing.workers import Died, Hung, Limits, run_tasks
from tests.mutants.changes import Change, changes
from tests.mutants.equivalent import why_equivalent
from tests.mutants.judges import JUDGES, PREPARE, Kill, load_judges
from tests.mutants.judges.passes import step_of
from tests.mutants.mutant import Mutant

ROOT = Path(gcomp.passes.__file__).parent
TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "generated" / "suite_mutants.md"
COMMAND = "tests.mutants.automatic"
FOLDERS = ("graph", "convert", "raising")

LIMITS, CPU_SECONDS = Limits(1800.0, 4 << 30), 300
"""Of one mutant. What never ends is ended by the processor's time, which does not depend on what else runs. One
that lives takes a minute or two of it."""


def mutants() -> Iterator[Change]:
    """All automatic mutants of all passes and the pattern driver."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("[a-z]*.py"))]
    for path in (*files, ROOT / "rewriting.py"):
        module = ".".join(("gcomp", "passes", *path.relative_to(ROOT).with_suffix("").parts))
        yield from changes(module, path.read_text("utf-8"))


def _why(mutant: Change) -> str | None:
    """Why it is no mistake; None where it is one, or nobody knows."""
    return why_equivalent(mutant.module, mutant.before, mutant.after)


# ---- one mutant -----------------------------------------------------------------------------------------------------


def apply(mutant: Change) -> None:
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
    step_of.cache_clear()  # the judge keeps passes as they were


def _run(source: str, module: ModuleType) -> None:
    exec(compile(source, str(module.__file__), "exec"), vars(module))  # noqa: S102 - that is the point


def try_mutant(seed: int, mutant: Change) -> str | None:
    """What kills a mutant; None for nothing."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_SECONDS,) * 2)
    try:
        apply(mutant)
    except Exception as error:  # a module that cannot be imported is found at once
        return f"import: {type(error).__name__}"
    own = passes_of(mutant.module)
    for path, number, run in _file_runs(own):
        try:
            run.run(path)
        except (Exception, AssertionError):
            return f"filetest: {path.parent.name}/{path.name}, run {number}"
    for name in own:
        found = JUDGES[name](seed, Mutant("automatic", "", (), name, lambda: None))
        if isinstance(found, Kill):
            return f"property: {found.message.splitlines()[0][:80]}"
    return _unit_tests()


def passes_of(module: str) -> list[str]:
    """The passes of a module; canonicalize, which has most rules, for the pattern driver."""
    return [name for name, cls in all_passes().items() if cls.__module__ == module] or ["canonicalize"]


def _file_runs(own: Sequence[str]) -> list[tuple[Path, int, FileRun]]:
    """The textual tests that run passes, those of a mutant's own ones first."""
    paths = sorted((TESTS / "filetests").glob("*/*.mlir"))
    runs = [(path, i, run) for path in paths for i, run in enumerate(runs_in(path.read_text("utf-8")))]
    with_passes = [one for one in runs if "-p" in one[2].options]
    return sorted(with_passes, key=lambda one: not any(name in " ".join(one[2].options) for name in own))


class _FirstFailure:
    """A pytest plugin that remembers which test failed."""

    name = "that none could be collected"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.name = report.nodeid.rpartition("/")[2]


def _unit_tests() -> str | None:
    first = _FirstFailure()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        places = [str(TESTS / "unit" / "passes"), str(TESTS / "unit" / "test_writing_passes.py")]
        status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *places], [first])
    return None if status == 0 else f"unit test: {first.name}"


# ---- all ------------------------------------------------------------------------------------------------------------

Results = dict[Change, str | None]
"""What killed each; None for nothing."""


def main() -> None:
    """Try a sample, and print what survives."""
    parser = argparse.ArgumentParser(description="automatic mutants of gcomp/passes")
    parser.add_argument("--sample", type=int, default=300, help="how many (300; 0 for all)")
    parser.add_argument("--seed", type=int, default=0, help="which (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--results", type=Path, help="a file that keeps what was killed, for a run that goes on")
    parser.add_argument("--write", action="store_true", help="write docs/generated/suite_mutants.md")
    options = parser.parse_args()
    console = Console(stderr=True)
    population = list(mutants())
    # The first of a larger sample are a smaller one.
    chosen = Random(options.seed).sample(population, len(population))[: options.sample or None]
    results = _kept(options.results, chosen)
    rest = [mutant for mutant in chosen if mutant not in results and _why(mutant) is None]
    console.print(f"{len(chosen)} of {len(population)} mutants, {len(rest)} to be tried")
    load_judges()
    for name in track(sorted({n for m in rest for n in passes_of(m.module)}), "programs", console=console):
        PREPARE[name](options.seed)
    start = time.monotonic()
    tasks = run_tasks(partial(try_mutant, options.seed), rest, options.jobs, LIMITS, per_worker=1)
    for mutant, found in track(tasks, "mutants", total=len(rest), console=console):
        results[mutant] = _ended(found)
        if options.results:
            with options.results.open("a") as stream:
                stream.write(json.dumps([mutant.key, results[mutant]]) + "\n")
        if results[mutant] is None:
            console.print(
                f"alive: {mutant.module}:{mutant.line}\n  - {mutant.before}\n  + {mutant.after}", markup=False
            )
    results = {mutant: results.get(mutant) for mutant in chosen}
    out = Console(soft_wrap=True, highlight=False, markup=False)
    out.print("\n".join(_summary(results, len(population))), f"\n{time.monotonic() - start:.0f} s")
    for mutant in _alive(results):
        if _why(mutant) is None:
            out.print(mutant)
    if options.write:
        PAGE.write_text(_page(results, len(population), options.seed), "utf-8")


def _kept(path: Path | None, chosen: Sequence[Change]) -> Results:
    """What earlier runs killed of these."""
    if path is None or not path.exists():
        return {}
    known: Mapping[str, str | None] = dict(json.loads(line) for line in path.read_text("utf-8").splitlines())
    return {mutant: how for mutant in chosen if (how := known.get(mutant.key)) is not None}


def _ended(found: str | Died | Hung | None) -> str | None:
    if isinstance(found, Hung) or (isinstance(found, Died) and found.detail.startswith(("SIGXCPU", "SIGKILL"))):
        return "time"
    return f"crash: {found.detail}" if isinstance(found, Died) else found


# ---- the page -------------------------------------------------------------------------------------------------------


def _alive(results: Results) -> list[Change]:
    return sorted((m for m, how in results.items() if how is None), key=lambda m: (m.module, m.line))


def _summary(results: Results, count: int) -> list[str]:
    alive = _alive(results)
    same, killed = sum(_why(m) is not None for m in alive), len(results) - len(alive)
    return [
        f"Cosmic Ray's operators make {count} different changes to the passes of gcomp and the pattern driver. Of",
        f"{len(results)} of them, drawn at random, {killed} are killed and {len(alive)} are alive. {same} of these are",
        f"no mistakes, and below is why; of the {len(results) - same} others, "
        f"**{killed / max(1, len(results) - same):.1%}** are killed.",
    ]


def _page(results: Results, count: int, seed: int) -> str:
    how = Counter((found or "alive").partition(":")[0] for found in results.values())
    alive = _alive(results)
    return "\n".join(
        [
            "# Automatic mutants of passes, and the suite",
            "",
            f"Generated by `python -m {COMMAND} --sample {len(results)} --seed {seed} --write` "
            "(`make suite-mutants`); do not edit.",
            "",
            *_summary(results, count),
            "",
            "| found first by | mutants |",
            "|---|---|",
            *(f"| {name} | {how[name]} |" for name in sorted(how)),
            "",
            "## Alive, and not explained",
            "",
            *_table("place", "before", "after", rows=[_row(m) for m in alive if _why(m) is None]),
            "",
            "## Alive, and no mistakes",
            "",
            *_table("place", "before", "after", "why it makes no difference",
                    rows=[[*_row(m), why] for m in alive if (why := _why(m)) is not None]),
            "",
        ]
    )  # fmt: skip


def _row(mutant: Change) -> list[str]:
    place = f"{mutant.module.removeprefix('gcomp.passes.')}:{mutant.line}"
    return [place, *(f"`{text.replace('|', chr(92) + '|')}`" for text in (mutant.before, mutant.after))]


def _table(*head: str, rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return ["None."]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
