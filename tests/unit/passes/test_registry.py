"""Pipelines as text: what is printed reads back, and what is wrong is refused politely."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcomp.errors import UsageError
from gcomp.passes.base import LEVELS, Pass
from gcomp.passes.graph.fold_constants import FoldConstants
from gcomp.passes.graph.inline_composites import InlineComposites
from gcomp.passes.registry import all_passes, parse_pipeline, pipeline_text
from gcomp.targets.base import sample_targets, target_named

COUNTS = st.integers(0, 2**40)
NAMES = st.lists(st.sampled_from(["gcomp.softmax", "gcomp.gelu", "mine.layer-norm_2", "x"]), max_size=3).map(tuple)
STEPS = st.one_of(
    st.sampled_from([cls() for cls in all_passes().values()]),
    st.builds(FoldConstants, COUNTS, COUNTS, COUNTS, COUNTS),
    st.builds(InlineComposites, NAMES),
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw imports passes, on machines with other work
@given(passes=st.lists(STEPS, max_size=6).map(lambda steps: sorted(steps, key=lambda s: LEVELS.index(s.level))))
def test_pipeline_text_round_trips(passes: list[Pass]) -> None:
    text = pipeline_text(passes)
    assert parse_pipeline(text) == passes
    assert pipeline_text(parse_pipeline(text)) == text


@pytest.mark.parametrize("target", sample_targets())
def test_every_target_has_a_pipeline_that_reads(target: str) -> None:
    passes = parse_pipeline(target_named(target).pipeline())
    required = {name for name, cls in all_passes().items() if cls.required and cls.__module__.startswith("gcomp.")}
    assert required <= {step.name for step in passes}


def test_a_pass_does_not_come_after_one_of_a_later_level() -> None:
    """Inside kernels, graph passes made what a kernel of a library cannot hold: a batch normalization's sums."""
    with pytest.raises(UsageError, match=r"decompose comes after fuse(.|\n)*graph level(.|\n)*run it before fuse"):
        parse_pipeline("canonicalize,fuse,decompose")
    with pytest.raises(UsageError, match="order-for-memory comes after plan-memory"):
        parse_pipeline("plan-memory,order-for-memory")


def test_names_are_those_of_files() -> None:
    for name, cls in all_passes().items():
        if cls.__module__.startswith("gcomp."):
            assert cls.__module__.rpartition(".")[2].replace("_", "-") == name


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("canonicalise", "canonicalize"), ("fold_constants", "fold-constants"), ("infer-shape", "infer-shapes")],
)
def test_an_unknown_pass_suggests_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"no pass '{typed}'(.|\n)*did you mean '{meant}'"):
        parse_pipeline(f"cse,{typed}")


@pytest.mark.parametrize(
    "text",
    ["cse{", "cse dce", "fold-constants{max-flops=many}", "fold-constants{speed=3}", "cse,,dce", "fold-constants{=3}",
     "%", "inline-composites{keep=1}", "zzz"],
)  # fmt: skip
def test_text_that_is_no_pipeline_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pipeline(text)
    assert caught.value.why or caught.value.fix


def test_an_unknown_target_lists_the_targets() -> None:
    with pytest.raises(UsageError, match="xla:cpu"):
        target_named("xla:toaster").pipeline()
