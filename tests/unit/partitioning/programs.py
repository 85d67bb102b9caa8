"""Ops whose rules are looked at: a line of IR each, of sizes that several parts divide."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.ir.program import Program

ADD = (
    "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32>\n"
    " stablehlo.return %s : tensor<f32>})"
)
OPS: dict[str, tuple[str, str, str]] = {
    "add": ("stablehlo.add", "", "4x6xf32, 4x6xf32 -> 4x6xf32"),
    "select": ("stablehlo.select", "", "i1, 4xf32, 4xf32 -> 4xf32"),
    "transpose": ("stablehlo.transpose", "permutation = array<i64: 1, 0>", "4x6xf32 -> 6x4xf32"),
    "broadcast": ("stablehlo.broadcast_in_dim", "broadcast_dimensions = array<i64: 1>", "6xf32 -> 4x6xf32"),
    "split": ("stablehlo.reshape", "", "24xf32 -> 4x6xf32"),
    "join": ("stablehlo.reshape", "", "2x4x6xf32 -> 8x6xf32"),
    "regroup": ("stablehlo.reshape", "", "4x6xf32 -> 8x3xf32"),
    "reverse": ("stablehlo.reverse", "dimensions = array<i64: 1>", "4x6xf32 -> 4x6xf32"),
    "slice": (
        "stablehlo.slice",
        "start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 5>, strides = array<i64: 1, 1>",
        "4x6xf32 -> 4x4xf32",
    ),
    "concatenate": ("stablehlo.concatenate", "dimension = 1 : i64", "4x2xf32, 4x4xf32 -> 4x6xf32"),
    "dot": (
        "stablehlo.dot_general",
        "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>",
        "4x6xf32, 6x8xf32 -> 4x8xf32",
    ),
    "batched dot": (
        "stablehlo.dot_general",
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>",
        "2x4x4xf32, 2x4x4xf32 -> 2x4x4xf32",
    ),
    "sum": ("stablehlo.reduce", "dimensions = array<i64: 1>", "4x6xf32, f32 -> 4xf32"),
    "gather": (
        "stablehlo.gather",
        "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        "index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>",
        "4x6xf32, 8x1xi32 -> 8x6xf32",
    ),
    "scatter": (
        "stablehlo.scatter",
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
        "4x6xf32, 8x1xi32, 8x6xf32 -> 4x6xf32",
    ),
    "sort": ("stablehlo.sort", "dimension = 1 : i64", "4x6xf32 -> 4x6xf32"),
    "cholesky": ("stablehlo.cholesky", "lower = true", "2x4x4xf32 -> 2x4x4xf32"),
    "iota": ("stablehlo.iota", "iota_dimension = 1 : i64", "-> 4x6xi32"),
    "grouped convolution": (
        "stablehlo.convolution",
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2 : i64, "
        "batch_group_count = 1 : i64, padding = dense<1> : tensor<1x2xi64>",
        "2x8x8xf32, 3x4x6xf32 -> 2x8x6xf32",
    ),
}  # fmt: skip
_COMPARED = (
    "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n stablehlo.return %s : tensor<i1>})"
)
REGIONS = {"sum": ADD, "scatter": ADD, "sort": _COMPARED}


def op(name: str) -> Operation:
    """The op of this name, in a program of its own."""
    kind, properties, signature = OPS[name]
    before, _, after = signature.partition("->")
    operands = [f"tensor<{t.strip()}>" for t in before.split(",") if t.strip()]
    result = f"tensor<{after.strip()}>"
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    used = ", ".join(f"%a{i}" for i in range(len(operands)))
    region, said = REGIONS.get(name, ""), f"<{{{properties}}}>" if properties else ""
    program = Program.parse(
        f"func.func @main({arguments}) -> {result} {{\n"
        f'  %r = "{kind}"({used}) {said} {region} : ({", ".join(operands)}) -> {result}\n'
        f"  return %r : {result}\n}}"
    )
    return next(each for each in program.block.ops if each.name == kind)
