"""What a command that ran in this process leaves, and all commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gcomp.cli.app import COMMANDS, load_command


class Result(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Cli = Callable[..., Result]


def all_commands() -> dict[str, Any]:
    """Every command by name."""
    return {name: load_command(name) for name in COMMANDS}
