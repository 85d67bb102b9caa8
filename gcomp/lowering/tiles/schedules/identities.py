"""What reductions are by their regions: the identity, which lanes without elements hold, and whether order matters."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Block, Region

from gcomp.dtypes import dtype_of, is_float, is_integer
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import dtype_text
from gcomp.reference import rows as rows  # fills the table
from gcomp.reference.machine import Machine

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
        info: Any = ml_dtypes.iinfo(dtype_of(dtype))
        return int(info.min), int(info.max)
    return float("-inf"), float("inf")


# ---- order --------------------------------------------------------------------------------------------------------

_FLOATS = (0.0, 1.0, -1.0, 2.5, float("nan"), float("inf"), float("-inf"))
_STATES = 48


def order_is_open(region: Region) -> bool:
    """Whether elements may be combined in any order: one op with an identity, or a region that proves to be so.

    StableHLO leaves the order open, and the reference takes elements one after the other. A region of several ops
    (which picks the greatest and its index) is tried on all triples of some values: (a b) c = a (b c), and a b = b a.
    """
    block = region.block
    kinds = [dtype_text(a.type) for a in block.args[: len(block.args) // 2]]
    if len(kinds) == 1 and identity_of(block, kinds[0]) is not None:
        return True
    run = Machine(None, {}).body(region)
    states = list(product(*map(_values, kinds)))
    if len(states) > _STATES:
        states = Random(0).sample(states, _STATES)
    columns = [np.array([s[k] for s in states], dtype_of(kind)) for k, kind in enumerate(kinds)]
    triples = np.indices((len(states),) * 3).reshape(3, -1)
    a, b, c = [[column[taken] for column in columns] for taken in triples]
    first, second = run(*a, *b), run(*b, *c)
    return _same(run(*first, *c), run(*a, *second)) and _same(first, run(*b, *a))


def _values(kind: str) -> tuple[Any, ...]:
    if kind == "i1":
        return (False, True)
    return _FLOATS if is_float(kind) else (0, 1, 2, *_limits(kind))


def _same(left: list[Any], right: list[Any]) -> bool:
    return all(bool(np.all((x == y) | ((x != x) & (y != y)))) for x, y in zip(left, right, strict=True))
