"""Random formulas of symbolic sizes, next to Python's integers: values, bounds, comparisons, binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from gcomp.dims import (
    Constraint,
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
    substitute,
    symbol,
    symbols_of,
)

NAMES = ("a", "b", "c")
FORMULAS = 800

_OPERATIONS: dict[str, tuple[Callable[[Size, Size], Size], Callable[[int, int], int]]] = {
    "+": (lambda x, y: x + y, lambda x, y: x + y),
    "-": (lambda x, y: x - y, lambda x, y: x - y),
    "*": (lambda x, y: x * y, lambda x, y: x * y),
    "//": (floordiv, lambda x, y: x // y),
    "%": (mod, lambda x, y: x % y),
    "ceildiv": (ceildiv, lambda x, y: -(-x // y)),
    "min": (dmin, min),
    "max": (dmax, max),
}
_DIVISIONS = ("//", "%", "ceildiv")
Tree = Any


def problems(seed: int) -> Iterator[str]:
    """What is wrong with each of many formulas; mostly the empty text."""
    random = Random(seed)
    for _ in range(FORMULAS):
        trees = [_tree(random, random.randint(1, 4)) for _ in range(2)]
        ranges, env = _world(random)
        try:
            yield _problem(trees, ranges, env)
            yield _nested(random, env)
            yield _binding(random, env)
        except Exception as error:  # whatever the mistake makes of it
            yield f"{trees} with {env}: {type(error).__name__}: {error}"


def _tree(random: Random, depth: int) -> Tree:
    if depth == 0 or random.random() < 0.2:
        return random.choice(NAMES) if random.random() < 0.6 else random.randint(-6, 6)
    operation = random.choice(list(_OPERATIONS))
    right = random.choice((1, 2, 3, 4, 6, -2)) if operation in _DIVISIONS else _tree(random, depth - 1)
    return operation, _tree(random, depth - 1), right


def _built(tree: Tree) -> Size:
    if isinstance(tree, tuple):
        return _OPERATIONS[tree[0]][0](_built(tree[1]), _built(tree[2]))
    return symbol(tree) if isinstance(tree, str) else tree


def _meant(tree: Tree, env: dict[str, int]) -> int:
    if isinstance(tree, tuple):
        return _OPERATIONS[tree[0]][1](_meant(tree[1], env), _meant(tree[2], env))
    return env[tree] if isinstance(tree, str) else tree


def _world(random: Random) -> tuple[Ranges, dict[str, int]]:
    """Ranges, and values in them, often at their ends."""
    ranges: dict[str, Range] = {}
    env: dict[str, int] = {}
    for name in NAMES:
        step, low, width = random.choice((1, 1, 2, 3)), random.randint(0, 4), random.choice((0, 1, 3, 9, None))
        high = low + (9 if width is None else width)
        ranges[name] = Range(low * step, None if width is None else high * step, step)
        env[name] = step * random.choice((low, high, random.randint(low, high)))
    return Ranges(ranges), env


def _problem(trees: list[Tree], ranges: Ranges, env: dict[str, int]) -> str:
    """Values, texts, bounds and comparisons of two formulas."""
    sizes, values = [_built(tree) for tree in trees], [_meant(tree, env) for tree in trees]
    what = f"{' and '.join(map(str, sizes))} with {env}"
    for tree, size, value in zip(trees, sizes, values, strict=True):
        if evaluate(size, env) != value or parse(str(size)) != size:
            return f"{tree} is {value} and became {size}, which is {evaluate(size, env)}, with {env}"
        fixed = substitute(size, {"a": env["a"]})
        if evaluate(fixed, env) != value or "a" in symbols_of(fixed):
            return f"{size} with a = {env['a']} becomes {fixed}"
        low, high = ranges.bounds(size)
        if not (low is None or low <= value) or not (high is None or value <= high):
            return f"{size} is {value}, its bounds are {low}..{high}, with {env} in {ranges}"
    (x, y), (v, w) = sizes, values
    claims = (("equal", ranges.equal(x, y), v == w), ("less_equal", ranges.less_equal(x, y), v <= w),
              ("divisible", ranges.divisible(x, 6), v % 6 == 0))  # fmt: skip
    for name, claim, truth in claims:
        if claim is not None and claim != truth:
            return f"{name} of {what} in {ranges}: {claim}"
    quotient = exact_div(x * y, y) if w else None
    if quotient is not None and evaluate(quotient, env) != v:
        return f"exact_div of {what}: {quotient}"
    quotient = exact_div(x, 4)
    if quotient is not None and 4 * evaluate(quotient, env) != v:
        return f"exact_div of {x} by 4: {quotient}"
    return ""


def _nested(random: Random, env: dict[str, int]) -> str:
    """The forms that have a simplification of their own."""
    a, value = symbol("a"), env["a"]
    p, q, k = (random.choice((2, 3, 4, 6, -3)) for _ in range(3))
    c = [random.randint(-6, 6) for _ in range(4)]
    size = c[0] * (a // p) + c[1] * (a % q) + c[2] * a + c[3]
    actual = c[0] * (value // p) + c[1] * (value % q) + c[2] * value + c[3]
    pairs = [(size // k, actual // k), (size % k, actual % k), ((a % p + c[3]) // k, (value % p + c[3]) // k),
             ((a // p + c[3]) // k, (value // p + c[3]) // k),
             ((a + c[0]) % p % k, (value + c[0]) % p % k)]  # fmt: skip
    found = ((s, v) for s, v in pairs if evaluate(s, env) != v)
    return next((f"{s} is {evaluate(s, env)}, not {v}, with {env}" for s, v in found), "")


def _binding(random: Random, env: dict[str, int]) -> str:
    """Solving for symbols, broadcasting, and constraints."""
    a, b = symbol("a"), symbol("b")
    scale, shift, wrong = random.randint(1, 3), random.randint(0, 3), random.choice((0, 0, 1))
    entries: list[tuple[Size, int, str]] = [
        (a, env["a"], "x"), (scale * b + shift, scale * env["b"] + shift + wrong, "y"),
    ]  # fmt: skip
    solvable = wrong % scale == 0
    try:
        got = bind(entries, Ranges({"a": Range(0), "b": Range(0)}))
    except DimError:
        return f"{entries} has a solution" if solvable else ""
    if not solvable or got != {"a": env["a"], "b": env["b"] + wrong // scale}:
        return f"{entries} is solved by {got}"
    for x, y in ((a, b), (3, a), (a, 1), (b, 4)):
        size, kind = broadcast_dim(x, y)
        v, w = evaluate(x, env), evaluate(y, env)
        fits = v == w or 1 in (v, w)
        if kind is not None and (Constraint(kind, x, y, "").check(env) is None) != (fits and {v, w} != {0, 1}):
            if not (fits and 0 in (v, w)):
                return f"{x} and {y} broadcast with {env}: {Constraint(kind, x, y, '').check(env)}"
        elif fits and 0 not in (v, w) and evaluate(size, env) != max(v, w):
            return f"{x} and {y} broadcast to {size} with {env}"
    for kind, truth in (("eq", env["a"] == env["b"]), ("le", env["a"] <= env["b"]),
                        ("divides", env["b"] % env["a"] == 0 if env["a"] else env["b"] == 0)):  # fmt: skip
        if (Constraint(kind, a, b, "").check(env) is None) != truth:
            return f"constraint {kind} of a and b with {env}"
    return ""
