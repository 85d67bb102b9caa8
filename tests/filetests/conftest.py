"""Collects .mlir files: `// RUN: gcomp opt %s ... | filecheck %s` lines run in this process, without a shell.

`--split` runs each part between `// -----` lines by itself. `gcomp opt` lines that start with `not` must fail, part by
part, and filecheck sees the errors. `--generic` and `--locations` print as the command does. With `--check-each`, as
reduced cases have it, each pass is held to its promises too.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.judging import JudgeEach
from gcomp.passes.manager import CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.registry import parse_pipeline

_RUN = re.compile(r"//\s*RUN:\s*(not\s+)?gcomp opt %s(?P<options>.*?)\|\s*filecheck %s(?P<check>.*)")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    return MlirFile.from_parent(parent, path=file_path) if file_path.suffix == ".mlir" else None


class MlirFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        runs = list(_RUN.finditer(self.path.read_text("utf-8")))
        if not runs:
            raise pytest.UsageError(f"{self.path} has no RUN line")
        for number, run in enumerate(runs):
            yield MlirTest.from_parent(self, name=f"run{number}", run=run)


class MlirTest(pytest.Item):
    def __init__(self, *, run: re.Match[str], **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.run = run

    def runtest(self) -> None:
        options = shlex.split(self.run["options"])
        text = self.path.read_text("utf-8")
        parts = re.split(r"^// -----\n", text, flags=re.M) if "--split" in options else [text]
        output = "".join(self._opt(part, options) for part in parts)
        check(output, self.path, shlex.split(self.run["check"]))

    def _opt(self, text: str, options: list[str]) -> str:
        pipeline = options[options.index("-p") + 1] if "-p" in options else ""
        passes = parse_pipeline(pipeline) if pipeline else []
        try:
            program = Program.parse(text, self.path.name)
            checks = [JudgeEach(edges=True)] if "--check-each" in options else []
            PassManager(passes, [CheckUnchanged(), VerifyEach(), *checks]).run(program, PassContext())
        except GcompError as error:
            if self.run[1] is None:
                raise
            return f"{type(error).__name__}: {error}\n"
        assert self.run[1] is None, f"expected an error, and the program is accepted:\n{text}"
        return program.text(generic="--generic" in options, locations="--locations" in options)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}::{self.name}"


def check(output: str, path: Path, arguments: list[str]) -> None:
    """Fail unless filecheck accepts the output."""
    options = parse_argv_options(["filecheck", str(path), *arguments])
    matcher = Matcher(options, FInput("<output>", output), Parser.from_opts(options))
    matcher.stderr = errors = io.StringIO()
    assert matcher.run() == 0, f"{errors.getvalue()}\n----- output\n{output}"
