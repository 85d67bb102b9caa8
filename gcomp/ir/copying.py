"""Copies of ops with other operands, which kernels, inlined functions and loops are made of."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation, SSAValue

T = TypeVar("T", bound=Operation)


def copy_op(op: T, mapping: dict[SSAValue, SSAValue]) -> T:
    """A copy of an op that reads what its operands are mapped to, where they are; its results are added to the mapping.

    `Operation.clone` sets the operands twice and walks twice, which only ops with regions need.
    """
    return op.clone(mapping) if op.regions else op.clone_without_regions(mapping)


__all__ = ["copy_op"]
