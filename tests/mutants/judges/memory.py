"""Judges `gcomp.memory` by the laws of the door that `gcomp fuzz --what memory` goes through: what they compare with
shares nothing with what is judged."""

from __future__ import annotations

from functools import partial

from gcomp.testing.fuzz.packings import LAWS
from gcomp.testing.generate.choices import Recorded
from tests.mutants.judges import JUDGES, PREPARE, Kill, Survival
from tests.mutants.mutant import Mutant

ABOUT = {
    "offsets": ("assign", "greedy", "search", "sections", "problem", "repair"),
    "orders": ("ordering", "schedules", "graph"),
    "rematerialization": ("rematerialize",),
}
"""What mutants are of, and what the laws are about that judge them."""
ROUNDS = 150


def judge_memory(target: str, seed: int, mutant: Mutant) -> Kill | Survival:
    """The first law that does not hold."""
    laws = {name: law for name, law in LAWS.items() if law.about in ABOUT[target]}
    tried = 0
    for number in range(seed * ROUNDS, (seed + 1) * ROUNDS):
        for name, law in laws.items():
            tried += 1
            if wrong := law.wrong(Recorded(number)):
                return Kill(tried, f"{name}: {wrong}")
    return Survival(tried)


def failures(target: str, seed: int) -> list[str]:
    """What fails with nothing patched."""
    return [wrong for law in LAWS.values() for number in range(5) if (wrong := law.wrong(Recorded(number)))]


for _target in ABOUT:
    JUDGES[_target] = partial(judge_memory, _target)
    PREPARE[_target] = partial(failures, _target)
