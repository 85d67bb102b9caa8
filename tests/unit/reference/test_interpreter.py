"""The interpreter around the ops: regions, calls, liveness, symbolic sizes, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp import dims
from gcomp.dtypes import DTYPES, dtype_of
from gcomp.errors import InputError, InvalidModelError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference import machine, plan
from gcomp.reference.interpreter import Interpreter, evaluate_op, interpret
from gcomp.reference.numpy import reduction as array_reduction
from gcomp.reference.numpy.elementwise import add, and_, maximum, minimum, multiply, or_, xor
from gcomp.reference.planned import PlannedExecutor
from gcomp.reference.wider import interpret_wider
from tests.support.cases import family_cases
from tests.support.cases.case import apply, binary_body, ints, tensor, type_of
from tests.support.cases.values import sample

from .samples import same_bits


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    return interpret(Program.parse(text), inputs)


def scalar(value: object, text: str = "i32") -> np.ndarray:
    return np.array(value, dtype_of(text))


# ---- bodies ----------------------------------------------------------------------------------------------------------

WITH_BODIES = ("reduction.reduce_window", "reduction.select_and_scatter", "reduction.sort", "indexing.scatter")


@pytest.mark.parametrize("family", [*WITH_BODIES, "reduction.map_"])
def test_a_body_run_on_arrays_equals_a_body_run_on_each_element(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(family_cases(family))[:24]
    batched = [interpret(Program.parse(c.text), c.inputs) for c in cases]
    monkeypatch.setattr(machine.Machine, "_runs_elementwise", lambda *_: False)
    for case, expected in zip(cases, batched, strict=True):
        single = interpret(Program.parse(case.text), case.inputs)
        assert all(map(same_bits, single, expected)), case.name


FOLDS = {
    "add": add,
    "multiply": multiply,
    "maximum": maximum,
    "minimum": minimum,
    "and": and_,
    "or": or_,
    "xor": xor,
}


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_the_shortcuts_of_reduce_are_the_sequential_fold(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([t for t in DTYPES if t[:2] not in ("f4", "f6") and t != "f8E8M0FNU"]))
    logical = text == "i1" or text[0] in "iu"
    op = data.draw(st.sampled_from([o for o in FOLDS if o not in ("and", "or", "xor") or logical]))
    if text.startswith("complex") and op in ("maximum", "minimum"):
        op = "add"
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 9]), max_size=3)))
    dimensions = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x, init = sample(rng, text, shape), sample(rng, text, ())
    kept = [n for d, n in enumerate(shape) if d not in dimensions]
    attributes, body = {"dimensions": ints(dimensions)}, f" ({binary_body(op, text)})"
    (got,) = run(apply("stablehlo.reduce", [x, init], [tensor(kept, text)], attributes, body), x, init)
    expected = array_reduction.reduce(
        [x], [init], dimensions=dimensions, body=lambda a, b: [FOLDS[op](a, b)], dtypes=[x.dtype]
    )
    assert same_bits(got, expected[0])


def test_a_body_may_use_values_from_around_it_and_promote() -> None:
    text = """func.func public @main(%x: tensor<2x3xi8>, %k: tensor<i32>) -> tensor<2xi32> {
      %z = stablehlo.constant dense<0> : tensor<i8>
      %r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 1>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %m = stablehlo.multiply %b, %k : tensor<i32>
        %s = stablehlo.add %a, %m : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }) : (tensor<2x3xi8>, tensor<i8>) -> tensor<2xi32>
      return %r : tensor<2xi32>
    }"""
    x = np.array([[100, 100, 100], [-1, 2, 3]], np.int8)
    assert run(text, x, scalar(1000))[0].tolist() == [300_000, 4000]


def test_a_body_with_control_flow_and_calls_runs_for_each_element() -> None:
    text = """func.func public @main(%x: tensor<5xi32>) -> tensor<5xi32> {
      %r = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<i32>):
        %z = stablehlo.constant dense<0> : tensor<i32>
        %p = stablehlo.compare LT, %a, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %y = "stablehlo.if"(%p) ({
          %n = func.call @twice(%a) : (tensor<i32>) -> tensor<i32>
          stablehlo.return %n : tensor<i32>
        }, {
          stablehlo.return %a : tensor<i32>
        }) : (tensor<i1>) -> tensor<i32>
        stablehlo.return %y : tensor<i32>
      }) : (tensor<5xi32>) -> tensor<5xi32>
      return %r : tensor<5xi32>
    }
    func.func private @twice(%a: tensor<i32>) -> tensor<i32> {
      %y = stablehlo.add %a, %a : tensor<i32>
      return %y : tensor<i32>
    }"""
    assert run(text, np.array([-2, -1, 0, 1, 2], np.int32))[0].tolist() == [-4, -2, 0, 1, 2]


# ---- values: life, ownership, order ----------------------------------------------------------------------------------


def chain(count: int, size: int) -> str:
    kind = f"tensor<{size}xi32>"
    ops = [f"%v{i + 1} = stablehlo.add %v{i}, %v{i} : {kind}" for i in range(count)]
    body = "\n".join(ops)
    return f"func.func public @main(%v0: {kind}) -> {kind} {{\n{body}\n return %v{count} : {kind}\n}}"


def test_values_are_freed_after_their_last_use() -> None:
    program, x = Program.parse(chain(60, 100_000)), np.ones(100_000, np.int32)
    interpret(program, [x])
    tracemalloc.start()
    interpret(program, [x])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes


@pytest.mark.parametrize("family", ["structure.structure", "reduction.reduce_window"])
def test_freeing_changes_no_result(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(family_cases(family))
    freed = [interpret(Program.parse(c.text), c.inputs) for c in cases]
    original = plan.make_step

    def keeping(*args: object, **keywords: object) -> plan.Step:
        step = original(*args, **keywords)  # type: ignore[arg-type]
        return plan.Step(step.op, step.meaning, step.returns, step.operands, step.results, step.captures, ())

    monkeypatch.setattr(plan, "make_step", keeping)
    for case, expected in zip(cases, freed, strict=True):
        assert all(map(same_bits, interpret(Program.parse(case.text), case.inputs), expected)), case.name


def test_outputs_share_memory_with_nothing() -> None:
    text = """func.func public @main(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>) {
      %c = stablehlo.constant dense<1> : tensor<4xi8>
      return %x, %x, %c, %c : tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>
    }"""
    x = np.arange(4, dtype=np.int8)
    outputs = run(text, x)
    for i, a in enumerate(outputs):
        a += 1
        assert not any(np.shares_memory(a, b) for b in [x, *outputs[:i]])
    assert outputs[3].tolist() == [2] * 4


def test_long_programs_and_deep_calls() -> None:
    assert run(chain(2000, 1), np.zeros(1, np.int32))[0].tolist() == [0]
    depth = 400
    calls = "\n".join(
        f"func.func private @f{i}(%x: tensor<i32>) -> tensor<i32> {{ "
        f"%y = func.call @f{i + 1}(%x) : (tensor<i32>) -> tensor<i32>\n return %y : tensor<i32> }}"
        for i in range(depth)
    )
    text = f"""func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
      %y = func.call @f0(%x) : (tensor<i32>) -> tensor<i32>
      return %y : tensor<i32>
    }}
    {calls}
    func.func private @f{depth}(%x: tensor<i32>) -> tensor<i32> {{
      %y = stablehlo.negate %x : tensor<i32>
      return %y : tensor<i32>
    }}"""
    assert run(text, scalar(5))[0].tolist() == -5


FOREVER = """func.func public @main(%x: tensor<i32>) -> tensor<i32> {
  %r = "stablehlo.while"(%x) ({
  ^bb0(%i: tensor<i32>):
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>):
    stablehlo.return %i : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}"""


def test_steps_are_bounded() -> None:
    with pytest.raises(UnsupportedError, match="did not end within 500 steps"):
        interpret(Program.parse(FOREVER), [scalar(0)], max_steps=500)


EMPTY = """
func.func @main(%go: tensor<i1>) -> tensor<i1> {
  %0 = stablehlo.while(%more = %go) : tensor<i1>
  cond {
    stablehlo.return %more : tensor<i1>
  } do {
    stablehlo.return %more : tensor<i1>
  }
  return %0 : tensor<i1>
}"""


@pytest.mark.parametrize("kind", [Interpreter, PlannedExecutor])
def test_a_loop_that_holds_nothing_ends_after_a_number_of_steps(kind: type[Interpreter]) -> None:
    program = Program.parse(EMPTY)
    if kind is PlannedExecutor:
        PassManager(parse_pipeline("plan-memory")).run(program)
    running = kind(program, max_steps=500)
    assert not running.run([np.asarray(False)])[0]
    with pytest.raises(UnsupportedError, match="did not end within 500 steps"):
        running.run([np.asarray(True)])


def test_the_observer_sees_each_op_outside_of_bodies_with_its_results() -> None:
    seen: list[tuple[str, list[object]]] = []
    case = next(c for c in family_cases("structure.structure") if c.label == "1" and c.op == "stablehlo.while")
    program = Program.parse(case.text)
    Interpreter(program, observer=lambda op, r: seen.append((op.name, [x.tolist() for x in r]))).run(case.inputs)
    assert [name for name, _ in seen] == [
        "stablehlo.constant", "stablehlo.constant", "stablehlo.compare", "stablehlo.add", "stablehlo.add", "func.call",
        "stablehlo.compare", "stablehlo.while",
    ]  # fmt: skip
    assert seen[-1][1] == [1, 1, 2]


# ---- symbolic sizes --------------------------------------------------------------------------------------------------

SYMBOLIC = """func.func public @main(
  %x: tensor<?x?xf32, ["2*n", "m"]> {gcomp.name = "x"}, %y: tensor<?xf32, ["m"]> {gcomp.name = "y"})
  -> (tensor<?xf32, ["2*m*n"]>, tensor<?x?xi32, ["2*n", "m"]>, tensor<?x?xf32, ["n", "m"]>, tensor<i64>) {
  %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<?xf32, ["m"]>) -> tensor<?x?xf32, ["2*n", "m"]>
  %s = stablehlo.add %x, %b : tensor<?x?xf32, ["2*n", "m"]>
  %r = stablehlo.reshape %s : (tensor<?x?xf32, ["2*n", "m"]>) -> tensor<?xf32, ["2*m*n"]>
  %i = stablehlo.iota dim = 0 : tensor<?x?xi32, ["2*n", "m"]>
  %h = stablehlo.slice %x [0:"n", 0:"m"] : (tensor<?x?xf32, ["2*n", "m"]>) -> tensor<?x?xf32, ["n", "m"]>
  %d = gcomp.dim "m + n" : tensor<i64>
  return %r, %i, %h, %d
    : tensor<?xf32, ["2*m*n"]>, tensor<?x?xi32, ["2*n", "m"]>, tensor<?x?xf32, ["n", "m"]>, tensor<i64>
}"""


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5))
def test_symbols_are_the_sizes_of_the_inputs(n: int, m: int) -> None:
    program = Program.parse(SYMBOLIC)
    rng = np.random.default_rng(n * 8 + m)
    x, y = sample(rng, "f32", (2 * n, m)), sample(rng, "f32", (m,))
    got = interpret(program, [x, y])
    assert all(map(same_bits, got, interpret(program.bind({"n": n, "m": m}), [x, y])))
    assert got[0].shape == (2 * n * m,)
    assert got[1][:, 0].tolist() == list(range(2 * n))
    assert same_bits(got[2], x[:n])
    assert int(got[3]) == n + m


def test_an_interpreter_runs_again_with_other_sizes() -> None:
    interpreter = Interpreter(Program.parse(SYMBOLIC))
    for n, m in ((1, 2), (3, 4), (1, 2)):
        outputs = interpreter.run([np.zeros((2 * n, m), np.float32), np.zeros(m, np.float32)])
        assert outputs[0].shape == (2 * n * m,) and int(outputs[3]) == n + m


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        ([np.zeros((2, 3), np.float32)], ["takes 2 inputs", "x, y"]),
        ([np.zeros((2, 3), np.float64), np.zeros(3, np.float32)], ["'x'", "f64", "f32"]),
        ([np.zeros((2, 3), np.float32), np.zeros((3, 1), np.float32)], ["'y'", "(3, 1)"]),
        ([np.zeros((2, 3), np.float32), np.zeros(4, np.float32)], ["'y'", "m"]),
        ([np.zeros((3, 3), np.float32), np.zeros(3, np.float32)], ["'x'", "n"]),
    ],
)
def test_wrong_inputs_are_named(inputs: list[np.ndarray], names: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        interpret(Program.parse(SYMBOLIC), inputs)
    assert all(name in str(caught.value) for name in names)


def test_ranges_and_constraints_hold() -> None:
    program = Program.parse(SYMBOLIC)
    program.ranges = dims.Ranges({"n": dims.parse_range("1..2")})
    program.constraints = [dims.Constraint("le", dims.symbol("m"), dims.symbol("n"), "node 'add'")]
    interpret(program, [np.zeros((4, 2), np.float32), np.zeros(2, np.float32)])
    with pytest.raises(InputError, match="outside its range"):
        interpret(program, [np.zeros((6, 2), np.float32), np.zeros(2, np.float32)])
    with pytest.raises(InputError, match="node 'add'"):
        interpret(program, [np.zeros((2, 3), np.float32), np.zeros(3, np.float32)])


def test_sizes_that_contradict_a_type_are_refused_with_the_place() -> None:
    half = str(dims.floordiv(dims.symbol("n"), 2))
    text = f"""func.func public @main(%x: tensor<?xf32, ["n"]>) -> tensor<?x2xf32, ["{half}", "2"]> {{
      %r = stablehlo.reshape %x : (tensor<?xf32, ["n"]>) -> tensor<?x2xf32, ["{half}", "2"]> loc("model.py":7:3)
      return %r : tensor<?x2xf32, ["{half}", "2"]>
    }}"""
    program = Program.parse(text)
    assert interpret(program, [np.zeros(4, np.float32)])[0].shape == (2, 2)
    with pytest.raises(InvalidModelError, match="not defined for these sizes") as caught:
        interpret(program, [np.zeros(3, np.float32)])
    assert "model.py:7:3" in str(caught.value)


# ---- other ops -------------------------------------------------------------------------------------------------------


def test_weights_are_read_and_missed() -> None:
    text = """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %w = gcomp.weight @w : tensor<3xf32>
      %y = stablehlo.multiply %x, %w : tensor<3xf32>
      return %y : tensor<3xf32>
    }"""
    program, x = Program.parse(text), np.ones(3, np.float32)
    with pytest.raises(InvalidModelError, match="no weight @w"):
        interpret(program, [x])
    program.weights.add("w", np.array([1, 2, 3], np.float32))
    assert interpret(program, [x])[0].tolist() == [1, 2, 3]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_real_dynamic_slice_equals_slice(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 5), max_size=3)))
    starts = [data.draw(st.integers(0, n)) for n in shape]
    limits = [data.draw(st.integers(s, n)) for s, n in zip(starts, shape, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    x = sample(np.random.default_rng(0), "f32", shape)
    result = tensor([-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)], "f32")
    bounds = [np.array(v, np.int64) for v in (starts, limits, strides)]
    names = ("start_indices", "limit_indices", "strides")
    static = apply(
        "stablehlo.slice", [x], [result], dict(zip(names, map(ints, (starts, limits, strides)), strict=True))
    )
    dynamic = apply("stablehlo.real_dynamic_slice", [x, *bounds], [result])
    assert same_bits(run(dynamic, x, *bounds)[0], run(static, x)[0])


def test_broadcast_dimensions_of_chlo_need_not_be_the_last() -> None:
    a, b = np.array([10, 20], np.int32), np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    text = apply("chlo.broadcast_add", [a, b], [type_of(b)], {"broadcast_dimensions": "array<i64: 0>"})
    assert run(text, a, b)[0].tolist() == [[11, 12, 13], [24, 25, 26]]


def test_implicit_random_numbers_differ_within_a_run_and_not_between_runs() -> None:
    text = """func.func public @main(%s: tensor<1xi64>) -> (tensor<9xf32>, tensor<9xf32>) {
      %a = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.constant dense<1.0> : tensor<f32>
      %x = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<9xf32>
      %y = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<9xf32>
      return %x, %y : tensor<9xf32>, tensor<9xf32>
    }"""
    first, second = (run(text, np.array([9])) for _ in range(2))
    assert all(map(same_bits, first, second))
    assert not (first[0] == first[1]).any()


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ('stablehlo.custom_call @secret(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("model.py":7:3)', "outside"),
        ('"stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> : '
         '(tensor<2xf32>) -> tensor<2xf32> loc("model.py":7:3)', "all_reduce"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_with_its_place(op: str, reason: str) -> None:
    text = f"func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n %y = {op}\n return %y : tensor<2xf32>\n}}"
    with pytest.raises(UnsupportedError) as caught:
        run(text, np.zeros(2, np.float32))
    assert reason in str(caught.value) and "model.py:7:3" in str(caught.value)


# ---- one op alone ----------------------------------------------------------------------------------------------------


def only_op(text: str, name: str) -> object:
    return next(op for op in Program.parse(text).ops() if op.name == name)


def test_one_op_is_evaluated_alone() -> None:
    x, init = np.arange(6, dtype=np.int32).reshape(2, 3), scalar(10)
    text = apply(
        "stablehlo.reduce", [x, init], ["tensor<2xi32>"], {"dimensions": ints([1])}, f" ({binary_body('add', 'i32')})"
    )
    (result,) = evaluate_op(only_op(text, "stablehlo.reduce"), [x, init])
    assert result.tolist() == [13, 22]
    case = next(c for c in family_cases("structure.structure") if c.op == "stablehlo.while")
    call = only_op(case.text, "func.call")
    assert evaluate_op(call, [scalar(2), scalar(3)])[0].tolist() == 5


def test_one_op_alone_needs_static_sizes_and_no_captured_values() -> None:
    with pytest.raises(UnsupportedError, match="symbolic"):
        evaluate_op(only_op(SYMBOLIC, "stablehlo.add"), [np.zeros((2, 1), np.float32)] * 2)
    case = next(c for c in family_cases("structure.structure") if c.op == "stablehlo.if")
    with pytest.raises(UnsupportedError, match="outer values"):
        evaluate_op(only_op(case.text, "stablehlo.if"), [np.array(True)])


# ---- wider -----------------------------------------------------------------------------------------------------------


def test_wider_evaluation_is_in_double() -> None:
    text = """func.func public @main(%x: tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>, tensor<3xi32>, tensor<3xbf16>) {
      %z = stablehlo.constant dense<0.1> : tensor<f32>
      %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      %b = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xbf16>
      %c = stablehlo.convert %b : (tensor<3xbf16>) -> tensor<3xf32>
      %i = stablehlo.bitcast_convert %x : (tensor<3xf32>) -> tensor<3xi32>
      return %s, %c, %i, %b : tensor<f32>, tensor<3xf32>, tensor<3xi32>, tensor<3xbf16>
    }"""
    x = np.array([1e8, 1.2345678, -1e8], np.float32)
    total, same, bits, narrow = interpret_wider(Program.parse(text), [x])
    assert (total.dtype, same.dtype, bits.dtype, narrow.dtype) == (np.float64, np.float64, np.int32, np.float64)
    assert abs(float(total) - (float(np.float32(0.1)) + float(x[1]))) < 1e-7
    assert same_bits(same, x.astype(np.float64)) and same_bits(bits, x.view(np.int32))


@pytest.mark.parametrize("family", ["elementwise.binary", "contraction.convolution", "reduction.reduce"])
def test_wider_evaluation_gives_integers_the_same_bits(family: str) -> None:
    for case in family_cases(family):
        if case.inputs[0].dtype.kind in "biu":
            got = interpret_wider(Program.parse(case.text), case.inputs)
            assert all(map(same_bits, got, interpret(Program.parse(case.text), case.inputs)))


@pytest.mark.parametrize("part", ["f32", "f64"])
def test_views_of_complex_numbers_are_those_of_memory(part: str) -> None:
    z = np.asarray([[1 - 2j, complex(-0.0, np.nan)], [np.inf, 3j]], dtype_of(f"complex<{part}>"))
    text = f"""
    func.func @main(%z: tensor<2x2xcomplex<{part}>>) -> (tensor<2x2x2x{part}>, tensor<2x2xcomplex<{part}>>) {{
      %0 = gcomp.view_as_real %z : (tensor<2x2xcomplex<{part}>>) -> tensor<2x2x2x{part}>
      %1 = gcomp.view_as_complex %0 : (tensor<2x2x2x{part}>) -> tensor<2x2xcomplex<{part}>>
      return %0, %1 : tensor<2x2x2x{part}>, tensor<2x2xcomplex<{part}>>
    }}"""
    pairs, back = run(text, z)
    assert pairs.tobytes() == z.view(dtype_of(part)).tobytes() and pairs.shape == (2, 2, 2)
    assert back.tobytes() == z.tobytes()
