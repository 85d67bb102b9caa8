"""Plans for the GPU: their text, what is refused when one is read, and what when sizes are known."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gcomp.errors import ArtifactError, InternalError
from gcomp.lowering.tiles.drafts import Draft
from gcomp.runtime.cuda.binding import BoundCopy, BoundFill, BoundLaunch, BoundLoop, Span, Stretch, bind
from gcomp.runtime.cuda.checking import check
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.cuda.plan import CudaPlan, Parameter, from_text, to_text
from gcomp.runtime.plan import DeviceSegment
from gcomp.runtime.steps import Buffer, Case, Copy, Fill, Launch, Loop, While
from tests.unit.runtime.cuda.models import ADD, BYTES, N, plan_in_place, plan_of, plan_of_two, recorder

SIZES = {"input": [1152], "output": [1152], "weight": [3072]}


def plan() -> CudaPlan:
    return from_text(plan_of_two().texts["plan.json"], "here")["sm_90"]


def checked(changed: CudaPlan) -> None:
    whole = plan_of_two()
    (step,) = whole.steps
    assert isinstance(step, DeviceSegment)
    check(changed, step, frozenset({"n"}), whole.binaries)


def with_steps(*steps: Any) -> CudaPlan:
    return dataclasses.replace(plan(), steps=steps)


def with_buffer(buffer: Buffer) -> CudaPlan:
    return dataclasses.replace(plan(), buffers=(*plan().buffers[:3], buffer))


def with_kernel(**fields: Any) -> CudaPlan:
    first, *others = plan().kernels
    return dataclasses.replace(plan(), kernels=(dataclasses.replace(first, **fields), *others))


def test_text_is_read_back() -> None:
    fill = Fill(2, 0)
    nested = with_steps(
        fill,
        Loop("n", (fill, Case(3, ((Copy(2, 3),), (), (fill,))))),
        While(2, (), (Loop("2", (fill,)),)),
        *plan().steps,
    )
    text = to_text({"sm_90": nested})
    assert from_text(text, "here") == {"sm_90": nested}
    assert from_text(to_text({}), "here") == {}


def rewritten(change: Callable[[dict[str, Any]], object]) -> str:
    rows = json.loads(to_text({"sm_90": plan()}))
    change(rows)
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows["sm_90"].pop("arena"), "lacks 'arena'"),
        (lambda rows: rows["sm_90"].update(more=1), "unknown 'more'"),
        (lambda rows: rows["sm_90"].update(arena=5), "should be a str"),
        (lambda rows: rows["sm_90"].update(architecture="sm_80"), "is for 'sm_80'"),
        (lambda rows: rows["sm_90"]["steps"].append({"kind": "jump"}), "unknown kind"),
        (lambda rows: rows["sm_90"]["steps"].append(7), "is no step"),
        (lambda rows: rows["sm_90"]["steps"].append({"kind": "loop", "count": "1"}), "is no list"),
        (lambda rows: rows["sm_90"]["steps"].append({"kind": "loop", "count": "1", "body": [], "x": 1}), "unknown 'x'"),
        (lambda rows: rows["sm_90"]["steps"].append({"kind": "case", "selector": 1}), "no branches"),
        (lambda rows: rows["sm_90"]["kernels"][0].update(warps=True), "should be a int"),
    ],
)
def test_other_texts_are_refused(change: Callable[[dict[str, Any]], object], why: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        from_text(rewritten(change), "here")
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"sm_90": {}}', '{"a":1,"a":1}', "[" * 100])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError):
        from_text(text, "here")


def test_deep_nesting_is_refused() -> None:
    step: Any = Fill(2, 0)
    for _ in range(16):
        step = Loop("1", (step,))
    with pytest.raises(ArtifactError, match="not valid"):
        from_text(to_text({"sm_90": with_steps(step)}), "here")


LAUNCH = Launch(0, ("1",), (0, 1, 2, "n"))


def test_results_lie_in_donated_inputs_only() -> None:
    given = plan_in_place()
    CudaExecutor(given, {}, recorder)
    spec = dataclasses.replace(given.signature.inputs[0], donated=False)
    signature = dataclasses.replace(given.signature, inputs=(spec, given.signature.inputs[1]))
    with pytest.raises(ArtifactError, match="an input that is not donated"):
        CudaExecutor(dataclasses.replace(given, signature=signature), {}, recorder)
    (step,) = given.segments
    elsewhere = dataclasses.replace(step, aliases=((1, 0),))
    with pytest.raises(ArtifactError, match="a result is to lie in an input that is not donated"):
        CudaExecutor(dataclasses.replace(given, steps=(elsewhere,)), {}, recorder)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: dataclasses.replace(plan(), architecture="gfx942"), "none of NVIDIA's"),
        (lambda: dataclasses.replace(plan(), arena="m"), "'m' is not known"),
        (lambda: dataclasses.replace(plan(), arena="n+n"), "not canonical"),
        (lambda: dataclasses.replace(plan(), arena="1/0"), "bad dimension"),
        (lambda: with_buffer(Buffer("moon", 0, "1")), "does not exist"),
        (lambda: with_buffer(Buffer("output", 1, "1")), "does not exist"),
        (lambda: with_buffer(Buffer("arena", -1, "1")), "does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, kernel=2)), "kernel that does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, kernel=-1)), "kernel that does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, grid=())), "grid of 0 sizes"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, grid=("1",) * 4)), "grid of 4 sizes"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 2))), "gives 3 arguments"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 2, 3))), "a buffer for a size"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, "n", "n"))), "a buffer for a size"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 9, "n"))), "buffer that does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, True, "n"))), "buffer that does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, None, "n"))), "buffer that does not exist"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 0, "n"))), "writes to an input"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 1, "n"))), "writes to a weight"),
        (lambda: with_steps(Fill(0, 0)), "writes to an input"),
        (lambda: with_steps(Fill(2, 256)), "no byte"),
        (lambda: with_steps(Copy(0, 1)), "writes to a weight"),
        (lambda: with_steps(Loop("1", (Copy(0, 4),))), "buffer that does not exist"),
        (lambda: with_steps(While(2, (), ())), "not of one byte"),
        (lambda: with_steps(Case(2, ((), ()))), "cannot choose"),
        (lambda: with_kernel(binary="x.cubin"), "has no binary"),
        (lambda: with_kernel(warps=64), "no GPU has"),
        (lambda: with_kernel(scratch=-1), "cannot be"),
        (lambda: with_kernel(scratch_alignment=512), "cannot be"),
        (lambda: with_kernel(parameters=(Parameter("*fp32", "size", 1),)), "parameter of type"),
        (lambda: with_kernel(parameters=(Parameter("i32", "in", 1),)), "parameter of type"),
        (lambda: with_kernel(parameters=(Parameter("i32", "size", 0),)), "cannot be"),
        (lambda: with_kernel(name="softmax"), "its kernel is 'add'"),
        (lambda: with_kernel(warps=8), "128 threads in a block, and is given 256"),
        (
            lambda: with_kernel(parameters=(*plan().kernels[0].parameters[:3], Parameter("i64", "size", 1))),
            "parameters have [8, 8, 8, 4, 8, 8] bytes, and are given [8, 8, 8, 8, 8, 8]",
        ),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(make: Callable[[], CudaPlan], why: str) -> None:
    checked(plan())
    with pytest.raises(ArtifactError) as caught:
        checked(make())
    assert why in str(caught.value)


# ---- at sizes ----


def test_sizes_are_bound() -> None:
    bound = bind(plan(), {"n": 3}, SIZES)
    (stretch,) = bound.nodes
    assert isinstance(stretch, Stretch) and bound.arena == 256 + 1152 and bound.scratch == 0
    add, softmax = stretch.works
    assert isinstance(add, BoundLaunch) and isinstance(softmax, BoundLaunch)
    place = Span("arena", 256, 1152)
    assert add.grid == (1, 1, 1) and softmax.grid == (3, 1, 1)
    assert add.arguments == (Span("input", 0, 1152), Span("weight", 0, 1152), place, 288)
    assert softmax.arguments == (place, Span("output", 0, 1152))


def test_nothing_is_done_for_no_elements() -> None:
    empty = {"input": [0], "output": [0], "weight": [3072]}
    assert bind(plan(), {"n": 0}, empty).nodes == ()


def test_work_between_decisions_is_gathered() -> None:
    fill = Fill(2, 7)
    bound = bind(with_steps(fill, Copy(2, 3), Loop("n", (fill,)), fill), {"n": 3}, SIZES)
    first, loop, last = bound.nodes
    span = Span("arena", 256, 1152)
    assert first == Stretch((BoundFill(span, 7), BoundCopy(span, Span("output", 0, 1152))))
    assert loop == BoundLoop(3, (last,)) and bound.stretches == 3


def scratch(size: int, ctas: int) -> CudaPlan:
    return with_kernel(scratch=size, scratch_alignment=128, ctas=ctas)


def test_scratch_memory_is_for_the_launch_that_needs_the_most() -> None:
    steps = [dataclasses.replace(LAUNCH, grid=grid) for grid in (("2",), ("2", "3", "n"), ("1",))]
    bound = bind(dataclasses.replace(scratch(384, 2), steps=tuple(steps)), {"n": 3}, SIZES)
    assert bound.scratch == 384 * 2 * 2 * 3 * 3


@pytest.mark.parametrize(
    ("make", "sizes", "why"),
    [
        (lambda: dataclasses.replace(plan(), arena="384*n"), SIZES, "ends at byte 1408 of the 1152 of its arena"),
        (plan, {**SIZES, "input": [1151]}, "ends at byte 1152 of the 1151 of its input"),
        (plan, {**SIZES, "weight": [4]}, "of the 4 of its weight"),
        (lambda: dataclasses.replace(plan(), arena="-n"), SIZES, "size of the arena, -n, is -3"),
        (lambda: with_buffer(Buffer("arena", 8, "n - 4")), SIZES, "is -1"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, grid=("1", "65536"))), SIZES, "more than"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, grid=("2147483648",))), SIZES, "more than"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 2, "2147483648"))), SIZES, "i32 holds"),
        (lambda: with_steps(dataclasses.replace(LAUNCH, arguments=(0, 1, 2, "floordiv(1, n - 3)"))), SIZES, "zero"),
        (lambda: with_steps(Loop("n - 4", ())), SIZES, "is -1"),
        (
            lambda: with_kernel(parameters=(*plan().kernels[0].parameters[:3], Parameter("i32", "size", 32))),
            {**SIZES},
            None,
        ),
        (
            lambda: with_kernel(parameters=(*plan().kernels[0].parameters[:3], Parameter("i32", "size", 64))),
            SIZES,
            "a multiple of 64",
        ),
        (lambda: dataclasses.replace(with_buffer(Buffer("arena", 8, "4")), steps=(Copy(2, 3),)), SIZES, "copied to 4"),
        (
            lambda: dataclasses.replace(with_buffer(Buffer("arena", 64, "384*n")), steps=(Copy(2, 3),)),
            SIZES,
            "over themselves",
        ),
        (
            lambda: dataclasses.replace(with_buffer(Buffer("arena", 8, "4")), steps=(Launch(1, ("1",), (2, 3)),)),
            SIZES,
            "offset 8, which is not a multiple of 16",
        ),
    ],
)
def test_a_plan_that_does_not_hold_at_sizes_is_refused(
    make: Callable[[], CudaPlan], sizes: Mapping[str, list[int]], why: str | None
) -> None:
    if why is None:
        bind(make(), {"n": 3}, sizes)
        return
    with pytest.raises(ArtifactError) as caught:
        bind(make(), {"n": 3}, sizes)
    assert why in str(caught.value) and "n = 3" in str(caught.value)


# ---- drafts ----


def test_the_same_kernel_is_there_once() -> None:
    draft = Draft(arena=BYTES)
    x, t, y = draft.buffer("input", 0, BYTES), draft.buffer("arena", 0, BYTES), draft.buffer("output", 0, BYTES)
    draft.launch(ADD, {"x": x, "y": x, "o": t, "n": 96 * N})
    draft.launch(ADD, {"x": t, "y": x, "o": y, "n": 96 * N}, label="{{twice}}")
    plan = plan_of(draft)
    (found,) = from_text(plan.texts["plan.json"], "here").values()
    assert len(found.kernels) == 1 and len(found.steps) == 2 and len(plan.binaries) == 1
    assert plan.templates["plan.json"].symbols == frozenset()


def test_a_launch_without_all_arguments_is_a_bug() -> None:
    with pytest.raises(InternalError, match="launch of add"):
        Draft().launch(ADD, {"x": 0})
