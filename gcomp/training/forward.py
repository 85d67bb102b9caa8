"""What is trained: a model's program with its parameters as inputs, and why the other weights are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from gcomp.dims import DimSpec
from gcomp.dtypes import is_float, is_narrow_float, text_of
from gcomp.errors import UsageError, did_you_mean
from gcomp.ir.opening import open_weights
from gcomp.ir.program import Program
from gcomp.ir.weights import symbol_of
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.sources import import_model, is_onnx
from gcomp.texts import require_weights

Array = np.ndarray[Any, Any]
ALL = ("*",)


@dataclass
class Selection:
    """Which weights train: those that `trainable` names and `frozen` does not, in glob patterns.

    Numbers (rank 0) and weights with infinities or NaN are mostly constants of the model's arithmetic: they train only
    where a pattern other than `*` names them.
    """

    trainable: Sequence[str] = ALL
    frozen: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._seen: list[str] = []

    def __call__(self, name: str, array: Array) -> str:
        """Why a weight does not train; an empty text where it does."""
        self._seen.append(name)
        if pattern := next((p for p in self.frozen if fnmatchcase(name, p)), None):
            return f"it is frozen, by {pattern!r}"
        if not any(fnmatchcase(name, p) for p in self.trainable):
            return f"it is not among {', '.join(map(repr, self.trainable))}"
        if is_narrow_float(text_of(array.dtype)):
            return f"its elements are {text_of(array.dtype)}"
        if any(p != "*" and fnmatchcase(name, p) for p in self.trainable):
            return ""
        if not array.ndim:
            return "it is a single number; name it to train it"
        if not np.isfinite(array.astype(np.float32, copy=False)).all():
            return "it holds infinities or NaN; name it to train it"
        return ""

    def check(self, trained: Mapping[str, Any], fixed: Mapping[str, str]) -> None:
        """Raises UsageError for a pattern that names nothing, or nothing that trains, and where nothing trains."""
        for pattern in (*self.trainable, *self.frozen):
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in self._seen):
                raise UsageError(
                    f"no weight of floats has a name like {pattern!r}",
                    fix=did_you_mean(pattern, self._seen),
                )
        for pattern in self.trainable:
            if not any(fnmatchcase(name, pattern) for name in trained):
                rows = [f"{name!r}: {why}" for name, why in fixed.items() if fnmatchcase(name, pattern)]
                raise UsageError(
                    "the model has no weight to train" if pattern == "*" else f"nothing like {pattern!r} trains",
                    why="; ".join(rows[:5]) or "it has no weights of floats",
                    fix="export the model with its weights, and freeze fewer of them",
                )


@dataclass(frozen=True)
class Forward:
    """A model's program; `parameters` are inputs of it. See `gcomp.frontends.onnx.engine.parameters.Open`."""

    program: Program
    parameters: Mapping[str, Array]
    fixed: Mapping[str, str]
    updates: Mapping[str, str]


def forward(
    source: Any,
    args: Sequence[Any],
    selection: Selection,
    *,
    training: bool,
    parameters: Mapping[str, Array],
    dims: Mapping[str, DimSpec] | None,
    structures: Any,
    constants: Mapping[str, Array] | None,
) -> Forward:
    """The program of a source whose parameters are inputs: an ONNX model's initializers, weights of anything else."""
    if is_onnx(source):
        from gcomp.frontends.onnx import import_open

        opened = import_open(
            source, frozen=selection, training=training, dims=dims, constants=constants, structures=structures
        )
        found = Forward(opened.program, dict(opened.parameters), opened.fixed, opened.updates)
    else:
        if training:
            raise UsageError(
                "train_mode is for ONNX models", fix="pass a module in its training mode, or a function of training"
            )
        found = _other(source, args, selection, dims, structures, constants)
    found.program.result_structure = found.program.argument_structure = None
    PassManager(parse_pipeline("infer-shapes")).run(found.program)
    return Forward(
        found.program, {**found.parameters, **_first_values(found.program, parameters)}, found.fixed, found.updates
    )


def _other(
    source: Any, args: Sequence[Any], selection: Selection, dims: Any, structures: Any, constants: Any
) -> Forward:
    program = import_model(source, *args, dims=dims, structures=structures, constants=constants)
    require_weights(program, source)
    program = program.clone() if program is source else program
    buffers, own = set(_names(source, "buffers")), {symbol_of(n): n for n in _names(source, "parameters")}
    fixed: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for symbol, array in program.weights.items():
        name = own.get(symbol, symbol)
        if not is_float(text_of(array.dtype)):
            continue
        if symbol in {symbol_of(buffer) for buffer in buffers}:
            fixed[name] = "it is a buffer of the module"
        elif why := selection(name, array):
            fixed[name] = why
        else:
            chosen[symbol] = name
    return Forward(program, open_weights(program, chosen), fixed, {})


def _first_values(program: Program, parameters: Mapping[str, Array]) -> Mapping[str, Array]:
    """First values of inputs that are to be parameters. Raises UsageError where they are no inputs, or do not fit."""
    ports = {port.name: port for port in program.inputs()}
    for name, array in parameters.items():
        port = ports.get(name)
        if port is None:
            raise UsageError(f"the model has no input {name!r}", fix=f"its inputs are: {', '.join(ports)}")
        if (text_of(array.dtype), array.shape) != (port.dtype, port.shape) or not is_float(port.dtype):
            expected = f"{port.dtype}[{', '.join(map(str, port.shape))}]"
            raise UsageError(f"the parameter {name!r} is {array.dtype}{list(array.shape)}, not {expected}",
                             why="a parameter has floats, a fixed shape, and the type of its input")  # fmt: skip
    return parameters


def _names(source: Any, kind: str) -> Iterator[str]:
    """The names of a torch module's parameters, or of its buffers, which no optimizer moves."""
    if hasattr(source, f"named_{kind}"):
        yield from (name for name, _ in getattr(source, f"named_{kind}")())
    elif hasattr(source, "graph_signature"):
        yield from getattr(source.graph_signature, kind)
