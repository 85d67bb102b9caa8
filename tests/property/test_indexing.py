"""Indexing maps say what ops read: an element of an operand changes no element of a result that does not read it.

The programs are generated, and the samples of each op; the reference interpreter is the judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Operation, OpResult, SSAValue

from gcomp import dims
from gcomp.analysis.indexing import (
    MAPS,
    Condition,
    IndexingMap,
    compose,
    d,
    evaluate,
    is_injective,
    operand_maps,
    r,
    reads,
    relation,
    simplify,
    strides,
    touched_elements,
)
from gcomp.analysis.indexing.evaluation import accesses
from gcomp.errors import GcompError, InputError, InvalidModelError, UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.plan import captures
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.inputs import inputs_for, value_for
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.samples import samples

Array = np.ndarray[Any, Any]
MOST = 1 << 14
"""How many (element, element) pairs of a map are looked at."""
MOVING = (
    hlo.BroadcastInDimOp, hlo.ConcatenateOp, hlo.PadOp, hlo.ReshapeOp, hlo.ReverseOp, hlo.SliceOp, hlo.TransposeOp,
    hlo.OptimizationBarrierOp, hlo.BroadcastOp, hlo.DynamicReshapeOp, hlo.DynamicBroadcastInDimOp,
)  # fmt: skip
SIZED = {
    hlo.DynamicPadOp: 2, hlo.DynamicGatherOp: 2, hlo.DynamicConvOp: 2, hlo.DynamicReshapeOp: 1,
    hlo.RealDynamicSliceOp: 1, hlo.DynamicBroadcastInDimOp: 1, hlo.DynamicIotaOp: 0,
}  # fmt: skip
"""Ops of which the operands from some position on are sizes that the types hold them to."""
HIDDEN = (hlo.RngOp,)
"""Ops whose results depend on more than their operands."""


class Ran(NamedTuple):
    """A program that ran, and the values of all that it computed."""

    program: Program
    interpreter: Interpreter
    values: Mapping[SSAValue, Any]

    def ops(self) -> Iterator[Operation]:
        """Ops of the entry function with operands and results, that can be run alone."""
        for op in self.program.block.ops:
            if op.operands and op.results and not captures(op) and not isinstance(op, HIDDEN):
                yield op

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.interpreter.sizes

    def maps(self, op: Operation) -> Iterator[tuple[int, int, IndexingMap]]:
        """(result, operand, map) of an op, of maps that are not too large."""
        for i, row in enumerate(operand_maps(op)):
            for k, m in enumerate(row):
                if m is not None and small(m, self.sizes):
                    yield i, k, m


def small(m: IndexingMap, sizes: Mapping[str, int]) -> bool:
    unbound = m.variables | frozenset[str]().union(*map(dims.symbols_of, (*m.domain, *m.shape, *m.ranges)))
    if any(name not in sizes for name in unbound if not name.startswith("$")):
        return False
    domain, shape, ranges = (prod(dims.evaluate(s, sizes) for s in part) for part in (m.domain, m.shape, m.ranges))
    return domain * max(shape, ranges) <= MOST


def ran(program: Program, seed: int) -> Ran | None:
    """Run a program on made inputs. None where it has no meaning for them."""
    values: dict[SSAValue, Any] = {}

    def observe(op: Operation, results: Sequence[Any]) -> None:
        values.update(zip(op.results, results, strict=True))

    interpreter = Interpreter(program, observer=observe, max_steps=5000)
    try:
        inputs = inputs_for(program, seed)
        values.update(zip(program.block.args, inputs, strict=True))
        interpreter.run(inputs)
    except (InputError, InvalidModelError, UnsupportedError, KeyError):
        # Samples may have element types and inputs that no program can be run with.
        return None
    return Ran(program, interpreter, values)


def other_value(value: SSAValue, old: Array, choices: Seeded) -> Array | None:
    """A value of other bits than an element has, or None if none was found."""
    for _ in range(8):
        for new in value_for(dtype_text(value.type), (4,), choices):
            if new.tobytes() != old.tobytes():
                return new
    return None


def changed(before: Array, after: Array) -> Array:
    """Where two arrays have other bits."""
    if before.size == 0:
        return np.zeros(before.shape, np.bool_)
    raw = [
        np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, -1)
        for x in (np.atleast_1d(before), np.atleast_1d(after))
    ]
    return (raw[0] != raw[1]).any(axis=-1).reshape(before.shape)


def check_op(case: Ran, op: Operation, choices: Seeded, elements: int) -> int:
    """Change elements of operands one by one, and look at what changes; how many were changed."""
    args = [case.values[v] for v in op.operands]
    rows = operand_maps(op)
    count = 0
    for k, value in enumerate(op.operands):
        if not is_tensor(value.type) or not args[k].size or k >= SIZED.get(type(op), len(args)):
            continue
        wanted = [row[k] for row in rows]
        if any(m is not None and not small(m, case.sizes) for m in wanted):
            continue
        read = [None if m is None else relation(m, case.sizes) for m in wanted]
        for _ in range(elements):
            at = tuple(choices.integer(0, n - 1) for n in args[k].shape)
            new = other_value(value, args[k][at], choices)
            if new is None:
                continue
            operand = np.array(args[k])
            operand[at] = new
            try:
                after = case.interpreter.run_op(op, [*args[:k], operand, *args[k + 1 :]])
            except GcompError:
                continue
            count += 1
            for i, (result, table) in enumerate(zip(op.results, read, strict=True)):
                if not is_tensor(result.type):
                    continue
                moved = changed(case.values[result], after[i])
                reads = np.zeros(moved.shape, np.bool_) if table is None else table[(..., *at)]
                assert not (moved & ~reads).any(), f"{op}\noperand {k} at {at}, result {i}: {wanted[i]}"
                if isinstance(op, MOVING) and wanted[i] is not None and wanted[i].exact:
                    assert (moved == reads).all(), f"{op}\noperand {k} at {at} moves to {moved.nonzero()}: {wanted[i]}"
    return count


UNFIT = ("stablehlo.rng", "stablehlo.rng 2", "chlo.bessel_i1e 2")
"""Samples whose results are drawn, or whose element type has no function. Loops of samples need not end."""
SAMPLES = {name: text for name, text in samples().items() if name not in UNFIT and "while" not in name}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_reads_no_more_than_its_maps_say(name: str) -> None:
    program = Program.parse(SAMPLES[name])
    case = ran(program, 1)
    for seed in range(2, 8):
        case = case or ran(program, seed)
    if case is not None:
        for op in case.ops():
            check_op(case, op, Seeded(5), 12)


@pytest.mark.parametrize("seed", range(80))
def test_an_op_reads_no_more_than_its_maps_say(seed: int) -> None:
    case = ran(seeded_program(seed), seed)
    for op in case.ops() if case is not None else ():
        check_op(case, op, Seeded(seed), 3)


@pytest.mark.parametrize("name", [n for n in SAMPLES if any(k in n for k in (".dot", "convolution"))])
def test_a_sample_of_a_contraction_is_the_sum_over_its_maps(name: str) -> None:
    program = Program.parse(SAMPLES[name])
    check_contractions(Interpreter(program), program, 1)


@pytest.mark.parametrize("seed", range(80))
def test_a_contraction_is_the_sum_over_its_maps(seed: int) -> None:
    program = seeded_program(seed)
    if (case := ran(program, seed)) is not None:
        check_contractions(case.interpreter, program, seed)


def check_contractions(interpreter: Interpreter, program: Program, seed: int) -> None:
    """The operands' range variables are the same: products of what is read at equal values, summed, are the result."""
    choices = Seeded(seed)
    for op in program.block.ops:
        if not isinstance(op, hlo.DotGeneralOp | hlo.DotOp | hlo.ConvolutionOp):
            continue
        if dtype_text(op.results[0].type) not in ("f32", "f64", "i32", "i64"):
            continue
        pair = [m for m in operand_maps(op)[0] if m is not None]
        if any(prod(dims.evaluate(s, interpreter.sizes) for s in m.domain + m.ranges) > MOST for m in pair):
            continue
        values = [
            value_for(dtype_text(v.type), interpreter.shape(v), choices, "whole").astype(np.float64)
            for v in op.operands
        ]
        (result,) = interpreter.run_op(
            op, [x.astype(interpreter.dtype(v)) for x, v in zip(values, op.operands, strict=True)]
        )
        total = np.array(1.0)
        for x, m in zip(values, pair, strict=True):
            inside, indices = accesses(m, interpreter.sizes, [np.arange(n) for n in result.shape])
            if not inside.any():
                # What reads nothing is written without range variables.
                total = np.zeros(result.shape)
                break
            total = total * np.where(inside, x[tuple(np.where(inside, i, 0) for i in indices)], 0)
        ranges = tuple(range(result.ndim, total.ndim))
        assert (total.sum(axis=ranges).astype(result.dtype) == result).all(), f"{op}\n{[*map(str, pair)]}"


