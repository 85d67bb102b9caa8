"""Plans for processors: their text, what is refused when one is read, and what when sizes are known."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from gcomp.errors import ArtifactError
from gcomp.runtime.cpu.checking import arena_bytes, check
from gcomp.runtime.cpu.plan import CpuPlan, Kernel, from_text, to_text
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.plan import DeviceSegment
from gcomp.runtime.steps import Buffer, Copy, Fill, Launch, Loop, While
from tests.unit.runtime.cpu.models import plan_with_weight

NAME = this_machine()
LIMITS = {"input": [1152], "output": [1152], "weight": [3072]}


def plan() -> CpuPlan:
    return from_text(plan_with_weight().texts["plan.json"], "here")[NAME]


def checked(changed: CpuPlan, donated: frozenset[int] = frozenset()) -> None:
    whole = plan_with_weight()
    (step,) = whole.steps
    assert isinstance(step, DeviceSegment)
    check(changed, step, frozenset({"n"}), whole.binaries, donated)


def changed(**fields: Any) -> CpuPlan:
    return dataclasses.replace(plan(), **fields)


def with_code(**fields: Any) -> CpuPlan:
    return changed(code=dataclasses.replace(plan().code, **fields))


def with_kernel(kernel: Kernel) -> CpuPlan:
    return changed(kernels=(kernel, *plan().kernels[1:]))


def with_steps(*steps: Any) -> CpuPlan:
    return changed(steps=steps)


def test_text_is_read_back() -> None:
    nested = with_steps(Loop("n", (Fill(2, 0), Copy(2, 3))), While(2, (), (Fill(3, 1),)), *plan().steps)
    assert from_text(to_text({NAME: nested}), "here") == {NAME: nested}


def rewritten(change: Callable[[dict[str, Any]], object]) -> str:
    rows = json.loads(to_text({NAME: plan()}))
    change(rows)
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[NAME].pop("symbols"), "lacks 'symbols'"),
        (lambda rows: rows[NAME]["code"].update(extra=1), "has unknown 'extra'"),
        (lambda rows: rows[NAME]["code"].update(entry=True), "should be a int"),
        (lambda rows: rows.update(other=rows[NAME]), "the plan for 'other' is for"),
        (lambda rows: rows[NAME]["steps"].append({"kind": "jump"}), "unknown kind"),
    ],
)
def test_other_texts_are_refused(change: Callable[[dict[str, Any]], object], why: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        from_text(rewritten(change), "here")
    assert why in str(caught.value)


KERNEL = Kernel("add", 0, "", ("in", "in", "out", "size"))
SIZE = len(plan_with_weight().binaries[plan().code.image])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: changed(variant="z80"), "does not know"),
        (lambda: with_code(image="other.image"), "has no code 'other.image'"),
        (lambda: with_code(image="plan.json"), "has no code 'plan.json'"),
        (lambda: with_code(entry=SIZE), f"the entry is at byte {SIZE} of the {SIZE}"),
        (lambda: with_code(entry=-1), "the entry is at byte -1"),
        (lambda: with_code(start=1 << 40), "what starts threads is at byte"),
        (lambda: with_code(stop=-64), "what stops threads is at byte -64"),
        (lambda: with_kernel(dataclasses.replace(KERNEL, at=SIZE + 1)), "kernel 0 is at byte"),
        (lambda: with_kernel(dataclasses.replace(KERNEL, roles=("in", "in", "out", "sea"))), "parameter for 'sea'"),
        (lambda: changed(symbols=("m",)), "'m' is not known"),
        (lambda: changed(symbols=("n", "n")), "twice"),
        (lambda: changed(arena="k"), "'k' is not known"),
        (lambda: changed(arena="n+n"), "not canonical"),
        (lambda: changed(buffers=(*plan().buffers[:3], Buffer("output", 1, "1"))), "does not exist"),
        (lambda: changed(buffers=(*plan().buffers[:3], Buffer("arena", -64, "1"))), "does not exist"),
        (lambda: with_steps(Launch(7, ("1",), ())), "kernel that does not exist"),
        (lambda: with_steps(Launch(0, ("1",), (0, 1, 0, "n"))), "writes to an input"),
        (lambda: with_steps(Fill(1, 0)), "writes to a weight"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(make: Callable[[], CpuPlan], why: str) -> None:
    checked(plan())
    with pytest.raises(ArtifactError) as caught:
        checked(make())
    assert why in str(caught.value)


def test_a_donated_input_may_be_written_to() -> None:
    checked(with_steps(Fill(0, 0)), frozenset({0}))


def test_the_arena_is_that_of_the_sizes() -> None:
    assert arena_bytes(plan(), {"n": 3}, LIMITS) == 64 + 1152


@pytest.mark.parametrize(
    ("make", "limits", "why"),
    [
        (lambda: changed(arena=BYTES), LIMITS, "ends at byte 1216 of the 1152 of its arena"),
        (plan, {**LIMITS, "input": [1151]}, "ends at byte 1152 of the 1151 of its input"),
        (plan, {**LIMITS, "weight": [4]}, "of the 4 of its weight"),
        (lambda: changed(arena="-n"), LIMITS, "size of the arena, -n, is -3"),
        (lambda: with_steps(Loop("n - 4", ())), LIMITS, "is -1"),
        (lambda: with_steps(Launch(1, ("n - 4",), (2, 3))), LIMITS, "the grid of square"),
        (lambda: with_steps(Loop("1", (Copy(1, 3),))), {**LIMITS, "output": [9999]}, None),
    ],
)
def test_a_plan_that_does_not_hold_at_sizes_is_refused(
    make: Callable[[], CpuPlan], limits: dict[str, list[int]], why: str | None
) -> None:
    if why is None:
        arena_bytes(make(), {"n": 3}, limits)
        return
    with pytest.raises(ArtifactError) as caught:
        arena_bytes(make(), {"n": 3}, limits)
    assert why in str(caught.value) and "n = 3" in str(caught.value)


BYTES = "384*n"
