"""Loop: a while, or unrolled where what it carries changes its shape or structure.

A value that the body passes on as it is, is not carried. One that only grows by a Concat with something of the same
shape in each iteration is not carried either: the parts are rows like those of a scan output, and are joined to the
initial value at the end. Where rows are made and data decide how often the loop runs, it runs twice: first without the
rows, to count the iterations, which a host step turns into a size; then with room for so many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.containers import AnyValue, leaves, rebuilt_all, structure_of, type_text
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.iteration import (
    MOST_ROWS,
    Mark,
    Row,
    alike,
    decide_on_host,
    emit_where,
    emit_while,
    import_body,
    note_where,
    shape_text,
    tensors,
)
from gcomp.frontends.onnx.operators.loop_form import Growth, LoopForm
from gcomp.frontends.onnx.operators.loop_known import known_results
from gcomp.frontends.onnx.operators.movement import agree_dims
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, shape_of

UNROLL_LIMIT = 128
"""Loops whose carried values change their shapes are unrolled up to this many iterations."""


@imports("Loop")
def loop(ctx: NodeContext) -> Results:
    """Loop: body(iteration, condition, carried...) -> condition, carried..., rows of scan outputs."""
    form = LoopForm.of(ctx)
    if form.trips == 0 or form.begins is False:
        return [*form.initial, *_no_rows(form)]
    short = form.trips if isinstance(form.trips, int) and form.trips <= UNROLL_LIMIT and form.begins else 0
    if short == 1:
        return _unroll(form, short)
    if (known := known_results(form, UNROLL_LIMIT)) is not None:
        return known
    mark = Mark.of(ctx)
    try:
        body = _Body.of(form)
    except (InvalidModelError, UnsupportedError) as error:
        # Unrolled, each iteration has its own shapes, and what depends on the iteration is known.
        if not short:
            raise _not_unrolled(form, error) from None
        mark.undo(ctx)
        return _unroll(form, short)
    return _while(form, body, mark)


# ---- as a while ----


@dataclass
class _Body:
    """A body in a block that takes the iteration and the tensors of what is carried."""

    block: Block
    goes_on: SSAValue
    kept: list[int]
    """Which of the node's values are carried."""
    carried: list[SSAValue]
    """Their tensors before the first iteration."""
    after: list[SSAValue]
    """Their tensors after an iteration."""
    rows: list[Row]
    """What goes to the growing values and then to the scan outputs."""
    endless: bool
    """Whether the body never ends the loop."""

    @staticmethod
    def of(form: LoopForm) -> _Body:
        """Import the body. Raises UnsupportedError where what it carries changes."""
        ctx, b = form.ctx, form.ctx.b
        kept = [i for i in range(len(form.initial)) if i not in form.constant and i not in form.growing]
        values = [form.initial[i] for i in kept]
        carried = [leaf.read(b) for value in values for leaf in leaves(value)]

        def arguments(args: Sequence[SSAValue]) -> list[AnyValue]:
            states = list(form.initial)
            for i, value in zip(kept, rebuilt_all(values, [Value.of(a) for a in args[1:]]), strict=True):
                states[i] = value
            for i, growth in form.growing.items():
                states[i] = _nothing(ctx, states[i], growth)
            # Wherever the body runs the condition holds.
            return [form.iteration(args[0]), Value.constant(np.asarray(True)), *states]

        block, results = import_body(ctx, form.graph, [v.type for v in carried], arguments)
        try:
            condition = form.condition_of(results[0])
            with b.inside(block):
                goes_on = b.reshape(condition.read(b), ())
                after = _carry_on(ctx, values, [results[1 + i] for i in kept], carried)
                rows = [
                    Row(tensors(ctx, [results[1 + i]], "carried value")[0], growth.axis, growth.backward, joined=True)
                    for i, growth in form.growing.items()
                ]
                rows += [Row(v, 0) for v in form.rows_of(results)]
        except BaseException:
            block.erase()
            raise
        endless = condition.known is not None and bool(np.all(condition.known))
        return _Body(block, goes_on, kept, carried, after, rows, endless)

    def without_rows(self) -> _Body:
        """A copy that makes no rows."""
        region, twin, copies = Region(self.block), Region(), dict[SSAValue, SSAValue]()
        region.clone_into(twin, value_mapper=copies)
        region.detach_block(self.block)
        after = [copies.get(v, v) for v in self.after]
        return replace(
            self,
            block=twin.detach_block(twin.block),
            goes_on=copies.get(self.goes_on, self.goes_on),
            after=after,
            rows=[],
        )


