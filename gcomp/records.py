"""Frozen dataclasses that take a tenth of the time to define, for those of which there are few objects.

`dataclasses` writes six functions for each frozen class as text, and compiles them: that was a third of the time of
loading a model, and a tenth of that of compiling a small one. Here all classes share their functions. To make an object
takes twice as long or more: what is made by the thousand is better a dataclass, or a named tuple.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The class as a frozen dataclass, which `fields`, `replace`, `asdict` and `match` take it for."""
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    for name, function in _SHARED.items():
        if name not in vars(made):
            setattr(made, name, function)
    made._compared = tuple([f.name for f in fields(made) if f.compare])
    made._hashed = tuple([f.name for f in fields(made) if (f.compare if f.hash is None else f.hash)])
    made._has_more_to_do = hasattr(made, "__post_init__")
    return made


def _init(self: Any, *values: Any, **named: Any) -> None:
    names, given = self.__match_args__, self.__dict__
    given.update(zip(names, values, strict=False))
    if named or len(values) != len(names):
        _complete(self, given, values, named)
    if self._has_more_to_do:
        self.__post_init__()


def _complete(self: Any, given: dict[str, Any], values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Set the fields that are given by name, and those that are not given. TypeError for what is not as declared."""
    names = self.__match_args__
    if len(values) > len(names) or not given.keys().isdisjoint(named) or not named.keys() <= {*names}:
        raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, not {len(values)} values and {[*named]}")
    given.update(named)
    for f in fields(self) if len(given) < len(names) else ():
        if f.name not in given:
            if f.default is MISSING and f.default_factory is MISSING:
                raise TypeError(f"{type(self).__name__} misses {f.name}")
            given[f.name] = f.default if f.default_factory is MISSING else f.default_factory()


def _eq(self: Any, other: object) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _key(self, self._compared) == _key(other, self._compared)


def _hash(self: Any) -> int:
    return hash(_key(self, self._hashed))


def _key(self: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(map(self.__dict__.__getitem__, names))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


_SHARED: dict[str, Any] = {
    "__init__": _init, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr,
    "__setattr__": _refuse, "__delattr__": _refuse,
}  # fmt: skip

__all__ = ["record"]
