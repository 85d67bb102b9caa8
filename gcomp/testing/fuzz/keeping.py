"""A campaign as a file, so that it can be stopped and gone on with: counts and failures, for the same sources."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import gcomp
from gcomp.errors import UsageError
from gcomp.runtime.archive import write_file
from gcomp.testing.fuzz.campaign import Outcome
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.sources import sources_digest


def save_outcome(path: Path, outcome: Outcome, plan: Plan, seed: int) -> None:
    """Write a campaign's outcome; what was there stays whole until the new one is."""
    row = {
        "campaign": _file_name(plan, seed),
        "sources": _digest(),
        "tried": outcome.tried,
        "seconds": outcome.seconds,
        "coverage": vars(outcome.coverage),
        "failures": [{**vars(found), "times": outcome.times[key]} for key, found in outcome.failures.items()],
    }
    write_file(path, [json.dumps(row).encode()])


def load_outcome(path: Path, plan: Plan, seed: int) -> Outcome | None:
    """The outcome so far; None where there is no file. UsageError for another campaign's, or other sources."""
    if not path.exists():
        return None
    try:
        row: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if row["campaign"] != _file_name(plan, seed):
            raise UsageError(f"{path} is of another campaign", why=row["campaign"], fix="name another file with --keep")
        if row["sources"] != _digest():
            raise UsageError(
                f"{path} is of other sources of gcomp", why="programs that were judged by these say nothing of others",
                fix="begin again, with another file",
            )  # fmt: skip
        return _decode(row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no campaign that was kept", why=f"{type(error).__name__}: {error}") from None


def _decode(row: dict[str, Any]) -> Outcome:
    counts: dict[str, Any] = {
        name: Counter[str](cast("dict[str, int]", value)) if isinstance(value, dict) else value
        for name, value in row["coverage"].items()
    }
    outcome = Outcome(Coverage(**counts), seconds=row["seconds"], tried=row["tried"])
    for failure in row["failures"]:
        found = Found(failure["number"], tuple(failure["key"]), failure["message"], tuple(failure["others"]))
        outcome.failures[found.key], outcome.times[found.key] = found, failure["times"]
    return outcome


def _file_name(plan: Plan, seed: int) -> str:
    return f"{plan}, seed {seed}"


def _digest() -> str:
    """Of gcomp's sources."""
    package = Path(gcomp.__file__).parent
    return sources_digest(package.parent, package.name)