def _nothing(ctx: NodeContext, value: AnyValue, growth: Growth) -> Value:
    """An empty part of a growing value: concatenated with it, what an iteration adds is itself."""
    x = next(leaves(value)).read(ctx.b)
    shape = [0 if i == growth.axis else size for i, size in enumerate(shape_of(x))]
    return Value.of(ctx.b.full(shape, 0, element_of(x)))


def _carry_on(
    ctx: NodeContext, before: Sequence[AnyValue], after: Sequence[AnyValue], carried: Sequence[SSAValue]
) -> list[SSAValue]:
    """The tensors of the carried values after an iteration, typed as before it."""
    _check_dtypes(ctx, before, after)
    if [structure_of(v) for v in after] != [structure_of(v) for v in before]:
        _changes(ctx, "the structure of a sequence or optional that it carries changes")
    results: list[SSAValue] = []
    for leaf, old in zip((leaf for value in after for leaf in leaves(value)), carried, strict=True):
        new = leaf.read(ctx.b)
        same = alike(ctx, new, old)
        results.append(
            _changes(ctx, f"the shape of a value that it carries goes from {shape_text(old)} to {shape_text(new)}")
            if same is None
            else same
        )
    return results


def _check_dtypes(ctx: NodeContext, before: Sequence[AnyValue], after: Sequence[AnyValue]) -> None:
    for old, new in zip(before, after, strict=True):
        if new.element != old.element:
            ctx.invalid(
                f"a carried value goes from {type_text(old)} to {type_text(new)}", "its dtype must stay the same"
            )


def _changes(ctx: NodeContext, what: str) -> SSAValue:
    ctx.unsupported(what)


def _not_unrolled(form: LoopForm, error: GcompError) -> GcompError:
    """The error of a body that cannot be imported for all iterations at once, with why that is tried."""
    if not isinstance(error, UnsupportedError):
        return error
    match form.trips:
        case None:
            why = "the trip count depends on the data" if form.ctx.has(0) else "there is no trip count"
        case Dim():
            why = f"the trip count is symbolic ({form.trips})"
        case _ if form.begins is None:
            why = "the condition depends on the data"
        case _:
            why = f"the trip count is {form.trips}"
    return UnsupportedError(
        error.what,
        where=error.where,
        why=f"{error.why}; the loop {form.ctx.where.rsplit(': ', 1)[-1]} is not unrolled, as {why}",
        fix=f"Make the trip count a constant of at most {UNROLL_LIMIT}, and the condition always true.",
    )


def _while(form: LoopForm, body: _Body, mark: Mark) -> Results:
    ctx, b = form.ctx, form.ctx.b
    always = form.begins and form.trips is not None and ctx.at_most(1, form.trips)
    noted = [] if always else mark.take(ctx)
    limit = None if not ctx.has(0) else b.reshape(ctx[0], ()) if form.trips is None else b.dim(form.trips)
    if body.endless and limit is None:
        ctx.invalid("it never ends", "it has no trip count, and its body's condition always holds")
    runs = _begins(form, limit) if noted else 1
    note_where(ctx, runs, noted)
    if body.rows:
        count = _count(form, body, limit, runs)
        rows, test = [(row, count) for row in body.rows], _below(form, b.dim(count))
        final = emit_where(
            ctx, runs, body.carried, lambda: emit_while(ctx, body.block, body.carried, body.after, test, rows)
        )
    else:
        final = emit_where(ctx, runs, body.carried, lambda: _conditional(form, body, limit))
    last = [Value.of(v) for v in final[1 : 1 + len(body.carried)]]
    tails = final[1 + len(body.carried) :]
    states = list(form.initial)
    for i, value in zip(body.kept, rebuilt_all([form.initial[i] for i in body.kept], last), strict=True):
        states[i] = value
    for (i, growth), tail in zip(form.growing.items(), tails, strict=False):
        parts = agree_dims(ctx, [next(leaves(states[i])).read(b), tail], growth.axis)
        states[i] = Value.of(b.concatenate(parts[::-1] if growth.backward else parts, growth.axis))
    return [*states, *tails[len(form.growing) :]]


