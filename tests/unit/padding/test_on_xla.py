"""The cases on XLA: compiled with buckets, with garbage in all padding, they are what the reference says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import dims
from gcomp.reference.interpreter import interpret
from gcomp.runtime.bucketed import BucketedModel
from gcomp.runtime.xla import padded
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import value_for
from gcomp.testing.generate.padded import CASES

Array = np.ndarray[Any, Any]
SIZES = ((2, 1), (3, 2), (5, 4), (1, 6), (6, 6))


def garbage(shape: Any, dtype: np.dtype[Any]) -> Array:
    return np.full(shape, np.nan if dtype.kind in "fc" else True if dtype.kind == "b" else 97).astype(dtype)


def near(want: Array, got: Array) -> bool:
    if want.dtype.kind in "iub":
        return np.array_equal(want, got)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    return np.allclose(got.astype(wide), want.astype(wide), rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_padded_on_xla(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded, "blank", garbage)
    program = CASES[name]()
    model = gcomp.compile(program.clone(), buckets={"n": [3, 6], "m": [2, 6]})
    plain = gcomp.compile(program.clone())
    assert isinstance(model, BucketedModel)
    for seed, (n, m) in enumerate(SIZES):
        env = {"n": n, "m": m}
        shapes = [[dims.evaluate(s, env) for s in port.shape] for port in program.inputs()]
        values = [value_for(p.dtype, s, Seeded(seed), "whole") for p, s in zip(program.inputs(), shapes, strict=True)]
        rows = zip(interpret(program, values), model.flat(list(values)), plain.flat(list(values)), strict=True)
        for i, (want, got, unpadded) in enumerate(rows):
            assert got.shape == want.shape
            # Where XLA itself differs (Cholesky of what is not definite), the padded program does as it does.
            assert near(want, got) or near(unpadded, got), f"result {i} at {env}"
    assert model.buckets.compilations <= 4