def product_of(outer: Array, inner: Array, rank: int) -> Array:
    """The relation through a tensor of a rank between two others."""
    domain, shape = outer.shape[: outer.ndim - rank], inner.shape[rank:]
    middle = prod(inner.shape[:rank])
    left, right = outer.reshape(prod(domain), middle), inner.reshape(middle, prod(shape))
    both = left.astype(np.float32) @ right.astype(np.float32)
    return (both > 0).reshape((*domain, *shape))


@pytest.mark.parametrize("seed", range(80))
def test_composed_maps_are_products_of_relations(seed: int) -> None:
    case = ran(seeded_program(seed), seed)
    for op in case.ops() if case is not None else ():
        for _, k, m in case.maps(op):
            check_chain(case, m, op.operands[k], 3)


def check_chain(case: Ran, m: IndexingMap, value: SSAValue, depth: int) -> None:
    """Follow what a map reads to what that reads; simplification and composition must keep the relation."""
    table = relation(m, case.sizes)
    simple = simplify(m, case.program.ranges)
    assert (relation(simple, case.sizes) == table).all(), f"{m}\n{simple}"
    check_numbers(case, simple, table)
    if depth == 0 or not isinstance(value, OpResult) or type(value.op) not in MAPS:
        return
    for k, inner in enumerate(operand_maps(value.op)[value.index]):
        if inner is None or not small(inner, case.sizes) or not small(both := compose(simple, inner), case.sizes):
            continue
        expected = product_of(table, relation(inner, case.sizes), len(inner.domain))
        assert (relation(both, case.sizes) == expected).all(), f"{simple}\n{inner}\n{both}"
        check_chain(case, both, value.op.operands[k], depth - 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_program_reads_no_more_than_the_maps_of_its_paths_say(seed: int) -> None:
    """Through calls, composites, tuples, and the values that regions take from around them."""
    program = seeded_program(seed)
    if (case := ran(program, seed)) is None or any(isinstance(op, HIDDEN) for op in program.ops()):
        return
    choices, inputs = Seeded(seed), [case.values[arg] for arg in program.block.args]
    before = [case.values[v] for v in program.returned.operands]
    paths = [reads(v, program.block.args, program.ranges) for v in program.returned.operands]
    for k, arg in enumerate(program.block.args):
        if not inputs[k].size or any(not small(m, case.sizes) for found in paths for m in found.get(arg, ())):
            continue
        for _ in range(2):
            at = tuple(choices.integer(0, n - 1) for n in inputs[k].shape)
            if (new := other_value(arg, inputs[k][at], choices)) is None:
                continue
            changed_input = np.array(inputs[k])
            changed_input[at] = new
            try:
                after = Interpreter(program).run([*inputs[:k], changed_input, *inputs[k + 1 :]])
            except GcompError:
                continue
            for old, result, found in zip(before, after, paths, strict=True):
                read = np.zeros(old.shape, np.bool_)
                for m in found.get(arg, ()):
                    read |= relation(m, case.sizes)[(..., *at)]
                assert not (changed(old, result) & ~read).any(), f"input {k} at {at}: {[*map(str, found.get(arg, ()))]}"


N, M = dims.symbol("n"), dims.symbol("m")
RANGES = dims.Ranges({"n": dims.Range(1, 6), "m": dims.Range(0, 8, 2)})


def random_size(choices: Choices, leaves: Sequence[dims.Size], depth: int) -> dims.Size:
    """A formula; what divides is a size that may be 0 only where m is."""
    if depth == 0 or choices.flag(0.2):
        return choices.chosen((*leaves, choices.integer(-3, 7)))
    x, y = (random_size(choices, leaves, depth - 1) for _ in range(2))
    divisor = choices.chosen((2, 3, 4, 6, N, 2 * N, M))
    made = (
        x + y,
        x - y,
        divisor * x,
        dims.floordiv(x, divisor),
        dims.mod(x, divisor),
        dims.dmin(x, y),
        dims.dmax(x, y),
    )
    return choices.chosen((*made, divisor * x + y, dims.floordiv(divisor * x + y, divisor)))


@settings(max_examples=120, deadline=None)
@given(st.randoms(use_true_random=False))
def test_simplification_keeps_what_a_map_reads(random: Random) -> None:
    choices = Seeded(random.randrange(1 << 30))
    extents = [choices.chosen((1, 2, 3, 4, N, M, N * 2, M + 1)) for _ in range(choices.integer(1, 4))]
    split = choices.integer(0, len(extents))
    leaves = [*[d(i) for i in range(split)], *[r(j) for j in range(len(extents) - split)], N, M]
    conditions = [
        Condition(random_size(choices, leaves, 1), choices.integer(-2, 3), choices.chosen((2, 5, N, N + M)))
        for _ in range(choices.integer(0, 2))
    ]
    indices = tuple(random_size(choices, leaves, 3) for _ in range(2))
    m = IndexingMap(tuple(extents[:split]), (N, M), indices, tuple(extents[split:]), tuple(conditions))
    simple = simplify(m, RANGES)
    for n, k in ((1, 0), (1, 2), (2, 2), (3, 4), (6, 8)):
        known = {"n": n, "m": k}
        domain = [dims.evaluate(size, known) for size in m.domain]
        if k == 0 and any("m" in dims.symbols_of(size) for size in (*m.indices, *(c.expr for c in m.conditions))):
            continue
        for _ in range(3 if all(domain) else 0):
            point = [choices.integer(0, size - 1) for size in domain]
            assert evaluate(m, point, known) == evaluate(simple, point, known), f"{m}\n{simple}\n{known} {point}"


def check_numbers(case: Ran, m: IndexingMap, table: Array) -> None:
    """Counts of elements are right where they say that they are exact, and bounds otherwise; so is the rest."""
    read = int(table.any(axis=tuple(range(len(m.domain)))).sum())
    empty = any(dims.evaluate(size, case.sizes) == 0 for size in (*m.domain, *m.ranges))
    for sizes in (None, case.sizes):
        found = touched_elements(m, sizes, case.program.ranges)
        count = dims.evaluate(found.elements, case.sizes)
        assert read == count if found.exact and not empty else read <= count, f"{m}\n{found}, not {read}"
    inside, indices = accesses(m, case.sizes, [np.arange(dims.evaluate(size, case.sizes)) for size in m.domain])
    if is_injective(m, case.program.ranges):
        assert inside.sum() == read, str(m)
    if (places := strides(m)) is not None and inside.size and indices:
        shape = [dims.evaluate(size, case.sizes) for size in m.shape]
        flat = np.zeros(inside.shape, np.int64)
        for index, size in zip(indices, shape, strict=True):
            flat = flat * size + index
        distances = [dims.evaluate(step, case.sizes) for step in (*places.domain, *places.ranges)]
        ramp = sum(
            (step * np.arange(n).reshape([-1 if k == axis else 1 for k in range(inside.ndim)])
             for axis, (step, n) in enumerate(zip(distances, inside.shape, strict=True))),
            start=np.array(dims.evaluate(places.offset, case.sizes)),
        )  # fmt: skip
        assert (flat == ramp).all(), f"{m}\n{places}"
