"""The commands and their options, and how errors become exit codes.

0: done. 1: gcomp refused the input. 2: the command was used wrongly. 3: a bug in gcomp.
"""

from __future__ import annotations

import sys
import traceback
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gcomp.cli.arguments import (
    Checks,
    Constants,
    Dims,
    Fetch,
    Inputs,
    Links,
    Load,
    PipelineOption,
    PrintAfterChange,
    Structures,
    Target,
    Threads,
    TimingOption,
)
from gcomp.errors import GcompError, InternalError, UsageError, UserCodeError
from gcomp.owners import is_users, is_users_fault, line_of
from gcomp.runtime.folders import turn_off
from gcomp.version import __version__

app = typer.Typer(
    help="gcomp compiles ONNX models, JAX functions, PyTorch modules and StableHLO text to one file, which gcomp loads "
    "without them.\n\n"
    "A first session:\n\n"
    "  gcomp compile model.onnx -o model.gcomp --dim batch=1..64\n\n"
    "  gcomp inspect model.gcomp\n\n"
    "  gcomp run model.gcomp --input x=x.npy --output y=y.npy\n\n"
    "  gcomp opt model.onnx -p canonicalize,cse --timing",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="compile anew: neither read nor write the cache of compiled code")
    ] = False,
) -> None:
    """The options before a command."""
    if no_cache:
        turn_off()
    if version:
        typer.echo(f"gcomp {__version__}")
        raise typer.Exit


@app.command()
def compile(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the artifact to write")] = Path("model.gcomp"),
    target: Target = "xla:cpu",
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    pipeline: PipelineOption = None,
    verify: Annotated[
        str,
        typer.Option(
            help="off; each: check the program and its meaning after every pass; full: and the target's answer"
        ),
    ] = "off",
    verify_inputs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="the inputs that --verify compares answers on")
    ] = None,
    load: Load = None,
    donate: Annotated[list[str] | None, typer.Option(help="an input whose memory outputs may reuse")] = None,
    timing: TimingOption = False,
    print_ir_after_change: PrintAfterChange = False,
    emit: Annotated[
        tuple[str, Path] | None,
        typer.Option(metavar="triton-source FOLDER", help="write the sources of GPU kernels into a folder, too"),
    ] = None,
    fetch: Fetch = None,
    check: Checks = None,
    lengths: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="lengths that calls will have, one in each line")
    ] = None,
    buckets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]N", help="pad a dimension to N sizes, the best for --lengths; or to NAME=32,64,128"
        ),
    ] = None,
    bucket_multiple: Annotated[int, typer.Option(min=1, help="sizes to choose are multiples of this")] = 1,
    bucket_cost: Annotated[
        str, typer.Option(metavar="linear|flops", help="what a size costs: the size, or what the target counts")
    ] = "linear",
    tuned: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="take the configurations that gcomp tune found the fastest")
    ] = None,
    memory_budget: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="run GPU kernels again where that keeps their memory within, as in 2GiB"),
    ] = None,
) -> None:
    """Compile a model into one artifact."""
    from gcomp.cli.compiling import compile_command
    from gcomp.cli.lengths import LengthOptions
    from gcomp.cli.options import listed, load_files, source_of

    source = source_of(model, dim, structure, constant, allow_links)
    load_files(load or [])
    compile_command(
        model, output, target, source, pipeline, verify, donate or [], timing, print_ir_after_change, verify_inputs,
        emit, fetch or [], listed(check), LengthOptions(lengths or [], buckets or [], bucket_multiple, bucket_cost),
        tuned, memory_budget,
    )  # fmt: skip


@app.command()
def tune(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="an artifact of the fastest configurations to write")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="where to write the times: MODEL.tuned.json")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="triton:sm_90 or the like: this GPU's")] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    pipeline: PipelineOption = None,
    load: Load = None,
) -> None:
    """Time the candidates of every GPU kernel of a model on this machine's GPU.

      gcomp tune model.onnx --results tuned.json -o tuned.gcomp

      gcomp compile model.onnx --target triton:sm_90 --tuned tuned.json

    The times are data: they serve where there is no GPU, for the same versions of gcomp and Triton.
    """
    from gcomp.cli.options import load_files, source_of
    from gcomp.cli.tuning import tune_command

    load_files(load or [])
    tune_command(model, target, source_of(model, dim, structure, constant, allow_links), pipeline, output, results)


