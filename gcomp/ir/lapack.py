"""Calls of LAPACK: the targets that jaxlib registers for XLA:CPU, for the frontends whose sources call it, too.

Matrices are passed column by column. A routine says in its last result, one number per matrix, whether it succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, IntegerAttr, IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import decode
from gcomp.ir.builder import Builder
from gcomp.ir.structures import OutputOperandAlias
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of, tensor

PREFIXES = {"f32": "s", "f64": "d", "complex<f32>": "c", "complex<f64>": "z"}
"""Element type -> the letter of its routines."""

_TYPED_FFI = 4
"""The calling convention of the targets."""


def call(
    b: Builder,
    routine: str,
    operands: Sequence[SSAValue],
    types: Sequence[Tensor],
    shared: Mapping[int, int] | None = None,
    **config: str | bool | int,
) -> list[SSAValue]:
    """The results, of these types, of a routine for the first operand's element type.

    `shared` says which operand a routine overwrites with which result. Words of LAPACK's are passed as one letter.
    """
    target = f"lapack_{PREFIXES[dtype_text(operands[0].type)]}{routine}_ffi"
    return call_target(b, target, operands, types, shared, **config)


def call_target(
    b: Builder,
    target: str,
    operands: Sequence[SSAValue],
    types: Sequence[Tensor],
    shared: Mapping[int, int] | None = None,
    **config: str | bool | int,
) -> list[SSAValue]:
    """As `call`, of a target by its whole name."""
    rank = max(rank_of(x) for x in operands)
    several = len(types) > 1
    aliases = [OutputOperandAlias((result,) if several else (), x) for x, result in (shared or {}).items()]
    results = b.emit_all(
        hlo.CustomCallOp, *operands, types=types, call_target_name=target, api_version=_TYPED_FFI,
        backend_config=DictionaryAttr({name: _attribute(value) for name, value in config.items()}),
        operand_layouts=[_layout(rank_of(x), rank) for x in operands],
        result_layouts=[_layout(rank_of(type), rank) for type in types],
        output_operand_aliases=aliases,
    )  # fmt: skip
    return list(results)


def _layout(own: int, rank: int) -> list[int]:
    """Dimensions from the one that varies fastest: matrices by columns, others by rows."""
    order = list(reversed(range(own)))
    return [own - 2, own - 1, *order[2:]] if own == rank else order


def _attribute(value: str | bool | int) -> Attribute:
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    return IntegerAttr(ord(value), IntegerType(8, Signedness.UNSIGNED))


def settings(op: hlo.CustomCallOp) -> dict[str, Any]:
    """The settings of a call, by name; words of LAPACK's are letters by their codes."""
    given = op.configuration
    return {name: decode(v) for name, v in given.data.items()} if isinstance(given, DictionaryAttr) else {}


def status(batch: Sequence[Size]) -> Tensor:
    """The type of a routine's last result."""
    return tensor(batch, "i32")


def valid(b: Builder, info: SSAValue, values: Sequence[SSAValue], direction: str = "EQ") -> list[SSAValue]:
    """A routine's results, NaN for the matrices where `info` (compared with 0) says that it failed."""
    good = b.compare(info, b.full_like(info, 0), direction)
    results: list[SSAValue] = []
    for value in values:
        nan = complex("nan+nanj") if is_complex(dtype_text(value.type)) else float("nan")
        chosen = b.broadcast(good, shape_of(value), range(rank_of(info)))
        results.append(b.select(chosen, value, b.full_like(value, nan)))
    return results
