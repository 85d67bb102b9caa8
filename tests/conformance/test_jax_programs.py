"""JAX programs through gcomp give what jax.jit gives (`jax_programs.run` measures them too)."""

from __future__ import annotations

import pytest

from tests.conformance.jax_programs.check import error
from tests.conformance.jax_programs.run import PAGE
from tests.conformance.jax_programs.table import Program, programs

QUICK = {
    "batched_while", "batches", "causal_attention", "cnn", "cond", "convolutions", "cumulative", "custom_jvp",
    "custom_vjp", "eigenvalues", "einsums", "equinox_mlp", "flax_nnx", "fori_loop", "gathers",
    "grouped_query_attention", "gru", "implicit_derivatives", "int4_weights", "lstm", "mlp_gradient",
    "ragged_product", "scans", "segments", "sorts", "switch", "transforms", "while_loop",
}  # fmt: skip
"""The programs that `make test` runs: those that compile soon, of every family. The others are for the sweep, and their
parts are in tests/unit/jaxpr."""


def parameters() -> list[object]:
    """The programs; those that take long to compile are left out of `make test`."""
    return [pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.name not in QUICK)) for p in programs().values()]


@pytest.mark.parametrize("program", parameters())
def test_a_program_gives_what_jax_gives(program: Program) -> None:
    if program.missing:
        pytest.skip(f"NOT CHECKED: {program.needs} is not installed")
    assert error(program) <= program.ulps


def test_there_are_at_least_forty() -> None:
    assert len(programs()) >= 40
    assert programs().keys() >= QUICK


def test_the_page_has_them_all() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert rows[2:] == list(programs())
