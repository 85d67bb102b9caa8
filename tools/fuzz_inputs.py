"""Feeds mutated models, artifacts and IR texts to gcomp's readers, and prints what came of them.

    python tools/fuzz_inputs.py --count 100000 --seed 1            all kinds
    python tools/fuzz_inputs.py --kind text --count 20000          one kind
    python tools/fuzz_inputs.py --kind model --only "model 1 4711" one case again, with its traceback

Texts that are read also go through the passes and the lowering. A case is named by its kind, seed and number, from
which it is made again. Exits with 1 if any case broke the promise: a result or one GcompError, soon, in little memory.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gcomp
from gcomp.errors import ArtifactError, InternalError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.passes.manager import PassManager, VerifyEach
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.model import Model
from gcomp.sources import import_model
from gcomp.targets.base import target_named
from gcomp.testing.mutate import Case, models, run, texts
from tests.support.mutate import artifacts, native
from tests.unit import test_mutated_artifacts, test_mutated_models, test_mutated_text
from tests.unit.runtime.cpu import test_artifact

Campaign = tuple[Iterator[Case[Any]], Callable[[Any], str]]


def text_campaign(folder: Path, count: int, seed: int) -> Campaign:
    """IR texts, through parsing, passes and lowering."""

    def use(text: str) -> str:
        test_mutated_text.read(text)
        program = import_model(f"{text}\n")
        PassManager(parse_pipeline(target_named("xla:cpu").pipeline()), [VerifyEach()]).run(program)
        lower(program)
        return "lowered"

    return texts.cases(test_mutated_text.samples(), count, seed), use


def model_campaign(folder: Path, count: int, seed: int) -> Campaign:
    """ONNX models, one in sixteen the digits model."""
    inside = test_mutated_models.lay_traps(folder)
    samples = test_mutated_models.samples(inside)
    digits = test_mutated_models.onnx.load(test_mutated_models.DIGITS)

    def use(source: Any) -> str:
        return test_mutated_models.imported(source, inside)

    return models.cases([*samples, *samples[:-1], digits], count, seed), use


def artifact_campaign(folder: Path, count: int, seed: int) -> Campaign:
    """Artifacts, loaded and called."""
    path, samples = folder / "mutant.gcomp", list[artifacts.Sample]()
    for text, weights in (
        (test_mutated_artifacts.DENSE, test_mutated_artifacts.WEIGHTS),
        (test_mutated_artifacts.PLAIN, {}),
    ):
        Model(lower(Program.parse(text)), weights).save(path)
        samples.append(artifacts.Sample.of(path.read_bytes()))

    def use(mutant: artifacts.Mutant) -> str:
        path.write_bytes(mutant.data)
        if mutant.data in (sample.data for sample in samples):
            return "unchanged"
        model = gcomp.load(path)
        assert mutant.sealed or len(model.weights), "a file that nobody wrote was loaded"
        try:
            test_mutated_artifacts.results_of(model)
        except InternalError as error:
            if not error.what.startswith("XLA refused"):
                raise
            raise ArtifactError("XLA refused the program.", why=error.why) from None
        return "ran"

    return artifacts.cases(samples, count, seed), use


def native_campaign(folder: Path, count: int, seed: int) -> Campaign:
    """Artifacts with machine code, loaded and made ready."""
    samples = test_artifact.samples(folder)
    return native.cases(samples, count, seed), native.reader(folder / "mutant.gcomp", samples, test_artifact.call)


CAMPAIGNS = {
    "text": text_campaign, "model": model_campaign, "artifact": artifact_campaign, "native": native_campaign,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=CAMPAIGNS, action="append", help="what to mutate; all by default")
    parser.add_argument("--count", type=int, default=10_000, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="CASE", help="run this case and no other")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    failures = 0
    for kind in options.kind or CAMPAIGNS:
        with tempfile.TemporaryDirectory() as folder:
            seed, count = options.seed, options.count
            if options.only:
                seed, count = int(options.only.split()[-2]), int(options.only.split()[-1]) + 1
            cases, use = CAMPAIGNS[kind](Path(folder), count, seed)
            if options.only:
                cases = itertools.islice(cases, count - 1, None)
            started = time.perf_counter()
            tally = run(cases, use)
            print(f"{kind}, seed {seed}, {time.perf_counter() - started:.0f} s\n{tally}\n", flush=True)
            failures += len(tally.failures)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
