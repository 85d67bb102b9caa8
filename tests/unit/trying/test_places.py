"""Places of the pipeline: copies that become alike go on as one, and score as if each had gone on alone."""

from __future__ import annotations

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
from gcomp.trying.models import Model
from gcomp.trying.places import _score, places_of  # pyright: ignore[reportPrivateUsage]
from gcomp.trying.subject import subject_of

TEXT = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.exponential %1 : tensor<4x6xf32>
  %3 = stablehlo.exponential %x : tensor<4x6xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}"""


def test_each_place_scores_as_if_tried_alone(tmp_path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    subject = subject_of("canonicalize,cse")
    model = Model("model", path)
    (found,) = places_of([model], subject, jobs=1, until=float("inf"))
    assert not found.error and len(found.applied) > 1
    cut = next(k for k, step in enumerate(subject.before) if step.level != "graph")
    for place in found.applied:
        program = Program.parse(TEXT)
        PassManager(subject.before[:place]).run(program)
        for step in (*subject.tried, *subject.before[place:cut]):
            step.run(program, PassContext())
        assert found.scores[place] == _score(program, subject.target), place
