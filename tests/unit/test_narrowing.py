"""Ranges that constraints narrow keep every value at which the constraints hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dims import Constraint, Range, Ranges, Size, evaluate, narrowed, parse

SIZES = ("n", "n + 3", "2*n", "floordiv(n + 1, 2)", "floordiv(max(0, n - 1), 8) + 1", "floordiv(n + 7, 8)",
         "max(0, n - 5)", "min(n, 7)", "mod(n, 4)", "n*n", "8 - n", "m", "m + n",
         "8 - max(0, 8 - n)")  # fmt: skip

size = st.sampled_from([parse(text) for text in SIZES]) | st.integers(0, 20)
constraint = st.builds(Constraint, st.sampled_from(["le", "eq"]), size, size, st.just("here"))


def holds(c: Constraint, env: dict[str, int]) -> bool:
    a, b = (value if isinstance(value, int) else evaluate(value, env) for value in (c.lhs, c.rhs))
    return a <= b if c.kind == "le" else a == b


@settings(max_examples=400, deadline=None)
@given(st.lists(constraint, max_size=4), st.integers(0, 3), st.sampled_from([None, 30]), st.sampled_from([1, 2]))
def test_what_fulfils_constraints_stays(
    constraints: Sequence[Constraint], low: int, high: int | None, step: int
) -> None:
    ranges = Ranges({"n": Range(low, high, step), "m": Range(0)})
    found = narrowed(ranges, constraints)
    for n in range(32):
        for m in range(32):
            env = {"n": n, "m": m}
            if n in ranges["n"] and all(holds(c, env) for c in constraints):
                assert n in found["n"], (n, m)
                assert m in found["m"], (n, m)


@pytest.mark.parametrize(
    ("kind", "lhs", "rhs", "least"),
    [
        ("le", 3, "n", 3),
        ("le", 2, "floordiv(n + 1, 2)", 3),
        ("eq", "floordiv(n + 7, 8)", "floordiv(max(0, n - 1), 8) + 1", 1),
    ],
)
def test_least_values_are_raised(kind: str, lhs: int | str, rhs: str, least: int) -> None:
    def read(value: int | str) -> Size:
        return parse(value) if isinstance(value, str) else value

    found = narrowed(Ranges({"n": Range(0)}), [Constraint(kind, read(lhs), read(rhs), "here")])  # type: ignore[arg-type]
    assert found["n"].lo == least


@pytest.mark.parametrize(
    ("rhs", "greatest"), [("64 - max(0, 64 - n)", 64), ("min(n, 9)", 9), ("max(0, n - 5)", 0), ("max(3, n)", None)]
)
def test_greatest_values_are_lowered_to_the_last_at_which_sizes_are_equal(rhs: str, greatest: int | None) -> None:
    found = narrowed(Ranges({"n": Range(0)}), [Constraint("eq", parse("n"), parse(rhs), "here")])
    assert found["n"].hi == greatest
