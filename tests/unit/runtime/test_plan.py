"""Plans: host steps whose results' sizes depend on data, and templates."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp import dims
from gcomp.dims import Constraint, Range, Ranges
from gcomp.errors import ArtifactError, InputError, InternalError, UnsupportedError
from gcomp.reference.numpy import host
from gcomp.runtime.loading import load
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.model import Model
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.signature import Signature
from gcomp.runtime.template import Template, hole

ABS = """module { func.func public @main(%x: tensor<{{n}}xf32>) -> tensor<{{n}}xf32> {
  %0 = stablehlo.abs %x : tensor<{{n}}xf32>
  return %0 : tensor<{{n}}xf32>
} }"""
PICK = """module { func.func public @main(%x: tensor<{{n}}xf32>, %i: tensor<1x{{count}}xi64>) -> tensor<{{count}}xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 0>, slice_sizes = array<i64: 1>, indices_are_sorted = false}>
    : (tensor<{{n}}xf32>, tensor<1x{{count}}xi64>) -> tensor<{{count}}xf32>
  return %0 : tensor<{{count}}xf32>
} }"""


def compress() -> Plan:
    """abs on the device, the positions of elements that are not zero on the host, those elements on the device."""
    return Plan(
        target="xla:cpu",
        signature=Signature(
            inputs=(InputSpec("x", "f32", ("n",), False),),
            outputs=(OutputSpec("kept", "f32", ("count",), None), OutputSpec("where", "i64", ("1", "count"), None)),
            ranges=Ranges({"n": Range(1, 100), "count": Range(1, 6)}),
        ),
        steps=(
            DeviceSegment("a.mlir", (0,), (), (Value("f32", ("n",)),)),
            HostStep("nonzero", (1,), (Value("i64", ("1", "count")),)),
            DeviceSegment("b.mlir", (1, 2), (), (Value("f32", ("count",)),)),
        ),
        results=(3, 2),
        texts={"a.mlir": ABS, "b.mlir": PICK},
    )


def test_a_host_step_binds_a_new_symbol(tmp_path: Any) -> None:
    model = Model(compress(), {})
    model.save(tmp_path / "m")
    for each in (model, load(tmp_path / "m")):
        for x in ([0, -1, 2, 0, -3], [4, 5], [0, 0, 0, 7]):
            array = np.array(x, np.float32)
            kept, where = each(array)
            assert np.array_equal(kept, np.abs(array[array != 0]))
            assert np.array_equal(where, np.nonzero(array))
    assert model.segments[1] == "host nonzero -> i64[1, count]"


def test_sizes_out_of_range_are_noticed_while_running() -> None:
    with pytest.raises(InternalError, match="nonzero"):
        Model(compress(), {})(np.ones(7, np.float32))


def test_constraints_on_data_dependent_sizes_are_checked() -> None:
    plan = compress()
    constraint = Constraint("le", dims.parse("2*count"), dims.parse("n"), "the compression")
    plan = dataclasses.replace(plan, signature=dataclasses.replace(plan.signature, constraints=(constraint,)))
    model = Model(plan, {})
    assert model(np.array([1, 0], np.float32))[0].tolist() == [1]
    with pytest.raises(InputError, match="the compression"):
        model(np.array([1, 2], np.float32))


def test_memory_of_data_dependent_sizes_is_not_known() -> None:
    with pytest.raises(UnsupportedError, match="count"):
        Model(compress(), {}).memory(n=4)


@pytest.mark.parametrize(
    "step",
    [
        HostStep("os.system", (1,), (Value("i64", ("1", "count")),)),
        HostStep("nonzero", (2,), (Value("i64", ("1", "count")),)),
        HostStep("nonzero", (1,), (Value("q7", ("1", "count")),)),
        HostStep("nonzero", (1,), (Value("i64", ("1", "(")),)),
        HostStep("nonzero", (1,), (Value("i64", ("1", "other")),)),
    ],
)
def test_bad_host_steps_are_refused(step: HostStep) -> None:
    plan = compress()
    with pytest.raises(ArtifactError):
        Model(dataclasses.replace(plan, steps=(plan.steps[0], step, plan.steps[2])), {})


@pytest.mark.parametrize("inputs, aliases", [((0, 0), ((0, 0),)), ((0,), ((0, 0), (0, 0))), ((0,), ((0, 0),))])
def test_memory_is_given_away_once(inputs: tuple[int, ...], aliases: tuple[tuple[int, int], ...]) -> None:
    plan = compress()
    first = dataclasses.replace(plan.steps[0], inputs=inputs, aliases=aliases)
    with pytest.raises(ArtifactError, match="memory"):
        Model(dataclasses.replace(plan, steps=(first, *plan.steps[1:])), {})


def test_a_host_step_must_give_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (lambda x: (), lambda x: (np.zeros((1, 2), np.int32),), lambda x: (np.zeros((2, 2), np.int64),)):
        monkeypatch.setitem(host.HOST_FUNCTIONS, "nonzero", wrong)  # type: ignore[arg-type]
        with pytest.raises(InternalError, match="nonzero"):
            Model(compress(), {})(np.ones(2, np.float32))


def test_host_steps_of_an_artifact_that_do_not_fit_are_its_fault(tmp_path: Any) -> None:
    plan = compress()
    for changes in ({"attributes": {"axis": 1}}, {"outputs": (Value("i32", ("1", "count")),)}, {"inputs": (0, 1)}):
        host_step = dataclasses.replace(plan.steps[1], **changes)
        signature = dataclasses.replace(plan.signature, outputs=plan.signature.outputs[:1])
        steps = (plan.steps[0], host_step, plan.steps[2])
        wrong = dataclasses.replace(plan, signature=signature, steps=steps, results=(3,))
        Model(wrong, {}).save(tmp_path / "m")
        with pytest.raises(InternalError, match="nonzero"):
            Model(wrong, {})(np.ones(2, np.float32))
        with pytest.raises(ArtifactError, match="nonzero") as caught:
            load(tmp_path / "m")(np.ones(2, np.float32))
        assert caught.value.where and str(tmp_path) in caught.value.where and caught.value.fix


def test_sizes_that_no_array_has_are_refused() -> None:
    with pytest.raises(InputError, match="memory"):
        host.extents(np.array([2**39, 2**39]), role="shape")


SIZES = st.sampled_from([dims.parse(t) for t in ("3", "a", "2*a + b", "floordiv(a, 2)", "max(a, b)", "a*b - 1")])


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("tensor<x>{} \n", max_size=8), SIZES)), st.integers(1, 9), st.integers(1, 9))
def test_filling_puts_each_size_in_its_place(parts: list[tuple[str, Any]], a: int, b: int) -> None:
    clean = [(text.replace("{", "{ ") + " ", size) for text, size in parts]
    template = Template("".join(text + hole(size) for text, size in clean))
    env = {"a": a, "b": b}
    assert template.fill(env) == "".join(f"{text}{dims.evaluate(size, env)}" for text, size in clean)
    assert template.symbols == frozenset().union(*(dims.symbols_of(size) for _, size in clean))


def test_holes_must_be_canonical() -> None:
    for text in ("{{a + a}}", "{{ a }}", "{{}}", "{{a(}}"):
        with pytest.raises(dims.DimError):
            Template(text)
    with pytest.raises(dims.DimError):
        Template("{{a}}").fill({})
