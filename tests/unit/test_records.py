"""Records are what frozen dataclasses are, for all that their users do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from gcomp.records import record


@record
class Point:
    """A place, and notes that do not count."""

    KIND: ClassVar[str] = "point"
    x: int
    y: int = 0
    notes: list[str] = field(default_factory=list[str], compare=False)

    @property
    def sum(self) -> int:
        """Both."""
        return self.x + self.y


@dataclass(frozen=True)
class Peer:
    """The same, by the standard library."""

    KIND: ClassVar[str] = "point"
    x: int
    y: int = 0
    notes: list[str] = field(default_factory=list[str], compare=False)


USES: list[Callable[[Any], object]] = [
    lambda cls: cls(1),
    lambda cls: cls(1, 2),
    lambda cls: cls(y=3, x=1),
    lambda cls: cls(1, notes=["n"]),
    lambda cls: replace(cls(1, 2), y=5),
]


@pytest.mark.parametrize("use", USES)
def test_objects_have_the_fields_that_a_dataclass_has(use: Callable[[Any], object]) -> None:
    found, peer = use(Point), use(Peer)
    assert asdict(found) == asdict(peer)  # type: ignore[call-overload]
    assert repr(found) == repr(peer).replace("Peer", "Point")
    assert hash(found) == hash(peer)
    assert [f.name for f in fields(Point)] == [f.name for f in fields(Peer)] and is_dataclass(Point)


WRONG: list[Callable[[Any], object]] = [
    lambda cls: cls(),
    lambda cls: cls(1, 2, [], 4),
    lambda cls: cls(1, x=1),
    lambda cls: cls(1, z=1),
]


@pytest.mark.parametrize("use", WRONG)
def test_what_is_not_declared_is_refused(use: Callable[[Any], object]) -> None:
    for cls in (Point, Peer):
        with pytest.raises(TypeError):
            use(cls)


def test_equality_is_by_class_and_compared_fields() -> None:
    assert Point(1, 2, ["a"]) == Point(1, 2, ["b"]) and hash(Point(1, 2, ["a"])) == hash(Point(1, 2, ["b"]))
    assert Point(1, 2) != Point(2, 1) and Point(1, 2) != Peer(1, 2) and Point(1).notes is not Point(1).notes
    nan = float("nan")
    assert Point(nan) == Point(nan)  # type: ignore[arg-type] - as tuples compare


def test_fields_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del point.x  # type: ignore[misc]
    assert point == Point(1)


def test_they_are_copied_pickled_and_matched() -> None:
    point = Point(1, 2, ["a"])
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):  # noqa: S301 - its own
        assert other == point and other.notes == ["a"] and other.sum == 3
    match point:
        case Point(x, y=y):
            assert (x, y) == (1, 2)


def test_own_methods_stay_and_what_comes_after_is_done() -> None:
    @record
    class Checked:
        """A number that is not negative."""

        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError(self.value)

        def __repr__(self) -> str:
            return f"<{self.value}>"

    assert repr(Checked(3)) == "<3>"
    with pytest.raises(ValueError, match="-1"):
        Checked(-1)
