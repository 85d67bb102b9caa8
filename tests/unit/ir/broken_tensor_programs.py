"""Programs that break one constraint each: elementwise ops, data movement, contraction, reduction, numerics, devices.

A row is the constraint, the op's type, its properties and its regions, as `sample` takes them.
"""

from __future__ import annotations

from tests.support.samples.ops import ADD, CONV, DOT, FMA, GROUPS, LESS, PAIR, RAGGED, WINDOW, enum, i64s

HALF_ADD = ADD.replace("f32", "f16")
SELECT = f"{LESS[:-1]}, {ADD[1:]}"
LT = f"comparison_direction = {enum('comparison_direction', 'LT')}"
SLICE = "start_indices = {}, limit_indices = {}, strides = {}"
PAD = "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}"
SOLVE = "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"
NORM = "epsilon = 1.000000e-03 : f32, feature_index = {} : i64"
REDUCE = f"dimensions = {i64s(1)}"
PAIRS = "source_target_pairs = dense<{}> : tensor<2x2xi64>"
CONV_TYPE = "1x8x8x3xf32, 3x3x3x4xf32 -> 1x6x6x4xf32"
WINDOW_TYPE = "2x8xf32, f32 -> 2x4xf32"
SELECT_TYPE = "2x8xf32, 2x4xf32, f32 -> 2x8xf32"
RAGGED_TYPE = "11x5xf32, 3x5x7xf32, 3xi64 -> 11x7xf32"
ALL_TO_ALL = "split_dimension = {} : i64, concat_dimension = {} : i64, split_count = {} : i64, {}"
ONE_STRIDE = "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: {}>"


def fft(kind: str, *lengths: int) -> str:
    return f"fft_type = {enum('fft_type', kind)}, fft_length = {i64s(*lengths)}"


def distribution(word: str) -> str:
    return f"rng_distribution = {enum('rng_distribution', word)}"


def algorithm(word: str) -> str:
    return f"rng_algorithm = {enum('rng_algorithm', word)}"


def along(dimension: int) -> str:
    return f"dimension = {dimension} : i64"


def onto(*dimensions: int) -> str:
    return f"broadcast_dimensions = {i64s(*dimensions)}"


Row = tuple[str, ...]

