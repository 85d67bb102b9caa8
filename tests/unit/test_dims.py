"""Spellings, messages and limits of symbolic sizes; the laws are in tests/property/test_dims.py."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gcomp.dims import (
    Constraint,
    Dim,
    DimError,
    DimLimitError,
    Range,
    Ranges,
    bind,
    broadcast_dim,
    dmax,
    dmin,
    evaluate,
    exact_div,
    least_sizes,
    parse,
    parse_range,
    product,
    size_from_json,
    symbol,
    symbols_of,
)

batch, seq, n = symbol("batch"), symbol("seq"), symbol("n")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("(2*n)//2", "n"),
        ("(4*n + 2)//2", "2*n + 1"),
        ("(4*n + 3)//2", "2*n + 1"),
        ("(n*k + k)//k", "n + 1"),
        ("(n*8 + 5)//8", "n"),
        ("(n*8 + 5)%8", "5"),
        ("(n - 1)//2 + 1", "floordiv(n + 1, 2)"),
        ("ceildiv(n, 2)", "floordiv(n + 1, 2)"),
        ("((n - 1)//2 + 1 - 1)//2 + 1", "floordiv(n + 3, 4)"),
        ("(batch*seq)//(2*batch)", "floordiv(seq, 2)"),
        ("(6*n + 3) % 9", "3*mod(2*n + 1, 3)"),
        ("n % 4 % 2", "mod(n, 2)"),
        ("(n % 4) // 4", "0"),
        ("n mod 4", "mod(n, 4)"),
        ("n // -2", "floordiv(n, 2) - n"),
        ("-1*a + b", "b - a"),
        ("-a - 1", "-a - 1"),
        ("1 + seq*2", "2*seq + 1"),
        ("seq*batch", "batch*seq"),
        ("n*n - 2*n^2 + n**3", "n^3 - n^2"),
        ("min(seq, 8, 9)", "min(8, seq)"),
        ("max(n, n + 1, max(3, m), 2)", "max(3, m, n + 1)"),
        ("-(-(7))", "7"),
        ("2^10", "1024"),
        ("mod mod 3 + min", "min + mod(mod, 3)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert str(parse(canonical)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "n +",
        "2n",
        "n n",
        "n..m",
        "(n",
        "n)",
        "f(n)",
        "min()",
        "floordiv(n)",
        "mod(n, 0)",
        "n // 0",
        "n^-1",
        "n^m",
        "n^65",
        "n/2",
        "٣",
        "n\x00",
        "9" * 5000,
        "2^64^2",
        "(" * 3000 + "n" + ")" * 3000,
        "(" * 200 + "n" + ")" * 200,
        "-" * 5000 + "n",
        "*".join(["(10^60)"] * 9),
        "(a + b + c + d + e + f + g)^64",
        "+".join(f"a{i}" for i in range(700)),
        "n*" * 70 + "n",
        "x" * 5000,
    ],
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(DimError, match="bad dimension"):
        parse(text)


def test_nesting_is_limited_when_built_and_what_is_built_can_be_read() -> None:
    size = n
    with pytest.raises(DimLimitError):
        for i in range(100):
            assert parse(str(size)) == size
            size = dmin(n + 1, dmax(size * n, i))


def test_of_sizes_whose_difference_is_too_large_nothing_is_known() -> None:
    one, other = (parse("+".join(f"{name}{k}" for k in range(200))) for name in "ab")
    with pytest.raises(DimLimitError):
        one - other
    assert Ranges().equal(one, other) is None and Ranges().less_equal(one, other) is None
    assert Ranges().equal(one, one) is True


def test_integers_of_numpy_are_sizes_and_others_are_not() -> None:
    two = np.int64(2)
    assert n + two == n + 2 == two + n
    assert two * n == 2 * n and (two * n) // two == n
    assert type(product([two, two])) is int
    with pytest.raises(TypeError):
        _ = n + 1.5  # type: ignore[operator]
    with pytest.raises(DimError, match="float"):
        dmin(n, 1.5)  # type: ignore[arg-type]


def test_a_symbolic_size_has_no_truth_and_no_order() -> None:
    with pytest.raises(DimError, match="truth"):
        bool(n)
    with pytest.raises(TypeError):
        _ = n < 3  # type: ignore[operator]
    assert n != 3 and n != seq and n == symbol("n")
    with pytest.raises(AttributeError):
        n.text = "m"  # type: ignore[misc]
    assert copy.deepcopy(n * seq) == n * seq


def test_names() -> None:
    for name in ("", "1n", "a-b", "n ", "é", "a.b"):
        with pytest.raises(DimError, match="name"):
            symbol(name)
    assert symbols_of(parse("min(a, b)//c + d*2")) == {"a", "b", "c", "d"}


def test_evaluation_names_what_is_missing() -> None:
    with pytest.raises(DimError, match="'seq'"):
        evaluate(batch * seq, {"batch": 2})
    with pytest.raises(DimError, match="division by zero"):
        evaluate(parse("batch // seq"), {"batch": 2, "seq": 0})


def test_exact_division() -> None:
    assert exact_div(batch * seq * 12, 4 * batch) == 3 * seq
    assert exact_div(n * n - 1, n + 1) == n - 1
    assert exact_div(n, 2) is None
    assert exact_div(12, 4) == 3
    assert exact_div(n, 0) is None
    assert exact_div(0, n) == 0


@pytest.mark.parametrize("text", ["4", "1..64", "1..", "0..", "8..1024 step 8", "8.. step 8", "-3..5"])
def test_range_text(text: str) -> None:
    assert str(parse_range(text)) == text
    assert Range.from_json(parse_range(text).to_json()) == parse_range(text)


@pytest.mark.parametrize(
    "text", ["", "..", "..4", "5..4", "1..64 step 8", "8..64 step 0", "1...4", "n", "9" * 50, "4 step 2"]
)
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(DimError):
        parse_range(text)


def test_range_ends_are_multiples() -> None:
    assert Range(1, 100, 8) == Range(8, 96, 8)
    assert 16 in Range(1, None, 8) and 12 not in Range(1, None, 8)
    with pytest.raises(DimError, match="empty"):
        Range(1, 7, 8)


@pytest.mark.parametrize(
    ("size", "bounds"),
    [
        ("n", (1, 64)),
        ("other", (1, None)),
        ("2*n + 1", (3, 129)),
        ("n - n//2", (1, 32)),
        ("n*m - m", (0, 64512)),
        ("n^2 - n", (0, 4032)),
        ("m//8", (1, 128)),
        ("m%8", (0, 0)),
        ("n - n%4", (0, 64)),
        ("z - min(8, z)", (0, None)),
        ("max(n, 1) - n", (0, 0)),
        ("a - b", (None, None)),
        ("10^30*n", (10**30, 64 * 10**30)),
    ],
)
def test_bounds_are_tight(size: str, bounds: tuple[int | None, int | None]) -> None:
    ranges = Ranges({"n": Range(1, 64), "m": Range(8, 1024, 8), "z": Range(0)})
    assert ranges.bounds(parse(size)) == bounds


def test_three_valued_comparisons() -> None:
    ranges = Ranges({"n": Range(1, 64), "m": Range(8, 1024, 8), "four": Range(4, 4)})
    assert ranges.equal(n, symbol("k")) is None
    assert ranges.equal(symbol("four"), 4) is True
    assert ranges.equal(parse("2*a"), parse("2*b + 1")) is False
    assert ranges.equal(parse("n//4*4 + n%4"), n) is True
    assert ranges.equal(parse("n - n//2"), parse("ceildiv(n, 2)")) is True
    assert ranges.less_equal(n, 64) is True
    assert ranges.less_equal(65, n) is False
    assert ranges.less_equal(n, parse("m")) is None
    assert ranges.less_equal(parse("min(2, a, b)"), parse("min(a, b)")) is True
    assert ranges.less_equal(parse("min(a, b, n)"), parse("max(a, c)")) is True
    assert ranges.divisible(parse("m*k"), 8) is True
    assert ranges.divisible(parse("m + 4"), 8) is False
    assert ranges.divisible(n, 2) is None
    assert ranges.divisible(batch * seq, seq) is True
    with pytest.raises(DimError, match="zero"):
        ranges.divisible(n, 0)


def test_bind_solves_in_steps() -> None:
    dims = [(batch * seq, 12, "y"), (2 * seq + 1, 9, "x"), (7, 7, "z")]
    assert bind(dims, Ranges()) == {"batch": 3, "seq": 4}


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([(2 * seq + 1, 8, "input 'x' dim 0")], "input 'x' dim 0: expected 2*seq + 1, got 8: no integer seq"),
        (
            [(batch, 100, "input 'x' dim 0")],
            "input 'x' dim 0: expected batch, got 100: batch = 100 is outside its range 1..64",
        ),
        ([(n, 12, "input 'x' dim 1")], "got 12: n = 12 is not a multiple of 8 (range 8.. step 8)"),
        (
            [(batch, 3, "input 'x' dim 0"), (batch, 4, "input 'y' dim 0")],
            "input 'y' dim 0: expected batch = 3, got 4 (batch = 3 from input 'x' dim 0)",
        ),
        ([(3, 4, "input 'x' dim 2")], "input 'x' dim 2: expected 3, got 4"),
        ([(seq // 2, 4, "input 'x' dim 0")], "cannot solve for seq"),
        ([(batch * seq, 4, "input 'x' dim 0")], "cannot solve for batch, seq"),
        ([(seq, 0, "input 'x' dim 0")], "outside its range 1.."),
    ],
)
def test_bind_says_what_is_wrong(dims: list[tuple[Dim | int, int, str]], message: str) -> None:
    with pytest.raises(DimError) as error:
        bind(dims, Ranges({"batch": Range(1, 64), "n": Range(8, None, 8)}))
    assert message in str(error.value)


def test_broadcasting() -> None:
    assert broadcast_dim(n, n) == (n, None)
    assert broadcast_dim(1, n) == (n, None) == broadcast_dim(n, 1)
    assert broadcast_dim(batch, seq) == (dmax(batch, seq), "broadcast")
    assert broadcast_dim(8, n) == (8, "broadcast") == broadcast_dim(n, 8)
    with pytest.raises(DimError, match="3 and 4"):
        broadcast_dim(3, 4)


def test_constraint_messages_and_json() -> None:
    constraint = Constraint("broadcast", batch, seq, "add at model.py:3")
    assert constraint.check({"batch": 1, "seq": 4}) is None
    assert constraint.check({"batch": 3, "seq": 4}) == (
        "add at model.py:3: batch = 3 must equal, or one of them be 1, to broadcast with seq = 4"
    )
    assert constraint.check({"batch": 0, "seq": 1}) is not None
    assert Constraint("broadcast", 0, seq, "").check({"seq": 1}) is None
    for bad in (
        None,
        [],
        {},
        {"kind": "lt", "lhs": 1, "rhs": 2, "where": ""},
        {**constraint.to_json(), "lhs": True},
    ):
        with pytest.raises(DimError):
            Constraint.from_json(bad)
    with pytest.raises(DimError):
        size_from_json(1.5)


N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(("constraints", "given", "least"), [
    ([], {}, {"n": 1, "m": 0}),
    ([Constraint("le", 65, N, "here")], {}, {"n": 65, "m": 0}),
    ([Constraint("le", 2_000_000, N, "here"), Constraint("divides", 7, N, "here")], {}, {"n": 2_000_005, "m": 0}),
    ([Constraint("eq", N, M * 3 + 4, "here")], {}, {"n": 4, "m": 0}),
    ([Constraint("le", 40, N - M, "here")], {"m": 2}, {"n": 42, "m": 2}),
    ([Constraint("le", 40, M - N, "here")], {}, {"n": 1, "m": 41}),
    ([Constraint("eq", N, N + 1, "here")], {}, None),
    ([Constraint("eq", N * M, 7, "here")], {"n": 2}, None),
])  # fmt: skip
def test_the_least_sizes_fulfil_the_constraints(
    constraints: list[Constraint], given: dict[str, int], least: dict[str, int] | None
) -> None:
    assert least_sizes(Ranges({"n": Range(), "m": Range(0)}), constraints, given) == least


def test_the_least_sizes_make_no_negative_shape() -> None:
    assert least_sizes(Ranges({"n": Range()}), [], {}, [N - 3, 5]) == {"n": 3}
