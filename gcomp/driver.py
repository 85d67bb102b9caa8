"""From a source to something that runs: frontend, pipeline, lowering, model."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from gcomp.bucketing import Buckets, pad_to_buckets, with_buckets, within_buckets
from gcomp.dims import DimError, Range, Ranges, parse_range, symbols_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.factories import is_reference, made
from gcomp.ir.program import Program
from gcomp.looking import look_into
from gcomp.passes.base import Pass
from gcomp.passes.manager import Instrument, PassManager
from gcomp.passes.memory.rematerialize import bytes_in, check_budget
from gcomp.passes.pipelines import pipeline_for
from gcomp.passes.registry import parse_pipeline
from gcomp.texts import read_program, require_weights

if TYPE_CHECKING:
    import numpy as np

    from gcomp.frontends.onnx.input_structures import Structure
    from gcomp.passes.verifying import JudgeEach
    from gcomp.runtime.model import Model
    from gcomp.runtime.plan import Plan
    from gcomp.runtime.strict_json import Json

DimSpec = int | str | tuple[int, int]
"""What a user says of a symbol: a size, a range `"1..64"` or `"8..512 step 8"`, or a pair (least, greatest)."""

Verify = Literal["off", "each", "full"]

MAX_SIZE = (1 << 63) - 1
"""The greatest size of a dimension."""

Array: TypeAlias = "np.ndarray[Any, Any]"


def compile(
    source: Any,
    *args: Any,
    target: str = "xla:cpu",
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
    threads: int | None = None,
    executables: int | None = None,
    prepare: bool = True,
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
    values to give, and keeps the program for `Model.fetch`; `checks` are compiled in (docs/looking_inside.md).
    `buckets` has sizes that symbols are padded to (docs/variable_lengths.md), `tuned` is of `gcomp tune`.
    `memory_budget` is how many bytes (4096, or "2GiB") the plan of a GPU's memory may take besides weights and inputs:
    kernels run again where that keeps it. `threads` and `executables` are as in `gcomp.load`. Without `prepare`, XLA is
    not started before the model is used, and compiles then, also where all sizes are known. Raises GcompError.
    """
    from gcomp.runtime.stateful import model_of, with_state

    report = progress or _ignore
    _check_settings(target, threads, verify, verify_inputs)
    budget = None if memory_budget is None else bytes_in(memory_budget)
    passes, timings = _passes(target, pipeline, budget), dict[str, float]()

    with _step("import", report, timings):
        program = import_model(source, *args, dims=dims, structures=structures, constants=constants)
        _check_source(program, source, donate)
        original = program.clone() if verify == "full" else None
        look = look_into(program, target, fetch, checks, padded=bool(buckets))

    with _step("passes", report, timings):
        given = _given(program, verify_inputs)
        padding = pad_to_buckets(program, buckets, target) if buckets else {}
        judges = _judging(None if padding else given) if verify != "off" else []
        PassManager(passes, [*instruments, *judges], reproducer).run(program)
        check_budget(program, budget)
        program.weights.materialize()

    with _step("emission", report, timings):
        plan = with_buckets(look.plan(_lowered(program, target, report, tuned), program), padding)
    model = model_of(plan, with_state(dict(program.weights.items()), program.initial), timings=timings, start=prepare)
    _get_ready(model, look.finder, executables, report if prepare else None)
    for judge in judges:
        model.verified = _verified(judge, original, buckets, model, given)
    return model


def _given(program: Program, inputs: Sequence[Any] | Mapping[str, Any] | None) -> list[Array] | None:
    """What a user gave to verify on, in order."""
    if inputs is None:
        return None
    from gcomp.passes.checking import named_inputs

    return named_inputs(program, inputs)


def _judging(given: Sequence[Array] | None) -> list[JudgeEach]:
    """What holds passes to their promises. It is much that few compilations need, and is imported here."""
    from gcomp.passes.verifying import JudgeEach

    return [JudgeEach(given)]


def _get_ready(
    model: Model,
    finder: Callable[[tuple[str, ...]], Model] | None,
    executables: int | None,
    report: Callable[[str], object] | None,
) -> None:
    """Set what a model keeps, and compile what is known to be needed where there is somebody to report to."""
    model.finder = finder
    if executables is not None:
        model.keep(executables)
    if report is not None and model.signature.is_static and model.target.startswith("xla:"):
        report("xla")
        model.prepare()


