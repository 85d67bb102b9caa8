"""Every pass keeps the meaning of programs within its exactness, says what it changed, and settles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.targets.base import target_named
from tests.property.program_strategies import edge_inputs, image_programs, programs, whole_inputs
from tests.support.thinning import examples

PASSES = {name: cls for name, cls in all_passes().items() if cls.__module__.startswith("gcomp.")}
EXACT = [name for name, cls in PASSES.items() if cls.exactness in (Exactness.E0, Exactness.E1)]


def run_checked(step: Pass, program: Program, check: Callable[[Pass, Program, Program], None]) -> None:
    """Run a pass; fail where it breaks the program, its meaning, or what it says about itself."""
    PassManager([step], [CheckUnchanged(), VerifyEach(), CheckEach(check)]).run(program)
    assert not step.run(program, PassContext()), f"{step.spec()} finds something to do on its own result"


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=examples(25), deadline=None)
@given(program=programs())
def test_exact_passes_keep_the_meaning_at_the_edges(name: str, program: Program) -> None:
    run_checked(PASSES[name](), program, MeaningCheck(inputs=edge_inputs))


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=examples(15), deadline=None)
@given(program=image_programs(whole=False))
def test_exact_passes_keep_every_bit_of_convolutional_networks(name: str, program: Program) -> None:
    if name == "sink-transposes":
        # Views of channels-last data are what it moves, and this is where they come from.
        PassManager(parse_pipeline("conv-channels-last,canonicalize")).run(program)
    run_checked(PASSES[name](), program, MeaningCheck())


def same_on_whole_numbers(step: Pass, before: Program, after: Program) -> None:
    """Where no order of summation rounds, a reassociating pass may change no value either: it is held to E1."""

    class Strict(type(step)):
        exactness = Exactness.E1

    MeaningCheck(inputs=whole_inputs)(Strict(**vars(step)), before, after)


@pytest.mark.parametrize("name", [name for name in PASSES if name not in EXACT])
@settings(max_examples=examples(15), deadline=None)
@given(program=image_programs(whole=True))
def test_reassociating_passes_are_exact_on_whole_numbers(name: str, program: Program) -> None:
    run_checked(PASSES[name](), program, same_on_whole_numbers)


@settings(max_examples=examples(15), deadline=None)
@given(program=image_programs(whole=True))
def test_the_pipeline_of_a_target_is_exact_on_whole_numbers(program: Program) -> None:
    passes = parse_pipeline(target_named("xla:cpu").pipeline())
    PassManager(passes, [CheckUnchanged(), VerifyEach(), CheckEach(same_on_whole_numbers)]).run(program)


@settings(max_examples=examples(25), deadline=None)
@given(program=programs(), data=st.data())
def test_a_bisect_limit_stops_after_so_many_rewrites(program: Program, data: st.DataObject) -> None:
    passes = parse_pipeline("canonicalize,cse,fold-constants")
    applied, watched = PassContext(), program.clone()
    full: list[tuple[str, str]] = []
    applied.watchers.append(lambda rule, where: full.append((rule, where)))
    PassManager(passes).run(watched, applied)
    assert len(full) == applied.applications == sum(applied.counts.values())

    limit = data.draw(st.integers(0, len(full) + 1))
    part: list[tuple[str, str]] = []
    limited, original = PassContext(bisect_limit=limit), program.clone()
    limited.watchers.append(lambda rule, where: part.append((rule, where)))
    PassManager(passes, [VerifyEach()]).run(program, limited)
    assert part == full[:limit]
    assert limited.last == ("{} on {}".format(*part[-1]) if part else "")
    MeaningCheck(inputs=edge_inputs)(passes[0], original, program)
    if limit >= len(full):
        assert program.text() == watched.text()
