"""Tuning on processors: candidates differ in time only, and what was measured is what is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.driver import import_model
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.llvm.lower import lower
from gcomp.lowering.llvm.trials import trials
from gcomp.lowering.llvm.tuning import CONFIRMING, Chosen, tune
from gcomp.lowering.tiles.forms import digest_of
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from gcomp.runtime.stateful import model_of
from gcomp.targets.base import target_named

VARIANT = VARIANTS[this_machine()]
TEXTS = {
    "product": """func.func @main(%x: tensor<50x96xf32>, %w: tensor<96x64xf32>) -> tensor<50x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<50x96xf32>, tensor<96x64xf32>) -> tensor<50x64xf32>
  %1 = stablehlo.tanh %0 : tensor<50x64xf32>
  return %1 : tensor<50x64xf32>
}""",
    "rows": """func.func @main(%x: tensor<20x300xf32>) -> tensor<20x300xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<20x300xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] :
      (tensor<20x300xf32>, tensor<f32>) -> tensor<20xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<20xf32>) -> tensor<20x300xf32>
  %y = stablehlo.divide %e, %b : tensor<20x300xf32>
  return %y : tensor<20x300xf32>
}""",
    "transposed": """func.func @main(%x: tensor<33x70xf32>) -> tensor<70x33xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<33x70xf32>) -> tensor<70x33xf32>
  %1 = stablehlo.negate %0 : tensor<70x33xf32>
  return %1 : tensor<70x33xf32>
}""",
}


def planned(text: str) -> Any:
    program = import_model(text)
    PassManager(parse_pipeline(target_named("cpu").pipeline())).run(program)
    return program


def model_in(program: Any, chosen: Chosen) -> Any:
    own = program.clone()
    return model_of(lower(own, f"cpu:{VARIANT.name}", [VARIANT], tuned=chosen), dict(own.weights.items()))


@pytest.mark.parametrize("name", TEXTS)
def test_all_candidates_give_the_same_bits(name: str) -> None:
    program = planned(TEXTS[name])
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    tried = trials(launch, program.ranges, VARIANT.bits)
    assert len(tried) > 2 and len({frozenset(s.values.items()) for s in tried}) == len(tried)
    plain = gcomp.compile(TEXTS[name])
    inputs = [np.random.default_rng(0).standard_normal([int(n) for n in p.dims], np.float32) for p in plain.inputs]
    expected, codes = np.asarray(plain(*inputs)[0]).tobytes(), set[bytes]()
    for settings in tried:
        model = model_in(program, Chosen(VARIANT, {digest_of(launch, program.ranges): settings}))
        assert np.asarray(model(*inputs)[0]).tobytes() == expected
        codes |= set(model.plan.binaries.values())
    assert len(codes) > 1, "candidates are other code"


class Clocked:
    """A model that takes as long as it is said of its candidates: the number that is asked for is in what is chosen."""

    def __init__(self, seconds: float, results: bytes = b"") -> None:
        self._seconds, self._results = seconds, results

    def results(self) -> list[Any]:
        return [np.frombuffer(self._results, np.uint8)]

    def seconds(self) -> dict[tuple[str, str], float]:
        return dict.fromkeys(self.places, self._seconds)

    places: tuple[tuple[str, str], ...] = ()


@pytest.mark.parametrize(("best", "confirmed", "taken"), [(0.5, 0.5, 2), (0.5, 0.99, 0)])
def test_what_is_fastest_is_taken_where_that_is_confirmed(best: float, confirmed: float, taken: int) -> None:
    program = planned(TEXTS["product"])
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    count = len(trials(launch, program.ranges, VARIANT.bits))
    Clocked.places = ((launch.label_name, gcomp.ir.locations.describe(launch.location)),)
    clocks = iter([best if n == 2 else 1.0 for n in range(count)] + [confirmed])
    results = tune(program, VARIANT, "a clock", lambda _: Clocked(next(clocks)), lambda *_: None)
    (form,) = results.forms
    assert form.taken == taken and len(form.trials) == count and CONFIRMING > 1
    wanted = results.settings(launch, program.ranges)
    assert wanted is not None and wanted.values == form.trials[taken].settings


def test_candidates_of_other_bits_are_an_error() -> None:
    program = planned(TEXTS["product"])
    numbers = iter(range(100))
    with pytest.raises(gcomp.InternalError, match="other bits"):
        tune(program, VARIANT, "", lambda _: Clocked(1.0, bytes([next(numbers)])), lambda *_: None)
