"""Programs that break one constraint each: indexing, run-time shapes, control flow and composites."""

from __future__ import annotations

from tests.support.samples import MODULES
from tests.support.samples.ops import ADD, CONV, GATHER, LESS, SCATTER, i64s, sample

from .broken_tensor_programs import HALF_ADD, Row, onto

GATHER_KEYS = (
    "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
    "index_vector_dim",
)  # fmt: skip
SCATTER_KEYS = (
    "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims", "index_vector_dim",
)  # fmt: skip
ROWS = GATHER.format("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1")
CONV_TYPE = "1x8x8x3xf32, 3x3x3x4xf32, {} -> 1x?x?x4xf32"


def numbers(keys: tuple[str, ...], text: str) -> str:
    """Dimension numbers from their values in order, separated by `|`."""
    *lists, index_vector_dim = text.split("|")
    entries = [f"{key} = [{values}]" for key, values in zip(keys[:-1], lists, strict=True)]
    return ", ".join([*entries, f"{keys[-1]} = {index_vector_dim}"])


def gather(type: str, text: str, *sizes: int) -> str:
    properties = f"{GATHER.format(numbers(GATHER_KEYS, text))}, slice_sizes = {i64s(*sizes)}"
    return sample("stablehlo.gather", type, properties)


def scatter(type: str, text: str, body: str = ADD) -> str:
    properties = SCATTER.format(numbers(SCATTER_KEYS, text))
    return sample("stablehlo.scatter", f"{type} -> {type.split(',')[0]}", properties, body)


def broken(name: str, old: str, new: str) -> str:
    """A program of `MODULES` with one piece of text replaced."""
    assert old in MODULES[name]
    return MODULES[name].replace(old, new)


