"""A front door: a copy of the package with one file changed, a command in a process of its own, and a clock."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.front_doors.folders import Command

STARTING = 60.0
"""How long a command may take beyond its time to start, or to write what it has."""
PATIENCE = 8.0
"""How many times as long as the processor's time a command may take, where others want the processor too."""

_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)

Key = tuple[str, ...]
Row = dict[str, Any]
"""What a campaign writes down: `gcomp fuzz --keep` goes on from it."""


@dataclass(frozen=True)
class Answer:
    """What a command said: failures by what makes them the same, how many programs it tried, its exit status."""

    failures: dict[Key, str]
    tried: int
    seconds: float
    status: int | None
    said: str
    row: Row = field(default_factory=dict[str, Any])

    def number_of(self, key: Key) -> int:
        """The first program that shows a failure."""
        return next(int(failure["number"]) for failure in self.row["failures"] if tuple(failure["key"]) == key)

    @property
    def is_killed(self) -> bool:
        """Whether somebody else ended it, as a machine that is short of memory does: that says nothing."""
        return self.status is not None and -self.status in _FROM_OUTSIDE

    @property
    def is_hung(self) -> bool:
        """Whether it had to be ended, and nothing had come of it."""
        return self.status is None and not self.failures


class Scratch:
    """A copy of the package, in which one module at a time is another."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        shutil.copytree(root / "gcomp", folder / "gcomp", dirs_exist_ok=True)

    @contextmanager
    def changed(self, sources: dict[str, str]) -> Iterator[None]:
        """With other sources of some modules (or files, `gcomp/x.py`)."""
        paths = {
            Path(name if name.endswith(".py") else f"{name.replace('.', '/')}.py"): s for name, s in sources.items()
        }
        try:
            for path, source in paths.items():
                (self.folder / path).write_text(source, "utf-8")
            yield
        finally:
            for path in paths:
                shutil.copy2(self.root / path, self.folder / path)

    def ask(
        self, command: Command, seconds: float, seed: int, *, known: Collection[Key] | None = (), programs: int = 0,
        row: Row | None = None,
    ) -> Answer:  # fmt: skip
        """Run a command for a time, or up to so many programs, from a `row` on that an earlier one wrote; until its
        first failure that is not known, or with no `known` to its end.

        The time is that of the processor, which does not depend on what else the machine does.
        """
        with tempfile.TemporaryDirectory(prefix="front-door-") as place:
            kept = Path(place) / "kept.json"
            if row:
                kept.write_text(json.dumps(row), "utf-8")
            limit = ("--programs", str(programs)) if programs else ("--minutes", "60")
            words = (
                *command,
                *limit,
                "--seed",
                str(seed),
                "--seconds",
                "1",
                "-o",
                f"{place}/cases",
                "--keep",
                str(kept),
            )
            return self._watched(words, kept, seconds, known)

    def _watched(self, words: Sequence[str], kept: Path, seconds: float, known: Collection[Key] | None) -> Answer:
        started, used = time.monotonic(), 0.0
        with tempfile.TemporaryFile() as said:
            process = self.start(words, said)
            try:
                while process.poll() is None and time.monotonic() - started < STARTING + PATIENCE * seconds:
                    time.sleep(0.2)
                    used = max(used, processor_time(process.pid))
                    if used > seconds or (known is not None and set(_failures(_kept(kept))) - set(known)):
                        process.send_signal(signal.SIGINT)  # it writes down what it has
                        process.wait(STARTING)
            except subprocess.TimeoutExpired:
                pass
            finally:
                status = process.poll()
                end(process)
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
        row = _kept(kept)
        return Answer(_failures(row), row.get("tried", 0), used, status, text[-4000:], row)

    def start(self, words: Sequence[str], said: int | object) -> subprocess.Popen[bytes]:
        """The command, in a process of its own that sees this copy."""
        env = os.environ | {"PYTHONPATH": str(self.folder), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": ""}
        return subprocess.Popen(
            [sys.executable, "-c", "from gcomp.cli import main; main()", *words],
            cwd=self.folder,
            env=env,
            stdout=said,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # type: ignore[call-overload]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command and the workers that it started, which share its session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def processor_time(session: int) -> float:
    """The seconds that the processes of a session have had, those that ended and were waited for included."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
            # After the name: state, parent, group, session; user and system time, and those of children, come 12th.
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _kept(path: Path) -> Row:
    """A campaign's file; empty where there is none yet."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _failures(row: Row) -> dict[Key, str]:
    return {tuple(failure["key"]): failure["message"] for failure in row.get("failures", ())}
