"""Profiles: steps done one by one compute what a call computes, and each is there, measured and predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import UnsupportedError
from gcomp.runtime.cpu.executor import CpuExecutor
from gcomp.runtime.profiling import Recording, Sample, profile_of

ROWS = """func.func @main(%x: tensor<?x256xf32, ["n", "256"]>) -> tensor<?x256xf32, ["n", "256"]> {
  %w = stablehlo.constant dense<0.01> : tensor<256x256xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<?x256xf32, ["n", "256"]>, tensor<256x256xf32>) -> tensor<?x256xf32, ["n", "256"]>
  %1 = stablehlo.exponential %0 : tensor<?x256xf32, ["n", "256"]>
  return %1 : tensor<?x256xf32, ["n", "256"]>
}"""
LOOP = """func.func @main(%x: tensor<64xf32>, %n: tensor<i32>) -> (tensor<64xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<64xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %small = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = "stablehlo.if"(%small) ({
      %s = stablehlo.sine %a : tensor<64xf32>
      stablehlo.return %s : tensor<64xf32>
    }, {
      %s = stablehlo.cosine %a : tensor<64xf32>
      stablehlo.return %s : tensor<64xf32>
    }) : (tensor<i1>) -> tensor<64xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %b, %j : tensor<64xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<i32>
}"""
CHOLESKY = """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<8x8xf32>
  %1 = stablehlo.exponential %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""


def stepped(model: Any, *inputs: Any) -> tuple[list[Any], Recording]:
    """The values that steps one by one give, and their times."""
    run = model._executor
    assert isinstance(run, CpuExecutor)
    arrays, kind = run._intake.take(list(inputs))
    recording = Recording()
    found = run._run(arrays, run._bound(arrays), kind, recording)
    return [found[i] for i in model.plan.results], recording


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [1, 7, 512])
def test_steps_compute_the_bits_of_a_call(rows: int, threads: int) -> None:
    model = gcomp.compile(ROWS, threads=threads)
    x = np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
    (found,), recording = stepped(model, x)
    np.testing.assert_array_equal(found, model(x)[0])
    launches = [launch for plan in model.on.launch_plans(model.plan.texts["plan.json"], "").values()
                for launch in plan.launches()]  # fmt: skip
    assert [sample.label for sample in recording.samples] == [launch.title for launch in launches]
    assert recording.samples[0].flops >= 2 * rows * 256 * 256


@pytest.mark.parametrize("count", [0, 2, 5])
def test_loops_and_branches_are_gone_through(count: int) -> None:
    model = gcomp.compile(LOOP)
    x, n = np.linspace(-1, 1, 64, dtype=np.float32), np.int32(count)
    found, recording = stepped(model, x, n)
    for mine, called in zip(found, model(x, n), strict=True):
        np.testing.assert_array_equal(mine, called)
    places = [sample.label for sample in recording.samples if sample.kind == "kernel"]
    assert sum(label.startswith("sine") for label in places) == min(count, 3)
    assert sum(label.startswith("cosine") for label in places) == max(count - 3, 0)


def test_host_steps_are_there_and_a_profile_says_what_is_what() -> None:
    model = gcomp.compile(CHOLESKY)
    x = np.eye(8, dtype=np.float32) * 4
    profile = model.profile(x, repeat=3)
    assert profile.calls == 3 and profile.seconds is not None and profile.seconds > 0
    assert {row.kind for row in profile.rows} >= {"kernel", "host"}
    assert all(row.predicted is not None for row in profile.rows if row.kind == "kernel")
    assert [row.seconds for row in profile.rows] == sorted((row.seconds for row in profile.rows), reverse=True)
    assert "cholesky" in str(profile) and "cholesky" in profile._repr_html_()


def test_a_trace_is_what_perfetto_reads(tmp_path: Path) -> None:
    profile = gcomp.compile(ROWS).profile(np.ones((4, 256), np.float32), repeat=1)
    profile.save_trace(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    events = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert len(events) == len(profile.samples)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert all(event["dur"] >= 0 and event["name"] and "predicted us" in event["args"] for event in events)


def test_medians_are_of_each_step() -> None:
    def recording(*times: float) -> Recording:
        found = Recording("m")
        found.samples = [Sample("kernel", f"k{i}", "", float(i), t, 10) for i, t in enumerate(times)]
        return found

    profile = profile_of("t", [recording(1, 9), recording(2, 2), recording(3, 1)], [5.0], lambda s: s.flops / 10)
    assert [sample.seconds for sample in profile.samples] == [2, 2] and profile.step_seconds == 4
    assert [row.predicted for row in profile.rows] == [1, 1]


def test_donated_inputs_stay_as_they_are() -> None:
    text = ROWS.replace("%x: tensor", "%x: tensor").replace('["n", "256"]>)', '["n", "256"]> {gcomp.name = "x"})', 1)
    model = gcomp.compile(text, donate=["x"])
    x = np.ones((4, 256), np.float32)
    assert model.profile(x, repeat=2).seconds is None
    np.testing.assert_array_equal(x, 1)


def test_xla_says_the_time_of_its_own_kernels() -> None:
    model = gcomp.compile(ROWS, target="xla:cpu")
    profile = model.profile(np.ones((64, 256), np.float32), repeat=2)
    assert any("exp" in row.label for row in profile.rows)
    assert all(row.seconds > 0 and row.predicted is None for row in profile.rows)


def test_a_target_that_cannot_say_it_refuses_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gcomp.compile(ROWS)
    monkeypatch.setattr(type(model.on), "abilities", frozenset())
    with pytest.raises(UnsupportedError, match="cpu"):
        model.profile(np.ones((4, 256), np.float32))
