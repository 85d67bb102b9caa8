"""Programs of one op each: its name, its type as `operands -> results`, its properties and its regions."""

from __future__ import annotations

from tests.support.samples.modules import MODULES

ADD = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%z) : (tensor<f32>) -> ()
})"""
FMA = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %p = "stablehlo.multiply"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %z = "stablehlo.add"(%p, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%z) : (tensor<f32>) -> ()
})"""
PAIR = """({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %m = "stablehlo.maximum"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %n = "stablehlo.minimum"(%b, %d) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%m, %n) : (tensor<f32>, tensor<i32>) -> ()
})"""
LESS = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}>
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%z) : (tensor<i1>) -> ()
})"""
LESS_PAIR = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<i32>, %v: tensor<i32>):
    %z = "stablehlo.compare"(%x, %y) <{compare_type = #stablehlo<comparison_type TOTALORDER>,
        comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%z) : (tensor<i1>) -> ()
})"""
SELECT_AND_SCATTER = f"{LESS[:-1]}, {ADD[1:]}"


def tensor_type(text: str) -> str:
    """A type from its shorthand: `2xf32`, `f32`, or a type in full that begins with `!`."""
    return text if text.startswith("!") else f"tensor<{text}>"


def sample(op: str, type: str, properties: str = "", regions: str = "") -> str:
    """A module whose function @main takes the op's operands and returns its results."""
    operands, results = ([tensor_type(t) for t in side.split(", ") if t] for side in type.split(" -> "))
    names = [f"%a{i}" for i in range(len(operands))]
    returned = [f"%r#{i}" for i in range(len(results))] if len(results) > 1 else ["%r"] * len(results)
    equals = f"%r:{len(results)} = " if len(results) > 1 else "%r = " if results else ""
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, operands, strict=True))
    signature = f"({', '.join(operands)}) -> ({', '.join(results)})"
    return f"""func.func @main({parameters}) -> ({", ".join(results)}) {{
  {equals}"{op}"({", ".join(names)}) {f"<{{{properties}}}>" if properties else ""} {regions} : {signature}
  func.return {", ".join(returned)} {": " + ", ".join(results) if results else ""}
}}
"""


def enum(name: str, word: str, dialect: str = "stablehlo") -> str:
    """An enumeration's attribute."""
    return f"#{dialect}<{name} {word}>"