@app.command()
def run(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact, or an .onnx or .mlir file to compile first")],
    input: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE", help="an input, from an .npy file")
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option("--output", "-o", metavar="NAME=FILE", help="write an output to an .npy file")
    ] = None,
    fetch: Fetch = None,
    check: Checks = None,
    random: Annotated[bool, typer.Option("--random", help="random values for the inputs that are not given")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**64 - 1, help="the seed of the model's random operators")
    ] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    repeat: Annotated[int, typer.Option(min=1, help="run this many times and print the median time")] = 1,
    threads: Threads = None,
) -> None:
    """Run a model on inputs from .npy files."""
    from gcomp.cli.options import listed, source_of
    from gcomp.cli.running import run_command

    source = source_of(artifact, dim, structure, constant, allow_links)
    run_command(artifact, input or [], output or [], fetch or [], random, seed, source, repeat, listed(check), threads)


@app.command()
def opt(
    model: Annotated[Path | None, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")] = None,
    pipeline: PipelineOption = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="run this target's pipeline")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the text")] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    verify_each: Annotated[bool, typer.Option("--verify-each", help="verify the program after each pass")] = False,
    check_each: Annotated[
        bool,
        typer.Option(
            "--check-each", help="hold each pass to its promises, and compare the meaning before and after it"
        ),
    ] = False,
    print_ir_after_change: PrintAfterChange = False,
    timing: TimingOption = False,
    bisect_limit: Annotated[int | None, typer.Option(min=0, help="apply only this many rewrites")] = None,
    locations: Annotated[bool, typer.Option("--locations", help="print where each op comes from")] = False,
    generic: Annotated[bool, typer.Option("--generic", help="print generic syntax")] = False,
    export: Annotated[bool, typer.Option("--export", help="print plain StableHLO instead of IR text")] = False,
    load: Load = None,
    list_passes: Annotated[bool, typer.Option("--list-passes", help="list the passes")] = False,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="list the rewrites (of the passes in -p), and what is proved of them")
    ] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="with --list-rules: prove the rules now (needs the extra `prove`)")
    ] = False,
) -> None:
    """Run passes on a program and print it."""
    from gcomp.cli.optimizing import OptOptions, list_passes_command, opt_command
    from gcomp.cli.options import load_files, source_of

    load_files(load or [])
    others = (model, target, output, dim, structure, constant, verify_each, check_each, print_ir_after_change, timing,
              bisect_limit, locations, generic, export, pipeline if list_passes else None)  # fmt: skip
    if (list_passes or list_rules) and any(option not in (None, False) for option in others):
        raise UsageError("--list-passes and --list-rules run nothing, and say nothing of a model: leave the rest out")
    if list_passes:
        list_passes_command()
        return
    if prove and not list_rules:
        raise UsageError("--prove goes with --list-rules", fix="gcomp opt --list-rules --prove")
    if list_rules:
        from gcomp.cli.listing import list_rules_command

        list_rules_command(prove, pipeline)
        return
    if model is None:
        raise UsageError("opt needs a file", fix="gcomp opt model.onnx -p canonicalize, or gcomp opt --list-passes")
    source = source_of(model, dim, structure, constant, allow_links)
    opt_command(
        model,
        OptOptions(pipeline, target, output, source, verify_each, check_each, print_ir_after_change, timing,
                   bisect_limit, locations, generic, export),
    )  # fmt: skip


