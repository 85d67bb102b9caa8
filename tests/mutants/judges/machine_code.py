"""Judges images and pools of threads by their tests, each file in a process of its own: what a mistake makes of machine
code may end the process, or never end."""

from __future__ import annotations

import os
import signal
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

FILES = {"image": ("test_image.py", "test_moving.py"), "pool": ("test_threads.py",)}
"""By target."""
SECONDS = 20.0
"""For one test: all take less than one."""


class _Reporter:
    """Sends the name of each test that begins, and why the first one fails."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._connection.send((nodeid, None))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._connection.send((report.nodeid, str(report.longrepr).splitlines()[-1]))


@judge_of("image")
@judge_of("pool")
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first test that fails, ends its process or does not end."""
    folder = Path(__file__).parents[2] / "unit" / "lowering" / "llvm"
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.environ["GCOMP_CACHE_DIR"] = "off"
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        paths = [str(folder / name) for name in FILES[mutant.target]]
        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
        os._exit(int(pytest.main([*options, *paths], plugins=[_Reporter(writer)])))
    writer.close()
    names, why = _followed(reader)
    reader.close()
    if why is not None:
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if why is None and (code != 0 or not names):
        why = f"the process ends with {code}"
    return Survival(len(names)) if why is None else Kill(len(names), f"{names[-1] if names else 'pytest'}: {why}")


def _followed(reader: Connection) -> tuple[list[str], str | None]:
    """The tests that began, and why the last one failed, if it did not end the process."""
    names: list[str] = []
    while reader.poll(SECONDS):
        try:
            name, why = reader.recv()
        except EOFError:
            return names, None
        if why is not None:
            return names, why
        names.append(name)
    return names, "it does not end"
