"""Plans made by hand for the tests beside this file."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np

from gcomp.dims import Range, Ranges
from gcomp.runtime.cpu.plan import Code, CpuPlan, Kernel, to_text
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.signature import Signature
from gcomp.runtime.steps import Buffer, Launch
from tests.unit.runtime.cpu.code import entry, image_of, read, write

Array = np.ndarray[Any, Any]
ROWS = ("n", "96")
BYTES = "384*n"
WEIGHT = np.linspace(-1, 1, 96 * 8, dtype=np.float32).reshape(8, 96)

PLUS_WEIGHT = entry(
    {"arena": 0, "x": 2, "w": 3, "y": 4, "rows": 5},
    "\n".join([
        read("a", "x"), read("b", "w"), "  %t = fadd float %a, %b", "  %temp = getelementptr i8, ptr %arena, i64 64",
        write("t", "temp"), read("u", "temp"), "  %v = fmul float %u, %u", write("v", "y"),
    ]),
    "  %numbers = ptrtoint ptr %rows to i64\n  %n = mul i64 %numbers, 96",
)  # fmt: skip
"""y = (x + w) ** 2 by way of the arena."""


def part(
    text: str, code: str, inputs: tuple[int, ...], outputs: tuple[Value, ...], *,
    buffers: tuple[Buffer, ...] = (), weights: tuple[str, ...] = (), arena: str = "0", steps: tuple[Any, ...] = (),
    symbols: tuple[str, ...] = ("n",), kernels: tuple[Kernel, ...] = (), aliases: tuple[tuple[int, int], ...] = (),
) -> tuple[DeviceSegment, dict[str, str], dict[str, bytes]]:  # fmt: skip
    """A segment that runs an entry, its text, and its image."""
    image = image_of(code)
    entries = image.entries
    variant = this_machine()
    name = f"code.{text.removesuffix('.json')}.{variant.replace('+', '.')}.image"  # members have no plus
    sha256 = hashlib.sha256(image.code).hexdigest()
    found = Code(name, sha256, *(entries[f"gcomp_{what}"] for what in ("entry", "pool_start", "pool_stop", "parallel")))
    plan = CpuPlan(variant, found, arena, 0, (), symbols, kernels, buffers, steps)
    segment = DeviceSegment(text, inputs, weights, outputs, aliases)
    return segment, {text: to_text({variant: plan})}, {name: image.code}


def signature(inputs: int = 1, outputs: int = 1) -> Signature:
    """So many inputs x0.. and outputs y0.. of n rows of 96 numbers, n from 0 to 8."""
    return Signature(
        tuple(InputSpec(f"x{i}", "f32", ROWS, False) for i in range(inputs)),
        tuple(OutputSpec(f"y{i}", "f32", ROWS, None) for i in range(outputs)),
        Ranges({"n": Range(0, 8)}),
    )


@lru_cache
def plan_with_weight() -> Plan:
    """(x + w) ** 2."""
    buffers = (
        Buffer("input", 0, BYTES), Buffer("weight", 0, BYTES), Buffer("arena", 64, BYTES), Buffer("output", 0, BYTES),
    )  # fmt: skip
    steps = (
        Launch(0, ("n",), (0, 1, 2, "96*n"), "x + w", "96*n", "1152*n"),
        Launch(1, ("n",), (2, 3), "square", "96*n", "768*n"),
    )
    kernels = (Kernel("add", 0, "", ("in", "in", "out", "size")), Kernel("square", 0, "", ("in", "out")))
    segment, texts, images = part(
        "plan.json", PLUS_WEIGHT, (0,), (Value("f32", ROWS),), buffers=buffers, weights=("w",),
        arena=f"{BYTES} + 64", steps=steps, kernels=kernels,
    )  # fmt: skip
    return Plan(f"cpu:{this_machine()}", signature(), (segment,), (1,), texts, {"w": Value("f32", ("8", "96"))}, images)


IN_PLACE = entry(
    {"x": 2, "z": 3, "y": 4, "rows": 5},
    "\n".join([read("a", "x"), read("b", "z"), "  %t = fadd float %a, %b", write("t", "y")]),
    "  %numbers = ptrtoint ptr %rows to i64\n  %n = mul i64 %numbers, 96",
)
"""y = x + z, whose y may lie in x."""


def plan_in_place(*, donated: bool = True, state: int | None = None) -> Plan:
    """x0 + x1, in the memory of x0 if that is donated. With a state, x0 is kept."""
    buffers = (Buffer("input", 0, BYTES), Buffer("input", 1, BYTES), Buffer("output", 0, BYTES))
    steps = (Launch(0, ("n",), (0, 1, 2)),)
    aliases = ((0, 0),) if donated else ()
    segment, texts, images = part(
        "plan.json", IN_PLACE, (0, 1), (Value("f32", ROWS),), buffers=buffers, steps=steps,
        kernels=(Kernel("add", 0, "", ("in", "in", "out")),), aliases=aliases,
    )  # fmt: skip
    inputs = (InputSpec("x0", "f32", ROWS, donated, state=state), InputSpec("x1", "f32", ROWS, False))
    whole = Signature(inputs, (OutputSpec("y0", "f32", ROWS, 0 if donated else None),), Ranges({"n": Range(0, 8)}))
    return Plan(f"cpu:{this_machine()}", whole, (segment,), (2,), texts, {}, images)


SHARED = """
declare void @gcomp_parallel(ptr, ptr, ptr, i64)