@app.command()
def inspect(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact")],
    dim: Dims = None,
    text: Annotated[bool, typer.Option("--text", help="print the program's text")] = False,
    json: Annotated[bool, typer.Option("--json", help="print the manifest as JSON")] = False,
    memory: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="write a page that shows the memory plan")
    ] = None,
    roofline: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="write a page that shows GPU kernels under a roofline")
    ] = None,
    tuned: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="with --roofline: show the times that gcomp tune measured")
    ] = None,
) -> None:
    """Show what an artifact holds: signature, ops, flops, weights, memory, segments."""
    from gcomp.cli.inspecting import inspect_command

    inspect_command(artifact, dim or [], text, json, memory, roofline, tuned)


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")],
    target: Target = "xla:cpu",
    machine: Annotated[
        str | None,
        typer.Option("--machine", "-m", help="a machine in place of the target's: cpu, sm_80, sm_90, sm_100"),
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="passes to run before kernels are made")
    ] = None,
    max_ops: Annotated[int, typer.Option(min=1, help="ops of a kernel, at most")] = 64,
    at: Annotated[
        str | None, typer.Option(metavar="TEXT", help="only kernels with this name, or text, in label or place")
    ] = None,
    steps: Annotated[bool, typer.Option("--steps", help="print every decision in order, too")] = False,
    json: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
    memory: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="plan the memory, and write a page that shows the plan")
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="write a page that shows the kernels as a graph")
    ] = None,
    memory_budget: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="run kernels again where that keeps memory within a budget, as in 2GiB"),
    ] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Show which kernels a model becomes, and why those that pass data to each other are not one.

      gcomp explain model.onnx

      gcomp explain model.onnx --target triton:sm_90 --at dot --steps

      gcomp explain model.onnx --dim batch=1..64 --memory plan.html --graph kernels.html

      gcomp explain model.onnx --dim batch=1..64 --memory-budget 512MiB

    Bytes, flops and times are the cost model's: a roofline of the target's machine, at the largest sizes of ranges.
    """
    from gcomp.cli.explaining import ExplainOptions, explain_command
    from gcomp.cli.options import load_files, source_of

    load_files(load or [])
    source = source_of(model, dim, structure, constant, allow_links)
    explain_command(
        model,
        ExplainOptions(target, machine, pipeline, max_ops, at, steps, json, memory, graph, memory_budget, source),
    )


@app.command()
def reduce(
    case: Annotated[Path, typer.Argument(help="an .mlir or .onnx file that shows a failure")],
    check: Annotated[
        str | None, typer.Option("--check", metavar="PASSES", help="keep the failure of a pass, found in this pipeline")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="'CMD {}'", help="keep the way a command fails on a file of the program ({}): its exit status"
        ),
    ] = None,
    match: Annotated[
        str | None, typer.Option(metavar="REGEX", help="what the command's output must contain too")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="keep the difference between this target and the reference")
    ] = None,
    pipeline: PipelineOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the file to write: CASE.reduced.mlir")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="stop after this time, with the smallest program so far")] = 60,
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for one run of a command or target")] = 60,
    inputs: Inputs = None,
    seed: Annotated[int, typer.Option(min=0, help="what inputs are made from, where none are given")] = 0,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Make a failing program small, and keep its failure.

    Of --check, --command and --target, one says what the failure is:

      gcomp reduce case.mlir --check canonicalize,cse

      gcomp reduce model.onnx --target xla:cpu

      gcomp reduce case.mlir --command 'gcomp opt {} -p my-pass --load my_pass.py'

    --check keeps the failure's fingerprint: what is broken (a crash, invalid IR, the meaning, ...), the pass, the
    rewrite, and the op it is applied to. --command keeps the exit status, which is not 0; a file of the candidate's
    text takes the place of {}. The result is a file with a RUN line, and is printed.
    """
    from gcomp.cli.options import load_files, source_of
    from gcomp.cli.reducing import ReduceOptions, reduce_command

    load_files(load or [])
    source = source_of(case, dim, structure, constant, allow_links)
    reduce_command(
        case,
        ReduceOptions(check, command, match, target, pipeline, output, seconds, timeout, inputs, seed, source),
    )


