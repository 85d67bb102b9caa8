"""Architectures of transformers, small and random, through torch.export without a file, compiled and compared.

    python -m tests.conformance.torch_architectures [NAME,NAME...] [--jobs N] [--limit SECONDS] [--write]

Each model of `architecture_table` is exported twice, with the sizes that have names as dynamic dims and with all sizes
fixed, compiled, and run at the sizes of the export, where they are dynamic at others too. The peer is the module itself
in float32; a result is right by the bounds of `python -m tests.conformance.architectures`. Exporting and checking run
in worker processes with a time limit. `--write` renews docs/generated/torch_architectures.md. Needs torch and
transformers; without them nothing is checked, and the exit status is 77.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from tests.conformance import target_page
from tests.conformance.architecture_check import Outcome
from tests.conformance.architecture_table import ARCHITECTURES, Architecture, matching
from tests.conformance.architectures import ROOT, SKIPPED, first_cells, run_all, versions, worker

NEEDED = ("torch", "transformers")
MODES = ("dynamic", "static")
PAGE = ROOT / "docs" / "generated" / "torch_architectures.md"


def run(arch: Architecture, limit: float, target: str) -> list[Outcome]:
    """The outcomes of both modes, each in a worker of its own."""
    outcomes: list[Outcome] = []
    for mode in MODES:
        printed, why = worker("torch_architecture_check", [arch.name, mode, target], limit)
        crash = Outcome(arch.name, mode, "exported", f"crash: {why}")
        outcomes.append(crash if why else Outcome(**json.loads(printed.splitlines()[-1])))
    return outcomes


def refused(outcome: Outcome) -> bool:
    """Whether gcomp said that it does not do this, and what."""
    return outcome.why.startswith("UnsupportedError")


# ---- reports ---------------------------------------------------------------------------------------------------------


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line: architectures that are right in every mode that torch exports, and the counts of each mode."""
    exported = [o for o in outcomes if o.stage != "missing"]
    names = list(dict.fromkeys(o.name for o in exported))
    right = [n for n in names if all(o.match_dims for o in exported if o.name == n)]
    wrong = sum(not o.match_dims and not refused(o) for o in exported)
    parts = (
        f"{m} {sum(o.match_dims for o in exported if o.exporter == m)} of {sum(o.exporter == m for o in exported)}"
        for m in MODES
    )
    others = f"{sum(map(refused, exported))} exports refused by name, {wrong} wrong or crashed"
    return f"{len(right)} of {len(names)} architectures that torch exports match ({', '.join(parts)}; {others})"


def _cells(outcome: Outcome) -> Iterator[str]:
    yield from first_cells(outcome)
    both = outcome.against_float64, outcome.peer_against_float64
    yield " / ".join(f"{error:.1e}" for error in both if error is not None)
    yield "; ".join(filter(None, (textwrap.shorten(_plain(outcome.why), 300, placeholder=" ..."), *outcome.notes)))


def _plain(why: str) -> str:
    """A reason without the folders of installed packages."""
    return " ".join(word.rpartition("site-packages/")[2] for word in why.split())


COLUMNS = (
    "architecture",
    "sizes",
    "imported",
    "compiled",
    "matched",
    "error",
    "from float64: gcomp / torch",
    "remarks",
)


def page(outcomes: Sequence[Outcome]) -> str:
    """The page of the documentation."""
    used = ", ".join(f"{name} {version}" for name, version in versions(NEEDED).items())
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in _cells(o)) + " |" for o in outcomes]
    return "\n".join(
        (
            "# Architectures through torch.export",
            "",
            "Written by `python -m tests.conformance.torch_architectures --write`, with " + used + ".",
            "",
            "These are small random models of transformers' architectures, exported by `torch.export.export` with",
            "dynamic and with fixed sizes, compiled without a file between, and run at the sizes of the export (sizes",
            "0) and, where they are dynamic, at others (sizes 1). *Error* is the greatest difference from the module's",
            "own result relative to the output's scale: 2e-5 is allowed in f32, or a distance from float64 of at most",
            "twice torch's own. Rows that are empty after the sizes are models that torch.export itself refuses.",
            "",
            f"**{summary(outcomes)}.**",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + " --- |" * len(COLUMNS),
            *rows,
            "",
        )
    )


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print the table and the summary line."""
    table = Table(*COLUMNS)
    for outcome in outcomes:
        style = None if outcome.match_dims else "dim" if outcome.stage == "missing" else "red"
        table.add_row(*_cells(outcome), style=style)
    console.print(table)
    console.print(summary(outcomes))


def main() -> int:
    """Run the architectures whose names contain a part of the argument."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="parts of names, separated by commas")
    parser.add_argument("--target", default=target_page.OWN_PAGES, help="what gcomp compiles for")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one worker")
    parser.add_argument("--write", action="store_true", help="renew docs/generated/torch_architectures.md")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 240)
    missing = [name for name, version in versions(NEEDED).items() if version is None]
    if missing:
        console.print(f"SKIPPED, no architecture was checked: {', '.join(missing)} not installed", style="bold yellow")
        return SKIPPED
    chosen = list(matching(options.pattern))
    outcomes = run_all(chosen, lambda arch: run(arch, options.limit, options.target), options.jobs, console)
    show(outcomes, console)
    whole = options.write and len(chosen) == len(ARCHITECTURES)
    if whole and options.target == "cpu":
        target_page.renew_architectures("Architectures from torch.export", "torch_architectures", outcomes)
    elif whole and options.target == target_page.OWN_PAGES:
        PAGE.write_text(page(outcomes), encoding="utf-8")
    return 0 if all(o.match_dims or o.stage == "missing" or refused(o) for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