PROGRAMS: list[tuple[str, str]] = [
    ("gather-I2", gather("4xf32, 2x1xf32 -> 2xf32", "|0|||0|1", 1)),
    ("gather-C1", gather("4x5xf32, 2x1xi32 -> 2xf32", "|0|||0|1", 1, 1)),
    ("gather-C2", gather("4xf32, 2x1xi32 -> 2xf32", "|0|||0|3", 1)),
    ("gather-C3", gather("4xf32, 2x2xi32 -> 2xf32", "|0|||0|1", 1)),
    ("gather-C4", gather("4x5xf32, 2x1xi32 -> 2xf32", "2,1||||0|1", 1, 1)),
    ("gather-C5", gather("4x5xf32, 2x1xi32 -> 2xf32", "2|0|||0|1", 1, 1)),
    ("gather-C6", gather("4x5xf32, 2x1xi32 -> 2xf32", "|0,0|||0|1", 1, 1)),
    ("gather-C7", gather("4x5xf32, 2x1xi32 -> 2xf32", "|1,0|||0|1", 1, 1)),
    ("gather-C8", gather("4x5xf32, 2x1xi32 -> 2xf32", "1|2|||0|1", 1, 1)),
    ("gather-C9", gather("4x5xf32, 2x1xi32 -> 2xf32", "1|0|||0|1", 2, 1)),
    ("gather-C16", gather("4xf32, 2x1xi32 -> 2xf32", "||0|||2", 1)),
    ("gather-C19", gather("4xf32, 2x1xi32 -> 2xf32", "|0|||1|1", 1)),
    ("gather-C20", gather("4xf32, 2x1xi32 -> 2xf32", "|0|||0|1", 1, 1)),
    ("gather-C21", gather("4x5xf32, 2x1xi32 -> 2x6xf32", "1|0|||0|1", 1, 6)),
    ("gather-C", gather("4xf32, 2x1xi32 -> 3xf32", "|0|||0|1", 1)),
    ("gather-C11", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "2|1|3|0|1|2", 1, 1, 5)),
    ("gather-C12", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "2|1|0|0|1|2", 2, 1, 5)),
    ("gather-C13", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "2||0,1|0,0|2|2", 1, 1, 5)),
    ("gather-C14", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "1|1|0|2|1|1", 1, 1, 5)),
    ("gather-C15", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "1|1|0|0|1|0", 1, 1, 5)),
    ("gather-C17", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "2|1|0|1|1|2", 1, 1, 5)),
    ("gather-C18", gather("3x4x5xf32, 3x2xi64 -> 3x2x5xf32", "2|1|0|0|0|2", 1, 1, 5)),
    ("scatter-I2", scatter("4xf32, 2x1xf32, 2xf32", "|0|||0|1")),
    ("scatter-C2", scatter("4x5xf32, 2x1xi32, 2xf32", "|0|||0|1")),
    ("scatter-C4", scatter("4xf32, 2x1xi32, 3xf32", "|0|||0|1")),
    ("scatter-C4", scatter("4x5xf32, 2x1xi32, 2x6xf32", "1|0|||0|1")),
    ("scatter-C6", scatter("4xf32, 2x1xi32, 2xf64", "|0|||0|1")),
    ("scatter-C7", scatter("4x5xf32, 2x1xi32, 2x1x1xf32", "2,1||||0|1")),
    ("scatter-C8", scatter("4x5xf32, 2x1xi32, 2x5xf32", "2|0|||0|1")),
    ("scatter-C9", scatter("4x5xf32, 2x1xi32, 2xf32", "|0,0|||0|1")),
    ("scatter-C10", scatter("4x5xf32, 2x1xi32, 2xf32", "|1,0|||0|1")),
    ("scatter-C11", scatter("4xf32, 2x1xi32, 2xf32", "|1|||0|1")),
    ("scatter-C17", scatter("4xf32, 2x1xi32, 2x1xf32", "||0|||2")),
    ("scatter-C19", scatter("4xf32, 2x2xi32, 2xf32", "|0|||0|1")),
    ("scatter-C20", scatter("4x5xf32, 2x2xi32, 2xf32", "|0,1|||0,0|1")),
    ("scatter-C21", scatter("4xf32, 2x1xi32, 2xf32", "|0|||1|1")),
    ("scatter-C22", scatter("4xf32, 2x1xi32, 2xf32", "|0|||0|3")),
    ("scatter-C23", scatter("4xf32, 2x1xi32, 2xf32", "|0|||0|1", LESS)),
    ("scatter-C23", scatter("4xf32, 2x1xi32, 2xf32", "|0|||0|1", HALF_ADD)),
    ("scatter-C13", scatter("3x4x5xf32, 3x2xi64, 3x2x5xf32", "2|1|3|0|1|2")),
    ("scatter-C14", scatter("3x4x5xf32, 3x2xi64, 3x2x5xf32", "2||0,1|0,0|2|2")),
    ("scatter-C15", scatter("3x4x5xf32, 3x2xi64, 3x2x5xf32", "2|1|0|2|1|1")),
    ("scatter-C16", scatter("3x4x5xf32, 3x2xi64, 3x2x5xf32", "2|1|0|0|1|0")),
    ("scatter-C18", scatter("3x4x5xf32, 3x2xi64, 3x2x5xf32", "2|1|0|1|1|2")),
    ("if-I1", broken("stablehlo.if", "i1", "i32")),
    ("if-C1", broken("stablehlo.if", "(%p) ({", "(%p) ({\n  ^bb0(%arg: tensor<f32>):")),
    (
        "if-C2",
        broken(
            "stablehlo.if",
            '"stablehlo.return"(%x, %t) : (tensor<2xf32>, !stablehlo.token) -> ()',
            '"stablehlo.return"(%x) : (tensor<2xf32>) -> ()',
        ),
    ),
    ("case-I1", broken("stablehlo.case", "i32", "i64")),
    ("case-C1", 'func.func @main(%i: tensor<i32>) { "stablehlo.case"(%i) : (tensor<i32>) -> () func.return }'),
    ("case-C2", broken("stablehlo.case", "(%i) ({", "(%i) ({\n  ^bb0(%arg: tensor<f32>):")),
    (
        "case-C3",
        broken(
            "stablehlo.case",
            '"stablehlo.return"(%n) : (tensor<2xf32>) -> ()',
            '"stablehlo.return"(%i) : (tensor<i32>) -> ()',
        ),
    ),
    (
        "while-C1",
        broken(
            "stablehlo.while",
            '"stablehlo.return"(%c) : (tensor<i1>) -> ()',
            '"stablehlo.return"(%n) : (tensor<i32>) -> ()',
        ),
    ),
    (
        "while-C1",
        broken(
            "stablehlo.while",
            "({\n  ^bb0(%a: tensor<i32>, %b: tensor<3xf32>):\n    %n",
            "({\n  ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):\n    %n",
        ),
    ),
    (
        "while-C2",
        broken(
            "stablehlo.while",
            '"stablehlo.return"(%s, %m) : (tensor<i32>, tensor<3xf32>) -> ()',
            '"stablehlo.return"(%s) : (tensor<i32>) -> ()',
        ),
    ),
    (
        "while-C",
        broken(
            "stablehlo.while",
            "(tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)",
            "(tensor<i32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)",
        ),
    ),
    ("get_tuple_element-C1", broken("stablehlo.tuple", "index = 0", "index = 3")),
    ("get_tuple_element-C", broken("stablehlo.tuple", "index = 0", "index = 1")),
    ("tuple-C", 'func.func @main() { %r = "stablehlo.tuple"() : () -> tuple<tensor<f32>> func.return }'),
    ("composite-C1", broken("stablehlo.composite", "my.op", "my_op")),
    ("composite-C2", broken("stablehlo.composite", "@impl(", "@other(")),
    (
        "composite-C3",
        broken(
            "stablehlo.composite",
            "@impl(%x: tensor<2xf32>) -> tensor<2xf32> {",
            "@impl(%y: tensor<3xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {",
        ),
    ),
    (
        "composite-C4",
        broken(
            "stablehlo.composite",
            "@impl(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>",
            "@impl(%x: tensor<2xf32>) {\n  func.return",
        ),
    ),
    ("scan-C1", broken("chlo.scan", "dimension = 0", "dimension = 2")),
    (
        "scan-C4",
        broken(
            "chlo.scan",
            '"stablehlo.return"(%s, %s) : (tensor<3xf32>, tensor<3xf32>) -> ()',
            '"stablehlo.return"(%s) : (tensor<3xf32>) -> ()',
        ),
    ),
]

