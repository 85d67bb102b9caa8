"""`gcomp train-step`, `gcomp train` and `gcomp write-parameters`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import gcomp
from gcomp.cli.arguments import (
    Checks,
    Constants,
    Coordinator,
    Dims,
    Links,
    MeshOption,
    ModelFile,
    NoNative,
    Processes,
    ProcessId,
    Shardings,
    Structures,
    Target,
    Threads,
    Wait,
)
from gcomp.cli.joining import taking_part
from gcomp.cli.options import Source, check_writable, pairs, read_arrays, source_of, write_file
from gcomp.errors import CheckError, UsageError
from gcomp.options import DEFAULT_TARGET
from gcomp.runtime.safetensors import read_notes, write_arrays
from gcomp.runtime.stateful import StatefulModel

Array = np.ndarray[Any, Any]

_KEPT_STEPS = 100
"""After so many steps the state is kept, to go on from where a loss is not finite: steps are repeated, not kept."""

_SHOWN = 8


@dataclass(frozen=True)
class StepOptions:
    """What the command line says of a training step."""

    loss: str
    optimizer: str
    schedule: str
    clip: float | None
    output: str | None
    labels: str
    metrics: Sequence[str]
    trainable: Sequence[str]
    freeze: Sequence[str]
    train_mode: bool
    checks: str | None = None
    mesh: str | None = None
    shardings: Mapping[str, str] | None = None


def train_step_command(model: Path, artifact: Path, target: str, source: Source, options: StepOptions) -> None:
    """Compile a training step of `model` into one artifact."""
    import warnings

    from gcomp.driver import compile
    from gcomp.training import training_step

    check_writable(artifact)
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        task = progress.add_task("reading the model", total=None)
        step = training_step(
            model, loss=options.loss, optimizer=options.optimizer, schedule=options.schedule, clip=options.clip,
            output=options.output, labels=options.labels, metrics=options.metrics, freeze=options.freeze,
            trainable=options.trainable or ("*",), train_mode=options.train_mode, **source.keywords(),
        )  # fmt: skip
        compiled = compile(
            step.program, target=target, checks=options.checks or (), mesh=options.mesh, shardings=options.shardings,
            progress=lambda what: progress.update(task, description=f"compiling: {what}"),
        )  # fmt: skip
        progress.update(task, description=f"writing {artifact}")
        compiled.save(artifact)
    for warning in noted:
        console.print(f"warning: {warning.message}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    _print_weights(console, step.trained, step.fixed, compiled)
    size = artifact.stat().st_size
    console.print(f"wrote {artifact} ({size / 1e6:.2f} MB) for {target}", highlight=False, soft_wrap=True)
    console.print(repr(compiled), highlight=False, markup=False, soft_wrap=True)


def _print_weights(console: Console, trained: Sequence[str], fixed: Mapping[str, str], model: Any) -> None:
    table = Table("weight", "elements", "", title="weights")
    for name in trained:
        table.add_row(escape(name), str(model.state[name].size), "trains")
    for name, why in fixed.items():
        table.add_row(escape(name), "", escape(why))
    console.print(table)


@dataclass(frozen=True)
class Course:
    """How long to train, on what, and where to write."""

    data: Path
    steps: int | None
    epochs: int | None
    batch: int | None
    seed: int
    log: Path | None
    start: Path | None
    state: Path | None
    threads: int | None = None
    native: bool = True
    every: int | None = None
    resume: bool = False
    processes: int = 1
    number: int = 0
    """Of several processes, which this is: the first one writes."""

    def check(self) -> None:
        """Raises UsageError for what does not go together, and for files that cannot be written."""
        if self.steps is not None and self.epochs is not None:
            raise UsageError("--steps and --epochs exclude each other", fix="leave one of them out")
        if (self.every is not None or self.resume) and self.state is None:
            raise UsageError("--every and --resume are about the state's file", fix="name it: --state FILE.safetensors")
        if self.resume and self.start is not None:
            raise UsageError("--resume and --from exclude each other", fix="leave one of them out")
        for path in (self.log, self.state) if not self.number else ():
            if path is not None:
                check_writable(path)


def train_command(artifact: Path, course: Course) -> None:
    """Train: run the step of an artifact on batches of the data, and write the state."""
    course.check()
    if not artifact.exists():
        raise UsageError(f"there is no file {artifact}")
    model = gcomp.load(artifact, threads=course.threads, native=course.native)
    if not isinstance(model, StatefulModel):
        raise UsageError(f"{artifact} is no training step", fix="make one with gcomp train-step")
    if course.start is not None:
        model.load_state(course.start)
    data = _choose_inputs(model, read_arrays(course.data), course.data)
    count, size = _count(data), _batch_size(model, course.batch)
    per_epoch = count // size
    if not per_epoch:
        raise UsageError(f"{course.data} has {count} samples, fewer than a batch of {size}")
    steps = course.steps if course.steps is not None else per_epoch * (course.epochs or 1)
    record = Record(course, {"seed": str(course.seed), "batch": str(size), "samples": str(count)})
    record.take_up(model)
    left = itertools.islice(_batches(count, size, steps, course.seed), record.done, None)
    console = Console(stderr=True, quiet=course.number > 0)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("training", total=steps, completed=record.done)
            for row in _steps(model, data, left, record):
                record.add(row)
                shown = ", ".join(f"{name} {value:.4g}" for name, value in row.items())
                progress.update(task, advance=1, description=shown)
                if course.every and record.done % course.every == 0 and _is_good(model, row):
                    record.write(model)
    except BaseException as error:
        # An interrupted training is kept, too. Where there are others, only what fails in all of them leaves a state
        # that can be put together.
        if course.processes == 1 or isinstance(error, CheckError):
            record.write(model)
        raise
    record.write(model)
    console.print(record.summary(), highlight=False)


class Record:
    """What a training leaves: the state, and the losses of each step, with how far it is."""

    def __init__(self, course: Course, notes: Mapping[str, str]) -> None:
        self.course, self.notes = course, notes
        self.lines: list[str] = []
        """The log's, one a step."""
        self.done = 0
        self.row: Mapping[str, float] = {}

    def take_up(self, model: StatefulModel) -> None:
        """Go on from the state's file, if that is asked for. UsageError where it is of another training."""
        path, log = self.course.state, self.course.log
        if not self.course.resume or path is None or not path.exists():
            return
        notes = read_notes(path)
        if not notes.get("steps", "").isdecimal():
            raise UsageError(
                f"{path} does not say how far a training was", fix="begin from it with --from, in place of --resume"
            )
        for name, value in self.notes.items():
            if notes.get(name) != value:
                raise UsageError(
                    f"{path} is of another training", why=f"its {name} is {notes.get(name)}, and now it is {value}",
                    fix="go on with the same data and options, or begin from it with --from",
                )  # fmt: skip
        model.load_state(path)
        self.done = int(notes["steps"])
        if log is not None and log.exists():
            self.lines = log.read_text("utf-8").splitlines()[1 : self.done + 1]

    def add(self, row: Mapping[str, float]) -> None:
        """One more step."""
        self.lines.append(",".join([str(self.done), *map(repr, row.values())]))
        self.done, self.row = self.done + 1, row

    def write(self, model: StatefulModel) -> None:
        """Write log and state: the first of several processes does, and all put the state together."""
        course = self.course
        state = dict(model.state) if course.state is not None else {}
        if course.number:
            return
        if course.log is not None and self.row:
            header = ",".join(["step", *self.row])
            write_file(course.log, "".join(f"{line}\n" for line in (header, *self.lines)).encode())
        if course.state is not None:
            write_arrays(course.state, state, {**self.notes, "steps": str(self.done)})

    def summary(self) -> str:
        """What to say in the end."""
        said = ", ".join(f"{name} {value:.6g}" for name, value in self.row.items())
        return f"{self.done} steps: {said}" if said else f"{self.done} steps, all of them taken before"


