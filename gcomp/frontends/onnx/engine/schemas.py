"""Checking nodes against ONNX's own schemas: arity, attributes, and the dtypes of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import onnx
import onnx_ir

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue, type_text
from gcomp.records import record


@record
class _Formal:
    name: str
    variable: str
    types: frozenset[str]
    homogeneous: bool
    required: bool


@record
class _Schema:
    """What of a schema is checked, as plain Python values."""

    deprecated: bool
    least: int
    most: int
    results: int
    formals: tuple[_Formal, ...]
    variadic: bool
    attributes: Mapping[str, tuple[int, bool]]


@lru_cache(4096)
def schema_of(domain: str, operator: str, version: int) -> Any:
    """ONNX's schema of an operator at an opset version (an `onnx.defs.OpSchema`), or None."""
    if not 0 < version < 1 << 31:
        return None
    try:
        return onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(4096)
def exists(domain: str, operator: str) -> bool:
    """Whether ONNX knows the operator at any version."""
    return onnx.defs.has(operator, domain)


_UNCHANGED_SINCE_EXPERIMENTAL = {("ThresholdedRelu", ""): 10, ("LayerNormalization", ""): 17}
"""Operators that had the same form before they had a schema, as experimental ones, and where it begins.

ONNX Runtime's optimizer writes LayerNormalization at any opset version.
"""


@lru_cache(4096)
def _schema(domain: str, operator: str, version: int) -> _Schema | None:
    found = schema_of(domain, operator, version)
    if found is None:
        return None
    options = onnx.defs.OpSchema.FormalParameterOption
    formals = tuple(
        _Formal(p.name, p.type_str, frozenset(p.types), p.is_homogeneous, p.option == options.Single)
        for p in found.inputs
    )
    variadic = bool(found.inputs) and found.inputs[-1].option == options.Variadic
    attributes = {name: (int(a.type.value), bool(a.required)) for name, a in found.attributes.items()}
    return _Schema(found.deprecated, found.min_input, found.max_input, found.max_output, formals, variadic, attributes)


FLAGS = frozenset(
    (
        "align_corners", "allowzero", "antialias", "ceil_mode", "count_include_pad", "detect_negative",
        "detect_positive", "exclude_outside", "exclusive", "fmod", "inverse", "is_causal", "keepdims", "largest",
        "linear_before_reset", "noop_with_empty_axes", "onesided", "periodic", "reverse", "saturate",
        "select_last_index", "sorted", "training_mode", "transA", "transB", "upper",
    )
)  # fmt: skip
"""Integer attributes that say yes or no, whichever operator has them."""

_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_RUNS = ("forward", "reverse", "bidirectional")

CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    **{(name, "auto_pad"): _PADS for name in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DeformConv",
                                              "LpPool", "MaxPool", "QLinearConv")},
    **{(name, "direction"): _RUNS for name in ("GRU", "LSTM", "RNN")},
    **{(name, "reduction"): ("none", "sum", "mean")
       for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{(name, "reduction"): ("none", "add", "mul", "max", "min") for name in ("ScatterElements", "ScatterND")},
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("Cast", "round_mode"): ("up", "down", "nearest"),
    ("CastLike", "round_mode"): ("up", "down", "nearest"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("Momentum", "mode"): ("standard", "nesterov"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("TensorScatter", "mode"): ("linear", "circular"),
}  # fmt: skip
"""(operator, attribute) -> the texts that ONNX allows. ONNX's schemas say them in their prose only."""


def check_node(ctx: NodeContext, domain: str) -> None:
    """Raises InvalidModelError for a node that ONNX's schema of its operator refuses."""
    schema = _schema(domain, ctx.op_type, ctx.opset)
    if schema is None:
        first = _UNCHANGED_SINCE_EXPERIMENTAL.get((ctx.op_type, domain))
        if first is None and exists(domain, ctx.op_type):
            ctx.invalid(f"opset {ctx.opset} does not have the operator", "ONNX added it later")
        schema = None if first is None else _schema(domain, ctx.op_type, first)
    if schema is None:
        return
    if schema.deprecated:
        ctx.invalid("the operator no longer exists", f"ONNX removed it before opset {ctx.opset}")
    count = len(ctx.values)
    if not schema.least <= count <= schema.most:
        expected = f"{schema.least}" if schema.least == schema.most else f"{schema.least} to {schema.most}"
        ctx.invalid(f"it has {count} inputs", f"the operator takes {expected}")
    if ctx.result_count > schema.results:
        ctx.invalid(f"it has {ctx.result_count} outputs", f"the operator gives {schema.results}")
    if schema.variadic and None in (rest := ctx.node.inputs[len(schema.formals) - 1 :]):
        place = len(schema.formals) - 1 + list(rest).index(None)
        ctx.invalid(f"input {place} is missing", "none of a list of inputs may be left out")
    _check_attributes(ctx, schema)
    _check_types(ctx, schema, ctx.values)


def _check_attributes(ctx: NodeContext, schema: _Schema) -> None:
    for name, attr in ctx.node.attributes.items():
        known = schema.attributes.get(name)
        if known is None:
            names = ", ".join(schema.attributes) or "none"
            ctx.invalid(f"attribute {name} does not exist", f"the operator has {names}")
        if int(attr.type.value) != known[0]:
            expected = onnx_ir.AttributeType(known[0]).name
            ctx.invalid(f"attribute {name} has type {attr.type.name}", f"{expected} is expected")
        if name in FLAGS:
            ctx.flag(name)
        choices = CHOICES.get((ctx.op_type, name))
        if choices is not None and ctx.attribute(name) is not None and ctx.string(name) not in choices:
            ctx.invalid(f"{name} is {ctx.string(name)!r}", f"it must be one of {', '.join(choices)}")
    for name, (_, required) in schema.attributes.items():
        if required and ctx.attribute(name) is None:
            ctx.invalid(f"attribute {name} is missing", "the operator requires it")


def _check_types(ctx: NodeContext, schema: _Schema, values: Sequence[AnyValue | None]) -> None:
    bound: dict[str, str] = {}
    last = len(schema.formals) - 1
    for i, value in enumerate(values):
        formal = schema.formals[min(i, last)]
        if value is None:
            if formal.required:
                ctx.invalid(f"input {i} ({formal.name}) is missing", "the operator requires it")
            continue
        text = type_text(value)
        if text not in formal.types:
            takes = ", ".join(sorted(formal.types)[:20])
            ctx.invalid(f"input {i} ({formal.name}) is {text}", f"the operator takes {takes}")
        if formal.homogeneous and bound.setdefault(formal.variable, text) != text:
            other = bound[formal.variable]
            ctx.invalid(f"input {i} ({formal.name}) is {text}", f"it must be {other}, as another input is")
