"""Whether indexing maps say what ops read: an element of an operand changes no element of a result that does not read
it, products summed over the maps of a contraction are its result, and composed and simplified maps keep the relation.

The reference interpreter is the judge; a `Flaw` is raised for what is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
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
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.inputs import value_for

Array = np.ndarray[Any, Any]

_MOST = 1 << 14
"""How many (element, element) pairs of a map are looked at."""
_MOVING = (
    hlo.BroadcastInDimOp, hlo.ConcatenateOp, hlo.PadOp, hlo.ReshapeOp, hlo.ReverseOp, hlo.SliceOp, hlo.TransposeOp,
    hlo.OptimizationBarrierOp, hlo.BroadcastOp, hlo.DynamicReshapeOp, hlo.DynamicBroadcastInDimOp,
)  # fmt: skip
_SIZED: Mapping[type[Operation], int] = {
    hlo.DynamicPadOp: 2, hlo.DynamicGatherOp: 2, hlo.DynamicConvOp: 2, hlo.DynamicReshapeOp: 1,
    hlo.RealDynamicSliceOp: 1, hlo.DynamicBroadcastInDimOp: 1, hlo.DynamicIotaOp: 0,
}  # fmt: skip
"""Ops of which the operands from some position on are sizes that the types hold them to."""
_HIDDEN = (hlo.RngOp,)
"""Ops whose results depend on more than their operands."""
_MAX_STEPS = 5000


class Flaw(Exception):
    """What a map says that is not so."""


# ---- a program that ran ---------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """A program that ran, and the values of all that it computed."""

    program: Program
    interpreter: Interpreter
    values: Mapping[SSAValue, Any]

    def ops(self) -> Iterator[Operation]:
        """Ops of the entry function with operands and results, that can be run alone."""
        for op in self.program.block.ops:
            if op.operands and op.results and not captures(op) and not isinstance(op, _HIDDEN):
                yield op

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of its run."""
        return self.interpreter.sizes


def ran(program: Program, inputs: Sequence[Array]) -> Ran | None:
    """Run a program. None where it has no meaning for the inputs."""
    values: dict[SSAValue, Any] = dict(zip(program.block.args, inputs, strict=True))

    def observe(op: Operation, results: Sequence[Any]) -> None:
        values.update(zip(op.results, results, strict=True))

    interpreter = Interpreter(program, observer=observe, max_steps=_MAX_STEPS)
    try:
        interpreter.run(inputs)
    except (InputError, InvalidModelError, UnsupportedError, KeyError):
        # Samples may have element types and inputs that no program can be run with.
        return None
    return Ran(program, interpreter, values)


def _small(m: IndexingMap, sizes: Mapping[str, int]) -> bool:
    unbound = m.variables | frozenset[str]().union(*map(dims.symbols_of, (*m.domain, *m.shape, *m.ranges)))
    if any(name not in sizes for name in unbound if not name.startswith("$")):
        return False
    domain, shape, ranges = (prod(dims.evaluate(s, sizes) for s in part) for part in (m.domain, m.shape, m.ranges))
    return domain * max(shape, ranges) <= _MOST


def _other_value(value: SSAValue, old: Array, choices: Choices) -> Array | None:
    """A value of other bits than an element has, or None if none was found."""
    for _ in range(8):
        for new in value_for(dtype_text(value.type), (4,), choices):
            if new.tobytes() != old.tobytes():
                return new
    return None


def _changed_elements(before: Array, after: Array) -> Array:
    """Where two arrays have other bits."""
    if before.size == 0:
        return np.zeros(before.shape, np.bool_)
    raw = [
        np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, -1)
        for x in (np.atleast_1d(before), np.atleast_1d(after))
    ]
    return (raw[0] != raw[1]).any(axis=-1).reshape(before.shape)


# ---- what reads what ------------------------------------------------------------------------------------------------


def check_reads(case: Ran, op: Operation, choices: Choices, elements: int) -> int:
    """Change elements of operands one by one, and look at what changes; how many were changed."""
    args = [case.values[v] for v in op.operands]
    rows = operand_maps(op)
    count = 0
    for k, value in enumerate(op.operands):
        if not is_tensor(value.type) or not args[k].size or k >= _SIZED.get(type(op), len(args)):
            continue
        wanted = [row[k] for row in rows]
        if any(m is not None and not _small(m, case.sizes) for m in wanted):
            continue
        read = [None if m is None else relation(m, case.sizes) for m in wanted]
        for _ in range(elements):
            at = tuple(choices.integer(0, n - 1) for n in args[k].shape)
            new = _other_value(value, args[k][at], choices)
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
                moved = _changed_elements(case.values[result], after[i])
                said = np.zeros(moved.shape, np.bool_) if table is None else table[(..., *at)]
                if (moved & ~said).any():
                    raise Flaw(f"{op}\noperand {k} at {at} changes result {i}: {wanted[i]}")
                m = wanted[i]
                if isinstance(op, _MOVING) and m is not None and m.exact and not (moved == said).all():
                    raise Flaw(f"{op}\noperand {k} at {at} moves to {np.argwhere(moved).tolist()}: {m}")
    return count


