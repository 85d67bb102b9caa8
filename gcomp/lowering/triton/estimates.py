"""How long kernels take on a machine, by a roofline and by what is known of matrix units: without a GPU.

Contractions have candidates that differ in what the model knows: blocks, waves of programs, sums in pieces, operands in
boxes. Of other kernels it knows bytes and flops, and says the same of all their candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations
from typing import NamedTuple

from gcomp.analysis.machines import MACHINES, Machine
from gcomp.analysis.work import Nominal, element_bytes, flops_of
from gcomp.dims import Ranges
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.descriptors import LoadBoxOp
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.tiles.schedules.contraction import space_of
from gcomp.lowering.tiles.schedules.kernel import Settings, power_of_two
from gcomp.lowering.triton.targets import Architecture

PIECES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Into how many pieces long sums may be cut."""

LEAST_TURNS = 4
"""The least number of loop iterations of a piece."""

FILL = 1.0e-6
"""Seconds from the start of a block until its units have operands, and its last until it is stored: two latencies of
memory, about 0.5 us each. A persistent kernel brings operands of the next block meanwhile."""

BY_ELEMENTS = 0.93
"""The rate of matrix units whose operands are loaded by addresses, beside that with boxes: on an H100, persistent
kernels of Triton's reach 1285 and 1331 Tflop/s so, and 1209 otherwise (github.com/triton-lang/triton/pull/5461)."""


WORTH = 1.15
"""How much faster pieces must be than whole sums: another launch is a certain loss, and the gain is an estimate."""


class Block(NamedTuple):
    """A candidate for a contraction: the result's block, the terms of an iteration, warps and stages, and its form.

    `pieces`, `programs` and `boxes` are as in `schedules/contraction.py`.
    """

    rows: int
    columns: int
    terms: int
    warps: int
    stages: int
    pieces: int = 1
    programs: int = 0
    boxes: int = 0


