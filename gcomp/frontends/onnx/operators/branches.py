"""If: one branch alone where the condition is known, else both as regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir
from xdsl.ir import Block, Region, SSAValue

from gcomp.dims import Constraint, Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import known_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.containers import AnyValue, leaves, rebuilt_all, structure_of, type_text
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.iteration import Mark, alike, decide_on_host, note_where, shape_text
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of


@imports("If")
def conditional(ctx: NodeContext) -> Results:
    """If: the results of one of two graphs, which take no inputs and see the names around them."""
    branches = [ctx.graph("then_branch"), ctx.graph("else_branch")]
    for graph in branches:
        if len(graph.outputs) != ctx.result_count:
            ctx.invalid(f"its graph `{graph.name}` has {len(graph.outputs)} outputs", f"the node {ctx.result_count}")
    condition = ctx.known_value(0)
    if condition is None:
        return _import_undecided(ctx, branches)
    if condition.size != 1:
        ctx.invalid(f"its condition has shape {condition.shape}", "one element is expected")
    return ctx.importer.run_body(ctx, branches[0] if condition.reshape(-1)[0] else branches[1], [])


def _import_undecided(ctx: NodeContext, graphs: Sequence[onnx_ir.Graph]) -> Results:
    b = ctx.b
    predicate = b.reshape(ctx[0], ())
    mark = Mark.of(ctx)
    blocks, results, noted = (Block(), Block()), list[list[AnyValue]](), list[list[Constraint]]()
    for block, graph in zip(blocks, graphs, strict=True):
        with b.inside(block):
            results.append(ctx.importer.run_body(ctx, graph, []))
        noted.append(mark.take(ctx))
    # Results that nobody reads need not be alike.
    then, other = ([v for i, v in enumerate(values) if ctx.wants(i)] for values in results)
    if _ranks(then) != _ranks(other) and (sizes := _compared_sizes(ctx, predicate)) is not None:
        mark.undo(ctx)
        ctx.require("eq", *sizes)
        return ctx.importer.run_body(ctx, graphs[0], [])
    for a, c in zip(then, other, strict=True):
        if type_text(a) != type_text(c):
            ctx.invalid(f"its branches give {type_text(a)} and {type_text(c)}", "they must give the same types")
        if structure_of(a) != structure_of(c):
            _differ(ctx, "sequences of different lengths, or an optional with and without an element")
    first, second = (_read(ctx, block, values) for block, values in zip(blocks, (then, other), strict=True))
    if any(noted) or not _alike(ctx, first, second):
        if b.point.block is b.program.block:
            predicate, taken = decide_on_host(ctx, predicate)
            for constraints, runs in zip(noted, (taken, 1 - taken), strict=True):
                note_where(ctx, runs, constraints)
            first, second = _resize_results(ctx, blocks, (first, second), taken)
        else:
            # No host step is possible here, so that nobody knows before which branch it will be.
            b.constraints += [constraint for found in noted for constraint in found]
    with b.inside(blocks[1]):
        for i, (x, like) in enumerate(zip(second, first, strict=True)):
            same = alike(ctx, x, like)
            second[i] = same if same is not None else _differ(ctx, f"shapes {shape_text(like)} and {shape_text(x)}")
        b.insert(hlo.ReturnOp.of(*second))
    with b.inside(blocks[0]):
        b.insert(hlo.ReturnOp.of(*first))
    chosen = b.emit_all(hlo.IfOp, predicate, regions=[Region(block) for block in blocks])
    values = iter(rebuilt_all(then, [Value.of(v) for v in chosen]))
    return [next(values) if ctx.wants(i) else None for i in range(ctx.result_count)]


def _alike(ctx: NodeContext, first: Sequence[SSAValue], second: Sequence[SSAValue]) -> bool:
    """Whether two lists of tensors are known to have the same shapes."""
    pairs = zip(first, second, strict=True)
    return all(ctx.ranges.equal(a, c) for x, y in pairs for a, c in zip(shape_of(x), shape_of(y), strict=False))


def _resize_results(
    ctx: NodeContext, blocks: Sequence[Block], results: Sequence[Sequence[SSAValue]], taken: Dim
) -> list[list[SSAValue]]:
    """The results of both branches, each of the size that the branch that is taken gives."""
    found: list[list[SSAValue]] = [[], []]
    for pair in zip(*results, strict=True):
        shapes = [shape_of(x) for x in pair]
        if len(shapes[0]) != len(shapes[1]):
            _differ(ctx, f"shapes {shape_text(pair[0])} and {shape_text(pair[1])}")
        shape = [a if a == c else taken * a + (1 - taken) * c for a, c in zip(*shapes, strict=True)]
        for block, x, values in zip(blocks, pair, found, strict=True):
            with ctx.b.inside(block):
                values.append(ctx.b.reshape(x, shape))
    return found


def _ranks(values: Sequence[AnyValue]) -> list[int]:
    return [len(leaf.shape) for value in values for leaf in leaves(value)]


def _compared_sizes(ctx: NodeContext, predicate: SSAValue) -> tuple[Size, Size] | None:
    """The two sizes that a condition compares for equality, if it is one.

    TorchScript writes `squeeze` so: if the dim is 1 it is removed, else the tensor stays as it is. No rank fits both,
    and what follows fits the first; so the program is one for sizes that are equal, which every call checks.
    """
    owner = predicate.owner
    while isinstance(owner, hlo.ReshapeOp | hlo.ConvertOp):
        owner = owner.operands[0].owner
    if not isinstance(owner, hlo.CompareOp) or owner.value("comparison_direction") != "EQ":
        return None
    found = [known_sizes(ctx, operand) for operand in owner.operands]
    if any(len(sizes) != 1 or sizes[0] is None for sizes in found):
        return None
    return cast("tuple[Size, Size]", tuple(sizes[0] for sizes in found))


def _read(ctx: NodeContext, block: Block, values: Sequence[AnyValue]) -> list[SSAValue]:
    with ctx.b.inside(block):
        return [leaf.read(ctx.b) for value in values for leaf in leaves(value)]


def _differ(ctx: NodeContext, how: str) -> SSAValue:
    ctx.unsupported(
        f"its condition depends on the data, and its branches give {how}",
        fix="make the condition a constant or compute it from shapes; if it depends on shapes, bind them with dims=",
    )