define internal void @double(ptr %args, i64 %begin, i64 %end) {
  %at.y = getelementptr i64, ptr %args, i64 1
  %x = load ptr, ptr %args
  %y = load ptr, ptr %at.y
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %p
  %b = fadd float %a, %a
  store float %b, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

define i64 @gcomp_entry(ptr %call) {
  %args = alloca [2 x i64], align 16
  %second = getelementptr i64, ptr %args, i64 1
  %at.pool = getelementptr i64, ptr %call, i64 1
  %at.x = getelementptr i64, ptr %call, i64 2
  %at.y = getelementptr i64, ptr %call, i64 3
  %at.n = getelementptr i64, ptr %call, i64 4
  %pool = load ptr, ptr %at.pool
  %x = load i64, ptr %at.x
  %y = load i64, ptr %at.y
  %n = load i64, ptr %at.n
  %count = mul i64 %n, 96
  store i64 %x, ptr %args
  store i64 %y, ptr %second
  call void @gcomp_parallel(ptr %pool, ptr @double, ptr %args, i64 %count)
  ret i64 0
}
"""
"""y = x + x, element by element on all threads."""


@lru_cache
def plan_on_threads() -> Plan:
    """x + x, on all threads."""
    segment, texts, images = part(
        "plan.json", SHARED, (0,), (Value("f32", ROWS),), steps=(Launch(0, ("96*n",), (0, 1)),),
        kernels=(Kernel("double", 0, "", ("in", "out")),),
        buffers=(Buffer("input", 0, BYTES), Buffer("output", 0, BYTES)),
    )  # fmt: skip
    return Plan(f"cpu:{this_machine()}", signature(), (segment,), (1,), texts, {}, images)


COUNT = entry(
    {"x": 2, "y": 3, "m": 4},
    "  %p = getelementptr i64, ptr %x, i64 %i\n  %a = load i64, ptr %p\n  %b = mul i64 %a, 10\n"
    "  %q = getelementptr i64, ptr %y, i64 %i\n  store i64 %b, ptr %q",
    "  %sizes = ptrtoint ptr %m to i64\n  %n = mul i64 %sizes, 2",
)


def plan_with_host_step() -> Plan:
    """The places of what is not zero in (x + w) ** 2, times ten: code, a host step, and code for what it finds."""
    first = plan_with_weight()
    places = Value("i64", ("2", "m"))
    last, texts, images = part(
        "last.json", COUNT, (2,), (places,), symbols=("m",), kernels=(Kernel("ten", 0, "", ("in", "out")),),
        buffers=(Buffer("input", 0, "16*m"), Buffer("output", 0, "16*m")), steps=(Launch(0, ("m",), (0, 1)),),
    )  # fmt: skip
    whole = Signature(
        (InputSpec("x", "f32", ROWS, False),),
        (OutputSpec("places", "i64", ("2", "m"), None), OutputSpec("tens", "i64", ("2", "m"), None)),
        Ranges({"n": Range(0, 8), "m": Range(0, None)}),
    )
    steps = (*first.steps, HostStep("nonzero", (1,), (places,)), last)
    binaries = {**first.binaries, **images}
    return Plan(first.target, whole, steps, (2, 3), {**first.texts, **texts}, first.weights, binaries)


def with_weight(x: Array) -> Array:
    """(x + w) ** 2 in NumPy."""
    return (x + WEIGHT[: len(x)]) ** 2


def rows(count: int, seed: int = 0) -> Array:
    """So many rows of random numbers."""
    return np.random.default_rng(seed).standard_normal((count, 96)).astype(np.float32)
