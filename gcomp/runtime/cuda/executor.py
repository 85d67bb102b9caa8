"""Runs plans for `triton:` targets on a GPU: binds symbols, chooses the architecture's plan, carries values along."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.errors import UnsupportedError, UsageError
from gcomp.runtime.cuda.arrays import Array, Held, Intake, Kind, hand_over, on_host, room, stream_of, take_donation
from gcomp.runtime.cuda.binding import bind
from gcomp.runtime.cuda.checking import check
from gcomp.runtime.cuda.clock import Clock
from gcomp.runtime.cuda.driver import Driver, Handle, driver
from gcomp.runtime.cuda.plan import CudaPlan, from_text
from gcomp.runtime.cuda.session import DeviceWeights, Kernels, Outside, Session
from gcomp.runtime.engine import engine_of
from gcomp.runtime.hosting import Env, host_functions, run_host
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan
from gcomp.runtime.planned import SIZES_KEPT, Segment, Type, cost_of, segments_of
from gcomp.runtime.signature import Shapes

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

_LAST_COMPATIBLE = 8
"""The last generation whose kernels run on later GPUs of the same generation."""


class OnDevice:
    """What the instances of a model share on a GPU: the driver, and each segment's plan, kernels and weights."""

    def __init__(
        self, plan: Plan, segments: Sequence[Segment[CudaPlan]], weights: Mapping[str, Array], gpu: Driver
    ) -> None:
        """Raises UnsupportedError for a GPU that the model was not compiled for, or whose memory does not suffice."""
        self.driver = gpu
        name = _choose_architecture([*segments[0].plans] if segments else [], gpu)
        self.plans = [segment.plans[name] for segment in segments]
        self.kernels = [Kernels(gpu, chosen, plan.binaries) for chosen in self.plans]
        names = list(dict.fromkeys(name for segment in segments for name in segment.step.weights))
        self.weights = DeviceWeights(gpu, names, weights)


