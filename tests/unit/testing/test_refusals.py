"""A refusal that is not allowed is a finding: of one op alone, or of what no table of refusals has."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcomp import dims
from gcomp.autodiff import trips
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.lowering.tiles.schedules import Step
from gcomp.lowering.triton.source import KernelSource
from gcomp.padding.sweep import Row, refuse
from gcomp.padding.table import ROWS
from gcomp.testing.fuzz import Coverage, Plan, runtime, tile
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.doors import door_of

PLAN = Plan.of(what="tile")
PLAIN = range(6, 160, 8)
"""Numbers of programs of one op."""


def test_a_kernel_of_one_op_may_not_be_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(step: Step) -> KernelSource:
        raise UnsupportedError("nothing is printed", why="nothing is printed")

    monkeypatch.setattr(tile, "print_kernel", refuse)
    found = next(f for n in PLAIN if (f := door_of("tile").attempt(n, PLAN.size, Coverage())) is not None)
    assert found.key[1] == "refused"
    path = write_case(found, PLAN, tmp_path)
    assert "refused: nothing is printed" in path.read_text()
    assert "refused: nothing is printed" in door_of("tile").again(path, found.number)


def test_kernels_of_one_op_are_taken() -> None:
    found = [door_of("tile").attempt(n, PLAN.size, Coverage()) for n in PLAIN]
    assert [one.message for one in found if one is not None] == []


def test_a_derivative_of_one_op_may_not_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    door = door_of("autodiff")
    numbers = [n for n in range(1, 16 * 400, 16) if door.topic(n) == "while"]
    assert all(door.attempt(n, 15, Coverage()) is None for n in numbers)

    def nothing(*_: object) -> None:
        """No bound is known of any loop."""

    monkeypatch.setattr(trips, "_bound", nothing)
    found = [one for n in numbers if (one := door.attempt(n, 15, Coverage())) is not None]
    assert {one.key[1] for one in found} == {"refused"}


def test_padding_refuses_what_its_table_says_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    door = door_of("padding")
    numbers = [n for n in range(2, 3 * 200, 3) if door.topic(n) == "convolutions"]
    assert [f.message for n in numbers if (f := door.attempt(n, 15, Coverage())) is not None] == []

    def refused(sweep: object, op: object, _: object) -> None:
        refuse(sweep, op, "its groups divide a padded dimension")  # type: ignore[arg-type]

    monkeypatch.setitem(ROWS, hlo.ConvolutionOp, Row("neutral", refused))  # type: ignore[arg-type]
    found = [one for n in numbers if (one := door.attempt(n, 15, Coverage())) is not None]
    assert {one.key[1] for one in found} == {"refused"}


def test_some_padded_sizes_have_no_bound() -> None:
    door = door_of("padding")
    programs = [door.program(n, 4) for n in range(12)]  # type: ignore[attr-defined]
    highs = [program.ranges[s].hi for program in programs for s in {*_symbols(program)}]
    assert None in highs and any(high is not None for high in highs)


def _symbols(program: object) -> set[str]:
    return {s for port in program.inputs() for size in port.shape for s in dims.symbols_of(size)}  # type: ignore[attr-defined]


def test_a_model_may_not_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: object) -> None:
        raise UnsupportedError("nothing is lowered", why="nothing is")

    door = door_of("runtime")
    assert door.attempt(1, 8, Coverage()) is None
    monkeypatch.setattr(runtime, "lower", nothing)
    found = door.attempt(1, 8, Coverage())
    assert found is not None and found.key[1] == "refused"


def test_a_frontend_may_refuse_unknown_sizes_for_their_sake_only(monkeypatch: pytest.MonkeyPatch) -> None:
    door = door_of("onnx")

    def says(why: str) -> set[str]:
        def nothing(*_: object, **__: object) -> None:
            raise UnsupportedError("nothing is imported", why=why)

        monkeypatch.setattr("gcomp.testing.fuzz.imported.import_model", nothing)
        found = [door.attempt(n, 8, Coverage()) for n in range(3, 40, 4)]  # nodes, half of them with symbols
        return {one.key[1] for one in found if one is not None}

    assert says("there is none") == {"refused"}


def test_what_a_processor_must_refuse_is_refused() -> None:
    door = door_of("processor")
    numbers = [n for n in range(1, 200, 4) if door.topic(n).endswith(("several kinds", "reports", "other arrays"))]
    assert [f.message for n in numbers[:3] if (f := door.attempt(n, 8, Coverage())) is not None] == []
