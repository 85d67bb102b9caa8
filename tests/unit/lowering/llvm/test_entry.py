"""The entry of a segment does its steps: compiled for this machine, and compared with the same steps in Python."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dims import Dim, DimError, Size, dmax, dmin, evaluate, floordiv, mod, parse, symbol
from gcomp.errors import UnsupportedError
from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.entry import CHUNK, LEAST_TURNED, TURNED, Segment, print_entry
from gcomp.lowering.llvm.sizes import Sizes
from gcomp.lowering.llvm.writer import Writer
from gcomp.runtime.cpu.plan import SHARED_WORK
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from gcomp.runtime.steps import Buffer, Case, Copy, Fill, Launch, Loop, Step, While
from tests.mapped import Mapped, Pool

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no code for this machine")

ADD = """
define void @add(ptr %args, i64 %begin, i64 %end) {
  %n.at = getelementptr i64, ptr %args, i64 1
  %x = load ptr, ptr %args
  %n = load i64, ptr %n.at
  br label %head
head:
  %i = phi i64 [ %begin, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %x, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %n
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
"""
"""Adds a size to each of a grid of integers."""

LESS = """
define void @less(ptr %args, i64 %begin, i64 %end) {
  %out.at = getelementptr i64, ptr %args, i64 1
  %limit.at = getelementptr i64, ptr %args, i64 2
  %x = load ptr, ptr %args
  %out = load ptr, ptr %out.at
  %limit = load i64, ptr %limit.at
  %value = load i64, ptr %x
  %found = icmp slt i64 %value, %limit
  %byte = zext i1 %found to i8
  store i8 %byte, ptr %out
  ret void
}
"""
"""Whether an integer is less than a size."""

NOTE = """
define void @note(ptr %args, i64 %begin, i64 %end) {
  %x = load ptr, ptr %args
  br label %head
head:
  %i = phi i64 [ %begin, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %count = load i64, ptr %x
  %after = add i64 %count, 1
  %at = getelementptr i64, ptr %x, i64 %after
  store i64 %i, ptr %at
  store i64 %after, ptr %x
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
"""
"""Writes down which programs run, in their order, after how many did."""


def run(
    steps: Sequence[Step], buffers: Sequence[Buffer], inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
    sizes: Mapping[str, int], arena: int = 0, threads: int = 0, fixed: int = 0, slots: Sequence[str] = (),
) -> None:  # fmt: skip
    """Compile the steps, and call them."""
    kernels = ("add", "less", "note")
    segment = Segment(
        len(inputs),
        0,
        len(outputs),
        tuple(sizes),
        fixed,
        tuple(map(parse, slots)),
        tuple(buffers),
        kernels,
        tuple(steps),
    )
    modules = [Module("entry", print_entry(segment)), Module("add", ADD), Module("less", LESS), Module("note", NOTE)]
    mapped = Mapped(compile_image(modules, VARIANTS[this_machine()]))
    memory = np.zeros(arena + 64, np.uint8)
    pool = Pool(mapped, threads) if threads else None
    places = [array.ctypes.data for array in (*inputs, *outputs)]
    slots = [-(-memory.ctypes.data // 64) * 64, pool.address if pool else 0, *places, *sizes.values()]
    call = (ctypes.c_int64 * len(slots))(*slots)
    assert mapped.function("gcomp_entry", [ctypes.c_void_p], ctypes.c_int64)(call) == 0
    if pool:
        pool.stop()


def test_launches_take_sizes_from_symbols() -> None:
    x = np.arange(12)
    run(
        [Launch(0, ("n", "m"), (0, "2*n + floordiv(m, 2)"))],
        [Buffer("output", 0, "8*m*n")],
        [],
        [x],
        {"n": 4, "m": 3},
    )
    assert (x == np.arange(12) + 9).all()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_work_worth_it_is_shared_and_all_of_it_is_done(threads: int) -> None:
    x = np.arange(100_000)
    steps = [Launch(0, ("n",), (0, "7"), flops=f"{SHARED_WORK}"), Launch(0, ("n",), (0, "5"), flops="9*n")]
    run(steps, [Buffer("output", 0, "8*n")], [], [x], {"n": x.size}, threads=threads)
    assert (x == np.arange(x.size) + 12).all()


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, 5 * CHUNK + 3])
def test_copies_and_fills_cover_their_bytes_and_no_more(count: int) -> None:
    source, target = np.random.default_rng(0).integers(0, 255, count, np.uint8), np.full(count + 9, 9, np.uint8)
    buffers = [Buffer("input", 0, "n"), Buffer("arena", 64, "n"), Buffer("output", 0, "n")]
    for threads in (0, 2):
        target[:] = 9
        run([Copy(0, 1), Copy(1, 2)], buffers, [source], [target], {"n": count}, count + 64, threads)
        assert (target[:count] == source).all() and (target[count:] == 9).all()
        run([Fill(2, 0xAB)], buffers, [source], [target], {"n": count}, 0, threads)
        assert (target[:count] == 0xAB).all() and (target[count:] == 9).all()


def test_slots_follow_each_other_behind_what_is_fixed() -> None:
    """Three slots are filled in any order, and none lies over another."""
    slots, found = ("n", "3*n + 1", "n"), [np.zeros(300, np.uint8) for _ in range(3)]
    buffers = [Buffer("slot", k, size) for k, size in enumerate(slots)]
    outputs = [Buffer("output", k, size) for k, size in enumerate(slots)]
    steps = [*(Fill(k, k + 1) for k in (2, 0, 1)), *(Copy(k, k + 3) for k in range(3))]
    run(steps, [*buffers, *outputs], [], found, {"n": 70}, 1000, fixed=5, slots=slots)
    assert [(x == k + 1).sum() for k, x in enumerate(found)] == [70, 211, 70]


@pytest.mark.parametrize(("start", "limit"), [(0, 10), (5, 5), (3, 100)])
def test_a_while_tests_before_each_turn(start: int, limit: int) -> None:
    x, flag = np.array([start]), np.zeros(1, np.uint8)
    buffers = [Buffer("output", 0, "8"), Buffer("output", 1, "1")]
    body = (Loop("2", (Launch(0, ("1",), (0, "n")),)),)
    run([While(1, (Launch(1, ("1",), (0, 1, "limit")),), body)], buffers, [], [x, flag], {"n": 3, "limit": limit})
    expected = start
    while expected < limit:
        expected += 6
    assert (x[0], flag[0]) == (expected, 0)


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("by", ["count", "test"])
def test_what_is_repeated_and_large_goes_back_through_its_memory(by: str, threads: int) -> None:
    """Programs run forwards and backwards in turn in a loop, if they move much; in each call anew, and each once."""
    x, flag = np.zeros(40, np.int64), np.zeros(1, np.uint8)
    large, small = Launch(2, ("3",), (0,), bytes=f"{TURNED}"), Launch(2, ("3",), (0,), bytes=f"{TURNED - 1}")
    before = (Launch(1, ("1",), (0, 1, "21")),)
    loop = Loop("3", (large, small)) if by == "count" else While(1, before, (large, small))
    buffers = [Buffer("output", 0, "320"), Buffer("output", 1, "1")]
    for _ in range(2):
        x[:] = 0
        run([large, loop, large], buffers, [], [x, flag], {}, threads=threads)
        on, back = [0, 1, 2], [2, 1, 0]
        assert x[1 : x[0] + 1].tolist() == [*on, *on, *on, *back, *on, *on, *on, *on]


def test_programs_that_move_little_each_are_called_together() -> None:
    for programs, turned in ((TURNED // LEAST_TURNED, True), (TURNED // LEAST_TURNED + 1, False)):
        steps = (Loop("2", (Launch(0, (f"{programs}",), (0, "0"), bytes=f"{TURNED}"),)),)
        text = print_entry(Segment(0, 0, 1, (), 0, (), (Buffer("output", 0, "8"),), ("add",), steps))
        assert ("@add.back" in text) == turned


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 3, 1 << 30])
def test_a_case_takes_the_branch_of_its_number_or_the_last(number: int) -> None:
    x = np.zeros(1, np.int64)
    branches = tuple([(Launch(0, ("1",), (1, f"{10**k}")),) for k in range(3)])
    steps = [Case(0, branches), Launch(0, ("1",), (1, "7"))]
    run(steps, [Buffer("input", 0, "4"), Buffer("output", 0, "8")], [np.array([number], np.int32)], [x], {})
    assert x[0] == 10 ** (number if 0 <= number < 3 else 2) + 7


@pytest.mark.parametrize("byte", [0, 1])
def test_a_case_of_a_byte_takes_the_first_branch_where_it_is_true(byte: int) -> None:
    x = np.zeros(1, np.int64)
    branches = ((Launch(0, ("1",), (1, "1")),), ())
    run([Case(0, branches)], [Buffer("input", 0, "1"), Buffer("output", 0, "8")], [np.array([byte], np.uint8)], [x], {})
    assert x[0] == byte


# ---- formulas ----

SYMBOLS = ("n", "m", "k")
CONSTANTS = st.integers(-40, 40)
_LEAVES = st.one_of(CONSTANTS, st.sampled_from([symbol(name) for name in SYMBOLS]))


def _formulas() -> st.SearchStrategy[Size]:
    def extended(inner: st.SearchStrategy[Size]) -> st.SearchStrategy[Size]:
        pairs = st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), inner, inner)
        return pairs.map(lambda row: _applied(*row))

    return st.recursive(_LEAVES, extended, max_leaves=8)


def _applied(op: str, a: Size, b: Size) -> Size:
    try:
        match op:
            case "+" | "-":
                return a + b if op == "+" else a - b
            case "*":
                return a * b
            case "min" | "max":
                return dmin(a, b) if op == "min" else dmax(a, b)
            case _:
                return floordiv(a, b) if op == "//" else mod(a, b)
    except DimError:
        return a


@settings(max_examples=12, deadline=None)
@given(st.lists(_formulas(), min_size=8, max_size=24), st.lists(CONSTANTS, min_size=24, max_size=24))
def test_formulas_are_what_dims_says(formulas: list[Size], values: list[int]) -> None:
    w = Writer()
    given_at = [w.pure(f"load i64, ptr {w.pure(f'getelementptr i64, ptr %args, i64 {n}')}") for n in range(3)]
    sizes = Sizes(w, dict(zip(SYMBOLS, given_at, strict=True)))
    for n, formula in enumerate(formulas):
        # Through its text, as a plan has it.
        found = sizes.value(parse(str(formula)))
        w.emit(f"store i64 {found}, ptr {w.pure(f'getelementptr i64, ptr %args, i64 {3 + n}')}")
    text = "\n".join([*w.declared, w.text("run", "ptr %args", []), "attributes #0 = { nounwind }"])
    mapped = Mapped(compile_image([Module("run", text)], VARIANTS[this_machine()]))
    function = mapped.function("run", [ctypes.c_void_p])
    for begin in range(0, 24, 3):
        env = dict(zip(SYMBOLS, values[begin : begin + 3], strict=True))
        memory = (ctypes.c_int64 * (3 + len(formulas)))(*env.values())
        function(memory)
        for formula, found in zip(formulas, memory[3:], strict=True):
            try:
                expected = evaluate(formula, env)
            except DimError:
                continue  # a division by zero must only not trap
            assert abs(expected) >= 1 << 60 or found == expected, (formula, env)


def test_a_size_beyond_64_bits_is_refused() -> None:
    big = symbol("n") * (1 << 80)
    assert isinstance(big, Dim)
    with pytest.raises(UnsupportedError, match="64 bits"):
        Sizes(Writer(), {"n": "%n"}).value(big)
