"""Programs as single kernels: run by Triton's interpreter, and compiled; for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import evaluate
from gcomp.dtypes import dtype_of
from gcomp.ir.builder import Builder
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.types import Tensor, dtype_text, shape_of
from gcomp.lowering.tiles.schedules import Scheduled, Settings, schedule
from gcomp.lowering.tiles.tile import tile
from gcomp.lowering.triton.aot import Compiled, Compiler
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.targets import ARCHITECTURES
from gcomp.testing.tiles import as_kernel

Array = np.ndarray[Any, Any]
Build = Callable[[Builder, Sequence[SSAValue]], Sequence[SSAValue]]


def program_of(types: Sequence[Tensor], build: Build) -> Program:
    """A program of what `build` makes of inputs of these types."""
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])
    results = build(Builder(program), list(program.block.args))
    program.finish([(f"y{j}", value) for j, value in enumerate(results)])
    program.verify()
    return program


def launched(program: Program, kind: str, **settings: int) -> tuple[LaunchOp, Scheduled]:
    """A program as one kernel, and what its schedule makes of that."""
    whole = as_kernel(program, kind)
    (launch,) = [op for op in whole.ops() if isinstance(op, LaunchOp)]
    return launch, schedule(launch, "kernel", whole.ranges, Settings(settings))


def interpreted(program: Program, kind: str, inputs: Sequence[Array], **settings: int) -> list[Array]:
    """The results, as Triton's interpreter computes them from the printed source. Sizes are static."""
    launch, scheduled = launched(program, kind, **settings)
    memory = {
        "input": [np.asarray(x) for x in inputs],
        "output": [_zeros(r.type, [evaluate(n, {}) for n in shape_of(r)]) for r in launch.results],
        "scratch": [_zeros(tile((), s.element), [evaluate(s.count, {})]) for s in scheduled.scratch],
    }
    with Interpreter() as interpreter:
        for step in scheduled.steps:
            source = print_kernel(step)
            places = [(b.kind, b.index) for b in step.bindings]
            values = {a.name: memory[kind][n] for a, (kind, n) in zip(source.arguments, places, strict=True)}
            found = interpreter.run(source, values, [evaluate(size, {}) for size in step.grid])
            for argument, (role, n) in zip(source.arguments, places, strict=True):
                if argument.name in found:
                    memory[role][n] = found[argument.name]
    return memory["output"]


def compiled(program: Program, kind: str, target: str = "sm_90", **settings: int) -> list[Compiled]:
    """The kernels, compiled."""
    _, scheduled = launched(program, kind, **settings)
    with Compiler(1) as compiler:
        return compiler.compile([print_kernel(step) for step in scheduled.steps], ARCHITECTURES[target])


def _zeros(type: Attribute, shape: Sequence[int]) -> Array:
    return np.zeros(shape, dtype_of(dtype_text(type)))


def numbers(seed: int, shape: Sequence[int], dtype: str, scale: float = 1.0) -> Array:
    """Random numbers of a type."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype_of(dtype))
