"""Plans made by hand for the tests beside this file, and what their kernels do, in NumPy."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dims import Range, Ranges
from gcomp.lowering.tiles.drafts import Draft, Part
from gcomp.lowering.triton.package import package
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import HostStep, Plan, Value
from gcomp.runtime.signature import Signature
from tests.unit.lowering.triton.kernels import ADD, SOFTMAX
from tests.unit.runtime.cuda.recorder import BODIES, Recorder, softmax

Array = np.ndarray[Any, Any]

N = dims.symbol("n")
ROWS = ("n", "96")
BYTES = N * (96 * 4)
WEIGHT = np.linspace(-1, 1, 96 * 8, dtype=np.float32).reshape(8, 96)


def signature(inputs: int = 1, outputs: int = 1) -> Signature:
    """So many inputs x0.. and outputs y0.. of n rows of 96 numbers, n from 0 to 8."""
    return Signature(
        tuple(InputSpec(f"x{i}", "f32", ROWS, False) for i in range(inputs)),
        tuple(OutputSpec(f"y{i}", "f32", ROWS, None) for i in range(outputs)),
        Ranges({"n": Range(0, 8)}),
    )


def draft_of_two() -> Draft:
    """softmax(x + w), with the sum in the arena at byte 256."""
    draft = Draft(arena=256 + BYTES)
    x, w = draft.buffer("input", 0, BYTES), draft.buffer("weight", 0, BYTES)
    t, y = draft.buffer("arena", 256, BYTES), draft.buffer("output", 0, BYTES)
    draft.launch(ADD, {"x": x, "y": w, "o": t, "n": 96 * N}, label="x + w", flops=96 * N, moved=3 * BYTES)
    draft.launch(SOFTMAX, {"x": t, "o": y}, label="softmax", flops=5 * 96 * N, moved=2 * BYTES)
    return draft


@lru_cache
def plan_of_two(target: str = "triton:sm_90") -> Plan:
    """softmax(x + w)."""
    names = target.removeprefix("triton:").split(",")
    value = Value("f32", ROWS)
    part = Part((0,), ("w",), (value,), {name: draft_of_two() for name in names})
    return package(target, signature(), [part], (1,), {"w": Value("f32", ("8", "96"))})


def plan_of(draft: Draft, inputs: int = 1, outputs: int = 1) -> Plan:
    """A plan of one draft without weights."""
    values = (Value("f32", ROWS),) * outputs
    part = Part(tuple(range(inputs)), (), values, {"sm_90": draft})
    return package("triton:sm_90", signature(inputs, outputs), [part], tuple(range(inputs, inputs + outputs)), {})


def plan_in_place() -> Plan:
    """softmax(x0 + x1), computed in the memory of x0, which is donated."""
    draft = Draft()
    x, y, o = draft.buffer("input", 0, BYTES), draft.buffer("input", 1, BYTES), draft.buffer("output", 0, BYTES)
    draft.launch(ADD, {"x": x, "y": y, "o": x, "n": 96 * N})
    draft.launch(SOFTMAX, {"x": x, "o": o})
    inputs = (InputSpec("x0", "f32", ROWS, True), InputSpec("x1", "f32", ROWS, False))
    whole = Signature(inputs, (OutputSpec("y0", "f32", ROWS, 0),), Ranges({"n": Range(0, 8)}))
    part = Part((0, 1), (), (Value("f32", ROWS),), {"sm_90": draft}, ((0, 0),))
    return package("triton:sm_90", whole, [part], (2,), {})


def two(x: Array) -> Array:
    """softmax(x + w) in NumPy."""
    return softmax(x + WEIGHT[: len(x)])


def recorder(architecture: str = "sm_90", memory: int = 1 << 24) -> Recorder:
    """A recorder that knows the kernels above."""
    return Recorder(BODIES, architecture, memory)


def rows(count: int, seed: int = 0) -> Array:
    """So many rows of random numbers."""
    return np.random.default_rng(seed).standard_normal((count, 96)).astype(np.float32)


def plan_with_host_step() -> Plan:
    """The places of what is not zero in x, and its softmax: a kernel, a host step, and a copy."""
    first, last = Draft(), Draft()
    first.launch(SOFTMAX, {"x": first.buffer("input", 0, BYTES), "o": first.buffer("output", 0, BYTES)})
    last.copy(last.buffer("input", 0, BYTES), last.buffer("output", 0, BYTES))
    last.fill(last.buffer("output", 1, 8 * dims.symbol("m")), 0)
    value = Value("f32", ROWS)
    whole = Signature(
        (InputSpec("x", "f32", ROWS, False),),
        (OutputSpec("places", "i64", ("2", "m"), None), OutputSpec("y", "f32", ROWS, None)),
        Ranges({"n": Range(0, 8), "m": Range(0, None)}),
    )
    steps = [
        Part((0,), (), (value,), {"sm_90": first}),
        HostStep("nonzero", (0,), (Value("i64", ("2", "m")),)),
        Part((1,), (), (value, Value("i64", ("m",))), {"sm_90": last}),
    ]
    return package("triton:sm_90", whole, steps, (2, 3), {})
