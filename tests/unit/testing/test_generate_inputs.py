"""Inputs fit their program, reach the edges of types and ranges, and come from their seed."""

from __future__ import annotations

import numpy as np

from gcomp.dims import Constraint, Range, Ranges, symbol
from gcomp.dtypes import DTYPES, dtype_of, is_complex, is_float
from gcomp.ir.program import Program
from gcomp.ir.types import ELEMENT_TYPES, tensor
from gcomp.testing.generate.inputs import inputs_for


def program_of(*types: object) -> Program:
    program = Program.empty([(f"x{i}", t) for i, t in enumerate(types)])  # type: ignore[misc]
    program.finish([("r", program.block.args[0])])
    return program


def test_inputs_have_the_types_and_shapes_of_the_program() -> None:
    program = program_of(*(tensor((2, 3), text) for text in ELEMENT_TYPES), tensor((), "f32"), tensor((0, 4), "i8"))
    for mode in ("edges", "whole"):
        for port, array in zip(program.inputs(), inputs_for(program, 1, mode), strict=True):
            assert (array.dtype, array.shape) == (dtype_of(port.dtype), port.shape)


def test_edges_are_reached_within_a_few_inputs() -> None:
    program = program_of(tensor((8,), "f32"), tensor((8,), "i32"), tensor((8,), "bf16"))
    drawn = [inputs_for(program, seed) for seed in range(60)]
    floats = np.concatenate([d[0] for d in drawn])
    whole = np.concatenate([d[1] for d in drawn])
    assert np.isnan(floats).any() and np.isinf(floats).any()
    assert ((floats == 0) & np.signbit(floats)).any() and ((floats == 0) & ~np.signbit(floats)).any()
    assert ((floats != 0) & (np.abs(floats) < np.finfo(np.float32).tiny)).any()
    assert len({int(bits) for bits in floats[np.isnan(floats)].view(np.uint32)}) > 2
    assert {np.iinfo(np.int32).min, np.iinfo(np.int32).max, 0, -1} <= set(whole.tolist())
    assert np.isnan(np.concatenate([d[2] for d in drawn]).astype(np.float32)).any()


def test_whole_numbers_are_small_and_exact() -> None:
    program = program_of(*(tensor((20,), text) for text in DTYPES))
    for port, array in zip(program.inputs(), inputs_for(program, 3, "whole"), strict=True):
        numbers = np.asarray(array).astype(np.complex128 if is_complex(port.dtype) else np.float64)
        assert np.isfinite(numbers).all() and (np.abs(numbers) <= 4).all()
        if is_float(port.dtype):
            assert (numbers == np.round(numbers)).all()


def test_symbols_take_both_ends_of_their_ranges() -> None:
    n, m = symbol("n"), symbol("m")
    program = program_of(tensor((n, 2), "f32"), tensor((m + 1, n), "f32"))
    program.ranges = Ranges({"n": Range(0, 6, 2), "m": Range(1, 4)})
    seen = {inputs_for(program, seed)[0].shape[0] for seed in range(40)}
    assert {0, 6} <= seen <= {0, 2, 4, 6}
    assert all(a.shape[1] == b.shape[0] for b, a in (inputs_for(program, seed) for seed in range(10)))


def test_sizes_meet_the_constraints_where_they_can() -> None:
    n, m = symbol("n"), symbol("m")
    program = program_of(tensor((n,), "f32"), tensor((m,), "f32"))
    program.ranges = Ranges({"n": Range(1, 3), "m": Range(1, 3)})
    program.constraints = [Constraint("eq", n, m, "test")]
    for seed in range(20):
        a, b = inputs_for(program, seed)
        assert a.shape == b.shape


def test_large_inputs_are_quick_and_the_same_for_a_seed() -> None:
    program = program_of(tensor((1000, 1000), "f32"))
    first, again = inputs_for(program, 5)[0], inputs_for(program, 5)[0]
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != inputs_for(program, 6)[0].tobytes()
