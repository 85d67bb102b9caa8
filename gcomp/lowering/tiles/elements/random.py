"""Random bits from counters, as the reference makes them: Threefry 2x32-20 and Philox 4x32-10, element by element."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, linear
from gcomp.dims import Size, ceildiv, floordiv, mod, product
from gcomp.dtypes import bit_width, stored_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import own_bits
from gcomp.lowering.tiles.elements.bitwise import from_unsigned, right, shift_left
from gcomp.lowering.tiles.elements.table import Elements, elements_of

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)

Words = tuple[SSAValue, SSAValue]
"""The low and the high word of a number."""


@elements_of(hlo.RngBitGeneratorOp)
def rng_bit_generator(elements: Elements, op: hlo.RngBitGeneratorOp, result: int, access: IndexingMap) -> SSAValue:
    """The next state, or the bits at an index."""
    shape, kind = shape_of(op.output), dtype_text(op.output.type)
    width = bit_width(kind)
    wide, threefry = width == 64, op.value("rng_algorithm") == "THREE_FRY"
    size: Size = shape_of(op.initial_state)[0]
    state = [elements(op.initial_state, elements.frame.access((size,), (i,))) for i in range(int(str(size)))]
    if result == 0:
        count = _draws(shape, wide) if threefry else ceildiv(product(shape) * (2 if wide else 1), 4)
        return _advance(elements, state, count, access.indices[0], threefry)
    bits = (_threefry if threefry else _philox)(elements, state, shape, access.indices, wide)
    b = elements.b
    if width == 1:
        return b.apply("ne", b.apply("and", bits, b.constant(1, "ui32")), b.constant(0, "ui32"))
    bits = bits if width >= 32 else b.cast(bits, f"ui{stored_width(kind)}")
    return from_unsigned(b, op, own_bits(b, bits, kind), kind)


def _number(elements: Elements, size: Size) -> SSAValue:
    """A position as a 64-bit number."""
    b = elements.b
    return b.bitcast(b.cast(elements.frame.position(size), "i64"), "ui64")


def _advance(elements: Elements, state: list[SSAValue], count: Size, index: Size, threefry: bool) -> SSAValue:
    """An element of the next state: the counter moves on, and carries into its upper half."""
    b, place = elements.b, elements.frame.position(index)
    low = b.add(state[1], _number(elements, count))
    found = b.apply("select", b.apply("eq", place, b.position(1)), low, state[0])
    if len(state) == 3 and not threefry:
        carry = b.cast(b.apply("lt", low, state[1]), "ui64")
        found = b.apply("select", b.apply("eq", place, b.position(2)), b.add(state[2], carry), found)
    return found


def _words(b: TileBuilder, x: SSAValue) -> Words:
    return b.cast(x, "ui32"), b.cast(right(b, x, 32), "ui32")


def _join(b: TileBuilder, low: SSAValue, high: SSAValue) -> SSAValue:
    return b.apply("or", b.cast(low, "ui64"), shift_left(b, b.cast(high, "ui64"), 32))


# ---- Threefry -------------------------------------------------------------------------------------------------------


def _split(shape: tuple[Size, ...]) -> int | None:
    """The dimension along which the two words of a draw alternate: the first even one, or else the longest."""
    if not shape:
        return None
    sizes = [n if isinstance(n, int) else 0 for n in shape]
    even = [k for k, n in enumerate(sizes) if n % 2 == 0]
    return even[0] if even else max(range(len(sizes)), key=lambda k: sizes[k])


def _halve(shape: tuple[Size, ...], axis: int | None) -> tuple[Size, ...]:
    return tuple([ceildiv(n, 2) if k == axis else n for k, n in enumerate(shape)])


def _draws(shape: tuple[Size, ...], wide: bool) -> Size:
    return product(shape if wide else _halve(shape, _split(shape)))


def _threefry(
    elements: Elements, state: list[SSAValue], shape: tuple[Size, ...], indices: tuple[Size, ...], wide: bool
) -> SSAValue:
    b, frame = elements.b, elements.frame
    axis = None if wide else _split(shape)
    own = tuple([floordiv(i, 2) if k == axis else i for k, i in enumerate(indices)])
    place = frame.place(_halve(shape, axis), own)
    counter = b.add(state[1], _number(elements, place))
    low, high = threefry2x32(b, _words(b, state[0]), _words(b, counter))
    if wide:
        return _join(b, low, high)
    if axis is None:
        return low
    odd = b.apply("eq", frame.position(mod(indices[axis], 2)), b.position(1))
    return b.apply("select", odd, high, low)


def threefry2x32(b: TileBuilder, key: Words, counter: Words) -> Words:
    """Twenty rounds."""
    parity = b.apply("xor", b.apply("xor", *key), b.constant(PARITY, "ui32"))
    keys = (*key, parity)
    x, y = b.add(counter[0], keys[0]), b.add(counter[1], keys[1])
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = b.add(x, y)
            y = b.apply("xor", x, b.apply("or", shift_left(b, y, rotation), right(b, y, 32 - rotation)))
        x = b.add(x, keys[(group + 1) % 3])
        y = b.add(b.add(y, keys[(group + 2) % 3]), b.constant(group + 1, "ui32"))
    return x, y


# ---- Philox ---------------------------------------------------------------------------------------------------------


def _philox(
    elements: Elements, state: list[SSAValue], shape: tuple[Size, ...], indices: tuple[Size, ...], wide: bool
) -> SSAValue:
    b, frame = elements.b, elements.frame
    share = 2 if wide else 4
    place = linear(shape, indices)
    draw, column = (frame.simplify(frame.access((1,), (f(place, share),))).indices[0] for f in (floordiv, mod))
    # In the short state the key is also the upper half of the counter.
    upper = state[2] if len(state) > 2 else state[0]
    low = b.add(state[1], _number(elements, draw))
    high = b.add(upper, b.cast(b.apply("lt", low, state[1]), "ui64"))
    words = philox4x32(b, _words(b, state[0]), (*_words(b, low), *_words(b, high)))
    choices = [_join(b, *words[:2]), _join(b, *words[2:])] if wide else list(words)
    which, found = frame.position(column), choices[0]
    for n, choice in enumerate(choices[1:], 1):
        found = b.apply("select", b.apply("eq", which, b.position(n)), choice, found)
    return found


def philox4x32(b: TileBuilder, key: Words, counter: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
    """Ten rounds."""
    x, y, z, w = counter
    keys = list(key)
    for _ in range(10):
        products = [
            b.multiply(b.cast(v, "ui64"), b.constant(m, "ui64")) for v, m in zip((x, z), MULTIPLIERS, strict=True)
        ]
        (low0, high0), (low1, high1) = (_words(b, p) for p in products)
        x, y = b.apply("xor", b.apply("xor", high1, y), keys[0]), low1
        z, w = b.apply("xor", b.apply("xor", high0, w), keys[1]), low0
        keys = [b.add(k, b.constant(step, "ui32")) for k, step in zip(keys, WEYL, strict=True)]
    return x, y, z, w


__all__ = ["philox4x32", "threefry2x32"]
