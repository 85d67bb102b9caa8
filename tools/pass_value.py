"""Writes docs/generated/pass_value.md: what every pass of the default pipeline is worth on the corpus.

    python -m tools.pass_value [--jobs N] [--timed N] [--models NAME ...] [--passes NAME ...]

For each pass, each model goes through the default pipeline with it and without it, as `gcomp try PASS` does it; what
comes before the pass is done once. `--timed` models that change most are run, in turn. With names, nothing is written.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from gcomp.corpus.store import corpus
from gcomp.ir.program import Program
from gcomp.measuring.timing import processor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named
from gcomp.testing import workers
from gcomp.trying.change import Change, Metrics, alike, guarded, optimize, total
from gcomp.trying.models import Model
from gcomp.trying.subject import subject_of
from gcomp.trying.worth import Worth, overall, worth_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "generated" / "pass_value.md"
TARGET = "cpu"
LIMITS = workers.Limits(600.0, 8 << 30)
HEAD = """# What each pass is worth

Written by `python -m tools.pass_value`, on {machine}; do not edit.

Each row is a pass of the pipeline of the target `cpu`, and what becomes of the {models} models of the corpus with it
(version {version}), compared with the same pipeline without it. *Acts* counts the models in which it changes the
program where it stands; *changed* those whose code is another in the end; *needed* those that do not compile without
it. Where a pass acts and nothing is changed, others do in its absence what it does. Figures are sums over changed
models: ops and kernels, flops, bytes moved and predicted time by the cost model, the arena's bytes, bytes of machine
code. *Own ms* is what the pass itself takes, of a processor, for all models together; *share* is that of the time of
all passes. *Run time* is that with the pass over that without it, measured in turn on one thread, with 95 % bounds, on
the changed models (at most {timed}) whose predicted time changes most; below 1 the pass makes them faster.

| pass | acts | changed | needed | ops | kernels | flops | bytes | peak | code | predicted | own ms | share | run time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
FIGURES = (
    lambda m: m.ops, lambda m: m.kernels, lambda m: m.flops, lambda m: m.bytes, lambda m: m.peak_bytes or 0,
    lambda m: m.code_bytes, lambda m: next(iter(m.predicted.values())),
)  # fmt: skip
WHY: dict[str, str] = {
    "inline": "importers leave no calls in these models; text of other tools has them, and a call has no kernel",
    "infer-shapes": "these models come with their shapes; in text with `?`, nothing that reads an unknown size has a "
    "kernel",
    "expand-chlo": "no model has `chlo.ragged_dot` (experts with uneven groups) or `chlo.scan`, which have no schedule",
    "view-as-real": "no model takes or gives complex numbers; their parts at the boundary have no kernel without it",
    "drop-barriers": "no model has `stablehlo.optimization_barrier` (JAX's `checkpoint` writes it); it has no kernel",
}
"""Why a pass stays that changes no model of the corpus."""

AT_SIZE = """
## Slower here, and faster at full size

The corpus is small: heads of 8 features, 32 positions, images of 32. `raise-attention` makes a kernel that holds
blocks of keys, and pays at BERT-base's size (0.983 [0.974, 0.988]) and ViT-B/16's (0.974 [0.968, 0.982]);
`quantized-products` computes ResNet-50 of 8 bits in 0.197 [0.192, 0.199] of the time that it takes in f32.
"""


@dataclass
class Without:
    """The default pipeline run on a program, step by step: what it was before each pass first ran, whether that pass
    ever changed it, and the seconds of a processor that it took."""

    before: dict[str, tuple[int, Program]]
    changed: set[str]
    seconds: Counter[str]


def walk(program: Program, passes: Sequence[Pass]) -> Without:
    """Run a pipeline on a program, which is changed."""
    found = Without({}, set(), Counter())
    for at, step in enumerate(passes):
        if step.name not in found.before:
            found.before[step.name] = at, program.clone()
        started = time.process_time()
        if step.run(program, PassContext()):
            found.changed.add(step.name)
        found.seconds[step.name] += time.process_time() - started
    return found


