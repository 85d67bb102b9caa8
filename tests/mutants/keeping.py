"""Outcomes kept on disk, so that a long run can be ended and gone on with: by seed and target, for the same sources."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcomp.testing.sources import sources_digest
from tests.mutants.judges import Kill, Reduced

if TYPE_CHECKING:
    from tests.mutants.run import Outcome

_ROOT = Path(__file__).parents[2]


class Kept:
    """Outcomes in a folder. Those of other sources, of gcomp or of the mutants, are not found again."""

    def __init__(self, folder: Path | None, *, reducing: bool) -> None:
        self._folder = (
            None
            if folder is None
            else folder / f"{sources_digest(_ROOT, 'gcomp', 'tests/mutants')}{'-reduced' if reducing else ''}"
        )
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def find(self, seed: int, target: str, names: tuple[str, ...]) -> Outcome | None:
        """What became of a target's mutants on a seed, if that is known."""
        path = self._path(seed, target, names)
        return None if path is None or not path.exists() else _decoded(json.loads(path.read_text("utf-8")))

    def keep(self, seed: int, target: str, names: tuple[str, ...], outcome: Outcome) -> None:
        """Write down what became of them."""
        if path := self._path(seed, target, names):
            path.write_text(json.dumps(_encoded(outcome)), "utf-8")

    def _path(self, seed: int, target: str, names: tuple[str, ...]) -> Path | None:
        if self._folder is None:
            return None
        which = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
        return self._folder / f"{seed}-{target}-{which}.json"


def _encoded(outcome: Outcome) -> dict[str, Any]:
    row = asdict(outcome)
    for verdict in row["verdicts"]:
        if verdict["kill"] is not None:
            del verdict["kill"]["failure"]  # a program, of which the text is in `reduced`
    return row


def _decoded(row: dict[str, Any]) -> Outcome:
    from tests.mutants.run import Outcome, Verdict

    def kill(found: dict[str, Any] | None) -> Kill | None:
        if found is None:
            return None
        reduced = found["reduced"]
        return Kill(found["tried"], found["message"], None, None if reduced is None else Reduced(**reduced))

    verdicts = [Verdict(**{**v, "kill": kill(v["kill"])}) for v in row["verdicts"]]
    return Outcome(row["already"], verdicts, row["seconds"], row["whole"])
