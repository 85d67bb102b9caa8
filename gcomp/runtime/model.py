"""A compiled model: call it, ask what it costs, save it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gcomp.errors import UsageError
from gcomp.records import record
from gcomp.runtime.artifact import write_artifact
from gcomp.runtime.checks import CheckedExecutor
from gcomp.runtime.engine import Ability, engine_of
from gcomp.runtime.environment import check_whole
from gcomp.runtime.executor import Array, Executor
from gcomp.runtime.manifest import (
    FORMAT_VERSION,
    InputSpec,
    Manifest,
    MemorySpec,
    NumericsSpec,
    OutputSpec,
    WeightSpec,
    initial_name,
)
from gcomp.runtime.plan import DeviceSegment, Plan
from gcomp.runtime.results import result_view
from gcomp.runtime.signature import Signature, constraints_to_json, describe, describe_input, symbols_to_json
from gcomp.runtime.strict_json import Json
from gcomp.runtime.structure import Build, builder, taker
from gcomp.runtime.weights import describe_weight
from gcomp.version import __version__

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Profile


@record
class Memory:
    """Bytes that one call needs, and who says so.

    `total_bytes` counts arguments (weights included), outputs and temporaries, and what outputs share with donated
    inputs once.
    """

    argument_bytes: int
    output_bytes: int
    temporary_bytes: int
    shared_bytes: int
    source: str

    @property
    def total_bytes(self) -> int:
        """All bytes at the peak."""
        return self.argument_bytes + self.output_bytes + self.temporary_bytes - self.shared_bytes


class Model:
    """A compiled model.

    Call it with its inputs in order or by name: NumPy arrays, torch tensors or jax arrays. Results are of the same
    kind (torch where any input is, else jax where any is). NumPy results are read-only views of the device's memory;
    copy one to change it. Typed random keys of JAX are taken and, where results are jax arrays, given. On the
    processor, memory of donated inputs is reused only for jax arrays, which the call deletes; NumPy arrays and torch
    tensors are never written to. Donated arrays on a GPU are (docs/guides/gpu.md).
    """

    def __init__(
        self,
        plan: Plan,
        weights: Mapping[str, Array],
        *,
        timings: Mapping[str, float] | None = None,
        producers: Mapping[str, str] | None = None,
        licences: tuple[str, ...] = (),
        start: bool = True,
    ) -> None:
        """Raises UnsupportedError when this installation cannot run the plan's target, ArtifactError for a bad plan.

        Without `start`, what runs the plan is brought in when it is first needed, which `save` is not.
        """
        self.on = engine_of(plan)
        self.plan = plan
        # A dict of our own: the executor may replace an array by an equal one that the device shares.
        self.weights = dict(weights) if isinstance(weights, dict) else weights
        self.producers = dict(producers or {})
        self.licences = licences
        self.verified: Json = None
        """What a verified compilation compared, as the manifest says it; None where nothing was."""
        self.numerics: NumericsSpec | None = None
        """The class of numerics, and what was chosen in it; None for a target that has no classes."""
        self._timings = dict(timings or {})
        self.finder: Callable[[tuple[str, ...]], Model] | None = None
        """What compiles a model of other values of the same program; None where the program is not at hand."""
        self._found: dict[tuple[str, ...], Model] = {}
        self.started = False
        """Whether what runs the plan is there."""
        if start:
            self._begin()

    def _begin(self) -> None:
        self.started = True
        self._executor, self._signature = self._start()
        self.flat_again = self._executor.again
        """As `flat`, for inputs that the caller knows to have the types, shapes and strides of the last call's."""
        signature = self._signature
        forms = {i: result_view(spec) for i, spec in enumerate(signature.outputs)}
        self._forms = {i: form for i, form in forms.items() if form is not None}
        self._build = self._builder(signature)
        self._take = None if signature.arguments is None else taker(signature.arguments, len(signature.inputs))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What a model has once it is started: the first look at it starts it."""
            if self.__dict__.get("started", True) or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self._begin()
            return getattr(self, name)

    def _start(self) -> tuple[Executor, Signature]:
        """What runs the plan, and what callers give and get."""
        executor = self.on.executor(self.plan, self.weights)
        return CheckedExecutor(executor, self.plan.checks) if self.plan.checks else executor, self.plan.signature

    def _builder(self, signature: Signature) -> Build:
        """What arranges the results: all outputs but those that were fetched."""
        count = len(signature.outputs) - self.plan.fetched
        build = builder(signature.result, count)
        if self._forms:
            return lambda results: build(self._shown(results)[:count])
        return (lambda results: build(results[:count])) if self.plan.fetched else build

    def _shown(self, results: Sequence[Any]) -> list[Any]:
        """Results, those as typed keys or as names that are."""
        return [self._forms[i](result) if i in self._forms else result for i, result in enumerate(results)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results in the source's own structure (a tuple for ONNX and IR text). Raises InputError.

        Arguments are as the source takes them (pytrees, for JAX), or flat, by position or by name.
        """
        return self._build(self._executor(self._arranged(args, kwargs)))

    def named(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The results by output name. Raises InputError."""
        results = self._shown(self._executor(self._arranged(args, kwargs)))
        return dict(zip([spec.name for spec in self.outputs], results, strict=True))

    def fetch(self, names: str | Sequence[str], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Values of the program for the inputs that follow: outputs, and what was compiled with `fetch`.

        A model made by `gcomp.compile(..., fetch=...)` has its program at hand: then any other value is found, too, and
        compiled at the first call; nothing else runs for it. Raises UsageError for a value that there is not.
        """
        keys = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
        own = {key: [s.name for s in self.outputs if is_named(s.name, key)] for key in keys}
        others = tuple(key for key, found in own.items() if not found)
        values = self.named(*args, **kwargs) if len(others) < len(keys) else {}
        if others:
            flat = self._arranged(args, kwargs)
            found = self._others(others)
            values |= dict(zip([spec.name for spec in found.outputs], found.flat(flat), strict=True))
        return {name: value for name, value in values.items() if any(is_named(name, key) for key in keys)}

    def _others(self, keys: tuple[str, ...]) -> Model:
        """The model of values that are not among the outputs."""
        if self.finder is None or self.signature is not self.plan.signature:
            raise UsageError(
                f"the model does not give {keys[0]!r}",
                why=f"it gives: {', '.join(spec.name for spec in self.outputs)}",
                fix=f"compile it to give more: gcomp.compile(source, fetch=[{keys[0]!r}]), or gcomp compile --fetch",
            )
        if keys not in self._found:
            self._found[keys] = self.finder(keys)
        return self._found[keys]

    def _arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if self._take is None or self._is_flat(args, kwargs):
            return self._signature.arrange(args, kwargs)
        return self._take((args, kwargs))

    def _is_flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether arguments are the flat inputs themselves, in spite of a structure."""
        if kwargs:
            return kwargs.keys() <= self._signature.positions.keys()
        return len(args) == len(self.inputs) and not any(isinstance(arg, tuple | list | dict) for arg in args)

    def flat(self, values: list[Any]) -> list[Any]:
        """The flat results for the flat inputs, in order. Raises InputError."""
        return self._executor(values)

    @property
    def executable(self) -> Any:
        """The target's executable whose parameters are the inputs and nothing else; None where there is none."""
        return self._executor.bare

    def __repr__(self) -> str:
        inputs = ", ".join(describe_input(spec) for spec in self.inputs)
        outputs = ", ".join(f"{spec.name}: {describe(spec)}" for spec in self.outputs)
        return f"<gcomp.Model for {self.target}: ({inputs}) -> ({outputs})>"

    @property
    def target(self) -> str:
        """What the model was compiled for."""
        return self.plan.target

    @property
    def signature(self) -> Signature:
        """Inputs, outputs, the ranges of symbols and the constraints among them."""
        return self._signature

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """The inputs in order."""
        return self._signature.inputs

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """The outputs in order."""
        return self._signature.outputs

    @property
    def timings(self) -> dict[str, float]:
        """Seconds spent on `import`, `passes`, `emission` and, once XLA compiles the model, so far in `xla`."""
        if not self.started or not self.on.can(Ability.COMPILES_WHEN_LOADED):
            return dict(self._timings)
        return {**self._timings, "xla": self._executor.seconds}

    @property
    def segments(self) -> tuple[str, ...]:
        """The plan's steps, for people."""
        return tuple(self._describe_steps())

    def prepare(self, **sizes: int) -> Model:
        """Compile for these sizes now instead of at the first call. Raises InputError."""
        self._executor.prepare(self._signature.sizes(sizes))
        return self

    def keep(self, executables: int) -> Model:
        """Hold the executables of so many combinations of sizes, and drop those that were not used for longest.

        It is 128 otherwise, or what the environment says (GCOMP_EXECUTABLES); one takes about a megabyte, or more where
        the model has many ops. Raises UsageError for a model of a target that does not compile by sizes.
        """
        self._executor.keep(check_whole("executables", executables))
        return self

    def set_threads(self, count: int) -> Model:
        """Compute with so many threads from the next call on. For models of `xla:cpu` they are the process's.

        Raises UsageError for a number that cannot be, or comes too late, and on targets without threads.
        """
        self.on.require(Ability.THREADS)
        self.on.set_threads(count)
        self._executor.set_threads(count)
        return self

    def memory(self, **sizes: int) -> Memory:
        """The memory that a call with these sizes needs (`memory(batch=8)`). Raises InputError."""
        figures = self._executor.memory(self._signature.sizes(sizes))
        keys = ("arguments", "outputs", "temporaries", "shared")
        return Memory(*(figures[key] for key in keys), source=self._executor.source)

    def cost(self, **sizes: int) -> dict[str, float]:
        """The target's own cost analysis: `flops`, `bytes accessed`, ... Raises InputError."""
        return self._executor.cost(self._signature.sizes(sizes))

    def flops(self, **sizes: int) -> int:
        """Floating-point operations of a call with these sizes, by the target's own count. Raises InputError."""
        return int(self.cost(**sizes).get("flops", 0))

    def text(self, **sizes: int) -> str:
        """The program that the target compiles, at these sizes. Raises InputError."""
        env = self._signature.sizes(sizes)
        return "\n".join(self.plan.templates[step.text].fill(env) for step in self.plan.segments)

    def profile(self, *args: Any, repeat: int = 10, **kwargs: Any) -> Profile:
        """The time that each kernel and host step of a call takes, measured, beside what the cost model says.

        Arguments are as for a call, which is done `repeat` times step by step, after once that does not count. Prints
        print each time. Raises UnsupportedError for targets that do not say it, and for models with a state.
        """
        from gcomp.runtime.profiling import Recording, profile_of, seconds_of

        self.on.require(Ability.PROFILE)
        values, count = self._arranged(args, kwargs), check_whole("repeat", repeat)
        donates = any(spec.donated for spec in self.inputs)
        recordings, seconds = list[Recording](), list[float]()
        for _ in range(1 + count):
            recordings.append(Recording())
            self._executor.profile(values, recordings[-1])
            seconds += [] if donates else [seconds_of(lambda: self._executor(values))]
        architecture = recordings[0].architecture
        return profile_of(
            self.target, recordings[1:], seconds[1:],
            lambda s: self.on.predicted(architecture, s.flops, s.bytes, narrow=s.narrow),
        )  # fmt: skip

    def instance(self) -> Model:
        """A model with the same weights and memory of its own: calls of the two, on two threads or streams, do not wait
        for each other. Where calls have no memory in common anyway, that costs nothing."""
        other = copy.copy(self)
        other._executor = self._executor.instance()
        other.flat_again = other._executor.again
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `gcomp.load` reads. Raises ArtifactError."""
        plan, manifest = self.plan, manifest_of(self)
        members = {**{name: text.encode() for name, text in plan.texts.items()}, **plan.binaries}
        write_artifact(path, manifest, members, {spec.name: self.weights[spec.name] for spec in manifest.weights})

    @cached_property
    def default_memory(self) -> Memory | None:
        """The memory of a call when all sizes are fixed; None where they are not, or XLA is not started."""
        if not self.started or not self._signature.is_static or len(self.plan.steps) != 1:
            return None
        return self.memory()

    def _describe_steps(self) -> Iterator[str]:
        for step in self.plan.steps:
            outputs = ", ".join(f"{value.dtype}[{', '.join(value.dims)}]" for value in step.outputs)
            if isinstance(step, DeviceSegment):
                yield f"device {step.text} ({len(step.weights)} weights) -> {outputs}"
            else:
                yield f"host {step.function} -> {outputs}"


def is_named(name: str, key: str) -> bool:
    """Whether a value is the one, or one of those, that a key asks for."""
    return name == key or (name.startswith(f"{key}#") and name[len(key) + 1 :].isdecimal())


def manifest_of(model: Model) -> Manifest:
    """The manifest of a model, its table of members still empty."""
    plan, signature = model.plan, model.plan.signature
    memory = model.default_memory
    return Manifest(
        format_version=FORMAT_VERSION,
        gcomp_version=__version__,
        target=plan.target,
        native_code=bool(plan.binaries),
        producers=dict(sorted(model.producers.items())),
        members={},
        inputs=signature.inputs,
        outputs=signature.outputs,
        symbols=symbols_to_json(signature.ranges, signature.symbols),
        constraints=constraints_to_json(signature.constraints),
        result=signature.result,
        arguments=signature.arguments,
        weights=_weights(model),
        memory=MemorySpec(
            memory.total_bytes if memory else None, None, memory.source if memory else "XLA, when loaded"
        ),
        licences=model.licences,
        segments=plan.to_json(),
        verified=model.verified,
        numerics=model.numerics,
    )


def _weights(model: Model) -> tuple[WeightSpec, ...]:
    """The table of weights: those of the program, behind its inputs, and the first values of the state."""
    inputs = model.plan.signature.inputs
    places = {name: len(inputs) + i for i, name in enumerate(model.plan.weights)}
    states = [(initial_name(spec.name), i) for i, spec in enumerate(inputs) if spec.state is not None]
    places |= {name: i for name, i in states if name in model.weights}

    def row(name: str) -> WeightSpec:
        # A state is read once, into the device: as it is, without a second copy.
        return describe_weight(name, model.weights[name], places[name], narrow=places[name] >= len(inputs))

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:  # Hashing lets go of the interpreter.
        return tuple(pool.map(row, places))
