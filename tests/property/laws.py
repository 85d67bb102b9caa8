"""Laws of the doors of `gcomp fuzz`, with choices that Hypothesis draws and shrinks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.testing.fuzz.laws import Law
from gcomp.testing.generate.choices import Drawn
from tests.support.thinning import examples


def holds(law: Law, count: int = 60) -> None:
    """AssertionError, with the least choices that break it, where a law does not hold."""

    @given(st.data())
    @settings(max_examples=examples(count), deadline=None)
    def check(data: st.DataObject) -> None:
        wrong = law.wrong(Drawn(data.draw))
        assert not wrong, wrong

    check()
