"""Draws mutants of everything that transforms, and asks the front doors about each.

    python -m tests.mutants.front_doors [--sample 30] [--seeds 3] [--seed N] [--seconds 60] [--jobs 1]
                                        [--folder NAME] [--results FILE] [--write]

Without `--seed` the seeds come from the clock, so that they are new ones. With `--results` a run goes on where another
ended, and `--write` writes docs/generated/automatic_mutants.md from all that is in the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from rich.console import Console

from tests.mutants.changes import Change, Sites
from tests.mutants.front_doors import page
from tests.mutants.front_doors.copies import copies
from tests.mutants.front_doors.doors import STARTING, Scratch
from tests.mutants.front_doors.folders import FOLDERS, Folder
from tests.mutants.front_doors.trying import KILLED, Verdict, try_mutant

ROOT = Path(__file__).resolve().parents[3]
Drawn = tuple[int, Folder, Change]


def main() -> int:
    """Draw, ask, and say what came of it."""
    options = _options()
    console = Console(stderr=True)
    seeds = [options.seed + i for i in range(options.seeds)]
    console.print(f"seeds {', '.join(map(str, seeds))}")
    folders = [folder for folder in FOLDERS if folder.doors and options.folder in (None, folder.name)]
    sites = _sites(folders, options.results)
    drawn = [one for seed in seeds for one in islice(draw(folders, sites, seed), options.sample)]
    known = _read(options.results)
    rest = [one for one in drawn if (one[0], one[2].key) not in known]
    console.print(f"{len(drawn)} of {sum(s.total for s in sites.values())} changes, {len(rest)} to be tried")
    for verdict in _tried(rest, options.seconds, options.jobs, console):
        if verdict.how == KILLED:  # it is tried again when the run goes on
            continue
        known[verdict.seed, verdict.key] = verdict
        if options.results:
            with options.results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(verdict.to_json()) + "\n")
    ours = [known[seed, change.key] for seed, _, change in drawn if (seed, change.key) in known]
    print(page.summary(ours))  # noqa: T201
    if options.write:
        page.write(list(known.values()), len(known) + len(drawn) - len(ours), options.seconds, STARTING)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=30, help="how many of each seed (30)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed (of the clock)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds (1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each mutant, shared by its doors (60)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (1)")
    parser.add_argument("--folder", help="only of this folder, as autodiff")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="keep verdicts there, and go on from those that are"
    )
    parser.add_argument("--write", action="store_true", help="write docs/generated/automatic_mutants.md")
    return parser.parse_args()


def draw(folders: Sequence[Folder], sites: dict[str, Sites], seed: int) -> Iterator[Drawn]:
    """Mutants without end: of the folders by turns, in an order of the seed's own."""
    random = Random(seed)
    order = random.sample(folders, len(folders))
    streams = [(folder, sites[folder.name].drawn(random)) for folder in order]
    while True:
        for folder, stream in streams:
            for change in islice(stream, 1):
                yield seed, folder, change


def _sites(folders: Sequence[Folder], results: Path | None) -> dict[str, Sites]:
    """Where changes can be made in each folder; counts are kept beside the results."""
    kept = None if results is None else results.with_suffix(".sites.json")
    known: dict[str, list[int]] = json.loads(kept.read_text("utf-8")) if kept is not None and kept.exists() else {}
    sites = {folder.name: Sites.of(folder.modules(ROOT), known) for folder in folders}
    if kept is not None:
        kept.write_text(json.dumps(known), "utf-8")
    return sites


def _read(path: Path | None) -> dict[tuple[int, str], Verdict]:
    if path is None or not path.exists():
        return {}
    verdicts = [Verdict(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return {(verdict.seed, verdict.key): verdict for verdict in verdicts}


def _tried(rest: Sequence[Drawn], seconds: float, jobs: int, console: Console) -> Iterator[Verdict]:
    """The verdicts as they come, each mutant in a copy of the package that no other uses meanwhile."""
    with copies("front-doors-", jobs) as made:

        def work(scratch: Scratch, one: Drawn) -> Verdict:
            return try_mutant(scratch, made.controls, one[1], one[2], one[0], seconds)

        for verdict, progress in made.answers(rest, work, "mutants", console):
            if not verdict.is_found:
                text = f"alive: {verdict.module}:{verdict.line}\n  - {verdict.before}\n  + {verdict.after}"
                progress.console.print(text, markup=False, highlight=False)
            yield verdict
        for (command, seed), failures in made.controls.failures().items():
            console.print(f"without a change, gcomp {' '.join(command)} --seed {seed}: {list(failures)}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
