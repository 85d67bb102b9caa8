"""What passes change in a model: where they apply, and what the pipeline leaves with them and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gcomp.analysis.fusion.decide import decide
from gcomp.analysis.machines import MACHINES, Machine, machine_named
from gcomp.analysis.work import Nominal
from gcomp.ir.buffer import arena
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.fusion.fuse import blocks_to_cut
from gcomp.passes.manager import Instrument, PassManager
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.structure import structure
from gcomp.targets.base import target_named
from gcomp.testing import workers
from gcomp.trying.lowered import identity, lowered
from gcomp.trying.models import Model
from gcomp.trying.subject import Subject

GPUS = ("sm_80", "sm_90", "sm_100")
"""Machines whose time is predicted."""
_MEMORY = 6 << 30


@dataclass(frozen=True)
class Metrics:
    """What a pipeline leaves of a model. Bytes and flops are the cost model's; seconds were measured, those of code
    generation when the program was first lowered (`gcomp.trying.lowered`)."""

    ops: int
    kernels: int
    flops: int
    bytes: int
    predicted: dict[str, float]
    """Machine -> seconds of a call."""
    peak_bytes: int | None
    code_bytes: int
    compile_seconds: float
    pass_seconds: float
    tried_seconds: float
    """Of that, what the tried passes took."""
    applied: dict[str, int]
    """Pass -> how many rewrites it applied (or, where it counts none, how often it changed something)."""


@dataclass(frozen=True)
class Change:
    """A model without the tried passes and with them. Where nothing changes, `after` is None."""

    model: str
    applications: dict[str, int]
    """Rewrite -> how often it was applied; of a pass that counts none, its name."""
    before: Metrics | None = None
    after: Metrics | None = None
    same: bool = False
    """Whether what is left in the end is what would be left without them."""
    error: str = ""
    """Why there is nothing to say of the model."""

    @property
    def fires(self) -> bool:
        """Whether the passes change anything in the model."""
        return bool(self.applications)


# ---- one pipeline on one model ----


@dataclass
class _Watch(Instrument):
    """Counts rewrites of each pass, and looks at the program where kernels are made of it."""

    machine: Machine
    tried: frozenset[Pass]
    later: frozenset[int]
    """The passes after those that all targets share, by identity."""
    applied: Counter[str] = field(default_factory=Counter[str])
    rewrites: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    tried_seconds: float = 0.0
    looked: tuple[int, int, int, int, float] | None = None
    predicted: dict[str, float] = field(default_factory=dict[str, float])
    ops: int = 0
    _context: PassContext | None = None
    _counts: Counter[str] = field(default_factory=Counter[str])

    def begin(self, context: PassContext) -> None:
        self._context = context

    def before(self, step: Pass, program: Program) -> None:
        assert self._context is not None
        self._counts = Counter(self._context.counts)
        if id(step) in self.later and not self.predicted:
            self.predict(program)
        if step.level != "graph" and self.looked is None:
            self.look(program)

    def look(self, program: Program) -> None:
        """Note what kernels would be made of the program."""
        self.looked = (program.op_count(), *kernels_on(program, self.machine))

    def predict(self, program: Program) -> None:
        """Note how long GPUs would take."""
        self.predicted = {name: kernels_on(program, MACHINES[name])[3] for name in GPUS}

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        assert self._context is not None
        new = self._context.counts - self._counts
        self.applied[step.name] += new.total() or int(changed)
        self.seconds += seconds
        if step in self.tried:
            self.tried_seconds += seconds
            self.rewrites.update(new or ({step.name: 1} if changed else {}))


def kernels_on(program: Program, machine: Machine) -> tuple[int, int, int, float]:
    """Kernels that fusion would make of a program: how many, their flops, bytes, and seconds by a roofline."""
    kernels = flops = moved = 0
    seconds = 0.0
    nominal = Nominal(program.ranges)
    for block in blocks_to_cut(program):
        found = decide(block, nominal, machine)
        for group in found.kernels():
            kernel = found.kernel(group)
            kernels, flops, moved = kernels + 1, flops + kernel.flops, moved + kernel.moved_bytes
            seconds += kernel.seconds
    return kernels, flops, moved, seconds


@dataclass(frozen=True)
class Optimized:
    """A program after a pipeline, and what was seen on the way."""

    program: Program
    target: str
    watch: _Watch

    def metrics(self) -> Metrics:
        """What is left of it: it is lowered for that."""
        watch = self.watch
        peak = arena(self.program.module)
        code, lowering = lowered(self.program, self.target)
        assert watch.looked is not None
        ops, kernels, flops, moved, predicted = watch.looked
        times = {target_named(self.target).machine: predicted, **watch.predicted}
        return Metrics(ops, kernels, flops, moved, times, peak, code, watch.seconds + lowering, watch.seconds,
                       watch.tried_seconds, dict(watch.applied))  # fmt: skip


def optimize(program: Program, passes: Sequence[Pass], tried: Sequence[Pass], target: str) -> Optimized:
    """Run a pipeline on a program, which is changed, and watch it."""
    watch = _Watch(machine_named(target_named(target).machine), frozenset(tried), after_shared(passes, tried))
    PassManager(passes, [watch]).run(program, PassContext())
    if watch.looked is None:
        watch.look(program)
    return Optimized(program, target, watch)


def after_shared(passes: Sequence[Pass], tried: Sequence[Pass]) -> frozenset[int]:
    """The passes, by identity, from the first on that not all targets with kernels of their own share."""
    shared = {step.name for step in (*parse_pipeline(TO_FUSION), *tried)}
    first = next((k for k, step in enumerate(passes) if step.name not in shared), len(passes))
    return frozenset(map(id, passes[first:]))


# ---- all models ----


def changes(models: Sequence[Model], subject: Subject, *, jobs: int, seconds: float, until: float) -> Iterator[Change]:
    """What the tried passes change in each model, as they are done. A model has so many seconds; what is not done at
    `until`, a moment of `time.monotonic`, is given up."""
    limits = workers.Limits(seconds, _MEMORY, until)
    by_name = {model.name: model for model in models}
    for name, result in workers.run_tasks(partial(_change, by_name, subject), by_name, jobs, limits):
        if isinstance(result, workers.Hung):
            yield Change(name, {}, error=f"took longer than {seconds:.0f} s")
        elif isinstance(result, workers.Died):
            yield Change(name, {}, error=f"its process ended: {result.detail}")
        else:
            yield result


def _change(models: dict[str, Model], subject: Subject, name: str) -> Change:
    return guarded(name, lambda: _changed(models[name], subject))


def guarded(name: str, work: Callable[[], Change]) -> Change:
    """What it says of a model, or why it says nothing: neither a model nor a pass stops the others."""
    try:
        return work()
    except Exception as error:
        said = str(error).splitlines() or [""]
        return Change(name, {}, error=f"{type(error).__name__}: {said[0]}")


def _changed(model: Model, subject: Subject) -> Change:
    program = model.program()
    after = optimize(program.clone(), subject.after, subject.tried, subject.target)
    rewrites = after.watch.rewrites
    if subject.is_placed and not rewrites:
        return Change(model.name, {})
    before = optimize(program, subject.before, (), subject.target)
    if not alike(after.program, before.program):
        return Change(model.name, dict(rewrites) or {subject.name: 1}, before.metrics(), after.metrics())
    if not subject.is_placed:
        return Change(model.name, {})
    # What they did, others would have done: the same is left.
    same = after.metrics()
    return Change(model.name, dict(rewrites), replace(same, applied=dict(before.watch.applied)), same, same=True)


def alike(first: Program, second: Program) -> bool:
    """Whether programs are the same, whoever made their weights."""
    return structure(first) == structure(second) or identity(first) == identity(second)


def firing_elsewhere(changes: Sequence[Change]) -> dict[str, tuple[int, int]]:
    """Pass -> its rewrites in all models without the tried passes, and with them, where these differ."""
    before, after = Counter[str](), Counter[str]()
    for change in changes:
        if change.before is not None and change.after is not None:
            before.update(change.before.applied)
            after.update(change.after.applied)
    return {n: (before[n], after[n]) for n in dict.fromkeys((*before, *after)) if before[n] != after[n]}


def total(changes: Sequence[Change], value: Callable[[Metrics], Any]) -> tuple[Any, Any]:
    """The sums of a figure over the models that change, without the tried passes and with them."""
    pairs = [(c.before, c.after) for c in changes if c.before is not None and c.after is not None]
    return sum(value(b) or 0 for b, _ in pairs), sum(value(a) or 0 for _, a in pairs)


__all__ = ["GPUS", "Change", "Metrics", "alike", "changes", "firing_elsewhere", "kernels_on", "optimize", "total"]
