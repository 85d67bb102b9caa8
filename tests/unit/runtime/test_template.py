"""Templates: holes, choices between texts, and what is no template."""

from __future__ import annotations

import pytest

from gcomp import dims
from gcomp.dims import DimError
from gcomp.runtime.template import Template, choice, hole

P, Q, N = (dims.symbol(name) for name in "pqn")


def test_a_choice_is_the_part_that_its_size_decides() -> None:
    inner = choice(Q, f"<{hole(N)}>", "none")
    template = Template(f"a {choice(P, inner, hole(2 * N))} b {hole(N)}")
    assert template.symbols == {"p", "q", "n"}
    assert template.fill({"p": 1, "q": 1, "n": 3}) == "a <3> b 3"
    assert template.fill({"p": 1, "q": 0, "n": 3}) == "a none b 3"
    assert template.fill({"p": 0, "q": 1, "n": 3}) == "a 6 b 3"


def test_a_size_of_the_other_part_is_not_evaluated() -> None:
    template = Template(choice(P, "yes", hole(dims.floordiv(N, P))))
    assert template.fill({"p": 1, "n": 3}) == "yes"
    with pytest.raises(DimError):
        template.fill({"p": 0, "n": 3})


@pytest.mark.parametrize(
    "text",
    ["{{?p}}a", "{{?p}}a{{:}}b", "{{?p}}a{{/}}", "{{:}}", "{{/}}", "{{?p}}a{{:}}b{{:}}c{{/}}", "{{?1*p}}a{{:}}b{{/}}",
     "{{?}}a{{:}}b{{/}}", "{{?p}}" * 65 + "{{:}}{{/}}" * 65],
)  # fmt: skip
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(DimError):
        Template(text)
