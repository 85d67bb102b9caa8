"""The ways to cut an op: each axis of the mesh cuts one factor of its rule, or none.

A strategy says what layouts it takes operands in, what layouts its results are in, and how long it takes: what the
busiest of arithmetic and memory takes, and what sums over factors that are cut have to send. Where parts of a sum are
added, all devices get the sum, or each a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.work import Nominal, flops_of
from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text, is_tensor, shape_of
from gcomp.ir.walking import captures
from gcomp.partitioning.rule import Kind, Mapped, ShardingRule
from gcomp.partitioning.search.layouts import WHOLE, Layout, Network, Sent, cut_of_layout, divides, pieces
from gcomp.partitioning.table import rule_of
from gcomp.records import record

_COMPUTING = frozenset({Role.CONTRACTION, Role.CONVOLUTION})
_FREE = frozenset({Role.VIEW, Role.GENERATOR, Role.SOURCE})


@record
class Strategy:
    """One way to cut an op: layouts of its operands and results, seconds of computing, and what is sent."""

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    computing: float
    sent: tuple[Sent, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.computing + sum(s.seconds for s in self.sent)


def strategies_of(op: Operation, network: Network, nominal: Nominal) -> list[Strategy]:
    """All ways to cut an op, the uncut one first; those that another beats in all are left out. After its operands, an
    op takes what its regions use from around it, whole."""
    around = ((WHOLE,) * len(network.mesh.axes),) * len(captures(op))
    found = _strategies(op, network, nominal)
    return [replace(s, operands=(*s.operands, *around)) for s in found] if around else found


def _strategies(op: Operation, network: Network, nominal: Nominal) -> list[Strategy]:
    rule = rule_of(op)
    whole = (WHOLE,) * len(network.mesh.axes)
    work = _work(op, network, nominal)
    if rule is None or not all(isinstance(s, int) for v in (*op.operands, *op.results) for s in _shape(v)):
        return [Strategy((whole,) * len(op.operands), (whole,) * len(op.results), work)]
    found: dict[tuple[tuple[Layout, ...], tuple[Layout, ...]], Strategy] = {}
    usable = [i for i in range(len(rule.factors)) if rule.is_cuttable(i)]
    for chosen in product((WHOLE, *usable), repeat=len(whole)):
        for strategy in _cut(op, rule, chosen, network, work, nominal):
            key = strategy.operands, strategy.results
            if key not in found or strategy.seconds < found[key].seconds:
                found[key] = strategy
    return [*found.values()]


def _cut(
    op: Operation, rule: ShardingRule, chosen: Sequence[int], network: Network, work: float, nominal: Nominal
) -> Iterator[Strategy]:
    """An op with each axis on a factor: one strategy for each way to leave the sums."""
    mesh = network.mesh
    for i, factor in enumerate(rule.factors):
        count = prod(a.size for a, f in zip(mesh.axes, chosen, strict=True) if f == i)
        if isinstance(factor.size, int) and factor.size % count:
            return
    operands = [_layout(dims, chosen) for dims in rule.operands]
    results = [_layout(dims, chosen) for dims in rule.results]
    values = zip((*op.operands, *op.results), (*operands, *results), strict=True)
    if not all(divides(_sizes(v), layout, mesh) for v, layout in values):
        return
    computing = work / prod(a.size for a, f in zip(mesh.axes, chosen, strict=True) if f != WHOLE)
    summed = [k for k, f in enumerate(chosen) if f != WHOLE and rule.factors[f].kind is Kind.REDUCTION]
    if not summed:
        yield Strategy(tuple(operands), tuple(results), computing)
        return
    ranks = [len(shape_of(v)) for v in op.results]
    for kept in product(*[(WHOLE, *range(min(ranks)))] * len(summed)):
        own = [tuple(kept[summed.index(k)] if k in summed else d for k, d in enumerate(layout)) for layout in results]
        if all(divides(_sizes(v), layout, mesh) for v, layout in zip(op.results, own, strict=True)):
            yield Strategy(tuple(operands), tuple(own), computing, _sums(op, results, summed, kept, network, nominal))


def _sums(
    op: Operation, partial: Sequence[Layout], summed: Sequence[int], kept: Sequence[int], network: Network,
    nominal: Nominal,
) -> tuple[Sent, ...]:  # fmt: skip
    """What combines parts of sums that lie so: axes that keep a part each come first, and leave less to send."""
    sent: list[Sent] = []
    mesh = network.mesh
    for value, layout in zip(op.results, partial, strict=True):
        own = nominal.bytes(value) / pieces(layout, network.mesh)
        cut = [*cut_of_layout(layout, len(shape_of(value)), mesh)]
        for k, dim in sorted(zip(summed, kept, strict=True), key=lambda pair: pair[1] == WHOLE):
            axis = mesh.axes[k]
            if axis.size == 1:
                continue
            sent.append((network.all_reduce if dim == WHOLE else network.reduce_scatter)(axis, own))
            if dim != WHOLE:
                own /= axis.size
                cut[dim] = (*cut[dim], axis.name)
        in_order = tuple([tuple([a for a in mesh.names if a in axes]) for axes in cut])
        sent += network.sent(tuple(cut), in_order, shape_of(value), nominal.bytes(value))
    return tuple(sent)


def _layout(dims: Mapped, chosen: Sequence[int]) -> Layout:
    place = {f: d for d, factors in enumerate(dims) for f in factors[:1]}
    return tuple([place.get(f, WHOLE) for f in chosen])


def _work(op: Operation, network: Network, nominal: Nominal) -> float:
    """Seconds of an op on one device. What is not a product is taken to run in kernels with what it reads: it moves
    its results."""
    role, devices = role_of(op), network.devices
    if role in _FREE or isinstance(op, hlo.BroadcastInDimOp):
        return 0.0
    moved = sum(nominal.bytes(v) for v in op.results)
    if role not in _COMPUTING:
        return moved / devices.bandwidth
    narrow = bit_width(dtype_text(op.operands[0].type)) <= 16
    moved += sum(nominal.bytes(v) for v in op.operands)
    rate = devices.narrow_flops if narrow else devices.flops
    return max(moved / devices.bandwidth, flops_of(op, nominal) / rate)


def _shape(value: SSAValue) -> Sequence[object]:
    return shape_of(value) if is_tensor(value.type) else ()


def _sizes(value: SSAValue) -> list[int]:
    return [size for size in _shape(value) if isinstance(size, int)]
