"""Names of targets, and which Triton will do."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import pytest

from gcomp.errors import UnsupportedError, UsageError
from gcomp.lowering.triton.aot import Compiler
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.targets import ARCHITECTURES, is_triton, parse_target, triton_version


def test_names_are_read_in_order() -> None:
    assert [a.name for a in parse_target("triton:sm_90,sm_80")] == ["sm_90", "sm_80"]
    assert [a.name for a in parse_target("triton:gfx942")] == ["gfx942"]
    assert is_triton("triton:sm_90") and not is_triton("xla:cpu")


@pytest.mark.parametrize("target", ["xla:cpu", "triton:", "triton", "triton:sm_90,", "triton:sm_90,sm_90"])
def test_what_is_no_target_is_refused(target: str) -> None:
    with pytest.raises(UsageError):
        parse_target(target)


def test_an_unknown_architecture_names_those_there_are() -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_target("triton:sm_75")
    assert all(name in str(caught.value) for name in ARCHITECTURES)


@pytest.mark.parametrize("version", ["3.5.1", "2.1.0", "3.10.0", "4.0.0", "main"])
def test_an_untested_triton_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    with pytest.raises(UnsupportedError, match=f"not been tested with Triton {version}"):
        triton_version()


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1", "3.9.0+git1234"])
def test_a_tested_triton_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    assert triton_version() == version


@pytest.mark.parametrize("make", [Compiler, Interpreter])
def test_a_missing_triton_is_named_before_anything_is_started(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(UnsupportedError, match="not installed") as caught:
        make()
    assert "gcomp[triton]" in str(caught.value)