def changes_of(
    models: dict[str, Model], wanted: Sequence[str], name: str
) -> tuple[list[tuple[str, Change]], Counter[str]]:
    """For each pass that does something in a model: the pass, and what it changes there; and what all passes take."""
    passes = parse_pipeline(target_named(TARGET).pipeline())
    program = models[name].program()
    found = walk(program.clone(), passes)
    whole = optimize(program, passes, (), TARGET)
    kept = whole.program.clone()
    metrics = whole.metrics()
    return [
        (one, guarded(name, partial(_change, name, one, found.before[one], passes, kept, metrics)))
        for one in wanted
        if one in found.changed
    ], found.seconds


def _change(
    name: str, one: str, before: tuple[int, Program], passes: Sequence[Pass], kept: Program, metrics: Metrics
) -> Change:
    at, program = before
    left = optimize(program.clone(), [step for step in passes[at:] if step.name != one], (), TARGET)
    return Change(name, {}) if alike(left.program, kept) else Change(name, {one: 1}, left.metrics(), metrics)


def row(name: str, found: Sequence[Change], timed: Sequence[Worth], seconds: Counter[str]) -> str:
    """The row of a pass; `seconds` are those of all passes."""
    firing = [change for change in found if change.fires]
    needed = sum(bool(change.error) for change in found)
    mean = overall(timed)
    ratio = f"{mean[0]:.3f} [{mean[1]:.3f}, {mean[2]:.3f}] ({len(timed)})" if mean else ""
    own = [f"{1e3 * seconds[name]:.0f}", f"{100 * seconds[name] / seconds.total():.1f} %"]
    counts = [str(len(found)), str(len(firing)), str(needed or "")]
    cells = [name, *counts, *(_moved(firing, figure) for figure in FIGURES), *own, ratio]
    return f"| {' | '.join(cells)} |"


def reasons(names: Sequence[str]) -> str:
    """Why passes stay that change nothing here."""
    if not names:
        return ""
    lines = [f"- `{name}`: {WHY.get(name, 'no reason is known')}" for name in names]
    return "\n".join(["", "## Those that change no model here", "", *lines, ""])


def _moved(firing: Sequence[Change], figure: object) -> str:
    assert callable(figure)
    before, after = total(firing, figure)
    return f"{100 * (after / before - 1):+.1f} %" if before else ""


def most(found: Sequence[Change], count: int) -> list[str]:
    """The models whose predicted time changes most."""

    def moved(change: Change) -> float:
        assert change.before is not None and change.after is not None
        before, after = (next(iter(m.predicted.values())) for m in (change.before, change.after))
        return -abs(math.log(max(after, 1e-12) / max(before, 1e-12)))

    return [change.model for change in sorted((c for c in found if c.fires), key=moved)[:count]]


def main() -> int:
    """Ask about the passes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", nargs="*", metavar="PASS", default=[])
    parser.add_argument("--models", nargs="*", metavar="NAME", default=[])
    parser.add_argument("--timed", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    known = corpus(options.models)
    models = {member.name: Model(member.name, member) for member in known.members}
    steps = parse_pipeline(target_named(TARGET).pipeline())
    names = options.passes or list(dict.fromkeys(step.name for step in steps))
    found: dict[str, list[Change]] = {name: [] for name in names}
    seconds = Counter[str]()
    console, rows = Console(width=170), list[str]()
    results = workers.run_tasks(partial(changes_of, models, names), models, options.jobs, LIMITS)
    for model, result in track(results, "models", len(models), console=Console(stderr=True)):
        if isinstance(result, (workers.Died, workers.Hung)):
            raise SystemExit(f"{model}: {result}")
        changed, taken = result
        seconds += taken
        for name, change in changed:
            found[name].append(change)
    for name in track(names, "timing", console=Console(stderr=True)):
        chosen = [models[model] for model in most(found[name], options.timed)]
        timed = [one for one in worth_of(chosen, subject_of(name, target=TARGET), until=math.inf) if one.rounds]
        rows.append(row(name, found[name], timed, seconds))
        console.print(rows[-1], markup=False, highlight=False)
    if not options.passes and not options.models:
        head = HEAD.format(machine=processor(), models=len(models), version=known.version, timed=options.timed)
        nothing = [name for name in names if not found[name] or not any(c.fires or c.error for c in found[name])]
        PAGE.write_text(head + "\n".join(rows) + "\n" + AT_SIZE + reasons(nothing), "utf-8")
        if unknown := [name for name in nothing if name not in WHY]:
            console.print(f"worth nothing, and it is not said why they stay: {', '.join(unknown)}", style="red")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
