"""What notebooks show of programs, differences, plans and profiles: escaped, whole, and well formed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.ir.program import Program
from gcomp.report.building import report_of
from gcomp.report.costs import plans_of
from gcomp.report.memory import artifact_view
from gcomp.report.texts import difference_of

TEXT = """func.func @main(%x: tensor<4x8xf32> {gcomp.name = "<b>&"}) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %x : tensor<4x8xf32>
  %1 = stablehlo.sine %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}"""


class _Balanced(HTMLParser):
    """Sees that what opens is closed, and gathers the words."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def words(shown: Any) -> str:
    parser = _Balanced()
    parser.feed(shown._repr_html_())
    assert parser.open == []
    return parser.words


@pytest.fixture(scope="module")
def model() -> Any:
    return gcomp.compile(TEXT)


def test_a_program_shows_its_text() -> None:
    program = Program.parse(TEXT)
    assert "3 ops, 1 input, 1 output, 0 weights" in words(program)
    assert program.text().strip() in words(program)


def test_a_difference_shows_what_went_and_came() -> None:
    found = difference_of(Program.parse(TEXT), Program.parse(TEXT.replace("sine", "cosine")))
    signs = [sign for sign, line in found.lines if "sine %0" in line]
    assert signs == ["-", "+"]
    assert "cosine" in words(found) and str(found).count("\n") == len(found.lines) - 1
    assert difference_of(TEXT, TEXT).lines == ()


def test_plans_profiles_and_views_show_their_steps(model: Any) -> None:
    (plan,) = plans_of(model)
    assert "plan.json" in words(model.plan)
    assert "1 launches on" in words(plan) and "tanh" in words(plan)
    assert "tanh" in words(model.profile(np.ones((4, 8), np.float32), repeat=1))
    assert "The arena has" in words(artifact_view(plan, {}))


def test_a_report_is_a_page_in_a_frame() -> None:
    found = report_of(TEXT, target="cpu", title="<t>")._repr_html_()
    assert found.startswith("<iframe srcdoc=") and found.count("<") == 2
