"""A target in a process of its own: held to the reference, and where its bits are part of the meaning, to these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from gcomp.errors import InternalError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.variants import VARIANTS, runs
from gcomp.targets.base import target_named
from gcomp.testing.oracles import OracleFailure
from gcomp.testing.targets import TargetCheck

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.skipif(not any(map(runs, VARIANTS.values())), reason="no code for this machine")

SUM = """func.func public @main(%x: tensor<3x100xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<3x100xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
DIFFERENCES = """func.func public @main(%x: tensor<4x21xi32>) -> tensor<4xi32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.subtract %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<4x21xi32>, tensor<i32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}"""


@pytest.fixture(scope="module")
def check() -> Iterator[TargetCheck]:
    """What `gcomp fuzz --target cpu` holds a program to."""
    with TargetCheck("cpu", parse_pipeline(target_named("cpu").pipeline())) as found:
        yield found


def test_a_process_that_runs_no_pass_tries_what_combines_elements(check: TargetCheck) -> None:
    """Whether elements may be combined in any order is tried with the reference, which that process had not loaded."""
    x = np.random.default_rng(0).integers(-99, 99, (4, 21)).astype(np.int32)
    assert check.failure(Program.parse(DIFFERENCES), [x]) is None


def test_sums_have_the_bits_of_their_tile_programs(check: TargetCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that differs in its last bit, as rounding may have it, is told all the same."""
    x = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    assert check.failure(Program.parse(SUM), [x]) is None
    run = check.oracle.run

    def rounded_otherwise(text: str, inputs: Sequence[Array]) -> list[Array] | OracleFailure:
        found = run(text, inputs)
        assert not isinstance(found, OracleFailure), found
        return [np.nextafter(found[0], np.float32(9), dtype=np.float32)]

    monkeypatch.setattr(check.oracle, "run", rounded_otherwise)
    failure = check.failure(Program.parse(SUM), [x])
    assert failure is not None and failure.kind == "bits" and not failure.allowed
    assert "the evaluator has" in str(failure)


class Raises(Pass):
    """A pass that ends in an error."""

    name: ClassVar[str] = "raises"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, program: Program, context: PassContext) -> bool:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [(KeyError(1), "refused"), (InternalError("lost"), "refused"), (UnsupportedError("no"), "unsupported")],
)
def test_what_a_pass_raises_is_a_failure_of_the_target(error: Exception, kind: str) -> None:
    """And no crash of who compares, nor an answer that the reference lacks."""
    with TargetCheck("cpu", [Raises(error)]) as check:
        found = check.failure(Program.parse(SUM), [np.ones((3, 100), np.float32)])
    assert found is not None and found.kind == kind
    assert found.message.startswith(f"{type(error).__name__}: ") and found.message.endswith("(in raises)")
