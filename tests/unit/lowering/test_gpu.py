"""`xla:cuda`: what is written otherwise than for processors, what is refused, and a machine without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gcomp
from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.targets.base import Ability, target_named
from tests.support.gpu_compiler import MISSING, is_there

PRODUCT = """func.func @main(%x: tensor<8x16x{0}> {{gcomp.name = "x"}}, %w: tensor<16x8x{0}> {{gcomp.name = "w"}}) -> tensor<8x8x{0}> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]{1} : (tensor<8x16x{0}>, tensor<16x8x{0}>) -> tensor<8x8x{0}>
  return %0 : tensor<8x8x{0}>
}}"""  # noqa: E501


def text(program: str, target: str = "xla:cuda") -> str:
    return lower(Program.parse(program), target).texts["main.mlir"]


@pytest.mark.parametrize(
    ("element", "said", "written"),
    [("f32", "", "[HIGHEST, HIGHEST]"), ("f32", ", precision = [DEFAULT, DEFAULT]", "[HIGHEST, HIGHEST]"),
     ("f32", ", precision = [HIGH, HIGH]", "[HIGH, HIGH]"), ("complex<f32>", "", "[HIGHEST, HIGHEST]"),
     ("f16", "", None), ("bf16", "", None), ("f64", "", None)],
)  # fmt: skip
def test_products_of_f32_are_not_rounded_to_ten_bits(element: str, said: str, written: str | None) -> None:
    """XLA's default for f32 is TF32 on GPUs: a thousandth off."""
    found = text(PRODUCT.format(element, said))
    assert (f"precision = {written}" in found) if written else ("precision" not in found)
    assert "HIGHEST" not in text(PRODUCT.format(element, said), "xla:cpu")


def test_the_program_itself_is_left_alone() -> None:
    program = Program.parse(PRODUCT.format("f32", ""))
    before = program.text()
    lower(program, "xla:cuda")
    assert program.text() == before


REFUSED = {
    "a function of the processor's": """func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %a, %p, %i = "stablehlo.custom_call"(%x) <{call_target_name = "lapack_sgetrf_ffi", api_version = 4 : i32,
        backend_config = {}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}>
        : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<i32>)
      return %a : tensor<4x4xf32>
    }""",
    "no convolutions of integers": """func.func @main(%x: tensor<1x4x1xi32>, %w: tensor<2x1x1xi32>)
        -> tensor<1x3x1xi32> {
      %0 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}>
        : (tensor<1x4x1xi32>, tensor<2x1x1xi32>) -> tensor<1x3x1xi32>
      return %0 : tensor<1x3x1xi32>
    }""",
    "no i4 there": """func.func @main(%x: tensor<6xi4>) -> tensor<6xi4> {
      %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<i4>, %b: tensor<i4>):
        %1 = stablehlo.compare LT, %a, %b : (tensor<i4>, tensor<i4>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }) : (tensor<6xi4>) -> tensor<6xi4>
      return %0 : tensor<6xi4>
    }""",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_gpus_do_not_run_is_refused_by_name(why: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"XLA does not run stablehlo.\w+ on GPUs(.|\n)*{why}"):
        text(REFUSED[why])
    assert text(REFUSED[why], "xla:cpu")


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    source = PRODUCT.format("f32", "")
    for name, options in {"one": {}, "mesh": {"mesh": "data=2,model=2", "shardings": {"x": "data"}}}.items():
        path = tmp_path / f"{name}.gcomp"
        gcomp.compile(source, target="xla:cuda", prepare=False, **options).save(path)  # pyright: ignore
        with pytest.raises(
            GcompError, match=r"no XLA device of the kind `cuda`(.|\n)*fix: Run it on a machine with a GPU"
        ):
            gcomp.load(path)
    with pytest.raises(GcompError, match="no XLA device of the kind `cuda`"):
        gcomp.compile(source, target="xla:cuda")


def test_what_is_of_processors_alone_is_not_offered() -> None:
    for ability in (Ability.THREADS, Ability.PROFILE):
        assert target_named("xla:cpu").can(ability) and not target_named("xla:cuda").can(ability)
    with pytest.raises(UsageError, match=r"threads of their own(.|\n)*compile for cpu or xla:cpu$"):
        target_named("xla:cuda").require(Ability.THREADS)


@pytest.mark.skipif(not is_there(), reason=MISSING)
def test_plans_compile_for_eight_gpus() -> None:
    command = [sys.executable, "-m", "tests.conformance.gpu_plans", "--models", "torch/llama", "jax/mlp_step"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 of 8 compile" in done.stdout and "2 of 2 architectures" in done.stdout
