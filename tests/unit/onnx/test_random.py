"""Random operators: the numbers' distributions, the streams of nodes and iterations, and the caller's seed."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import gcomp
from gcomp.errors import InputError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.frontends.onnx.engine.streams import Streams
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.reference.numpy.random import rng_bit_generator

Array = np.ndarray[Any, Any]
F32, I64 = np.float32, np.int64
DTYPES: dict[str, tuple[int, str, Any]] = {
    "f32": (1, "float", np.float32),
    "f16": (10, "float16", np.float16),
    "f64": (11, "double", np.float64),
    "bf16": (16, "bfloat16", ml_dtypes.bfloat16),
}


def model(graph: str, opset: int = 22) -> onnx.ModelProto:
    """A model from the text of its graph."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>\n{graph}')


def draw(graph: str, *inputs: Array, seed: int = 0) -> list[Array]:
    """The results of the reference interpreter."""
    return interpret(import_onnx(model(graph)), [*inputs, np.asarray(seed, np.uint64)])


def kolmogorov_smirnov(x: Array, cumulative: Array) -> float:
    """The statistic sqrt(n) * D for numbers and their distribution's values at the sorted numbers."""
    n = x.size
    ranks = np.arange(n + 1) / n
    return float(n**0.5 * max(np.max(ranks[1:] - cumulative), np.max(cumulative - ranks[:-1])))


# ---- distributions ----


@pytest.mark.parametrize("name", DTYPES)
def test_uniform_numbers_are_uniform_in_every_dtype(name: str) -> None:
    number, text, dtype = DTYPES[name]
    [y] = draw(
        f"g () => ({text}[50000] y) {{ y = RandomUniform<shape=[50000], low=-1.0, high=3.0, dtype={number}>() }}"
    )
    assert y.dtype == dtype
    x = np.sort(y.astype(np.float64))
    assert x[0] >= -1 and x[-1] < 3
    step = float(ml_dtypes.finfo(dtype).eps) * 2
    # Rounding moves a number by half a step at most.
    assert kolmogorov_smirnov(x, np.clip((x + 1) / 4, 0, 1)) < 1.6 + 50000**0.5 * step / 4


@pytest.mark.parametrize("name", DTYPES)
def test_normal_numbers_are_normal_in_every_dtype(name: str) -> None:
    from math import erf

    number, text, dtype = DTYPES[name]
    [y] = draw(
        f"g () => ({text}[20000] y) {{ y = RandomNormal<shape=[20000], mean=5.0, scale=2.0, dtype={number}>() }}"
    )
    assert y.dtype == dtype
    x = np.sort(y.astype(np.float64))
    cumulative = np.asarray([0.5 + 0.5 * erf((v - 5) / 8**0.5) for v in x])
    assert kolmogorov_smirnov(x, cumulative) < 1.6 + 20000**0.5 * float(ml_dtypes.finfo(dtype).eps) * 2
    assert np.isfinite(x).all() and abs(x.mean() - 5) < 0.06 and abs(x.std() - 2) < 0.05


def test_neighbouring_numbers_are_independent() -> None:
    [y] = draw("g () => (float[60000] y) { y = RandomUniform<shape=[60000]>() }")
    centered = y.astype(np.float64) - 0.5
    for lag in (1, 2, 3, 4, 5, 8, 128):
        assert abs(np.mean(centered[lag:] * centered[:-lag])) * 12 < 4 / 60000**0.5


def test_double_numbers_use_all_their_bits() -> None:
    [y] = draw("g () => (double[1000] y) { y = RandomUniform<shape=[1000], dtype=11>() }")
    assert np.mean(y.astype(np.float32) == y) < 0.01


def test_bernoulli_follows_its_probabilities() -> None:
    p = np.repeat(np.asarray([0, 0.1, 0.5, 0.9, 1, np.nan], F32), 20000).reshape(6, 20000)
    [y] = draw("g (float[6, 20000] p) => (int32[6, 20000] y) { y = Bernoulli<dtype=6>(p) }", p)
    assert y.dtype == np.int32
    means = y.mean(1)
    assert means[0] == 0 and means[4] == 1 and means[5] == 0
    assert np.all(np.abs(means[1:4] - p[1:4, 0]) < 4 * (0.25 / 20000) ** 0.5)


