"""Host steps bind symbols: what the same sizes say is computed once, and what is wrong is said each time."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dims import Constraint, Range, Ranges, symbol
from gcomp.errors import InputError
from gcomp.runtime.hosting import run_host
from gcomp.runtime.plan import HostStep, Value
from gcomp.runtime.signature import Signature

STEP = HostStep("nonzero", (0,), (Value("i64", ("1", "count")),))
RANGES = Ranges({"n": Range(0), "count": Range(0)})
FEW = Constraint("le", symbol("count"), symbol("n") - 1, "here")


def test_the_same_sizes_are_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    signature, checked = Signature((), (), RANGES, (FEW,)), list[int]()
    check = Constraint.check
    monkeypatch.setattr(Constraint, "check", lambda self, env: (checked.append(env["count"]), check(self, env))[1])
    for values in ([1, 0, 1], [0, 5, 6], [0, 0, 0], [1, 1, 0]):
        env = {"n": 3}
        (places,) = run_host(STEP, [np.array(values)], signature, env)
        assert env == {"n": 3, "count": places.shape[1]}
    env = {"n": 4}
    run_host(STEP, [np.array([1, 1, 0, 0])], signature, env)
    assert env == {"n": 4, "count": 2}
    assert checked == [2, 0, 2]


def test_what_does_not_fit_is_refused_each_time() -> None:
    signature = Signature((), (), RANGES, (FEW,))
    for _ in range(2):
        with pytest.raises(InputError, match="do not fit together"):
            run_host(STEP, [np.array([1, 1, 1])], signature, {"n": 3})
