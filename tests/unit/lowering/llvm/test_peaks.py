"""Peaks of this machine, and kernels under them."""

from __future__ import annotations

from pathlib import Path

import pytest

import gcomp
from gcomp.lowering.llvm import peaks
from gcomp.lowering.llvm.codegen import Module, assembly
from gcomp.lowering.llvm.dots import SUMS
from gcomp.lowering.llvm.peaks import Peaks, multiply_adds
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from tests.unit.lowering.llvm.test_tuning import TEXTS


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_sums_stay_in_registers(name: str) -> None:
    """Nothing but multiply-adds is in the loop: as many as there are sums, and no memory."""
    variant = VARIANTS[name]
    text = assembly(Module("peak", multiply_adds(variant.bits // 32)), variant)
    lines = [line.strip() for line in text.splitlines()]
    count = sum(line.startswith(("vfmadd", "fmla")) for line in lines)
    assert count == SUMS[variant.bits // 32]


def test_rates_are_of_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "TURNS", 1 << 10)
    monkeypatch.setattr(peaks, "COPIED", 1 << 16)
    monkeypatch.setattr(Peaks, "_best", lambda self, actions: [action() for action in actions] and 0.5)
    lanes = VARIANTS[this_machine()].bits // 32
    with Peaks(VARIANTS[this_machine()], 2) as found:
        assert found.flops() == 2 * 2 * (1 << 10) * SUMS[lanes] * lanes / 0.5
        assert found.bandwidth() == 2 * 2 * (1 << 16) / 0.5


def test_measured_kernels_stand_under_measured_peaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp.cli.inspecting import inspect_command

    monkeypatch.setattr(peaks, "COPIED", 1 << 20)
    gcomp.compile(TEXTS["product"]).save(tmp_path / "model.gcomp")
    inspect_command(tmp_path / "model.gcomp", [], False, False, roofline=tmp_path / "page.html", measure=True)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "1 of them are measured" in page and "measured, " in page
    with pytest.raises(gcomp.UsageError, match="--measure"):
        inspect_command(tmp_path / "model.gcomp", [], False, False, measure=True)
