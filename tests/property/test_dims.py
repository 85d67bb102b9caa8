"""Laws of symbolic sizes: whatever is simplified, bounded or compared agrees with evaluation."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product as product_of
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dims import (
    Constraint,
    Dim,
    DimError,
    Range,
    Ranges,
    Size,
    bind,
    broadcast_dim,
    ceildiv,
    dmax,
    dmin,
    evaluate,
    exact_div,
    floordiv,
    mod,
    parse,
    parse_range,
    product,
    size_from_json,
    size_to_json,
    substitute,
    symbol,
    symbols_of,
)
from tests.support.thinning import examples

NAMES = ("a", "b", "c")
Env = dict[str, int]
# A formula before simplification: an integer, a name, or an operation on formulas.
Tree = Any

OPERATIONS: dict[str, tuple[Callable[..., Size], Callable[..., int]]] = {
    "+": (lambda x, y: x + y, lambda x, y: x + y),
    "-": (lambda x, y: x - y, lambda x, y: x - y),
    "*": (lambda x, y: x * y, lambda x, y: x * y),
    "//": (floordiv, lambda x, y: x // y),
    "%": (mod, lambda x, y: x % y),
    "ceildiv": (ceildiv, lambda x, y: -(-x // y)),
    "min": (dmin, min),
    "max": (dmax, max),
}
RING = ("+", "-", "*")


def law(*strategies: st.SearchStrategy[Any], count: int = 100) -> Callable[[Callable[..., None]], Any]:
    """A property test; never a timed one."""
    return lambda test: settings(deadline=None, max_examples=examples(count))(given(*strategies)(test))


def trees(operations: tuple[str, ...], leaves: int = 8) -> st.SearchStrategy[Tree]:
    def extend(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.tuples(st.sampled_from(operations), children, children)

    return st.recursive(st.integers(-9, 9) | st.sampled_from(NAMES), extend, max_leaves=leaves)


def build(tree: Tree) -> Size:
    match tree:
        case int():
            return tree
        case str():
            return symbol(tree)
        case (operation, *children):
            return OPERATIONS[operation][0](*map(build, children))


def meaning(tree: Tree, env: Env) -> int:
    match tree:
        case int():
            return tree
        case str():
            return env[tree]
        case (operation, *children):
            return OPERATIONS[operation][1](*(meaning(child, env) for child in children))


def built(tree: Tree) -> Size | None:
    """The size, or None where the formula divides by the constant zero."""
    try:
        return build(tree)
    except DimError as error:
        assert "by zero" in str(error)
        return None


polynomials = trees(RING).map(build)
sizes = trees(tuple(OPERATIONS)).map(built).filter(lambda size: size is not None)
envs = st.fixed_dictionaries({name: st.integers(-12, 12) | st.integers(-1000, 1000) for name in NAMES})


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Ranges, Env]:
    """Ranges, and an assignment within them."""
    ranges: dict[str, Range] = {}
    env: Env = {}
    for name in NAMES:
        step = draw(st.sampled_from((1, 1, 2, 3, 8)))
        low = draw(st.integers(-3, 6))
        width = draw(st.integers(0, 12) | st.none())
        ranges[name] = Range(low * step, None if width is None else (low + width) * step, step)
        env[name] = step * (low + draw(st.integers(0, 12 if width is None else width)))
    return Ranges(ranges), env


@law(trees(tuple(OPERATIONS), leaves=12), envs, count=400)
def test_simplification_agrees_with_evaluation(tree: Tree, env: Env) -> None:
    size = built(tree)
    try:
        expected = meaning(tree, env)
    except ZeroDivisionError:
        return
    assert size is not None
    assert evaluate(size, env) == expected


divisors = st.integers(-9, 9).filter(bool)


@law(divisors, divisors, divisors, st.tuples(*[st.integers(-9, 9)] * 4), st.integers(-30, 30), count=400)
def test_nested_divisions_agree_with_evaluation(p: int, q: int, k: int, c: tuple[int, ...], value: int) -> None:
    """The forms that have a simplification of their own, which random formulas seldom take."""
    a = symbol("a")
    size = c[0] * (a // p) + c[1] * (a % q) + c[2] * a + c[3]
    actual = c[0] * (value // p) + c[1] * (value % q) + c[2] * value + c[3]
    assert evaluate(size // k, {"a": value}) == actual // k
    assert evaluate(size % k, {"a": value}) == actual % k
    assert evaluate((a % p + c[3]) // k, {"a": value}) == (value % p + c[3]) // k
    assert evaluate((c[0] * a + c[3]) % k, {"a": value}) == (c[0] * value + c[3]) % k


@law(polynomials, polynomials, polynomials)
def test_ring_laws_hold_as_object_equality(x: Size, y: Size, z: Size) -> None:
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) + z == x + (y + z)
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - y == -(y - x)
    assert x - x == 0
    assert hash(x * (y + z)) == hash(x * y + x * z)


@law(trees(RING, leaves=6), trees(RING, leaves=6))
def test_polynomials_are_equal_objects_exactly_when_equal_functions(left: Tree, right: Tree) -> None:
    # Six leaves bound every degree by 6 and every coefficient far below the base, so the value at this one
    # point spells out all coefficients (Kronecker substitution).
    base = 10**12
    env = {name: base ** (7**i) for i, name in enumerate(NAMES)}
    assert (build(left) == build(right)) == (meaning(left, env) == meaning(right, env))


@law(sizes, count=300)
def test_text_round_trip(size: Size) -> None:
    assert parse(str(size)) == size
    assert str(parse(str(size))) == str(size)
    assert size_from_json(json.loads(json.dumps(size_to_json(size)))) == size


@law(sizes, sizes)
def test_constants_are_plain_integers(x: Size, y: Size) -> None:
    for size in (x - x, x * 0, dmin(x, x) - x, x + y):
        assert type(size) is int or symbols_of(size)


@law(polynomials, polynomials, st.integers(-6, 6).filter(bool))
def test_multiples_leave_a_floor_division(x: Size, y: Size, k: int) -> None:
    assert (x + k * y) // k == x // k + y
    assert (x + k * y) % k == x % k


@law(polynomials, polynomials)
def test_exact_division_inverts_multiplication(x: Size, y: Size) -> None:
    assert exact_div(x * y, y) == (None if y == 0 else x)


@law(sizes, sizes, envs)
def test_exact_division_is_exact(x: Size, y: Size, env: Env) -> None:
    quotient = exact_div(x, y)
    if quotient is not None:
        assert quotient * y == x
        try:
            expected = evaluate(x, env)
            assert evaluate(quotient, env) * evaluate(y, env) == expected
        except DimError as error:
            assert "by zero" in str(error)


@law(st.lists(polynomials, max_size=4), envs)
def test_product_agrees_with_evaluation(factors: list[Size], env: Env) -> None:
    expected = 1
    for factor in factors:
        expected *= evaluate(factor, env)
    assert evaluate(product(factors), env) == expected


@law(st.lists(polynomials, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_extrema_ignore_order_and_grouping(args: list[Size], random: Any) -> None:
    shuffled = random.sample(args, len(args))
    for extremum in (dmin, dmax):
        assert extremum(*args) == extremum(*shuffled)
        assert extremum(args[0], extremum(*args)) == extremum(*args)


@law(sizes, polynomials, envs)
def test_substitution_agrees_with_evaluation(size: Size, replacement: Size, env: Env) -> None:
    try:
        expected = evaluate(size, {**env, "a": evaluate(replacement, env)})
        actual = evaluate(substitute(size, {"a": replacement}), env)
    except DimError as error:
        assert "by zero" in str(error)
    else:
        assert actual == expected


@law(sizes, worlds(), count=400)
def test_bounds_are_sound(size: Size, world: tuple[Ranges, Env]) -> None:
    ranges, env = world
    low, high = ranges.bounds(size)
    try:
        value = evaluate(size, env)
    except DimError:
        return
    assert low is None or low <= value
    assert high is None or value <= high


@law(sizes, sizes, st.integers(-6, 6).filter(bool), worlds(), count=400)
def test_comparisons_are_sound(x: Size, y: Size, k: int, world: tuple[Ranges, Env]) -> None:
    ranges, env = world
    try:
        left, right = evaluate(x, env), evaluate(y, env)
    except DimError:
        return
    assert ranges.equal(x, y) in (None, left == right)
    assert ranges.less_equal(x, y) in (None, left <= right)
    assert ranges.divisible(x, k) in (None, left % k == 0)
    if right:
        assert ranges.divisible(x, y) in (None, left % right == 0)


@law(polynomials, polynomials)
def test_what_holds_by_construction_is_proved(x: Size, y: Size) -> None:
    ranges = Ranges()
    assert ranges.equal(x, x) is True
    assert ranges.less_equal(x, x) is True
    assert ranges.equal(x, x + 1) is False
    assert ranges.less_equal(dmin(x, y), x) is True
    assert ranges.less_equal(x, dmax(x, y)) is True


@law(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 5)), worlds())
def test_bounds_of_linear_sizes_are_attained(coefficients: tuple[int, int, int], world: tuple[Ranges, Env]) -> None:
    ranges, _ = world
    x, y, constant = coefficients
    size = x * symbol("a") + y * symbol("b") + constant
    corners = [
        x * a + y * b + constant
        for a in (ranges["a"].lo, ranges["a"].hi)
        for b in (ranges["b"].lo, ranges["b"].hi)
        if a is not None and b is not None
    ]
    low, high = ranges.bounds(size)
    assert low is None or low in corners
    assert high is None or high in corners
    if ranges["a"].hi is not None and ranges["b"].hi is not None:
        assert (low, high) == (min(corners), max(corners))


ends = st.tuples(st.integers(-7, 7), st.integers(-7, 7)).map(sorted)
EXACT = ("x + y", "x*y", "x^2", "x^3", "x*y^2 + 1", "min(x, y)", "max(x, y)")
SOUND = ("x//y", "x%y", "x//3", "x%3", "(x%3)*y", "x*y - x", "x - min(x, y)", "x//2 - x", "x - x%2")


@law(ends, ends)
def test_bounds_hold_all_values_on_small_boxes(x_ends: list[int], y_ends: list[int]) -> None:
    box = [(x, y) for x in range(x_ends[0], x_ends[1] + 1) for y in range(y_ends[0], y_ends[1] + 1)]
    for text in EXACT + SOUND:
        size = parse(text)
        values = [evaluate(size, {"x": x, "y": y}) for x, y in box if y or text not in ("x//y", "x%y")]
        for x_high, y_high in product_of((x_ends[1], None), (y_ends[1], None)):
            low, high = Ranges({"x": Range(x_ends[0], x_high), "y": Range(y_ends[0], y_high)}).bounds(size)
            assert all((low is None or low <= v) and (high is None or v <= high) for v in values)
        if text in EXACT:
            tight = Ranges({"x": Range(*x_ends), "y": Range(*y_ends)}).bounds(size)
            assert tight == (min(values), max(values))


@law(worlds())
def test_ranges_round_trip(world: tuple[Ranges, Env]) -> None:
    ranges, env = world
    assert Ranges.from_json(json.loads(json.dumps(ranges.to_json()))) == ranges
    for name in NAMES:
        assert parse_range(str(ranges[name])) == ranges[name]
        assert env[name] in ranges[name]


@law(worlds(), st.lists(polynomials, max_size=4), st.randoms(use_true_random=False))
def test_bind_finds_the_values(world: tuple[Ranges, Env], formulas: list[Size], random: Any) -> None:
    ranges, env = world
    a, b, c = map(symbol, NAMES)
    # b and c can only be solved one after the other.
    known = [a, 3 * b + a, c * (1 + (a + 1) * (a + 1)) - b, *formulas]
    dims = [(formula, evaluate(formula, env), f"dim {i}") for i, formula in enumerate(known)]
    random.shuffle(dims)
    assert bind(dims, ranges) == env


@law(worlds(), sizes, st.integers(-5, 5).filter(bool))
def test_bind_refuses_a_wrong_size(world: tuple[Ranges, Env], formula: Size, error: int) -> None:
    ranges, env = world
    try:
        actual = evaluate(formula, env) + error
    except DimError:
        return
    dims = [(symbol(name), env[name], f"input '{name}' dim 0") for name in NAMES]
    try:
        bind([*dims, (formula, actual, "input 'x' dim 1")], ranges)
    except DimError as refusal:
        assert "input '" in str(refusal)
        assert "got" in str(refusal)
    else:
        raise AssertionError("a wrong size was accepted")


@law(polynomials, polynomials, envs)
def test_constraints_agree_with_their_meaning(x: Size, y: Size, env: Env) -> None:
    left, right = evaluate(x, env), evaluate(y, env)
    holds = {
        "eq": left == right,
        "le": left <= right,
        "divides": right % left == 0 if left else right == 0,
    }
    for kind, expected in holds.items():
        constraint = Constraint.from_json({"kind": kind, "lhs": str(x), "rhs": size_to_json(y), "where": "here"})
        assert (constraint.check(env) is None) == expected
        assert Constraint.from_json(json.loads(json.dumps(constraint.to_json()))) == constraint


@law(st.integers(0, 4) | st.sampled_from(NAMES), st.integers(0, 4) | st.sampled_from(NAMES), st.data())
def test_broadcasting_agrees_with_numpy(x: int | str, y: int | str, data: st.DataObject) -> None:
    a, b = build(x), build(y)
    env = {name: data.draw(st.integers(0, 4)) for name in NAMES}
    left, right = evaluate(a, env), evaluate(b, env)
    valid = left == right or 1 in (left, right)
    try:
        size, kind = broadcast_dim(a, b)
    except DimError:
        assert not valid and not isinstance(a, Dim) and not isinstance(b, Dim)
        return
    accepted = kind is None or Constraint(kind, a, b, "here").check(env) is None
    if accepted:
        assert valid
        assert evaluate(size, env) == (right if left == 1 else left)
    else:
        assert not valid or {left, right} == {0, 1}


FRAGMENTS = [
    "n",
    "min(",
    "floordiv(",
    "(",
    ")",
    ",",
    "^",
    "-",
    "+",
    "//",
    "%",
    " mod ",
    "9" * 45,
    "0",
    "7",
    "é",
]


@law(st.text(max_size=30) | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join), count=500)
def test_parsers_only_raise_dim_error(text: str) -> None:
    for function in (parse, parse_range):
        try:
            function(text)
        except DimError as error:
            assert str(error)
