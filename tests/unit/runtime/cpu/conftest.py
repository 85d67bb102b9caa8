"""Stands in for the target."""

from types import SimpleNamespace

import pytest

from gcomp.runtime import planned
from gcomp.runtime.cpu import executor


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    def engine_of(plan):
        return SimpleNamespace(variants=tuple(plan.target.partition(":")[2].split(",")))

    monkeypatch.setattr(planned, "engine_of", engine_of)
    monkeypatch.setattr(executor, "engine_of", engine_of)