def _is_good(model: StatefulModel, row: Mapping[str, float]) -> bool:
    return math.isfinite(row[model.outputs[0].name]) and _is_finite(model.state)


def _steps(
    model: StatefulModel, data: Mapping[str, Array], batches: Iterable[Array], record: Record
) -> Iterator[dict[str, float]]:
    """What each step gives. CheckError for the first whose loss is not finite, that fails a check of its own, or (of
    the last) whose update is not finite; the state is the last good one then, and the record says of which step.
    """

    def run(samples: Array) -> dict[str, float]:
        results = model.named(**{name: array[samples] for name, array in data.items()})
        return {name: float(value) for name, value in results.items()}

    kept, recent = dict(model.state), list[Array]()
    sound = _is_finite(kept)

    def failed(what: str, samples: Array, steps: int, found: CheckError | None = None) -> CheckError:
        record.done = steps - len(recent) + _rewind(model, kept, recent, run)
        return _divergence_error(what, data, samples, record.course, record.done, found)

    number = record.done - 1
    for number, samples in enumerate(batches, record.done):
        if len(recent) >= _KEPT_STEPS and _is_finite(model.state):
            kept, recent = dict(model.state), []
        try:
            row = run(samples)
        except CheckError as error:
            raise failed(error.what, samples, number, error) from None
        yield row
        loss = row[model.outputs[0].name]
        if not math.isfinite(loss):
            raise failed(f"the loss of step {number} is {loss}", samples, number)
        recent.append(samples)
    if sound and recent and not _is_finite(model.state):
        raise failed(f"step {number} makes parameters that are not finite", recent[-1], number + 1)


