"""All that `gcomp try` found, as data; the verdict; and files of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gcomp.errors import UsageError
from gcomp.trying.change import Change, Metrics, firing_elsewhere, total
from gcomp.trying.correct import Correctness
from gcomp.trying.misses import Miss
from gcomp.trying.places import Place
from gcomp.trying.worth import Worth, overall

FORM = 1
"""The version of the JSON."""
_NO_CHANGE = 0.005
"""A time that changes by less is the same."""


@dataclass
class Findings:
    """What is known of a pass. What was not asked yet is empty; `interrupted` names the stage at which it ended."""

    name: str
    target: str
    corpus: str = ""
    models: int = 0
    correct: Correctness = field(default_factory=Correctness)
    places: list[Place] = field(default_factory=list[Place])
    place: str = ""
    changes: list[Change] = field(default_factory=list[Change])
    misses: list[Miss] = field(default_factory=list[Miss])
    worth: list[Worth] = field(default_factory=list[Worth])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Models, or kinds of them, that say nothing, and why."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Stages that were not run, and why."""
    interrupted: str = ""

    @property
    def firing(self) -> list[Change]:
        """The models in which the passes change something."""
        return [change for change in self.changes if change.fires]

    def to_json(self) -> dict[str, Any]:
        """As plain data, with the verdict."""
        said = verdict(self)
        return {"form": FORM, "verdict": said.word, "why": said.why, "worth_it": said.worth, **asdict(self),
                "elsewhere": firing_elsewhere(self.changes), "overall": overall(self.worth)}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """`word` is wrong, misbehaves, unknown or right; `why` says so in a sentence, and `worth` whether it pays."""

    word: str
    why: str
    worth: str = ""


_KINDS: Mapping[str, str] = {
    "crash": "it raises an exception", "invalid": "it leaves programs that the verifier refuses",
    "claim": "it does not say the truth about whether it changed the program",
    "signature": "it changes the program's signature", "meaning": "it changes what programs compute",
    "unsettled": "it finds something to do on its own result, or never ends",
    "law": "it does not do what it says", "hung": "it does not end", "died": "it ends its process",
}  # fmt: skip
"""What programs fail by, in words."""


def verdict(found: Findings) -> Verdict:
    """What all of it comes to."""
    c = found.correct
    if c.wrong:
        kinds = sorted(c.kinds, key=lambda kind: -c.kinds[kind])
        said = [_KINDS.get(kind, kind) for kind in kinds]
        said += [f"it {c.faults[name]}" for name in ("hangs", "dies") if name in c.faults]
        if not said:
            said = [f"the prover refutes {rule.name}" for rule in c.rules if rule.counterexample]
        return Verdict("wrong", "; ".join(said))
    if c.faults:
        return Verdict("misbehaves", "; ".join(f"it {said}" for said in c.faults.values()), _worth(found))
    unknown = [f"{name} changed no program" for name in c.idle]
    unknown += [f"too little is known of {', '.join(c.seldom)}"] if c.seldom and not c.idle else []
    if not c.judged:
        late = "no program was judged in the time that there was (--seconds)"
        why = found.interrupted or (late if "programs" in found.seconds else "whether it is correct was not asked")
        return Verdict("unknown", why, _worth(found))
    if unknown:
        return Verdict("unknown", "; ".join(unknown), _worth(found))
    proved = sum(rule.status == "proved" for rule in c.rules)
    rules = f"{proved} of {len(c.rules)} rewrites proved; " if c.rules else ""
    return Verdict("right", f"{rules}{c.judged} programs fail with a rate below {c.bound:.1e}", _worth(found))


def _worth(found: Findings) -> str:
    """Whether it pays, in a sentence; empty where that was not asked."""
    if not found.changes:
        return ""
    firing = found.firing
    if not firing:
        return f"it changes none of {len(found.changes)} models"
    same = sum(change.same for change in firing)
    if same == len(firing):
        return f"in {same} of {len(found.changes)} models it does what other passes would have done"
    said = [f"it changes {len(firing)} of {len(found.changes)} models"]
    said += [f"does what other passes would have done in {same} of these"] if same else []
    timed = [w for w in found.worth if w.rounds]
    if (mean := overall(timed)) is not None:
        median, low, high = mean
        sure = "faster" if high < 1 - _NO_CHANGE else "slower" if low > 1 + _NO_CHANGE else ""
        word = sure or "no faster and no slower, as far as can be told"
        said.append(f"run time {median:.3f} [{low:.3f}, {high:.3f}] of before on {len(timed)} of them: {word}")
    before, after = total(firing, lambda m: m.predicted.get(_machine(m), 0.0))
    if before and abs(after / before - 1) > _NO_CHANGE:
        said.append(f"predicted {after / before:.3f}")
    return "; ".join(said)


def _machine(metrics: Metrics) -> str:
    """The machine of the target: the first whose time is predicted."""
    return next(iter(metrics.predicted))


# ---- files ----


def store(found: Findings, folder: Path) -> Path:
    """Write the findings as the next number of their name in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in found.name)[:60].strip("-")
    number = 1
    while (path := folder / f"{stem}-{number}.json").exists():
        number += 1
    path.write_text(json.dumps(found.to_json(), indent=1, default=str) + "\n", "utf-8")
    return path


def load(name: str, folder: Path) -> dict[str, Any]:
    """Stored findings, by file or by the name of one in the folder. UsageError for what is none."""
    path = Path(name) if name.endswith(".json") else folder / f"{name}.json"
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        known = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none yet"
        raise UsageError(f"cannot read {path}", why=str(error), fix=f"stored in {folder}: {known}") from None
    if not isinstance(data, dict) or data.get("form") != FORM:  # pyright: ignore[reportUnknownMemberType]
        raise UsageError(f"{path} is not of this version of gcomp try", fix="run gcomp try again")
    return data  # pyright: ignore[reportUnknownVariableType]


__all__ = ["Findings", "Verdict", "load", "store", "verdict"]
