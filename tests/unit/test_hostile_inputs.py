"""Inputs that once broke something, reduced: each is refused with one GcompError, at once and in little memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import gcomp
from gcomp.errors import (
    ArtifactError,
    GcompError,
    InternalError,
    InvalidModelError,
    UnsupportedError,
    VerificationError,
)
from gcomp.frontends.onnx import import_onnx
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.lowering.xla.legality import REFUSED
from gcomp.reference.interpreter import interpret
from gcomp.runtime.model import Model
from gcomp.runtime.xla import structure_check
from tests.support.mutate.artifacts import CALLS, Sample, seal

NEGATE = "%a = stablehlo.negate %x : tensor<4xf32>"


def main_of(*lines: str, type: str = "tensor<4xf32>") -> str:
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {type}) -> {type} {{\n  {body}\n}}\n"


RETURN_A = "func.return %a : tensor<4xf32>"
CALL = "%a = func.call @{} (%x) : (tensor<4xf32>) -> tensor<4xf32>"

TEXTS: dict[str, tuple[str, str]] = {
    # xDSL's lexer needed time exponential in the line's length.
    "open string": ('func.func @main() {\n  %r = "(%a0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>), and more\n}', ":2"),
    "unknown escape": ('"stablehlo.add\\q0000000000000000000000000000000000000000000000000"', ":1"),
    # xDSL verifies ops one by one, and not their order.
    "use before definition": (main_of("%a = stablehlo.negate %b : tensor<4xf32>",
                                      "%b = stablehlo.negate %x : tensor<4xf32>", RETURN_A), "before it is defined"),
    "use of itself": (main_of("%a = stablehlo.negate %a : tensor<4xf32>", RETURN_A), "before it is defined"),
    "use out of another region": (
        main_of("%p = stablehlo.constant dense<true> : tensor<i1>",
                '%a = "stablehlo.if"(%p) ({', "  %i = stablehlo.negate %x : tensor<4xf32>",
                "  stablehlo.return %i : tensor<4xf32>", "}, {", "  stablehlo.return %i : tensor<4xf32>",
                "}) : (tensor<i1>) -> tensor<4xf32>", RETURN_A), ""),
    "empty body": (main_of(""), "empty"),
    "no body": (
        main_of(CALL.format("f"), RETURN_A) + "func.func private @f(tensor<4xf32>) -> tensor<4xf32>", "no body"),
    "recursion": (main_of(CALL.format("main"), RETURN_A), "recurse"),
    "no block": ("func.func @main() {\n}", "@main"),
    "recursion of two": (
        main_of(CALL.format("f"), RETURN_A)
        + main_of(CALL.format("g"), RETURN_A).replace("@main", "private @f", 1)
        + main_of(CALL.format("f"), RETURN_A).replace("@main", "private @g", 1), "recurse"),
    "nested modules": (f"module {{ {main_of(NEGATE, RETURN_A)} module {{ }} }}", "nest"),
    "encoding of an argument": (main_of("func.return %x : T", type='tensor<4x?xf32, ["4"]>').replace(
        ": T", ': tensor<4x?xf32, ["4"]>'), "one string per dimension"),
    "number that does not print": (main_of(
        '%a = "chlo.constant_like"(%x) <{value = 1.5 : f128}> : (tensor<4xf32>) -> tensor<4xf32>', RETURN_A), "f128"),
    "splat": (main_of("%b = stablehlo.constant dense<[]> : tensor<1000000000000xf32>", NEGATE, RETURN_A), ""),
    "number": (main_of(f"%b = stablehlo.constant dense<{'1' * 5000}> : tensor<i32>", NEGATE, RETURN_A), "5000 digits"),
    "surrogate": (main_of(NEGATE, RETURN_A) + "// \ud800", "Unicode"),
    "depth": (main_of("(" * 100_000), "deeper"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_refused(name: str) -> None:
    text, said = TEXTS[name]
    with pytest.raises(GcompError) as caught:
        Program.parse(text)
    assert not isinstance(caught.value, InternalError) and (caught.value.where or caught.value.why)
    assert said in str(caught.value)


def test_a_huge_splat_is_cheap() -> None:
    program = Program.parse(main_of("%b = stablehlo.constant dense<1.0> : tensor<1000000000000xf32>", NEGATE, RETURN_A))
    assert "dense<1.0> : tensor<1000000000000xf32>" in program.text()


SIGNATURES: dict[str, tuple[str, type[GcompError]]] = {
    "token": (main_of("func.return %x : !stablehlo.token", type="!stablehlo.token"), UnsupportedError),
    "vector": (main_of("func.return %x : vector<4xf32>", type="vector<4xf32>"), UnsupportedError),
    "same name": ('func.func @main(%x: tensor<f32> {gcomp.name = "a"}, %y: tensor<f32> {gcomp.name = "a"}) '
                  "-> tensor<f32> {\n  func.return %x : tensor<f32>\n}\n", InvalidModelError),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_that_no_call_could_fit_are_refused(name: str) -> None:
    text, error = SIGNATURES[name]
    with pytest.raises(error):
        gcomp.compile(text)


def test_deep_constraints_are_refused() -> None:
    deep = '["' + "[" * 3000 + '"]'
    text = f"module attributes {{gcomp.constraints = {deep}}} {{\n{main_of(NEGATE, RETURN_A)}}}"
    with pytest.raises(InvalidModelError, match="constraints"):
        gcomp.compile(text)


# ---- artifacts, sealed with right hashes ----


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    path = tmp_path_factory.mktemp("artifact") / "m.gcomp"
    Model(lower(Program.parse(main_of(NEGATE, RETURN_A))), {}).save(path)
    return Sample.of(path.read_bytes())


MANIFESTS: dict[str, Any] = {
    "an alias of one number": lambda m: m["segments"][0].update(aliases=[[0]]),
    "an alias of three numbers": lambda m: m["segments"][0].update(aliases=[[0, 0, 0]]),
    "an output of another dtype": lambda m: m["outputs"][0].update(dtype="i32"),
    "an output of another rank": lambda m: m["outputs"][0].update(dims=["2", "2"]),
    "deep constraint": lambda m: m.update(constraints=["[" * 100_000]),
    "odd constraint": lambda m: m.update(constraints=["\ud800"]),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_are_refused(name: str, sample: Sample, tmp_path: Path) -> None:
    manifest = sample.manifest()
    MANIFESTS[name](manifest)
    path = tmp_path / "m.gcomp"
    path.write_bytes(seal(manifest, {"main.mlir": sample.members["main.mlir"]}))
    with pytest.raises(ArtifactError):
        gcomp.load(path)


@pytest.mark.parametrize("call", CALLS)
def test_no_spelling_of_a_custom_call_is_run(call: str, sample: Sample, tmp_path: Path) -> None:
    text = sample.members["main.mlir"].decode()
    place = text.index("    %")
    path = tmp_path / "m.gcomp"
    changed = f"{text[:place]}{call.format('xla_python_cpu_callback')}\n{text[place:]}"
    path.write_bytes(seal(sample.manifest(), {"main.mlir": changed.encode()}))
    with pytest.raises(ArtifactError):
        gcomp.load(path)(np.ones(4, np.float32))


@pytest.mark.parametrize("insert", ["tensor<" * 2000, "[" * 100_000, "(" * 600 + ")" * 600])
def test_deep_programs_do_not_reach_the_parser(insert: str, sample: Sample, tmp_path: Path) -> None:
    text = sample.members["main.mlir"].decode()
    path = tmp_path / "m.gcomp"
    path.write_bytes(seal(sample.manifest(), {"main.mlir": f"{text}{insert}".encode()}))
    with pytest.raises(ArtifactError, match="nested"):
        gcomp.load(path)


@pytest.mark.parametrize("size", ["9223372036854775807", "1000000000000x65536", "65536x65536x65536x65536"])
def test_sizes_past_all_memory_are_refused_before_xla_overflows(size: str) -> None:
    huge = f"tensor<{size}xf32>"
    text = main_of(f"%a = stablehlo.negate %x : {huge}", f"func.return %a : {huge}", type=huge)
    with pytest.raises(UnsupportedError, match="memory"):
        gcomp.compile(text, target="xla:cpu")


def test_positions_past_all_memory_are_refused_by_kernels() -> None:
    huge = "tensor<4294967296x4294967296x2xf32>"
    text = main_of(
        f"%a = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> {huge}",
        f"%b = stablehlo.cosine %a : {huge}", "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%c = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : "
        f"({huge}, tensor<f32>) -> tensor<f32>", "func.return %c : tensor<f32>", type="tensor<f32>",
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="memory"):
        gcomp.compile(text, target="cpu")


def test_tokens_are_not_folded() -> None:
    token, pair = "!stablehlo.token", '"stablehlo.optimization_barrier"(%t) : (!stablehlo.token) -> !stablehlo.token'
    text = main_of(f'%t = "stablehlo.create_token"() : () -> {token}', f"%u = {pair}", NEGATE, RETURN_A)
    assert gcomp.compile(text)(np.ones(4, np.float32))[0].tolist() == [-1] * 4


def test_no_program_waits_for_a_stream(sample: Sample, tmp_path: Path) -> None:
    text = sample.members["main.mlir"].decode()
    place = text.index("    %")
    feed = '%t = "stablehlo.create_token"() : () -> !stablehlo.token\n%i:2 = "stablehlo.infeed"(%t) : '
    feed += "(!stablehlo.token) -> (tensor<i32>, !stablehlo.token)\n"
    path = tmp_path / "m.gcomp"
    path.write_bytes(seal(sample.manifest(), {"main.mlir": (text[:place] + feed + text[place:]).encode()}))
    with pytest.raises(ArtifactError, match="does not run"):
        gcomp.load(path)(np.ones(4, np.float32))


def module_of(*lines: str, head: str = "(%x: tensor<4xf32>) -> tensor<4xf32>", more: str = "") -> str:
    body = "\n".join(lines)
    return f"module {{\nfunc.func public @main{head} {{\n{body}\n}}\n{more}}}\n"


BACK = "return %a : tensor<4xf32>"
AGAIN = "%a = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>"
ENDS_THE_PROCESS: dict[str, str] = {
    # XLA follows calls without an end, or into functions that are not there.
    "recursion": module_of(AGAIN, BACK),
    "recursion by a computation": module_of(
        '%a = stablehlo.custom_call @mhlo.erf(%x) {called_computations = [@main]} : (tensor<4xf32>) -> tensor<4xf32>',
        BACK),
    "recursion by a decomposition": module_of(
        '%a = stablehlo.composite "a.b" %x {decomposition = @main} : (tensor<4xf32>) -> tensor<4xf32>', BACK),
    "no body": "module { func.func private @main(tensor<4xf32>) -> tensor<4xf32> }",
    "deep calls": module_of(AGAIN.replace("main", "f0"), BACK, more="".join(
        f"func.func private @f{i}(%x: tensor<4xf32>) -> tensor<4xf32> {{ {AGAIN.replace('main', f'f{i + 1}')} {BACK} }}"
        for i in range(5000)) + "func.func private @f5000(%x: tensor<4xf32>) -> tensor<4xf32> "
                                "{ return %x : tensor<4xf32> }"),
    "calls that double": module_of(AGAIN.replace("main", "f0"), BACK, more="".join(
        f"func.func private @f{i}(%x: tensor<4xf32>) -> tensor<4xf32> {{ {AGAIN.replace('main', f'f{i + 1}')} "
        f"%b = call @f{i + 1}(%a) : (tensor<4xf32>) -> tensor<4xf32> return %b : tensor<4xf32> }}"
        for i in range(40)) + "func.func private @f40(%x: tensor<4xf32>) -> tensor<4xf32> "
                              "{ %a = stablehlo.sine %x : tensor<4xf32> return %a : tensor<4xf32> }"),
    # A CHECK of XLA's.
    "token": module_of("return %x : !stablehlo.token", head="(%x: !stablehlo.token) -> !stablehlo.token"),
    "identity of nothing": module_of("stablehlo.custom_call @Sharding() {has_side_effect = true} : () -> ()",
                                     "return %x : tensor<4xf32>"),
    "top k of nothing": module_of("%a = stablehlo.custom_call @TopK(%x) {} : (tensor<4xf32>) -> tensor<4xf32>", BACK),
    "einsum": module_of(
        '%a = stablehlo.einsum %x, %x, config = "ab,cd->x" : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', BACK),
    "padding": module_of(
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%a = stablehlo.pad %x, %z, low = [9223372036854775807], high = [-9223372036854775807], interior = [0]"
        " : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>", BACK),
    "hidden size": module_of(
        "%i = stablehlo.iota dim = 0 : tensor< // here\n 9223372036854775807xf32>", "return %x : tensor<4xf32>"),
    # The processor's trap, in XLA's own folding.
    "division": module_of(
        "%n = stablehlo.constant dense<[5, 6]> : tensor<2xi32>", "%m = stablehlo.subtract %n, %n : tensor<2xi32>",
        "%d = stablehlo.divide %n, %m : tensor<2xi32>",
        "return %x, %d : tensor<4xf32>, tensor<2xi32>", head="(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS_THE_PROCESS)
def test_programs_that_would_end_the_process_are_refused(name: str, sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "m.gcomp"
    path.write_bytes(seal(sample.manifest(), {"main.mlir": ENDS_THE_PROCESS[name].encode()}))
    with pytest.raises((ArtifactError, UnsupportedError)) as caught:
        gcomp.load(path)(np.ones(4, np.float32))
    assert caught.value.why


def test_artifacts_may_not_hold_what_the_compiler_refuses() -> None:
    refused = {name for name in REFUSED if name.startswith("stablehlo.")}
    assert refused | structure_check.SPREAD == structure_check.REFUSED


REFUSED_BY_XLA: dict[str, str] = {
    "no main": "module { func.func public @other() { return } }",
    "unknown function": module_of(AGAIN.replace("main", "nowhere"), BACK),
    "an alias that is not there": module_of("%a = stablehlo.negate %x : tensor<4xf32>", BACK).replace(
        "%x: tensor<4xf32>", "%x: tensor<4xf32> {tf.aliasing_output = 9 : i32}", 1),
    "memory that is not there": module_of("%a = stablehlo.negate %x : tensor<4xf32>", BACK).replace(
        "%x: tensor<4xf32>", '%x: tensor<4xf32> {mhlo.memory_kind = "moon"}', 1),
    "fails while it runs": module_of(
        "%a = stablehlo.custom_call @lapack_sgetrf_ffi(%x) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>",
        BACK),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_BY_XLA)
def test_what_xla_refuses_of_an_artifact_is_the_artifacts_fault(name: str, sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "m.gcomp"
    path.write_bytes(seal(sample.manifest(), {"main.mlir": REFUSED_BY_XLA[name].encode()}))
    with pytest.raises(ArtifactError) as caught:
        gcomp.load(path)(np.ones(4, np.float32))
    assert caught.value.where and f"main.mlir of {path}" in caught.value.where
    assert caught.value.why and caught.value.fix and "again" in caught.value.fix


@pytest.mark.parametrize("division", ["divide", "remainder"])
@pytest.mark.parametrize("zero", ["dense<[0, 2]> : tensor<2xi32>", "dense<0> : tensor<2xi32>"])
def test_integers_are_divided_by_constants_of_0(division: str, zero: str, tmp_path: Path) -> None:
    text = f"""func.func @main() -> (tensor<2xi32>, tensor<2xi32>) {{
      %n = stablehlo.constant dense<[5, 7]> : tensor<2xi32>
      %z = stablehlo.constant {zero}
      %m = stablehlo.subtract %n, %n : tensor<2xi32>
      %0 = stablehlo.{division} %n, %z : tensor<2xi32>
      %1 = stablehlo.{division} %n, %m : tensor<2xi32>
      func.return %0, %1 : tensor<2xi32>, tensor<2xi32>
    }}"""
    # No pass folds the division first.
    model = gcomp.compile(text, target="xla:cpu", pipeline="cse")
    model.save(tmp_path / "m.gcomp")
    expected = interpret(Program.parse(text), [])
    for each in (model, gcomp.load(tmp_path / "m.gcomp")):
        assert all(map(np.array_equal, each(), expected))


def test_huge_padding_is_refused_by_xla() -> None:
    pad = "%a = stablehlo.pad %x, %z, low = [9223372036854775807], high = [-9223372036854775807], interior = [0]"
    text = main_of("%z = stablehlo.constant dense<0.0> : tensor<f32>",
                   f"{pad} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>", RETURN_A)  # fmt: skip
    with pytest.raises(GcompError) as caught:
        gcomp.compile(text, target="xla:cpu")
    assert not isinstance(caught.value, InternalError)
    assert gcomp.compile(text, target="cpu")(np.ones(4, np.float32))[0].tolist() == [0] * 4


# ---- models ----

HEAD = '<ir_version: 9, opset_import: ["" : 20]> main '
MODELS: dict[str, str] = {
    "constant index out of range": "(float[2] x) => (int64 y) <int64 i = {5}> { s = Shape (x)  y = Gather (s, i) }",
    "constant shapes that do not broadcast": """(float[2] x) => (int64[3] y) <int64[2] a = {1, 2}, int64[1] s = {3}> {
        y = Expand (a, s) }""",
    "scalar starts": "(float[2, 3] x) => (int64[1] y) <int64 o = {1}> { s = Shape (x)  y = Slice (s, o, o) }",
    "lists of other lengths": """(float[2, 3] x) => (int64[1] y) <int64[1] o = {0}, int64[2] e = {1, 2}> {
        s = Shape (x)  y = Slice (s, o, e) }""",
    "scalar shape": "(float[a, 3] x) => (int64[1] y) { s = Shape (x)  i = Size (x)  y = Reshape (s, i) }",
    "condition of many": """(float[2] x, bool[3] c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) },
                    else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
    "limit of many": "(float[2] x) => (float[2] y) <float[2] m = {1, 2}> { y = Clip (x, m) }",
    "scale that is no number": """(float[1, 1, 2, 2] x) => (float[1, 1, b, c] y) <float[4] s = {1, 1, -1, 1}> {
        y = Resize (x, , s) }""",
    "scale beyond measure": """(float[1, 1, 2, 2] x) => (float[1, 1, b, c] y) <float[4] s = {1, 1, 1e12, 1}> {
        y = Resize (x, , s) }""",
    "ranks of LSTM": """(float[3, 2, 4] x, float[1, 8, 4] w, float[8] r) => (float[3, 1, 2, 2] y) {
        y = LSTM <hidden_size = 2> (x, w, r) }""",
    "rank of STFT": """(float[9] x) => (float[1, 2, 3, 2] y) <int64 s = {2}, int64 n = {4}> {
        y = STFT (x, s, , n) }""",
    "rank of GridSample": "(float[1, 1, 4, 4] x, float[1, 2, 2] g) => (float[1, 1, 2, 2] y) { y = GridSample (x, g) }",
    "too few elements": "(float[1, 1, 2, 2] x) => (float[a] y) <int64[1] s = {9}> { y = Reshape (x, s) }",
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_refused(name: str) -> None:
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    with pytest.raises((InvalidModelError, UnsupportedError)) as caught:
        import_onnx(model)
    assert caught.value.where


