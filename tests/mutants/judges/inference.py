"""Judges result types, verifiers and symbolic sizes: what ops infer next to what the reference computed.

Prepared for a seed are programs with the shapes that all their values had. Each op must accept itself, and infer these
shapes: with its sizes, and once more with symbols in their place. Programs that break a constraint must be refused, and
symbolic sizes must be what Python's integers are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import text_of
from gcomp.errors import GcompError, VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir import text
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor, shape_of, with_shape
from gcomp.passes.judging import MAX_STEPS
from gcomp.reference.interpreter import Interpreter
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program
from tests.mutants.formulas import problems
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.support.cases import all_cases
from tests.support.samples import sample
from tests.unit.ir import broken_structured_programs, broken_tensor_programs

Array = np.ndarray[Any, Any]
Env = Mapping[str, int]
Found = tuple[str, tuple[int, ...]]

PROGRAMS = 300
REFUSED = Path(__file__).parents[2] / "filetests"


@dataclass(frozen=True)
class Ran:
    """An op that the reference ran: its name, the symbols' values, element types and shapes of its results."""

    op: GraphOp
    env: Env
    found: tuple[Found, ...]


@dataclass(frozen=True)
class Prepared:
    """What a seed has: ops that ran, the same with symbols for sizes, and programs that break a constraint."""

    ran: list[Ran]
    broken: list[tuple[str, str]]


@lru_cache(1)
def prepared(seed: int) -> Prepared:
    """The ops of the cases and of random programs, in an order of the seed's."""
    ran: list[Ran] = []
    for program, inputs in _programs(seed):
        try:
            ran += _ran(program, inputs)
        except GcompError:
            continue  # the reference has no answer
    ran += [general for one in ran if (general := _generalized(one)) is not None and not _wrong(general)]
    order = np.random.default_rng(seed).permutation(len(ran))
    return Prepared([ran[i] for i in order], list(_broken()))


def _programs(seed: int) -> Iterator[tuple[Program, Sequence[Array]]]:
    for case in all_cases(seed=seed):
        yield Program.parse(case.text, case.name), case.inputs
    for number in range(seed * PROGRAMS, (seed + 1) * PROGRAMS):
        program = seeded_program(number)
        yield program, inputs_for(program, number)


def _ran(program: Program, inputs: Sequence[Array]) -> list[Ran]:
    """The ops of a program that ran, but for those of regions that are evaluated on many elements at once."""
    ports = zip(program.inputs(), inputs, strict=True)
    entries = [(s, n, port.name) for port, array in ports for s, n in zip(port.shape, array.shape, strict=True)]
    env = dims.bind(entries, program.ranges)
    found: dict[Operation, tuple[Found, ...]] = {}

    def observe(op: Operation, results: Sequence[Any]) -> None:
        whole = isinstance(op.parent_op(), (FuncOp, hlo.IfOp, hlo.CaseOp, hlo.WhileOp))
        if whole and isinstance(op, GraphOp) and all(isinstance(r, np.ndarray) for r in results):
            found[op] = tuple((text_of(r.dtype), r.shape) for r in results)

    Interpreter(program, max_steps=MAX_STEPS, observer=observe).run(inputs)
    return [Ran(op, env, shapes) for op, shapes in found.items() if isinstance(op, GraphOp)]


_OF_RESULTS = (hlo.DotGeneralOp, hlo.ConvolutionOp)
"""Ops whose shape is inferred, and the element type declared."""


def _generalized(one: Ran) -> Ran | None:
    """The op with a symbol for each size of its operands but 1; None where it has no sizes."""
    if one.env or not (one.op.INFERS or isinstance(one.op, _OF_RESULTS)):
        return None
    types = [_symbolic(v.type) for v in one.op.operands]
    if types == [*one.op.operand_types]:
        return None
    block = Block(arg_types=types)
    clone = one.op.clone(dict(zip(one.op.operands, block.args, strict=True)))
    assert isinstance(clone, GraphOp)
    return Ran(clone, _Values(), one.found)


def _symbolic(type: Attribute) -> Attribute:
    if not is_tensor(type):
        return type
    sizes = [s if s == 1 else dims.symbol(f"s{s}") for s in shape_of(type)]
    return with_shape(type, sizes) if sizes else type


class _Values(dict[str, int]):
    """The symbol `s7` is 7."""

    def __missing__(self, name: str) -> int:
        return int(name[1:])

    def __contains__(self, name: object) -> bool:
        return True


def _broken() -> Iterator[tuple[str, str]]:
    for rows, dialect in (
        (broken_tensor_programs.STABLEHLO, "stablehlo"),
        (broken_structured_programs.STABLEHLO, "stablehlo"),
        (broken_tensor_programs.CHLO, "chlo"),
    ):
        for name, *form in rows:
            yield name, sample(f"{dialect}.{name.rpartition('-')[0]}", *form)
    yield from broken_structured_programs.PROGRAMS
    for path in sorted(REFUSED.glob("*/*-invalid.mlir")):
        for part in path.read_text(encoding="utf-8").split("// -----"):
            if (cited := re.search(r"// CHECK: why: ([\w-]+):", part)) is not None:
                yield cited[1], part


@judge_of("inference", prepared)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first op, program or formula that is judged wrong."""
    known, tried = prepared(seed), 0
    for one in known.ran:
        tried += 1
        if problem := _wrong(one):
            return Kill(tried, f"{one.op.name}: {problem}")
    for constraint, source in known.broken:
        tried += 1
        if problem := _accepted(constraint, source):
            return Kill(tried, problem)
    for problem in problems(seed):
        tried += 1
        if problem:
            return Kill(tried, problem)
    return Survival(tried)


def _wrong(one: Ran) -> str:
    op = one.op
    try:
        if isinstance(op, _OF_RESULTS):
            inferred = [(element, op.result_shape()) for element, _ in one.found]
        else:
            inferred = [(dtype_text(t), shape_of(t)) for t in op.infer() if is_tensor(t)] if op.INFERS else []
        if not isinstance(one.env, _Values):
            op.check()
        got = [(element, [_value(size, one.env) for size in shape]) for element, shape in inferred]
    except Exception as error:  # whatever the mistake makes of it
        return f"{type(error).__name__}: {error}"
    for (inferred_element, shape), (element, found) in zip(got, one.found, strict=False):
        sizes = [n if s is None else s for s, n in zip(shape, found, strict=False)]
        if inferred_element != element or len(shape) != len(found) or sizes != [*found]:
            return f"it infers {inferred_element}{shape}, and gives {element}{list(found)}"
    return ""


def _value(size: Size, env: Env) -> int | None:
    """A size's value; None where nothing is known of it."""
    return None if "_" in dims.symbols_of(size) else dims.evaluate(size, env)


def _accepted(constraint: str, source: str) -> str:
    """What is wrong where a program that breaks a constraint is not refused for it."""
    try:
        text.verify_module(text.parse_module(source))
    except VerificationError as error:
        return "" if f"{constraint}:" in str(error) else f"{constraint}: refused for another reason: {error}"
    except Exception as error:  # whatever the mistake makes of it
        return f"{constraint}: {type(error).__name__}: {error}"
    return f"{constraint}: accepted"
