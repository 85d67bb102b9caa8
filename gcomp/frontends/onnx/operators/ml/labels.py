"""Importers of ai.onnx.ml: LabelEncoder, a table from keys to values. Strings among them are the model's own names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np
from onnx_ir import AttributeType, DataType
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.engine.strings import look_up, names_of, strings_of
from gcomp.frontends.onnx.model.containers import NamesValue
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.frontends.onnx.operators.ml.features import FEW
from gcomp.frontends.onnx.operators.ml.repeat import repeat_steps
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of

_KINDS = ("int64", "float", "string")


@imports("LabelEncoder", since=2, domain="ai.onnx.ml")
def label_encoder(ctx: NodeContext) -> Results:
    """LabelEncoder-2, LabelEncoder-4: each element's value in a table of keys, or the default.

    A NaN key matches every NaN, as version 4 says; version 2 speaks of equal bits, but neither implementation tells
    -0 from 0. Of a repeated key the last counts, as version 4 and ONNX's reference have it.
    """
    keys, values = _listed_values(ctx, "keys"), _listed_values(ctx, "values")
    if len(keys) != len(values):
        ctx.invalid(f"it has {len(keys)} keys and {len(values)} values", "they must be as many")
    if not isinstance(values, np.ndarray):
        called = names_of([*values, _default_name(ctx)], (len(values) + 1,))
        known = cast(Array, called.positions.known)
        return [_wrap(_encode(ctx, keys, known[:-1], known[-1]), called.names)]
    return [_encode(ctx, keys, values, _default(ctx, values))]


def _wrap(positions: Value | SSAValue, names: tuple[str, ...]) -> NamesValue:
    return NamesValue(positions if isinstance(positions, Value) else Value.of(positions), names)


def _encode(ctx: NodeContext, keys: Array | list[str], values: Array, default: Array) -> Value | SSAValue:
    """The value of each element, of a key, or the default."""
    given = ctx.any_value(0)
    if not isinstance(keys, np.ndarray) or isinstance(given, NamesValue):
        if isinstance(keys, np.ndarray) or not isinstance(given, NamesValue):
            ctx.invalid("its keys are strings, or X is, but not both", "they must be of one type")
        table = dict(zip(keys, values, strict=True))
        return look_up(ctx, given, np.asarray([table.get(name, default) for name in given.names], values.dtype))
    if keys.dtype != dtype_of(ctx.element()):
        ctx.invalid(f"its keys are {keys.dtype}", f"X is {ctx.element()}")
    b, x = ctx.b, ctx[0]
    number = ~np.isnan(keys) if keys.dtype.kind == "f" else np.ones(len(keys), bool)
    unique, back = np.unique(keys[number][::-1], return_index=True)
    chosen = values[number][::-1][back]
    result = _look_up(b, x, unique, chosen, default)
    if not number.all():
        for_nan = b.constant(values[~number][-1])
        result = b.select(b.compare(x, x, "NE"), for_nan, result)
    return result


def _listed_values(ctx: NodeContext, role: str) -> Array | list[str]:
    """The keys or the values, from the one attribute that gives them."""
    names = [name for name in (*(f"{role}_{kind}s" for kind in _KINDS), f"{role}_tensor") if ctx.attribute(name)]
    if len(names) != 1:
        ctx.invalid(f"{' and '.join(names) or 'nothing'} gives the {role}", "exactly one attribute must")
    match names[0].removeprefix(f"{role}_"):
        case "int64s":
            return np.asarray(ctx.integers(names[0]), np.int64)
        case "floats":
            return np.asarray(ctx.numbers(names[0]), np.float32)
        case "tensor" if (array := _numeric(ctx, names[0])) is not None:
            if array.ndim != 1:
                ctx.invalid(f"{names[0]} has shape {array.shape}", "it must be a list")
            return array
        case "tensor":
            return _strings(ctx, names[0])
        case _:
            return ctx.strings(names[0]) or []


def _strings(ctx: NodeContext, name: str) -> list[str]:
    """A tensor attribute that is a list of strings."""
    attr = ctx.attribute(name)
    if attr is None or attr.type != AttributeType.TENSOR or len(attr.as_tensor().shape) > 1:
        ctx.invalid(f"{name} is no list", "a tensor of rank 1 is expected")
    return strings_of(attr.as_tensor(), f"{ctx.where}, attribute `{name}`")


def _default_name(ctx: NodeContext) -> str:
    """The string for elements that are no key."""
    if ctx.attribute("default_tensor") is None:
        return ctx.string("default_string", "_Unused")
    given = _strings(ctx, "default_tensor")
    if len(given) != 1:
        ctx.invalid(f"default_tensor has {len(given)} strings", "one is expected")
    return given[0]


def _numeric(ctx: NodeContext, name: str) -> Array | None:
    """A tensor attribute, or None for one of strings."""
    attr = ctx.attribute(name)
    if attr is None or (attr.type == AttributeType.TENSOR and attr.as_tensor().dtype == DataType.STRING):
        return None
    return ctx.tensor(name)


def _default(ctx: NodeContext, values: Array) -> Array:
    """The value of elements that are no key, of the values' dtype: by default -1 for integers and -0.0 for floats."""
    given = _numeric(ctx, "default_tensor") if ctx.attribute("default_tensor") else None
    if given is not None:
        if given.size != 1 or given.dtype != values.dtype:
            ctx.invalid(f"default_tensor is {given.dtype}{given.shape}", f"one {values.dtype} is expected")
        return given.reshape(())
    if values.dtype.kind == "f":
        return np.asarray(ctx.number("default_float", -0.0), values.dtype)
    number, dtype = ctx.integer("default_int64", -1), np.iinfo(values.dtype)
    if not dtype.min <= number <= dtype.max:
        ctx.invalid(f"default_int64 is {number}", f"the values are {values.dtype}")
    return np.asarray(number, values.dtype)


