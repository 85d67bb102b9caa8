"""`gcomp try`."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gcomp.cli.arguments import Load, Target
from gcomp.cli.options import load_files
from gcomp.cli.spinner import spinner
from gcomp.cli.try_page import try_page
from gcomp.cli.try_screen import compared, stage_lines, summary_lines
from gcomp.errors import UsageError
from gcomp.options import DEFAULT_TARGET
from gcomp.trying.findings import load as load_findings
from gcomp.trying.findings import store, verdict
from gcomp.trying.stages import STAGES, Options, Trial
from gcomp.trying.subject import subject_of


def try_command(trial: Trial, *, json: bool) -> None:
    """Run the stages, show each as it ends, and the verdict; write the findings and a page of them.

    Exit status 1 for a pass that is wrong or misbehaves.
    """
    console = Console(stderr=json, soft_wrap=True, highlight=False)
    try:
        with spinner("starting") as say:
            trial.report = say
            for stage in trial.run():
                for line in stage_lines(stage, trial):
                    console.print(line)
    except KeyboardInterrupt:
        trial.found.interrupted = f"interrupted during {trial.stage or 'the start'}"
        console.print(f"{trial.found.interrupted}: this is what is known", style="yellow")
    path = store(trial.found, trial.options.folder)
    page = path.with_suffix(".html")
    page.write_text(try_page(trial), "utf-8")
    for line in summary_lines(trial):
        console.print(line)
    console.print(f"page: {page}; stored as {path.stem} (gcomp try --compare OLD {path.stem})", style="dim")
    if json:
        typer.echo(json_text.dumps(trial.found.to_json(), indent=1, default=str))
    if verdict(trial.found).word in ("wrong", "misbehaves"):
        raise typer.Exit(1)


def try_(
    what: Annotated[
        str | None, typer.Argument(metavar="PASS", help="a Python file with a pass, or the name of a pass")
    ] = None,
    chosen: Annotated[
        list[str] | None, typer.Option("--pass", metavar="NAME", help="of a file with several passes: this one")
    ] = None,
    pipeline: Annotated[str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="try a pipeline")] = None,
    against: Annotated[str | None, typer.Option(metavar="PASSES", help="beside this one")] = None,
    target: Target = DEFAULT_TARGET,
    models: Annotated[Path | None, typer.Option(metavar="DIR", help="models of yours, besides the corpus")] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="only these models of the corpus, as onnx/bert")
    ] = None,
    seconds: Annotated[float, typer.Option(min=5, help="how long it may take")] = 60,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="worker processes")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="where random programs begin")] = 0,
    stage: Annotated[list[str] | None, typer.Option(metavar="STAGE", help=f"only these: {', '.join(STAGES)}")] = None,
    everything: Annotated[bool, typer.Option("--all", help="of a wrong pass, ask what it changes, too")] = False,
    json: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="where results and counterexamples go")] = Path("try"),
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="two stored results, beside each other")
    ] = None,
    load: Load = None,
) -> None:
    """Judge a pass: is it correct, what does it change in real models, and is it worth it?

      gcomp try my_pass.py

      gcomp try fold-constants

      gcomp try --pipeline "canonicalize,cse" --against canonicalize

      gcomp try my_pass.py --models my_models --json

      gcomp try my_pass.py --target triton:sm_90

      gcomp try --compare my-pass-1 my-pass-2

    Correct: each rewrite is proved where that is possible, programs are aimed at it, and a counterexample is made
    small. What it changes: forty small architectures, made from seeds (a minute, the first time), and models of yours,
    with the pass at its best place in the pipeline and without it. Worth it: run time in turn on one thread, predicted
    time for GPUs, and the error against float64. It stops after --seconds, and knows then what it knows. Exit status 1
    for a pass that is wrong or misbehaves.
    """
    if compare is not None:
        old, new = compare
        for line in compared(load_findings(old, output), load_findings(new, output), old, new):
            Console(soft_wrap=True, highlight=False).print(line)
        return
    load_files(load or [])
    if unknown := [name for name in stage or () if name not in STAGES]:
        raise UsageError(f"there is no stage {unknown[0]!r}", fix=f"stages are: {', '.join(STAGES)}")
    subject = subject_of(what, target=target, pipeline=pipeline, against=against, chosen=chosen or ())
    only = STAGES if not stage else tuple(name for name in STAGES if name in stage)
    options = Options(seconds, jobs, seed, models, only, everything, output, tuple(corpus or ()))
    try_command(Trial(subject, options), json=json)


__all__ = ["try_"]
