"""Runs the published bugs: each must be found by its command within a minute.

    python -m tests.mutants.published [NAME] [--seconds 60] [--seed N] [--jobs 1] [--results FILE] [--write]

Without `--seed` it comes from the clock. `--write` writes docs/generated/published_bugs.md. The exit code is 1 where
one is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from tests.mutants.front_doors.copies import copies
from tests.mutants.front_doors.doors import Scratch
from tests.mutants.front_doors.folders import is_open
from tests.mutants.front_doors.trying import Controls, ask
from tests.mutants.published.catalog import Published, published

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "generated" / "published_bugs.md"


@dataclass(frozen=True)
class Finding:
    """What became of one: `how` it was found (empty where it was not), on how many programs, in how many seconds."""

    name: str
    how: str
    said: str
    programs: int
    seconds: float


def find(scratch: Scratch, controls: Controls, bug: Published, seed: int, seconds: float) -> Finding:
    """Ask the bug's command. Of a pass of its own nothing is known without it; of an edit, what fails already counts
    for nothing."""
    if bug.edit is None:
        answer = scratch.ask(bug.door, seconds, seed)
        key, said = next(iter(answer.failures.items()), ((), answer.said.strip().splitlines()[-1:]))
        how = key[0] if key else ""
        message = said.strip().splitlines() if isinstance(said, str) else said
        return Finding(bug.name, how, " ".join(message)[:300], answer.tried, round(answer.seconds, 1))
    module, old, new = bug.edit
    source = (scratch.root / f"{module.replace('.', '/')}.py").read_text("utf-8")
    if source.count(old) != 1:
        raise LookupError(f"{bug.name}: {old!r} occurs {source.count(old)} times in {module}")
    with scratch.changed({module: source.replace(old, new)}):
        found, answer = ask(scratch, controls, bug.door, seed, seconds)
    how, said = found or ("", "")
    return Finding(bug.name, how, said[:300], answer.tried, round(answer.seconds, 1))


def main() -> int:
    """Run them, and say which were missed."""
    options = _options()
    console = Console(stderr=True)
    bugs = [bug for bug in published() if options.name in bug.name and is_open(bug.door)]
    console.print(f"seed {options.seed}")
    findings: dict[str, Finding] = {}
    if options.results and options.results.exists():
        rows = map(json.loads, options.results.read_text("utf-8").splitlines())
        findings = {row["name"]: Finding(**row) for row in rows}
    rest = [bug for bug in bugs if bug.name not in findings]
    for finding in _found(rest, options.seed, options.seconds, options.jobs, console):
        findings[finding.name] = finding
        if options.results:
            with options.results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(finding)) + "\n")
    ours = [findings[bug.name] for bug in bugs]
    for finding in ours:
        print(f"{finding.name}: {finding.how or 'MISSED'} ({finding.programs} programs, {finding.seconds:g} s) "  # noqa: T201
              f"{finding.said[:100]}")  # fmt: skip
    found = sum(bool(finding.how) for finding in ours)
    print(f"{found} of {len(ours)} found")  # noqa: T201
    if options.write:
        PAGE.write_text("\n".join(_page(bugs, findings, options.seed, options.seconds)) + "\n", "utf-8")
    return 0 if found == len(ours) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="", help="only those whose names contain this")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, for each (60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the commands (of the clock)")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time (1)")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="keep findings there, and go on from those that are"
    )
    parser.add_argument("--write", action="store_true", help="write docs/generated/published_bugs.md")
    options = parser.parse_args()
    if options.write and options.name:
        parser.error("--write needs all of them")
    return options


def _found(bugs: Sequence[Published], seed: int, seconds: float, jobs: int, console: Console) -> Iterator[Finding]:
    with copies("published-", jobs) as made:

        def work(scratch: Scratch, bug: Published) -> Finding:
            return find(scratch, made.controls, bug, seed, seconds)

        for finding, _ in made.answers(bugs, work, "bugs", console):
            yield finding


def _page(bugs: Sequence[Published], findings: dict[str, Finding], seed: int, seconds: float) -> Iterator[str]:
    run = [bug for bug in bugs if bug.name in findings]
    found = sum(bool(findings[bug.name].how) for bug in run)
    yield f"""\
# Published bugs of other compilers

Generated by `python -m tests.mutants.published --write`; do not edit.

Wrong rewrites that were published, in trackers of other compilers, said again in gcomp: as a pass in a file
(`tests/mutants/published/bugs`), which `gcomp fuzz --pass NAME --load FILE` is asked about, or as a few other words in
gcomp's own source (`tests/mutants/published/catalog.py`). Each must be found within {seconds:g} seconds of the
processor.

**{found} of {len(run)} that were run are found**, seed {seed}; {len(published()) - len(run)} were not run.
"""
    yield "| bug | project | what it does | found | programs | seconds | published |"
    yield "|---|---|---|---|---|---|---|"
    for bug in published():
        finding = findings.get(bug.name, Finding(bug.name, "not run", "", 0, 0.0))
        links = ", ".join(f"[{_short(source)}]({source})" for source in bug.sources)
        about = bug.about.replace("|", "\\|")
        cells = [bug.name, bug.project, about, finding.how or "**missed**", str(finding.programs),
                 f"{finding.seconds:.0f}", links]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def _short(source: str) -> str:
    parts = source.removeprefix("https://github.com/").split("/")
    return f"{parts[1]}#{parts[-1]}"


if __name__ == "__main__":
    sys.exit(main())