def _rewind(
    model: StatefulModel, kept: Mapping[str, Array], recent: Sequence[Array], run: Callable[[Array], object]
) -> int:
    """Go back to the last state that is finite, by the steps since one that was kept; how many of them led there.

    A loss that is finite may go with an update that is not: then it is the state before that.
    """
    for count in dict.fromkeys((len(recent), max(len(recent) - 1, 0))):
        model.load_state(kept)
        for samples in recent[:count]:
            run(samples)
        if _is_finite(model.state):
            return count
    model.load_state(kept)
    return 0


def _divergence_error(
    what: str, data: Mapping[str, Array], samples: Array, course: Course, good: int, found: CheckError | None
) -> CheckError:
    """The error for a step on these samples; `found` is that of a check that was compiled in, which names an op."""
    numbers = ", ".join(map(str, samples[:_SHOWN])) + (", ..." if len(samples) > _SHOWN else "")
    places = (found.where if found is not None else None, f"samples {numbers} of {course.data}")
    advice = "mend the data, or take smaller steps (lr=, or --clip of gcomp train-step)"
    advice += "; gcomp train-step --check nan names the op" if found is None else ""
    written = f"is in {course.state}" if course.state is not None else "is lost, for want of --state"
    return CheckError(
        what,
        where=", ".join(place for place in places if place),
        why=_look(data, samples) or (found.why if found is not None else None),
        fix=f"{advice}. The state after {good} steps, the last good one, {written}",
    )


def _is_finite(state: Mapping[str, Array]) -> bool:
    return all(np.isfinite(array.astype(np.complex128)).all() for array in state.values())


def _look(data: Mapping[str, Array], samples: Array) -> str | None:
    """What of some samples may be to blame: numbers that are none, and the range of integers, such as labels."""
    said: list[str] = []
    for name, array in data.items():
        batch = array[samples]
        if batch.dtype.kind in "iu" and batch.size:
            said.append(f"{name} are {batch.min()} to {batch.max()}; a label that is no class makes the loss NaN")
        elif batch.dtype.kind not in "iub" and not _is_finite({name: batch}):
            said.append(f"{name} has values that are not finite")
    return "; ".join(said) or None


def _choose_inputs(model: StatefulModel, data: Mapping[str, Array], path: Path) -> dict[str, Array]:
    """The data's arrays that are inputs. UsageError for one that is missing."""
    needed = [spec.name for spec in model.inputs if spec.default is None]
    if missing := [name for name in needed if name not in data]:
        raise UsageError(
            f"{path} has no array {missing[0]!r}", why=f"it has {', '.join(data) or 'none'}",
            fix=f"numpy.savez(path, {', '.join(f'{name}=...' for name in needed)}) writes one",
        )  # fmt: skip
    return {name: data[name] for name in needed}


def _count(data: Mapping[str, Array]) -> int:
    """The number of samples: the leading dimension of every array."""
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in data.items()}
    if len(set(counts.values())) != 1:
        raise UsageError(
            "the arrays have different numbers of samples", why=", ".join(f"{n}: {c}" for n, c in counts.items())
        )
    return next(iter(counts.values()))


def _batch_size(model: StatefulModel, given: int | None) -> int:
    """The size of batches: what the model was compiled for, or what the command line says."""
    fixed = {spec.dims[0] for spec in model.inputs if spec.default is None and spec.dims}
    size = next(iter(fixed)) if len(fixed) == 1 else ""
    if size.isdecimal():
        if given not in (None, int(size)):
            raise UsageError(f"the step takes batches of {size}, not of {given}", fix="leave --batch out")
        return int(size)
    if given is None:
        raise UsageError("the step takes batches of any size", fix="give one: --batch 32")
    return given


def _batches(count: int, size: int, steps: int, seed: int) -> Iterator[Array]:
    """The samples of each step: shuffled anew for each epoch, what is left of one is left out."""
    rng = np.random.default_rng(seed)
    order, at = rng.permutation(count), 0
    for _ in range(steps):
        if at + size > count:
            order, at = rng.permutation(count), 0
        yield order[at : at + size]
        at += size


