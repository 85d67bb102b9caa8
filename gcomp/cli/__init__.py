"""The command line, `gcomp COMMAND`. One file per command, imported when it runs."""

from __future__ import annotations

from gcomp.cli.app import main

__all__ = ["main"]