@pytest.mark.parametrize("name", ["f64", "f16", "f32"])
def test_bernoulli_gives_its_inputs_dtype(name: str) -> None:
    _, text, dtype = DTYPES[name]
    p = np.full((4000,), 0.25, dtype)
    [y] = draw(f"g ({text}[4000] p) => ({text}[4000] y) {{ y = Bernoulli(p) }}", p)
    assert (
        y.dtype == p.dtype and set(np.unique(y).tolist()) == {0.0, 1.0} and abs(float(y.mean(dtype=F32)) - 0.25) < 0.03
    )


def test_multinomial_draws_classes_by_probability() -> None:
    p = np.asarray([[0.2, 0.0, 0.5, 0.3, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        logits = (np.log(p) + 7).astype(F32)
    [y] = draw("g (float[2, 5] x) => (int64[2, 40000] y) { y = Multinomial<sample_size=40000, dtype=7>(x) }", logits)
    assert y.dtype == I64
    for row, wanted in zip(y, p, strict=True):
        found = np.bincount(row, minlength=5) / row.size
        assert np.all(found[wanted == 0] == 0) and np.all(np.abs(found - wanted) < 4 * (0.25 / row.size) ** 0.5)


def test_multinomial_never_draws_an_impossible_last_class() -> None:
    # 400 equal classes: their probabilities' f32 sum is below the largest draws.
    logits = np.concatenate([np.zeros((1, 400)), np.full((1, 5), -np.inf)], 1).astype(F32)
    graph = "g (float[1, 405] x) => (int32[1, 200000] y) { y = Multinomial<sample_size=2000>(x) }"
    assert max(int(draw(graph, logits, seed=seed)[0].max()) for seed in range(20)) < 400


def dropout(x: Array, ratio: float, text: str = "float") -> tuple[Array, Array]:
    size = x.size
    graph = f"""g ({text}[{size}] x) => ({text}[{size}] y, bool[{size}] mask)
        <float r = {{{ratio}}}, bool t = {{1}}> {{ y, mask = Dropout(x, r, t) }}"""
    y, mask = draw(graph, x)
    return y, mask


@pytest.mark.parametrize("ratio", [0.25, 0.9])
@pytest.mark.parametrize("name", ["f32", "f16"])
def test_dropout_drops_and_keeps_the_mean(ratio: float, name: str) -> None:
    _, text, dtype = DTYPES[name]
    x = np.full(40000, 2, dtype)
    y, mask = dropout(x, ratio, text)
    assert y.dtype == x.dtype and np.array_equal(mask, y != 0)
    assert abs(mask.mean() - (1 - ratio)) < 4 * (0.25 / 40000) ** 0.5
    kept = np.asarray(2 / (1 - np.float32(ratio))).astype(x.dtype)
    np.testing.assert_array_almost_equal_nulp(y[mask], np.full(int(mask.sum()), kept), 1)


def test_dropout_of_nothing_and_of_all() -> None:
    x = np.asarray([1.5, -2, 0, np.inf], F32)
    y, mask = dropout(x, 0.0)
    assert np.array_equal(y, x) and mask.all()
    y, mask = dropout(x, 1.0)
    assert np.array_equal(y, np.zeros(4, F32)) and not mask.any()


def test_the_mode_of_dropout_may_be_an_input() -> None:
    graph = """g (float[n] x, bool t) => (float[n] y, bool[n] mask)
        <float r = {0.5}> { y, mask = Dropout(x, r, t) }"""
    x, compiled = np.arange(1, 41, dtype=F32), gcomp.compile(model(graph))
    trained, mask = compiled(x, np.asarray(True))
    assert 0 < mask.sum() < 40 and np.array_equal(trained, np.where(mask, 2 * x, 0))
    for known in (True, False):
        fixed = gcomp.compile(model(graph), constants={"t": np.asarray(known)})
        for got, wanted in zip(compiled(x, np.asarray(known)), fixed(x), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_ratio_may_be_an_input() -> None:
    graph = "g (float[8] x, float r) => (float[8] y) <bool t = {1}> { y = Dropout(x, r, t) }"
    x = np.arange(1, 9, dtype=F32)
    assert np.array_equal(draw(graph, x, np.asarray(0, F32))[0], x)
    assert not draw(graph, x, np.asarray(1, F32))[0].any()


def test_shapes_may_be_symbolic() -> None:
    graph = """g (float[n, c] x) => (float[n, c] a, float[n, c] d, int64[n, 7] e)
        <float r = {0.5}, bool t = {1}> {
            a = RandomNormalLike(x)
            d = Dropout(x, r, t)
            e = Multinomial<sample_size=7, dtype=7>(x)
        }"""
    compiled, program = gcomp.compile(model(graph)), import_onnx(model(graph))
    for shape in ((2, 3), (5, 1)):
        x = np.ones(shape, F32)
        found, wanted = compiled(x), interpret(program, [x])
        assert found[0].shape == shape and found[2].shape == (shape[0], 7)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
        assert np.array_equal(found[1], wanted[1]) and np.array_equal(found[2], wanted[2])


# ---- streams ----


def test_the_bits_are_those_that_the_documentation_states() -> None:
    [y] = draw("g () => (float[3, 5] y) { [the_node] y = RandomUniform<shape=[3, 5], seed=2.5>() }", seed=9)
    key = int.from_bytes(hashlib.sha256(b"the_node\x002.5\x001").digest()[:8], "little")
    state = np.array([key, 0, 9], np.uint64)
    _, bits = rng_bit_generator(state, rng_algorithm="PHILOX", shape=(3, 5), dtype=np.dtype(np.uint32))
    assert np.array_equal(y, (bits >> np.uint32(8)).astype(F32) * F32(2**-24))


def test_every_node_has_its_own_stream_even_with_equal_seeds_and_names() -> None:
    nodes = "\n".join(f"y{i} = RandomUniform<shape=[64], seed=1.0>()" for i in range(4))
    proto = model(f"g () => (float[64] y0, float[64] y1, float[64] y2, float[64] y3) {{ {nodes} }}")
    for node in proto.graph.node:
        node.name = "same"
    numbers = np.concatenate(interpret(import_onnx(proto), []))
    assert np.unique(numbers).size == numbers.size


def test_each_call_of_a_function_has_its_own_stream() -> None:
    graph = """g (float[64] x) => (float[64] a, float[64] b) { a = local.f(x) b = local.f(x) }
        <domain: "local", opset_import: ["" : 22]> f (x) => (y) { y = RandomUniformLike(x) }"""
    a, b = draw(graph, np.zeros(64, F32))
    assert not np.any(a == b)


def test_seeds_give_disjoint_numbers_and_one_seed_the_same() -> None:
    graph = "g () => (double[512] y) { y = RandomUniform<shape=[512], dtype=11>() }"
    rows = [draw(graph, seed=seed)[0] for seed in (0, 1, 2, 2**63, 2**64 - 1)]
    assert np.unique(np.stack(rows)).size == 5 * 512
    assert np.array_equal(rows[1], draw(graph, seed=1)[0])
    assert np.array_equal(rows[0], interpret(import_onnx(model(graph)), [])[0])


def test_the_reference_and_the_target_draw_the_same_numbers() -> None:
    graph = """g (float[3, 7] x) => (float[5, 9] a, double[33] b, float16[17] c, bool[3, 7] d, int32[3, 11] e) {
        a = RandomUniform<shape=[5, 9]>()
        b = RandomUniform<shape=[33], dtype=11>()
        c = RandomUniform<shape=[17], dtype=10>()
        d = Bernoulli<dtype=9>(x)
        e = Multinomial<sample_size=11>(x)
    }"""
    compiled, x = gcomp.compile(model(graph)), np.random.default_rng(0).random((3, 7)).astype(F32)
    for seed in (0, 2**64 - 1):
        for found, wanted in zip(compiled(x, seed=seed), draw(graph, x, seed=seed), strict=True):
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


LOOP = """g (float[3] s) => (float[3] t, float[trips, 3] rows) <int64 n = {6}, bool c = {1}> {
    t, rows = Loop (n, c, s) <body = body (int64 i, bool go, float[3] a) => (bool on, float[3] b, float[3] row) {
        on = Identity(go)
        row = RandomUniform<shape=[3]>()
        b = Add(a, row)
    }>
}"""
SCAN = """g (float[6, 3] x) => (float[6, 3] rows) {
    rows = Scan <num_scan_inputs = 1, body = body (float[3] a) => (float[3] row) {
        r = RandomUniform<shape=[3]>()
        row = Identity(r)
    }> (x)
}"""
NESTED = """g (float[4, 6, 2] x) => (float[4, 6, 2] rows) {
    rows = Scan <num_scan_inputs = 1, body = outer (float[6, 2] a) => (float[6, 2] inner_rows) {
        inner_rows = Scan <num_scan_inputs = 1, body = inner (float[2] c) => (float[2] row) {
            row = RandomUniformLike(c)
        }> (a)
    }> (x)
}"""


@pytest.mark.parametrize(
    ("graph", "shape"), [(LOOP, (3,)), (SCAN, (6, 3)), (NESTED, (4, 6, 2))], ids=["loop", "scan", "nested"]
)
def test_iterations_draw_different_numbers(graph: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, F32)
    wanted = draw(graph, x, seed=3)
    assert np.unique(wanted[-1]).size == wanted[-1].size
    assert not np.any(wanted[-1] == draw(graph, x, seed=4)[-1])
    for found, reference in zip(gcomp.compile(model(graph))(x, seed=3), wanted, strict=True):
        assert np.array_equal(found, reference)


def test_unrolled_iterations_draw_different_numbers() -> None:
    graph = """g (float[1] s) => (float[m] t) <int64 n = {3}, bool c = {1}> {
        t = Loop (n, c, s) <body = body (int64 i, bool go, float[j] a) => (bool on, float[l] b) {
            on = Identity(go)
            r = RandomUniform<shape=[2]>()
            n = Neg(a)
            b = Concat<axis=0>(n, r)
        }>
    }"""
    [y] = draw(graph, np.zeros(1, F32))
    assert y.shape == (7,) and np.unique(np.abs(y[1:])).size == 6


def test_numbers_that_would_repeat_in_each_iteration_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Streams, "iteration", lambda self, index: nullcontext())
    with pytest.raises(UnsupportedError, match="same numbers in each iteration"):
        import_onnx(model(LOOP))


# ---- the seed input ----

NOISE = "g (float[n] x) => (float[n] y) { r = RandomNormalLike(x) y = Add(x, r) }"


def test_the_seed_is_an_input_that_may_be_left_out() -> None:
    compiled, x = gcomp.compile(model(NOISE)), np.zeros(8, F32)
    assert [(port.name, port.dtype, port.dims, port.default) for port in compiled.inputs[1:]] == [
        ("seed", "ui64", (), 0)
    ]
    assert "seed: ui64[] = 0" in repr(compiled)
    [default], [seven] = compiled(x), compiled(x, seed=7)
    assert np.array_equal(default, compiled(x, seed=0)[0]) and not np.any(default == seven)
    for call in (compiled(x, 7), compiled(seed=np.uint64(7), x=x), compiled(x, seed=np.asarray(7, np.uint64))):
        assert np.array_equal(call[0], seven)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, np.zeros(2, np.uint64), np.asarray(1, np.int32), "7", None])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(InputError, match="seed"):
        gcomp.compile(model(NOISE))(np.zeros(8, F32), seed=seed)


def test_missing_inputs_are_still_missing() -> None:
    with pytest.raises(InputError, match="`x` is missing"):
        gcomp.compile(model(NOISE))(seed=7)
    with pytest.raises(InputError, match="takes 2 inputs"):
        interpret(import_onnx(model(NOISE)), [])


def test_the_seed_takes_another_name_where_it_must() -> None:
    graph = "g (float[4] seed, float[4] seed_1) => (float[4] y) { y = RandomUniformLike(seed) }"
    assert [port.name for port in import_onnx(model(graph)).inputs()] == ["seed", "seed_1", "seed_2"]


def test_models_without_random_numbers_have_no_seed() -> None:
    graph = "g (float[4] x) => (float[4] y) <bool t = {0}, float r = {0.5}> { y = Dropout(x, r, t) }"
    assert [port.name for port in import_onnx(model(graph)).inputs()] == ["x"]


def test_an_artifact_keeps_the_seed(tmp_path: Path) -> None:
    compiled, x = gcomp.compile(model(NOISE)), np.zeros(8, F32)
    compiled.save(tmp_path / "noise.gcomp")
    loaded = gcomp.load(tmp_path / "noise.gcomp")
    assert loaded.inputs == compiled.inputs
    assert np.array_equal(loaded(x)[0], compiled(x)[0])
    assert np.array_equal(loaded(x, seed=5)[0], compiled(x, seed=5)[0])


def test_the_text_of_a_program_keeps_the_default() -> None:
    program = import_onnx(model(NOISE))
    again = Program.parse(program.text())
    assert again.inputs() == program.inputs() and again.text() == program.text()
    program.donate({"x"})
    assert [(port.donated, port.default) for port in program.inputs()] == [(True, None), (False, 0)]


@pytest.mark.parametrize("default", ["1.0 : f32", "-1 : i64", "200 : ui8", '"x"', "9223372036854775808 : ui64"])
@pytest.mark.parametrize("type", ["tensor<ui64>", "tensor<2xui64>", "tensor<f32>"])
def test_defaults_that_do_not_fit_are_refused(default: str, type: str) -> None:
    text = f"func.func @main(%a: {type} {{gcomp.default = {default}}}) -> {type} {{ func.return %a : {type} }}"
    if default == "200 : ui8" and type == "tensor<ui64>":
        assert Program.parse(text).inputs()[0].default == 200
        return
    with pytest.raises(gcomp.errors.GcompError):
        Program.parse(text).inputs()


# ---- refusals ----


@pytest.mark.parametrize(
    "node",
    [
        "RandomUniform<shape=[4], low=2.0, high=1.0>()",
        "RandomUniform<shape=[4], dtype=7>()",
        "RandomUniform<shape=[-4]>()",
        "RandomNormal<shape=[4], scale=-1.0>()",
        "RandomNormalLike<dtype=9>(x)",
        "Multinomial<sample_size=-1>(m)",
        "Multinomial<dtype=1>(m)",
        "Multinomial(x)",
        "Multinomial(empty)",
        "Dropout(x, two, true)",
        "Dropout(x, pair, true)",
        "Dropout(x, bad, true)",
        "Dropout(x, none, true)",
    ],
)
def test_distributions_that_do_not_exist_are_refused(node: str) -> None:
    graph = f"""g (float[4] x, float[2, 3] m, float[2, 0] empty) => (float[4] y)
        <bool true = {{1}}, float two = {{2.0}}, float[2] pair = {{0.5, 0.5}}, float[0] none = {{}}> {{ y = {node} }}"""
    proto = model(graph)
    proto.graph.initializer.append(helper.make_tensor("bad", TensorProto.FLOAT, [], [float("nan")]))
    with pytest.raises(InvalidModelError):
        import_onnx(proto)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_parameters_that_are_not_finite_are_refused(value: float) -> None:
    for operator, name in (("RandomUniform", "high"), ("RandomUniform", "low"), ("RandomNormal", "mean")):
        node = helper.make_node(operator, [], ["y"], shape=[3], **{name: value})
        graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
        with pytest.raises(InvalidModelError, match=name):
            import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10))


def test_a_range_of_one_number_gives_that_number() -> None:
    [y] = draw("g () => (float[4] y) { y = RandomUniform<shape=[4], low=2.0, high=2.0>() }")
    assert np.array_equal(y, np.full(4, 2, F32))
