"""Operations at once: a builder that evaluates each op by the reference kernels instead of inserting it.

So an operation means the same, op by op, whether it runs now or is compiled. Values are arrays that no one writes to.
"""

from __future__ import annotations

import threading
from typing import Any, cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import SSAValues

from gcomp.dtypes import text_of
from gcomp.ir import locations
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.ir.walking import captures
from gcomp.reference.interpreter import evaluate_op
from gcomp.reference.numpy.printing import write
from gcomp.tensors.site import SITE

Array = np.ndarray[Any, Any]

_NOWHERE = Block()


class Known(SSAValue):
    """An SSA value whose array is known; no op defines it."""

    def __init__(self, array: Array) -> None:
        super().__init__(tensor(array.shape, text_of(array.dtype)))
        self.array = array

    @property
    def owner(self) -> Block:
        return _NOWHERE


def known_value(array: Array) -> Known:
    """The value of an array that is the caller's to give away."""
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return Known(array)


class Eager(Builder):
    """Evaluates ops at its own point; what is built inside of regions becomes their bodies."""

    decomposes = True

    def __init__(self) -> None:
        super().__init__(Program.empty([]))
        self._here = self.point

    def insert(self, op: Operation) -> Operation:
        op.location = SITE.location or locations.UNKNOWN
        if isinstance(op, GraphOp):
            GraphOp.verify_(op)  # constraints and types; the form is the builder's
        if self.point is not self._here:
            return super().insert(op)
        inner = {value: cast(Known, value).array for value in captures(op)}
        results = evaluate_op(op, [cast(Known, value).array for value in op.operands], captured=inner, sink=write)
        # The op is no longer needed, and must not hold on to what it was computed from.
        op.drop_all_references()
        op.results = cast(Any, SSAValues(known_value(np.asarray(result)) for result in results))
        return op

    def weight(self, name: str, array: Array) -> SSAValue:
        """An array, as it is."""
        return known_value(array)


class _Own(threading.local):
    def __init__(self) -> None:
        self.builder = Eager()


_OWN = _Own()


def eager() -> Eager:
    """This thread's eager builder."""
    return _OWN.builder
