"""One quick look into every room of gcomp: `make quick` runs these. A new folder needs a row."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.ir.program import Program

ROOT = Path(gcomp.__file__).parent
TEXT = """
func.func @main(%x: tensor<?x4xf32, ["n", "4"]>, %w: tensor<4x2xf32>) -> tensor<?x2xf32, ["n", "2"]> {
  %y = "stablehlo.dot_general"(%x, %w) <{
      dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
  }> : (tensor<?x4xf32, ["n", "4"]>, tensor<4x2xf32>) -> tensor<?x2xf32, ["n", "2"]>
  %z = "stablehlo.tanh"(%y) : (tensor<?x2xf32, ["n", "2"]>) -> tensor<?x2xf32, ["n", "2"]>
  func.return %z : tensor<?x2xf32, ["n", "2"]>
}
"""
X, W = np.ones((3, 4), np.float32), np.full((4, 2), 0.25, np.float32)
ANSWER = np.tanh(np.full((3, 2), 1.0, np.float32))


def program() -> Program:
    return Program.parse(TEXT)


def after(pipeline: str, text: str, **sizes: int) -> Program:
    """The program of a text after passes."""
    from gcomp.passes.manager import PassManager
    from gcomp.passes.registry import parse_pipeline

    found = Program.parse(text).bind(sizes)
    PassManager(parse_pipeline(pipeline)).run(found)
    return found


def kernels() -> Program:
    from gcomp.passes.pipelines import KERNELS

    return after(KERNELS, TEXT, n=3)


def is_answer(*found: Any) -> bool:
    return np.allclose(found[0], ANSWER, rtol=1e-6)


def analysis() -> bool:
    from gcomp.analysis.machines import machine_named
    from gcomp.analysis.work import Nominal

    known = program()
    (op,) = [op for op in known.ops() if op.name == "stablehlo.tanh"]
    return machine_named("cpu").bandwidth > 0 and Nominal(known.ranges).bytes(op.results[0]) > 0


def autodiff() -> bool:
    return [port.name for port in gcomp.grad(program(), wrt=["input1"]).outputs()] == ["grad(output0, input1)"]


def cli() -> bool:
    from typer.testing import CliRunner

    from gcomp.cli.app import app

    return "compile" in CliRunner().invoke(app, ["--help"]).output


def decompositions() -> bool:
    text = """func.func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %y = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 0.01 : f32, feature_index = 1 : i64}>
      : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}"""
    return all(op.name != "stablehlo.batch_norm_inference" for op in after("decompose", text).ops())


def dims() -> bool:
    from gcomp.dims import evaluate, parse

    return evaluate(parse("2*n + 1"), {"n": 3}) == 7


def frontends() -> bool:
    import jax.numpy as jnp
    import onnx

    node = onnx.helper.make_node("Tanh", ["x"], ["y"])
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    sources = [gcomp.import_model(model), gcomp.import_model(jnp.tanh, np.ones(3, np.float32))]
    return all(any(op.name == "stablehlo.tanh" for op in source.ops()) for source in sources)


def judging() -> bool:
    from gcomp.judging.targets import hold_target
    from gcomp.reference.interpreter import Interpreter

    known = program().bind({"n": 3})
    return hold_target(known, Interpreter(known.clone()).run, [X, W]) is not None


def lowering() -> bool:
    from gcomp.lowering.triton.lower import drafts
    from gcomp.lowering.xla import lower

    return "stablehlo.tanh" in lower(program()).texts["main.mlir"] and len(drafts(kernels())) == 1


def memory() -> bool:
    from gcomp.ir.buffer import arena

    return arena(kernels().module) is not None


def ops() -> bool:
    return is_answer(np.asarray(gcomp.ops.tanh(gcomp.ops.matmul(X, W))))


def padding() -> bool:
    return is_answer(gcomp.compile(program(), target="xla:cpu", dims={"n": "1..8"}, buckets={"n": [4, 8]})(X, W)[0])


def pairs() -> bool:
    text = """func.func @main(%x: tensor<3xcomplex<f32>>) -> tensor<3xf32> {
  %m = "stablehlo.multiply"(%x, %x) : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  %y = "stablehlo.real"(%m) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}"""
    return sum(op.name == "stablehlo.multiply" for op in after("complex-to-pairs", text).ops()) >= 2


def passes() -> bool:
    return len(list(after("canonicalize,cse,dce", TEXT).ops())) >= 2


def reference() -> bool:
    from gcomp.reference.interpreter import Interpreter

    return is_answer(Interpreter(program()).run([X, W])[0])


def runtime(tmp: Path) -> bool:
    gcomp.compile(program()).save(tmp / "m.gcomp")
    return is_answer(gcomp.load(tmp / "m.gcomp")(X, W)[0])


def stages() -> bool:
    return gcomp.compile(program(), verify="each", dims={"n": 3}).verified is not None


def targets() -> bool:
    from gcomp.targets.base import sample_targets

    return {"xla:cpu", "triton:sm_90"} <= sample_targets().keys()


def tensors() -> bool:
    return is_answer(gcomp.function(lambda x, w: gcomp.ops.tanh(x @ w))(X, W))


def checking() -> bool:
    from gcomp.testing.check import check_pass

    return check_pass("canonicalize", program()) is None


def training() -> bool:
    from gcomp.training.optimizers import SGD

    return SGD(lr=0.1).lr == 0.1


def ir() -> bool:
    return Program.parse(program().text()).text() == program().text()


def corpus() -> bool:
    from gcomp.corpus.entries import names

    return len(names()) == 40


def making() -> bool:
    from gcomp.making.kinds import plan_of

    return any(made.path.suffix == ".py" for made in plan_of("pass", "my-pass", Path("nowhere")).files)


def measuring() -> bool:
    from gcomp.measuring.timing import ratio

    return ratio(np.array([2.0, 4.0, 2.0]), np.array([1.0, 2.0, 1.0])).median == 2.0


def partitioning() -> bool:
    from gcomp.partitioning.table import rule_of

    (op,) = [op for op in program().ops() if op.name == "stablehlo.tanh"]
    return rule_of(op) is not None


def report() -> bool:
    from gcomp.report.building import report_of

    return "<html" in report_of(program().bind({"n": 3}), target="cpu").page()


def sharding() -> bool:
    from gcomp.sharding.text import read_mesh, read_sharding

    return read_sharding("data,*", "mesh", 2).rank == 2 and read_mesh("data=2,model=4").size == 8


def trying() -> bool:
    from gcomp.trying.subject import subject_of

    return subject_of("canonicalize").name == "canonicalize"


ROOMS: dict[str, Callable[..., bool]] = {
    look.__name__: look
    for look in (
        analysis, autodiff, cli, corpus, decompositions, dims, frontends, ir, judging, lowering, making, measuring,
        memory, ops, padding, pairs, partitioning, passes, reference, report, runtime, sharding, stages, targets,
        tensors, training, trying,
    )
} | {"testing": checking}  # fmt: skip
"""Folder -> what must hold of it."""


@pytest.mark.parametrize("room", ROOMS)
def test_a_look_into(room: str, tmp_path: Path) -> None:
    assert ROOMS[room](tmp_path) if room == "runtime" else ROOMS[room]()


def test_every_room_has_a_look() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms == ROOMS.keys()


def test_importing_gcomp_imports_nothing_heavy() -> None:
    code = "import sys, gcomp; assert not {'jax', 'xdsl', 'onnx', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
