"""The buffer level: kernels in order, and the place of each result in one arena.

The program stays in SSA form, so that it runs in the reference interpreter as before; a plan adds what the machine
needs to know. `buffer.places` on an op has the byte offset of each result in the arena; `buffer.arena` on the module is
the arena's size. `buffer.donors`, where an op has it, names for each result the donated input in whose memory it lies
(-1 for the arena, -2 - k for slot k). Slots are memory that is sized at the call: formulas of symbols, `buffer.slots`.
Inputs, weights, constants and the results of host steps lie in memory of their own, but those of host steps in branches
and loops, which are as kernels there; a view lies where its operand does.
The values that a loop carries lie in the places of its results: they are moved there at first, and what its body
returns at the end of each turn, one after the other; what is there already stays. A plan that is wrong faults in
`gcomp.reference.planned`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from gcomp.dims import Size, parse
from gcomp.dtypes import dtype_of
from gcomp.ir.roles import Role, role_of
from gcomp.ir.stablehlo import ConstantOp
from gcomp.ir.types import dtype_text, is_tensor, static_shape

PLACES, DONORS, ARENA, SLOTS = "buffer.places", "buffer.donors", "buffer.arena", "buffer.slots"

ALIGNMENT = 256
"""Bytes that every offset is a multiple of: what GPUs' widest loads and JAX's and CUDA's allocators keep to."""

BEYOND = 1 << 44
"""Bytes of memory that no machine has: a bound of as many says nothing."""

_LOOSE, _TIMES = 1 << 28, 8


def is_loose(least: int, most: int) -> bool:
    """Whether the memory of the greatest sizes, `most` bytes, is much more than that of the least."""
    return most >= BEYOND or (most >= _LOOSE and most >= _TIMES * least)


_STORED_BYTES = 4096
"""A splat constant that memory must hold is part of the program if it is no larger."""

_EXTERNAL = frozenset({Role.SOURCE, Role.GENERATOR})


def has_place(op: Operation) -> bool:
    """Whether an op between kernels has results of its own in the arena."""
    role = role_of(op)
    if role in _EXTERNAL or (role is Role.HOST and isinstance(op.parent_op(), FuncOp)):
        return False
    return not is_view(op) and any(is_tensor(r.type) for r in op.results)


def is_stored(op: Operation | Block) -> bool:
    """Whether an op's value, where it is read from memory, lies there before the first kernel runs: a constant's.

    But for large splats, which are computed: to write a small one would take a launch.
    """
    if not isinstance(op, ConstantOp):
        return False
    size = dtype_of(dtype_text(op.results[0].type)).itemsize * prod(static_shape(op.results[0]) or ())
    return not op.elements_attr.is_splat or size <= _STORED_BYTES


def is_view(op: Operation) -> bool:
    """Whether an op between kernels gives its operand's bytes another type."""
    return role_of(op) in (Role.VIEW, Role.REINTERPRETATION)


def set_places(op: Operation, offsets: Sequence[int], donors: Sequence[int] = ()) -> None:
    """Say where an op's results lie, and in which memory besides the arena (-1; all of them if empty)."""
    op.attributes[PLACES] = _numbers(offsets)
    if any(donor != -1 for donor in donors):
        op.attributes[DONORS] = _numbers(donors)
    else:
        op.attributes.pop(DONORS, None)


def places(op: Operation) -> tuple[int, ...] | None:
    """Where an op's results lie; None where no plan says so."""
    return _read(op, PLACES)


def donors(op: Operation) -> tuple[int, ...]:
    """The donated input in whose memory each of an op's results lies; -1 for the arena, -2 - k for slot k."""
    return _read(op, DONORS) or (-1,) * len(op.results)


def _numbers(values: Sequence[int]) -> ArrayAttr[IntegerAttr[Any]]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


def _read(op: Operation, name: str) -> tuple[int, ...] | None:
    found = op.attributes.get(name)
    if not isinstance(found, ArrayAttr):
        return None
    return tuple([cast("IntegerAttr[Any]", a).value.data for a in cast("ArrayAttr[Any]", found).data])


def set_arena(module: ModuleOp, size: int) -> None:
    """Say how many bytes the arena has."""
    module.attributes[ARENA] = IntegerAttr(size, i64)


def set_slots(module: ModuleOp, sizes: Sequence[Size]) -> None:
    """Say how many bytes each slot has."""
    if sizes:
        module.attributes[SLOTS] = ArrayAttr([StringAttr(str(size)) for size in sizes])
    else:
        module.attributes.pop(SLOTS, None)


def slots(module: ModuleOp) -> tuple[Size, ...]:
    """The bytes of each slot."""
    found = module.attributes.get(SLOTS)
    texts = cast("ArrayAttr[StringAttr]", found).data if isinstance(found, ArrayAttr) else ()
    return tuple([parse(text.data) for text in texts])


def slot_of(donor: int) -> int | None:
    """The slot that a donor's number means, if it means one."""
    return -2 - donor if donor < -1 else None


def arena(module: ModuleOp) -> int | None:
    """The size of the arena in bytes; None where nothing is planned."""
    found = module.attributes.get(ARENA)
    return cast("IntegerAttr[Any]", found).value.data if isinstance(found, IntegerAttr) else None
