"""Doors of `gcomp fuzz --what`: what is right is not blamed; a wrong rule is found, named and made small."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from gcomp.analysis.fusion import decide
from gcomp.analysis.indexing import MAPS, identity
from gcomp.autodiff import programs
from gcomp.autodiff import table as derivatives
from gcomp.autodiff.rows import ROWS
from gcomp.cli.app import app
from gcomp.dims import symbols_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.frontends.jaxpr import tracing
from gcomp.frontends.onnx.engine import registry
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.lowering.llvm import functions
from gcomp.lowering.tiles.elements.elementwise import _OTHERS, compute_rounded  # pyright: ignore[reportPrivateUsage]
from gcomp.lowering.tiles.expanding import EXPANSIONS
from gcomp.lowering.tiles.schedules import Step
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.source import KernelSource
from gcomp.memory.assign import assign
from gcomp.memory.problem import Assignment, Problem
from gcomp.padding.reduction import NEUTRAL
from gcomp.passes.memory import plan_memory
from gcomp.runtime.cpu.resident import ResidentExecutor
from gcomp.runtime.xla import padded
from gcomp.sources import import_model
from gcomp.testing import printed as testing_printed
from gcomp.testing.derivatives import weights_differ
from gcomp.testing.foreign import onnx_nodes, torch_functions
from gcomp.testing.fuzz import Coverage, Found, Limits, Plan, fuzz, packings
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.door import NOTHING_WRONG
from gcomp.testing.fuzz.doors import door_names, door_of
from gcomp.testing.fuzz.frontend import Onnx, judge
from gcomp.testing.fuzz.imported import ORIGINS, JaxFunctions, TorchFunctions, _form  # pyright: ignore[reportPrivateUsage]
from gcomp.testing.fuzz.kernels import KernelDoor, OneKernel

Patch = Callable[[pytest.MonkeyPatch], object]


def _not_reversed(patch: pytest.MonkeyPatch) -> None:
    """What is reversed gets the cotangent of another place."""
    row = ROWS[hlo.ReverseOp]
    assert isinstance(row, derivatives.Linear)
    patch.setitem(ROWS, hlo.ReverseOp, derivatives.Linear(lambda b, op, g, i: g, row.operands))


def _maximum_above_0(patch: pytest.MonkeyPatch) -> None:
    """Of negative numbers, a maximum along a padded dimension is 0."""
    patch.setitem(NEUTRAL, hlo.MaximumOp, lambda _: 0)


def _all_at_0(patch: pytest.MonkeyPatch) -> None:
    """All results of kernels lie at the bottom of the arena."""

    def assigned(problem: Problem, **_: Any) -> Assignment:
        found = assign(problem)
        return replace(found, offsets=tuple([0] * len(problem.buffers)))

    patch.setattr(plan_memory, "assign", assigned)


def _smaller(patch: pytest.MonkeyPatch) -> None:
    """Tile programs take the smaller of two."""
    patch.setitem(_OTHERS, hlo.MaximumOp, lambda b, op, operands: compute_rounded(b, op, "minimum", operands))


def _printed_otherwise(patch: pytest.MonkeyPatch) -> None:
    """What takes the smaller of two is printed as if it took the greater."""

    def text(step: Step) -> KernelSource:
        source = print_kernel(step)
        return replace(source, text=source.text.replace("tl.minimum(", "tl.maximum("))

    patch.setattr(testing_printed, "print_kernel", text)


def _coded_otherwise(patch: pytest.MonkeyPatch) -> None:
    """Machine code takes the smaller of two."""
    patch.setitem(cast("dict[str, Any]", functions.ROWS), "maximum", functions.ROWS["minimum"])


def _never_cut(patch: pytest.MonkeyPatch) -> None:
    """Results of padded calls keep their padding."""
    patch.setattr(padded, "_cut", lambda result, *_: result)


def _reads_the_next(patch: pytest.MonkeyPatch) -> None:
    """A reversed dimension is said to read in the order of its result."""
    patch.setitem(MAPS, hlo.ReverseOp, lambda op: [[identity(shape_of(op.operand))]])


def _nothing_merged(patch: pytest.MonkeyPatch) -> None:
    """No two groups become one."""
    patch.setattr(decide._Search, "_merge_by_priority", lambda *_: None)  # pyright: ignore[reportPrivateUsage]


def _state_lost(patch: pytest.MonkeyPatch) -> None:
    """What a model keeps is zero after each call."""
    kept = ResidentExecutor.get_state
    patch.setattr(ResidentExecutor, "get_state", lambda self, index: kept(self, index) * 0)  # pyright: ignore


PLANTED: dict[str, tuple[Patch, int, str]] = {
    "autodiff": (_not_reversed, 110, "stablehlo.reverse"),
    "padding": (_maximum_above_0, 290, "stablehlo.reduce"),
    "memory": (_all_at_0, 0, "plan-memory"),
    "indexing": (_reads_the_next, 0, "stablehlo.reverse"),
    "fusion": (_nothing_merged, 0, "nothing is left to merge"),
    "runtime": (_never_cut, 0, "buckets"),
    "tile": (_smaller, 12, "stablehlo.maximum in loop kernels"),
    "machine": (_coded_otherwise, 48, "stablehlo.maximum in loop kernels"),
    "processor": (_state_lost, 12, "a state"),
    "printed": (_printed_otherwise, 15, "stablehlo.minimum in loop kernels"),
}
"""A door, a mistake of what it is about, from which program on it is looked for, and what is to be named."""


FEW = {"printed": 8, "machine": 8, "runtime": 12, "processor": 28}
"""How many programs of a door are tried here, where each takes long."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_is_found_named_and_made_small(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    patch, first, blamed = PLANTED[name]
    with monkeypatch.context() as patched:
        patch(patched)
        plan = Plan.of(what=name)
        found = _first_found(plan, first, blamed)
        path = write_case(found, plan, tmp_path, seconds=30)
        text = path.read_text("utf-8")
        run = re.match(rf"// RUN: gcomp fuzz --what {name} --case %s --seed (\d+) \| filecheck %s\n", text)
        assert run is not None
        number = int(run[1])
        assert f"at fault: {blamed}" in text
        assert text.count("stablehlo.") <= 6
        assert _judged(name, path, number) == (1, False)
    assert _judged(name, path, number) == (0, True)


