"""Hostile artifacts with a state: each is refused, or runs as its signature says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.dtypes import dtype_of
from gcomp.errors import ArtifactError
from gcomp.runtime.stateful import StatefulModel
from gcomp.testing.mutate import run
from tests.support.mutate import artifacts
from tests.support.mutate.artifacts import Mutant, Sample
from tests.unit.training.models import MLP, X, Y

COUNT = 150


@pytest.mark.parametrize("sealed", [True, False])
def test_mutants_are_refused_or_do_what_they_say(sealed: bool, tmp_path: Path) -> None:
    path = tmp_path / "step.gcomp"
    gcomp.train_step(MLP, target="xla:cpu", optimizer="sgd:momentum=0.9", dims={"n": 6}).save(path)
    sample = Sample.of(path.read_bytes())

    def use(mutant: Mutant) -> str:
        if mutant.data == sample.data:
            return "unchanged"
        path.write_bytes(mutant.data)
        model = gcomp.load(path, verify="lazy" if sealed else "full")
        assert mutant.sealed, "a file that nobody wrote was loaded"
        inputs = [np.ones([int(d) for d in p.dims], dtype_of(p.dtype)) for p in model.inputs if "n" not in p.dims]
        results = list(model.named(*inputs).values())
        for port, result in zip(model.outputs, results, strict=True):
            assert (result.dtype, result.ndim) == (dtype_of(port.dtype), len(port.dims)), port
        if isinstance(model, StatefulModel):
            for name, array in model.state.items():
                assert name and array.size >= 0
        return "another model"

    tally = run(artifacts.cases([sample], COUNT, sealed=sealed), use)
    sys.stdout.write(f"{tally.table()}\n")
    assert not tally.failures, str(tally)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"state":1}', b'"state":2}'),
        (b'"state":1}', b'"state":99}'),
        (b'"state":1}', b'"state":-1}'),
        (b'"state":1}', b'"state":null}'),
        (b'"state":1}', b'"state":true}'),
        (b'"name":"initial(w1)"', b'"name":"initial(w2)"'),
    ],
)
def test_a_state_that_does_not_fit_is_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    from gcomp.runtime.archive import write_archive
    from gcomp.runtime.artifact import MANIFEST

    path = tmp_path / "step.gcomp"
    gcomp.train_step(MLP, dims={"n": 6}).save(path)
    members = dict(Sample.of(path.read_bytes()).members)
    assert old in members[MANIFEST]
    members[MANIFEST] = members[MANIFEST].replace(old, new)
    write_archive(path, list(members.items()))
    with pytest.raises(ArtifactError):
        gcomp.load(path)(X, Y)
