"""From a source to something that runs: frontend, passes, lowering, model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gcomp.collecting import rare_collections
from gcomp.dims import DimSpec
from gcomp.exactness import DEFAULT_NUMERICS, Numerics
from gcomp.options import DEFAULT_TARGET, Array, Buckets, Options, Verify
from gcomp.passes.manager import Instrument, PassManager
from gcomp.passes.memory.rematerialize import bytes_in
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.engine import Ability
from gcomp.runtime.stateful import model_of, with_state
from gcomp.sharding.text import MeshSpec
from gcomp.sources import import_model
from gcomp.stages.base import Stage
from gcomp.stages.looking import Looking
from gcomp.stages.padding import Padding
from gcomp.stages.placing import Placing
from gcomp.stages.settings import Budgeting, Choosing, Donating, GettingReady
from gcomp.stages.verifying import Verifying
from gcomp.targets.base import Target, target_named
from gcomp.texts import require_weights

if TYPE_CHECKING:
    from gcomp.frontends.onnx.model.input_structures import Structure
    from gcomp.passes.base import Pass
    from gcomp.runtime.model import Model


def compile(
    source: Any,
    *args: Any,
    target: str = DEFAULT_TARGET,
    dims: Mapping[str, DimSpec] | None = None,
    structures: Mapping[str, Structure] | None = None,
    constants: Mapping[str, Array] | None = None,
    pipeline: str | None = None,
    verify: Verify = "off",
    verify_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    donate: Sequence[str] = (),
    fetch: Sequence[str] | None = None,
    checks: Sequence[str] = (),
    buckets: Buckets | None = None,
    instruments: Sequence[Instrument] = (),
    progress: Callable[[str], object] | None = None,
    reproducer: Path | None = None,
    tuned: Path | None = None,
    memory_budget: int | str | None = None,
    numerics: Numerics | None = None,
    threads: int | None = None,
    executables: int | None = None,
    prepare: bool = True,
    mesh: MeshSpec | None = None,
    shardings: Mapping[str, Any] | Literal["auto"] | None = None,
) -> Model:
    """Compile a model for a target.

    `source` is a path to an ONNX, .mlir, .pt2 (torch.export) or .jax_export (jax.export) file, an ONNX ModelProto, IR
    text, a Program, `package.module:factory` (see `gcomp.factories`), a torch module or exported program, a
    `jax.export.Exported`, or a JAX function, which is traced on the example arguments `args` (arrays, or
    `jax.ShapeDtypeStruct`s whose shapes may have the symbols of `jax.export.symbolic_shape`, in any pytrees). `dims`
    gives sizes or ranges to symbolic dimensions. Of an ONNX model (see `import_onnx`), `structures` says what those
    inputs hold that are sequences or optionals, and `constants` fixes inputs for good, such as shapes. `pipeline`
    replaces the target's passes. `verify="each"` holds every pass to its promises: the program is valid after it and
    means what it meant before, by the reference, on `verify_inputs` (in order or by name; made up where there are
    none). The error names the rewrite, the op, and where the op comes from. `"full"` also holds the target to it.
    `Model.verified` says what was compared. `donate` names inputs whose memory may be reused. `fetch` names inner
    values to give, and keeps the program for `Model.fetch`; `checks` are compiled in (docs/guides/looking_inside.md).
    `buckets` has sizes that symbols are padded to (docs/guides/variable_lengths.md), `tuned` is of `gcomp tune`.
    `memory_budget` is how many bytes (4096, or "2GiB") gcomp's plan of memory may take besides weights and inputs:
    kernels run again where that keeps it. `numerics` says how exact `cpu` is: "exact" is one order of every sum,
    "standard" (what holds where nothing is said) also computes convolutions otherwise where their measured error is at
    most twice as large, "fast" where it is at most eight times as large (docs/guides/cpu.md). `threads` and
    `executables` are as in `gcomp.load`. Without `prepare`, XLA is not started before the model is used, and compiles
    then, also where all sizes are known. `mesh` has the axes of a mesh of devices (`{"data": 2, "model": 4}`, or
    "data=2,model=4"), and `shardings` says how inputs, outputs and weights lie on it, by name or pattern: `{"x":
    "data,*", "layers.*.w": (None, "model")}`, or "auto" for what a search finds to take the least time
    (docs/guides/sharding.md). Raises GcompError.
    """
    return compile_with(
        source,
        args,
        Options(
            target=target, dims=dims, structures=structures, constants=constants, pipeline=pipeline, verify=verify,
            verify_inputs=verify_inputs, donate=donate, fetch=fetch, checks=checks, buckets=buckets,
            instruments=instruments, progress=progress, reproducer=reproducer, tuned=tuned,
            memory_budget=memory_budget, numerics=numerics, threads=threads, executables=executables, prepare=prepare,
            mesh=mesh, shardings=shardings,
        ),
    )  # fmt: skip


_NEEDS = {
    "memory_budget": Ability.MEMORY_BUDGET,
    "numerics": Ability.NUMERICS,
    "tuned": Ability.TUNING,
    "threads": Ability.THREADS,
}
"""Option -> what a target must be able to do where it is given."""


def compile_with(source: Any, args: Sequence[Any], options: Options) -> Model:
    """`compile` for a record of its keywords: import, passes, lowering, model, and stages around them."""
    target = target_named(options.target)
    for name, ability in _NEEDS.items():
        if getattr(options, name) is not None:
            target.require(ability)
    if options.threads is not None:
        target.set_threads(options.threads)
    passes, stages, timings = _passes(target, options), _stages(target, options), dict[str, float]()

    target.get_ready()
    with _step("import", options, timings):
        program = import_model(
            source, *args, dims=options.dims, structures=options.structures, constants=options.constants
        )
        require_weights(program, source)
        for stage in stages:
            stage.before_passes(program)

    with _step("passes", options, timings):
        watching = [*options.instruments, *(instrument for stage in stages for instrument in stage.instruments())]
        PassManager(passes, watching, options.reproducer).run(program)
        for stage in stages:
            stage.after_passes(program)

    with _step("emission", options, timings):
        plan = target.lower(program, report=options.report, tuned=options.tuned)
        for stage in stages:
            plan = stage.on_plan(plan, program)

    if options.prepare:
        # What is only written to a file is laid out on its way there.
        with _step("weights", options, timings):
            program.weights.materialize()
    weights = with_state(dict(program.weights.items()), program.initial)
    model = model_of(plan, weights, timings=timings, start=options.prepare)
    if options.threads is not None and options.prepare:
        model.set_threads(options.threads)
    for stage in stages:
        stage.on_model(model)
    return model


def _passes(target: Target, options: Options) -> list[Pass]:
    """A target's passes, or those of a pipeline."""
    if options.pipeline is not None:
        return parse_pipeline(options.pipeline)
    budget = None if options.memory_budget is None else bytes_in(options.memory_budget)
    if not target.can(Ability.NUMERICS):
        return parse_pipeline(target.pipeline(budget))
    return parse_pipeline(target.pipeline(budget, options.numerics or DEFAULT_NUMERICS))


def _stages(target: Target, options: Options) -> list[Stage]:
    """The stages that the options ask for, in order. `Looking` is always one, since any program may print."""
    found: list[tuple[object, Callable[[], Stage]]] = [
        (True, lambda: Placing(options, target)),
        (target.can(Ability.NUMERICS), lambda: Choosing(options)),
        (options.donate, lambda: Donating(options)),
        (options.verify != "off", lambda: Verifying(options)),
        (True, lambda: Looking(options, target)),
        (options.buckets, lambda: Padding(options, target)),
        (options.memory_budget is not None, lambda: Budgeting(options)),
        (True, lambda: GettingReady(options)),
    ]
    return [make() for asked, make in found if asked]


@contextmanager
def _step(name: str, options: Options, timings: dict[str, float]) -> Generator[None]:
    """Report a step of compiling, and note its seconds."""
    options.report(name)
    started = time.perf_counter()
    with rare_collections():
        yield
    timings[name] = time.perf_counter() - started


__all__ = ["compile", "compile_with"]
