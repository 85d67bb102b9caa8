"""The oracles' worker processes: every element type crosses bit for bit, and no crash reaches the caller."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gcomp.dtypes import DTYPES, dtype_of
from gcomp.reference.values import edges
from gcomp.testing.oracles import Oracle, OracleFailure, XlaOracle
from tests.support.cases.case import apply, type_of
from tests.support.cases.values import every

pytest.importorskip("jaxlib", reason="jaxlib, which ships both oracles, is not installed")


@pytest.fixture(scope="module", params=[Oracle, XlaOracle], ids=["cpp", "xla"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle | XlaOracle]:
    with request.param(timeout=60) as running:
        yield running


@pytest.mark.parametrize("text", DTYPES)
def test_every_element_type_crosses_bit_for_bit(text: str, oracle: Oracle | XlaOracle) -> None:
    if isinstance(oracle, XlaOracle) and text.startswith("f6"):
        pytest.skip("XLA has no 6-bit floats")
    x = every(text) if dtype_of(text).itemsize == 1 else edges(text)
    for shape in ((x.size,), (x.size, 1), (0,), ()):
        y = np.array(x[:1].reshape(()) if shape == () else x[: np.prod(shape, dtype=int)].reshape(shape))
        (got,) = oracle.run(apply("stablehlo.reshape", [y], [type_of(y)]), [y])
        assert got.dtype == y.dtype and got.shape == y.shape and got.tobytes() == y.tobytes()


def test_a_crash_is_reported_and_survived() -> None:
    zero = np.zeros(2, np.int32)
    divide = apply("stablehlo.divide", [zero, zero], [type_of(zero)])
    add = apply("stablehlo.add", [zero, zero], [type_of(zero)])
    with Oracle(timeout=60) as oracle:
        failure = oracle.run(divide, [zero, zero])
        assert isinstance(failure, OracleFailure)
        assert failure.kind == "crashed" and "SIGFPE" in failure.reason
        assert oracle.run(add, [zero, zero])[0].tolist() == [0, 0]
        refused = oracle.run("no module", [])
        assert isinstance(refused, OracleFailure) and refused.kind == "refused"
        assert oracle.restarts == 1


FOREVER = """func.func public @main(%x: tensor<i32>) -> tensor<i32> {
  %r = stablehlo.while(%i = %x) : tensor<i32> cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.return %i : tensor<i32>
  }
  return %r : tensor<i32>
}"""


def test_a_program_without_end_times_out() -> None:
    x = np.zeros((), np.int32)
    with Oracle(timeout=60) as oracle:
        assert not isinstance(oracle.run(apply("stablehlo.negate", [x], [type_of(x)]), [x]), OracleFailure)
        oracle.timeout = 1.0
        failure = oracle.run(FOREVER, [x])
        assert isinstance(failure, OracleFailure) and failure.kind == "timeout"