def _passes(target: str, pipeline: str | None, budget: int | None) -> list[Pass]:
    """A target's passes, or those of a pipeline."""
    if pipeline is None:
        return parse_pipeline(pipeline_for(target, budget))
    if budget is not None:
        raise UsageError("a pipeline says itself what runs again", fix="write rematerialize{budget=...} into it")
    return parse_pipeline(pipeline)


@contextmanager
def _step(name: str, report: Callable[[str], object], timings: dict[str, float]) -> Generator[None]:
    """Report a step of compiling, and note its seconds."""
    report(name)
    started = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - started


def _verified(
    judge: JudgeEach, original: Program | None, buckets: Buckets | None, model: Model, given: Sequence[Array] | None
) -> Json:
    """What was compared. With the program as it was read, what the model gives, but for what was fetched, is held to
    its reference, too."""
    found: dict[str, Json] = {"passes": judge.follower.to_json()}
    if original is None:
        return found
    from gcomp.runtime.stateful import without_state
    from gcomp.testing.targets import hold_target

    original = within_buckets(original, buckets) if buckets else original
    flat, count = without_state(model).flat, len(original.outputs())
    compared = hold_target(original, lambda values: list(flat(values)[:count]), given)
    return {**found, "target": compared.to_json(original.ranges)}


def _lowered(program: Program, target: str, report: Callable[[str], object], tuned: Path | None = None) -> Plan:
    """The plan of an optimized program for a target."""
    if target.startswith("triton:"):
        from gcomp.lowering.triton.lower import lower as lower_to_triton
        from gcomp.lowering.triton.tuning import read_for

        return lower_to_triton(
            program,
            target,
            progress=lambda done, total: report(f"compiling kernels: {done} of {total}"),
            tuned=None if tuned is None else read_for(tuned, target),
        )
    if tuned is not None:
        raise UsageError(
            f"results of tuning (--tuned) say nothing of {target}", fix="compile for triton:sm_90 or the like"
        )
    from gcomp.lowering.xla import lower

    return lower(program, target)


