"""Attributes that are records of numbers: dimension numbers, channels, aliases, and the accuracy asked of an op.

Each is a named tuple (the specification's names) inside an attribute that reads and prints StableHLO's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from gcomp.ir.enums import AccuracyModeAttr

T = TypeVar("T")


class DotDimensions(NamedTuple):
    """dot_general's four dimension lists (the specification's names)."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()

    def lhs_free(self, rank: int) -> list[int]:
        """The left operand's dims that are neither batching nor contracting."""
        return _others(rank, self.lhs_batching_dimensions, self.lhs_contracting_dimensions)

    def rhs_free(self, rank: int) -> list[int]:
        """The right operand's dims that are neither batching nor contracting."""
        return _others(rank, self.rhs_batching_dimensions, self.rhs_contracting_dimensions)

    def places(self, lhs_rank: int, rhs_rank: int) -> tuple[dict[int, int], dict[int, int]]:
        """Where each operand's dims stand in the result: batching ones, the left's free ones, the right's."""
        left, right = self.lhs_free(lhs_rank), self.rhs_free(rhs_rank)
        return (
            _positions((*self.lhs_batching_dimensions, *left), 0),
            _positions(self.rhs_batching_dimensions, 0)
            | _positions(right, len(self.lhs_batching_dimensions) + len(left)),
        )


