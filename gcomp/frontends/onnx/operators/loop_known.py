"""Loops that compute on constants and shapes only, such as those that build a shape: they run at import."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Value, integers, objects
from gcomp.frontends.onnx.operators.iteration import Mark
from gcomp.frontends.onnx.operators.loop_form import LoopForm


def known_results(form: LoopForm, limit: int) -> Sequence[AnyValue] | None:
    """The results of a loop of at most `limit` iterations that carries known values; None where data come in.

    The body is imported into a block that is thrown away, so that only its known values stay.
    """
    ctx, mark, scratch = form.ctx, Mark.of(form.ctx), Block()
    carried = [i for i in range(len(form.initial)) if i not in form.constant]
    if not form.begins or not isinstance(form.trips, int) or form.trips > limit or not carried:
        return None
    found = None
    try:
        with ctx.b.inside(scratch):
            found = _run(form, form.trips, carried)
    except (InvalidModelError, UnsupportedError):
        pass  # found again when the body is imported for good
    finally:
        scratch.erase()
    if found is None:
        mark.undo(ctx)
    return found


def _run(form: LoopForm, trips: int, carried: Sequence[int]) -> list[AnyValue] | None:
    ctx, count = form.ctx, len(form.initial)
    states = list(form.initial)
    rows: list[list[Value]] = [[] for _ in range(form.scans)]
    for i in range(trips):
        if not _settle(ctx, states, carried):
            return None
        arguments = [form.iteration(i), Value.constant(np.asarray(True)), *states]
        results = ctx.importer.run_body(ctx, form.graph, arguments)
        goes_on = form.condition_of(results[0]).known
        if goes_on is None or not _settle(ctx, results, range(1 + count, len(results))):
            return None
        for made, row in zip(rows, results[1 + count :], strict=True):
            if isinstance(row, Value):
                made.append(row)
        for k in carried:
            if results[1 + k].element != states[k].element:
                return None
            states[k] = results[1 + k]
        if not np.all(goes_on):
            break
    stacked = [_stack(made) for made in rows]
    if not _settle(ctx, states, carried) or None in stacked:
        return None
    return [*states, *(row for row in stacked if row is not None)]


def _settle(ctx: NodeContext, values: list[AnyValue], places: Sequence[int]) -> bool:
    """Replace values by what is known of them, free of ops. False where one is not known, or is large."""
    for i in places:
        value = values[i]
        if not isinstance(value, Value) or ctx.evaluate(value) is None or not value.small:
            return False
        values[i] = Value(value.element, value.known, None, value.name) if value.ssa is not None else value
    return True


def _stack(rows: Sequence[Value]) -> Value | None:
    """Rows as one known value; None where their shapes differ or a number does not fit."""
    element = rows[0].element
    arrays = [row.known for row in rows if row.known is not None and row.element == element]
    if len(arrays) != len(rows) or len({a.shape for a in arrays}) != 1:
        return None
    if not any(a.dtype == object for a in arrays):
        return Value.constant(np.stack(arrays))
    array = integers(np.stack([objects(a) for a in arrays]), element)
    return None if array is None else Value(element, array, None)