def _look_up(b: Builder, x: SSAValue, keys: Array, values: Array, default: Array) -> SSAValue:
    """The values at the places of elements among ascending keys, or the default."""
    shape, other = shape_of(x), b.constant(default)
    if len(keys) <= FEW:
        pairs = zip(keys, values, strict=True)
        start = b.broadcast_to(other, shape)
        return reduce(lambda r, kv: b.select(b.compare(x, b.constant(kv[0]), "EQ"), b.constant(kv[1]), r), pairs, start)
    every = b.constant(keys)
    top = 1 << (len(keys) - 1).bit_length()
    last = b.constant(len(keys) - 1, "i32")

    def step(_: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        place, stride = carried
        further = b.minimum(b.add(place, stride), last)
        below = b.compare(take(b, every, further, 0), x, "LE")
        halved = b.emit(hlo.ShiftRightLogicalOp, stride, b.constant(1, "i32"))
        return [b.select(below, further, place), halved]

    # The last key that is at most x, or the first of all.
    carried = [b.full(shape, 0, "i32"), b.constant(top // 2, "i32")]
    place = repeat_steps(b, top.bit_length() - 1, carried, step)[0]
    found = b.compare(take(b, every, place, 0), x, "EQ")
    return b.select(found, take(b, b.constant(values), place, 0), other)


@imports("LabelEncoder", domain="ai.onnx.ml")
def from_classes(ctx: NodeContext) -> Results:
    """LabelEncoder-1: from strings to their places among the classes, or back, as X is strings or integers."""
    classes = ctx.strings("classes_strings") or []
    places = np.arange(len(classes))
    if isinstance(ctx.any_value(0), NamesValue):
        return [_encode(ctx, classes, places, np.asarray(ctx.integer("default_int64", -1), np.int64))]
    called = names_of([*classes, ctx.string("default_string", "_Unused")], (len(classes) + 1,))
    known = cast(Array, called.positions.known)
    return [_wrap(_encode(ctx, places, known[:-1], known[-1]), called.names)]