def check_paths(case: Ran, choices: Choices, elements: int = 2) -> None:
    """Change elements of inputs one by one: the outputs change where the maps of their paths say so, through calls,
    composites, tuples, and the values that regions take from around them."""
    program = case.program
    if any(isinstance(op, _HIDDEN) for op in program.ops()):
        return
    inputs = [case.values[arg] for arg in program.block.args]
    before = [case.values[v] for v in program.returned.operands]
    paths = [reads(v, program.block.args, program.ranges) for v in program.returned.operands]
    for k, arg in enumerate(program.block.args):
        if not inputs[k].size or any(not _small(m, case.sizes) for found in paths for m in found.get(arg, ())):
            continue
        for _ in range(elements):
            at = tuple(choices.integer(0, n - 1) for n in inputs[k].shape)
            if (new := _other_value(arg, inputs[k][at], choices)) is None:
                continue
            changed_input = np.array(inputs[k])
            changed_input[at] = new
            try:
                after = Interpreter(program, max_steps=_MAX_STEPS).run([*inputs[:k], changed_input, *inputs[k + 1 :]])
            except GcompError:
                continue
            for old, result, found in zip(before, after, paths, strict=True):
                read = np.zeros(old.shape, np.bool_)
                for m in found.get(arg, ()):
                    read |= relation(m, case.sizes)[(..., *at)]
                said = [*map(str, found.get(arg, ()))]
                if (_changed_elements(old, result) & ~read).any():
                    raise Flaw(f"input {k} at {at} changes more than {said}")


def check_contraction(interpreter: Interpreter, op: Operation, choices: Choices) -> None:
    """The operands' range variables are the same: products of what is read at equal values, summed, are the result."""
    if not isinstance(op, hlo.DotGeneralOp | hlo.DotOp | hlo.ConvolutionOp):
        return
    pair = [m for m in operand_maps(op)[0] if m is not None]
    if dtype_text(op.results[0].type) not in ("f32", "f64", "i32", "i64") or any(
        prod(dims.evaluate(s, interpreter.sizes) for s in m.domain + m.ranges) > _MOST for m in pair
    ):
        return
    values = [
        value_for(dtype_text(v.type), interpreter.shape(v), choices, "whole").astype(np.float64) for v in op.operands
    ]
    (result,) = interpreter.run_op(
        op, [x.astype(interpreter.dtype(v)) for x, v in zip(values, op.operands, strict=True)]
    )
    total = np.array(1.0)
    for x, m in zip(values, pair, strict=True):
        points: list[Array] = [np.arange(int(n)) for n in result.shape]
        inside, indices = accesses(m, interpreter.sizes, points)
        if not inside.any():
            # What reads nothing is written without range variables.
            total = np.zeros(result.shape)
            break
        total = total * np.where(inside, x[tuple(np.where(inside, i, 0) for i in indices)], 0)
    ranges = tuple(range(result.ndim, total.ndim))
    if not (total.sum(axis=ranges).astype(result.dtype) == result).all():
        raise Flaw(f"{op}\nis no sum over {[*map(str, pair)]}")


# ---- what is made of maps -------------------------------------------------------------------------------------------


def check_chains(case: Ran, op: Operation, depth: int = 3) -> None:
    """Follow what an op's maps read to what that reads; simplification and composition must keep the relation."""
    for row in operand_maps(op):
        for k, m in enumerate(row):
            if m is not None and _small(m, case.sizes):
                _check_chain(case, m, op.operands[k], depth)


def _check_chain(case: Ran, m: IndexingMap, value: SSAValue, depth: int) -> None:
    table = relation(m, case.sizes)
    simple = simplify(m, case.program.ranges)
    if not (relation(simple, case.sizes) == table).all():
        raise Flaw(f"{m}\nis simplified to {simple}")
    _check_numbers(case, simple, table)
    if depth == 0 or not isinstance(value, OpResult) or type(value.op) not in MAPS:
        return
    for k, inner in enumerate(operand_maps(value.op)[value.index]):
        if inner is None or not _small(inner, case.sizes) or not _small(both := compose(simple, inner), case.sizes):
            continue
        expected = _product(table, relation(inner, case.sizes), len(inner.domain))
        if not (relation(both, case.sizes) == expected).all():
            raise Flaw(f"{simple}\nof {inner}\nis not {both}")
        _check_chain(case, both, value.op.operands[k], depth - 1)


