"""docs/generated/sharding_plans.md: what it counts is counted right, and a few of its rows hold."""

from __future__ import annotations

import re

import pytest

from gcomp.corpus.store import corpus
from tests.conformance.sharding_plans import NEAR, PAGE, Row, measured, page, sends_in
from tests.support.devices import on_devices

HLO = """
  %all-reduce.1 = f32[4,8]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
  %all-gather = (f32[16]{0}, bf16[2,2]{1,0}) all-gather(%a, %b), replica_groups=[2,4]<=[8], dimensions={0}
  ROOT %reduce-scatter.2 = s8[3,2]{1,0} reduce-scatter(%y), channel_id=3, replica_groups=[2,4]<=[8], to_apply=%add
  %all-to-all.5 = (f32[1,4]{1,0}, f32[1,4]{1,0}) all-to-all(%p, %q), channel_id=2, replica_groups={{0,1},{2,3}}
  %collective-permute.7 = pred[5]{0} collective-permute(%z), channel_id=9, source_target_pairs={{0,1},{1,0}}
  %all-reduce-like = f32[4]{0} add(%all-reduce.1, %x)
"""


def test_collectives_are_counted_in_bytes() -> None:
    assert dict(sends_in(HLO)) == {
        ("all_reduce", 128): 1, ("all_gather", 72): 1, ("reduce_scatter", 24): 1, ("all_to_all", 32): 1,
        ("collective_permute", 5): 1,
    }  # fmt: skip


def test_the_page_says_what_rows_say() -> None:
    row = Row("a/b", "data=8", 10, 2, 2048, 1024, "fewer 1 all_reduce of 1024 B", "", "", 95, 100)
    text = page([row, Row("a/c", "data=8", 10, 0, 0, 0, "", "", "wrong", 150, 100)])
    assert "2 of 2 agree" in text and "1 by XLA" in text and "| a/b | 2, 1.0 KiB, 0.95 |" in text
    assert "within 10% of XLA's figure for 1 of 2" in text and "`a/c` on `data=8` by XLA: wrong" in text


def test_all_plans_of_the_page_agree() -> None:
    text = PAGE.read_text("utf-8")
    assert "- 160 of 160 agree" in text and "160 by XLA" in text
    assert text.count("\n| ") == 41 and not re.search(r"\| - \|", text)


def row_of(name: str, mesh: str) -> Row:
    return measured(corpus([name]).members[0], mesh)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("torch/llama", "model=8"),
        ("onnx/yolo", "data=2,model=4"),
        ("jax/experts", "data=4,model=2"),
        ("onnx/mobilenet", "data=4,model=2"),
    ],
)
def test_a_row_holds(name: str, mesh: str) -> None:
    row = on_devices(row_of, name, mesh)
    assert (row.differs, row.lockstep, row.xla) == ("", "", "")
    assert row.planned == row.counted
    assert row.ratio == pytest.approx(1, abs=NEAR)
