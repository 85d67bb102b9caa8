"""Contractions: dot_general and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_float
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.enums import PrecisionAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.structures import (
    ConvDimensionNumbers,
    ConvDimensions,
    DotAlgorithmAttr,
    DotDimensionNumbers,
    DotDimensions,
    conv_dimensions_text,
    parse_conv_dimensions,
    parse_integers,
)
from gcomp.ir.types import dtype_text, element_of, rank_of, same_shape, same_size, shape_of


@irdl_op_definition
class DotGeneralOp(GraphOp):
    """Sum of products over the contracting dimensions: batch, then lhs free, then rhs free dimensions.

    The result's element type is declared (the accumulation type may be wider than the operands').
    """

    name = "stablehlo.dot_general"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    dot_dimension_numbers = prop_def(DotDimensionNumbers)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    algorithm = opt_prop_def(DotAlgorithmAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @property
    def dimensions(self) -> DotDimensions:
        """The four dimension lists."""
        return self.dot_dimension_numbers.data

    def result_shape(self) -> tuple[Size, ...]:
        """Batch dimensions, then the lhs's free ones, then the rhs's."""
        lhs, rhs, d = shape_of(self.lhs), shape_of(self.rhs), self.dimensions
        used_l = {*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions}
        used_r = {*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions}
        batch = [lhs[i] for i in d.lhs_batching_dimensions]
        free_l = [s for i, s in enumerate(lhs) if i not in used_l]
        free_r = [s for i, s in enumerate(rhs) if i not in used_r]
        return (*batch, *free_l, *free_r)

    def check(self) -> None:
        d, lhs, rhs = self.dimensions, shape_of(self.lhs), shape_of(self.rhs)
        pairs = (
            ("C1", "C9", d.lhs_batching_dimensions, d.rhs_batching_dimensions),
            ("C2", "C10", d.lhs_contracting_dimensions, d.rhs_contracting_dimensions),
        )
        for count, _, left, right in pairs:
            if len(left) != len(right):
                self.fail(count, f"dimensions {list(left)} and {list(right)} differ in number")
        for constraint, used, rank in (
            ("C3", d.lhs_batching_dimensions + d.lhs_contracting_dimensions, len(lhs)),
            ("C4", d.rhs_batching_dimensions + d.rhs_contracting_dimensions, len(rhs)),
        ):
            if len(set(used)) != len(used) or not all(0 <= u < rank for u in used):
                self.fail(constraint, f"{list(used)} are not distinct dimensions of rank {rank}")
        for _, size, left, right in pairs:
            for i, j in zip(left, right, strict=True):
                if not same_size(lhs[i], rhs[j]):
                    self.fail(size, f"sizes {lhs[i]} and {rhs[j]} differ")
        check_precisions(self, "C11")
        check_kind(self, "C13", (self.lhs, self.rhs))
        if not same_shape(self.result_shape(), shape_of(self.result)):
            self.fail("C12", f"the result's shape is {shape_of(self.result)}, expected {self.result_shape()}")

    @classmethod
    def parse(cls, parser: Parser) -> DotGeneralOp:
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        found: dict[str, Any] = {"batching_dims": ((), ()), "contracting_dims": ((), ())}
        properties: dict[str, Any] = {}
        while True:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            if key == "precision":
                properties["precision_config"] = ArrayAttr(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE, lambda: PrecisionAttr(PrecisionAttr.parse_word(parser))
                    )
                )
            elif key == "algorithm":
                properties["algorithm"] = DotAlgorithmAttr(DotAlgorithmAttr.parse_parameter(parser))
            elif key in found:
                left = parse_integers(parser)
                parser.parse_keyword("x")
                found[key] = (left, parse_integers(parser))
            else:
                parser.raise_error(f"unexpected {key!r} in dot_general")
            if parser.parse_optional_punctuation(",") is None:
                break
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands([lhs, rhs], type.inputs.data, position)
        numbers = DotDimensions(*found["batching_dims"], *found["contracting_dims"])
        op = cls.of(*operands, types=type.outputs.data, dot_dimension_numbers=numbers, **properties)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        d = self.dimensions
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if d.lhs_batching_dimensions or d.rhs_batching_dimensions:
            printer.print_string(
                f", batching_dims = {list(d.lhs_batching_dimensions)} x {list(d.rhs_batching_dimensions)}"
            )
        printer.print_string(
            f", contracting_dims = {list(d.lhs_contracting_dimensions)} x {list(d.rhs_contracting_dimensions)}"
        )
        if self.precision_config is not None:
            printer.print_string(f", precision = [{', '.join(self.value('precision_config'))}]")
        if self.algorithm is not None:
            printer.print_string(", algorithm = ")
            self.algorithm.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


_WINDOW = {"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation",
           "rhs_dilate": "rhs_dilation", "reverse": "window_reversal"}  # fmt: skip


def check_precisions(op: GraphOp, constraint: str) -> None:
    """Refuse more than one precision for each of the two operands."""
    if len(op.value("precision_config") or ()) > 2:
        op.fail(constraint, "there are more than two precisions")


def check_kind(op: GraphOp, constraint: str, operands: Sequence[SSAValue]) -> None:
    """Refuse a result of a kind that has no place for what sums of products have: fractions, or imaginary parts.

    jaxlib's verifier takes them, JAX makes none, and each backend rounds in another way.
    """
    result = dtype_text(element_of(op.results[0]))
    for operand in operands:
        given = dtype_text(element_of(operand))
        if (is_complex(given) and not is_complex(result)) or (
            is_float(given) and not (is_float(result) or is_complex(result))
        ):
            op.fail(constraint, f"products of {given} have no place in a result of {result}")


def check_conv_dimensions(op: GraphOp, d: ConvDimensions, rank: int) -> None:
    """C12, C13, C17 to C20: each list names every dimension once."""
    for count, distinct, spatial, others in (
        ("C12", "C13", d.input_spatial_dimensions, (d.input_batch_dimension, d.input_feature_dimension)),
        ("C17", "C18", d.kernel_spatial_dimensions,
         (d.kernel_input_feature_dimension, d.kernel_output_feature_dimension)),
        ("C19", "C20", d.output_spatial_dimensions, (d.output_batch_dimension, d.output_feature_dimension)),
    ):  # fmt: skip
        if len(spatial) != rank - 2:
            op.fail(count, f"{len(spatial)} spatial dimensions for rank {rank}")
        if sorted((*spatial, *others)) != list(range(rank)):
            op.fail(distinct, f"{[*others, *spatial]} are not the {rank} dimensions, each once")


BYTES = ("ui8", "i8")
"""What processors multiply beside equal types, unsigned bytes by signed ones. Dots may have any two types; convolutions
have these where passes for processors make them."""


def check_groups(op: GraphOp, d: ConvDimensions, x: SSAValue, kernel: SSAValue) -> None:
    """Refuse element types and group counts that do not fit the operands of a convolution."""
    groups, batches = op.value("feature_group_count"), op.value("batch_group_count")
    lhs, rhs = shape_of(x), shape_of(kernel)
    if element_of(x) != element_of(kernel) and (dtype_text(x.type), dtype_text(kernel.type)) != BYTES:
        op.fail("C27", f"operands have types {x.type} and {kernel.type}")
    check_kind(op, "C27", (x, kernel))
    for constraint, count in (("C21", groups), ("C22", batches)):
        if count <= 0:
            op.fail(constraint, "a group count is not positive")
    if groups > 1 and batches > 1:
        op.fail("C23", "both group counts exceed 1")
    features, out = lhs[d.input_feature_dimension], rhs[d.kernel_output_feature_dimension]
    for constraint, size, count in (
        ("C10", lhs[d.input_batch_dimension], batches),
        ("C11", features, groups),
        ("C15", out, batches),
        ("C16", out, groups),
    ):
        if isinstance(size, int) and size % count:
            op.fail(constraint, f"size {size} is not divisible by the group count {count}")
    if not same_size(rhs[d.kernel_input_feature_dimension], dims.floordiv(features, groups)):
        op.fail("C14", f"the kernel takes {rhs[d.kernel_input_feature_dimension]} of {features} features")


@irdl_op_definition
class ConvolutionOp(GraphOp):
    """Dot products of windows of `lhs` with slices of `rhs`; the result's element type is declared."""

    name = "stablehlo.convolution"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    window_strides = opt_prop_def(DenseArrayBase)
    padding = opt_prop_def(ElementsAttr)
    lhs_dilation = opt_prop_def(DenseArrayBase)
    rhs_dilation = opt_prop_def(DenseArrayBase)
    window_reversal = opt_prop_def(DenseArrayBase)
    dimension_numbers = prop_def(ConvDimensionNumbers)
    feature_group_count = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    batch_group_count = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @property
    def dimensions(self) -> ConvDimensions:
        """The dimension numbers."""
        return self.dimension_numbers.data

    @property
    def is_channels_last(self) -> bool:
        """Whether its arrays are `[batch, space, features]`, and its kernel is `[space, in, out]`."""
        return self.dimensions == ConvDimensions.channels_last(len(self.dimensions.input_spatial_dimensions))

    @property
    def dilates_input(self) -> bool:
        """Whether zeros stand between the elements of its input."""
        return any(d != 1 for d in self.window()["lhs_dilation"])

    def window(self) -> dict[str, tuple[Any, ...]]:
        """Strides, padding pairs, dilations and reversal per spatial dimension, defaults filled in."""
        n = len(self.dimensions.input_spatial_dimensions)
        default = {"padding": ((0, 0),) * n, "window_reversal": (False,) * n}
        return {name: self.value(name) or default.get(name, (1,) * n) for name in _WINDOW.values()}

    def result_shape(self) -> tuple[Size, ...]:
        """The result's shape (C25 to C27)."""
        d, w = self.dimensions, self.window()
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        result: list[Size] = [0] * len(lhs)
        batch = lhs[d.input_batch_dimension]
        result[d.output_batch_dimension] = dims.floordiv(batch, self.value("batch_group_count"))
        result[d.output_feature_dimension] = rhs[d.kernel_output_feature_dimension]
        for i, (source, kernel, target) in enumerate(
            zip(
                d.input_spatial_dimensions,
                d.kernel_spatial_dimensions,
                d.output_spatial_dimensions,
                strict=True,
            )
        ):
            result[target] = window_size(
                lhs[source], rhs[kernel], w["window_strides"][i], w["padding"][i], w["lhs_dilation"][i],
                w["rhs_dilation"][i],
            )  # fmt: skip
        return tuple(result)

    def check(self) -> None:
        d, rank = self.dimensions, rank_of(self.lhs)
        if rank_of(self.rhs) != rank or rank < 2:
            self.fail("C1", "operands have different ranks, or rank below 2")
        spatial = rank - 2
        check_conv_dimensions(self, d, rank)
        for constraint, name in zip(("C2", "C4", "C5", "C7", "C9"), _WINDOW.values(), strict=True):
            values: Sequence[Any] = self.window()[name]
            if len(values) != spatial or (name == "padding" and any(len(pair) != 2 for pair in values)):
                self.fail(constraint, f"{name} needs one value for each of {spatial} spatial dimensions")
        for constraint, name in (("C3", "window_strides"), ("C6", "lhs_dilation"), ("C8", "rhs_dilation")):
            if any(v <= 0 for v in self.window()[name]):
                self.fail(constraint, f"{name} is not positive")
        check_groups(self, d, self.lhs, self.rhs)
        check_precisions(self, "C24")
        if not same_shape(self.result_shape(), shape_of(self.result)):
            self.fail("C25", f"the result's shape is {shape_of(self.result)}, expected {self.result_shape()}")

    @classmethod
    def parse(cls, parser: Parser) -> ConvolutionOp:
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dim_numbers")
        parser.parse_punctuation("=")
        numbers = ConvDimensionNumbers(parse_conv_dimensions(parser))
        parser.parse_punctuation(",")
        parser.parse_keyword("window")
        parser.parse_punctuation("=")
        properties: dict[str, Any] = {}

        def entry() -> None:
            key = parser.parse_identifier()
            if key not in _WINDOW:
                parser.raise_error(f"unexpected {key!r} in a convolution's window")
            parser.parse_punctuation("=")
            properties[_WINDOW[key]] = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, (lambda: parse_integers(parser)) if key == "pad" else parser.parse_integer
            )

        parser.parse_comma_separated_list(parser.Delimiter.BRACES, entry)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        values = parser.resolve_operands(operands, type.inputs.data, position)
        inherent: dict[str, Any] = {
            k: attributes.pop(k) for k in list(attributes) if k in cls.get_irdl_definition().properties
        }
        op = cls.of(*values, types=type.outputs.data, dimension_numbers=numbers, **properties, **inherent)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" dim_numbers = {conv_dimensions_text(self.dimensions)}, window = {{")
        given = {key: self.value(name) for key, name in _WINDOW.items() if name in self.properties}
        entries = [f"{key} = {_window_text(values)}" for key, values in given.items()]
        printer.print_string(f"{', '.join(entries)}}}")
        rest = ("batch_group_count", "feature_group_count", "precision_config")
        inherent = {k: self.properties[k] for k in rest if k in self.properties}
        printer.print_op_attributes({**inherent, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


def _window_text(values: Sequence[Any]) -> str:
    lists: list[Any] = [list(cast("tuple[int, ...]", v)) if isinstance(v, tuple) else v for v in values]
    return str(lists).replace("False", "false").replace("True", "true")


def dilated_size(size: Size, dilation: int) -> Size:
    """The size of a dimension with `dilation - 1` places between every two elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_size(
    size: Size, window: Size, stride: int, padding: Sequence[int], base_dilation: int, window_dilation: int
) -> Size:
    """How many windows fit a dilated and padded dimension (0 when the window does not)."""
    padded = dilated_size(size, base_dilation) + sum(padding)
    reach = (window - 1) * window_dilation + 1
    span = padded - reach
    if isinstance(span, int):
        return 0 if span < 0 or (isinstance(padded, int) and padded == 0) else span // stride + 1
    count = dims.floordiv(span, stride) + 1
    # Symbols are sizes, and so at least 0: `max(0, batch)` is `batch`.
    sizes = dims.Ranges({name: dims.Range(0) for name in dims.symbols_of(count)})
    return count if sizes.less_equal(0, count) else dims.dmax(0, count)
