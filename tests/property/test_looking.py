"""Fetches, checks and prints at random places of random programs: no output of the program changes by a bit.

Ten thousand programs by the reference, and a thousand compiled for XLA, are run by `pytest -m slow`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

import gcomp
from gcomp.errors import GcompError
from gcomp.ir.builder import Builder
from gcomp.ir.checks import KINDS
from gcomp.ir.fetching import fetching, printed_names
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo import CaseOp, CompositeOp, IfOp, RngOp, WhileOp
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import walk
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.transform.insert_checks import InsertChecks
from gcomp.reference.interpreter import Interpreter
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import random_program

PASSES = (
    "dce", "cse", "canonicalize", "fold-constants", "inline", "inline-composites", "expand-chlo", "infer-shapes",
    "sink-transposes", "raise-softmax", "raise-norms", "window-to-arithmetic", "conv-channels-last",
)  # fmt: skip
MAX_STEPS = 20_000


def run(program: Program, inputs: Sequence[np.ndarray]) -> tuple[list[str], list[bytes]]:
    """What the reference prints, and the bits of the outputs."""
    lines: list[str] = []
    outputs = Interpreter(program, max_steps=MAX_STEPS, sink=lines.append).run(inputs)
    return lines, [array.tobytes() for array in outputs]


def insert_prints(program: Program, rng: random.Random, count: int) -> None:
    """Put prints of random values at random places of functions, branches and loops.

    Not into decompositions of composites: they are shared by name, as they are built.
    """
    shared = {op.decomposition_name for op in program.ops() if isinstance(op, CompositeOp)}
    functions = [function for function in program.functions() if function.sym_name.data not in shared]
    blocks = [block for function in functions for op in walk(function) for block in _blocks(op)]
    for k in range(count):
        op = rng.choice(list(rng.choice(blocks).ops))
        values = [value for value in _in_scope(op) if is_tensor(value.type)]
        text = f"{k}: {{shape}} {{dtype}} {{nan}} {{inf}} {{mean}} {{max}} {{values}}" if values else f"{k}"
        chosen = [rng.choice(values)] if values else []
        Builder(program, InsertPoint.before(op)).insert(PrintOp.of(*chosen, types=(), format=StringAttr(text)))


def _blocks(op: Operation) -> list[Block]:
    if isinstance(op, WhileOp):
        return [op.body.block]
    if isinstance(op, IfOp | CaseOp) or op.name == "func.func":
        return [block for region in op.regions for block in region.blocks]
    return []


def _in_scope(op: Operation) -> list[SSAValue]:
    """The values of an op's own block that are there before it."""
    block, found = op.parent, list[SSAValue]()
    assert block is not None
    for other in block.ops:
        if other is op:
            break
        found += other.results
    return [*block.args, *found]


def program_of(seed: int) -> tuple[Program, list[np.ndarray], list[bytes]] | None:
    """A program without hidden random numbers, inputs, and what it computes; None where it does not run to its end."""
    program = random_program(Seeded(seed))
    if any(isinstance(op, RngOp) for op in program.ops()):
        return None
    inputs = inputs_for(program, seed)
    try:
        return program, inputs, run(program, inputs)[1]
    except GcompError:
        return None


def results_of_main(program: Program) -> list[str]:
    """What may be fetched at the top: the numbers of the results of `main`'s own ops."""
    return [
        f"%{name}"
        for value, name in printed_names(program).items()
        if isinstance(value, OpResult) and is_tensor(value.type) and value.op.parent is program.block
    ]


def look_at_one(seed: int) -> bool:
    """Look into the program of a number by the reference; False where it has none that runs."""
    rng = random.Random(seed)
    made = program_of(seed)
    if made is None:
        return False
    program, inputs, outputs = made
    top = results_of_main(program)
    if top:
        text = program.text()
        wanted = rng.sample(top, min(2, len(top)))
        run(fetching(program, wanted), inputs)
        assert program.text() == text, "fetching changed the program"
    if rng.random() < 0.5:
        checked = program.clone()
        InsertChecks(tuple(rng.sample(KINDS, rng.randint(1, 3)))).run(checked, PassContext())
        checked.verify("with checks")
        assert run(checked, inputs)[1][: len(outputs)] == outputs, "checks changed an output"
    insert_prints(program, rng, rng.randint(1, 5))
    lines, again = run(program, inputs)
    assert again == outputs, "prints changed an output"
    PassManager(parse_pipeline(",".join(rng.sample(PASSES, rng.randint(1, 5))))).run(program)
    program.verify("after passes")
    after = run(program, inputs)[0]
    assert [line.split(":")[0] for line in after] == [line.split(":")[0] for line in lines], "prints were not kept"
    return True


def compile_one(seed: int) -> bool:
    """Look into the program of a number on XLA:CPU; False where it does not compile."""
    rng = random.Random(seed)
    made = program_of(seed)
    if made is None:
        return False
    program, inputs, _ = made
    try:
        plain = [np.asarray(x).tobytes() for x in gcomp.compile(program.clone()).flat(list(inputs))]
    except GcompError:
        return False
    top = results_of_main(program)
    fetch = [rng.choice(top)] if top else []
    insert_prints(program, rng, 3)
    lines: list[str] = []
    try:
        model = gcomp.compile(program.clone(), fetch=fetch)
    except GcompError as error:
        assert "XLA" in str(error), error  # an op that only what is looked at needs
        return False
    with gcomp.printing_to(lines.append):
        outputs = model.flat(list(inputs))
    assert [np.asarray(x).tobytes() for x in outputs][: len(plain)] == plain, "looking changed an output"
    expected = [line.split(":")[0] for line in run(program, inputs)[0]]
    assert [line.split(":")[0] for line in lines] == expected, "prints differ"
    return True


@pytest.mark.parametrize("block", range(8))
def test_looking_changes_nothing(block: int) -> None:
    assert sum(look_at_one(seed) for seed in range(block * 15, block * 15 + 15))


@pytest.mark.parametrize("block", range(3))
def test_compiled_programs_are_as_without_looking(block: int) -> None:
    assert sum(compile_one(seed) for seed in range(block * 4, block * 4 + 4))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_looking_changes_nothing_in_ten_thousand_programs(block: int) -> None:
    assert sum(look_at_one(seed) for seed in range(block * 300, block * 300 + 300))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_a_thousand_compiled_programs_are_as_without_looking(block: int) -> None:
    assert sum(compile_one(seed) for seed in range(block * 30, block * 30 + 30))
