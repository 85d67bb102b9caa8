"""StableHLO's attributes, and the two-way bridge between attributes and plain Python values.

`encode(name, value)` makes the attribute of a property from its name (StableHLO uses each name for one kind of value
throughout), `decode(attribute)` gives back ints, tuples, strings and named tuples: what the reference functions take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from xdsl.dialects import builtin as bi
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Data

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.enums import (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    FftTypeAttr,
    PrecisionAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    TransposeAttr,
)
from gcomp.ir.structures import (
    ChannelHandle,
    ChannelHandleAttr,
    ConvDimensionNumbers,
    ConvDimensions,
    DotAlgorithm,
    DotAlgorithmAttr,
    DotDimensionNumbers,
    DotDimensions,
    GatherDimensionNumbers,
    GatherDimensions,
    OutputOperandAlias,
    OutputOperandAliasAttr,
    RaggedDotDimensionNumbers,
    RaggedDotDimensions,
    ResultAccuracy,
    ResultAccuracyAttr,
    ScatterDimensionNumbers,
    ScatterDimensions,
)
from gcomp.ir.types import tensor

# ---- Python values -> attributes -------------------------------------------------------------------------------


def sizes_attr(values: Sequence[Size]) -> Attribute:
    """Sizes as an attribute: `array<i64: ...>` when all are ints, else an array of dimension strings."""
    if all(isinstance(v, int) for v in values):
        return _i64_array(cast("Sequence[int]", values))
    return ArrayAttr([StringAttr(str(v)) for v in values])


def sizes_of(attr: Attribute) -> tuple[Size, ...]:
    """The sizes that `sizes_attr` wrote."""
    if isinstance(attr, ArrayAttr):
        return tuple(dims.parse(a.data) for a in cast("ArrayAttr[StringAttr]", attr).data)
    return cast("DenseArrayBase[Any]", attr).get_values()


def _i64_array(value: Sequence[int]) -> Attribute:
    return _i64_array_of(tuple(value))


@lru_cache(4096)
def _i64_array_of(value: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(bi.i64, list(value))


def _bool_array(value: Sequence[bool]) -> Attribute:
    return DenseArrayBase.from_list(bi.i1, list(value))


def _pairs(value: Sequence[Sequence[int]]) -> Attribute:
    return ElementsAttr.of(np.asarray(value, np.int64).reshape(-1, 2), tensor((len(value), 2), "i64"))


def _groups(value: Sequence[Sequence[int]]) -> Attribute:
    array = np.asarray(value, np.int64).reshape(len(value), -1)
    return ElementsAttr.of(array, tensor(array.shape, "i64"))


def _unit(value: bool) -> Attribute:
    return UnitAttr()


def _i64(value: int) -> Attribute:
    return IntegerAttr(int(value), bi.i64)  # NumPy's integers too


def _i32(value: int) -> Attribute:
    return IntegerAttr(int(value), bi.i32)


def _symbols(value: Sequence[str]) -> Attribute:
    return ArrayAttr([SymbolRefAttr(v) for v in value])


def _layouts(value: Sequence[Sequence[int]]) -> Attribute:
    return ArrayAttr([ElementsAttr.of(v, TensorType(bi.IndexType(), (len(v),))) for v in value])


def _aliases(value: Sequence[OutputOperandAlias]) -> Attribute:
    return ArrayAttr([OutputOperandAliasAttr(v) for v in value])


def _precisions(value: Sequence[str]) -> Attribute:
    return ArrayAttr([PrecisionAttr(v) for v in value])


SIZE_PROPERTIES = (
    "start_indices", "limit_indices", "slice_sizes", "edge_padding_low", "edge_padding_high", "broadcast_sizes",
    "fft_length",
)  # fmt: skip
"""The properties that hold sizes, and so may hold symbolic ones."""

ENCODERS: dict[str, Callable[[Any], Attribute]] = {
    **dict.fromkeys(SIZE_PROPERTIES, sizes_attr),
    **dict.fromkeys(
        ("strides", "interior_padding", "permutation", "dimensions", "broadcast_dimensions", "window_dimensions",
         "window_strides", "base_dilations", "window_dilations", "lhs_dilation", "rhs_dilation",
         "known_expanding_dimensions", "known_nonexpanding_dimensions"),
        _i64_array,
    ),
    "window_reversal": _bool_array,
    **dict.fromkeys(("padding", "source_target_pairs"), _pairs),
    **dict.fromkeys(
        ("iota_dimension", "dimension", "feature_index", "feature_group_count", "batch_group_count", "k", "dim",
         "scan_dim_size", "batch_dims", "all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension",
         "split_count"),
        _i64,
    ),
    **dict.fromkeys(("exponent_bits", "mantissa_bits", "index", "api_version"), _i32),
    **dict.fromkeys(
        ("is_stable", "indices_are_sorted", "unique_indices", "lower", "left_side", "unit_diagonal",
         "has_side_effect", "is_reverse", "is_associative", "is_host_transfer"),
        BoolAttr.from_bool,
    ),
    "version": _i32,
    "decomposition": SymbolRefAttr,
    "called_computations": _symbols,
    **dict.fromkeys(("operand_layouts", "result_layouts"), _layouts),
    "output_operand_aliases": _aliases,
    "replica_groups": _groups,
    "use_global_device_ids": _unit,
    "epsilon": lambda v: FloatAttr(v, bi.f32),
    "value": lambda v: v,
    "comparison_direction": ComparisonDirectionAttr,
    "compare_type": ComparisonTypeAttr,
    "precision_config": _precisions,
    "fft_type": FftTypeAttr,
    "transpose_a": TransposeAttr,
    "rng_distribution": RngDistributionAttr,
    "rng_algorithm": RngAlgorithmAttr,
}  # fmt: skip
"""Property name -> how a Python value of it becomes an attribute."""

_STRUCTS: dict[type, Callable[[Any], Attribute]] = {
    DotDimensions: DotDimensionNumbers,
    GatherDimensions: GatherDimensionNumbers,
    ScatterDimensions: ScatterDimensionNumbers,
    ConvDimensions: ConvDimensionNumbers,
    ChannelHandle: ChannelHandleAttr,
    OutputOperandAlias: OutputOperandAliasAttr,
    DotAlgorithm: DotAlgorithmAttr,
    ResultAccuracy: ResultAccuracyAttr,
    RaggedDotDimensions: RaggedDotDimensionNumbers,
    str: StringAttr,
    dict: DictionaryAttr,
}


def encode(name: str, value: Any) -> Attribute:
    """The attribute for the property `name`. Attributes pass through. KeyError for an unknown name and type."""
    if isinstance(value, Attribute):
        return value
    make = ENCODERS.get(name) or _STRUCTS[type(value)]
    return make(value)


# ---- attributes -> Python values -------------------------------------------------------------------------------


def decode(attr: Attribute) -> Any:
    """The plain Python value of an attribute: int, bool, float, str, tuple, named tuple; other attributes as such."""
    return _decoder(type(attr))(attr)


@cache
def _decoder(kind: type[Attribute]) -> Callable[[Any], Any]:
    """How attributes of a class are decoded. Looked up once: their `isinstance` takes longer than decoding."""
    return next((decoder for base, decoder in _DECODERS.items() if issubclass(kind, base)), _as_it_is)


def _as_it_is(attr: Attribute) -> Attribute:
    return attr


def _integer(attr: IntegerAttr[Any]) -> int | bool:
    return bool(attr.value.data) if attr.type == bi.i1 else attr.value.data


def _dense_array(attr: DenseArrayBase[Any]) -> tuple[Any, ...]:
    # An i1 of 1 comes back as -1.
    return tuple(map(bool, attr.get_values()) if attr.elt_type == bi.i1 else attr.get_values())


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in cast("list[Any]", value)) if isinstance(value, list) else value


_DECODERS: dict[type[Attribute], Callable[[Any], Any]] = {
    IntegerAttr: _integer,
    DenseArrayBase: _dense_array,
    FloatAttr: lambda attr: attr.value.data,
    ElementsAttr: lambda attr: _tuples(attr.array().tolist()),
    ArrayAttr: lambda attr: tuple(decode(a) for a in attr.data),
    Data: lambda attr: attr.data,
    DictionaryAttr: lambda attr: {k: decode(v) for k, v in attr.data.items()},
    SymbolRefAttr: lambda attr: attr.string_value(),
    StringAttr: lambda attr: attr.data,
}
"""Class -> the plain value of its attributes; the first that fits."""
