"""`gcomp new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcomp.making.kinds import plan_of, write


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="pass, op, onnx-operator or target")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="what it is called, as my-pass")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="where the files go")] = Path("."),
    domain: Annotated[str, typer.Option(metavar="DOMAIN", help="of an ONNX operator")] = "com.example",
) -> None:
    """Write the files that a new pass, op, ONNX operator or target needs; their tests pass at once.

      gcomp new pass my-pass

      gcomp new onnx-operator my-swish --domain com.example

      gcomp new target my-target -o my_target

    In a checkout of gcomp they go where its own are, and an op is added by the steps of docs/guides/adding_an_op.md.
    What is printed then must pass.
    """
    plan = plan_of(kind, name, output, domain)
    for made in write(plan):
        typer.echo(f"{'changed' if made.changes else 'wrote'} {made.path}")
    typer.echo("next:")
    for command in plan.commands:
        typer.echo(f"  {command}")


__all__ = ["new"]
