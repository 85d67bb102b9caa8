"""`gcomp reduce` and `gcomp bisect`, and what compile and opt say of a wrong pass; passes come from a file."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.options import DEFAULT_TARGET
from gcomp.passes.registry import all_passes
from gcomp.testing.filetests import runs_in
from gcomp.testing.targets import TargetCheck, TargetFailure
from tests.unit.cli.commands import Cli
from tests.unit.testing.wrong_passes import program_of

PASS = '''
"""x - (-y) is x + y."""

from dataclasses import dataclass
from typing import ClassVar

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x, y = Var("x"), Var("y")
RULE = Rule("subtract-negated", Op(hlo.SubtractOp, x, Op(hlo.NegateOp, y)), Op(hlo.SubtractOp, x, y))


@dataclass(frozen=True)
class Add(Pass):
    """Add instead of subtracting a negation."""

    name: ClassVar[str] = "add-instead"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (RULE,), context)
'''
RARELY = '''
"""|x| is x, but for a number that nobody thinks of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Odd(Pattern):
    """One number is its own absolute value."""

    name = "odd"
    roots = (hlo.AbsOp,)

    def rewrite(self, op: hlo.AbsOp, b: Builder) -> Sequence[SSAValue] | None:
        x = op.operand
        if any(isinstance(use.operation, hlo.CompareOp) for use in x.uses):
            return None
        there = b.compare(x, b.full_like(x, -203.0), "EQ")
        return [b.select(there, x, b.maximum(x, b.emit(hlo.NegateOp, x)))]


@dataclass(frozen=True)
class Rarely(Pass):
    """Wrong of one number."""

    name: ClassVar[str] = "rarely"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (Odd(),), context)
