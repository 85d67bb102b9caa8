"""Runs plans for `cpu:` targets: binds symbols, chooses the code that this processor runs, carries values along."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.runtime.cpu.arrays import OUT, Intake, Kind, readable, room
from gcomp.runtime.cpu.checking import arena_bytes, check
from gcomp.runtime.cpu.lanes import Lane, lane_for
from gcomp.runtime.cpu.memory import Array
from gcomp.runtime.cpu.plan import CpuPlan, from_text
from gcomp.runtime.cpu.session import Session, sessions_of, set_threads
from gcomp.runtime.cpu.threads import check_count, thread_count
from gcomp.runtime.cpu.variants import VARIANTS, chosen, runs
from gcomp.runtime.engine import engine_of
from gcomp.runtime.executor import Executor
from gcomp.runtime.hosting import Env, host_functions, run_host
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan
from gcomp.runtime.planned import SIZES_KEPT, Segment, Type, cost_of, segments_of, size_known_late
from gcomp.runtime.signature import Shapes

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording


class CpuExecutor(Executor):
    """A plan ready to be called. Its code is mapped by the first call, so that a model loads on any machine."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array]) -> None:
        """Raises ArtifactError when the plan is not valid, UsageError for a wrong number of threads."""
        plan.check(host_functions)
        self._plan, self._weights = plan, weights
        self._signature = plan.signature
        self._intake = Intake(plan.signature)
        self._bindings: Lru[Shapes, Env] = Lru(SIZES_KEPT)
        self._threads = thread_count()

        def checked(found: CpuPlan, step: DeviceSegment, symbols: frozenset[str], donated: frozenset[int]) -> None:
            check(found, step, symbols, plan.binaries, donated)

        self.segments = list(segments_of(plan, "processor", from_text, checked))
        self._sessions: list[Session] | None = None
        self._lane: Lane | None = None
        """What a call asks first."""
        self._seconds = 0.0

    @property
    def source(self) -> str:
        """Who says how much memory a call needs."""
        return f"gcomp's plan for {self._variant}"

    @property
    def seconds(self) -> float:
        """Seconds that it took to get ready for the first call."""
        return self._seconds

    def sessions(self, env: Mapping[str, int]) -> list[Session]:
        """The segments on this machine. The first call maps the code, once the plan holds at its sizes.

        Raises UnsupportedError where none of the model's code runs.
        """
        if self._sessions is None:
            started = time.perf_counter()
            variants = engine_of(self._plan).variants
            best = chosen(variants, f"the model, which was compiled for {', '.join(variants)},")
            for segment in self.segments:
                if not self._late(segment, env):
                    self._arena(segment, env)
            with self._plan.blaming("the code"):
                found = sessions_of(self._plan, self.segments, best, self._weights, self._threads)
            # Of several threads that get here at once, one wins.
            self._sessions = self._sessions or found
            self._seconds = time.perf_counter() - started
        return self._sessions

    def _late(self, segment: Segment[CpuPlan], env: Mapping[str, int]) -> list[str]:
        """The symbols that `env` does not have, of the sizes of a segment's values and of what lies between them."""
        return sorted({*segment.symbols, *segment.plans[self._variant].symbols} - env.keys())

    def _arena(self, segment: Segment[CpuPlan], env: Mapping[str, int]) -> int:
        """The bytes of a segment's arena at known sizes, at which all of its plan is looked at."""
        if late := self._late(segment, env):
            raise size_known_late(late)
        inputs, outputs = segment.sized(env).sizes
        weights = [Type.of(self._plan.weights[name]).bytes({}) for name in segment.step.weights]
        limits = {"input": inputs, "output": outputs, "weight": weights}
        with self._plan.blaming(segment.step.text):
            return arena_bytes(segment.plans[self._variant], env, limits)

    def set_threads(self, count: int) -> None:
        """Compute with so many threads from the next call on. Raises UsageError for a number that cannot be."""
        self._threads = check_count(count)
        if self._sessions is not None:
            set_threads(self._sessions, count)

    def __call__(self, values: list[Any]) -> list[Any]:
        """Results for inputs in order, of the same kind as the inputs. Raises InputError, GcompError."""
        lane = self._lane
        if lane is not None and (found := lane(values)) is not None:
            return found
        arrays, kind = self._intake.take(values)
        env = self._bound(arrays)
        found = self._run(arrays, env, kind)
        if self._plan.is_single:
            self._lane = self._lane_of(values, env)
        made = self._handed_over(found, self._plan.results, len(arrays), kind)
        self._intake.give_away(values)
        return made

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Do what a call does, and note the time of each step. Raises InputError, GcompError."""
        arrays, kind = self._intake.take(values)
        owned = [np.array(x) if s.donated else x for x, s in zip(arrays, self._signature.inputs, strict=True)]
        self._run(owned, self._bound(arrays), kind, recording)

    def _bound(self, arrays: Sequence[Array]) -> Env:
        shapes = tuple([array.shape for array in arrays])
        return dict(self._bindings.get(shapes, lambda: self._signature.bind(shapes)))

    def again(self, values: list[Any]) -> list[Any]:
        """As a call, for values whose kinds, types, shapes and strides are known to be those of the last call."""
        lane = self._lane
        if lane is not None and (found := lane.again(values)) is not None:
            return found
        return self(values)

    def prepare(self, env: Mapping[str, int]) -> None:
        """Map the code, read the weights, and make room for a call with these sizes. Raises UnsupportedError."""
        for segment, session in zip(self.segments, self.sessions(env), strict=True):
            if not self._late(segment, env):
                with self._plan.blaming(segment.step.text):
                    session.prepare(env, segment.sized(env).sizes)

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """Bytes of a call, the largest over the segments, by the plan."""
        figures: list[dict[str, int]] = []
        for segment in self.segments:
            inputs, outputs = segment.sized(env).sizes
            weights = [Type.of(self._plan.weights[name]).bytes({}) for name in segment.step.weights]
            shared = sum(outputs[k] for _, k in segment.step.aliases)
            figures.append({
                "arguments": sum(inputs) + sum(weights), "outputs": sum(outputs),
                "temporaries": self._arena(segment, env), "shared": shared,
            })  # fmt: skip
        return {key: max([figure[key] for figure in figures], default=0) for key in _FIGURES}

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """What the launches compute and move, by the plan; those in loops and cases are counted once."""
        return cost_of([step for segment in self.segments for step in segment.plans[self._variant].launches()], env)

    @property
    def _variant(self) -> str:
        """The best that runs here, else the first that the model was compiled for."""
        names = [name for name in engine_of(self._plan).variants if name in VARIANTS]
        fitting = [name for name in VARIANTS if name in names and runs(VARIANTS[name])]
        return fitting[-1] if fitting else names[0]

    # ---- a call ----

    def _run(self, given: Sequence[Array], env: Env, kind: Kind, recording: Recording | None = None) -> list[Array]:
        """All values of a call: its inputs, then what each step makes. A recording notes the time of each."""
        values = list(given)
        sessions = iter(zip(self.segments, self.sessions(env), strict=True))
        for step in self._plan.steps:
            if isinstance(step, HostStep):
                began = time.perf_counter_ns()
                values += self._host(step, values, env)
                if recording is not None:
                    recording.add("host", step.function, "", began, time.perf_counter_ns() - began)
                continue
            segment, session = next(sessions)
            with self._plan.blaming(segment.step.text):
                sized = segment.sized(env)
                inputs = [readable(values[i]) for i in step.inputs]
                given_away = {k: inputs[argument] for argument, k in step.aliases}
                outputs = [
                    own if (own := given_away.get(k)) is not None and (own.shape, own.dtype) == (shape, dtype)
                    else self._room(segment.first + k, shape, dtype, kind)
                    for k, (shape, dtype) in enumerate(sized.outputs)
                ]  # fmt: skip
                bound = session.bound(env, sized.sizes)
                self._starting()
                if recording is None:
                    session.run(bound, inputs, outputs)
                else:
                    session.profile(bound, inputs, outputs, recording)
            values += outputs
        return values

    def _room(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any], kind: Kind) -> Array:
        """Room for a value of the plan."""
        return room(shape, dtype, kind)

    def _starting(self) -> None:
        """What was given away is about to be written to."""

    def _host(self, step: HostStep, values: Sequence[Array], env: Env) -> list[Array]:
        with self._plan.blaming(f"the host step {step.function}"):
            inputs = [values[i] for i in step.inputs]
            results = run_host(step, inputs, self._signature, env)
            return [np.array(y) if any(np.may_share_memory(x, y) for x in inputs) else y for y in results]

    def _handed_over(self, found: Sequence[Array], results: Sequence[int], given: int, kind: Kind) -> list[Any]:
        """Results as a caller's: what was given, or is given twice, as a copy."""
        seen: set[int] = set()
        made: list[Any] = []
        for i in results:
            own = i < given or i in seen
            seen.add(i)
            made.append(OUT[kind](np.array(found[i], order="C") if own else found[i]))
        return made

    def _lane_of(self, values: Sequence[Any], env: Mapping[str, int]) -> Lane | None:
        """What runs calls like this one faster, where there are any."""
        (segment,), (session,) = self.segments, self.sessions(env)
        if segment.step.aliases or any(spec.donated for spec in self._signature.inputs):
            return None
        sized = segment.sized(env)
        return lane_for(values, self._signature.dtypes, session, session.bound(env, sized.sizes), sized.outputs)


_FIGURES = ("arguments", "outputs", "temporaries", "shared")

__all__ = ["CpuExecutor"]
