"""Sorts by comparators that contradict themselves, whose order only the reference decides.

StableHLO asks for a strict weak order. `<` on NaN is none, nor is `<=`: the reference gives the permutation of its own
merge sort then, and another algorithm gives another one (docs/guides/semantics.md). So it is with NaN that stands among
equal numbers only, which `<` does not tell from them: kernels put it last (docs/guides/gpu.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.reference.contract import bits_differ
from gcomp.reference.table import Scope, Value
from gcomp.reference.varied import PlainRow, VariedInterpreter

Array = np.ndarray[Any, Any]


class _Exchanged(VariedInterpreter):
    """An interpreter that has another element at each place of a sorted row on which the comparator contradicts itself.

    It is the row's first one that differs, or its last one: elements are settled where all are equal.
    """

    def __init__(self, program: Program, *, last: bool) -> None:
        self._last, self.met = last, False
        super().__init__(program)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if not isinstance(op, hlo.SortOp):
                return results
            return self._exchanged(op, [np.asarray(r) for r in results], scope)

        return run

    def _exchanged(self, op: hlo.SortOp, results: list[Array], scope: Scope) -> list[Array]:
        axis = int(op.value("dimension"))
        body = scope.body(op.comparator)
        odd = find_contradictions(results, axis, lambda *values: np.asarray(body(*values)[0]))
        if not odd.any():
            return results
        self.met = True
        return [np.where(np.expand_dims(odd, axis), self._others(r, axis), r) for r in results]

    def _others(self, row: Array, axis: int) -> Array:
        """For each element, one of its row with other bits; itself where there is none."""
        found = np.moveaxis(row, axis, -1)
        if found.size == 0:
            return row
        turned = found[..., ::-1] if self._last else found
        differs = bits_differ(*np.broadcast_arrays(found[..., :, None], turned[..., None, :]))
        other = np.take_along_axis(turned, np.argmax(differs, -1), -1)
        return np.moveaxis(np.where(differs.any(-1), other, found), -1, axis)


def find_contradictions(rows: Sequence[Array], axis: int, comparator: Callable[..., Array]) -> Array:
    """Which rows of sorted arrays show that the comparator is no strict weak order on their elements: without `axis`.

    Where it is one, elements that it does not tell apart stand together, and each comes before all of later groups. A
    row in which it takes NaN for a number's equal shows it, too: it would not, were there another number.
    """
    last = [np.moveaxis(r, axis, -1) for r in rows]
    if last[0].size == 0:
        return np.zeros(last[0].shape[:-1], np.bool_)
    before = _before(last, comparator)
    steps = np.diagonal(before, 1, -2, -1)
    group = np.concatenate([np.zeros((*steps.shape[:-1], 1), np.int64), np.cumsum(steps, -1)], -1)
    odd = before != (group[..., :, None] < group[..., None, :])
    for i, r in enumerate(last):
        nan = r != r
        alike = ~(before | np.swapaxes(before, -1, -2)) & (nan[..., :, None] != nan[..., None, :])
        for number in _ends(r.dtype) if alike.any() else ():
            told = _before([*last[:i], np.where(nan, number, r).astype(r.dtype), *last[i + 1 :]], comparator)
            odd |= alike & (told | np.swapaxes(told, -1, -2))
    return np.any(odd, axis=(-2, -1))


def _ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the greatest number of an element type: some have no infinity, and make NaN of it."""
    limits = cast(Any, ml_dtypes.finfo)(dtype)
    return float(limits.min), float(limits.max)


def _before(rows: Sequence[Array], comparator: Callable[..., Array]) -> Array:
    """What the comparator says of all pairs of a row: an element's row, and a column for each other."""
    shape = (*rows[0].shape, rows[0].shape[-1])
    pairs = [np.broadcast_to(side, shape) for r in rows for side in (r[..., :, None], r[..., None, :])]
    return np.asarray(comparator(*(p.ravel() for p in pairs)), np.bool_).reshape(shape)


def unordered_elements(program: Program, inputs: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
    """The outputs' elements that depend on how a sort resolves contradictions: masks of their shapes."""
    masks = [np.zeros(e.shape, np.bool_) for e in expected]
    if not any(isinstance(op, hlo.SortOp) for op in program.module.walk()):
        return masks
    for last in (False, True):
        interpreter = _Exchanged(program, last=last)
        outputs = interpreter.run(inputs)
        if not interpreter.met:
            break
        masks = [m | bits_differ(e, o) for m, e, o in zip(masks, expected, outputs, strict=True)]
    return masks