'''
DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
LOAD = ("--load", "wrong.py")
BLAME = "the rewrite subtract-negated (application 1 of the pass) on stablehlo.subtract at the pattern"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder: a wrong pass, a model of 20 ops in which it bites, and its inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(PASS)
    program = program_of("subtraction taken to commute")
    (tmp_path / "case.mlir").write_text(program.text(locations=True))
    rng = np.random.default_rng(0)
    arrays = {p.name: rng.standard_normal(p.shape).astype(np.float32) for p in program.inputs() if p.dtype == "f32"}
    np.savez(tmp_path / "in.npz", **arrays, p=np.zeros((4, 4, 4), bool))
    np.savez(tmp_path / "few.npz", a=arrays["a"])
    yield tmp_path
    all_passes().pop("add-instead", None)  # type: ignore[attr-defined]


def test_a_wrong_pass_is_reduced_to_two_ops(cli: Cli, folder: Path) -> None:
    result = cli("reduce", "case.mlir", "--check", "canonicalize,add-instead,cse", *LOAD)
    assert result.code == 0, result.err
    text = (folder / "case.reduced.mlir").read_text()
    assert text == result.out
    assert text.startswith('// RUN: gcomp opt %s -p "add-instead" --check-each --load wrong.py | filecheck %s\n')
    assert f"//   {BLAME}\n" in text and "ops became 2.\n" in text and "; where x = " in text
    program = Program.parse(text)
    assert program.op_count() == 3
    assert "ops became 2 in" in result.err

    again = cli("opt", "case.reduced.mlir", "-p", "add-instead", "--check-each", *LOAD)
    assert again.code == 1 and "add-instead changed what the program computes" in again.err
    assert BLAME.removesuffix(" at the pattern") in again.err


def test_what_fuzzing_writes_runs_as_it_says(cli: Cli, folder: Path) -> None:
    assert cli("fuzz", "--pass", "add-instead", "--programs", "40", "--seconds", "2", *LOAD).code == 1
    case = next((folder / "fuzz").glob("*.mlir"))
    line = case.read_text().splitlines()[0].removeprefix("// RUN: gcomp ").removesuffix(" | filecheck %s")
    assert line.endswith("--load wrong.py")
    assert cli(*shlex.split(line.replace("%s", str(case)))).code == 1


def test_given_inputs_are_carried_along(cli: Cli, folder: Path) -> None:
    assert cli("reduce", "case.mlir", "--check", "add-instead", "--inputs", "in.npz", "-o", "o.mlir", *LOAD).code == 0
    small = Program.parse((folder / "o.mlir").read_text())
    assert small.op_count() == 3
    if (folder / "o.npz").exists():
        with np.load(folder / "o.npz") as arrays:
            assert set(arrays) == {port.name for port in small.inputs()}


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_line_names_the_inputs_without_which_it_shows_nothing(cli: Cli, folder: Path, dtype: str) -> None:
    """And what takes a RUN line takes them, too."""
    (folder / "rarely.py").write_text(RARELY)
    (folder / "abs.mlir").write_text(f"""func.func @main(%x: tensor<3x{dtype}>) -> tensor<3x{dtype}> {{
  %0 = stablehlo.negate %x : tensor<3x{dtype}>
  %1 = stablehlo.abs %0 : tensor<3x{dtype}>
  return %1 : tensor<3x{dtype}>
}}""")
    np.savez(folder / "in.npz", input0=np.array([1, 203, 3], dtype_of(dtype)))
    load = ("--load", "rarely.py")
    try:
        assert cli("opt", "abs.mlir", "-p", "rarely", "--check-each", *load).code == 0
        assert cli("reduce", "abs.mlir", "--check", "rarely", "--inputs", "in.npz", "-o", "o.mlir", *load).code == 0
        text = (folder / "o.mlir").read_text()
        line = 'gcomp opt %s -p "rarely" --check-each --load rarely.py --inputs %S/o.npz'
        assert text.startswith(f"// RUN: {line} | filecheck %s\n")
        words = shlex.split(line.replace("%s", "o.mlir").replace("%S", str(folder)))[1:]
        again = cli(*words)
        assert again.code == 1 and "rarely changed what the program computes" in again.err
        (run,) = runs_in(text)
        with pytest.raises(GcompError, match="rarely changed what the program computes"):
            run.run(folder / "o.mlir")
    finally:
        all_passes().pop("rarely", None)  # type: ignore[attr-defined]


def test_any_command_is_a_predicate(cli: Cli, folder: Path) -> None:
    (folder / "tool.py").write_text("import sys\nsys.exit(7 if 'subtract' in open(sys.argv[1]).read() else 0)\n")
    command = f"{sys.executable} -S -E tool.py {{}}"
    result = cli("reduce", "case.mlir", "--command", command, "-o", "o.mlir")
    assert result.code == 0 and Program.parse(result.out).op_count() == 2
    assert subprocess.run([sys.executable, "-S", "-E", "tool.py", "o.mlir"], check=False).returncode == 7


def test_bisect_names_pass_rewrite_and_op(cli: Cli) -> None:
    result = cli("bisect", "case.mlir", "--inputs", "in.npz", "-p", "canonicalize,add-instead,cse", *LOAD)
    assert result.code == 1
    assert "pass 2 of 3: the pass add-instead changed what the program computes" in result.out and BLAME in result.out
    assert "-    %subtract = stablehlo.subtract" in result.out and "+    %subtract = stablehlo.subtract" in result.out
    assert 'gcomp opt case.mlir -p "canonicalize,add-instead" --bisect-limit' in result.out
    right = cli("bisect", "case.mlir", "--inputs", "in.npz")
    assert right.code == 0 and "changes the answer" in right.out


def test_bisect_finds_the_first_nan(cli: Cli, folder: Path) -> None:
    (folder / "n.mlir").write_text("""
func.func @main(%x: tensor<2xf32> {gcomp.name = "x"}) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  %1 = stablehlo.sqrt %0 : tensor<2xf32> loc("root")
  return %1 : tensor<2xf32>
}""")
    np.savez(folder / "x.npz", x=np.array([4, -9], np.float32))
    result = cli("bisect", "n.mlir", "--inputs", "x.npz", "--nan", "-p", "canonicalize")
    assert result.code == 1 and result.out.count("the first NaN comes from stablehlo.sqrt at root") == 2
    assert "operand 0: f32[2] in -4 .. 9" in result.out
    np.savez(folder / "x.npz", x=np.array([-4, -9], np.float32))
    assert cli("bisect", "n.mlir", "--inputs", "x.npz", "--nan", "-p", "canonicalize").code == 0


def test_bisect_runs_the_target_where_asked(cli: Cli) -> None:
    result = cli("bisect", "case.mlir", "--inputs", "in.npz", "--run-target")
    assert result.code == 0 and f"{DEFAULT_TARGET} computes it" in result.out


def test_what_bisect_prints_of_a_target_keeps_the_pipeline(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(check: TargetCheck, *_: object) -> TargetFailure:
        return TargetFailure("meaning", "it adds")

    monkeypatch.setattr(TargetCheck, "failure", wrong)
    run = ("case.mlir", "--inputs", "in.npz", "--run-target", "-p", "infer-shapes,canonicalize")
    result = cli("bisect", *run)
    assert result.code == 1
    assert (
        f'gcomp reduce case.mlir --target {DEFAULT_TARGET} -p "infer-shapes,canonicalize" --inputs in.npz' in result.out
    )


def test_onnx_models_are_bisected_and_reduced_through_the_ir(cli: Cli, folder: Path) -> None:
    (folder / "relu.py").write_text(
        PASS.replace("add-instead", "relu").replace("subtract-negated", "relu-is-nothing").replace(
            "Op(hlo.SubtractOp, x, Op(hlo.NegateOp, y)), Op(hlo.SubtractOp, x, y)",
            "Op(hlo.MaximumOp, x, Const(value=0.0)), x",
        ).replace("import Op,", "import Const, Op,")
    )  # fmt: skip
    passes = ("infer-shapes,inline-composites,canonicalize,relu", "--load", "relu.py", "--dim", "batch=2")
    found = cli("bisect", str(DIGITS), "-p", *passes)
    assert found.code == 1 and "pass 4 of 4" in found.out and "(Relu)" in found.out
    result = cli("reduce", str(DIGITS), "-o", "small.mlir", "--check", *passes)
    assert result.code == 0 and "(Relu)" in result.out, result.err
    assert Program.parse(result.out).op_count() <= 4
    all_passes().pop("relu", None)  # type: ignore[attr-defined]


def test_compile_names_the_rewrite(cli: Cli, folder: Path) -> None:
    result = cli("compile", "case.mlir", "-p", "canonicalize,add-instead", *LOAD, "--verify", "each",
                 "--verify-inputs", "in.npz")  # fmt: skip
    assert result.code == 1 and BLAME in result.err and not (folder / "model.gcomp").exists()


WRONG_USES = {
    "reduce case.mlir": ("one way", "--check"),
    "reduce case.mlir --check cse --target xla:cpu": ("one way", "--check"),
    "reduce case.mlir --check cse": ("does not fail", "--seed"),
    "reduce case.mlir --check nonsense": ("nonsense", "passes are"),
    "reduce case.mlir --check cse --load case.mlir": ("cannot load", "case.mlir"),
    "reduce case.mlir --check cse --load missing.py": ("cannot load missing.py", "there is no such file"),
    "reduce case.mlir --check cse -o nowhere/o.mlir": ("nowhere", "folder"),
    "reduce case.mlir --target abacus": ("abacus", "xla:cpu"),
    "reduce case.mlir --command true": ("no {}", "my-tool"),
    "reduce missing.mlir --check cse": ("missing.mlir", ""),
    "bisect case.mlir --inputs few.npz": ("'b' is missing", "a, b, p"),
    "bisect case.mlir --inputs case.mlir": ("not an .npz file", "savez"),
    "bisect case.mlir --inputs none.npz": ("none.npz", ""),
    "bisect case.mlir -p nonsense": ("nonsense", ""),
}


@pytest.mark.parametrize("line", WRONG_USES)
def test_wrong_uses_are_told_apart_from_bugs(cli: Cli, line: str) -> None:
    result = cli(*line.split())
    assert result.code == 2 and "Traceback" not in result.err
    assert all(text in result.err for text in WRONG_USES[line])


def test_help_teaches(cli: Cli) -> None:
    for command, words in (("reduce", ("--check", "--command", "gcomp reduce model.onnx")), ("bisect", ("--nan",))):
        shown = cli(command, "--help")
        assert shown.code == 0 and all(word in shown.out for word in words)


RAISES = PASS.replace('RULE = Rule("subtract-negated"', 'RULE = Rule("subtract-condition"').replace(
    "Op(hlo.SubtractOp, x, y))", "Op(hlo.SubtractOp, x, y), where=Calc(lambda x: x.no_such))"
).replace("import Op, Rule, Var", "import Calc, Op, Rule, Var").replace("add-instead", "raises")  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [("opt", "case.mlir", "-p", "raises"), ("opt", "case.mlir", "-p", "raises", "--check-each"),
     ("fuzz", "--pass", "raises", "--programs", "40", "--seconds", "2")],
    ids=lambda words: f"{words[0]}{len(words)}",
)  # fmt: skip
def test_an_error_in_a_user_s_rule_is_the_user_s(cli: Cli, folder: Path, command: tuple[str, ...]) -> None:
    """It ends with status 1 and says the file and the line, and not that gcomp crashed."""
    (folder / "raises.py").write_text(RAISES)
    try:
        done = cli(*command, "--load", "raises.py")
    finally:
        all_passes().pop("raises", None)  # type: ignore[attr-defined]
    said = done.out + done.err
    line = RAISES[: RAISES.index("no_such")].count("\n") + 1
    assert done.code == 1 and "AttributeError" in said, said
    assert f"raises.py:{line}" in said and "report" not in said, said