def _first_found(plan: Plan, first: int, blamed: str) -> Found:
    """The first failure that is blamed on a component, of some programs."""
    found = (door_of(plan.what).attempt(number, plan.size, Coverage()) for number in range(first, first + 60))
    return next(one for one in found if one is not None and one.key[-1] == blamed)


def _judged(name: str, path: Path, number: int) -> tuple[int, bool]:
    result = CliRunner().invoke(app, ["fuzz", "--what", name, "--case", str(path), "--seed", str(number)])
    return result.exit_code, NOTHING_WRONG in result.output


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_right_is_not_blamed(name: str) -> None:
    door, coverage, count = door_of(name), Coverage(), FEW.get(name, 40)
    found = [door.attempt(number, 15, coverage) for number in range(1 << 20, (1 << 20) + count)]
    assert [one.message for one in found if one is not None] == []
    assert coverage.judged > count / 2
    assert coverage.rules


def test_a_scan_that_reads_a_value_from_around_it_is_no_kernel_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "scan.mlir"
    path.write_text("""
        func.func @main(%x: tensor<2x3xi32>, %y: tensor<2xi32>) -> tensor<2x3xi32> {
          %r, %last = chlo.scan(%x) inits (%y) dimension=1 {
          ^bb0(%a: tensor<2xi32>, %b: tensor<2xi32>):
            stablehlo.return %y, %a : tensor<2xi32>, tensor<2xi32>
          } : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)
          func.return %r : tensor<2x3xi32>
        }
    """)
    program = import_model(path)
    door = door_of("tile")
    assert isinstance(door, KernelDoor)
    kernels = [op.kind_name for op in door.in_kernels(program).ops() if isinstance(op, LaunchOp)]
    assert "scan" not in kernels


def test_a_campaign_goes_through_a_door() -> None:
    outcome = fuzz(Plan.of(what="padding"), Limits(programs=30), seed=1)
    assert not outcome.failures
    assert outcome.coverage.programs == outcome.tried == 30


def test_a_law_that_does_not_hold_is_written_as_choices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = Plan.of(what="memory")
    with monkeypatch.context() as patched:
        patched.setattr(packings, "degrees", lambda lower, upper: np.zeros(len(lower), np.int64))
        found = _first_found(plan, 0, "sections")
        path = write_case(found, plan, tmp_path)
        assert len(json.loads(path.read_text())["choices"]) < 20
        assert _judged("memory", path, found.number) == (1, False)
    assert _judged("memory", path, found.number) == (0, True)


def test_passes_that_make_another_program_have_their_door() -> None:
    assert Plan.of(("vjp",)).what == Plan.of(pipeline="jvp").what == "autodiff"
    assert Plan.of(pipeline="pad-dims").what == "padding"
    for refused in (("vjp", "cse"), ("thread-prints",)):
        with pytest.raises(UsageError, match="another program"):
            Plan.of(refused)
    with pytest.raises(UsageError, match="no 'nothing' to fuzz"):
        Plan.of(what="nothing")
    with pytest.raises(UsageError, match="excludes"):
        Plan.of(("cse",), what="autodiff")


def test_the_doors_have_all_a_planted_mistake() -> None:
    known: set[Any] = set(door_names()) - {"passes"}
    assert known == set(PLANTED) | {
        "frontend",
        "onnx",
        "jaxpr",
        "torch",
        "files",
        "mesh",
    }  # those have tests of their own


