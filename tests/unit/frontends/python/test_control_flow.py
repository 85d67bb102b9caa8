"""Python control flow on traced values: what is compiled gives what Python gives, op by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import ops
from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.frontends.python.function import Traceable
from gcomp.reference.interpreter import interpret
from gcomp.tensors import trees

Function = Callable[..., Any]


def compiled(function: Function, *args: Any) -> Any:
    """What the function's program gives in the reference interpreter, whose results are XLA's but sooner there."""
    traceable = Traceable(function, {})
    call = traceable.call(args, {})
    traced = traceable.trace(call)
    return traced.results([] if traced.program is None else interpret(traced.program, traced.inputs(call)))


def agree(function: Function, *calls: tuple[Any, ...]) -> None:
    """A function gives the same op by op and compiled."""
    for args in calls:
        with gcomp.eager():
            wanted = gcomp.function(function)(*args)
        got = compiled(function, *args)
        (x, structure), (y, other) = trees.flatten(wanted), trees.flatten(got)
        assert structure == other
        for a, b in zip(x, y, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


NUMBERS = [(np.float32(v),) for v in (-7.0, -1.0, 0.0, 0.5, 1.0, 3.0, 8.0, 40.0)]
COUNTS = [(np.int32(v),) for v in (0, 1, 2, 5, 9)]

# ---- branches -------------------------------------------------------------------------------------------------------


def assigned_in_both(x):
    if x > 1:
        y = x * 2
    else:
        y = x - 1
    return y


def one_branch(x):
    y = x
    if x > 1:
        y = y * 3
        x = x + 1
    return x + y


def nested(x):
    y = 0.0
    if x > 0:
        if x > 2:
            y = x
            if x > 10:
                y = y * 2
        else:
            y = -x
    elif x < -3:
        y = x * x
    return y


def early_returns(x):
    if x < 0:
        return -x
    if x > 5:
        if x > 20:
            return x * 100
        return x * 10
    return x


def some_paths_return(x):
    if x > 0:
        y = x
        if x > 2:
            return y * 2
        y = y + 1
    else:
        y = x - 5
    return y


def returns_structures(x):
    if x > 1:
        return {"a": x, "b": (x * 2, 1)}
    return {"a": -x, "b": (x, 2)}


def ternary(x):
    return (x if x > 1 else -x) + (1 if x == 3 else 2)


def logic(x):
    if (x > 0 and x < 5) or x == 40:
        return x
    if not (x > 0 or x == -1):
        return x * 2
    return 100 * x


def chained(x):
    return 1 if 0 <= x < 2 else 2 if 2 <= x <= 8 != x else 3


def shadowed(x):
    y = x
    z = [y * i for i in range(3)]
    if x > 0:
        y = sum(z)
        i = y
    else:
        i = x
    return y, i


def static_condition(x, flag=False):
    if flag:
        x = undefined_name  # noqa: F821
    if not flag and x > 1:
        x = x + 1
    return x


def names_of_a_branch_only(x):
    if x > 1:
        part, label = ops.stack([x, x]), "large"
        x = part.sum()
    else:
        part, label = x - 1, "small"
        x = part * len(label)
    return x


def calls_helpers(x):
    def inner(v):
        if v > 1:
            return v * offset
        return v - offset

    offset = 3
    return inner(x) + outside(x)


def outside(v):
    if v > 3:
        v = v - 3
    return v


def walrus(x):
    if (y := x * 2) > 4:
        return y
    return y + 1


def with_lambda(x):
    pick = lambda v: v if v > 0 else v * 10  # noqa: E731
    return pick(x)


BRANCHES = [assigned_in_both, one_branch, nested, early_returns, some_paths_return, returns_structures, ternary, logic,
            chained, shadowed, static_condition, names_of_a_branch_only, calls_helpers, walrus,
            with_lambda]  # fmt: skip


@pytest.mark.parametrize("function", BRANCHES)
def test_branches(function: Function) -> None:
    agree(function, *NUMBERS)


# ---- loops ----------------------------------------------------------------------------------------------------------


def doubling(x):
    n = 0
    while x < 20:
        x = x * 2 + 1
        n += 1
    return x, n


def sums(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def from_to_by(n):
    total = 0
    for i in range(1, n * 3, 2):
        total = total * 2 + i
    for j in range(n, -1, -1):
        total = total - j
    return total


def breaks(n):
    total = 0
    for i in range(100):
        if i == n:
            break
        if i % 2 == 0:
            continue
        total += i
    return total


def breaks_in_while(n):
    i = total = 0
    while True:
        i += 1
        if i > n:
            break
        if i == 2:
            continue
        total += i
    else:
        total = -1
    return i, total


def loop_else(n):
    found = -2
    for i in range(5):
        if i == n:
            found = i * 10
            break
    else:
        found = -1
    return found


def returns_in_loop(n):
    for i in range(n):
        if i * i > 8:
            return i
    return -1


def returns_in_nested_loops(n):
    for i in range(n):
        for j in range(n):
            if i * j == 4:
                return i, j
    return -1, -1


def nested_loops(n):
    total = 0
    for i in range(n):
        j = 0
        while j < i:
            if (i + j) % 3 == 0:
                total += j
            j += 1
    return total


def temporaries(n):
    total = 0
    for i in range(n):
        square = i * i
        total = total + square
    return total


def carries_structures(n):
    state = {"a": 0, "b": (1, 2.0)}
    for i in range(n):
        state = {"a": state["a"] + i, "b": (state["b"][0] * 2, state["b"][1] / 2)}
    return state


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


def unrolled(n):
    for x in (1, 2, 3):
        if n > x:
            n = n - x
    return n


def returns_what_no_first_turn_does(n):
    c, d, i = 1, 2, 0
    while i < 4 and (d + n) % 3 != 1:
        i += 1
        d = (d + 6) % 97 if d <= 5 else d - n
        c += d % 5
        if 0 <= d < 4:
            return d, c
        d = n if n % 3 == c % 3 else 5
    return n, c


def breaks_out_of_an_else(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 3:
                break
        else:
            if i > 1:
                break
        total += 10
    return total


LOOPS = [sums, from_to_by, breaks, breaks_in_while, loop_else, returns_in_loop, returns_in_nested_loops, nested_loops,
         temporaries, carries_structures, collatz, unrolled, breaks_out_of_an_else,
         returns_what_no_first_turn_does]  # fmt: skip


@pytest.mark.parametrize("function", LOOPS)
def test_loops(function: Function) -> None:
    agree(function, *COUNTS)


def test_while() -> None:
    agree(doubling, *NUMBERS[2:])


def rows(x):
    total = 0.0
    for row in x:
        if row.sum() > 2:
            total = total + row.max()
    return total


def fibonacci(n, m):
    a, b = np.int64(0), np.int64(1)
    for _ in range(n):
        a, b = b, a + b
    return a + m


def newton(x):
    guess = x / 2
    while ops.abs(guess * guess - x) > 1e-3 * x:
        guess = (guess + x / guess) / 2
    return guess


def test_loops_over_tensors() -> None:
    agree(rows, (np.arange(6, dtype=np.float32).reshape(3, 2),), (np.zeros((2, 2), np.float32),))
    agree(fibonacci, *((np.int32(n), np.int64(3)) for n in (0, 1, 10)))
    agree(newton, (np.float64(2),), (np.float64(9),))


def test_loops_are_loops() -> None:
    """A loop with a traced bound is one loop of the program, however often it runs."""
    program = gcomp.function(nested_loops).program(np.int32(3))
    assert [op.name for op in program.ops()].count("stablehlo.while") == 2


def test_symbolic_sizes_decide() -> None:
    def function(x):
        total = x.sum()
        if x.shape[0] > 2:
            total = total + 100
        if x.shape[0] == x.shape[0]:
            total = total + 1
        for i in range(len(x)):
            total = total + x[i, 0] * i
        return total

    traceable = Traceable(function, {"x": ("n", 2)})
    calls = [traceable.call([np.arange(2 * n, dtype=np.float32).reshape(n, 2)], {}) for n in (1, 2, 3, 5)]
    assert len({call.key for call in calls}) == 1
    traced = traceable.trace(calls[0])
    assert traced.program is not None
    for call in calls:
        with gcomp.eager():
            wanted = gcomp.function(function)(*call.arrays)
        (got,) = interpret(traced.program, traced.inputs(call))
        assert got == float(wanted)


# ---- by functions ----------------------------------------------------------------------------------------------------


def by_functions(x):
    a = ops.cond(x > 1, lambda v: v * 2, lambda v: v - 1, x)
    b = ops.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2), (x, 1))
    c = ops.switch(ops.astype(x, int), [lambda: 1.0, lambda: 2.0, lambda: 3.0])
    d, e = ops.scan(lambda s, v: (s + v, s * v), x, np.arange(4, dtype=np.float32))
    f = ops.fori_loop(0, 3, lambda i, s: s + i * x, 0.0)
    g, _ = ops.scan(lambda s, _: (s * 2, s), x, None, length=3, reverse=True)
    return a, b, c, d, e, f, g


def test_control_flow_by_functions() -> None:
    agree(by_functions, *NUMBERS)


# ---- what is refused -------------------------------------------------------------------------------------------------


def other_type(x):
    if x > 1:
        y = x
    else:
        y = ops.zeros(3)
    return y


def one_side(x):
    if x > 1:
        y = x
    return y


def not_tensors(x):
    if x > 1:
        name = "a"
    else:
        name = "b"
    return name


def none_or_tensor(x):
    if x > 1:
        return x


def changes_type(x):
    y = ops.zeros(2)
    while x > 1:
        y = ops.concatenate([y, y])
        x = x - 1
    return y


def appends(x):
    found = []
    while x > 1:
        found.append(x)
        x = x - 1
    return found


def sets_item(x):
    found = {"a": x}
    if x > 1:
        found["a"] = x * 2
    return found["a"]


def raises(x):
    if x < 0:
        raise ValueError("negative")
    return x


def after_loop(n):
    for i in range(n):
        last = i
    return last


def many_truths(x):
    y = ops.stack([x, x])
    if y > 1:
        return x
    return -x


def as_bool(x):
    return bool(x > 1)


def as_int(x):
    return [0] * int(x)


def as_array(x):
    return np.fft.fft(x)


def as_index(x):
    return [1, 2, 3][x.astype(int)]


def in_slice(x):
    return ops.arange(9)[: x.astype(int)]


REFUSED: dict[Function, tuple[type[GcompError], str]] = {
    other_type: (UnsupportedError, r"'y' has no value(.|\n)*different types"),
    one_side: (UnsupportedError, "'y' has no value"),
    not_tensors: (UnsupportedError, r"'name' has no value(.|\n)*no tensors and differ"),
    none_or_tensor: (UsageError, "different structures"),
    changes_type: (UsageError, "changes the type of 'y'"),
    appends: (UnsupportedError, "in place"),
    sets_item: (UnsupportedError, "in place"),
    raises: (UnsupportedError, "raises ValueError"),
    after_loop: (UnsupportedError, "'last' has no value"),
    many_truths: (UsageError, "one truth"),
    as_bool: (UnsupportedError, "Python bool"),
    as_int: (UnsupportedError, "Python int"),
    as_array: (UnsupportedError, "Python array"),
    as_index: (UnsupportedError, "Python int"),
    in_slice: (UnsupportedError, "only a run knows"),
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused_says_where_and_what_to_do(function: Function) -> None:
    kind, words = REFUSED[function]
    with pytest.raises(kind, match=words) as caught:
        gcomp.function(function)(np.int32(2) if function is after_loop else np.float32(2))
    error = caught.value
    first = function.__code__.co_firstlineno
    last = max(line for _, _, line in function.__code__.co_lines() if line)
    assert error.fix and error.where is not None and __file__ in error.where
    line = int(error.where.split(".py:")[1].split(":")[0])
    assert first <= line <= last, error


def test_unrewritten_code_refuses_a_traced_truth() -> None:
    pick = eval("lambda x: x if x > 1 else -x")  # noqa: S307
    with pytest.raises(UnsupportedError, match=r"ops\.cond"):
        gcomp.function(pick)(np.float32(2))
