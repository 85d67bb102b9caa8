"""Branches and loops: what they carry is found as a fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Block, Region

from gcomp.errors import InternalError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import is_tensor
from gcomp.padding.sweep import Padded, Sweep, same
from gcomp.padding.table import pads


def _join(sweep: Sweep, a: Padded, b: Padded) -> Padded:
    """What holds of both: `a`, with a plain layout where they differ, and its fill where that is the other's."""
    layout = a.layout if a.layout == b.layout or not is_tensor(a.value.type) else sweep.plain(a.value)
    agreed = a.fill is not None and b.fill is not None and same(a.fill, b.fill) and a.layout == b.layout
    return Padded(a.value, layout, a.fill if agreed else None)


def _state(values: Sequence[Padded]) -> list[object]:
    return [(x.layout, None if x.fill is None else x.fill.tobytes()) for x in values]


def _returning(sweep: Sweep, block: Block, values: Sequence[Padded], wanted: Sequence[Padded]) -> None:
    """End a region: values whose layout is not what is wanted are moved into the plain one, which then is."""
    sweep.lengths.enter()
    with sweep.b.inside(block):
        moved = [x if x.layout == w.layout else sweep.compact(x) for x, w in zip(values, wanted, strict=True)]
        sweep.b.insert(hlo.ReturnOp.of(*(x.value for x in moved)))
    sweep.lengths.leave()


@pads("control", hlo.IfOp, hlo.CaseOp)
def branches(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Each branch by itself; results as all of them agree."""
    blocks = [Block() for _ in op.regions]
    found = [sweep.region(region.block, [], block) for region, block in zip(op.regions, blocks, strict=True)]
    wanted = list(found[0])
    for others in found[1:]:
        wanted = [_join(sweep, a, b) for a, b in zip(wanted, others, strict=True)]
    for block, values in zip(blocks, found, strict=True):
        _returning(sweep, block, values, wanted)
    kind = hlo.IfOp if isinstance(op, hlo.IfOp) else hlo.CaseOp
    made = sweep.b.emit_all(kind, operands[0].value, regions=[Region(block) for block in blocks])
    return [Padded(v, w.layout, w.fill) for v, w in zip(made, wanted, strict=True)]


@pads("control", hlo.WhileOp)
def loop(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """What is carried has a layout that the body keeps: the first one, or the plain one."""
    carried = [Padded(x.value, x.layout, x.fill) for x in operands]
    types = [x.value.type for x in carried]
    # A layout becomes plain once, and a fill unknown once.
    for _ in range(2 * len(carried) + 2):
        body = Block(arg_types=types)
        arguments = [Padded(a, x.layout, x.fill) for a, x in zip(body.args, carried, strict=True)]
        results = sweep.region(op.body.block, arguments, body)
        after = [_join(sweep, x, r) for x, r in zip(carried, results, strict=True)]
        if _state(after) == _state(carried):
            break
        carried = after
        body.erase(safe_erase=False)
    else:
        raise InternalError("what a loop carries has no fixed point", why="layouts change in every round")
    _returning(sweep, body, results, carried)
    cond = Block(arg_types=types)
    arguments = [Padded(a, x.layout, x.fill) for a, x in zip(cond.args, carried, strict=True)]
    tested = sweep.region(op.cond.block, arguments, cond)
    _returning(sweep, cond, tested, tested)
    first = [x if x.layout == c.layout else sweep.compact(x) for x, c in zip(operands, carried, strict=True)]
    made = sweep.b.emit_all(hlo.WhileOp, *(x.value for x in first), types=types, regions=[Region(cond), Region(body)])
    return [Padded(v, c.layout, c.fill) for v, c in zip(made, carried, strict=True)]
