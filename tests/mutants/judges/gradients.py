"""Judges reverse and forward mode: cases whose gradients JAX gives, and programs against finite differences: composites
that have derivatives of their own, loops that write into stacks, and generated ones.

What JAX gives is computed once for a seed, before anything is patched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from gcomp.analysis.work import Nominal
from gcomp.autodiff.programs import differentiate, differentiate_back
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.reference.interpreter import interpret
from gcomp.sources import import_model
from gcomp.testing import derivatives
from gcomp.testing.foreign import jax_families as cases
from gcomp.testing.fuzz.autodiff import random_f64
from tests.conformance.gradients import stacks
from tests.conformance.gradients.against_jax import loss_of
from tests.mutants.judges import PREPARE, Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

Array = np.ndarray[Any, Any]
GENERATED = 200
CHOSEN = {
    "elementwise": ("arithmetic", "where", "clip"),
    "choices": ("maximum of equals", "reduce_max of equals", "reduce_min of equals", "relu at 0", "bounds of clamp"),
    "complex": ("parts",), "movement": ("pad", "dynamic_slice twice", "dynamic_update_slice"),
    "contraction": ("dot_general",), "folds": ("max pooling", "sort", "product", "shared scale"),
    "indexing": ("take", "set", "add"),
    "control": ("cond true", "cond with a constant", "scan", "swap", "carried values that are one"),
}  # fmt: skip

COMPOSITES: dict[str, tuple[int, dict[str, Any]]] = {
    "gcomp.softmax": (1, {"axis": 1}), "gcomp.log_softmax": (1, {"axis": 0}), "gcomp.logsumexp": (1, {"axis": 2}),
    "gcomp.attention": (3, {"scale": 0.5}),
}  # fmt: skip
"""Name -> number of operands, and attributes."""


@dataclass(frozen=True)
class Judged:
    """A program of one scalar output, inputs and a direction, and what JAX says of them."""

    name: str
    program: Program
    inputs: Sequence[Array]
    direction: Sequence[Array]
    gradients: Sequence[Array]
    tangent: float


@lru_cache(1)
def judged(seed: int) -> list[Judged]:
    """The cases of a seed."""
    made: list[Judged] = []
    with jax.enable_x64(True):
        for family, names in CHOSEN.items():
            for name in names:
                function, given = cases.FAMILIES[family][name]
                args = cases.arrays(given, seed)
                loss, places = loss_of(function), tuple(range(len(args)))
                numbers = np.random.default_rng(seed + 1)
                direction = [np.asarray(numbers.standard_normal(x.shape)).astype(x.dtype) for x in args]
                gradients = [np.asarray(g) for g in jax.grad(loss, argnums=places)(*args)]
                tangent = float(jax.jvp(loss, tuple(args), tuple(direction))[1])
                made.append(Judged(name, import_model(loss, *args), args, direction, gradients, tangent))
    return made


def wrong_about(case: Judged) -> str:
    """What is wrong with a case; empty where nothing is."""
    back, forth = case.program.clone(), case.program.clone()
    try:
        differentiate_back(back, bytes_of=Nominal(back.ranges).bytes)
        differentiate(forth)
        back.verify()
        forth.verify()
        found = interpret(back, case.inputs)
        tangent = float(interpret(forth, [*case.inputs, *case.direction])[-1])
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {error}"
    for x, y in zip(found, case.gradients, strict=True):
        if not np.allclose(x, y, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"{case.name}: the gradient is not JAX's"
    if not np.isclose(tangent, case.tangent, rtol=1e-6, atol=1e-8):
        return f"{case.name}: the tangent is not JAX's"
    return ""


def judge(seed: int, mutant: Mutant) -> Kill | Survival | None:
    """Kill what a case shows, or a generated program."""
    known = judged(seed)
    for number, case in enumerate(known, start=1):
        if text := wrong_about(case):
            return Kill(number, text)
    tried = len(known)
    for name, program in chosen():
        tried += 1
        if text := _differs(program, seed):
            return Kill(tried, f"{name}: {text}")
    for number in range(seed * GENERATED, (seed + 1) * GENERATED):
        tried += 1
        if text := _differs(random_f64(number), number):
            return Kill(tried, text)
    return Survival(tried)


def chosen() -> Iterator[tuple[str, Program]]:
    """Programs in f64 of what generated ones seldom have: one composite, or a loop that fills a stack."""
    for name in COMPOSITES:
        yield name, _composite(name)
    for index in stacks.INDICES:
        for start in ("%empty", "%begun"):
            yield f"a stack written {index}", stacks.program(index, start)


def _composite(name: str) -> Program:
    operands, attributes = COMPOSITES[name]
    program = Program.empty([(f"x{i}", tensor((2, 3, 4), "f64")) for i in range(operands)])
    program.finish([("y", composite(Builder(program), name, list(program.block.args), attributes)[0])])
    return program


def _differs(program: Program, seed: int) -> str:
    """What finite differences say against the derivatives of a program; empty where nothing."""
    try:
        found = derivatives.check(program, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return found.why if found.outcome == "wrong" else ""


def prepare(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    said = [text for case in judged(seed) if (text := wrong_about(case))]
    return [*said, *(text for _, program in chosen() if (text := _differs(program, seed)))]


for _target in ("vjp", "jvp"):
    judge_of(_target)(judge)
    PREPARE[_target] = prepare