def write_parameters_command(model: Path, state: Path, output: Path) -> None:
    """Write a state's parameters into an ONNX file."""
    check_writable(output)
    names = gcomp.write_parameters(model, state, output)
    Console(stderr=True).print(f"wrote {output}: {len(names)} of its initializers are those of {state}",
                               highlight=False, soft_wrap=True)  # fmt: skip


def train_step(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="the artifact to write")] = Path("step.gcomp"),
    loss: Annotated[
        str, typer.Option(help="cross_entropy, nll, mse, l1, huber, bce_with_logits; output: the model gives it")
    ] = "cross_entropy",
    optimizer: Annotated[str, typer.Option(help="sgd, adamw, adafactor, lion, as in adamw:lr=1e-3")] = "adamw",
    schedule: Annotated[
        str, typer.Option(help="constant, linear, cosine, piecewise, as in cosine:steps=1000,warmup=100")
    ] = "constant",
    clip: Annotated[float | None, typer.Option(help="the greatest norm of all gradients together")] = None,
    of: Annotated[str | None, typer.Option(metavar="NAME", help="the output that the loss is of")] = None,
    labels: Annotated[str, typer.Option(help="the element type of labels (int64), or probabilities")] = "",
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="accuracy, grad_norm or learning_rate, as one more output")
    ] = None,
    train: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="only these weights train")] = None,
    freeze: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="these weights do not: 'bn*'")] = None,
    train_mode: Annotated[
        bool, typer.Option("--train-mode", help="BatchNormalization and Dropout as in training, however exported")
    ] = False,
    check: Checks = None,
    target: Target = DEFAULT_TARGET,
    mesh: MeshOption = None,
    sharding: Shardings = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
) -> None:
    """Compile a training step into one artifact, which keeps parameters and moments on the device.

      gcomp train-step model.onnx --optimizer adamw:lr=1e-3 --dim batch=32 -o step.gcomp

      gcomp train step.gcomp --data digits.npz --epochs 10 --state trained.safetensors

      gcomp write-parameters model.onnx trained.safetensors -o trained.onnx

    All weights of floats train, but for what --freeze names; a table says why others do not
    (docs/guides/train_step.md).
    """
    options = StepOptions(
        loss, optimizer, schedule, clip, of, labels, metric or [], train or [], freeze or [], train_mode, check,
        mesh, pairs(sharding, "--sharding") if sharding else None,
    )  # fmt: skip
    train_step_command(model, output, target, source_of(model, dim, structure, constant, allow_links), options)


def train(
    artifact: Annotated[Path, typer.Argument(help="a training step, of gcomp train-step")],
    data: Annotated[Path, typer.Option(metavar="FILE.npz", help="inputs and labels by name, samples in front")],
    steps: Annotated[int | None, typer.Option(min=1, help="how many steps; in place of --epochs")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="how often to go through the data (1)")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="samples of a step, where the artifact takes any")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the order of samples")] = 0,
    log: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="write each step's loss and metrics")] = None,
    start: Annotated[
        Path | None, typer.Option("--from", metavar="FILE.safetensors", help="go on from this state")
    ] = None,
    state: Annotated[Path | None, typer.Option(metavar="FILE.safetensors", help="write the state in the end")] = None,
    every: Annotated[int | None, typer.Option(min=1, metavar="N", help="write state and log every N steps")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on from --state, if it is there, at the step that it was written after")
    ] = False,
    threads: Threads = None,
    no_native: NoNative = False,
    coordinator: Coordinator = None,
    processes: Processes = 1,
    process_id: ProcessId = 0,
    timeout: Wait = 60,
) -> None:
    """Train: run a training step on batches of a file's samples, in an order that the seed decides.

      gcomp train step.gcomp --data digits.npz --epochs 10 --state trained.safetensors --every 100 --resume

    With --resume, a training that was interrupted goes on with the batches that it would have taken, also on another
    mesh, or with another number of processes (docs/guides/sharding.md).
    """
    course = Course(
        data,
        steps,
        epochs,
        batch,
        seed,
        log,
        start,
        state,
        threads,
        not no_native,
        every,
        resume,
        processes,
        process_id,
    )
    with taking_part(artifact, coordinator, processes, process_id, timeout):
        train_command(artifact, course)


def write_parameters(
    model: Annotated[Path, typer.Argument(help="the .onnx file that was trained")],
    state: Annotated[Path, typer.Argument(help="a state, of gcomp train --state or save_state")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the .onnx file to write")],
) -> None:
    """Write an ONNX file whose initializers are trained parameters; all else is as it was, byte by byte."""
    write_parameters_command(model, state, output)