def i64s(*values: int) -> str:
    """An array of integers."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _words(text: str) -> list[str]:
    return text.split()


FLOAT_UNARY = _words(
    "cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate "
    "round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh abs real imag"
)
COMPLEX_UNARY = _words("cbrt cosine exponential log logistic negate rsqrt sign sine sqrt tanh")
INTEGER_UNARY = _words("abs count_leading_zeros negate not popcnt sign")
FLOAT_BINARY = _words("add atan2 divide maximum minimum multiply power remainder subtract")
INTEGER_BINARY = _words(
    "add and divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract xor"
)
CHLO_FUNCTIONS = _words("acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh square tan")
CHLO_REAL_FUNCTIONS = _words("digamma erf erf_inv erfc lgamma")
CHLO_PREDICATES = _words("is_inf is_neg_inf is_pos_inf")
CHLO_BINARY = _words("next_after polygamma zeta")
CHLO_BROADCASTING = _words(
    "add divide maximum minimum multiply power remainder subtract atan2 next_after polygamma zeta"
)

CHLO_BROADCASTING_INTEGERS = _words("and or xor shift_left shift_right_arithmetic shift_right_logical")
ACCURACY = "#stablehlo.result_accuracy<{}mode = #stablehlo.result_accuracy_mode<{}>>"
CONV = (
    "batch_group_count = {} : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
    "feature_group_count = {} : i64"
)
GATHER = "dimension_numbers = #stablehlo.gather<{}>"
SCATTER = "scatter_dimension_numbers = #stablehlo.scatter<{}>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
DOT = "dot_dimension_numbers = #stablehlo.dot<{}>"
ALGORITHM = (
    "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, "
    "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
    "allow_imprecise_accumulation = false>"
)
PRECISION = "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]"
WINDOW = "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>"
RAGGED = (
    "ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], "
    "rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
)

_ELEMENTWISE: list[tuple[str, ...]] = [
    *((f"stablehlo.{op}", "2x3xf32 -> 2x3xf32") for op in FLOAT_UNARY),
    *((f"stablehlo.{op}", "2xcomplex<f32> -> 2xcomplex<f32>") for op in COMPLEX_UNARY),
    *((f"stablehlo.{op}", "3xi32 -> 3xi32") for op in INTEGER_UNARY),
    *((f"stablehlo.{op}", "2x3xf32, 2x3xf32 -> 2x3xf32") for op in FLOAT_BINARY),
    *((f"stablehlo.{op}", "3xui8, 3xui8 -> 3xui8") for op in INTEGER_BINARY),
    *((f"stablehlo.{op}", "3xi1, 3xi1 -> 3xi1") for op in ("add", "and", "maximum", "or", "xor")),
    *((f"stablehlo.{op}", "2xcomplex<f64> -> 2xf64") for op in ("abs", "real", "imag")),
    ("stablehlo.not", "3xi1 -> 3xi1"),
    ("stablehlo.is_finite", "2xbf16 -> 2xi1"),
    ("stablehlo.complex", "2xf32, 2xf32 -> 2xcomplex<f32>"),
    ("stablehlo.exponential", "2xf32 -> 2xf32", f"result_accuracy = {ACCURACY.format('', 'HIGHEST')}"),
    ("stablehlo.tanh", "2xf32 -> 2xf32", f"result_accuracy = {ACCURACY.format('atol = 0.5, ulps = 3, ', 'TOLERANCE')}"),
    ("stablehlo.compare", "3xf32, 3xf32 -> 3xi1", f"comparison_direction = {enum('comparison_direction', 'NE')}"),
    (
        "stablehlo.compare",
        "3xf32, 3xf32 -> 3xi1",
        f"comparison_direction = {enum('comparison_direction', 'GE')}, "
        f"compare_type = {enum('comparison_type', 'TOTALORDER')}",
    ),
    ("stablehlo.select", "i1, 3xf32, 3xf32 -> 3xf32"),
    ("stablehlo.select", "3xi1, 3xf32, 3xf32 -> 3xf32"),
    ("stablehlo.clamp", "f32, 3xf32, f32 -> 3xf32"),
    ("stablehlo.clamp", "3xi8, 3xi8, 3xi8 -> 3xi8"),
    ("stablehlo.convert", "3xf32 -> 3xf16"),
    ("stablehlo.convert", "3xi1 -> 3xi1"),
    ("stablehlo.convert", "3xf8E4M3FN -> 3xf4E2M1FN"),
    ("stablehlo.bitcast_convert", "3xf32 -> 3xi32"),
    ("stablehlo.bitcast_convert", "3xf32 -> 3x4xui8"),
    ("stablehlo.bitcast_convert", "3x2xi32 -> 3xf64"),
    ("stablehlo.reduce_precision", "3xf32 -> 3xf32", "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"),
]

_MOVEMENT: list[tuple[str, ...]] = [
    ("stablehlo.constant", " -> f32", "value = dense<1.500000e+00> : tensor<f32>"),
    ("stablehlo.constant", " -> 2xf32", "value = dense<[0x7FC00000, 0xFF800000]> : tensor<2xf32>"),
    ("stablehlo.constant", " -> 2x2xi1", "value = dense<[[true, false], [false, true]]> : tensor<2x2xi1>"),
    ("stablehlo.constant", " -> 1000000xf32", "value = dense<-0.000000e+00> : tensor<1000000xf32>"),
    ("stablehlo.constant", " -> 2xcomplex<f32>", "value = dense<[(1.0, -2.0), (0.5, 0.0)]> : tensor<2xcomplex<f32>>"),
    ("stablehlo.constant", " -> 0x3xi64", "value = dense<> : tensor<0x3xi64>"),
    ("stablehlo.constant", " -> 2xf8E4M3FN", "value = dense<[1.0, 4.48e+02]> : tensor<2xf8E4M3FN>"),
    ("stablehlo.constant", " -> 3xi4", "value = dense<[-8, 0, 7]> : tensor<3xi4>"),
    ("stablehlo.constant", " -> 2xui64", "value = dense<[0, 18446744073709551615]> : tensor<2xui64>"),
    ("stablehlo.iota", " -> 2x3xi32", "iota_dimension = 1 : i64"),
    ("stablehlo.broadcast_in_dim", "3xf32 -> 2x3xf32", f"broadcast_dimensions = {i64s(1)}"),
    ("stablehlo.broadcast_in_dim", "f32 -> 2xf32", f"broadcast_dimensions = {i64s()}"),
    ("stablehlo.concatenate", "2x1xf32, 2x3xf32 -> 2x4xf32", "dimension = 1 : i64"),
    ("stablehlo.concatenate", "2xf32 -> 2xf32", "dimension = 0 : i64"),
    (
        "stablehlo.pad",
        "4xf32, f32 -> 9xf32",
        f"edge_padding_low = {i64s(-1)}, edge_padding_high = {i64s(3)}, interior_padding = {i64s(1)}",
    ),
    ("stablehlo.reshape", "2x3xf32 -> 6xf32"),
    ("stablehlo.reverse", "2x3xf32 -> 2x3xf32", f"dimensions = {i64s(1)}"),
    (
        "stablehlo.slice",
        "8x6xf32 -> 2x4xf32",
        f"start_indices = {i64s(1, 0)}, limit_indices = {i64s(5, 4)}, strides = {i64s(2, 1)}",
    ),
    ("stablehlo.transpose", "2x3x4xf32 -> 4x2x3xf32", f"permutation = {i64s(2, 0, 1)}"),
]

_CONTRACTION: list[tuple[str, ...]] = [
    (
        "stablehlo.dot_general",
        "2x3x4xf32, 2x4x5xf32 -> 2x3x5xf32",
        DOT.format(
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
            "rhs_contracting_dimensions = [1]"
        ),
    ),
    (
        "stablehlo.dot_general",
        "3x4xi8, 4x5xi8 -> 3x5xi32",
        f"{DOT.format('lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]')}, {PRECISION}",
    ),
    (
        "stablehlo.dot_general",
        "3x4xf32, 4x5xf32 -> 3x5xf32",
        f"{ALGORITHM}, {DOT.format('lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]')}, "
        + PRECISION.replace("HIGHEST", "DEFAULT"),
    ),
    ("stablehlo.dot_general", "3xf32, 2xf32 -> 3x2xf32", DOT.format("")),
    ("stablehlo.convolution", "1x8x8x3xf32, 3x3x3x4xf32 -> 1x6x6x4xf32", CONV.format(1, 1)),
    (
        "stablehlo.convolution",
        "1x8x8x4xf32, 3x3x1x4xf32 -> 1x4x8x4xf32",
        f"{CONV.format(1, 4)}, padding = dense<1> : tensor<2x2xi64>, window_strides = {i64s(2, 1)}, "
        f"rhs_dilation = {i64s(1, 1)}, lhs_dilation = {i64s(1, 1)}, window_reversal = array<i1: false, true>, "
        f"{PRECISION}",
    ),
    (
        "stablehlo.convolution",
        "4x5x5x3xf32, 2x2x3x6xf32 -> 2x4x4x6xf32",
        CONV.format(2, 1),
    ),
    ("stablehlo.dot", "3x4xf32, 4x5xf32 -> 3x5xf32"),
    ("stablehlo.dot", "4xf32, 4xf32 -> f32", PRECISION),
    ("stablehlo.einsum", "3x4xf32, 4x5xf32 -> 3x5xf32", 'einsum_config = "ab,bc->ac"'),
    ("stablehlo.unary_einsum", "3x4xf32 -> 4x3xf32", 'einsum_config = "ab->ba"'),
    ("chlo.ragged_dot", "11x5xf32, 3x5x7xf32, 3xi64 -> 11x7xf32", RAGGED),
    (
        "chlo.ragged_dot",
        "11x5xf32, 3x5x7xf32, 3xi64 -> 11x7xf32",
        f"{RAGGED}, precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>]",
    ),
]

_REDUCTION: list[tuple[str, ...]] = [
    ("stablehlo.reduce", "2x3xf32, f32 -> 2xf32", f"dimensions = {i64s(1)}", ADD),
    ("stablehlo.reduce", "2x3xf32, f32 -> f32", f"dimensions = {i64s(0, 1)}", FMA),
    ("stablehlo.reduce", "2x3xf32, 2x3xi32, f32, i32 -> 3xf32, 3xi32", f"dimensions = {i64s(0)}", PAIR),
    ("stablehlo.reduce_window", "2x8xf32, f32 -> 2x4xf32", WINDOW, ADD),
    (
        "stablehlo.reduce_window",
        "2x8xf32, 2x8xi32, f32, i32 -> 2x9xf32, 2x9xi32",
        f"{WINDOW}, base_dilations = {i64s(1, 2)}, window_dilations = {i64s(1, 2)}, "
        "padding = dense<[[0, 0], [3, 2]]> : tensor<2x2xi64>",
        PAIR,
    ),
    ("stablehlo.select_and_scatter", "2x8xf32, 2x4xf32, f32 -> 2x8xf32", WINDOW, SELECT_AND_SCATTER),
    (
        "stablehlo.select_and_scatter",
        "2x6xf32, 2x4xf32, f32 -> 2x6xf32",
        f"{WINDOW}, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>",
        SELECT_AND_SCATTER,
    ),
    (
        "stablehlo.select_and_scatter",
        "2x7xf32, 2x3xf32, f32 -> 2x7xf32",
        f"window_dimensions = {i64s(1, 3)}, window_strides = {i64s(1, 2)}",
        SELECT_AND_SCATTER,
    ),
    ("stablehlo.map", "2x3xf32, 2x3xf32 -> 2x3xf32", f"dimensions = {i64s(0, 1)}", FMA),
    ("stablehlo.sort", "2x3xf32 -> 2x3xf32", "dimension = 1 : i64, is_stable = true", LESS),
    ("stablehlo.sort", "2x3xf32 -> 2x3xf32", "", LESS),
    ("stablehlo.sort", "3xf32, 3xi32 -> 3xf32, 3xi32", "dimension = -1 : i64", LESS_PAIR),
    ("chlo.top_k", "2x5xf32 -> 2x3xf32, 2x3xi32", "k = 3 : i64"),
]

_INDEXING: list[tuple[str, ...]] = [
    (
        "stablehlo.gather",
        "4x5xf32, 2x1xi32 -> 2x5xf32",
        GATHER.format("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1")
        + f", slice_sizes = {i64s(1, 5)}, indices_are_sorted = false",
    ),
    (
        "stablehlo.gather",
        "3x4x5xf32, 3x2xi64 -> 3x2x5xf32",
        GATHER.format(
            "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
        )
        + f", slice_sizes = {i64s(1, 1, 5)}",
    ),
    (
        "stablehlo.gather",
        "4x5xf32, 2x6xui8 -> 3x6x2xf32",
        GATHER.format("offset_dims = [0, 2], start_index_map = [0, 1]")
        + f", slice_sizes = {i64s(3, 2)}, indices_are_sorted = true",
    ),
    (
        "stablehlo.dynamic_gather",
        "4x5xf32, 2x1xi32, 2xi64 -> 2x5xf32",
        GATHER.format("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"),
    ),
    (
        "stablehlo.dynamic_gather",
        "?x5xf32, 2x1xi32, 2xi32 -> 2x?xf32",
        GATHER.format("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1")
        + ", indices_are_sorted = true",
    ),
    (
        "stablehlo.scatter",
        "4x5xf32, 2x1xi32, 2x5xf32 -> 4x5xf32",
        SCATTER.format(
            "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
            "index_vector_dim = 1"
        )
        + ", indices_are_sorted = true, unique_indices = false",
        ADD,
    ),
    (
        "stablehlo.scatter",
        "3x4x5xf32, 3x2xi64, 3x2x5xf32 -> 3x4x5xf32",
        SCATTER.format(
            "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
            "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2"
        ),
        ADD,
    ),
    (
        "stablehlo.scatter",
        "4x3x5xf32, 3x2xi64, 3x2x5xf32 -> 4x3x5xf32",
        SCATTER.format(
            "update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [1], "
            "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2"
        ),
        ADD,
    ),
    (
        "stablehlo.scatter",
        "5xf32, 5xi32, 1xi64, 2xf32, 2xi32 -> 5xf32, 5xi32",
        SCATTER.format("update_window_dims = [0], scatter_dims_to_operand_dims = [0]"),
        PAIR,
    ),
    ("stablehlo.dynamic_slice", "4x5xf32, i32, i32 -> 2x5xf32", f"slice_sizes = {i64s(2, 5)}"),
    ("stablehlo.dynamic_slice", "f32 -> f32", f"slice_sizes = {i64s()}"),
    ("stablehlo.dynamic_update_slice", "4x5xf32, 2x5xf32, i64, i64 -> 4x5xf32"),
    ("stablehlo.torch_index_select", "4x5xf32, 2x3xi32 -> 2x3x5xf32", "dim = 0 : i64, batch_dims = 0 : i64"),
]

_DYNAMIC: list[tuple[str, ...]] = [
    ("stablehlo.dynamic_broadcast_in_dim", "3xf32, 2xi64 -> ?x?xf32", f"broadcast_dimensions = {i64s(1)}"),
    (
        "stablehlo.dynamic_broadcast_in_dim",
        "?x1xf32, 2xindex -> ?x4xf32",
        f"broadcast_dimensions = {i64s(0, 1)}, known_expanding_dimensions = {i64s(1)}, "
        f"known_nonexpanding_dimensions = {i64s(0)}",
    ),
    ("stablehlo.dynamic_conv", "1x8x8x3xf32, 3x3x3x4xf32, 2x2xi64 -> 1x?x?x4xf32", CONV.format(1, 1)),
    (
        "stablehlo.dynamic_conv",
        "1x8x8x3xf32, 3x3x3x4xf32, 2x2xi64 -> 1x?x?x4xf32",
        f"{CONV.format(1, 1)}, window_strides = {i64s(2, 2)}, rhs_dilation = {i64s(1, 1)}, "
        f"lhs_dilation = {i64s(1, 1)}, window_reversal = array<i1: false, false>, {PRECISION}",
    ),
    ("stablehlo.dynamic_iota", "2xi64 -> ?x?xf32", "iota_dimension = 1 : i64"),
    ("stablehlo.dynamic_pad", "4xf32, f32, 1xi64, 1xi64, 1xi64 -> ?xf32"),
    ("stablehlo.dynamic_reshape", "?x3xf32, 1xi64 -> ?xf32"),
    ("stablehlo.real_dynamic_slice", "?x3xf32, 2xi64, 2xi64, 2xi64 -> ?x?xf32"),
    ("stablehlo.get_dimension_size", "?x3xf32 -> i32", "dimension = 0 : i64"),
    ("stablehlo.set_dimension_size", "4x3xf32, i32 -> ?x3xf32", "dimension = 0 : i64"),
    ("stablehlo.broadcast", "3xf32 -> 2x4x3xf32", f"broadcast_sizes = {i64s(2, 4)}"),
]

_NUMERICAL: list[tuple[str, ...]] = [
    ("stablehlo.cholesky", "2x3x3xf32 -> 2x3x3xf32"),
    ("stablehlo.cholesky", "3x3xf64 -> 3x3xf64", "lower = true"),
    ("stablehlo.cholesky", "3x3xcomplex<f32> -> 3x3xcomplex<f32>", "lower = false"),
    (
        "stablehlo.triangular_solve",
        "3x3xf32, 3x2xf32 -> 3x2xf32",
        "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>",
    ),
    (
        "stablehlo.triangular_solve",
        "4x3x3xcomplex<f64>, 4x2x3xcomplex<f64> -> 4x2x3xcomplex<f64>",
        "left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>",
    ),
    *(
        ("stablehlo.fft", type, f"fft_type = {enum('fft_type', kind)}, fft_length = {i64s(*lengths)}")
        for kind, type, lengths in (
            ("FFT", "3x8xcomplex<f32> -> 3x8xcomplex<f32>", (8,)),
            ("IFFT", "3x8xcomplex<f64> -> 3x8xcomplex<f64>", (3, 8)),
            ("RFFT", "3x9xf32 -> 3x5xcomplex<f32>", (9,)),
            ("IRFFT", "2x3x5xcomplex<f64> -> 2x3x9xf64", (2, 3, 9)),
        )
    ),
    (
        "stablehlo.batch_norm_inference",
        "2x3x4xf32, 3xf32, 3xf32, 3xf32, 3xf32 -> 2x3x4xf32",
        "epsilon = 1.000000e-03 : f32, feature_index = 1 : i64",
    ),
    (
        "stablehlo.batch_norm_training",
        "2x3x4xf32, 4xf32, 4xf32 -> 2x3x4xf32, 4xf32, 4xf32",
        "epsilon = 1.000000e-03 : f32, feature_index = 2 : i64",
    ),
    (
        "stablehlo.batch_norm_grad",
        "2x3x4xf32, 2xf32, 2xf32, 2xf32, 2x3x4xf32 -> 2x3x4xf32, 2xf32, 2xf32",
        "epsilon = 1.000000e-03 : f32, feature_index = 0 : i64",
    ),
    ("stablehlo.rng", "f32, f32, 2xi64 -> 3x4xf32", f"rng_distribution = {enum('rng_distribution', 'NORMAL')}"),
    ("stablehlo.rng", "i32, i32, 1xi64 -> 3xi32", f"rng_distribution = {enum('rng_distribution', 'UNIFORM')}"),
    *(
        (
            "stablehlo.rng_bit_generator",
            f"{state}xui64 -> {state}xui64, 3xui32",
            f"rng_algorithm = {enum('rng_algorithm', algorithm)}",
        )
        for state, algorithm in ((2, "DEFAULT"), (2, "THREE_FRY"), (3, "PHILOX"))
    ),
]

_CONTROL: list[tuple[str, ...]] = [
    ("stablehlo.if", "i1, 2xf32 -> 2xf32"),
    ("stablehlo.optimization_barrier", "2xf32, 3xi32 -> 2xf32, 3xi32"),
    ("stablehlo.optimization_barrier", " -> "),
    ("stablehlo.after_all", "!stablehlo.token, !stablehlo.token -> !stablehlo.token"),
    ("stablehlo.after_all", " -> !stablehlo.token"),
    ("stablehlo.create_token", " -> !stablehlo.token"),
    ("stablehlo.partition_id", " -> ui32"),
    ("stablehlo.replica_id", " -> ui32"),
    ("stablehlo.custom_call", "2xf32 -> 2xf32", 'call_target_name = "foo"'),
    ("stablehlo.custom_call", "2xf32 -> 2xf32", 'call_target_name = "Sharding"'),
    ("stablehlo.custom_call", " -> ", 'call_target_name = "print it", has_side_effect = true, backend_config = "x"'),
    (
        "stablehlo.custom_call",
        "2x3xf32, !stablehlo.token -> 2x3xf32, !stablehlo.token",
        'call_target_name = "ffi", api_version = 4 : i32, backend_config = {mode = 1 : i64, name = "y"}, '
        "operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], "
        "result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], output_operand_aliases = "
        "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]",
    ),
]

_COLLECTIVES: list[tuple[str, ...]] = [
    ("stablehlo.all_gather", "2x3xf32 -> 2x6xf32", f"all_gather_dim = 1 : i64, {GROUPS}, {CHANNEL}"),
    ("stablehlo.all_gather", "2xf32 -> 4xf32", f"all_gather_dim = 0 : i64, {GROUPS}, {CHANNEL}, use_global_device_ids"),
    ("stablehlo.all_reduce", "2xf32 -> 2xf32", GROUPS, ADD),
    ("stablehlo.all_reduce", "2xf32, 3xf32 -> 2xf32, 3xf32", f"{GROUPS}, {CHANNEL}, use_global_device_ids", ADD),
    ("stablehlo.reduce_scatter", "2x4xf32 -> 2x2xf32", f"scatter_dimension = 1 : i64, {GROUPS}", ADD),
    (
        "stablehlo.all_to_all",
        "2x4xf32 -> 4x2xf32",
        f"split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUPS}",
    ),
    ("stablehlo.collective_broadcast", "2xf32 -> 2xf32", GROUPS),
    (
        "stablehlo.collective_permute",
        "2xf32 -> 2xf32",
        "source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>",
    ),
    (
        "stablehlo.send",
        "2xf32, !stablehlo.token -> !stablehlo.token",
        f"{CHANNEL.replace('type = 0', 'type = 1')}, is_host_transfer = false",
    ),
    (
        "stablehlo.recv",
        "!stablehlo.token -> 2xf32, !stablehlo.token",
        "channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true",
    ),
    ("stablehlo.infeed", "!stablehlo.token -> 3x3xi32, !stablehlo.token", 'infeed_config = "foo", layout = [[0, 1]]'),
    ("stablehlo.outfeed", "3xi32, !stablehlo.token -> !stablehlo.token", 'outfeed_config = ""'),
    ("stablehlo.cross-replica-sum", "3xf32 -> 3xf32", GROUPS),
]

_CHLO: list[tuple[str, ...]] = [
    *((f"chlo.{op}", "2x3xf32 -> 2x3xf32") for op in CHLO_FUNCTIONS + CHLO_REAL_FUNCTIONS),
    *((f"chlo.{op}", "2xcomplex<f64> -> 2xcomplex<f64>") for op in CHLO_FUNCTIONS),
    ("chlo._asin_acos_kernel", "2xcomplex<f32> -> 2xcomplex<f32>"),
    *((f"chlo.{op}", "2x3xf32 -> 2x3xi1") for op in CHLO_PREDICATES),
    *((f"chlo.{op}", "3xf64, 3xf64 -> 3xf64") for op in CHLO_BINARY),
    ("chlo.mulhi", "3xi32, 3xi32 -> 3xi32"),
    *((f"chlo.broadcast_{op}", "2x3xf32, 3xf32 -> 2x3xf32") for op in CHLO_BROADCASTING),
    *((f"chlo.broadcast_{op}", "2x1xi32, 1x3xi32 -> 2x3xi32") for op in CHLO_BROADCASTING_INTEGERS),
    ("chlo.broadcast_add", "2xf32, 2x3xf32 -> 2x3xf32", f"broadcast_dimensions = {i64s(0)}"),
    ("chlo.broadcast_complex", "2x3xf32, 3xf32 -> 2x3xcomplex<f32>"),
    (
        "chlo.broadcast_compare",
        "2x3xf32, 3xf32 -> 2x3xi1",
        f"comparison_direction = {enum('comparison_direction', 'LT', 'chlo')}",
    ),
    (
        "chlo.broadcast_compare",
        "2x3xf32, 3xf32 -> 2x3xi1",
        f"broadcast_dimensions = {i64s(1)}, comparison_direction = {enum('comparison_direction', 'LT', 'chlo')}, "
        f"compare_type = {enum('comparison_type', 'TOTALORDER', 'chlo')}",
    ),
    ("chlo.broadcast_select", "3xi1, 2x3xf32, f32 -> 2x3xf32"),
    ("chlo.constant", " -> 2xf32", "value = dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf32>"),
    ("chlo.constant_like", "2x?xf32 -> 2x?xf32", "value = 1.500000e+00 : f32"),
    ("chlo.constant_like", "3xi32 -> 3xi32", "value = 7 : i32"),
]

_ROWS = (
    *_ELEMENTWISE, *_MOVEMENT, *_CONTRACTION, *_REDUCTION, *_INDEXING, *_DYNAMIC, *_NUMERICAL, *_CONTROL[1:],
    *_COLLECTIVES, *_CHLO,
)  # fmt: skip

WITHOUT_JAXLIB = frozenset(("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"))
"""Ops that jaxlib does not read, because it does not register the quant dialect of their types."""


def samples() -> dict[str, str]:
    """All sample modules, by op name (numbered from the second one on)."""
    result: dict[str, str] = {}
    for row in _ROWS:
        name, count = row[0], 2
        while name in result:
            name, count = f"{row[0]} {count}", count + 1
        result[name] = sample(*row)
    return {**result, **MODULES}
