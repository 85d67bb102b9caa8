"""What leaves a reduction's result as it is: the value of the lanes of a tile that hold no element."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Block

from gcomp.dtypes import dtype_of, is_float, is_integer
from gcomp.ir.stablehlo.control import ReturnOp

_OF_BOOLS = {
    "stablehlo.add": False, "stablehlo.or": False, "stablehlo.maximum": False, "stablehlo.xor": False,
    "stablehlo.and": True, "stablehlo.multiply": True, "stablehlo.minimum": True,
}  # fmt: skip


def identity_of(block: Block, dtype: str) -> Any:
    """The identity of a reduction's region; None where it is no known function of its two arguments."""
    ops = list(block.ops)
    if len(ops) != 2 or not isinstance(ops[1], ReturnOp) or ops[0].results[0] is not ops[1].operands[0]:
        return None
    if {*ops[0].operands} != {*block.args} or len(block.args) != 2:
        return None
    if dtype == "i1":
        return _OF_BOOLS.get(ops[0].name)
    least, most = _limits(dtype)
    return {
        "stablehlo.add": -0.0 if is_float(dtype) else 0,
        "stablehlo.multiply": 1,
        "stablehlo.maximum": least,
        "stablehlo.minimum": most,
        "stablehlo.and": -1 if dtype.startswith("i") else most,
        "stablehlo.or": 0,
        "stablehlo.xor": 0,
    }.get(ops[0].name)


def _limits(dtype: str) -> tuple[Any, Any]:
    if is_integer(dtype):
        info = np.iinfo(dtype_of(dtype))
        return int(info.min), int(info.max)
    return float("-inf"), float("inf")
