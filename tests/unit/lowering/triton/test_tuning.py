"""Times of kernels as data: what they belong to, and how well a model puts them in order."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gcomp.dims import Range, Ranges
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.forms import digest_of, form_of
from gcomp.lowering.tiles.schedules import Settings
from gcomp.lowering.triton.aot import Compiler
from gcomp.lowering.triton.choose import choose
from gcomp.lowering.triton.targets import architecture
from gcomp.lowering.tuned import Form, Results, Trial, rank_correlation
from gcomp.testing.tiles import as_kernel

TEXT = """func.func @main(%x: tensor<?x8xf32, ["n", "8"]>) -> tensor<?x8xf32, ["n", "8"]> {
  %c = stablehlo.constant dense<8.0> : tensor<8xf32>
  %b = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<8xf32>) -> tensor<?x8xf32, ["n", "8"]>
  %r = stablehlo.add %x, %b : tensor<?x8xf32, ["n", "8"]>
  return %r : tensor<?x8xf32, ["n", "8"]>
}"""


def launch_of(text: str = TEXT, known: Range | None = None) -> tuple[LaunchOp, Ranges]:
    program = Program.parse(text)
    program.ranges = Ranges({"n": known or Range(1, 64)})
    whole = as_kernel(program, "loop")
    (found,) = [op for op in whole.ops() if isinstance(op, LaunchOp)]
    return found, whole.ranges


def test_a_kernel_has_one_digest_in_all_processes() -> None:
    own = digest_of(*launch_of())
    code = "from tests.unit.lowering.triton.test_tuning import *\nprint(digest_of(*launch_of()))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == own


def test_digests_tell_kernels_apart() -> None:
    others = [
        launch_of(TEXT.replace("f32", "bf16")), launch_of(TEXT.replace(".add", ".subtract")),
        launch_of(TEXT.replace("8.0>", "9.0>")), launch_of(TEXT.replace("add %x, %b", "add %b, %x")),
        launch_of(known=Range(1, 65)), launch_of(known=Range(8, 64, 8)),
    ]  # fmt: skip
    assert len({digest_of(*one) for one in [launch_of(), *others]}) == 7
    assert digest_of(*launch_of(TEXT.replace("%r", "%result"))) == digest_of(*launch_of())


def trial(predicted: float, measured: float, **settings: int) -> Trial:
    return Trial(settings, predicted, measured, (), ())


def form(*trials: Trial, digest: str = "") -> Form:
    return Form(digest, "loop", "add", {}, trials)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 10), (2, 20), (3, 25)], 1.0),
        ([(1, 3), (2, 2), (3, 1)], -1.0),
        ([(1, 1), (2, 3), (3, 2), (4, 4)], 0.8),
        # Of equal ones each has the middle of their places.
        ([(1, 1), (1, 2), (2, 3)], 0.8660254),
        ([(1, 1), (1, 2)], None),
        ([], None),
    ],
)
def test_rank_correlation_is_spearmans(pairs: list[tuple[float, float]], expected: float | None) -> None:
    found = rank_correlation([form(*[trial(*pair) for pair in pairs])])
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_gap_is_that_of_the_first() -> None:
    found = form(trial(1, 3.0), trial(2, 2.0, block=4), trial(3, 4.0))
    assert found.best.settings == {"block": 4} and found.gap == pytest.approx(0.5)


def test_what_was_measured_comes_before_the_model() -> None:
    launch, ranges = launch_of()
    known = form(trial(1, 3.0), trial(2, 2.0, block=128), digest=digest_of(launch, ranges))
    results = Results(1, "sm_90", "", {}, (known,))
    with Compiler(1) as compiler:
        for tuned, block in ((None, None), (lambda op: results.settings(op, ranges), 128)):
            found = choose([launch], ranges, architecture("sm_90"), compiler, tuned=tuned)
            assert found[form_of(launch)].settings == Settings({} if block is None else {"block": block})
    other, _ = launch_of(TEXT.replace(".add", ".subtract"))
    assert results.settings(other, ranges) is None
