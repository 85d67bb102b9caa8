"""Runs a plan: binds symbols, compiles what the sizes need, and carries values from step to step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import DTYPES
from gcomp.errors import ArtifactError, GcompError, UnsupportedError
from gcomp.runtime.hosting import host_functions, run_host
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.signature import Shapes, parse_dims
from gcomp.runtime.xla import custom_calls, guard, prints
from gcomp.runtime.xla.arrays import JAX, NUMPY, OUT, TORCH, Intake
from gcomp.runtime.xla.cache import compile_cached
from gcomp.runtime.xla.client import Array, Client, DeviceArray, Executable, client, enable_lapack
from gcomp.runtime.xla.forking import watch
from gcomp.runtime.xla.lanes import Lane, NumpyLane, TorchLane, numpy_lane
from gcomp.runtime.xla.options import (
    check_options,
    choose,
    executables_kept,
    thread_count,
    use_threads,
    warn_of_dropping,
)
from gcomp.runtime.xla.prints import enable_prints, raise_failure
from gcomp.runtime.xla.profiling import host_step, record

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

_BINDINGS = 256

Env = dict[str, int]
DeclaredType = tuple[tuple[Size, ...], np.dtype[Any]]


def declared_type(value: Value) -> DeclaredType:
    """The shape, with symbols, and the dtype of a value."""
    return parse_dims(value.dims), DTYPES[value.dtype]


class Segment:
    """A device segment with its weights on the device and its executables by size."""

    def __init__(self, plan: Plan, step: DeviceSegment, owner: Client, kept: int) -> None:
        """Raises ArtifactError when the segment asks for what is not allowed."""
        self.step = step
        self.template = plan.templates[step.text]
        self.prints = prints.TARGET in self.template.text
        """Whether it prints: a call ends when all is printed."""
        if refused := custom_calls.refused_targets(custom_calls.targets_in(self.template.text)):
            raise ArtifactError("The program calls a custom function that gcomp does not allow.", why=refused[0][:80])
        check_options(step.options)
        self._client, self._blamed, self._foreign = owner, plan.blamed, plan.origin is not None
        self._options = choose(step.options, thread_count())
        parameters = [*(plan.values[i] for i in step.inputs), *(plan.weights[name] for name in step.weights)]
        self._types = [declared_type(value) for value in parameters], [declared_type(value) for value in step.outputs]
        self._symbols = sorted(self.template.symbols)
        self._executables: Lru[tuple[int, ...], Executable] = Lru(kept, self._warn)
        self._weights: list[DeviceArray] | None = None
        self.seconds = 0.0

    @property
    def cached(self) -> int:
        """How many executables are held now."""
        return len(self._executables)

    def keep(self, count: int) -> None:
        """Hold so many executables, one for each combination of sizes."""
        self._executables.size = count

    def _warn(self) -> None:
        warn_of_dropping(self._executables.size)

    @property
    def compilations(self) -> int:
        """How many executables were made so far."""
        return self._executables.made

    @property
    def weights(self) -> list[DeviceArray]:
        """The weights on the device, once they are placed."""
        return self._weights or []

    def place_weights(self, weights: Callable[[str], DeviceArray]) -> None:
        """Take the segment's weights as device arrays, once."""
        if self._weights is None:
            self._weights = [weights(name) for name in self.step.weights]

    def executable(self, env: Mapping[str, int]) -> Executable:
        """The executable for these sizes, compiled on first use. Raises GcompError."""
        return self._executables.get(tuple([env[s] for s in self._symbols]), lambda: self._compile(env))

    def run(self, arguments: Sequence[DeviceArray], env: Mapping[str, int]) -> list[DeviceArray]:
        """The segment's results. `place_weights` must have been called."""
        results = self.launch(self.executable(env), arguments)
        if self.prints:
            for result in results:
                result.block_until_ready()
            raise_failure()
        return results

    def launch(self, executable: Executable, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results of one of the segment's executables."""
        try:
            return executable([*arguments, *self.weights])
        except GcompError as error:
            raise self._blamed(error, self.step.text) from error.__cause__

    def _compile(self, env: Mapping[str, int]) -> Executable:
        try:
            return self._compile_filled(self.template.fill(env), env)
        except GcompError as error:
            raise self._blamed(error, self.step.text) from error.__cause__

    def _compile_filled(self, text: str, env: Mapping[str, int]) -> Executable:
        start = time.perf_counter()
        targets = guard.check_program(text, foreign=self._foreign)
        if any(target.startswith("lapack_") for target in targets):
            enable_lapack()
        if prints.TARGET in targets:
            enable_prints()
        executable = compile_cached(self._client, text, self._options)
        self.seconds += time.perf_counter() - start
        self._check_types(executable, env)
        return executable

    def _check_types(self, executable: Executable, env: Mapping[str, int]) -> None:
        """A call compares its inputs with the signature, and XLA compares only their bytes: this closes the gap."""
        for kind, declared, compiled in zip(("inputs", "outputs"), self._types, executable.types(), strict=True):
            expected = [(tuple([dims.evaluate(s, env) for s in shape]), dtype) for shape, dtype in declared]
            if expected != compiled:
                raise ArtifactError(
                    f"The program's {kind} are not what the plan says.",
                    why=f"They are {compiled}, and should be {expected}."[:500],
                )


class XlaExecutor:
    """A plan ready to be called on one device."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array], platform: str) -> None:
        """Raises ArtifactError when the plan is not valid or asks for what is not allowed."""
        kept = executables_kept()
        plan.check(host_functions)
        self._plan = plan
        self._signature = plan.signature
        self._client = client(platform)
        self._intake = Intake(plan.signature, self._client)
        self._bindings: Lru[Shapes, Env] = Lru(_BINDINGS)
        self._host_weights = weights
        self._device_weights: dict[str, DeviceArray] = {}
        self._steps: list[Segment | HostStep] = [
            self._segment(step, kept) if isinstance(step, DeviceSegment) else step for step in plan.steps
        ]
        self.segments = [step for step in self._steps if isinstance(step, Segment)]
        self._single = self.segments[0] if plan.is_single else None
        self._symbols = {name for segment in self.segments for name in segment.template.symbols}
        self._ready = False
        self.lane: Lane | None = None
        """What a call asks first."""
        watch(self)
        donates = any(spec.donated for spec in plan.signature.inputs)
        # torch's memory is read in place, or not at all.
        torch = {TORCH: TorchLane} if self._client.on_host else {}
        self._lanes = {NUMPY: NumpyLane} if donates else {NUMPY: numpy_lane, **torch}

    def _segment(self, step: DeviceSegment, kept: int) -> Segment:
        """What runs one of the plan's segments."""
        return Segment(self._plan, step, self._client, kept)

    def keep(self, count: int) -> None:
        """Hold so many executables for each segment."""
        for segment in self.segments:
            segment.keep(count)

    @property
    def source(self) -> str:
        """Who says how much memory a call needs."""
        threads = thread_count()
        return f"XLA ({self._client.version}, {threads} thread{'s' if threads > 1 else ''})"

    def __call__(self, values: list[Any]) -> list[Any]:
        """Results for inputs in order, of the same kind as the inputs. Raises InputError, GcompError."""
        lane = self.lane
        if lane is not None and (found := lane(values)) is not None:
            return found
        shapes, kind = self._intake.recognise(values)
        results = self._bound(values, shapes, kind)
        if kind != NUMPY and (kind != JAX or any(type(v) is np.ndarray for v in values)):
            # The caller may write to the memory that the call still reads.
            for result in results:
                result.block_until_ready()
        return [OUT[kind](result) for result in results]

    def again(self, values: list[Any]) -> list[Any]:
        """As a call, for values whose kinds, types, shapes and strides are known to be those of the last call."""
        lane = self.lane
        if isinstance(lane, TorchLane) and (found := lane.again(values)) is not None:
            return found
        return self(values)

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Do what a call does, and note the time of each step. Raises InputError, GcompError."""
        owned = [np.array(v) if s.donated else v for v, s in zip(values, self._signature.inputs, strict=False)]
        record(lambda: self(owned + values[len(owned) :]), recording)

    def _bound(self, values: list[Any], shapes: Shapes, kind: int) -> list[DeviceArray]:
        """The results for recognised inputs, and a fast lane for the next call if it is like this one."""
        env = self._bindings.get(shapes, lambda: self._signature.bind(shapes))
        if not self._ready:
            self.prepare_weights()
        arguments = self._intake.move(values)
        if self._single is None:
            return self._run_steps(arguments, env)
        executable = self._single.executable(env)
        if kind in self._lanes:
            types = list(zip(shapes, self._signature.dtypes, strict=True))
            self.lane = self._lanes[kind](self._client, self._single, executable, types)
        return self._single.launch(executable, arguments)

    @property
    def client(self) -> Client:
        """The device's client."""
        return self._client

    @property
    def compilations(self) -> int:
        """How many executables were made so far, of the segment with the most."""
        return max((segment.compilations for segment in self.segments), default=0)

    @property
    def bare(self) -> Executable | None:
        """The executable of a plan that is one segment of fixed sizes without weights."""
        single = self._single
        if single is None or single.step.weights or not self._signature.is_static:
            return None
        return single.executable({})

    def set_threads(self, count: int) -> None:
        """Raises UsageError for another number than XLA was started with."""
        use_threads(count)

    def instance(self) -> XlaExecutor:
        """Itself: XLA allocates for each call."""
        return self

    def prepare(self, env: Mapping[str, int]) -> list[Executable]:
        """Compile what these sizes need; segments whose sizes depend on data wait until they are known."""
        return [segment.executable(env) for segment in self.segments if segment.template.symbols <= env.keys()]

    def _all(self, env: Mapping[str, int]) -> list[Executable]:
        """The executables of all segments. Raises UnsupportedError when sizes depend on data."""
        if unbound := sorted(self._symbols - env.keys()):
            raise UnsupportedError(
                f"The size {', '.join(unbound)} is known only while the model runs.", fix="Call the model instead."
            )
        return self.prepare(env)

    @property
    def seconds(self) -> float:
        """Seconds spent in XLA's compiler so far."""
        return sum(segment.seconds for segment in self.segments)

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """XLA's figures in bytes, the largest over the segments."""
        figures = [executable.memory() for executable in self._all(env)]
        return {key: max(figure[key] for figure in figures) for key in figures[0]}

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """XLA's cost analysis, summed over the segments."""
        total: dict[str, float] = {}
        for executable in self._all(env):
            for key, value in executable.cost().items():
                total[key] = total.get(key, 0.0) + value
        return total

    def prepare_weights(self) -> None:
        """Place all weights on the device."""
        for segment in self.segments:
            segment.place_weights(self._weight)
        self._ready = True

    def _weight(self, name: str) -> DeviceArray:
        if name not in self._device_weights:
            host = self._host_weights[name]
            self._device_weights[name] = placed = self._client.put(host)
            if self._client.on_host and isinstance(self._host_weights, dict) and not self._client.shares(host, placed):
                self._host_weights[name] = np.asarray(placed)
        return self._device_weights[name]

    def _run_steps(self, arguments: list[DeviceArray], env: Env) -> list[DeviceArray]:
        values, env = list(arguments), dict(env)
        for step in self._steps:
            if isinstance(step, Segment):
                values += step.run([values[i] for i in step.step.inputs], env)
            else:
                values += [self._client.put(array) for array in self._host(step, values, env)]
        return [values[i] for i in self._plan.results]

    def _host(self, step: HostStep, values: Sequence[DeviceArray], env: Env) -> list[Array]:
        try:
            with host_step(step.function):
                return run_host(step, [np.asarray(values[i]) for i in step.inputs], self._signature, env)
        except GcompError as error:
            raise self._plan.blamed(error, f"the host step {step.function}") from error.__cause__