STABLEHLO: list[Row] = [
    ("add-C1", "2xf32, 3xf32 -> 2xf32"),
    ("add-C", "2xf32, 2xf32 -> 3xf32"),
    ("and-I1", "2xf32, 2xf32 -> 2xf32"),
    ("ceil-I1", "2xi32 -> 2xi32"),
    ("sine-I1", "2xi32 -> 2xi32"),
    ("abs-I1", "2xui8 -> 2xui8"),
    ("abs-C", "2xcomplex<f32> -> 2xcomplex<f32>"),
    ("not-I1", "2xf32 -> 2xf32"),
    ("shift_left-I1", "2xi1, 2xi1 -> 2xi1"),
    ("is_finite-I1", "2xi32 -> 2xi1"),
    ("complex-I1", "2xf16, 2xf16 -> 2xcomplex<f32>"),
    ("complex-C1", "2xf32, 2xf64 -> 2xcomplex<f32>"),
    ("compare-C1", "2xf32, 2xi32 -> 2xi1", LT),
    ("compare-C3", "2xi32, 2xi32 -> 2xi1", f"{LT}, compare_type = {enum('comparison_type', 'TOTALORDER')}"),
    ("compare-C4", "2xcomplex<f32>, 2xcomplex<f32> -> 2xi1", LT),
    ("select-I1", "2xi32, 2xf32, 2xf32 -> 2xf32"),
    ("select-C1", "3xi1, 2xf32, 2xf32 -> 2xf32"),
    ("select-C2", "2xi1, 2xf32, 2xf64 -> 2xf32"),
    ("clamp-C1", "3xf32, 2xf32, f32 -> 2xf32"),
    ("clamp-C2", "f32, 2xf32, 3xf32 -> 2xf32"),
    ("clamp-C3", "f64, 2xf32, f32 -> 2xf32"),
    ("convert-C1", "2xf32 -> 3xf16"),
    ("bitcast_convert-C1", "2xf32 -> 2x2xi8"),
    ("bitcast_convert-C2", "2xcomplex<f32> -> 2xf64"),
    ("reduce_precision-C2", "2xf32 -> 2xf32", "exponent_bits = 0 : i32, mantissa_bits = 3 : i32"),
    ("reduce_precision-C3", "2xf32 -> 2xf32", "exponent_bits = 3 : i32, mantissa_bits = -1 : i32"),
    ("iota-C1", " -> 2x3xi32", "iota_dimension = 2 : i64"),
    ("broadcast_in_dim-C1", "2xf32 -> 3x2xf64", onto(1)),
    ("broadcast_in_dim-C2", "2xf32 -> 3x2xf32", onto()),
    ("broadcast_in_dim-C4", "1x1xf32 -> 3x2xf32", onto(1, 1)),
    ("broadcast_in_dim-C5", "2xf32 -> 3x2xf32", onto(0)),
    ("concatenate-C1", "2xf32, 2xf64 -> 4xf32", along(0)),
    ("concatenate-C2", "2x3xf32, 3x3xf32 -> 2x6xf32", along(1)),
    ("concatenate-C3", " -> 2xf32", along(0)),
    ("concatenate-C4", "2xf32, 2xf32 -> 4xf32", along(1)),
    ("concatenate-C", "2xf32, 2xf32 -> 5xf32", along(0)),
    ("pad-C1", "2xf32, f64 -> 3xf32", PAD.format(i64s(0), i64s(1), i64s(0))),
    ("pad-C2", "2xf32, f32 -> 3xf32", PAD.format(i64s(0, 0), i64s(1), i64s(0))),
    ("pad-C3", "2xf32, f32 -> 1xf32", PAD.format(i64s(0), i64s(0), i64s(-1))),
    ("pad-C4", "2xf32, f32 -> 0xf32", PAD.format(i64s(-2), i64s(-1), i64s(0))),
    ("pad-C", "2xf32, f32 -> 2xf32", PAD.format(i64s(0), i64s(1), i64s(0))),
    ("reshape-C1", "2xf32 -> 2xf64"),
    ("reshape-C2", "2xf32 -> 3xf32"),
    ("reverse-C2", "2x3xf32 -> 2x3xf32", f"dimensions = {i64s(0, 0)}"),
    ("reverse-C2", "2x3xf32 -> 2x3xf32", f"dimensions = {i64s(2)}"),
    ("slice-C2", "4xf32 -> 2xf32", SLICE.format(i64s(0, 0), i64s(2, 2), i64s(1, 1))),
    ("slice-C3", "4xf32 -> 5xf32", SLICE.format(i64s(0), i64s(5), i64s(1))),
    ("slice-C3", "4xf32 -> 0xf32", SLICE.format(i64s(3), i64s(2), i64s(1))),
    ("slice-C4", "4xf32 -> 2xf32", SLICE.format(i64s(0), i64s(2), i64s(0))),
    ("slice-C", "4xf32 -> 2xf32", SLICE.format(i64s(0), i64s(3), i64s(1))),
    ("transpose-C2", "2x3xf32 -> 2x3xf32", f"permutation = {i64s(0, 0)}"),
    ("transpose-C", "2x3xf32 -> 2x3xf32", f"permutation = {i64s(1, 0)}"),
    ("dot_general-C1", "2x3xf32, 2x3xf32 -> 3x3xf32", DOT.format("lhs_batching_dimensions = [0]")),
    ("dot_general-C2", "2x3xf32, 2x3xf32 -> 2xf32", DOT.format("lhs_contracting_dimensions = [1]")),
    (
        "dot_general-C3",
        "2x3xf32, 2x3xf32 -> 2xf32",
        DOT.format(
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [0], "
            "rhs_contracting_dimensions = [1]"
        ),
    ),
    (
        "dot_general-C4",
        "3x3xf32, 2x3xf32 -> 2xf32",
        DOT.format("lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [1, 1]"),
    ),
    (
        "dot_general-C9",
        "2x3xf32, 3x3xf32 -> 2x3x3xf32",
        DOT.format("lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]"),
    ),
    (
        "dot_general-C10",
        "2x3xf32, 2x3xf32 -> 2x3xf32",
        DOT.format("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"),
    ),
    (
        "dot_general-C12",
        "2x3xf32, 3x4xf32 -> 4x2xf32",
        DOT.format("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"),
    ),
    ("convolution-C1", "1x8x8x3xf32, 3x3x3xf32 -> 1x6x6x4xf32", CONV.format(1, 1)),
    ("convolution-C2", CONV_TYPE, f"{CONV.format(1, 1)}, window_strides = {i64s(1)}"),
    ("convolution-C3", CONV_TYPE, f"{CONV.format(1, 1)}, window_strides = {i64s(1, 0)}"),
    ("convolution-C4", CONV_TYPE, f"{CONV.format(1, 1)}, padding = dense<0> : tensor<1x2xi64>"),
    ("convolution-C5", CONV_TYPE, f"{CONV.format(1, 1)}, lhs_dilation = {i64s(1)}"),
    ("convolution-C6", CONV_TYPE, f"{CONV.format(1, 1)}, lhs_dilation = {i64s(1, 0)}"),
    ("convolution-C7", CONV_TYPE, f"{CONV.format(1, 1)}, rhs_dilation = {i64s(1)}"),
    ("convolution-C8", CONV_TYPE, f"{CONV.format(1, 1)}, rhs_dilation = {i64s(0, 1)}"),
    ("convolution-C9", CONV_TYPE, f"{CONV.format(1, 1)}, window_reversal = array<i1: true>"),
    (
        "convolution-C10",
        "3x8x8x3xf32, 3x3x3x4xf32 -> 1x6x6x4xf32",
        CONV.format(2, 1),
    ),
    ("convolution-C11", CONV_TYPE, CONV.format(1, 2)),
    ("convolution-C14", "1x8x8x3xf32, 3x3x2x4xf32 -> 1x6x6x4xf32", CONV.format(1, 1)),
    ("convolution-C16", "1x8x8x4xf32, 3x3x2x3xf32 -> 1x6x6x3xf32", CONV.format(1, 2)),
    ("convolution-C21", CONV_TYPE, CONV.format(1, 0)),
    (
        "convolution-C23",
        "2x8x8x4xf32, 3x3x2x4xf32 -> 1x6x6x4xf32",
        CONV.format(2, 2),
    ),
    ("convolution-C25", "1x8x8x3xf32, 3x3x3x4xf32 -> 1x6x5x4xf32", CONV.format(1, 1)),
    ("convolution-C27", "1x8x8x3xf32, 3x3x3x4xf16 -> 1x6x6x4xf32", CONV.format(1, 1)),
    ("reduce-C1", "2x3xf32, 2x4xi32, f32, i32 -> 2xf32, 2xi32", REDUCE, PAIR),
    ("reduce-C2", "2x3xf32, f64 -> 2xf32", REDUCE, ADD),
    ("reduce-C4", "2x3xf32, f32 -> 2xf32", f"dimensions = {i64s(2)}", ADD),
    ("reduce-C4", "2x3xf32, f32 -> 2xf32", f"dimensions = {i64s(1, 1)}", ADD),
    ("reduce-C6", "2x3xf32, f32 -> 2xf32", REDUCE, PAIR),
    ("reduce-C6", "2x3xf32, f32 -> 2xf16", REDUCE, HALF_ADD),
    ("reduce-C6", "2x3xf32, f32 -> 2xi1", REDUCE, LESS),
    ("reduce-C", "2x3xf32, f32 -> 3xf32", REDUCE, ADD),
    ("reduce_window-C2", "2x8xf32, 2x7xi32, f32, i32 -> 2x4xf32, 2x4xi32", WINDOW, PAIR),
    ("reduce_window-C3", "2x8xf32, f64 -> 2x4xf32", WINDOW, ADD),
    ("reduce_window-C4", "2x8xf32, f32 -> 2x8xf32", f"window_dimensions = {i64s(1)}", ADD),
    ("reduce_window-C4", "2x8xf32, f32 -> 2x8xf32", "window_dimensions = array<i64>", ADD),
    ("reduce_window-C5", "2x8xf32, f32 -> 2x8xf32", f"window_dimensions = {i64s(1, 0)}", ADD),
    ("reduce_window-C6", WINDOW_TYPE, ONE_STRIDE.format("1"), ADD),
    ("reduce_window-C7", WINDOW_TYPE, ONE_STRIDE.format("1, 0"), ADD),
    ("reduce_window-C13", WINDOW_TYPE, WINDOW, LESS),
    ("reduce_window-C", "2x8xf32, f32 -> 2x5xf32", WINDOW, ADD),
    ("select_and_scatter-C1", "2x8xf32, 2x4xf64, f32 -> 2x8xf32", WINDOW, SELECT),
    ("select_and_scatter-C2", "2x8xf32, 2x5xf32, f32 -> 2x8xf32", WINDOW, SELECT),
    ("select_and_scatter-C3", "2x8xf32, 2x4xf32, f64 -> 2x8xf32", WINDOW, SELECT),
    ("select_and_scatter-C8", SELECT_TYPE, f"{WINDOW}, padding = dense<0> : tensor<1x2xi64>", SELECT),
    ("select_and_scatter-C9", SELECT_TYPE, WINDOW, f"{ADD[:-1]}, {ADD[1:]}"),
    ("select_and_scatter-C10", SELECT_TYPE, WINDOW, f"{LESS[:-1]}, {LESS[1:]}"),
    ("map-C1", "2xf32, 3xf32 -> 2xf32", f"dimensions = {i64s(0)}", FMA),
    ("map-C3", "2x3xf32, 2x3xf32 -> 2x3xf32", f"dimensions = {i64s(1, 0)}", FMA),
    ("map-C4", "2xf32 -> 2xf32", f"dimensions = {i64s(0)}", FMA),
    ("sort-C3", "2xf32, 3xi32 -> 2xf32, 3xi32", "", LESS),
    ("sort-C4", "2x3xf32 -> 2x3xf32", along(2), LESS),
    ("sort-C4", "2x3xf32 -> 2x3xf32", along(-3), LESS),
    ("sort-C5", "2x3xf32 -> 2x3xf32", along(0), ADD),
    ("reduce_window-C8", WINDOW_TYPE, f"{WINDOW}, base_dilations = {i64s(1)}", ADD),
    ("reduce_window-C9", WINDOW_TYPE, f"{WINDOW}, base_dilations = {i64s(1, 0)}", ADD),
    ("reduce_window-C10", WINDOW_TYPE, f"{WINDOW}, window_dilations = {i64s(1)}", ADD),
    ("reduce_window-C11", WINDOW_TYPE, f"{WINDOW}, window_dilations = {i64s(1, 0)}", ADD),
    ("reduce_window-C12", WINDOW_TYPE, f"{WINDOW}, padding = dense<0> : tensor<1x2xi64>", ADD),
    ("cholesky-I1", "3x3xi32 -> 3x3xi32"),
    ("cholesky-C2", "3xf32 -> 3xf32"),
    ("cholesky-C3", "3x4xf32 -> 3x4xf32"),
    ("triangular_solve-C1", "3x3xf32, 3x2xf64 -> 3x2xf32", SOLVE),
    ("triangular_solve-C2", "3x3xf32, 1x3x2xf32 -> 1x3x2xf32", SOLVE),
    ("triangular_solve-C3", "3x4xf32, 3x2xf32 -> 3x2xf32", SOLVE),
    ("triangular_solve-C3", "3x3xf32, 2x3xf32 -> 2x3xf32", SOLVE),
    ("triangular_solve-C3", "2x3x3xf32, 4x3x2xf32 -> 4x3x2xf32", SOLVE),
    ("triangular_solve-C", "3x3xf32, 3x2xf32 -> 2x3xf32", SOLVE),
    ("fft-I1", "8xi32 -> 8xcomplex<f32>", fft("RFFT", 8)),
    ("fft-C1", "8xcomplex<f32> -> 8xcomplex<f32>", fft("FFT", 2, 8)),
    ("fft-C2", "8xf32 -> 8xf32", fft("FFT", 8)),
    ("fft-C2", "8xcomplex<f32> -> 5xcomplex<f32>", fft("RFFT", 8)),
    ("fft-C3", "8xcomplex<f32> -> 8xcomplex<f32>", fft("FFT")),
    ("fft-C4", "8xf32 -> 5xcomplex<f32>", fft("RFFT", 9)),
    ("fft-C4", "2x5xcomplex<f32> -> 2x8xf32", fft("IRFFT", 3, 8)),
    ("fft-C5", "4xcomplex<f32> -> 8xf32", fft("IRFFT", 8)),
    ("fft-C", "8xcomplex<f32> -> 9xcomplex<f32>", fft("FFT", 8)),
    ("batch_norm_inference-C1", "2x3xf32, 3xf32, 3xf32, 3xf32, 3xf32 -> 2x3xf32", NORM.format(2)),
    ("batch_norm_inference-C2", "2x3xf32, 3xf64, 3xf32, 3xf32, 3xf32 -> 2x3xf32", NORM.format(1)),
    ("batch_norm_training-C1", "2x3xf32, 3xf32, 3xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(2)),
    ("batch_norm_training-C3", "2x3xf32, 2xf32, 3xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(1)),
    ("batch_norm_training-C4", "2x3xf32, 3xf32, 2xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(1)),
    ("batch_norm_training-C", "2x3xf32, 3xf32, 3xf32 -> 2x3xf32, 2xf32, 3xf32", NORM.format(1)),
    ("batch_norm_grad-C3", "2x3xf32, 3xf32, 3xf32, 3xf32, 3x3xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(1)),
    ("batch_norm_grad-C4", "2x3xf32, 3xf32, 2xf32, 3xf32, 2x3xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(1)),
    ("batch_norm_grad-C5", "2x3xf32, 2xf32, 2xf32, 2xf32, 2x3xf32 -> 2x3xf32, 3xf32, 3xf32", NORM.format(1)),
    ("rng-C1", "f32, f32, 1xi64 -> 3xf64", distribution("UNIFORM")),
    ("rng-C2", "i32, i32, 1xi64 -> 3xi32", distribution("NORMAL")),
    ("rng-C3", "f32, f32, 2xi64 -> 3xf32", distribution("NORMAL")),
    ("rng_bit_generator-I2", "2xf32 -> 2xf32, 3xui32", algorithm("DEFAULT")),
    ("rng_bit_generator-C1", "2xui64 -> 3xui64, 3xui32", algorithm("DEFAULT")),
    ("rng_bit_generator-C2", "3xui64 -> 3xui64, 3xui32", algorithm("THREE_FRY")),
    ("batch_norm_inference-C3", "2x3xf32, 4xf32, 3xf32, 3xf32, 3xf32 -> 2x3xf32", NORM.format(1)),
    ("batch_norm_inference-C4", "2x3xf32, 3xf32, 4xf32, 3xf32, 3xf32 -> 2x3xf32", NORM.format(1)),
    ("batch_norm_inference-C5", "2x3xf32, 3xf32, 3xf32, 4xf32, 3xf32 -> 2x3xf32", NORM.format(1)),
    ("batch_norm_inference-C6", "2x3xf32, 3xf32, 3xf32, 3xf32, 4xf32 -> 2x3xf32", NORM.format(1)),
    ("optimization_barrier-C", "2xf32 -> 3xf32"),
    ("custom_call-C", "2xf32 -> 2xf32", 'call_target_name = "f", operand_layouts = [dense<0> : tensor<1xindex>]'),
    ("custom_call-I4", "2xf32 -> 2xf32", 'call_target_name = "f", api_version = 4 : i32, backend_config = "x"'),
    ("all_gather-C1", "2xf32 -> 4xf32", f"all_gather_dim = 1 : i64, {GROUPS}"),
    ("all_gather-C2", "2xf32 -> 4xf32", f"all_gather_dim = 0 : i64, {GROUPS.replace('3', '0')}"),
    ("all_gather-C5", "2xf32 -> 4xf32", f"all_gather_dim = 0 : i64, {GROUPS}, use_global_device_ids"),
    ("all_gather-C", "2xf32 -> 6xf32", f"all_gather_dim = 0 : i64, {GROUPS}"),
    ("all_reduce-C4", "2xf32 -> 2xf32", f"{GROUPS}, use_global_device_ids", ADD),
    ("all_reduce-C", "2xf32 -> 3xf32", GROUPS, ADD),
    ("reduce_scatter-C1", "3xf32 -> 2xf32", f"scatter_dimension = 0 : i64, {GROUPS}", ADD),
    ("reduce_scatter-C6", "4xf32 -> 2xf32", f"scatter_dimension = 0 : i64, {GROUPS}, use_global_device_ids", ADD),
    ("reduce_scatter-C", "4xf32 -> 4xf32", f"scatter_dimension = 0 : i64, {GROUPS}", ADD),
    ("all_to_all-C2", "3xf32 -> 3xf32", ALL_TO_ALL.format(0, 0, 2, GROUPS)),
    ("all_to_all-C8", "3xf32 -> 3xf32", ALL_TO_ALL.format(0, 0, 3, GROUPS)),
    ("all_to_all-C", "4x4xf32 -> 4x4xf32", ALL_TO_ALL.format(0, 1, 2, GROUPS)),
    ("all_reduce-C1", "2xf32 -> 2xf32", GROUPS.replace("3", "0"), ADD),
    ("all_reduce-C5", "2xf32 -> 2xf32", GROUPS, LESS),
    ("reduce_scatter-C2", "4xf32 -> 2xf32", f"scatter_dimension = 1 : i64, {GROUPS}", ADD),
    ("reduce_scatter-C3", "4xf32 -> 2xf32", f"scatter_dimension = 0 : i64, {GROUPS.replace('3', '0')}", ADD),
    ("reduce_scatter-C7", "4xf32 -> 2xf32", f"scatter_dimension = 0 : i64, {GROUPS}", LESS),
    ("all_to_all-C1", "4xf32 -> 4xf32", ALL_TO_ALL.format(1, 0, 2, GROUPS)),
    ("all_to_all-C3", "4xf32 -> 4xf32", ALL_TO_ALL.format(0, 1, 2, GROUPS)),
    ("all_to_all-C4", "4xf32 -> 4xf32", ALL_TO_ALL.format(0, 0, 0, GROUPS)),
    ("collective_broadcast-C1", "4xf32 -> 4xf32", GROUPS.replace("3", "0")),
    ("collective_permute-C2", "4xf32 -> 4xf32", PAIRS.format("[[0, 1], [0, 2]]")),
    ("collective_permute-C3", "4xf32 -> 4xf32", PAIRS.format("[[0, 1], [2, 1]]")),
    (
        "send-C5",
        "2xf32, !stablehlo.token -> !stablehlo.token",
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>",
    ),
    (
        "recv-C5",
        "!stablehlo.token -> 2xf32, !stablehlo.token",
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>",
    ),
    ("infeed-C3", "!stablehlo.token -> 2xf32"),
]

CHLO: list[Row] = [
    ("top_k-C2", "3xf32 -> 4xf32, 4xi32", "k = 4 : i64"),
    ("top_k-C", "3xf32 -> 2xf32, 2xi64", "k = 2 : i64"),
    ("acos-I1", "2xi32 -> 2xi32"),
    ("erf-I1", "2xcomplex<f32> -> 2xcomplex<f32>"),
    ("erf-C", "2xf32 -> 3xf32"),
    ("is_inf-C", "2xf32 -> 2xf32"),
    ("_asin_acos_kernel-I1", "2xf32 -> 2xf32"),
    ("zeta-C1", "2xf32, 3xf32 -> 2xf32"),
    ("mulhi-I1", "2xf32, 2xf32 -> 2xf32"),
    ("broadcast_add-C1", "2xf32, 3xf32 -> 3xf32"),
    ("broadcast_add-C1", "2xf32, 2xf64 -> 2xf32"),
    ("broadcast_add-C2", "2xf32, 2x3xf32 -> 2x3xf32", onto(0, 1)),
    ("broadcast_add-C", "2x1xf32, 3xf32 -> 3x2xf32"),
    ("broadcast_and-I1", "2xf32, 2xf32 -> 2xf32"),
    ("broadcast_select-I1", "2xi32, 2xf32, 2xf32 -> 2xf32"),
    ("broadcast_select-C1", "2xi1, 2xf32, 2xf64 -> 2xf32"),
    ("constant_like-C", "2xi32 -> 2xi32", "value = 1.000000e+00 : f32"),
    ("ragged_dot-I3", "11x5xf32, 3x5x7xf32, 3xf32 -> 11x7xf32", RAGGED),
    ("ragged_dot-C2", "11x4xf32, 3x5x7xf32, 3xi64 -> 11x7xf32", RAGGED),
    ("ragged_dot-C3", RAGGED_TYPE, RAGGED.replace("lhs_ragged_dimensions = [0], ", "")),
    ("ragged_dot-C4", RAGGED_TYPE, RAGGED.replace(", rhs_group_dimensions = [0]", "")),
    ("ragged_dot-C5", RAGGED_TYPE, RAGGED.replace("group_dimensions = [0]", "group_dimensions = [1]")),
]
