"""What the operators of `com.microsoft` take: the onnx package has no schemas of them, so that they stand here.

A signature is a line of inputs, `query:T[3|5] bias:T[1]? ids:i32[2]`, and one of attributes, `num_heads! scale`: a
name, a dtype (`T` is one float type for all inputs that say so, `N` one number type, `Q` one 8-bit type, `int` is i32
or i64, `float` any float, `any` anything), the ranks that may be, `?` for what may be left out, `!` for what may not.
The last input may be `name:T*`, any number of them. Attributes' types are checked where they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Importer, Results, add

DOMAIN = "com.microsoft"

_FLOATS = ("f16", "bf16", "f32", "f64")
_INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
_CLASSES: Mapping[str, tuple[str, ...] | None] = {
    "T": _FLOATS,
    "N": (*_FLOATS, *_INTEGERS),
    "float": _FLOATS,
    "int": ("i32", "i64"),
    "Q": ("i8", "ui8"),
    "byte": ("i8", "ui8"),
    "quantized": ("i2", "ui2", "i4", "ui4", "i8", "ui8", "i16", "ui16", "i32"),
    "any": None,
}
"""Dtype class -> its element types (None: all). Other classes are element types themselves."""

_BOUND = ("T", "N", "Q")
"""Classes that stand for one element type in all inputs of a node."""

_FORMAL = re.compile(r"(\w+):(\w+)(?:\[([\d|]+)\])?([?*]?)")


@dataclass(frozen=True)
class _Formal:
    name: str
    dtype: str
    ranks: tuple[int, ...] | None
    required: bool

    @staticmethod
    def parse(text: str) -> _Formal:
        found = _FORMAL.fullmatch(text)
        if found is None:
            raise ValueError(f"not an input of a signature: {text}")
        name, dtype, ranks, option = found.groups()
        return _Formal(name, dtype, tuple(map(int, ranks.split("|"))) if ranks else None, not option)


@dataclass(frozen=True)
class Signature:
    """The inputs and attributes of an operator."""

    inputs: tuple[_Formal, ...]
    variadic: bool
    attributes: Mapping[str, bool]
    """Name -> whether it is required."""

    @staticmethod
    def parse(inputs: str, attributes: str = "") -> Signature:
        """A signature from its two lines."""
        formals = tuple(_Formal.parse(text) for text in inputs.split())
        names = {name.rstrip("!"): name.endswith("!") for name in attributes.split()}
        return Signature(formals, inputs.endswith("*"), names)

    def check(self, ctx: NodeContext) -> None:
        """Raises InvalidModelError for a node that the signature refuses."""
        if len(ctx.values) > len(self.inputs) and not self.variadic:
            ctx.invalid(f"it has {len(ctx.values)} inputs", f"the operator takes at most {len(self.inputs)}")
        self._check_attributes(ctx)
        bound: dict[str, str] = {}
        for i in range(max(len(ctx.values), len(self.inputs))):
            formal = self.inputs[min(i, len(self.inputs) - 1)]
            if ctx.has(i):
                _check_input(ctx, i, formal, bound)
            elif formal.required:
                ctx.invalid(f"input {i} ({formal.name}) is missing", "the operator requires it")

    def _check_attributes(self, ctx: NodeContext) -> None:
        for name in ctx.node.attributes:
            if name not in self.attributes:
                known = ", ".join(self.attributes) or "none"
                ctx.invalid(f"attribute {name} does not exist", f"the operator has {known}")
        for name, required in self.attributes.items():
            if required and ctx.attribute(name) is None:
                ctx.invalid(f"attribute {name} is missing", "the operator requires it")


def _check_input(ctx: NodeContext, index: int, formal: _Formal, bound: dict[str, str]) -> None:
    element, name = ctx.element(index), f"input {index} ({formal.name})"
    allowed = _CLASSES.get(formal.dtype, (formal.dtype,))
    if allowed is not None and element not in allowed:
        ctx.invalid(f"{name} is {element}", f"the operator takes {', '.join(allowed)}")
    if formal.dtype in _BOUND and bound.setdefault(formal.dtype, element) != element:
        ctx.invalid(f"{name} is {element}", f"it must be {bound[formal.dtype]}, as another input is")
    if formal.ranks is not None and ctx.rank(index) not in formal.ranks:
        ranks = " or ".join(map(str, formal.ranks))
        ctx.invalid(f"{name} has rank {ctx.rank(index)}", f"rank {ranks} is expected")


def contrib(operator: str, inputs: str, attributes: str = "", domain: str = DOMAIN) -> Callable[[Importer], Importer]:
    """Register a function as the importer of an operator, behind a check of the node by its signature."""
    signature = Signature.parse(inputs, attributes)

    def register(function: Importer) -> Importer:
        @wraps(function)
        def checked(ctx: NodeContext) -> Results:
            signature.check(ctx)
            return function(ctx)

        add(operator, checked, domain=domain)
        return function

    return register


def positive(ctx: NodeContext, name: str, default: int = 0) -> int:
    """An integer attribute that counts something. Raises InvalidModelError when it is below 1."""
    value = ctx.integer(name, default)
    if value < 1:
        ctx.invalid(f"{name} is {value}", "it must be positive")
    return value


def wide_type(text: str) -> str:
    """The element type to compute in: f32, or f64 for f64."""
    return "f64" if text == "f64" else "f32"
