"""Mutations of artifacts with machine code, and what a reader of them may do: run no code but what the plan names.

Mutants that are sealed may hold any code, which whoever loads them asked for; they are loaded and made ready, and not
called. What may not happen: that code is made executable of a file that nobody wrote, or other code than its plan's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from random import Random

import gcomp
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.cpu.plan import from_text
from gcomp.runtime.model import Model
from gcomp.testing.mutate.harness import Case
from tests.support.mutate import artifacts
from tests.support.mutate.artifacts import UNSEALED, Mutant, Mutator, Sample, change_json, parts, seal


def change_plan_member(chance: Random, sample: Sample) -> bytes:
    """Change what the plan of a segment says: offsets, sizes, kernels, hashes."""
    manifest, members = parts(sample)
    name = chance.choice([n for n in members if n.endswith(".json")])
    plan = json.loads(members[name])
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        change_json(chance, plan)
    members[name] = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    return seal(manifest, members)


def change_code(chance: Random, sample: Sample) -> bytes:
    """Flip a bit of an image, cut it off, make it longer, or take another's place; sometimes the plan agrees."""
    manifest, members = parts(sample)
    name = chance.choice([n for n in members if n.endswith(".image")])
    old = members[name]
    place = chance.randrange(len(old))
    flipped = old[:place] + bytes([old[place] ^ 1 << chance.randrange(8)]) + old[place + 1 :]
    new = chance.choice((flipped, flipped, old[:place], b"", old + bytes(64), old[::-1], b"\x7fELF" + old))
    members[name] = new
    if chance.random() < 0.3:
        digests = [hashlib.sha256(data).hexdigest().encode() for data in (old, new)]
        for other in [n for n in members if n.endswith(".json")]:
            members[other] = members[other].replace(*digests)
    if chance.random() < 0.2:
        members[f"other{name}"] = members.pop(name)
    return seal(manifest, members)


MUTATORS: tuple[Mutator, ...] = (
    *UNSEALED, artifacts.change_manifest, artifacts.change_plan, change_plan_member, change_plan_member,
    change_plan_member, change_code, change_code, artifacts.change_weights,
)  # fmt: skip


def cases(samples: Sequence[Sample], count: int, seed: int = 0) -> Iterator[Case[Mutant]]:
    """`count` mutants: each sample in turn, each from a seed of its own."""
    for i in range(count):
        chance = Random(f"native {seed} {i}")
        mutator = chance.choice(MUTATORS)
        data = mutator(chance, samples[i % len(samples)])
        yield Case(f"native {seed} {i}", mutator.__name__, Mutant(data, mutator not in UNSEALED))


@contextlib.contextmanager
def watched() -> Generator[list[str]]:
    """The hashes of what is made executable meanwhile."""
    seen, original = list[str](), Pages.make_code

    def make_code(pages: Pages) -> None:
        seen.append(hashlib.sha256(pages.view(pages.size)).hexdigest())
        original(pages)

    Pages.make_code = make_code
    try:
        yield seen
    finally:
        Pages.make_code = original


def reader(path: Path, samples: Sequence[Sample], call: Callable[[Model], None]) -> Callable[[Mutant], str]:
    """What loads a mutant, written to `path`, and makes it ready; calls it where it says what a sample says."""
    models = [_loaded(path, sample.data) for sample in samples]
    known = [(model.plan, _bytes_of(model)) for model in models]

    def use(mutant: Mutant) -> str:
        if mutant.data in (sample.data for sample in samples):
            return "unchanged"
        with watched() as seen:
            try:
                model = _loaded(path, mutant.data)
                assert mutant.sealed, "a file that nobody wrote was loaded"
                ranges = model.signature.ranges
                model.prepare(**{name: ranges[name].lo for name in model.signature.symbols})
            finally:
                assert mutant.sealed or not seen, "code of a file that nobody wrote was made executable"
            texts = [model.plan.texts[step.text] for step in model.plan.segments]
            named = {p.code.sha256 for text in texts for p in from_text(text, "").values()}
            assert set(seen) <= named, "other code than the plan's was made executable"
        if (model.plan, _bytes_of(model)) in known:
            call(model)
            return "neutral"
        return "ready"

    return use


def _bytes_of(model: Model) -> dict[str, bytes]:
    """The weights: of others, a call rightly gives other results."""
    return {name: weight.tobytes() for name, weight in model.weights.items()}


def _loaded(path: Path, data: bytes) -> Model:
    path.write_bytes(data)
    return gcomp.load(path, verify="full")