def _begins(form: LoopForm, limit: SSAValue | None) -> Size:
    """Whether there is a first iteration, as 1 or 0: of the trip count, or what the host reads of the data."""
    ctx, b = form.ctx, form.ctx.b
    if form.begins and form.trips is not None:
        return dims.dmin(1, form.trips)
    if b.point.block is not b.program.block:  # No host step is possible here: nobody knows before.
        return 1
    start = b.constant(True) if form.begins else b.reshape(ctx[1], ())
    if limit is not None:
        start = b.emit(hlo.AndOp, start, b.compare(b.constant(0, "i64"), limit, "LT"))
    return decide_on_host(ctx, start)[1]


def _count(form: LoopForm, body: _Body, limit: SSAValue | None, runs: Size) -> Size:
    """How often the loop runs, as a size: of the trip count, or of a run without rows."""
    ctx, b = form.ctx, form.ctx.b
    if body.endless and form.begins and form.trips is not None:
        if isinstance(form.trips, int) and form.trips > MOST_ROWS:
            ctx.unsupported(f"it would give {form.trips} rows", fix="give it the trip count that it really has")
        return form.trips
    if body.endless:
        assert limit is not None
        count = b.maximum(limit, b.constant(0, "i64"))
        if not form.begins:
            count = b.select(b.reshape(ctx[1], ()), count, b.constant(0, "i64"))
    else:
        counted = body.without_rows()
        count = emit_where(ctx, runs, counted.carried, lambda: _conditional(form, counted, limit))[0]
    most = form.trips if form.trips is None or ctx.at_most(form.trips, MOST_ROWS) else None
    return data_dependent_sizes(ctx, count, "number of iterations", [most])[0]


def _conditional(form: LoopForm, body: _Body, limit: SSAValue | None) -> list[SSAValue]:
    """The while without rows: how often it ran, and the carried tensors. The body's block goes into it."""
    ctx, b = form.ctx, form.ctx.b
    if body.endless and form.begins:
        assert limit is not None
        return emit_while(ctx, body.block, body.carried, body.after, _below(form, limit))
    start = b.constant(True) if form.begins else b.reshape(ctx[1], ())
    body.block.insert_arg(start.type, 1)

    def test(args: Sequence[SSAValue]) -> SSAValue:
        return args[1] if limit is None else b.emit(hlo.AndOp, args[1], _below(form, limit)(args))

    count, _, *last = emit_while(ctx, body.block, [start, *body.carried], [body.goes_on, *body.after], test)
    return [count, *last]


def _below(form: LoopForm, limit: SSAValue) -> Callable[[Sequence[SSAValue]], SSAValue]:
    return lambda args: form.ctx.b.compare(args[0], limit, "LT")


# ---- unrolled ----


def _unroll(form: LoopForm, trips: int) -> Results:
    """The body once for each iteration; the condition must be known after each."""
    ctx, states = form.ctx, list(form.initial)
    rows: list[list[SSAValue]] = [[] for _ in range(form.scans)]
    for i in range(trips):
        arguments = [form.iteration(i), Value.constant(np.asarray(True)), *states]
        results = ctx.importer.run_body(ctx, form.graph, arguments)
        _check_dtypes(ctx, states, results[1 : 1 + len(states)])
        states = results[1 : 1 + len(states)]
        for made, row in zip(rows, form.rows_of(results), strict=True):
            made.append(row)
        goes_on = form.condition_of(results[0]).known
        if goes_on is None:
            ctx.data_dependent("condition")
        if not np.all(goes_on):
            break
    return [*states, *(_stack(ctx, made) for made in rows)]


def _stack(ctx: NodeContext, rows: Sequence[SSAValue]) -> SSAValue:
    slabs = [ctx.b.reshape(row, (1, *shape_of(row))) for row in rows]
    return ctx.b.concatenate(agree_dims(ctx, slabs, 0), 0)


def _no_rows(form: LoopForm) -> list[SSAValue]:
    """The scan outputs of a loop that never runs: without rows, of the types that the body would give."""
    ctx, b = form.ctx, form.ctx.b
    if not form.scans:
        return []
    types = [leaf.read(b).type for value in form.initial for leaf in leaves(value)]
    mark = Mark.of(ctx)

    def arguments(args: Sequence[SSAValue]) -> list[AnyValue]:
        states = rebuilt_all(form.initial, [Value.of(a) for a in args[1:]])
        return [form.iteration(args[0]), Value.constant(np.asarray(True)), *states]

    block, results = import_body(ctx, form.graph, types, arguments)
    with b.inside(block):
        kinds = [(shape_of(row), element_of(row)) for row in form.rows_of(results)]
    block.erase()
    mark.undo(ctx)
    return [b.full((0, *shape), 0, element) for shape, element in kinds]
