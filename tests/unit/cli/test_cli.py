"""The command line: what each command does, its exit codes, and what it says when it is used wrongly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import gcomp
from gcomp.passes.graph.cse import CommonSubexpressionElimination
from tests.unit.cli.commands import Cli

DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
TEXT = """
func.func public @main(%x: tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "x"}, %n: tensor<4xi32> {gcomp.name = "n"})
    -> (tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "y"}, tensor<4xi32> {gcomp.name = "m"}) {
  %0 = stablehlo.add %x, %x : tensor<?x4xf32, ["batch", "4"]>
  %1 = stablehlo.add %x, %x : tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.multiply %0, %1 : tensor<?x4xf32, ["batch", "4"]>
  %3 = stablehlo.negate %n : tensor<4xi32>
  func.return %2, %3 : tensor<?x4xf32, ["batch", "4"]>, tensor<4xi32>
}
"""
X, N = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.int32)


ODD = """
module attributes {gcomp.ranges = {n = "1..4096"},
  gcomp.constraints = ["{'kind': 'le', 'lhs': 65, 'rhs': 'n', 'where': 'a window'}",
                       "{'kind': 'divides', 'lhs': 4, 'rhs': 'n', 'where': 'a reshape'}"]} {
func.func public @main(%x: tensor<?xf32, ["n"]> {gcomp.name = "x"}) -> (tensor<?xf32, ["n"]> {gcomp.name = "y"}) {
  %0 = stablehlo.negate %x : tensor<?xf32, ["n"]>
  func.return %0 : tensor<?xf32, ["n"]>
}
}
""".replace("'", r"\22")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a model, and arrays that fit it and that do not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(TEXT)
    arrays: dict[str, Any] = {
        "x": X,
        "n": N,
        "rank": X[0],
        "double": X.astype(np.float64),
        "wide": np.ones((3, 5), np.float32),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ---- what commands do ----


def test_sizes_that_nobody_gave_fulfil_the_constraints(cli: Cli, folder: Path) -> None:
    (folder / "odd.mlir").write_text(ODD)
    assert cli("compile", "odd.mlir", "-o", "odd.gcomp").code == 0
    shown = cli("inspect", "odd.gcomp")
    assert shown.code == 0 and "n=68" in shown.out, shown.err
    assert "[68]" in cli("run", "odd.gcomp", "--random").out


def test_the_time_of_passes_is_the_sum_of_their_table(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    told = cli("compile", "m.mlir", "-o", "m.gcomp", "--timing", "--verify", "each").err
    rows = [float(n) for n in re.findall(r"^│ [^│]+│ +([0-9.]+) +│", told, re.MULTILINE)]
    *parts, total = rows
    seconds = re.search(r"passes ([0-9.]+) s", told)
    assert len(parts) > 5 and abs(sum(parts) - total) <= 0.06 * len(rows), told
    assert seconds is not None and abs(float(seconds[1]) * 1e3 - total) <= 5.1, told


def test_sizes_that_cannot_be_found_are_asked_for(cli: Cli, folder: Path) -> None:
    (folder / "none.mlir").write_text(ODD.replace(": 4,", ": 5000,"))
    assert cli("compile", "none.mlir", "-o", "none.gcomp").code == 0
    for command in (["inspect", "none.gcomp"], ["run", "none.gcomp", "--random"]):
        refused = cli(*command)
        assert refused.code == 2 and "--dim n=SIZE" in refused.err, refused.err


def test_a_model_is_compiled_inspected_and_run(cli: Cli, folder: Path) -> None:
    assert cli("compile", "m.mlir", "-t", "xla:cpu", "-o", "m.gcomp", "--dim", "batch=1..8", "--timing").code == 0
    shown = cli("inspect", "m.gcomp")
    assert shown.code == 0 and all(text in shown.out for text in ("xla:cpu", "[batch, 4]", "stablehlo.add", "bytes"))
    manifest = json.loads(cli("inspect", "m.gcomp", "--json").out)
    assert [port["name"] for port in manifest["inputs"]] == ["x", "n"]
    assert "tensor<5x4xf32>" in cli("inspect", "m.gcomp", "--text", "--dim", "batch=5").out
    ran = cli(
        "run",
        "m.gcomp",
        "-i",
        "x=x.npy",
        "-i",
        "n=n.npy",
        "-o",
        "y=y.npy",
        "-o",
        "m=out",
        "--fetch",
        "y",
        "--repeat",
        "2",
    )
    assert ran.code == 0 and "median" in ran.out
    assert np.array_equal(np.load(folder / "y.npy"), 4 * X * X)
    assert np.array_equal(np.load(folder / "out"), -N)
    assert cli("run", "m.gcomp", "--random", "--dim", "batch=8").code == 0
    refused = cli("run", "m.gcomp", "--random", "--dim", "batch=9")
    assert refused.code == 1 and "1..8" in refused.err


def test_digits_are_compiled_and_run(cli: Cli, folder: Path) -> None:
    assert cli("compile", str(DIGITS), "-o", "d.gcomp", "--verify", "each", "--dim", "batch=2").code == 0
    np.save(folder / "images.npy", np.zeros((2, 1, 8, 8), np.float32))
    assert cli("run", "d.gcomp", "-i", "images=images.npy", "-o", "probabilities=p.npy").code == 0
    assert np.load(folder / "p.npy").sum(axis=1) == pytest.approx([1, 1], abs=1e-6)
    assert "BatchNormalization" in cli("opt", str(DIGITS), "--locations").out


def test_equal_inputs_make_equal_files(cli: Cli, folder: Path) -> None:
    for name in ("a.gcomp", "b.gcomp"):
        assert cli("compile", "m.mlir", "-o", name).code == 0
    assert (folder / "a.gcomp").read_bytes() == (folder / "b.gcomp").read_bytes()


def test_models_are_run_without_an_artifact(cli: Cli, folder: Path) -> None:
    before = files(folder)
    assert cli("run", "m.mlir", "-i", "x=x.npy", "-i", "n=n.npy").code == 0
    assert cli("run", "m.mlir", "--random", "--dim", "batch=2").code == 0
    assert files(folder) == before


def test_passes_are_run_and_printed(cli: Cli, folder: Path) -> None:
    result = cli(
        "opt", "m.mlir", "-p", "cse,dce", "--verify-each", "--check-each", "--print-ir-after-change", "--timing"
    )
    assert result.code == 0
    assert result.out.count("stablehlo.add") == 1 and "after cse" in result.err and "after dce" not in result.err
    assert cli("opt", "m.mlir", "-p", "cse", "-o", "o.mlir").out == ""
    assert cli("opt", "o.mlir").out == (folder / "o.mlir").read_text() == result.out
    assert '"stablehlo.add"' in cli("opt", "m.mlir", "--generic").out
    assert "tensor<8x4xf32>" in cli("opt", "m.mlir", "--export", "--dim", "batch=8").out
    assert cli("opt", "m.mlir", "-p", "cse", "--bisect-limit", "0").out.count("stablehlo.add") == 2
    assert "canonicalize" in cli("opt", "--list-passes").out


def test_help_teaches(cli: Cli) -> None:
    assert all(f" {name} " in cli("--help").out for name in ("compile", "run", "opt", "inspect"))
    for command in ("compile", "run", "opt", "inspect"):
        result = cli(command, "--help")
        assert result.code == 0 and f"gcomp {command}" in result.out and "--dim" in result.out
        assert command == "inspect" or ("--structure" in result.out and "--constant" in result.out)
    assert cli("--version").out == f"gcomp {gcomp.__version__}\n"


# ---- ONNX inputs that are no tensors, or that decide sizes ----


def sequence_model() -> onnx.ModelProto:
    text = """<ir_version: 9, opset_import: ["" : 18]> main (seq(float[n, 3]) xs, optional(float[2]) o, int64[2] s)
        => (float[m, 3] y, float[p, q] z, bool has) {
      y = ConcatFromSequence <axis = 0> (xs)  z = Reshape (y, s)  has = OptionalHasElement (o) }"""
    return onnx.parser.parse_model(text)


@pytest.fixture
def sequences(folder: Path) -> Path:
    """The working folder with a model of a sequence, an optional and a shape."""
    onnx.save(sequence_model(), folder / "s.onnx")
    np.save(folder / "a.npy", np.ones((2, 3), np.float32))
    np.save(folder / "b.npy", np.full((1, 3), 2, np.float32))
    np.save(folder / "s.npy", np.array([3, -1]))
    return folder


GIVEN = ("--structure", "xs=[2,?],[k,3]", "--structure", "o=none", "--constant", "s=s.npy")


def test_structures_and_constants_are_given_as_options(cli: Cli, sequences: Path) -> None:
    assert cli("compile", "s.onnx", *GIVEN, "-o", "s.gcomp").code == 0
    shown = cli("inspect", "s.gcomp").out
    assert "xs.0" in shown and "xs.1" in shown and "[k, 3]" in shown
    arrays = ("-i", "xs.0=a.npy", "-i", "xs.1=b.npy")
    assert cli("run", "s.gcomp", *arrays, "-o", "z=z.npy").code == 0
    assert cli("run", "s.onnx", *GIVEN, *arrays, "-o", "z=again.npy").code == 0
    expected = np.concatenate([np.load("a.npy"), np.load("b.npy")]).reshape(3, -1)
    for name in ("z.npy", "again.npy"):
        assert np.array_equal(np.load(name), expected)
    assert 'tensor<?x3xf32, ["k", "3"]>' in cli("opt", "s.onnx", *GIVEN).out


WRONG_STRUCTURES: dict[str, tuple[tuple[str, ...], str]] = {
    "no structure": ((), '"xs"'),
    "no spec": (("--structure", "xs"), "NAME=VALUE"),
    "words": (("--structure", "xs=many"), "xs=[2,3],[n,?]"),
    "brackets": (("--structure", "xs=[2,3"), "xs=none"),
    "a huge number": (("--structure", "xs=99999999999"), "xs=3"),
    "another rank": (("--structure", "xs=[2]"), "declares"),
    "another input": (("--structure", "s=1"), "xs, o"),
    "nothing in a sequence": (("--structure", "xs=none"), "xs"),
    "a constant that is not there": (("--constant", "s=none.npy"), "none.npy"),
    "a constant of no input": ((*GIVEN, "--constant", "q=s.npy"), "q"),
}


@pytest.mark.parametrize("name", WRONG_STRUCTURES)
def test_wrong_structures_say_how_to_write_them(name: str, cli: Cli, sequences: Path) -> None:
    arguments, said = WRONG_STRUCTURES[name]
    result = cli("compile", "s.onnx", *arguments)
    assert result.code in (1, 2) and said in result.err and "Traceback" not in result.err


@pytest.mark.parametrize("option", [("--structure", "x=1"), ("--constant", "x=x.npy")])
def test_structures_are_for_onnx_models_only(option: tuple[str, str], cli: Cli, sequences: Path) -> None:
    assert cli("compile", "m.mlir", *option).code == 2
    assert cli("compile", "s.onnx", *GIVEN, "-o", "s.gcomp").code == 0
    result = cli("run", "s.gcomp", *option)
    assert result.code == 2 and "gcomp compile" in result.err


# ---- what they refuse ----

WRONG: dict[str, tuple[str, list[str]]] = {
    "compile": ("model", []),
    "compile missing.mlir": ("missing.mlir", []),
    "compile m.mlir -o nowhere/m.gcomp": ("nowhere", []),
    "compile m.mlir -o .": ("folder", []),
    "compile m.mlir --dim other=3": ("'other'", ["batch"]),
    "compile m.mlir --dim batch": ("NAME=VALUE", []),
    "compile m.mlir --dim batch=x": ("'batch'", ["1..64"]),
    "compile m.mlir --dim batch=8..1": ("'batch'", []),
    "compile m.mlir --dim batch=1 --dim batch=2": ("twice", []),
    "compile m.mlir -p canonicalise": ("canonicalise", ["did you mean 'canonicalize'?"]),
    "compile m.mlir -p cse{": ("pipeline", []),
    "compile m.mlir -p cse{speed=9}": ("cse", []),
    "compile m.mlir -t abacus": ("abacus", ["xla:cpu"]),
    "compile m.mlir --verify maybe": ("maybe", ["each"]),
    "compile m.mlir --donate z": ("'z'", ["x, n"]),
    "compile m.gcomp": ("m.gcomp", ["gcomp.load"]),
    "compile m.mlir --frobnicate": ("frobnicate", []),
    "frobnicate": ("frobnicate", []),
    "opt": ("file", ["--list-passes"]),
    "opt m.mlir -p unknown-pass": ("unknown-pass", ["canonicalize"]),
    "opt m.mlir -p cse -t xla:cpu": ("--pipeline and --target", []),
    "opt m.mlir -o nowhere/o.mlir": ("nowhere", []),
    "opt m.mlir --export": ("batch", ["--dim batch=8"]),
    "run missing.gcomp": ("missing.gcomp", []),
    "run m.mlir -i x": ("NAME=VALUE", []),
    "run m.mlir -i x=missing.npy -i n=n.npy": ("missing.npy", []),
    "run m.mlir -i x=broken.npy -i n=n.npy": ("broken.npy", []),
    "run m.mlir -i x=objects.npy -i n=n.npy": ("objects.npy", []),
    "run m.mlir --random -o q=q.npy": ("'q'", ["y, m"]),
    "run m.mlir --random --fetch q": ("'q'", ["y, m"]),
    "run m.mlir --random -o y=nowhere/y.npy": ("nowhere", []),
    "run m.mlir --random --repeat 0": ("repeat", []),
    "inspect missing.gcomp": ("missing.gcomp", []),
}


@pytest.mark.parametrize("command", WRONG)
def test_wrong_usage_says_what_and_what_next(command: str, cli: Cli, folder: Path) -> None:
    before, (said, hints) = files(folder), WRONG[command]
    result = cli(*command.split())
    assert result.code == 2
    assert result.out == "" and all(text in result.err for text in (said, *hints)), result.err
    assert "Traceback" not in result.err
    assert files(folder) == before


SIZES = {
    "run m.gcomp --random --dim other=2": "no symbolic dimension 'other'",
    "run m.gcomp -i x=x.npy -i n=n.npy --dim batch=3": "--dim",
    "inspect m.gcomp --dim other=2": "no symbolic dimension 'other'",
    "inspect m.gcomp --dim batch=1..2": "--dim batch=8",
}


@pytest.mark.parametrize("command", SIZES)
def test_sizes_that_say_nothing_are_wrong_usage(command: str, cli: Cli) -> None:
    assert cli("compile", "m.mlir", "-o", "m.gcomp").code == 0
    result = cli(*command.split())
    assert result.code == 2 and result.out == "" and SIZES[command] in result.err


REFUSED: dict[str, list[str]] = {
    "-i x=x.npy": ["`n`", "missing", "i32[4]"],
    "-i x=x.npy -i n=n.npy -i z=x.npy": ["`z`", "x: f32[batch, 4]"],
    "-i x=rank.npy -i n=n.npy": ["`x`", "rank 1"],
    "-i x=double.npy -i n=n.npy": ["`x`", "float64", "astype"],
    "-i x=wide.npy -i n=n.npy": ["`x`", "[3, 5]"],
    "-i x=n.npy -i n=x.npy": ["`x`", "int32"],
}


@pytest.mark.parametrize("inputs", REFUSED)
def test_inputs_that_do_not_fit_are_refused(inputs: str, cli: Cli, folder: Path) -> None:
    before = files(folder)
    result = cli("run", "m.mlir", *inputs.split(), "-o", "y=y.npy")
    assert result.code == 1 and result.out == "" and all(text in result.err for text in REFUSED[inputs]), result.err
    assert files(folder) == before


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "no text": ("compile bad.mlir", b"\xff\xfe", "UTF-8"),
    "not the language": ("compile bad.mlir", b"func.func @main(", "bad.mlir:1"),
    "not valid": ("compile bad.mlir", TEXT.replace("%n : tensor<4xi32>", "%n : tensor<5xi32>").encode(), "bad.mlir"),
    "no main": ("opt bad.mlir", b"module {}", "@main"),
    "empty model": ("compile bad.onnx", b"", "empty"),
    "no model": ("opt bad.onnx", b"\x00\x01\x02garbage", "bad.onnx"),
    "half a model": ("run bad.onnx --random", DIGITS.read_bytes()[:5000], "bad.onnx"),
    "empty artifact": ("run bad.gcomp --random", b"", "empty"),
    "no artifact": ("inspect bad.gcomp", b"PK\x05\x06" + bytes(18), "bad.gcomp"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused(name: str, cli: Cli, folder: Path) -> None:
    command, content, said = BAD_FILES[name]
    (folder / command.split()[1]).write_bytes(content)
    before = files(folder)
    result = cli(*command.split())
    assert result.code == 1 and result.out == "" and said in result.err and "Traceback" not in result.err
    assert files(folder) == before


def test_a_damaged_artifact_is_refused(cli: Cli, folder: Path) -> None:
    assert cli("compile", str(DIGITS), "-o", "d.gcomp").code == 0
    whole = (folder / "d.gcomp").read_bytes()
    for damaged in (whole[:-100], whole[:4000] + b"\x00" + whole[4001:], whole + b"x"):
        (folder / "d.gcomp").write_bytes(damaged)
        for command in (("inspect", "d.gcomp"), ("run", "d.gcomp", "--random")):
            result = cli(*command)
            assert result.code == 1 and "damaged" in result.err and "d.gcomp" in result.err


def test_a_failing_compilation_leaves_what_was_there(cli: Cli, folder: Path) -> None:
    (folder / "old.gcomp").write_bytes(b"old")
    (folder / "bad.mlir").write_text(TEXT.replace("negate", "frobnicate"))
    before = files(folder)
    assert cli("compile", "bad.mlir", "-o", "old.gcomp").code == 1
    assert (folder / "old.gcomp").read_bytes() == b"old" and files(folder) == before


def test_a_pass_that_crashes_is_a_bug_and_leaves_a_reproducer(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*args: object) -> bool:
        raise IndexError("seven")

    monkeypatch.setattr(CommonSubexpressionElimination, "run", crash)
    result = cli("compile", "m.mlir", "-p", "dce,cse", "-o", "m.gcomp")
    assert result.code == 3 and "cse" in result.err and "IndexError: seven" in result.err
    assert (folder / "m.crash.mlir").read_text().startswith('// gcomp opt m.crash.mlir -p "cse"\n')
    assert not (folder / "m.gcomp").exists()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert gcomp.Program.parse((folder / "m.crash.mlir").read_text()).op_count() == 5


def test_any_other_crash_is_a_bug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.cli.compiling.check_writable", None)
    result = cli("compile", "m.mlir")
    assert result.code == 3 and "report" in result.err and "TypeError: 'NoneType' object" in result.err


# ---- what they cost ----


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


HEAVY = "{'jax', 'jaxlib', 'torch', 'onnx', 'onnx_ir', 'xdsl', 'numpy', 'ml_dtypes', 'triton', 'rich', 'typer'}"


def test_importing_gcomp_imports_nothing_heavy() -> None:
    assert python(f"import sys, gcomp; print(sorted({HEAVY} & set(sys.modules)))") == "[]"
    assert python(f"import sys, gcomp.errors, gcomp.dims; print(sorted({HEAVY} & set(sys.modules)))") == "[]"


def test_help_imports_no_compiler() -> None:
    code = """if True:
        import sys, gcomp.cli
        sys.argv = ["gcomp", "--help"]
        try:
            gcomp.cli.main()
        except SystemExit as error:
            heavy = {'jax', 'jaxlib', 'torch', 'onnx', 'onnx_ir', 'xdsl', 'numpy'}
            print(sorted(heavy & set(sys.modules)), error.code)"""
    assert python(code).splitlines()[-1] == "[] 0"


def test_the_command_is_installed(folder: Path) -> None:
    command = Path(sys.executable).with_name("gcomp")
    done = subprocess.run([command, "opt", "m.mlir", "-p", "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == "" and "there is no pass 'nothing'" in done.stderr
    done = subprocess.run([command, "opt", "m.mlir", "-p", "cse"], capture_output=True, text=True, check=True)
    assert done.stdout.count("stablehlo.add") == 1 and done.stderr == ""


def test_the_seed_of_random_operators_is_an_option(cli: Cli, folder: Path) -> None:
    import onnx

    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        g (float[3, 4] x) => (float[3, 4] y) { r = RandomNormalLike(x) y = Add(x, r) }""")
    onnx.save(model, folder / "noise.onnx")
    assert cli("compile", "noise.onnx", "-o", "noise.gcomp").code == 0
    shown = cli("inspect", "noise.gcomp")
    assert "seed" in shown.out and "0 if left out" in shown.out
    for file, *options in (("a",), ("b", "--seed", "0"), ("c", "--seed", "18446744073709551615")):
        assert cli("run", "noise.gcomp", "-i", "x=x.npy", "-o", f"y={file}.npy", *options).code == 0
    np.save(folder / "seed.npy", np.asarray(2**64 - 1, np.uint64))
    assert cli("run", "noise.onnx", "-i", "x=x.npy", "-i", "seed=seed.npy", "-o", "y=d.npy").code == 0
    a, b, c, d = (np.load(folder / f"{name}.npy") for name in "abcd")
    assert np.array_equal(a, b) and np.array_equal(c, d) and not np.any(a == c)
    assert cli("run", "noise.gcomp", "--random").code == 0
    twice = cli("run", "noise.gcomp", "-i", "x=x.npy", "-i", "seed=seed.npy", "--seed", "1")
    assert twice.code == 2 and "twice" in twice.err
    without = cli("run", "m.mlir", "-i", "x=x.npy", "-i", "n=n.npy", "--seed", "1")
    assert without.code == 2 and "no random operators" in without.err


def test_no_cache_keeps_nothing(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, kept in (((), True), (("--no-cache",), False)):
        place = folder / f"kept{len(options)}"
        monkeypatch.setenv("GCOMP_CACHE_DIR", str(place))
        assert cli(*options, "run", "m.mlir", "--random", "--dim", "batch=2").code == 0
        assert place.exists() == kept


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "gcomp", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"gcomp {gcomp.__version__}\n"


def test_memory_without_a_bound_asks_for_a_range_of_the_symbol(cli: Cli, folder: Path) -> None:
    type = 'tensor<?x4xf32, ["rows", "4"]>'
    product = f"contracting_dims = [1] x [0] : ({type}, tensor<4x4xf32>) -> {type}"
    (folder / "open.mlir").write_text(f"""func.func @main(%x: {type}, %w: tensor<4x4xf32>) -> {type} {{
      %0 = stablehlo.dot_general %x, %w, {product}
      %1 = stablehlo.dot_general %0, %w, {product}
      return %1 : {type}
    }}""")
    assert "--dim rows=1..64" in cli("opt", "open.mlir", "-p", "fuse,plan-memory").err
