"""Random bits from counters: Threefry 2x32-20 and Philox 4x32-10, laid out as XLA lays them out.

Source of the generators: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType, is_float, is_unsigned, width_of
from gcomp.reference.numpy.rounding import from_value_bits, narrow, quiet, widen

_U32 = np.dtype(np.uint32)
_U64 = np.dtype(np.uint64)
_LOW = np.uint64(0xFFFFFFFF)


@quiet
def rng_bit_generator(
    initial_state: Array, *, rng_algorithm: str, shape: Sequence[int], dtype: DType
) -> tuple[Array, Array]:
    """(output_state, output): uniform random bits of `dtype`, a pure function of `initial_state`.

    "THREE_FRY" takes a ui64[2] state (key, counter); "PHILOX" a ui64[2] or ui64[3] state (key, counter low,
    counter high). "DEFAULT" is Philox for states of either size. Element types narrower than 32 bits take the
    low bits of a 32-bit draw each.
    """
    dtype = np.dtype(dtype)
    state = initial_state.astype(_U64)
    generate = _threefry_bits if rng_algorithm == "THREE_FRY" else _philox_bits
    wide = width_of(dtype) == 64
    new_state, bits = generate(state, tuple(shape), wide)
    if wide:
        output = np.array(bits.view(dtype))
    else:
        carrier = np.dtype(f"uint{dtype.itemsize * 8}")
        mask = np.uint32((1 << width_of(dtype)) - 1)
        output = from_value_bits((bits & mask).astype(carrier), dtype)
    return new_state.astype(initial_state.dtype), output


# Threefry

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Twenty rounds on pairs of ui32: (low word, high word) of the key and of the counters."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = x ^ y
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _threefry_bits(state: Array, shape: tuple[int, ...], wide: bool) -> tuple[Array, Array]:
    key = _words(state[0])
    if wide:
        count = int(np.prod(shape, dtype=np.int64))
        low, high = threefry2x32(key, _words(_counters(state[1], count)))
        return _advance(state, count), _join(low, high).reshape(shape)
    # Both words of a draw are used: they alternate along one dimension, the first even one or else the
    # longest.
    axis = _split_axis(shape)
    half = [-(-n // 2) if d == axis else n for d, n in enumerate(shape)]
    count = int(np.prod(half, dtype=np.int64))
    low, high = (np.reshape(w, half) for w in threefry2x32(key, _words(_counters(state[1], count))))
    if not shape:
        return _advance(state, count), np.array(low)
    pairs = np.stack([low, high], axis=axis + 1)
    whole = pairs.reshape([2 * n if d == axis else n for d, n in enumerate(half)])
    return _advance(state, count), np.ascontiguousarray(np.take(whole, range(shape[axis]), axis=axis))


def _split_axis(shape: tuple[int, ...]) -> int:
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=lambda d: shape[d], default=0)


def _counters(start: Array, count: int) -> Array:
    return start + np.arange(count, dtype=_U64)


def _advance(state: Array, count: int) -> Array:
    return np.array([state[0], state[1] + np.uint64(count)], _U64)


# Philox

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


def philox4x32(key: tuple[Array, Array], counter: tuple[Array, ...]) -> tuple[Array, ...]:
    """Ten rounds on quadruples of ui32, least significant word first."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        first, second = a.astype(_U64) * _MULTIPLIERS[0], c.astype(_U64) * _MULTIPLIERS[1]
        (low0, high0), (low1, high1) = _words(first), _words(second)
        a, b, c, d = high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0
        k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
    return a, b, c, d


def _philox_bits(state: Array, shape: tuple[int, ...], wide: bool) -> tuple[Array, Array]:
    count = int(np.prod(shape, dtype=np.int64))
    draws = -(-count * (2 if wide else 1) // 4)
    # In the short state the key is also the upper half of the counter.
    high = state[2] if state.size > 2 else state[0]
    lows, highs = _add128(state[1], high, np.arange(draws, dtype=_U64))
    words = philox4x32(_words(state[0]), (*_words(lows), *_words(highs)))
    columns = [_join(words[0], words[1]), _join(words[2], words[3])] if wide else list(words)
    bits = np.stack(columns, axis=1).reshape(-1)[:count].reshape(shape)
    new_low, new_high = _add128(state[1], high, np.array(draws, _U64))
    return np.array([state[0], new_low, new_high][: state.size], _U64), np.array(bits)


def _add128(low: Array, high: Array, amount: Array) -> tuple[Array, Array]:
    total = np.asarray(low + amount)
    return total, np.asarray(high + (total < low).astype(_U64))


def _words(x: Array) -> tuple[Array, Array]:
    return np.asarray(x & _LOW).astype(_U32), np.asarray(x >> np.uint64(32)).astype(_U32)


def _join(low: Array, high: Array) -> Array:
    return low.astype(_U64) | (high.astype(_U64) << np.uint64(32))


# Distributions


@quiet
def rng(a: Array, b: Array, *, shape: Sequence[int], rng_distribution: str, seed: int = 0) -> Array:
    """Random numbers: "UNIFORM" in [a, b), "NORMAL" with mean a and standard deviation b.

    The specification leaves the generator open. Here it is Threefry with key `seed` and counter 0, one 64-bit
    draw per number (two for NORMAL), and so a pure function: the same seed gives the same tensor. Uniform
    integers are the draw modulo b - a; uniform floats u in [0, 1) with 53 bits are a + (b - a) * u rounded
    once, and never b; normal floats are Box and Muller's cosine of two such draws.
    """
    state = np.array([seed, 0], _U64)
    count = int(np.prod(shape, dtype=np.int64))
    _, draws = _threefry_bits(state, (2 * count,), wide=True)
    if not is_float(a.dtype):
        return _uniform_integers(a, b, draws[:count]).reshape(tuple(shape))
    first, second = (np.asarray((x >> np.uint64(11)).astype(np.float64) * 2.0**-53) for x in np.split(draws, 2))
    if rng_distribution == "NORMAL":
        normal = np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)
        return narrow(widen(a) + widen(b) * normal, a.dtype).reshape(tuple(shape))
    uniform = narrow(widen(a) + (widen(b) - widen(a)) * first, a.dtype)
    # Rounding to the element type may reach b itself.
    return np.where(uniform.astype(np.float64) < widen(b), uniform, a).reshape(tuple(shape))


def _uniform_integers(a: Array, b: Array, draws: Array) -> Array:
    if a.dtype == np.bool_:
        return np.where(draws & np.uint64(1), b, a)
    carrier = np.dtype(np.uint64 if is_unsigned(a.dtype) else np.int64)
    low, high = convert(a, dtype=carrier), convert(b, dtype=carrier)
    span = np.asarray((high - low).astype(_U64))
    offsets = draws % np.where(span == 0, np.uint64(1), span)
    return convert(np.asarray(low + offsets.astype(carrier)), dtype=a.dtype)