def test_a_wrong_importer_is_found_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Relu is imported as if it were Abs; of what is right, nothing is said, whichever frontend it goes through."""
    place = next(number for number in range(1000) if onnx_nodes.model_of(number).operator == "Relu")
    door, plan = door_of("onnx"), Plan.of(what="onnx")
    number = 4 * place + 1  # every other one is of ONNX's suite, and every other of these has unknown sizes
    assert door.attempt(number, 15, Coverage()) is None
    with monkeypatch.context() as patched:
        importers = registry._IMPORTERS  # pyright: ignore[reportPrivateUsage]
        patched.setitem(importers, ("", "Relu"), importers["", "Abs"])
        found = door.attempt(number, 15, Coverage())
        assert found is not None and found.key[-1] == "onnx Relu"
        path = write_case(found, plan, tmp_path)
        assert _judged("onnx", path, 0) == (1, False)
    assert _judged("onnx", path, 0) == (0, True)
    from_its_file = next(number for number in range(1, 99, 2) if _form(number, 4) == 1)
    assert door_of("onnx").attempt(from_its_file, 15, Coverage()) is None
    assert Onnx().known["onnx"].sample(from_its_file).text.endswith(", from bytes")
    coverage = Coverage()
    assert [door_of("jaxpr").attempt(number, 15, coverage) for number in (3, 4)] == [None, None]
    assert coverage.judged == 2


def test_a_frontend_that_refuses_what_it_takes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    place = next(number for number in range(1000) if onnx_nodes.model_of(number).operator == "Gather")
    assert door_of("onnx").attempt(4 * place + 1, 15, Coverage()) is None
    with monkeypatch.context() as patched:
        patched.delitem(registry._IMPORTERS, ("", "Gather"))  # pyright: ignore[reportPrivateUsage]
        found = door_of("onnx").attempt(4 * place + 1, 15, Coverage())
    assert found is not None
    assert found.key[1:] == ("refused", "", "onnx Gather")


def test_inputs_that_lose_their_names_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_by_parameter", lambda _, paths: [path[1:] for path in paths])
    number = next(n for n in range(1, 60) if JaxFunctions().sample(n).names)
    found = door_of("jaxpr").attempt(number, 15, Coverage())
    assert found is not None
    assert found.key[1] == "names"


def test_torch_functions_have_symbols_and_chance_without_a_choice() -> None:
    origin, kinds = TorchFunctions(), [*torch_functions.MAKERS]
    turn = kinds.index("certain") + len(kinds) * (1 - kinds.index("certain") % 2)
    sample = origin.sample(3 * turn)
    assert sample.text.endswith("sizes unknown")
    assert any(symbols_of(size) for port in sample.load().inputs() for size in port.shape)
    assert judge(sample) is None
    assert judge(origin.sample(3 * (turn + len(kinds)))) is None


def test_gradients_for_weights_that_are_read_often_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read of a weight alone has a gradient: programs that read one twice show it."""
    door = door_of("autodiff")

    def first_alone(program: Program, name: str) -> Any:
        return next(op for op in program.ops() if isinstance(op, WeightOp) and op.symbol == name).result

    def wrong() -> Iterator[str]:
        for number in range(1, 121, 4):
            program = door.made(number, 12)  # type: ignore[attr-defined]
            with suppress(UnsupportedError):
                yield weights_differ(program, door.inputs(number, program), number)  # type: ignore[attr-defined]

    assert not any(wrong())
    monkeypatch.setattr(programs, "_read", first_alone)
    assert any(wrong())


def test_functions_that_are_wrong_as_tile_programs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator and the machine run the same wrong program: the reference says that it is wrong."""
    text = """func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {
      %y = stablehlo.cosine %x : tensor<8xf64>
      return %y : tensor<8xf64>
    }"""
    door, program, x = door_of("machine"), Program.parse(text), np.linspace(-3.0, 3.0, 8)
    assert isinstance(door, KernelDoor)
    judged = OneKernel(door, "loop")
    assert judged.wrong(program, [x], 1) is None
    sine = EXPANSIONS["sine", "f64"]
    monkeypatch.setitem(EXPANSIONS, ("cosine", "f64"), sine)
    wrong = judged.wrong(program, [x], 1)
    assert wrong is not None
    assert wrong.kind == "meaning"


@pytest.mark.parametrize(("what", "forms", "count"), [("torch", 2, 30_000), ("jaxpr", 5, 12_000), ("onnx", 4, 12_000)])
def test_every_kind_of_sample_comes_in_every_form(what: str, forms: int, count: int) -> None:
    """By turns, of as many kinds as forms divide each had one form for ever: none of half of torch's had symbols."""
    origin = ORIGINS[what]()
    if why := origin.missing():
        pytest.skip(why)
    seen: dict[str, list[int]] = {}
    for number in range(count):
        seen.setdefault(origin.topic(number), []).append(_form(number, forms))
    often = [set(found) for found in seen.values() if len(found) > 12 * forms]
    assert often and all(found == set(range(forms)) for found in often)
