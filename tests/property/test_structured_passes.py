"""Every pass keeps the meaning of programs with symbolic dims and control flow, at several sizes, and settles."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from gcomp.driver import compile
from gcomp.ir.program import Program
from gcomp.judging.targets import hold_target
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.targets.base import target_named
from tests.property.structured_strategies import SIZES, edge_inputs, sampled_inputs, structured_programs
from tests.support.thinning import examples

PASSES = {name: cls for name, cls in all_passes().items() if cls.__module__.startswith("gcomp.")}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def same_at_all_sizes(step: Pass, before: Program, after: Program) -> None:
    """The meaning is the same where the symbols differ, where they are equal, and where they are least."""
    for sizes in SIZES:
        MeaningCheck(inputs=edge_inputs(sizes))(step, before, after)


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=SLOW)
@given(program=structured_programs())
def test_passes_keep_the_meaning_inside_of_control_flow(name: str, program: Program) -> None:
    _hold(PASSES[name](), program)


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=SLOW)
@given(program=structured_programs())
def test_passes_keep_the_meaning_of_many_programs_with_control_flow(name: str, program: Program) -> None:
    _hold(PASSES[name](), program)


def _hold(step: Pass, program: Program) -> None:
    PassManager([step], [CheckUnchanged(), VerifyEach(), CheckEach(same_at_all_sizes)]).run(program)
    assert not step.run(program, PassContext()), f"{step.spec()} finds something to do on its own result"


@settings(max_examples=examples(20), deadline=None, suppress_health_check=SLOW)
@given(program=structured_programs())
def test_the_pipeline_of_a_target_keeps_the_meaning_inside_of_control_flow(program: Program) -> None:
    passes = parse_pipeline(target_named("xla:cpu").pipeline())
    PassManager(passes, [CheckUnchanged(), VerifyEach(), CheckEach(same_at_all_sizes)]).run(program)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=SLOW)
@given(program=structured_programs())
def test_compiled_programs_mean_what_they_say_at_each_size(program: Program) -> None:
    model = compile(program.clone())
    for sizes in SIZES:
        hold_target(program, model.flat, sampled_inputs(sizes)(program))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(program=structured_programs())
def test_text_of_symbolic_control_flow_reads_back(program: Program) -> None:
    text = program.text()
    assert Program.parse(text).text() == text
