"""The four classes: what each lets pass, and what each reports."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import DTYPES, text_of
from gcomp.errors import UsageError
from gcomp.reference.contract import Exactness, compare

from .samples import FLOATS, INTEGERS, edges

E0, E1, E2, E3 = Exactness


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + [np.dtype(np.bool_)], ids=str)
def test_a_tensor_is_equal_to_itself_in_every_class(dtype: np.dtype) -> None:
    x = np.array([False, True]) if dtype == np.bool_ else edges(dtype)
    for exactness in Exactness:
        assert compare(x, x.copy(), exactness, wider=x.astype(np.float64)) == []


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("far", [0.0, 1.0, 1e-3, np.inf, np.nan])
def test_what_e1_allows_e2_and_e3_allow_however_wrong_both_are(dtype: np.dtype, far: float) -> None:
    """A judge need not evaluate in wider precision where E1 holds already."""
    x = edges(dtype)
    flipped = np.where((x == 0) | np.isnan(x), -x, x)
    assert compare(x, flipped, E1) == []
    with np.errstate(invalid="ignore"):  # inf - inf
        wider = x.astype(np.float64) + far
    for exactness in (E2, E3):
        assert compare(x, flipped, exactness, wider=wider) == []


def test_e0_sees_every_bit() -> None:
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    (found,) = compare(nans[:1], nans[1:], E0)
    assert found.index == (0,) and found.ulps is None and "0x7fc00001" in found.actual
    assert compare(nans[:1], nans[1:], E1) == []
    (found,) = compare(f32(0.0), f32(-0.0), E0)
    assert found.ulps == 0
    assert compare(f32(0.0), f32(-0.0), E1) == []
    z = np.array([complex(0.0, 1.0)], np.complex64)
    assert compare(z, np.conj(np.conj(z) * -1) * -1, E1) == []
    assert len(compare(z, z + np.complex64(1e-3j), E1)) == 1


def test_e1_allows_no_other_value() -> None:
    (found,) = compare(f32(1.0, 2.0), np.nextafter(f32(1.0, 2.0), f32(1.0, 9.0)), E1)
    assert found.index == (1,) and found.ulps == 1
    (found,) = compare(f32(-1e-45), f32(1e-45), E1)
    assert found.ulps == 2


def test_types_and_shapes_come_first() -> None:
    (found,) = compare(f32(1.0), np.array([1.0]), E3)
    assert (found.reason, found.expected, found.actual) == ("element type", "f32", "f64")
    (found,) = compare(f32(1.0), f32(1.0, 2.0), E3)
    assert found.reason == "shape" and found.index is None


def test_integers_are_exact_in_every_class_but_e3() -> None:
    a, b = np.array([[1, 2]], DTYPES["i4"]), np.array([[1, -3]], DTYPES["i4"])
    for exactness in (E0, E1, E2):
        (found,) = compare(a, b, exactness)
        assert found.index == (0, 1) and found.ulps == 5
    assert compare(a, b, E3) == []


@pytest.mark.parametrize("exactness", [E2, E3])
def test_classes_are_compared_exactly(exactness: Exactness) -> None:
    values = f32(np.nan, np.inf, -np.inf, 1.0)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            found = compare(f32(a), f32(b), exactness, wider=np.array([float(a)]))
            assert bool(found) == (i != j)


def test_e2_measures_against_the_wider_evaluation() -> None:
    rng = np.random.default_rng(0)
    wider = rng.normal(size=1000)
    original = (wider * (1 + 4 * 2.0**-24 * rng.uniform(-1, 1, 1000))).astype(np.float32)
    similar = (wider * (1 + 4 * 2.0**-24 * rng.uniform(-1, 1, 1000))).astype(np.float32)
    worse = (wider * (1 + 40 * 2.0**-24 * rng.uniform(-1, 1, 1000))).astype(np.float32)
    exact = wider.astype(np.float32)
    assert compare(original, similar, E2, wider=wider) == []
    assert compare(original, exact, E2, wider=wider) == []
    assert compare(exact, exact.copy(), E2, wider=wider) == []
    (found,) = compare(original, worse, E2, wider=wider)
    assert found.reason.startswith("RMS error")


def test_e2_takes_an_infinity_that_the_wider_evaluation_gives_too() -> None:
    rounded, exact = f32(-5.4e8, 1.0), f32(-np.inf, 1.0)
    assert compare(rounded, exact, E2, wider=exact.astype(np.float64)) == []
    for wider in ([-5.4e8, 1.0], [np.inf, 1.0], [np.nan, 1.0]):
        assert compare(rounded, exact, E2, wider=np.array(wider))
    # A number in place of an infinity is measured against nothing.
    assert compare(exact, rounded, E2, wider=rounded.astype(np.float64))


def test_e2_bound_catches_one_bad_element_among_many() -> None:
    wider = np.ones(10_000)
    original = wider.astype(np.float32) + np.float32(2.0**-22)
    bad = original.copy()
    bad[77] = 1 + 2.0**-18
    bound = np.full(10_000, 2.0**-20)
    assert compare(original, bad, E2, wider=wider) == []
    (found,) = compare(original, bad, E2, wider=wider, bound=bound)
    assert found.index == (77,) and found.ulps == 30


def test_e2_needs_a_wider_evaluation() -> None:
    with pytest.raises(UsageError):
        compare(f32(1.0), f32(1.0), E2)


def test_e2_of_huge_and_tiny_errors() -> None:
    huge = np.array([1e300, 1e300])
    assert compare(huge, huge * (1 + 1e-15), E2, wider=huge) != []
    tiny = np.array([1e-320, 1e-320])
    assert compare(tiny, tiny.copy(), E2, wider=tiny) == []


def test_the_list_is_limited() -> None:
    x = np.zeros(1000, np.float32)
    assert len(compare(x, x + 1, E0)) == 100
    assert len(compare(x, x + 1, E0, limit=3)) == 3


def test_rank_zero_and_empty() -> None:
    (found,) = compare(np.array(1.0), np.array(2.0), E0)
    assert found.index == ()
    assert "at []: expected 1.0, got 2.0" in str(found)
    assert compare(f32(), f32(), E2, wider=np.zeros(0)) == []
    assert text_of(f32().dtype) == "f32"
