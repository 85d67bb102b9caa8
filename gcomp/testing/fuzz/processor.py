"""Models of machine code: called at many sizes, by several threads, loaded, with a state, and as C libraries.

As for the runtime, numbers are whole ones, so that no order of sums rounds. Code for processors that this machine is
not is run by qemu's user mode, where that and a compiler of C for them are installed.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import gcomp
from gcomp.errors import InputError
from gcomp.ir.program import Program
from gcomp.lowering.llvm import entry
from gcomp.lowering.llvm.clibrary.library import library_files
from gcomp.runtime.cpu.variants import VARIANTS, describe, runs
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Value
from gcomp.runtime.planned import Type
from gcomp.runtime.stateful import StatefulModel
from gcomp.testing.fuzz.door import Undefined
from gcomp.testing.fuzz.runtime import Make, Runtime, reload_model
from gcomp.testing.fuzz.ways import Fetched, OtherArrays, Reports, model_of_kinds

_ROOM = 1 << 30
"""A budget that every program keeps."""
_SECONDS = 60
"""How long a C program may run, or take to be built."""


def _plain(program: Program) -> Model:
    return gcomp.compile(program, target="cpu")


def _load(program: Program) -> Model:
    return reload_model(_plain(program))


def _threads(program: Program) -> Model:
    """Every launch is shared among threads, whatever its work."""
    with _share_at(0):
        return gcomp.compile(program, target="cpu", threads=3)


def _with(program: Program, **options: Any) -> Model:
    return gcomp.compile(program, target="cpu", **options)


def _other_arrays(program: Program) -> OtherArrays:
    return OtherArrays(_plain(program))


def _kinds(program: Program) -> Model:
    """For this kind of processor and for another one, which the code for this one must not be taken from."""
    return reload_model(model_of_kinds(program, (_here()[-1], next(n for n in VARIANTS if n != _here()[-1]))))


@contextmanager
def _share_at(work: int) -> Generator[None]:
    before, entry.SHARED_WORK = entry.SHARED_WORK, work
    try:
        yield
    finally:
        entry.SHARED_WORK = before


class _Kept:
    """A model that keeps some of its inputs, as a function of all of them, which gives what it keeps then, too."""

    def __init__(self, program: Program) -> None:
        ports, results = program.inputs(), program.outputs()
        left = {port.name: port for port in results}
        states: dict[str, str] = {}
        for port in ports:
            same = (r.name for r in left.values() if (r.shape, r.dtype) == (port.shape, port.dtype))
            if all(isinstance(n, int) for n in port.shape) and (found := next(same, None)) is not None:
                states[port.name] = found
                del left[found]
        if not states:
            raise Undefined("no result is like an input")
        program.keep(states, {})
        self._names, self._results, self._states = [p.name for p in ports], [r.name for r in results], states
        model = _plain(program)
        assert isinstance(model, StatefulModel)
        self._model = model

    def flat(self, values: list[Any]) -> list[Any]:
        """What the program gives."""
        given = dict(zip(self._names, values, strict=True))
        self._model.load_state({name: given[name] for name in self._states})
        found = self._model.flat([x for name, x in given.items() if name not in self._states])
        rest = iter(found)
        of = {result: name for name, result in self._states.items()}
        return [self._model.state[of[name]] if name in of else next(rest) for name in self._results]

    def __call__(self, *values: Any) -> Any:
        if len(values) != len(self._names):
            raise InputError("another number of inputs")
        return self.flat([*values])


class _Library:
    """A model as a C program, built by its makefile for a kind of processor."""

    def __init__(self, program: Program, variant: str, threads: int = 1) -> None:
        with _share_at(0):
            model = gcomp.compile(program, target=f"cpu:{variant}", prepare=False)
        self._machine, self._threads = VARIANTS[variant].machine, threads
        self._signature = model.signature
        self._folder = tempfile.TemporaryDirectory()
        self._place = Path(self._folder.name)
        for name, data in library_files(model.plan, model.weights, "model").items():
            (self._place / name).write_bytes(data)
        here = self._machine == platform.machine()
        cross = [] if here else [f"CROSS={self._machine.replace('_', '-')}-linux-gnu-", "LDFLAGS=-static"]
        self._said("make", "-s", "-C", ".", *cross)
        self._command = [*([] if here else [f"qemu-{self._machine}"]), str(self._place / "example")]

    def _said(self, *words: str) -> None:
        done = subprocess.run(words, cwd=self._place, capture_output=True, text=True, timeout=_SECONDS)
        if done.returncode:
            raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")

    def flat(self, values: list[Any]) -> list[Any]:
        """What the program writes."""
        arrays = [np.asarray(x) for x in values]
        env = self._signature.bind(tuple(x.shape for x in arrays))
        for i, array in enumerate(arrays):
            (self._place / f"input{i}").write_bytes(array.tobytes())
        sizes = [str(env[name]) for name in sorted(self._signature.symbols)]
        inputs = [f"input{i}" for i in range(len(arrays))]
        self._said(*self._command, "-t", str(self._threads), "model.weights", *sizes, *inputs)
        types = [Type.of(Value(spec.dtype, spec.dims)) for spec in self._signature.outputs]
        written = [(self._place / f"output{k}.bin").read_bytes() for k in range(len(types))]
        return [
            np.frombuffer(data, type.dtype).reshape(type.shape(env)) for data, type in zip(written, types, strict=True)
        ]


def _library(program: Program) -> _Library:
    return _Library(program, _here()[-1], threads=2)


def _here() -> list[str]:
    return [name for name, variant in VARIANTS.items() if runs(variant)]


@cache
def _elsewhere() -> list[str]:
    """Other kinds of processors, whose code can be built and run here."""
    found: dict[str, str] = {}
    for name, variant in VARIANTS.items():
        needed = (f"{variant.machine}-linux-gnu-gcc".replace("_", "-"), f"qemu-{variant.machine}", "make")
        if variant.machine != platform.machine() and all(map(shutil.which, needed)):
            found[variant.machine] = name
    return [*found.values()]


class Processor(Runtime):
    """Models of machine code."""

    name: ClassVar[str] = "processor"
    summary: ClassVar[str] = "models of machine code: called, loaded, by threads, with a state, as C libraries"
    steps: ClassVar[Sequence[str]] = (
        "dim", "transpose", "reshape", "broadcast", "slice", "pad", "reverse", "concatenate", "iota", "gather",
        "scatter", "dynamic-slice", "dynamic-update-slice", "select", "dimension-size", "split-and-join",
        "through-view", "relu", "dot", "matmul", "convolution", "reduce", "argmax", "reduce-window", "sort",
        "cumulative", "if", "case", "while", "call", "convert",
    )  # fmt: skip

    @property
    def ways(self) -> Mapping[str, Make]:
        found: dict[str, Callable[[Program], Any]] = {
            "calls": _plain, "saving and loading": _load, "threads": _threads, "a state": _Kept,
            "other arrays": _other_arrays, "several kinds": _kinds, "reports": partial(Reports, target="cpu"),
            "fetched values": partial(Fetched, target="cpu"), "checks": partial(_with, checks=("nan", "index")),
            "a budget": partial(_with, memory_budget=_ROOM), "exact": partial(_with, numerics="exact"),
            "fast": partial(_with, numerics="fast"),
        }  # fmt: skip
        if shutil.which("gcc") and shutil.which("make"):
            found["a C library"] = _library
        return found | {f"a C library for {name}": partial(_Library, variant=name) for name in _elsewhere()}

    def missing(self) -> str:
        if not find_spec("llvmlite"):
            return "llvmlite, which makes machine code, is not installed"
        return "" if _here() else f"gcomp compiles for no processor of this kind: {describe()}"


__all__ = ["Processor"]
