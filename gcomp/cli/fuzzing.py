"""`gcomp fuzz`."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gcomp.cli.arguments import Load
from gcomp.cli.options import load_files
from gcomp.errors import UsageError
from gcomp.passes.registry import all_passes
from gcomp.testing.fuzz import Limits, Outcome, Plan
from gcomp.testing.fuzz import fuzz as run_campaign
from gcomp.testing.fuzz.campaign import upper_bound
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.door import NOTHING_WRONG
from gcomp.testing.fuzz.doors import PASSES, door_of
from gcomp.testing.fuzz.keeping import load_outcome, save_outcome
from gcomp.testing.fuzz.source_lines import spans_of

_SHOWN = 8
FEW = 30
"""Fewer applications of a rewrite say little."""
_NAMED = 20
_KEPT_SECONDS = 10.0
_LINE_SECONDS = 60.0
"""How often a log, which shows nothing that moves, is told how far the campaign is."""


def fuzz_command(
    plan: Plan, limits: Limits, seed: int, folder: Path, seconds: float, keep: Path | None = None,
    only: int | None = None,
) -> None:  # fmt: skip
    """Run a campaign, show how it goes, and write a case for each bug found.

    Exit status 1 if there is any, and if a rewrite of a pass that was named was never applied, or no program ran the
    lines that it is about: nothing is known of these.

    With `keep`, it goes on from the campaign of that file, and is written there; with `only`, it is of one number.
    """
    console = Console(stderr=True)
    if plan.what != PASSES:
        console.print(f"fuzzing {plan.what}: {door_of(plan.what).summary}", markup=False, highlight=False)
    if plan.about is not None:
        console.print(_intent(plan), markup=False, highlight=False, soft_wrap=True)
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

            outcome = run_campaign(plan, limits, seed=seed, only=only, known=known, report=report)
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
    said = Console(stderr=True, soft_wrap=True, highlight=False)
    never = False if only is not None else (_say_reached if plan.about else _say_seldom)(outcome, plan, said)
    if outcome.failures or never:
        raise typer.Exit(1)


def _intent(plan: Plan) -> str:
    assert plan.about is not None
    judge = f"the pass {', '.join(plan.passes)}" if plan.passes else plan.target or plan.pipeline or plan.what
    return f"about {plan.about}: {len(plan.about.wanted)} lines that run; judged by {judge}"


def _say_reached(outcome: Outcome, plan: Plan, out: Console) -> bool:
    """Say how many programs ran the lines that the campaign is about, with a warning for few; whether none did."""
    seen = outcome.coverage
    text = f"{seen.reached} of {seen.looked} programs that were looked at run {plan.about}"
    style = "red" if not seen.reached else "yellow" if seen.reached < FEW else None
    out.print(("warning: " if style else "") + text, style=style, markup=False)
    if not seen.reached:
        out.print("  so nothing is known of it; try more (--minutes), or another judge (--pass, --target, --what)",
                  style="yellow", markup=False)  # fmt: skip
    return not seen.reached


def _say_seldom(outcome: Outcome, plan: Plan, out: Console) -> bool:
    """Warn of the rewrites of named passes that were hardly tried; whether one of them, or a pass, never was."""
    if not plan.named:
        return False
    seen = outcome.coverage
    seldom = seen.seldom(FEW)
    never = [name for name, count in seldom.items() if not count]
    if few := [f"{name} ({count})" for name, count in seldom.items() if count]:
        out.print(
            f"warning: fewer than {FEW} applications say little of: {', '.join(few)}", style="yellow", markup=False
        )
    if never:
        out.print(f"warning: never applied, so nothing is known of: {', '.join(never)}", style="red", markup=False)
    idle = [name for name in seen.passes if not seen.changed[name]]
    if idle:
        out.print(f"warning: no program was changed by: {', '.join(idle)}", style="red", markup=False)
    if never or idle:
        out.print("  try more programs (--minutes, --programs), or give the pass programs of yours with gcomp opt FILE "
                  "-p PASS --check-each", style="yellow", markup=False)  # fmt: skip
    return bool(never or idle)


def _closing(outcome: Outcome) -> str:
    seen = outcome.coverage
    counts = [f"{seen.programs} programs in {outcome.seconds:.0f} s ({outcome.rate:.3g} a second)"]
    counts.append(f"{seen.refused} without a reference answer")
    if seen.unsupported:
        counts.append(f"{seen.unsupported.total()} not supported by the target")
    if seen.deviations:
        counts.append(f"{seen.deviations.total()} that differ in known ways")
    counts.append(f"{outcome.failing} failures")
    if seen.looked:
        counts.insert(0, f"{seen.looked} programs looked at, {seen.reached} run the lines")
    line = ", ".join(counts)
    if outcome.systematic:
        line += "; stopped early, since the same failures came again and again and no other did"
    elif seen.judged:
        line += f"; so programs of this generator fail with a rate below {outcome.bound:.1e} (95 % confidence)"
    return line


def _progress(outcome: Outcome) -> Group:
    lines = [Text(_closing(outcome)), Text(_describe_reach(outcome))]
    lines += [
        Text(f"  {found.message.splitlines()[0]} (program {found.number})", style="red")
        for found in outcome.failures.values()
    ]
    return Group(*lines)


def case_command(plan: Plan, number: int, path: Path) -> None:
    """Judge one program, on the inputs that stand beside it. Exit status 1 if something is wrong."""
    if plan.what == PASSES:
        raise UsageError("--case asks for --what", fix="a case of passes runs by the command in its RUN line")
    door = door_of(plan.what)
    wrong = door.again(path, number)
    out = Console(soft_wrap=True, highlight=False)
    out.print(wrong or NOTHING_WRONG, markup=False)
    if wrong:
        raise typer.Exit(1)


def _describe_reach(outcome: Outcome) -> str:
    seen = outcome.coverage
    if not seen.passes:
        return f"reached {len(seen.ops)} pairs of op and element type"
    changed = sum(1 for name in seen.passes if seen.changed[name])
    return (
        f"reached {len(seen.ops)} pairs of op and element type, {len(seen.rules)} rewrites; "
        f"{changed} of {len(seen.passes)} passes changed something"
    )


def _tables(outcome: Outcome, plan: Plan) -> Group:
    seen = outcome.coverage
    passes = Table("pass", "programs", "changed", title="Passes", title_justify="left")
    for name, count in sorted(seen.passes.items()):
        passes.add_row(name, str(count), str(seen.changed[name]))
    rare = sorted(seen.ops.items(), key=itemgetter(1))[:_SHOWN]
    parts: list[Table | Text | Group] = [passes] if seen.passes else []
    if plan.named and seen.known:
        parts.append(_rewrites(outcome))
    parts.append(Text(_describe_reach(outcome)))
    parts.append(Text("rarest: " + ", ".join(f"{name} ({count})" for name, count in rare)))
    for title, count in (("not supported", seen.unsupported), ("known deviations", seen.deviations)):
        if count:
            parts.append(Text(f"{title}: " + ", ".join(f"{name} ({n})" for name, n in count.most_common())))
    if plan.what != PASSES:
        parts.append(_components(plan, outcome))
    never = [name for name in (plan.passes or ()) if name in all_passes() and not seen.changed[name]]
    if never and not plan.named:
        parts.append(Text(f"never changed anything: {', '.join(never)}", style="yellow"))
    return Group(*parts)


def _rewrites(outcome: Outcome) -> Table:
    """Each rewrite: how often it was applied, in how many programs, and what that says of it."""
    seen = outcome.coverage
    table = Table("rewrite", title="Rewrites", title_justify="left")
    for column in ("applied", "in programs", "failed", "failure rate below"):
        table.add_column(column, justify="right")
    for name in sorted(seen.known, key=lambda name: (seen.applications[name], name)):
        programs, failed = seen.rules[name], outcome.failed_in(name)
        bound = f"{upper_bound(failed, programs):.1e}" if programs else "unknown"
        style = "red" if failed or not programs else "yellow" if seen.applications[name] < FEW else ""
        table.add_row(name, str(seen.applications[name]), str(programs), str(failed), bound, style=style)
    return table


def _components(plan: Plan, outcome: Outcome) -> Group:
    """What a door is made of: how many programs each was held to something on, and what that says of it."""
    door, seen = door_of(plan.what), outcome.coverage
    failed = {name: outcome.failed_in(name) for key in outcome.failures for name in key}
    names = dict.fromkeys([*door.expected(), *seen.rules, *(n for n in failed if n in seen.rules)])
    table = Table("component", "programs", "failed", "failure rate below", title=door.components, title_justify="left")
    few = sorted((name for name in names if 0 < seen.rules[name] < FEW or failed.get(name)), key=seen.rules.__getitem__)
    for name in few[:_NAMED]:
        programs, wrong = seen.rules[name] + failed.get(name, 0), failed.get(name, 0)
        bound = f"{upper_bound(wrong, programs):.1e}" if programs else "unknown"
        table.add_row(name, str(programs), str(wrong), bound, style="red" if wrong else "yellow")
    many = [name for name in names if seen.rules[name] >= FEW and not failed.get(name)]
    parts: list[Table | Text] = [table] if few else []
    if len(few) > _NAMED:
        parts.append(Text(f"and {len(few) - _NAMED} more of fewer than {FEW} programs"))
    if many:
        least = min(seen.rules[name] for name in many)
        bound = f"{upper_bound(0, least):.1e} (95 % confidence)"
        parts.append(Text(f"{len(many)} in at least {least} programs each: they fail with a rate below {bound}"))
    if never := [name for name in door.expected() if not seen.rules[name] and not failed.get(name)]:
        more = f", and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
        parts.append(Text(f"never held to anything: {', '.join(never[:_NAMED])}{more}", style="yellow"))
    return Group(*parts)


def fuzz(
    passes: Annotated[
        list[str] | None, typer.Option("--pass", metavar="NAME", help="a pass to try; all of them if none is named")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="try these passes in this order")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="hold a target to the reference, and cpu to its bits"),
    ] = None,
    what: Annotated[str | None, typer.Option(metavar="NAME", help="fuzz what is no pass: see below")] = None,
    case: Annotated[Path | None, typer.Option(metavar="FILE", help="only judge a case of --what")] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="stop after this time (1, without --programs)")] = None,
    programs: Annotated[int | None, typer.Option(min=1, help="stop after so many programs")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="worker processes")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="where to begin: each seed has programs of its own")] = 0,
    size: Annotated[int, typer.Option(min=1, help="ops of a program, about")] = 15,
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write failing cases")] = Path("fuzz"),
    seconds: Annotated[float, typer.Option(min=1, help="time to reduce a failure")] = 60,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="keep counts there, and go on from them; Ctrl-C stops")
    ] = None,
    about: Annotated[
        list[str] | None, typer.Option(metavar="FILE[:LINE]", help="judge programs that run these lines of source")
    ] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="judge programs that run what differs from the last commit (git)")
    ] = False,
    number: Annotated[int | None, typer.Option(min=0, help="try one program, by its number in a report")] = None,
    load: Load = None,
) -> None:
    """Try passes or a target on random programs, and reduce what fails.

      gcomp fuzz --minutes 10 --jobs 2

      gcomp fuzz --pass my-pass --load my_pass.py

      gcomp fuzz --target cpu --programs 2000

      gcomp fuzz --what autodiff --keep campaign.json

      gcomp fuzz --pass my-pass --load my_pass.py --about my_pass.py:30-34

      gcomp fuzz --changed

    Every program goes through several of the passes in an order of its own, and must mean afterwards what it meant
    before, within the passes' exactness; now and then a pass is held to all it promises. What a target computes must be
    what the reference does, within its class, and on cpu have the very bits of its tile programs; with --pass, these
    passes come before its own. Failures of the same fingerprint are one; each is reduced, and written with the inputs
    that show it. Exit status 1 if anything failed.
    --what is passes, frontend (or onnx, jaxpr, torch or files alone), autodiff, padding, memory, indexing, fusion,
    tile, printed, machine, runtime, processor or mesh, each with a judge of its own. --about and --changed look at
    many programs, and judge those whose transformation runs the lines, with near misses of these; where nothing else is
    named, the file says what is tried. Exit status 1 if none runs them.
    """
    load_files(load or [])
    if minutes is None and programs is None:
        minutes = 1.0
    lines = spans_of(about or (), Path.cwd() if changed else None)
    plan = Plan.of(tuple(passes or ()), pipeline, target, size, what, lines)
    if case is not None:
        return case_command(plan, seed, case)
    fuzz_command(plan, Limits(minutes, programs, jobs), seed, output, seconds, keep, number)