class CudaExecutor:
    """A plan ready to be called. The GPU is opened by the first call, so that a model loads where there is none."""

    def __init__(
        self, plan: Plan, weights: Mapping[str, Array], opened: Callable[[], Driver] | None = None,
        shared: OnDevice | None = None,
    ) -> None:  # fmt: skip
        """`opened` gives the GPU, by default the first. Raises ArtifactError when the plan is not valid."""
        plan.check(host_functions)
        self._plan, self._weights, self._opened = plan, weights, opened
        self._signature = plan.signature
        self._intake = Intake(plan.signature)
        self._bindings: Lru[Shapes, Env] = Lru(SIZES_KEPT)

        def checked(chosen: CudaPlan, step: DeviceSegment, symbols: frozenset[str], donated: frozenset[int]) -> None:
            check(chosen, step, symbols, plan.binaries, donated)

        self.segments = list(segments_of(plan, "GPU", from_text, checked))
        self._returned = frozenset(plan.results)
        self._shared = shared
        self.seconds = 0.0

    @property
    def source(self) -> str:
        """Who says how much memory a call needs."""
        return f"gcomp's plan for {self._architecture}"

    @property
    def bare(self) -> None:
        """There is no function of the inputs alone to give away."""

    @cached_property
    def device(self) -> OnDevice:
        """The GPU, with kernels and weights on it. Raises UnsupportedError."""
        if self._shared is not None:
            return self._shared
        started = time.perf_counter()
        found = OnDevice(self._plan, self.segments, self._weights, (self._opened or driver)())
        self.seconds = time.perf_counter() - started
        return found

    @cached_property
    def sessions(self) -> list[Session]:
        """This instance's memory, a session for each segment."""
        device = self.device
        parts = zip(device.plans, device.kernels, self.segments, strict=True)
        return [Session(device.driver, plan, kernels, device.weights, s.step.weights) for plan, kernels, s in parts]

    def keep(self, count: int) -> None:
        """Raises UsageError: kernels serve all sizes."""
        raise UsageError("a model for GPUs keeps no executables by sizes", fix="leave executables out")

    def set_threads(self, count: int) -> None:
        """Raises UsageError: kernels say it."""
        raise UsageError("a model for GPUs has no number of threads to set", fix="leave threads out")

    def instance(self) -> CudaExecutor:
        """Another instance, with memory of its own, which shares kernels and weights."""
        return CudaExecutor(self._plan, self._weights, self._opened, self.device)

    def __call__(self, values: list[Any]) -> list[Any]:
        """Results for inputs in order, of the same kind as the inputs. Raises InputError, GcompError."""
        given, env, kind = self._taken_in(values)
        found = self._run(given, env, kind)
        gpu, count, stream = self.device.driver, len(given), stream_of(kind)
        return [hand_over(gpu, found[i], kind, stream, given=i < count) for i in self._plan.results]

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Do what a call does, and note the time of each step. Raises InputError, GcompError."""
        given, env, kind = self._taken_in(values)
        donated = [spec.donated for spec in self._signature.inputs]
        if any(donated):
            raise UnsupportedError("the steps of a model that is given arrays on the GPU to keep are not timed")
        recording.architecture = self._architecture
        self._run(given, env, kind, recording)

    def _taken_in(self, values: Sequence[Any]) -> tuple[list[Held], dict[str, int], Kind]:
        """What a caller gives, the sizes that it has, and of what kind the results are. Raises InputError."""
        given = [self._intake.take(i, value) for i, value in enumerate(values)]
        self._intake.check_donated(given)
        shapes = tuple(value.shape for value in given)
        env = dict(self._bindings.get(shapes, lambda: self._signature.bind(shapes)))
        return given, env, max((value.kind for value in given), default=Kind.NUMPY)

    def again(self, values: list[Any]) -> list[Any]:
        """As a call."""
        return self(values)

    def prepare(self, env: Mapping[str, int]) -> None:
        """Load what a call with these sizes needs, and make room for it. Raises UnsupportedError."""
        for segment, session in zip(self.segments, self.sessions, strict=True):
            if env.keys() >= set(segment.symbols):
                with self._plan.blaming(segment.step.text):
                    session.prepare(env, segment.sized(env).sizes)

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """Bytes of a call, the largest over the segments, by the plan."""
        figures: list[dict[str, int]] = []
        for segment in self.segments:
            inputs, outputs = segment.sized(env).sizes
            weights = [Type.of(self._plan.weights[name]).bytes({}) for name in segment.step.weights]
            limits = {"input": inputs, "output": outputs, "weight": weights}
            bound = bind(segment.plans[self._architecture], env, limits)
            figures.append({
                "arguments": sum(inputs) + sum(weights), "outputs": sum(outputs),
                "temporaries": bound.arena + bound.scratch, "shared": self._shared_bytes(segment.step, outputs),
            })  # fmt: skip
        return {key: max(figure[key] for figure in figures) for key in figures[0]}

    def _shared_bytes(self, step: DeviceSegment, outputs: Sequence[int]) -> int:
        """How much of the outputs lies in inputs' memory, whatever callers give: what is on the host does not."""
        return 0

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """What the launches compute and move, by the plan; those in loops and cases are counted once."""
        return cost_of(
            [step for segment in self.segments for step in segment.plans[self._architecture].launches()], env
        )

    @property
    def _architecture(self) -> str:
        """The GPU's where it is open, else the first that the model was compiled for."""
        if "device" in self.__dict__ and self.device.plans:
            return self.device.plans[0].architecture
        return engine_of(self._plan).variants[0]

    def _run(
        self, given: Sequence[Held], env: Env, kind: Kind, recording: Recording | None = None
    ) -> list[Held | Array]:
        """All values of a call: its inputs, then what each step makes. A recording notes the time of each."""
        values: list[Held | Array] = list(given)
        sessions = iter(zip(self.segments, self.sessions, strict=True))
        stream, gpu = stream_of(kind), self.device.driver
        for held in given:
            if held.stream is not None:
                gpu.wait(held.stream)
        for step in self._plan.steps:
            if isinstance(step, HostStep):
                began = time.perf_counter_ns()
                values += self._host(step, values, env, stream)
                if recording is not None:
                    recording.add("host", step.function, "", began, time.perf_counter_ns() - began)
                continue
            segment, session = next(sessions)
            inputs = [_where(values[i]) for i in step.inputs]
            with self._plan.blaming(segment.step.text):
                sized = segment.sized(env)
                given_away = {k: values[step.inputs[argument]] for argument, k in step.aliases}
                outputs = [
                    take_donation(gpu, given_away.get(k), own, shape, dtype) or room(gpu, own, shape, dtype)
                    for k, (shape, dtype) in enumerate(sized.outputs)
                    for own in (self._kind(segment.first + k, kind),)
                ]
                self._starting()
                clock = None if recording is None else Clock(gpu, env)
                session.run(env, inputs, [held.where for held in outputs], sized.sizes, stream, clock)
                if clock is not None and recording is not None:
                    clock.note(recording)
            values += outputs
        return values

    def _starting(self) -> None:
        """The GPU is about to write to what was given away."""

    def _kind(self, number: int, kind: Kind) -> Kind:
        """Of what kind a step's result is, when the caller wants one: what nobody is given stays on the GPU."""
        return kind if number in self._returned else Kind.DEVICE

    def _host(self, step: HostStep, values: Sequence[Held | Array], env: Env, stream: Handle | None) -> list[Array]:
        inputs = [values[i] for i in step.inputs]
        arrays = [v if isinstance(v, np.ndarray) else on_host(self.device.driver, v, stream) for v in inputs]
        with self._plan.blaming(f"the host step {step.function}"):
            return run_host(step, arrays, self._signature, env)


def _where(value: Held | Array) -> Outside:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value.where


def _choose_architecture(names: Sequence[str], gpu: Driver) -> str:
    """The architecture among those of a model that a GPU runs. Raises UnsupportedError."""
    own = _version(gpu.architecture)
    fitting = [
        name for name in names
        if name == gpu.architecture or (_version(name)[0] == own[0] <= _LAST_COMPATIBLE and _version(name) <= own)
    ]  # fmt: skip
    if not fitting:
        raise UnsupportedError(
            f"The model was compiled for {', '.join(names)}, and this GPU is of {gpu.architecture}.",
            where=gpu.name,
            fix=f"Compile it with --target triton:{gpu.architecture}.",
        )
    return max(fitting, key=_version)


def _version(name: str) -> tuple[int, int]:
    """Generation and revision of an architecture: `sm_90` is (9, 0)."""
    digits = name.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])