STABLEHLO: list[Row] = [
    ("dynamic_gather-I2", "4x5xf32, 2x1xf32, 2xi64 -> 2x5xf32", ROWS),
    ("dynamic_gather-C3", "4x5xf32, 2x2xi32, 2xi64 -> 2x5xf32", ROWS),
    ("dynamic_gather-C11", "4x5xf32, 2x1xi32, 3xi64 -> 2x5xf32", ROWS),
    ("dynamic_gather-C13", "4x5xf32, 2x1xi32, 2xi64 -> 3x5xf32", ROWS),
    ("dynamic_slice-I2", "4xf32, f32 -> 2xf32", f"slice_sizes = {i64s(2)}"),
    ("dynamic_slice-C2", "4xf32, i32, i32 -> 2xf32", f"slice_sizes = {i64s(2)}"),
    ("dynamic_slice-C3", "4x4xf32, i32, i64 -> 2x2xf32", f"slice_sizes = {i64s(2, 2)}"),
    ("dynamic_slice-C4", "4xf32, i32 -> 5xf32", f"slice_sizes = {i64s(5)}"),
    ("dynamic_slice-C", "4xf32, i32 -> 3xf32", f"slice_sizes = {i64s(2)}"),
    ("dynamic_update_slice-C2", "4xf32, 2xf64, i32 -> 4xf32"),
    ("dynamic_update_slice-C3", "4xf32, 2x2xf32, i32 -> 4xf32"),
    ("dynamic_update_slice-C4", "4xf32, 2xf32, i32, i32 -> 4xf32"),
    ("dynamic_update_slice-C5", "4x4xf32, 2x2xf32, i32, i64 -> 4x4xf32"),
    ("dynamic_update_slice-C6", "4xf32, 5xf32, i32 -> 4xf32"),
    ("dynamic_broadcast_in_dim-C1", "3xf32, 2xi64 -> ?x?xf64", onto(1)),
    ("dynamic_broadcast_in_dim-C2", "3xf32, 2xi64 -> ?x?xf32", onto()),
    ("dynamic_broadcast_in_dim-C3", "3xf32, 2xi64 -> ?x?xf32", onto(2)),
    ("dynamic_broadcast_in_dim-C4", "3x3xf32, 2xi64 -> ?x?xf32", onto(1, 1)),
    ("dynamic_broadcast_in_dim-C5", "3xf32, 2xi64 -> ?x4xf32", onto(1)),
    ("dynamic_broadcast_in_dim-C7", "3xf32, 3xi64 -> ?x?xf32", onto(1)),
    (
        "dynamic_broadcast_in_dim-C8",
        "3xf32, 2xi64 -> ?x?xf32",
        f"{onto(1)}, known_expanding_dimensions = {i64s(0)}, known_nonexpanding_dimensions = {i64s(0)}",
    ),
    (
        "dynamic_broadcast_in_dim-C9",
        "3xf32, 2xi64 -> ?x?xf32",
        f"{onto(1)}, known_expanding_dimensions = {i64s(1)}",
    ),
    ("dynamic_conv-C4", CONV_TYPE.format("2xi64"), CONV.format(1, 1)),
    ("dynamic_conv-C2", CONV_TYPE.format("2x2xi64"), f"{CONV.format(1, 1)}, window_strides = {i64s(1)}"),
    ("dynamic_conv-C11", CONV_TYPE.format("2x2xi64"), CONV.format(1, 2)),
    ("dynamic_iota-C1", "2xi64 -> ?x?xf32", "iota_dimension = 2 : i64"),
    ("dynamic_iota-C2", "3xi64 -> ?x?xf32", "iota_dimension = 1 : i64"),
    ("dynamic_pad-C1", "4xf32, f64, 1xi64, 1xi64, 1xi64 -> ?xf32"),
    ("dynamic_pad-C2", "4xf32, f32, 2xi64, 2xi64, 2xi64 -> ?xf32"),
    ("dynamic_reshape-C1", "4xf32, 1xi64 -> ?xf64"),
    ("dynamic_reshape-C2", "4xf32, 1xi64 -> 5xf32"),
    ("dynamic_reshape-C4", "4xf32, 2xi64 -> ?xf32"),
    ("real_dynamic_slice-C1", "4xf32, 1xi64, 1xi64, 1xi64 -> ?xf64"),
    ("real_dynamic_slice-C2", "4xf32, 2xi64, 2xi64, 2xi64 -> ?xf32"),
    ("get_dimension_size-C1", "4xf32 -> i32", "dimension = 1 : i64"),
    ("get_dimension_size-C", "4xf32 -> i64", "dimension = 0 : i64"),
    ("set_dimension_size-C1", "4xf32, i32 -> ?xf32", "dimension = 1 : i64"),
    ("set_dimension_size-I2", "4xf32, i64 -> ?xf32", "dimension = 0 : i64"),
    ("broadcast-C", "3xf32 -> 3x2xf32", f"broadcast_sizes = {i64s(2)}"),
]
