"""Sets of inputs: every kind of values, and sizes on both sides of all that may change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gcomp.dims import Constraint, Ranges, parse, parse_range, symbol
from gcomp.dtypes import DTYPES, dtype_of
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.reference.inputs import KINDS, input_sets
from gcomp.reference.sizes import size_choices


def program_of(*types: object, ranges: dict[str, str] | None = None, constraints: Sequence[Constraint] = ()) -> Program:
    program = Program.empty([(f"x{i}", t) for i, t in enumerate(types)])  # type: ignore[misc]
    program.finish([("r", program.block.args[0])])
    program.ranges = Ranges({name: parse_range(text) for name, text in (ranges or {}).items()})
    program.constraints = list(constraints)
    return program


def sizes_of(program: Program, name: str, extra: tuple[str, ...] = ()) -> set[int]:
    return {sizes[name] for sizes in size_choices(program, map(parse, extra))}


@pytest.mark.parametrize(
    ("formula", "ranges", "extra", "expected"),
    [
        ("n", "1..64", (), {1, 2, 64}),
        ("n", "0..8", (), {0, 1, 8}),
        ("n", "8..1024 step 8", (), {8, 1024}),
        ("min(n, 7)", "1..64", (), {6, 7, 8}),
        ("n // 5", "1..64", (), {4, 5, 6}),
        ("n - 3", "3..", (), {3, 4}),
        ("n", "1..1000", ("n - 300",), {299, 300, 301}),
        ("n", "1..1000", ("n*n - 500",), {22, 23}),
    ],
)  # fmt: skip
def test_sizes_lie_on_both_sides_of_what_changes(
    formula: str, ranges: str, extra: tuple[str, ...], expected: set[int]
) -> None:
    program = program_of(tensor((symbol("n"),), "f32"), tensor((parse(formula),), "f32"), ranges={"n": ranges})
    assert expected <= sizes_of(program, "n", extra)
    assert all(value in parse_range(ranges) for value in sizes_of(program, "n", extra))


def test_symbols_are_equal_and_differ_and_each_is_at_its_ends() -> None:
    n, m = symbol("n"), symbol("m")
    choices = size_choices(program_of(tensor((n, m), "f32"), ranges={"n": "0..5", "m": "1..9"}))
    pairs = {(c["n"], c["m"]) for c in choices}
    assert choices[0]["n"] != choices[0]["m"], "ordinary ones come first"
    assert any(a == b for a, b in pairs) and any(a < b for a, b in pairs) and any(a > b for a, b in pairs)
    assert {(0, 1), (5, 9), (1, 1)} <= pairs
    assert {0, 5} <= {a for a, b in pairs if b not in (1, 9)}, "alone at an end"


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        (Constraint("eq", parse("n"), parse("320*m"), "test"), lambda n, m: n == 320 * m),
        (Constraint("le", 65, parse("n"), "test"), lambda n, m: n >= 65),
        (Constraint("divides", 48, parse("n + m"), "test"), lambda n, m: (n + m) % 48 == 0),
        (Constraint("broadcast", parse("n"), parse("m"), "test"), lambda n, m: n == m or 1 in (n, m)),
        (Constraint("le", parse("n"), parse("m // 7"), "test"), lambda n, m: n <= m // 7),
    ],
)
def test_sizes_meet_the_constraints(constraint: Constraint, holds: object) -> None:
    program = program_of(tensor((symbol("n"), symbol("m")), "f32"), constraints=[constraint])
    choices = size_choices(program)
    assert len(choices) > 3
    assert all(holds(c["n"], c["m"]) for c in choices)  # type: ignore[operator]


def test_shapes_of_inputs_are_defined() -> None:
    program = program_of(tensor((symbol("n"),), "f32"), tensor((parse("6 - n"),), "f32"), ranges={"n": "0..64"})
    assert sizes_of(program, "n") <= set(range(7)) and {0, 6} <= sizes_of(program, "n")


def test_a_program_without_symbols_has_one_choice() -> None:
    assert size_choices(program_of(tensor((3,), "f32"))) == [{}]


@pytest.mark.parametrize("exactness", [Exactness.E0, Exactness.E2])
def test_every_kind_and_all_sizes_come_within_the_default_number(exactness: Exactness) -> None:
    program = program_of(tensor((symbol("n"), 40), "f32"), tensor((9,), "i32"), ranges={"n": "0..9"})
    sets = input_sets(program, exactness, 3)
    assert {one.kind for one in sets} == set(KINDS)
    assert {one.sizes["n"] for one in sets} == sizes_of(program, "n")
    for one in sets:
        assert [a.shape for a in one.arrays] == [(one.sizes["n"], 40), (9,)]
        assert one.elements == sum(a.size for a in one.arrays)


def test_few_sets_of_many_seeds_see_all_kinds_and_sizes() -> None:
    program = program_of(tensor((symbol("n"),), "f32"), tensor((9,), "i32"), ranges={"n": "0..9"})
    drawn = [input_sets(program, Exactness.E2, seed, most=1)[0] for seed in range(120)]
    assert {one.kind for one in drawn} == set(KINDS)
    assert {one.sizes["n"] for one in drawn} == sizes_of(program, "n")


def test_no_kind_hides_another() -> None:
    """NaN and infinities are not in the plain and whole sets; integers are at their limits beside exact floats, too."""
    program = program_of(*(tensor((60,), text) for text in DTYPES))
    for one in (one for one in input_sets(program, Exactness.E2) if one.kind != "alike"):
        floats, integers, bytes_ = (one.arrays[list(DTYPES).index(text)] for text in ("f32", "i32", "i8"))
        assert [a.dtype for a in one.arrays] == [dtype_of(text) for text in DTYPES]
        assert np.isfinite(floats).all() == (one.kind in ("plain", "whole", "integers"))
        assert (integers.max() == 2**31 - 1) == (one.kind not in ("plain", "whole"))
        if one.kind in ("whole", "integers"):
            assert (floats == np.round(floats)).all() and {-128, 127} <= set(bytes_.tolist())


def test_rows_and_whole_arrays_of_one_edge_value_come() -> None:
    """What a reduction begins with shows only where nothing else does: rows of -infinity, of NaN, of limits."""
    program = program_of(tensor((2, 3), "f32"), tensor((4,), "i8"))
    drawn = [input_sets(program, seed=seed, kinds=["alike"], most=1)[0].arrays for seed in range(200)]
    assert all(a.flags.writeable for a, _ in drawn)
    for value in (-np.inf, np.inf, 0.0, np.float32(-3.4028235e38)):
        rows = [(a == value).all(axis=1) for a, _ in drawn]
        assert any(row.all() for row in rows) and any(row.any() and not row.all() for row in rows), value
    assert any(np.isnan(a).all() for a, _ in drawn)
    assert {-128, 127, 0, 1} <= {int(b[0]) for _, b in drawn if (b == b[0]).all()}


def test_sets_are_the_same_for_a_seed() -> None:
    program = program_of(tensor((50,), "f32"))
    first, again, other = (input_sets(program, seed=seed, kinds=["plain"])[0].arrays[0] for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_small_inputs_hold_what_matters_most() -> None:
    """NaN, infinities, zeros of both signs; limits of integers, and whole numbers between what floats hold."""
    floats, whole = 0, 0
    for seed in range(12):
        found = np.concatenate([one.arrays[0] for one in input_sets(program_of(tensor((6,), "f32")), seed=seed)])
        zeros = set(np.signbit(found[found == 0]).tolist())
        floats += (
            bool(np.isnan(found).any() and np.isposinf(found).any() and np.isneginf(found).any()) and len(zeros) == 2
        )
        found = np.concatenate([one.arrays[0] for one in input_sets(program_of(tensor((6,), "i32")), seed=seed)])
        between = found[(np.abs(found.astype(np.int64)) > 2**24) & (np.abs(found.astype(np.int64)) < 2**31 - 1)]
        rounded = bool((between.astype(np.float32).astype(np.int64) != between).any())
        whole += rounded and {-(2**31), 2**31 - 1} <= set(found.tolist())
    assert floats >= 7 and whole >= 10, (floats, whole)
