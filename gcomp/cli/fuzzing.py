"""`gcomp fuzz`."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gcomp.passes.registry import all_passes
from gcomp.testing.fuzz import Limits, Outcome, Plan, fuzz
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.keeping import load_outcome, save_outcome

_SHOWN = 8
_KEPT_SECONDS = 10.0
_LINE_SECONDS = 60.0
"""How often a log, which shows nothing that moves, is told how far the campaign is."""


def fuzz_command(plan: Plan, limits: Limits, seed: int, folder: Path, seconds: float, keep: Path | None = None) -> None:
    """Run a campaign, show how it goes, and write a case for each bug found. Exit status 1 if there is any.

    With `keep`, it goes on from the campaign of that file, and is written there.
    """
    console = Console(stderr=True)
    known = None if keep is None else load_outcome(keep, plan, seed)
    outcome = known or Outcome()
    shown = kept = outcome.seconds
    try:
        with Live(console=console, refresh_per_second=2, transient=True) as live:

            def report(now: Outcome) -> None:
                nonlocal outcome, shown, kept
                outcome = now
                live.update(_progress(now))
                if not console.is_terminal and now.seconds - shown >= _LINE_SECONDS:
                    shown = now.seconds
                    console.print(_progress(now), soft_wrap=True)
                if keep is not None and now.seconds - kept >= _KEPT_SECONDS:
                    kept = now.seconds
                    save_outcome(keep, now, plan, seed)

            outcome = fuzz(plan, limits, seed=seed, known=known, report=report)
    except KeyboardInterrupt:
        console.print("stopped")
    if keep is not None:
        save_outcome(keep, outcome, plan, seed)
    out = Console(soft_wrap=True, highlight=False)
    out.print(_tables(outcome, plan))
    for found in outcome.failures.values():
        out.print(f"\n{found.message}", markup=False)
        with console.status(f"reducing program {found.number}"):
            path = write_case(found, plan, folder, seconds=seconds)
        out.print(f"wrote {path} ({outcome.times[found.key]} programs show it)", markup=False)
    out.print(_closing(outcome), markup=False)
    if outcome.failures:
        raise typer.Exit(1)


def _closing(outcome: Outcome) -> str:
    seen = outcome.coverage
    counts = [f"{seen.programs} programs in {outcome.seconds:.0f} s ({outcome.rate:.3g} a second)"]
    counts.append(f"{seen.refused} without a reference answer")
    if seen.unsupported:
        counts.append(f"{seen.unsupported.total()} not supported by the target")
    if seen.deviations:
        counts.append(f"{seen.deviations.total()} that differ in known ways")
    counts.append(f"{outcome.failing} failures")
    line = ", ".join(counts)
    if seen.judged:
        line += f"; so programs of this generator fail with a rate below {outcome.bound:.1e} (95 % confidence)"
    return line


def _progress(outcome: Outcome) -> Group:
    lines = [Text(_closing(outcome)), Text(_reached(outcome))]
    lines += [
        Text(f"  {found.message.splitlines()[0]} (program {found.number})", style="red")
        for found in outcome.failures.values()
    ]
    return Group(*lines)


def _reached(outcome: Outcome) -> str:
    seen = outcome.coverage
    changed = sum(1 for name in seen.passes if seen.changed[name])
    return (
        f"reached {len(seen.ops)} pairs of op and element type, {len(seen.rules)} rewrites; "
        f"{changed} of {len(seen.passes)} passes changed something"
    )


def _tables(outcome: Outcome, plan: Plan) -> Group:
    seen = outcome.coverage
    passes = Table("pass", "ran", "changed something", title="Passes", title_justify="left")
    for name, count in sorted(seen.passes.items()):
        passes.add_row(name, str(count), str(seen.changed[name]))
    rare = sorted(seen.ops.items(), key=itemgetter(1))[:_SHOWN]
    parts: list[Table | Text] = [passes] if seen.passes else []
    parts.append(Text(_reached(outcome)))
    parts.append(Text("rarest: " + ", ".join(f"{name} ({count})" for name, count in rare)))
    for title, count in (("not supported", seen.unsupported), ("known deviations", seen.deviations)):
        if count:
            parts.append(Text(f"{title}: " + ", ".join(f"{name} ({n})" for name, n in count.most_common())))
    never = [name for name in (plan.passes or ()) if name in all_passes() and not seen.changed[name]]
    if never:
        parts.append(Text(f"never changed anything: {', '.join(never)}", style="yellow"))
    return Group(*parts)
