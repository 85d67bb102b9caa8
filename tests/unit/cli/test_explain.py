"""`gcomp explain`: kernels, what they cost, and why they are not one."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

import gcomp
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import places
from gcomp.options import DEFAULT_TARGET
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import KERNELS
from gcomp.passes.registry import parse_pipeline
from gcomp.report.costs import plans_of
from gcomp.report.memory import Box, boxes_of
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.cuda.plan import CudaPlan, Kernel, Parameter
from gcomp.runtime.steps import Buffer, Launch, Loop
from tests.unit.cli.commands import Cli

CENTERED = """
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<64x256xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %5 = stablehlo.tanh %4 : tensor<64x256xf32>
  return %5 : tensor<64x256xf32>
}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "centered.mlir").write_text(CENTERED)
    return tmp_path


def test_kernels_and_reasons_are_shown(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--steps")
    assert done.code == 0, done.err
    assert "2 kernels" in done.out
    assert "dot_general_tanh" in done.out
    assert "do not share a kernel" in done.out
    assert "saves time" in done.out


def test_all_of_it_is_json_too(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--json", "--machine", "cpu")
    (block,) = (found := json.loads(done.out))["blocks"]
    assert found["machine"] == "cpu"
    assert [kernel["kind"] for kernel in block["kernels"]] == ["reduction", "matmul"]
    assert block["kernels"][0]["read_bytes"] == 64 * 256 * 4
    assert all(not pair["fused"] and pair["reason"] for pair in block["apart"])
    assert any(step["fused"] and step["microseconds"] > 0 for step in block["steps"])


def test_a_text_chooses_kernels(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--at", "tanh")
    assert "dot_general_tanh" in done.out
    assert "reduction" not in done.out


def test_a_text_chooses_kernels_of_the_json_too(cli: Cli, folder: Path) -> None:
    (block,) = json.loads(cli("explain", "centered.mlir", "--json", "--at", "tanh").out)["blocks"]
    assert [kernel["label"] for kernel in block["kernels"]] == ["dot_general_tanh"]
    assert cli("explain", "centered.mlir", "--json", "--at", "nothing").code == 2


def test_a_whole_name_is_not_the_beginning_of_another(cli: Cli, folder: Path) -> None:
    places = iter(['loc("node_1")', 'loc("node_10")'])
    text = CENTERED.replace(
        "<256x256xf32>) -> tensor<64x256xf32>\n  %5", f"<256x256xf32>) -> tensor<64x256xf32> {next(places)}\n  %5"
    )
    text = text.replace("tensor<256xf32>\n  %2", f"tensor<256xf32> {next(places)}\n  %2")
    (folder / "named.mlir").write_text(text)
    assert "dot_general" in cli("explain", "named.mlir", "--at", "node_1").out
    assert "reduction" not in cli("explain", "named.mlir", "--at", "node_1").out
    assert "reduction" in cli("explain", "named.mlir", "--at", "node_").out


def test_a_text_that_no_kernel_has_is_refused_with_near_ones(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--at", "dot_general_tan_h")
    assert done.code == 2
    assert "did you mean 'dot_general_tanh'?" in done.err


def test_a_page_shows_the_plan(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--memory", "plan.html")
    assert done.code == 0, done.err
    page = (folder / "plan.html").read_text("utf-8")
    assert page.count("<rect ") == 2
    assert "131,072 bytes, exactly the most bytes alive" in page


def test_a_page_shows_the_plan_of_an_artifact(cli: Cli, folder: Path) -> None:
    assert cli("compile", "centered.mlir", "-t", "xla:cpu", "-o", "centered.gcomp").code == 0
    done = cli("inspect", "centered.gcomp", "--memory", "plan.html")
    assert done.code == 0, done.err
    assert (folder / "plan.html").read_text("utf-8").count("<rect ") == 2
    assert cli("inspect", "centered.gcomp", "--memory", "nowhere/plan.html").code == 2


def test_a_page_shows_the_plan_that_an_artifact_for_gpus_holds(cli: Cli, folder: Path) -> None:
    assert cli("compile", "centered.mlir", "--target", "triton:sm_90", "-o", "centered.gcomp").code == 0
    done = cli("inspect", "centered.gcomp", "--memory", "plan.html")
    assert done.code == 0, done.err
    page = (folder / "plan.html").read_text("utf-8")
    assert "on sm_90" in page
    (plan,) = plans_of(gcomp.load(folder / "centered.gcomp"))
    boxes = boxes_of(plan, {})
    assert page.count("<rect ") == len(boxes) > 0
    assert max(box.offset + box.bytes for box in boxes) <= int(plan.arena)
    for a, b in combinations(boxes, 2):
        apart = a.upper <= b.lower or b.upper <= a.lower
        assert apart or a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset, (a, b)


def test_a_buffer_that_is_written_anew_holds_another_value() -> None:
    parameters = tuple(Parameter("*fp32", role, 16) for role in ("in", "out"))
    kernel = Kernel("copy", "", "", parameters, 4, 1, 0, 0, 1, 32, 0)
    given, middle, result = Buffer("input", 0, "n*4"), Buffer("arena", 0, "n*4"), Buffer("output", 0, "n*4")

    def launch(source: int, target: int, label: str) -> Launch:
        return Launch(0, ("1", "1", "1"), (source, target), label)

    steps = (
        launch(0, 1, "first (a.py:1)"), launch(1, 2, "reads"), launch(0, 2, "elsewhere"), launch(0, 1, "second"),
        Loop("3", (launch(1, 2, "reads"), launch(0, 1, "again"))),
    )  # fmt: skip
    plan = CudaPlan("sm_90", "n*4", (kernel,), (given, middle, result), steps)
    assert boxes_of(plan, {"n": 8}) == [Box("first", "a.py:1", 0, 32, 0, 2), Box("second", "", 0, 32, 3, 5)]


def test_a_page_shows_the_kernels(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--graph", "graph.html")
    assert done.code == 0, done.err
    page = (folder / "graph.html").read_text("utf-8")
    assert page.count('<g class="box') == 2
    assert page.count("<path ") == 1
    assert "do not share a kernel" in page
    assert 'class="box returned ' in page


WAITING = """
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<1024xf32>) -> tensor<64x1024xf32>
  %1 = stablehlo.sine %0 : tensor<64x1024xf32>
  %2 = "stablehlo.sort"(%1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<1024xf32>) -> tensor<64x1024xf32>
  %6 = stablehlo.add %1, %5 : tensor<64x1024xf32>
  %7 = "stablehlo.sort"(%6) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %8 = stablehlo.reduce(%7 init: %3) applies stablehlo.maximum across dimensions = [0] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  return %8 : tensor<1024xf32>
}
"""  # noqa: E501


def test_a_budget_is_kept_or_said_to_be_too_small(cli: Cli, folder: Path) -> None:
    (folder / "waiting.mlir").write_text(WAITING)
    for budget, missing in (("1MiB", 0), ("100KB", 1)):
        done = cli("explain", "waiting.mlir", "--json", "--memory-budget", budget)
        assert done.code == 0, done.err
        memory = json.loads(done.out)["memory"]
        assert memory["after"] <= memory["before"]
        assert (memory["missing"] > 0) == missing
    done = cli("explain", "waiting.mlir", "--memory-budget", "100KB")
    assert "bytes too many" in done.out
    done = cli("explain", "waiting.mlir", "--memory-budget", "a lot")
    assert done.code == 2
    assert "512KiB" in done.err


def test_a_target_says_which_machine(cli: Cli, folder: Path) -> None:
    def machine(*options: str) -> str:
        return json.loads(cli("explain", "centered.mlir", "--json", *options).out)["machine"]

    assert machine() == machine("--target", DEFAULT_TARGET)
    assert machine("--target", "cpu") == this_machine()
    assert machine("--target", "xla:cpu") == "cpu"
    assert machine("-t", "triton:sm_80") == "sm_80"
    assert machine("-t", "triton:sm_80", "--machine", "sm_100") == "sm_100"
    done = cli("explain", "centered.mlir", "--target", "abacus")
    assert done.code == 2 and "xla:cpu" in done.err


def test_an_unknown_machine_is_wrong_usage(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--machine", "abacus")
    assert done.code == 2
    assert "sm_90" in done.err


LAYERS = 20


@pytest.fixture
def layers(folder: Path) -> Path:
    """A chain of convolutions, each with a zero of its own that all of them share after cse, and of 20 sines."""
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal((4, 4, 1, 1), np.float32), f"w{i}") for i in range(9)]
    nodes: list[onnx.NodeProto] = []
    for i in range(9):
        nodes.append(onnx.helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"], name=f"conv-{i}"))
        nodes.append(onnx.helper.make_node("Relu", [f"c{i}"], [f"x{i + 1}"], name=f"relu-{i}"))
    for i in range(LAYERS):
        name = f"x{9 + i}", f"x{10 + i}"
        nodes.append(onnx.helper.make_node(("Sin", "Cos")[i % 2], [name[0]], [name[1]], name=f"wave-{i}"))
    shape = [2, 4, 8, 8]
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in ("x0", f"x{9 + LAYERS}")]
    graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), folder / "layers.onnx")
    return folder


def names_in(places: list[str]) -> list[str]:
    return [place.partition(" ")[0] for place in places]


def test_a_kernel_comes_from_the_nodes_that_it_computes_in_order(cli: Cli, layers: Path) -> None:
    (block,) = json.loads(cli("explain", "layers.onnx", "--json", "--machine", this_machine()).out)["blocks"]
    found = [names_in(kernel["places"]) for kernel in block["kernels"]]
    everything = [name for names in found for name in names]
    expected = [f"{kind}-{i}" for i in range(9) for kind in ("conv", "relu")] + [f"wave-{i}" for i in range(LAYERS)]
    assert everything == expected, "each node in one kernel, and none twice"
    (last,) = json.loads(cli("explain", "layers.onnx", "--json", "--at", f"wave-{LAYERS - 1}").out)["blocks"]
    assert len(last["kernels"]) == 1, "places beyond those that a line shows are found, too"
    program = gcomp.import_model(layers / "layers.onnx")
    PassManager(parse_pipeline(KERNELS)).run(program)
    launched = [names_in(places(op.location)) for op in program.ops() if isinstance(op, LaunchOp)]
    assert launched == found, "kernels that are launched and drawn have the same places"


def test_each_kernel_says_how_it_is_computed_and_why(cli: Cli, folder: Path) -> None:
    """What is said is what lowering takes: tiles are those of the settings, predicted times those of the model."""
    found = json.loads(cli("explain", "centered.mlir", "--json", "--target", "cpu:x86-64-v4").out)["made"]
    reduction, product = found
    assert reduction["algorithm"] == "reduction across rows"
    assert product["algorithm"].startswith("packed product") or product["algorithm"].startswith("product")
    assert product["tile"].startswith("rows ")
    assert any("x" in reason and "next best" in reason for reason in product["because"])
    assert all(row["microseconds"] > 0 and row["measured"] is None and row["layouts"] for row in found)
    shown = cli("explain", "centered.mlir", "--target", "cpu:x86-64-v4").out
    assert product["algorithm"] in shown and product["because"][0] in shown


def test_measured_times_stand_beside_predicted_ones(cli: Cli, folder: Path) -> None:
    found = json.loads(cli("explain", "centered.mlir", "--json", "--measure").out)["made"]
    assert all(row["measured"] > 0 for row in found)
    assert cli("explain", "centered.mlir", "--measure", "--machine", "cpu").code == 2
