"""Verifiers and inference hold for symbolic dimensions: what they accept is right for every value of the symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from gcomp import dims
from gcomp.errors import VerificationError
from gcomp.ir import text
from tests.support.samples.ops import ADD, GATHER, LESS, SCATTER, WINDOW, i64s, sample

ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
INTO_ROWS = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
)
NORM = "epsilon = 1.000000e-03 : f32, feature_index = 1 : i64"
BATCHED = (
    "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
    "start_index_map = [1], index_vector_dim = 2"
)

# Dimensions in braces are formulas; the last column is a result type that does not follow.
CASES = [
    ("stablehlo.add", "{n}x3xf32, {n}x3xf32 -> {n}x3xf32", "", "", "{m}x3xf32"),
    ("stablehlo.convert", "{n}x3xf32 -> {n}x3xf16", "", "", "{m}x3xf16"),
    ("stablehlo.concatenate", "{n}x3xf32, {m}x3xf32 -> {m + n}x3xf32", "dimension = 0 : i64", "", "{2*n}x3xf32"),
    ("stablehlo.reduce", "{n}x{m}xf32, f32 -> {n}xf32", f"dimensions = {i64s(1)}", ADD, "{m}xf32"),
    ("stablehlo.reduce_window", "{n}x8xf32, f32 -> {n}x4xf32", WINDOW, ADD, "{m}x4xf32"),
    ("stablehlo.sort", "{n}x3xf32 -> {n}x3xf32", "dimension = 0 : i64", LESS, "{m}x3xf32"),
    ("stablehlo.transpose", "{n}x{m}xf32 -> {m}x{n}xf32", f"permutation = {i64s(1, 0)}", "", "{n}x{m}xf32"),
    ("stablehlo.reshape", "{n}x{2*m}xf32 -> {2*m*n}xf32", "", "", "{2*m*n + 1}xf32"),
    (
        "stablehlo.gather",
        "{n}x5xf32, {m}x1xi32 -> {m}x5xf32",
        f"{GATHER.format(ROWS)}, slice_sizes = {i64s(1, 5)}",
        "",
        "{n}x5xf32",
    ),
    (
        "stablehlo.gather",
        "{n}x4x5xf32, {n}x2xi64 -> {n}x2x5xf32",
        f"{GATHER.format(BATCHED)}, slice_sizes = {i64s(1, 1, 5)}",
        "",
        "{m}x2x5xf32",
    ),
    (
        "stablehlo.gather",
        "4x{n}xf32, {m}x1xi32 -> {m}x{n}xf32",
        f'{GATHER.format(ROWS)}, slice_sizes = ["1", "n"]',
        "",
        "{n}x{m}xf32",
    ),
    (
        "stablehlo.scatter",
        "{n}x5xf32, {m}x1xi32, {m}x5xf32 -> {n}x5xf32",
        SCATTER.format(INTO_ROWS),
        ADD,
        "{m}x5xf32",
    ),
    ("stablehlo.dynamic_slice", "{n}x5xf32, i32, i32 -> 1x5xf32", f"slice_sizes = {i64s(1, 5)}", "", "{n}x5xf32"),
    ("stablehlo.dynamic_slice", "{2*n}x5xf32, i32, i32 -> {n}x5xf32", 'slice_sizes = ["n", "5"]', "", "{2*n}x5xf32"),
    ("stablehlo.dynamic_update_slice", "{n}x5xf32, 1x5xf32, i32, i32 -> {n}x5xf32", "", "", "1x5xf32"),
    ("stablehlo.cholesky", "{b}x{n}x{n}xf32 -> {b}x{n}x{n}xf32", "", "", "{n}x{b}x{n}xf32"),
    ("stablehlo.batch_norm_training", "{b}x{n}xf32, {n}xf32, {n}xf32 -> {b}x{n}xf32, {n}xf32, {n}xf32", NORM, "", None),
    ("stablehlo.optimization_barrier", "{n}xf32 -> {n}xf32", "", "", "{m}xf32"),
    ("chlo.erf", "{n}x3xf32 -> {n}x3xf32", "", "", "{m}x3xf32"),
    ("chlo.top_k", "{n}x{m + 3}xf32 -> {n}x3xf32, {n}x3xi32", "k = 3 : i64", "", None),
    ("chlo.broadcast_add", "{n}x1xf32, {m}xf32 -> {n}x{m}xf32", "", "", "{n}x{n}xf32"),
]  # fmt: skip
each_case = pytest.mark.parametrize("case", CASES, ids=[f"{case[0]} {number}" for number, case in enumerate(CASES)])


def symbolic(types: str) -> str:
    """The types with their formulas as encodings."""

    def one(type: str) -> str:
        sizes = re.findall(r"(\{.*?\}|\d+)x", type)
        if "{" not in type:
            return type
        shape = "".join("?x" if size.startswith("{") else f"{size}x" for size in sizes)
        encoding = ",".join('"' + size.strip("{}") + '"' for size in sizes)
        return f"{shape}{type.rpartition('x')[2]},[{encoding}]"

    sides = [side.split(", ") for side in types.split(" -> ")]
    return " -> ".join(", ".join(map(one, side)) for side in sides)


def concrete(types: str, values: Mapping[str, int]) -> str:
    """The types with the values of their formulas."""
    return re.sub(r"\{(.*?)\}", lambda m: str(dims.evaluate(dims.parse(m[1]), values)), types)


def verified(program: str) -> str:
    module = text.parse_module(program)
    text.verify_module(module)
    return text.print_module(module)


@each_case
def test_accepted_for_symbols_and_for_every_value(case: tuple[str, str, str, str, str | None]) -> None:
    op, types, properties, regions, _ = case
    once = verified(sample(op, symbolic(types), properties, regions))
    assert verified(once) == once
    for values in ({"n": 1, "m": 1, "b": 1}, {"n": 2, "m": 3, "b": 5}, {"n": 7, "m": 2, "b": 1}):
        sizes = re.sub(r'\["(.*?)", "(.*?)"\]', r"array<i64: {\1}, {\2}>", properties)
        verified(sample(op, concrete(types, values), concrete(sizes, values), regions))


@each_case
def test_a_result_that_does_not_follow_is_refused(case: tuple[str, str, str, str, str | None]) -> None:
    op, types, properties, regions, wrong = case
    if wrong is None:
        return
    operands = types.partition(" -> ")[0]
    with pytest.raises(VerificationError):
        verified(sample(op, symbolic(f"{operands} -> {wrong}"), properties, regions))
