"""Generators against the vectors of Random123 and against XLA bit for bit; rng by its documented properties."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.random import philox4x32, rng, rng_bit_generator, threefry2x32

from .samples import same_bits

U32 = np.uint32


def words(*values: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([v], U32) for v in values)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_vectors(counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]) -> None:
    got = threefry2x32(words(*key), words(*counter))
    assert tuple(int(v[0]) for v in got) == expected


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ],
)
def test_philox_vectors(counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]) -> None:
    got = philox4x32(words(*key), words(*counter))
    assert tuple(int(v[0]) for v in got) == expected


SHAPES = [(), (1,), (2,), (7,), (4, 3), (3, 5), (0, 3), (5, 5, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", ["ui8", "ui16", "ui32", "ui64"])
@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX", "DEFAULT"])
def test_xla_gives_the_same_bits(algorithm: str, text: str, shape: tuple[int, ...]) -> None:
    kind = {
        "THREE_FRY": lax.RandomAlgorithm.RNG_THREE_FRY,
        "PHILOX": lax.RandomAlgorithm.RNG_PHILOX,
        "DEFAULT": lax.RandomAlgorithm.RNG_DEFAULT,
    }[algorithm]
    # The counter carries into its upper half on the way.
    state = np.array([0x0123456789ABCDEF, 2**64 - 2], np.uint64)
    with jax.enable_x64(True):
        expected = lax.rng_bit_generator(state, shape, dtype=DTYPES[text], algorithm=kind)
    got = rng_bit_generator(state, rng_algorithm=algorithm, shape=shape, dtype=DTYPES[text])
    for mine, theirs in zip(got, expected, strict=True):
        assert same_bits(mine, np.asarray(theirs))


def test_long_philox_state_and_narrow_types() -> None:
    state = np.array([7, 2**64 - 1, 3], np.uint64)
    new_state, bits = rng_bit_generator(state, rng_algorithm="PHILOX", shape=(8,), dtype=np.dtype(U32))
    assert new_state.tolist() == [7, 1, 4]
    for text in ("i4", "ui2", "i32", "f32", "bf16", "f8E4M3FN"):
        _, narrow = rng_bit_generator(state, rng_algorithm="PHILOX", shape=(8,), dtype=DTYPES[text])
        low = [int(b) for b in bits & U32((1 << min(narrow.itemsize * 8, 32)) - 1)]
        stored = narrow.astype(np.int8).view(np.uint8) if text in ("i4", "ui2") else narrow.view(f"u{narrow.itemsize}")
        mask = {"i4": 15, "ui2": 3}.get(text, 0xFFFFFFFF)
        assert [int(v) & mask for v in stored] == [v & mask for v in low]


def test_uniform_stays_in_its_interval() -> None:
    for text in ("f32", "bf16", "f16", "f64"):
        a, b = (np.array(v, DTYPES[text]) for v in (1, 2))
        x = rng(a, b, shape=(1000,), rng_distribution="UNIFORM")
        assert x.dtype == DTYPES[text] and (x >= a).all() and (x < b).all() and len(set(x.tolist())) > 50
    x = rng(np.array(-3, np.int8), np.array(4, np.int8), shape=(500,), rng_distribution="UNIFORM")
    assert set(x.tolist()) == set(range(-3, 4))
    assert rng(np.array(0), np.array(2**63 - 1), shape=(), rng_distribution="UNIFORM").shape == ()


def test_normal_has_its_moments_and_seeds_differ() -> None:
    mean, deviation = np.array(3.0, np.float32), np.array(2.0, np.float32)
    x = rng(mean, deviation, shape=(100, 100), rng_distribution="NORMAL")
    assert abs(x.mean() - 3) < 0.1 and abs(x.std() - 2) < 0.1
    assert same_bits(x, rng(mean, deviation, shape=(100, 100), rng_distribution="NORMAL"))
    other = rng(mean, deviation, shape=(100, 100), rng_distribution="NORMAL", seed=1)
    assert not np.array_equal(x, other)
