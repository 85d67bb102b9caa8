"""Strides, gaps and windows that may be any number: the IR has known ones only, of which a proof would be none for all.

An unknown number is a symbolic size in an attribute of its own, which the driver's matcher hands to a rule's functions
like any other value. Ops that have one infer nothing; what their results are is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.ir import Attribute, Data, Operation, Region, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.types import shape_of, with_shape

WINDOW = ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations")
NUMBERS = ("strides", "interior_padding", *WINDOW)
"""The properties that hold numbers which only the prover takes for unknown."""


@irdl_attr_definition
class Unknown(Data[tuple[Any, ...]]):
    """Numbers, or pairs of them, of which some are symbols. It is never text."""

    name = "prove.unknown"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Any, ...]:
        parser.raise_error("unknown numbers have no text")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


def are_unknown(properties: Mapping[str, Any]) -> bool:
    """Whether some of an op's plain properties are unknown numbers."""
    return any(_has_symbol(properties.get(name)) for name in NUMBERS)


def _has_symbol(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_symbol, cast("Sequence[Any]", value)))
    return isinstance(value, Dim)


def is_unknown(op: Operation) -> bool:
    """Whether an op has unknown numbers."""
    return any(isinstance(attribute, Unknown) for attribute in op.properties.values())


def slice_sizes(shape: Sequence[Size], starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[Size]
                ) -> list[Size]:  # fmt: skip
    """The sizes of a slice."""
    return [dims.ceildiv(b - a, s) for a, b, s in zip(starts, limits, strides, strict=True)]


def pad_sizes(shape: Sequence[Size], lows: Sequence[Size], highs: Sequence[Size], gaps: Sequence[Size]) -> list[Size]:
    """The sizes of a padded tensor."""
    return [
        low + size + (dims.dmax(size - 1, 0) * gap if gap != 0 else 0) + high
        for size, low, high, gap in zip(shape, lows, highs, gaps, strict=True)
    ]


def window_sizes(shape: Sequence[Size], *window: Sequence[Any]) -> list[Size]:
    """The sizes of a fold over windows, by the properties of `WINDOW`."""
    return [window_size(*numbers) for numbers in zip(shape, *window, strict=True)]


_SIZES: Mapping[type[GraphOp], tuple[Callable[..., list[Size]], tuple[str, ...]]] = {
    hlo.SliceOp: (slice_sizes, ("start_indices", "limit_indices", "strides")),
    hlo.PadOp: (pad_sizes, ("edge_padding_low", "edge_padding_high", "interior_padding")),
    hlo.ReduceWindowOp: (window_sizes, WINDOW),
}
"""Op -> the sizes of its result, and the properties that they depend on."""


class UnknownBuilder(Builder):
    """Builds ops with unknown numbers too."""

    def emit(self, op: type[GraphOp], *operands: SSAValue, types: Sequence[Attribute] | None = None,
             regions: Sequence[Region] = (), **properties: Any) -> SSAValue:  # fmt: skip
        if are_unknown(properties):
            if types is None:
                sizes, names = _SIZES[op]
                shape = sizes(shape_of(operands[0]), *[properties[name] for name in names])
                types = (with_shape(operands[0], shape),)
            properties |= {n: Unknown(tuple(properties[n])) for n in NUMBERS if n in properties}
        return super().emit(op, *operands, types=types, regions=regions, **properties)