def import_model(
    source: Any,
    *args: Any,
    dims: Mapping[str, DimSpec] | None = None,
    structures: Mapping[str, Structure] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Program:
    """The program of a source (see `compile`), before any pass."""
    for name, spec in (dims or {}).items():
        range_of(name, spec)
    source, args = _resolved(source, args)
    if structures and not _is_onnx(source):
        raise UsageError("structures are for ONNX models", why="other sources have no sequences and optionals")
    if constants and not _is_onnx(source):
        raise UsageError(
            "constants are for ONNX models", why="sizes in other sources never come from an input's values"
        )
    if isinstance(source, Program):
        return _with_ranges(source, dims)
    if args or _is_function(source):
        return _import_function(source, args, dims)
    if isinstance(source, str | os.PathLike):
        text = os.fsdecode(cast("str | os.PathLike[str]", source))
        if "\n" in text:
            return _with_ranges(Program.parse(text), dims)
        path = Path(text)
        if path.suffix == ".gcomp":
            raise UsageError(f"{path} is compiled already", fix="load it with gcomp.load")
        if path.suffix in _READERS:
            return _with_ranges(_READERS[path.suffix](path), dims)
        return _import_onnx(path, dims, structures, constants)
    if _is_onnx(source):
        return _import_onnx(source, dims, structures, constants)
    raise UnsupportedError(
        f"there is no frontend for a {type(source).__module__}.{type(source).__qualname__}",
        why="gcomp takes ONNX models, torch modules, JAX functions and StableHLO text",
        fix="export the model to ONNX, or pass a path, a ModelProto, a function with example arguments, or a Program",
    )


def _resolved(source: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The source, and its example arguments: those of a factory where it is the name of one."""
    if isinstance(source, str | os.PathLike):
        text = os.fsdecode(cast("str | os.PathLike[str]", source))
        if is_reference(text):
            found, own = made(text)
            return found, args or own
    return cast(Any, source), args


def _import_function(source: Any, args: tuple[Any, ...], dims: Mapping[str, DimSpec] | None) -> Program:
    """The program of a torch module or exported program, or of a JAX function, traced on example arguments."""
    if _is_jax_export(source):
        from gcomp.frontends.jaxpr.files import import_exported as import_export

        return _with_ranges(import_export(source), dims)
    if _of_torch(source):
        from gcomp.frontends.fx import export_module, import_exported

        program = import_exported(source) if hasattr(source, "graph_signature") else export_module(source, args)
        return _with_ranges(program, dims)
    if not callable(source):
        raise UsageError(
            "example arguments are for functions", why=f"the source is a {type(source).__name__}, which has its own"
        )
    from gcomp.frontends.jaxpr import trace

    return _with_ranges(trace(source, args).program(), dims)


def _is_function(source: object) -> bool:
    return (callable(source) and not _is_onnx(source)) or _of_torch(source) or _is_jax_export(source)


def _is_jax_export(source: object) -> bool:
    """Whether a source is a `jax.export.Exported`, if that is imported at all."""
    export: Any = sys.modules.get("jax.export")
    return export is not None and isinstance(source, export.Exported)


def _of_torch(source: object) -> bool:
    """Whether a source is a module or an exported program of torch, if torch is imported at all."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module | torch.export.ExportedProgram)


def _is_onnx(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        text: str = os.fsdecode(cast("str | os.PathLike[str]", source))
        return "\n" not in text and Path(text).suffix not in (".gcomp", *_READERS)
    return isinstance(source, bytes) or type(source).__name__ == "ModelProto"


def _import_onnx(
    source: Any,
    dims: Mapping[str, DimSpec] | None,
    structures: Mapping[str, Structure] | None,
    constants: Mapping[str, Array] | None,
) -> Program:
    from gcomp.frontends.onnx import import_onnx

    return import_onnx(source, dims=dims, structures=structures, constants=constants)


def _import_torch(path: Path) -> Program:
    from gcomp.frontends.fx.files import import_file

    return import_file(path)


def _import_jax(path: Path) -> Program:
    from gcomp.frontends.jaxpr.files import import_file

    return import_file(path)


_READERS: Mapping[str, Callable[[Path], Program]] = {
    ".mlir": read_program,
    ".pt2": _import_torch,
    ".jax_export": _import_jax,
}
"""The suffix of a file -> what reads it. Files of other suffixes are ONNX's."""


def _ignore(step: str) -> None:
    """Report progress to nobody."""


def range_of(name: str, spec: DimSpec) -> Range:
    """The range that a user gave for a symbol. UsageError when it is not one."""
    try:
        if isinstance(spec, int):
            found = Range(spec, spec)
        else:
            found = parse_range(spec) if isinstance(spec, str) else Range(*spec)
    except (DimError, TypeError) as error:
        raise UsageError(f"the range of the dimension {name!r} is not valid", why=str(error)) from None
    if isinstance(spec, bool) or found.lo < 0 or max(found.lo, found.hi or 0) > MAX_SIZE:
        raise UsageError(
            f"{spec!r} is no size of the dimension {name!r}",
            why=f"sizes are 0 to {MAX_SIZE:,}",
            fix=f"give a size or a range, as in {name}=8 or {name}=1..64",
        )
    return found


def _with_ranges(program: Program, dims: Mapping[str, DimSpec] | None) -> Program:
    """The program with sizes and ranges of its symbols set; a fixed size is substituted."""
    given = {name: range_of(name, spec) for name, spec in (dims or {}).items()}
    known = {
        s for port in program.inputs() for size in port.shape if not isinstance(size, int) for s in symbols_of(size)
    }
    if unknown := sorted(set(given) - known):
        raise UsageError(
            f"the model has no symbolic dimension {unknown[0]!r}",
            fix=f"its symbols are: {', '.join(sorted(known)) or 'none'}",
        )
    if not given:
        return program
    program.ranges = Ranges({**dict(program.ranges), **given})
    fixed = {name: r.lo for name, r in given.items() if r.lo == r.hi}
    return program.bind(fixed) if fixed else program


def _check_settings(target: str, threads: int | None, verify: object, verify_inputs: object) -> None:
    """Raises UsageError for what is no setting, and for what would say nothing."""
    from gcomp.runtime.model import set_threads

    if not isinstance(verify, str) or verify not in get_args(Verify):
        raise UsageError(f"verify is {', '.join(map(repr, get_args(Verify)))}, not {verify!r}")
    if verify == "off" and verify_inputs is not None:
        raise UsageError("verify_inputs say nothing where verify is off", fix='verify="each" or "full"')
    set_threads(threads, target)


def _check_source(program: Program, source: object, donated: Sequence[str]) -> None:
    """Raises UsageError where weights are missing; notes what is donated."""
    require_weights(program, source)
    _donate(program, donated)


def _donate(program: Program, names: Sequence[str]) -> None:
    if not names:
        return
    known = [port.name for port in program.inputs()]
    if unknown := [n for n in names if n not in known]:
        raise UsageError(f"cannot donate {unknown[0]!r}: no such input", fix=f"the inputs are: {', '.join(known)}")
    program.donate(set(names))