_BLOCKS = [
    Block(rows, columns, terms, max(4, min(8, rows * columns // 2048)), stages)
    for rows, columns in combinations((16, 32, 64, 128, 256), repeat=2)
    for terms, stages in ((32, 4), (64, 3))
    if 1024 <= rows * columns <= 128 * 256
]


def machine_of(on: Architecture) -> Machine:
    """The machine of an architecture; that of sm_90 for one that has none."""
    return MACHINES.get(on.name, MACHINES["sm_90"])


def rank_settings(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[Settings]:
    """The settings of a contraction, the fastest first; none for what the model has no order for."""
    model = _Contraction.of(launch, ranges, on)
    if model is None:
        return []
    ways = [way for block in model.blocks() for way in model.forms(block)]

    def order(way: Block) -> tuple[object, ...]:
        # What is equally fast for the model: the smaller block, and fewer turns.
        return model.seconds(way) * (WORTH if way.pieces > 1 else 1), way.rows * way.columns, -way.terms, way

    ways.sort(key=order)
    return [Settings(way._asdict()) for way in ways]


def predict_seconds(launch: LaunchOp, ranges: Ranges, on: Architecture, settings: Settings) -> float:
    """How long a launch takes in some settings, in seconds."""
    model = _Contraction.of(launch, ranges, on)
    machine = machine_of(on)
    if model is not None and set(Block._fields) == set(settings.values):
        return machine.launch + model.seconds(Block(**settings.values))
    return roofline(launch, Nominal(ranges), machine)


def roofline(launch: LaunchOp, nominal: Nominal, machine: Machine) -> float:
    """The time for a launch's bytes or for its flops, whichever is longer, and for the launch itself."""
    flops = sum(flops_of(op, nominal) for op in launch.block.ops)
    moved = sum(nominal.bytes(value) for value in (*launch.operands, *launch.results))
    narrow = any(dtype_text(v.type) in ("bf16", "f16") for v in launch.operands)
    rate = machine.contraction if narrow else machine.wide_contraction
    return machine.launch + max(moved / machine.bandwidth, flops / rate)


class _Contraction:
    """A contraction in nominal sizes on a machine."""

    def __init__(self, launch: LaunchOp, ranges: Ranges, on: Architecture) -> None:
        found = space_of(launch)
        assert found is not None, "`of` asks before"
        op, space = found
        nominal = Nominal(ranges)
        self.machine = machine_of(on)
        self.batch, self.rows, self.columns, self.terms = [nominal.size(n) for n in space.extents]
        self.size = element_bytes(op.operands[0].type)
        self.narrow = self.size < 4
        # In f32 without tensor cores a thread holds its part of the result in registers, beside the addresses.
        self.most = 128 * 256 if self.narrow else 64 * 64 if isinstance(op, hlo.ConvolutionOp) else 64 * 128
        self.boxes = self.narrow and "tma" in on.features and _comes_in_boxes(launch, ranges)
        self.bounded = all(ranges.bounds(n)[1] is not None for n in space.extents)

    @staticmethod
    def of(launch: LaunchOp, ranges: Ranges, on: Architecture) -> _Contraction | None:
        """The contraction of a launch; None where matrix units do not compute it."""
        if launch.kind_name not in ("matmul", "convolution") or space_of(launch) is None:
            return None
        return _Contraction(launch, ranges, on)

    def blocks(self) -> Iterator[Block]:
        """The blocks that fit the sizes."""
        rows, columns = max(16, power_of_two(self.rows)), max(16, power_of_two(self.columns))
        terms = max(32, power_of_two(self.terms))
        for b in _BLOCKS:
            fits = b.rows <= rows and b.columns <= columns and b.terms <= terms and b.rows * b.columns <= self.most
            if fits and (self.narrow or b.terms == 32):
                yield b

    def count(self, b: Block) -> int:
        """How many blocks the result has."""
        return -(-self.rows // b.rows) * -(-self.columns // b.columns) * self.batch

    def turns(self, b: Block) -> int:
        """The number of iterations of the loop over the terms of a sum."""
        return -(-self.terms // b.terms)

    def forms(self, b: Block) -> Iterator[Block]:
        """A block in all the ways in which it can be computed."""
        count, programs = self.count(b), self.machine.parallel
        ways = [b, *([b._replace(boxes=1)] if self.boxes else [])]
        yield from ways
        if self.boxes and count > programs:
            yield b._replace(boxes=1, programs=programs)
        if self.bounded and count < programs:
            for pieces in PIECES:
                if self.turns(b) >= pieces * LEAST_TURNS and count * pieces < 4 * programs:
                    yield from (way._replace(pieces=pieces) for way in ways)

    def seconds(self, b: Block) -> float:
        """How long it takes, but for the launch."""
        machine = self.machine
        rate = (machine.contraction if self.narrow else machine.wide_contraction) / machine.parallel
        # A small block keeps the units of a multiprocessor waiting for operands.
        compute = 2 * b.rows * b.columns * b.terms / rate * (1 + 2048 / (b.rows * b.columns))
        if self.narrow and not b.boxes:
            compute /= BY_ELEMENTS
        loads = (b.rows + b.columns) * b.terms * self.size / (4 * machine.bandwidth / machine.parallel)
        turns = -(-self.turns(b) // b.pieces)
        waves = -(-self.count(b) * b.pieces // machine.parallel)
        found = waves * turns * max(compute, loads) + FILL * (1 if b.programs else waves)
        if b.pieces > 1:
            # Pieces are written, and read by another kernel.
            written = 4 * b.pieces * self.batch * self.rows * self.columns
            found += machine.launch + FILL + 2 * written / machine.bandwidth
        return found


def _comes_in_boxes(launch: LaunchOp, ranges: Ranges) -> bool:
    """Whether boxes hold both operands of a contraction."""
    (step,) = schedule(launch, "kernel", ranges, Settings({"boxes": 1})).steps
    return sum(isinstance(op, LoadBoxOp) for op in step.kernel.block.walk()) == 2


__all__ = ["Block", "machine_of", "predict_seconds", "rank_settings", "roofline"]
