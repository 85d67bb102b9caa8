"""Strings of the model: names of classes, which operators pick and move without looking at what they say.

A tensor of strings is positions among names (`NamesValue`). What moves elements moves positions; nothing else computes
with strings, and none come in: those of inputs are not known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir
from xdsl.ir import SSAValue

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue, NamesValue
from gcomp.frontends.onnx.model.reading import tensor_array
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir.gathering import take
from gcomp.records import record

_MOVE = frozenset(
    ("ArrayFeatureExtractor", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
     "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where")
)  # fmt: skip
_TELL = frozenset(("Equal",))
"""What compares strings, and gives no strings."""


@record
class Moved:
    """A node on positions; `wrapped` makes strings of its results again, where they are."""

    ctx: NodeContext
    names: tuple[str, ...] | None

    def wrap(self, result: AnyValue | SSAValue) -> AnyValue | SSAValue:
        """A result as strings."""
        value = Value.of(result) if isinstance(result, SSAValue) else result
        return result if self.names is None or not isinstance(value, Value) else NamesValue(value, self.names)


def by_positions(ctx: NodeContext, domain: str) -> Moved | None:
    """The node on positions among the names of all its operands; None where it has no strings, or looks at them."""
    given = [value for value in ctx.values if isinstance(value, NamesValue)]
    if not given or domain not in ("", "ai.onnx.ml") or ctx.op_type not in _MOVE | _TELL:
        return None
    names = tuple(dict.fromkeys(name for value in given for name in value.names))
    values = [among(ctx, v, names) if isinstance(v, NamesValue) else v for v in ctx.values]
    on_positions = type(ctx)(ctx.importer, ctx.scope, ctx.node, ctx.opset, values, ctx.where)
    return Moved(on_positions, names if ctx.op_type in _MOVE else None)


def among(ctx: NodeContext, value: NamesValue, names: Sequence[str]) -> Value:
    """A value's positions among other names, all of its own being there."""
    if value.names == tuple(names[: len(value.names)]):
        return value.positions
    return look_up(ctx, value, np.asarray([names.index(name) for name in value.names], np.int64))


def look_up(ctx: NodeContext, value: NamesValue, table: np.ndarray[tuple[int], np.dtype[np.generic]]) -> Value:
    """A number for each string, from those of the names."""
    known = value.positions.known
    if known is not None and known.dtype != object:
        return Value.constant(table[known])
    return Value.of(take(ctx.b, ctx.b.constant(table), value.positions.read(ctx.b), 0))


def constant_of(tensor: onnx_ir.TensorProtocol, where: str, name: str) -> Value | NamesValue:
    """A tensor of the model, of numbers or of strings."""
    if tensor.dtype != onnx_ir.DataType.STRING:
        return Value.constant(tensor_array(tensor, where), name)
    shape = tensor.shape.numpy()
    return names_of(strings_of(tensor, where), shape)


def strings_of(tensor: onnx_ir.TensorProtocol, where: str) -> list[str]:
    """The strings of a tensor, in row-major order. Raises InvalidModelError where they are no text."""
    data = tensor.string_data() if isinstance(tensor, onnx_ir.StringTensor) else tensor.numpy().reshape(-1).tolist()
    try:
        return [entry if isinstance(entry, str) else bytes(entry).decode() for entry in data]
    except (UnicodeDecodeError, TypeError) as error:
        raise InvalidModelError("A tensor of strings holds no text.", where=where, why=str(error)) from None


def names_of(found: Sequence[str], shape: Sequence[int]) -> NamesValue:
    """Strings that are known, as a tensor of a shape."""
    names = tuple(dict.fromkeys(found))
    places = {name: i for i, name in enumerate(names)}
    positions = np.asarray([places[name] for name in found], np.int64).reshape(shape)
    return NamesValue(Value.constant(positions), names or ("",))
