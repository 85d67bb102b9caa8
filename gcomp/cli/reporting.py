"""`gcomp report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from gcomp.cli.arguments import Constants, Dims, Links, Load, PipelineOption, Structures, Target
from gcomp.cli.options import Source, check_writable, load_files, source_of, write_file
from gcomp.cli.running import SOURCES
from gcomp.cli.spinner import spinner
from gcomp.errors import UsageError
from gcomp.options import DEFAULT_TARGET
from gcomp.report.building import Report, report_of
from gcomp.report.comparing import compare


def report_command(
    model: Path, output: Path | None, other: Path | None, against: str | None, target: str, pipeline: str | None,
    errors: bool, profile: bool, source: Source,
) -> None:  # fmt: skip
    """Write the page of a model, or of two, and say where it is."""
    page = output if output is not None else Path(f"{model.stem}.report.html")
    check_writable(page)
    started = time.perf_counter()

    def made(path: Path, passes: str | None, title: str) -> Report:
        if path.suffix == ".gcomp":
            raise UsageError(
                f"{path} is compiled already, and a report shows a compilation",
                fix="name the model that it was compiled from; gcomp inspect shows what an artifact holds",
            )
        if path.suffix in SOURCES and not path.exists():
            raise UsageError(f"there is no file {path}")
        with spinner(f"{title}: ") as report:
            return report_of(
                path, title=title, target=target, pipeline=passes, errors=errors, profile=profile, progress=report,
                **source.keywords(),
            )  # fmt: skip

    first, second = titles(model, other)
    found = made(model, pipeline, first if against is None else f"{first} -p {pipeline or 'as for ' + target}")
    if against is not None:
        found = compare(made(model, against, f"{first} -p {against}"), found)
    elif other is not None:
        found = compare(found, made(other, pipeline, second))
    text = found.page().encode()
    write_file(page, text)
    seconds = time.perf_counter() - started
    typer.echo(f"{page}: {len(text) / 1e6:.2f} MB in {seconds:.1f} s; a browser opens it, without a network")


def titles(first: Path, second: Path | None) -> tuple[str, str]:
    """Names of two files that tell them apart: with as many folders as that takes."""
    if second is None or first == second:
        return first.name, first.name
    one, other = first.resolve().parts, second.resolve().parts
    deep = 1
    while one[-deep:] == other[-deep:] and deep < min(len(one), len(other)):
        deep += 1
    return "/".join(one[-deep:]), "/".join(other[-deep:])


def report(
    model: Annotated[Path, typer.Argument(help="an .onnx, .mlir, .pt2 or .jax_export file, or package.module:factory")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="where to write the page")
    ] = None,
    diff: Annotated[
        Path | None, typer.Option("--diff", metavar="MODEL", help="another model, or version, to show beside it")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="PASSES", help="another pipeline for the same model, to show beside it")
    ] = None,
    target: Target = DEFAULT_TARGET,
    pipeline: PipelineOption = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="run the reference after each pass, also where that takes long")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="run the model on random inputs, and show measured times")
    ] = False,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Write one page that shows a compilation: passes, graphs, kernels, memory, times.

    gcomp report model.onnx -o model.html

    gcomp report model.onnx --profile

    gcomp report old.onnx --diff new.onnx -o difference.html
    """
    if diff is not None and against is not None:
        raise UsageError("--diff and --against exclude each other", fix="make two pages")
    load_files(load or [])
    source = source_of(model, dim, structure, constant, allow_links)
    report_command(model, output, diff, against, target, pipeline, errors, profile, source)