@pytest.mark.parametrize("size", [1, 2, 1 << 31, 1 << 40, 1 << 60])
def test_tables_of_the_importer_do_not_grow_with_claimed_sizes(size: int) -> None:
    pool = "AveragePool <kernel_shape = [2, 2], ceil_mode = 1, pads = [0, 0, 1, 1]> (x)"
    model = onnx.parser.parse_model(f"{HEAD} (float[1, 1, {size}, 8] x) => (float[1, 1, b, c] y) {{ y = {pool} }}")
    import_onnx(model).verify()


def test_windows_that_fit_nowhere_average_nothing() -> None:
    pool = "AveragePool <kernel_shape = [4, 4], ceil_mode = 0, pads = [1, 0, 0, 0]> (x)"
    model = onnx.parser.parse_model(f"{HEAD} (float[1, 1, 2, 8] x) => (float[1, 1, b, c] y) {{ y = {pool} }}")
    program = import_onnx(model)
    program.verify()
    assert program.outputs()[0].shape == (1, 1, 0, 5)


def test_versions_past_32_bits_are_refused() -> None:
    model = onnx.parser.parse_model(f"{HEAD} (float[2] x) => (float[2] y) {{ y = Neg (x) }}")
    model.opset_import.add(domain="other", version=1 << 40)
    model.graph.node[0].domain = "other"
    with pytest.raises(UnsupportedError, match="Neg"):
        import_onnx(model)


def test_long_dim_names_are_symbols() -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} (float[{'n' * 10_000}, {'n' * 10_001}] x) => (float[a, b] y) {{ y = Neg (x) }}"
    )
    a, b = import_onnx(model).inputs()[0].shape
    assert a != b


def test_subgraphs_are_no_references() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "local" : 1]> main (bool c) => (float y) { y = local.f (c) }
        <domain: "local", opset_import: ["" : 20]> f (c) => (y) { y = If (c) }"""
    model = onnx.parser.parse_model(text)
    model.functions[0].attribute.append("branch")
    for name in ("then_branch", "else_branch"):
        model.functions[0].node[0].attribute.add(name=name, type=onnx.AttributeProto.GRAPH, ref_attr_name="branch")
    with pytest.raises(UnsupportedError, match="subgraph"):
        import_onnx(model)


def test_programs_out_of_order_are_refused_however_they_came_about() -> None:
    program = Program.parse(main_of(NEGATE, "%b = stablehlo.abs %a : tensor<4xf32>", "func.return %b : tensor<4xf32>"))
    first = program.block.first_op
    assert first is not None
    first.detach()
    program.block.insert_op_before(first, program.returned)
    with pytest.raises(VerificationError, match="before it is defined"):
        program.verify()
