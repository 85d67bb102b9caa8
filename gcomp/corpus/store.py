"""The corpus as programs: made once, kept in the user's cache, and made again when what makes it changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from gcomp.corpus.entries import NAMES, missing_packages
from gcomp.errors import InternalError
from gcomp.ir.program import Program
from gcomp.records import record
from gcomp.runtime.folders import Cache
from gcomp.texts import read_program

_PACKAGE = Path(__file__).parents[1]
_CACHE = Cache("corpus", 1 << 30)
_KEPT = 60
"""So many folders are kept, of a kind and a version each: a megabyte, and other checkouts may be using theirs."""
_SOURCES = ("corpus", "frontends", "ir", "dims", "decompositions", "reference", "autodiff")
"""What the text of a program depends on."""

Report = Callable[[str], object]


@record
class Member:
    """A model of the corpus that is there: its name, as `onnx/bert`, and the file of its text."""

    name: str
    path: Path

    def program(self) -> Program:
        """The program, before any pass, with its weights."""
        return read_program(self.path)


@record
class Corpus:
    """The models that are there, and why others are not: by the name of a model, or of a kind."""

    members: tuple[Member, ...]
    skipped: dict[str, str]
    version: str


def corpus(wanted: Sequence[str] = (), *, report: Report = lambda said: None) -> Corpus:
    """The models of the corpus, or those that are `wanted`. What is not in the cache is made: a minute the first time.

    A kind of sources whose package is not installed is skipped, unless its models were made before.
    """
    members: list[Member] = []
    skipped: dict[str, str] = {}
    absent = missing_packages()
    for kind, names in NAMES.items():
        chosen = [name for name in names if not wanted or f"{kind}/{name}" in wanted]
        if not chosen:
            continue
        folder = _folder(kind)
        lacking = [n for n in chosen if not (folder / f"{n}.mlir").exists() and not _refusal(folder, n).exists()]
        if lacking and kind in absent:
            skipped[kind] = f"{len(lacking)} models of {kind}: {absent[kind]} is not installed"
            chosen = [name for name in chosen if name not in lacking]
        elif lacking:
            _make(folder, kind, lacking, report)
        for name in chosen:
            path = folder / f"{name}.mlir"
            if path.exists():
                members.append(Member(f"{kind}/{name}", path))
            else:
                skipped[f"{kind}/{name}"] = _refusal(folder, name).read_text("utf-8").splitlines()[0]
    return Corpus(tuple(members), skipped, version())


def version() -> str:
    """A short text that changes when the corpus does: what makes it, and what imports it."""
    return _key()[:8]


def _refusal(folder: Path, name: str) -> Path:
    return folder / f"{name}.refused"


def _make(folder: Path, kind: str, names: Sequence[str], report: Report) -> None:
    """Make models in another process, so that what it loads and leaves behind is gone afterwards."""
    command = [sys.executable, "-m", "gcomp.corpus.making", str(folder), kind, *names]
    around = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    }
    report(f"making the corpus: {kind} (once)")
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=around) as process:
            assert process.stdout is not None
            for line in process.stdout:
                report(f"making the corpus: {kind}/{line.strip()} (once)")
        lost = [n for n in names if not (folder / f"{n}.mlir").exists() and not _refusal(folder, n).exists()]
        if lost:
            said.seek(0)
            last = (said.read().strip().splitlines() or [""])[-1]
            raise InternalError(f"the corpus could not be made: {kind}/{lost[0]}", why=last or f"{process.returncode}")


@cache
def _folder(kind: str) -> Path:
    """Where the models of a kind lie, in this version. Without a cache, for as long as this process lives."""
    try:
        around = _CACHE.path()
    except OSError:
        around = Path(_temporary().name)
    folder = around / f"{kind}-{_key()}"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        known = sorted((p for p in around.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime)
        for old in known[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gcomp-corpus-")


@cache
def _key() -> str:
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


__all__ = ["Corpus", "Member", "corpus", "version"]
