"""Programs that compute every elementwise function of an element type, on all pairs of its edge values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.lowering.tiles.elements.elementwise import NARROW, PLAIN
from gcomp.lowering.tiles.functions import FUNCTIONS
from gcomp.lowering.tiles.schedules import Settings
from gcomp.lowering.tiles.tile import HELD
from gcomp.reference.values import edges

Array = np.ndarray[Any, Any]

DTYPES = (
    "i1", "i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32",
    "f64", "f8E4M3FN", "f8E5M2",
)  # fmt: skip
"""What kernels for GPUs hold."""

ALL = (*DTYPES, *sorted(NARROW.difference(DTYPES)))
"""What kernels for processors hold, too."""

QUICK = ("i1", "i4", "i32", "ui8", "ui64", "f16", "bf16", "f32", "f8E4M3FN", "f4E2M1FN")
"""Those that `make test` holds all pairs of edge values to: of each class, and of each width."""

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
WHOLE = Settings({"block": 8192})


def pairs(dtype: str) -> tuple[Array, Array]:
    """All pairs of edge values."""
    values = edges(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def functions(dtype: str, dtypes: Collection[str] = DTYPES, outputs: slice = slice(None)) -> tuple[Program, list[str]]:
    """All functions of two operands or one, comparisons, choices and conversions; the names of the outputs.

    `dtypes` are what is converted to; `outputs` picks some of the functions.
    """
    x, _ = pairs(dtype)
    type = tensor(x.shape, dtype)
    program = Program.empty([("x", type), ("y", type)])
    made: dict[str, GraphOp] = {}
    held = "f32" if dtype in NARROW else HELD.get(dtype, dtype)
    for op in PLAIN:
        known = FUNCTIONS[op.name.partition(".")[2].removeprefix("broadcast_")]
        for count in (1, 2):
            if known.refuses([held] * count):
                continue
            try:
                found = op.of(*program.block.args[:count])
                found.verify()
            except (VerifyException, GcompError, IndexError, AttributeError, ValueError, TypeError):
                continue
            made[found.name] = found
    for direction in DIRECTIONS:
        for order in (None, "TOTALORDER") if dtype[0] in "fb" else (None,):
            made[f"compare {direction} {order}"] = hlo.CompareOp.of(
                *program.block.args, comparison_direction=direction, compare_type=order
            )
    for to in dtypes:
        made[f"convert {to}"] = hlo.ConvertOp.of(program.block.args[0], types=(tensor(x.shape, to),))
    less = made["compare LT None"]
    made["select"] = hlo.SelectOp.of(less.results[0], *program.block.args)
    if dtype != "i1":
        made["clamp"] = hlo.ClampOp.of(program.block.args[1], program.block.args[0], made["select"].results[0])
    program.block.add_ops(made.values())
    names = list(made)[outputs]
    program.finish([(name, made[name].results[0]) for name in names])
    program.verify()
    return program, names


def inputs(dtype: str) -> list[Array]:
    """The operands."""
    return [array.astype(dtype_of(dtype)) for array in pairs(dtype)]


def whole(numbers: Array, dtype: str) -> Array:
    """Small whole numbers in an element type."""
    return np.asarray(numbers).astype(dtype_of(dtype))