def _product(outer: Array, inner: Array, rank: int) -> Array:
    """The relation through a tensor of a rank between two others."""
    domain, shape = outer.shape[: outer.ndim - rank], inner.shape[rank:]
    middle = prod(inner.shape[:rank])
    left, right = outer.reshape(prod(domain), middle), inner.reshape(middle, prod(shape))
    both = left.astype(np.float32) @ right.astype(np.float32)
    return (both > 0).reshape((*domain, *shape))


def _check_numbers(case: Ran, m: IndexingMap, table: Array) -> None:
    """Counts of elements are right where they say that they are exact, and bounds otherwise; so is the rest."""
    read = int(table.any(axis=tuple(range(len(m.domain)))).sum())
    empty = any(dims.evaluate(size, case.sizes) == 0 for size in (*m.domain, *m.ranges))
    for sizes in (None, case.sizes):
        found = touched_elements(m, sizes, case.program.ranges)
        count = dims.evaluate(found.elements, case.sizes)
        if not (read == count if found.exact and not empty else read <= count):
            raise Flaw(f"{m}\n{found}, not {read}")
    points: list[Array] = [np.arange(dims.evaluate(size, case.sizes)) for size in m.domain]
    inside, indices = accesses(m, case.sizes, points)
    if is_injective(m, case.program.ranges) and inside.sum() != read:
        raise Flaw(f"{m}\nis not injective")
    if (places := strides(m)) is not None and inside.size and indices:
        shape = [dims.evaluate(size, case.sizes) for size in m.shape]
        flat: Any = np.zeros(inside.shape, np.int64)
        for index, size in zip(indices, shape, strict=True):
            flat = flat * size + index
        distances = [dims.evaluate(step, case.sizes) for step in (*places.domain, *places.ranges)]
        ramp: Any = np.full(inside.shape, dims.evaluate(places.offset, case.sizes))
        for axis, (step, n) in enumerate(zip(distances, inside.shape, strict=True)):
            ramp += step * np.arange(int(n)).reshape([-1 if k == axis else 1 for k in range(inside.ndim)])
        if not (flat == ramp).all():
            raise Flaw(f"{m}\nhas not {places}")


# ---- maps from nothing ----------------------------------------------------------------------------------------------

_N, _M = dims.symbol("n"), dims.symbol("m")
_RANGES = dims.Ranges({"n": dims.Range(1, 6), "m": dims.Range(0, 8, 2)})


def check_simplification(choices: Choices) -> None:
    """A map made by choices, simplified, reads the same at some points and sizes."""
    extents = [choices.chosen((1, 2, 3, 4, _N, _M, _N * 2, _M + 1)) for _ in range(choices.integer(1, 4))]
    split = choices.integer(0, len(extents))
    leaves = [*[d(i) for i in range(split)], *[r(j) for j in range(len(extents) - split)], _N, _M]
    conditions = [
        Condition(_formula(choices, leaves, 1), choices.integer(-2, 3), choices.chosen((2, 5, _N, _N + _M)))
        for _ in range(choices.integer(0, 2))
    ]
    indices = tuple([_formula(choices, leaves, 3) for _ in range(2)])
    m = IndexingMap(tuple(extents[:split]), (_N, _M), indices, tuple(extents[split:]), tuple(conditions))
    simple = simplify(m, _RANGES)
    for n, k in ((1, 0), (1, 2), (2, 2), (3, 4), (6, 8)):
        known = {"n": n, "m": k}
        domain = [dims.evaluate(size, known) for size in m.domain]
        if k == 0 and any("m" in dims.symbols_of(size) for size in (*m.indices, *(c.expr for c in m.conditions))):
            continue
        for _ in range(3 if all(domain) else 0):
            point = [choices.integer(0, size - 1) for size in domain]
            same = evaluate(m, point, known) == evaluate(simple, point, known)
            if not same:
                raise Flaw(f"{m}\nis simplified to {simple}\nat {known} {point}")


def _formula(choices: Choices, leaves: Sequence[dims.Size], depth: int) -> dims.Size:
    """A formula; what divides is a size that may be 0 only where m is."""
    if depth == 0 or choices.flag(0.2):
        return choices.chosen((*leaves, choices.integer(-3, 7)))
    x, y = (_formula(choices, leaves, depth - 1) for _ in range(2))
    divisor = choices.chosen((2, 3, 4, 6, _N, 2 * _N, _M))
    made = (x + y, x - y, divisor * x, dims.floordiv(x, divisor), dims.mod(x, divisor), dims.dmin(x, y),
            dims.dmax(x, y))  # fmt: skip
    return choices.chosen((*made, divisor * x + y, dims.floordiv(divisor * x + y, divisor)))


__all__ = ["Flaw", "Ran", "check_chains", "check_contraction", "check_paths", "check_reads", "check_simplification",
           "ran"]  # fmt: skip
