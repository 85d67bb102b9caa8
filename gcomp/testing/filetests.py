"""Textual tests: .mlir files with lines `// RUN: gcomp opt %s ... | filecheck %s`, run without a shell.

`--split` runs each part between `// -----` lines by itself. `gcomp opt` lines that start with `not` must fail, part by
part, and filecheck sees the errors. `--generic` and `--locations` print as the command does. With `--check-each`, as
reduced cases have it, each pass is held to its promises too, on the inputs of a file with `--inputs %S/FILE.npz`.
`--load %S/FILE.py` takes passes of a file.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.manager import CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.registry import is_loaded, load_passes, parse_pipeline
from gcomp.passes.verifying import JudgeEach
from gcomp.testing.reduce.casefile import read_inputs

_RUN = re.compile(r"//\s*RUN:\s*(?P<fails>not\s+)?gcomp opt %s(?P<options>.*?)\|\s*filecheck %s(?P<check>.*)")


def runs_in(text: str) -> Iterator[FileRun]:
    """The runs that a file's text asks for."""
    for found in _RUN.finditer(text):
        yield FileRun(found["fails"] is not None, shlex.split(found["options"]), shlex.split(found["check"]))


class FileRun:
    """One RUN line: whether it fails, the options of `gcomp opt`, and those of filecheck."""

    def __init__(self, fails: bool, options: Sequence[str], check: Sequence[str]) -> None:
        self.fails, self.options, self.check = fails, list(options), list(check)

    def run(self, path: Path) -> None:
        """Run it on a file. AssertionError, with filecheck's account, where it does not print what it should."""
        text = path.read_text("utf-8")
        parts = re.split(r"^// -----\n", text, flags=re.M) if "--split" in self.options else [text]
        filecheck("".join(self._opt(part, path) for part in parts), path, self.check)

    def _opt(self, text: str, path: Path) -> str:
        pipeline = self.options[self.options.index("-p") + 1] if "-p" in self.options else ""
        self._load(path)
        passes = parse_pipeline(pipeline) if pipeline else []
        try:
            program = Program.parse(text, path.name)
            arrays = self._inputs(path, program)
            checks = [JudgeEach(arrays, settles=True)] if "--check-each" in self.options else []
            PassManager(passes, [CheckUnchanged(), VerifyEach(), *checks]).run(program, PassContext())
        except GcompError as error:
            if not self.fails:
                raise
            return f"{type(error).__name__}: {error}\n"
        assert not self.fails, f"expected an error, and the program is accepted:\n{text}"
        return program.text(generic="--generic" in self.options, locations="--locations" in self.options)

    def _load(self, path: Path) -> None:
        """Load the passes of files that are named beside the case; once, since tests of theirs hold on to them."""
        for option, value in pairwise(self.options):
            file = Path(value.replace("%S", str(path.parent)))
            if option == "--load" and not is_loaded(file):
                load_passes(file)

    def _inputs(self, path: Path, program: Program) -> list[np.ndarray[Any, Any]] | None:
        if "--inputs" not in self.options:
            return None
        name = self.options[self.options.index("--inputs") + 1].replace("%S", str(path.parent))
        arrays = read_inputs(Path(name), program)
        if arrays is None:
            raise UsageError(f"there is no file {name}")
        return arrays


def filecheck(output: str, path: Path, arguments: Sequence[str] = ()) -> None:
    """AssertionError unless filecheck accepts the output by the CHECK lines of a file."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    options = parse_argv_options(["filecheck", str(path), *arguments])
    matcher = Matcher(options, FInput("<output>", output), Parser.from_opts(options))
    matcher.stderr = errors = io.StringIO()
    assert matcher.run() == 0, f"{errors.getvalue()}\n----- output\n{output}"
