"""The kernels of a block run in an order that needs less memory; what depends on what stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.analysis.liveness import donations
from gcomp.ir.kernel import blocks_of_kernels
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.memory.ordering import order
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.flow import Flow


@dataclass(frozen=True)
class OrderForMemory(Pass):
    """Order `main` and the regions of its control flow for a low peak at the largest sizes of the symbols' ranges."""

    name: ClassVar[str] = "order-for-memory"
    level: ClassVar[str] = "kernel"

    seconds: float = 5.0

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        for block in blocks_of_kernels(program.block):
            donors = donations(program) if block is program.block else {}
            around = where(block.parent_op() or program.main)  # no op of the block is moved more than others
            # A better order may lead to one that is better still; each needs less than the one before.
            while (flow := Flow(block, program.ranges, donors)).ops:
                found = order(flow.graph(), seconds=self.seconds)
                if found.peak >= found.given_peak or not flow.lowers(found.sequence):
                    break
                if not context.allow(self.name, around):
                    break
                flow.reorder(found.sequence)
                changed = True
        return changed