@app.command()
def bisect(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")],
    inputs: Inputs = None,
    pipeline: PipelineOption = None,
    target: Target = "xla:cpu",
    nan: Annotated[
        bool, typer.Option("--nan", help="find the first op that makes a NaN or an infinity instead")
    ] = False,
    run_target: Annotated[
        bool, typer.Option("--run-target", help="where all passes are right, compare the target with the reference too")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1, help="with --run-target: stop after this time, with the ops that are left")
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="what inputs are made from, where none are given")] = 0,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Find where a wrong answer comes from: the pass, the rewrite, the op, and the source line or node.

      gcomp bisect model.onnx --inputs x.npz

      gcomp bisect model.onnx --inputs x.npz --nan

    Each pass's program is run by the reference on the inputs; the first that changes the answer by more than its class
    allows is at fault, and of its rewrites the first that does.
    """
    from gcomp.cli.bisecting import BisectOptions, bisect_command
    from gcomp.cli.options import load_files, source_of

    load_files(load or [])
    source = source_of(model, dim, structure, constant, allow_links)
    bisect_command(model, BisectOptions(inputs, pipeline, target, nan, run_target, seconds, seed, source))


@app.command()
def fuzz(
    passes: Annotated[
        list[str] | None, typer.Option("--pass", metavar="NAME", help="a pass to try; all of them if none is named")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="try these passes in this order")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="hold a target (xla:cpu; tile: GPU kernels) to the reference")
    ] = None,
    what: Annotated[str | None, typer.Option(metavar="NAME", help="fuzz what is no pass: see below")] = None,
    case: Annotated[Path | None, typer.Option(metavar="FILE", help="only judge a case of --what")] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="stop after this time (1, without --programs)")] = None,
    programs: Annotated[int | None, typer.Option(min=1, help="stop after so many programs")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="worker processes")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="where to begin: each seed has programs of its own")] = 0,
    size: Annotated[int, typer.Option(min=1, help="ops of a program, about")] = 15,
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write failing cases")] = Path("fuzz"),
    seconds: Annotated[float, typer.Option(min=1, help="time to reduce a failure")] = 60,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="keep counts there, and go on from them; Ctrl-C stops")
    ] = None,
    load: Load = None,
) -> None:
    """Try passes or a target on random programs, and reduce what fails.

      gcomp fuzz --minutes 10 --jobs 2

      gcomp fuzz --pass my-pass --load my_pass.py

      gcomp fuzz --target xla:cpu --programs 2000

      gcomp fuzz --what autodiff --keep campaign.json

    Every program goes through several of the passes in an order of its own, and must mean afterwards what it meant
    before, within the passes' exactness; now and then a pass is held to all it promises. Failures of the same
    fingerprint are one; each is reduced, and written with the inputs that show it. Exit status 1 if anything failed.
    --what is passes, frontend, autodiff, padding, memory, indexing, tile, printed or runtime, each with a judge of its
    own.
    """
    from gcomp.cli.fuzzing import case_command, fuzz_command
    from gcomp.cli.options import load_files
    from gcomp.testing.fuzz import Limits, Plan

    load_files(load or [])
    if minutes is None and programs is None:
        minutes = 1.0
    plan = Plan.of(tuple(passes or ()), pipeline, target, size, what)
    if case is not None:
        return case_command(plan, seed, case)
    fuzz_command(plan, Limits(minutes, programs, jobs), seed, output, seconds, keep)


@app.command("train-step")
def train_step(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")],
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
    target: Target = "xla:cpu",
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
    from gcomp.cli.options import source_of
    from gcomp.cli.training import StepOptions, train_step_command

    options = StepOptions(
        loss, optimizer, schedule, clip, of, labels, metric or [], train or [], freeze or [], train_mode, check
    )
    train_step_command(model, output, target, source_of(model, dim, structure, constant, allow_links), options)


@app.command()
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
    threads: Threads = None,
) -> None:
    """Train: run a training step on batches of a file's samples, in an order that the seed decides."""
    from gcomp.cli.training import Course, train_command

    train_command(artifact, Course(data, steps, epochs, batch, seed, log, start, state, threads))


@app.command("write-parameters")
def write_parameters(
    model: Annotated[Path, typer.Argument(help="the .onnx file that was trained")],
    state: Annotated[Path, typer.Argument(help="a state, of gcomp train --state or save_state")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the .onnx file to write")],
) -> None:
    """Write an ONNX file whose initializers are trained parameters; all else is as it was, byte by byte."""
    from gcomp.cli.training import write_parameters_command

    write_parameters_command(model, state, output)


def main() -> None:
    """The entry point of the `gcomp` command."""
    try:
        copy_context().run(app)
    except UsageError as error:
        _fail(error, 2)
    except InternalError as error:
        _fail(error, 3)
    except GcompError as error:
        _fail(error, 1)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if is_users_fault(error.__traceback__):
            _fail_of_users(error, why)
        traceback.print_exc()
        _fail(InternalError("gcomp crashed", why=why, fix="please report this, with the lines above"), 3)


def _fail_of_users(error: Exception, why: str) -> NoReturn:
    """Show the user's lines of a traceback: what gcomp did in between is not their concern."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    typer.echo("".join(traceback.format_list(frames)), err=True, nl=False)
    _fail(UserCodeError("your code failed", where=line_of(error.__traceback__), why=why, fix="mend it there"), 1)


def _fail(error: GcompError, code: int) -> NoReturn:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(str(error), err=True)
    sys.exit(code)