def _others(rank: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [d for d in range(rank) if d not in batching and d not in contracting]


def _positions(dimensions: Sequence[int], first: int) -> dict[int, int]:
    return {d: first + i for i, d in enumerate(dimensions)}


class GatherDimensions(NamedTuple):
    """gather's dimension numbers (the specification's names)."""

    offset_dims: tuple[int, ...] = ()
    collapsed_slice_dims: tuple[int, ...] = ()
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    start_index_map: tuple[int, ...] = ()
    index_vector_dim: int = 0


class ScatterDimensions(NamedTuple):
    """scatter's dimension numbers (the specification's names)."""

    update_window_dims: tuple[int, ...] = ()
    inserted_window_dims: tuple[int, ...] = ()
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    scatter_dims_to_operand_dims: tuple[int, ...] = ()
    index_vector_dim: int = 0


class ConvDimensions(NamedTuple):
    """convolution's dimension numbers (the specification's names)."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    @classmethod
    def channels_last(cls, spatial: int) -> ConvDimensions:
        """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` for a number of spatial dimensions."""
        middle, kernel = tuple(range(1, spatial + 1)), tuple(range(spatial))
        return cls(0, spatial + 1, middle, spatial, spatial + 1, kernel, 0, spatial + 1, middle)


class DotAlgorithm(NamedTuple):
    """The precisions that a dot product is computed with; types are named by their texts (`tf32`)."""

    lhs_precision_type: str = "f32"
    rhs_precision_type: str = "f32"
    accumulation_type: str = "f32"
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class ResultAccuracy(NamedTuple):
    """The accuracy asked of a transcendental op; tolerances count only in mode TOLERANCE."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    mode: str = "DEFAULT"


class RaggedDotDimensions(NamedTuple):
    """ragged_dot's dimension lists (chlo's names)."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()
    lhs_ragged_dimensions: tuple[int, ...] = ()
    rhs_group_dimensions: tuple[int, ...] = ()


class ChannelHandle(NamedTuple):
    """A collective's channel."""

    handle: int = 0
    type: int = 0


class OutputOperandAlias(NamedTuple):
    """Which operand of a custom call an output shares memory with."""

    output_tuple_indices: tuple[int, ...] = ()
    operand_index: int = 0
    operand_tuple_indices: tuple[int, ...] = ()


def parse_integers(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def _parse_value(parser: AttrParser, default: Any) -> Any:
    """Parse a value of the type that `default` has."""
    match default:
        case bool():
            return parser.parse_boolean()
        case int():
            return parser.parse_integer()
        case float():
            return float(parser.parse_number())
        case str():
            return parser.parse_identifier()
        case _:
            return parse_integers(parser)


def _value_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return str(list(cast("tuple[int, ...]", value)))
        case float():
            mantissa, _, exponent = repr(value).partition("e")
            return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{f'e{exponent}' if exponent else ''}"
        case _:
            return str(value)


class StructAttr(Data[T]):
    """An attribute `<key = [1, 2], key = 3>` whose value is a named tuple; `always` keys print even when default."""

    struct: ClassVar[Any]
    always: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        defaults: dict[str, Any] = cls.struct._field_defaults
        found: dict[str, Any] = {}

        def entry() -> None:
            key = parser.parse_identifier()
            if key not in defaults or key in found:
                parser.raise_error(f"unexpected key {key!r} in #{cls.name}")
            parser.parse_punctuation("=")
            found[key] = cls.parse_entry(parser, key, defaults[key])

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
        return cls.struct(**found)

    def print_parameter(self, printer: Printer) -> None:
        value = cast(Any, self.data)
        keys = [k for k, d in value._field_defaults.items() if k in self.always or getattr(value, k) != d]
        texts = [f"{k} = {self.entry_text(k, getattr(value, k))}" for k in keys]
        printer.print_string(f"<{', '.join(texts)}>")

    @classmethod
    def parse_entry(cls, parser: AttrParser, key: str, default: Any) -> Any:
        """Parse the value of one key."""
        return _parse_value(parser, default)

    @classmethod
    def entry_text(cls, key: str, value: Any) -> str:
        """The text that `parse_entry` reads."""
        return _value_text(value)


@irdl_attr_definition
class DotDimensionNumbers(StructAttr[DotDimensions]):
    name = "stablehlo.dot"
    struct = DotDimensions


@irdl_attr_definition
class GatherDimensionNumbers(StructAttr[GatherDimensions]):
    name = "stablehlo.gather"
    struct = GatherDimensions


@irdl_attr_definition
class ScatterDimensionNumbers(StructAttr[ScatterDimensions]):
    name = "stablehlo.scatter"
    struct = ScatterDimensions


@irdl_attr_definition
class ChannelHandleAttr(StructAttr[ChannelHandle]):
    name = "stablehlo.channel_handle"
    struct = ChannelHandle
    always = ("handle", "type")


@irdl_attr_definition
class OutputOperandAliasAttr(StructAttr[OutputOperandAlias]):
    name = "stablehlo.output_operand_alias"
    struct = OutputOperandAlias
    always = ("output_tuple_indices", "operand_index", "operand_tuple_indices")


@irdl_attr_definition
class DotAlgorithmAttr(StructAttr[DotAlgorithm]):
    name = "stablehlo.dot_algorithm"
    struct = DotAlgorithm
    always = DotAlgorithm._fields

    def verify(self) -> None:
        d = self.data
        if min(d.lhs_component_count, d.rhs_component_count, d.num_primitive_operations) < 1:
            raise VerifyException("a dot algorithm's counts are not positive")


@irdl_attr_definition
class ResultAccuracyAttr(StructAttr[ResultAccuracy]):
    name = "stablehlo.result_accuracy"
    struct = ResultAccuracy
    always = ("mode",)

    def verify(self) -> None:
        if self.data.mode != "TOLERANCE" and (self.data.atol or self.data.rtol or self.data.ulps):
            raise VerifyException(f"an accuracy of mode {self.data.mode} has no tolerances")

    @classmethod
    def parse_entry(cls, parser: AttrParser, key: str, default: Any) -> Any:
        if key != "mode":
            return _parse_value(parser, default)
        mode = parser.parse_attribute()
        if not isinstance(mode, AccuracyModeAttr):
            parser.raise_error("expected #stablehlo.result_accuracy_mode<...>")
        return mode.data

    @classmethod
    def entry_text(cls, key: str, value: Any) -> str:
        return f"#stablehlo.result_accuracy_mode<{value}>" if key == "mode" else _value_text(value)


@irdl_attr_definition
class RaggedDotDimensionNumbers(StructAttr[RaggedDotDimensions]):
    name = "chlo.ragged_dot"
    struct = RaggedDotDimensions


@irdl_attr_definition
class ConvDimensionNumbers(Data[ConvDimensions]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`."""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvDimensions:
        with parser.in_angle_brackets():
            return parse_conv_dimensions(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{conv_dimensions_text(self.data)}>")


def _conv_group(parser: AttrParser, letters: tuple[str, str]) -> tuple[int, int, tuple[int, ...]]:
    """Parse `[b, 0, 1, f]`: the positions of the two letters, and of the spatial dimensions in order."""

    def item() -> str:
        if (number := parser.parse_optional_integer(allow_negative=False)) is not None:
            return str(number)
        return parser.parse_identifier()

    items = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item)
    spatial = [str(i) for i in range(len(items) - 2)]
    if sorted(items) != sorted([*letters, *spatial]):
        parser.raise_error(f"convolution dimensions {items} need {', '.join([*letters, *spatial])} once each")
    return items.index(letters[0]), items.index(letters[1]), tuple(items.index(s) for s in spatial)


def parse_conv_dimensions(parser: AttrParser) -> ConvDimensions:
    """Parse `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    lhs = _conv_group(parser, ("b", "f"))
    parser.parse_characters("x")
    kernel = _conv_group(parser, ("i", "o"))
    parser.parse_punctuation("->")
    return ConvDimensions(*lhs, *kernel, *_conv_group(parser, ("b", "f")))


def conv_dimensions_text(d: ConvDimensions) -> str:
    """The text that `parse_conv_dimensions` reads."""

    def group(first: int, second: int, spatial: Sequence[int], letters: str) -> str:
        items = {first: letters[0], second: letters[1], **{p: str(i) for i, p in enumerate(spatial)}}
        return f"[{', '.join(items[i] for i in sorted(items))}]"

    lhs = group(d.input_batch_dimension, d.input_feature_dimension, d.input_spatial_dimensions, "bf")
    kernel = group(
        d.kernel_input_feature_dimension, d.kernel_output_feature_dimension, d.kernel_spatial_dimensions, "io"
    )
    out = group(d.output_batch_dimension, d.output_feature_dimension, d.output_spatial_dimensions, "bf")
    return f"{lhs}x{kernel}->{out}"
