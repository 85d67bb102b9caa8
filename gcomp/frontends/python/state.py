"""What a function sees beside its arguments: globals, closure cells, attributes. Read anew at every call.

A function that was traced knows the values that Python had then. So that a change never gives a stale answer, its state
is walked before each call: every value that its code can reach by name is a part of the key under which the trace is
kept. Tensors take part by their types only: they are inputs of the compiled program, so new weights need no new trace.

Installed libraries and gcomp itself are taken to be constant, and so is what has no Python state.
"""

from __future__ import annotations

import argparse
import dis
import enum
import functools
import hashlib
import random
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from gcomp.dims import Dim
from gcomp.errors import UnsupportedError
from gcomp.owners import is_users
from gcomp.tensors.eager import Array
from gcomp.tensors.tensor import Tensor

_LIMIT = 100_000
"""How many values a function may see."""
_OF_CLASSES = frozenset(("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__"))
_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), range)


class Same:
    """An object as a part of a key: equal to itself only, and kept alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        name = getattr(self.value, "__qualname__", None) or getattr(self.value, "co_qualname", None)
        return str(name) if name else f"a {type(self.value).__name__}"


class State(NamedTuple):
    """A walk: tokens by path, and the tensors that were met."""

    tokens: tuple[tuple[str, Any], ...]
    tensors: tuple[Tensor, ...]


def state_of(roots: Iterable[tuple[str, Any]]) -> State:
    """The state that can be reached from values with names for people."""
    walk = _Walk()
    for path, value in roots:
        walk.add(path, value)
    return State(tuple(walk.tokens), tuple(walk.tensors))


def generator_states() -> str:
    """The state of Python's and NumPy's own generators of random numbers."""
    return repr((random.getstate(), np.random.get_state(legacy=False)["state"]))


def differences(before: State, after: State) -> list[str]:
    """What changed, for people: `scale: 2 -> 3`."""
    old, new = dict(before.tokens), dict(after.tokens)
    both = [path for path in new if path in old and old[path] != new[path]]
    found = [f"{path}: {_show(old[path])} -> {_show(new[path])}" for path in both]
    found += [f"{path} is new" for path in new if path not in old]
    return found + [f"{path} is gone" for path in old if path not in new]


def _show(token: Any) -> str:
    kind, *rest = token
    text = repr(rest[-1]) if rest else kind
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Walk:
    """One walk over values, each of them once."""

    def __init__(self) -> None:
        self.tokens: list[tuple[str, Any]] = []
        self.tensors: list[Tensor] = []
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []

    def add(self, path: str, value: Any) -> None:
        """Walk a value and what it leads to."""
        if type(value) in _PLAIN:
            self._token(path, "value", type(value), value)
        elif isinstance(value, float | complex):
            # NaN is unlike itself, and -0 like 0, as numbers.
            self._token(path, "value", type(value), repr(value))
        elif (place := self._seen.get(id(value))) is not None:
            self._token(path, "seen", place)
        else:
            self._seen[id(value)] = len(self._seen)
            self._alive.append(value)
            if len(self._seen) > _LIMIT:
                raise UnsupportedError(
                    f"a function sees more than {_LIMIT} values beside its arguments", why=f"one of them is {path}"
                )
            self._object(path, value)

    def _token(self, path: str, *token: Any) -> None:
        self.tokens.append((path, token))

    def _object(self, path: str, value: Any) -> None:
        for kinds, visit in _VISITS:
            if isinstance(value, kinds):
                visit(self, path, value)
                return
        self.instance(path, value)

    # ---- tensors and arrays ----

    def tensor(self, path: str, value: Tensor) -> None:
        self._token(path, "tensor", value.element, value.shape, Same(value) if value.is_traced else None)
        if not value.is_traced:
            self.tensors.append(value)

    def array(self, path: str, value: Array) -> None:
        if value.dtype.hasobject:
            self._token(path, "object", Same(value))
            return
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()
        self._token(path, "array", value.dtype.name, value.shape, digest)

    def number(self, path: str, value: Any) -> None:
        self._token(path, "value", type(value), value.tobytes(), repr(value))

    def constant(self, path: str, value: Any) -> None:
        self._token(path, "object", Same(value))

    def by_value(self, path: str, value: Any) -> None:
        self._token(path, "value", type(value), value)

    # ---- containers ----

    def sequence(self, path: str, value: Any) -> None:
        self._token(path, "container", type(value), len(value))
        for i, part in enumerate(value):
            self.add(f"{path}[{i}]", part)

    def walk_unordered(self, path: str, value: Any) -> None:
        self._token(path, "set", type(value), frozenset(map(_hash_key, value)))

    def mapping(self, path: str, value: Mapping[Any, Any]) -> None:
        self._token(path, "container", type(value), tuple(map(_hash_key, value)))
        for key, part in value.items():
            self.add(f"{path}[{key!r}]", part)
        if type(value) is not dict:
            self._attributes(path, value)

    # ---- code ----

    def function(self, path: str, value: types.FunctionType) -> None:
        code = value.__code__
        self._token(path, "function", Same(code))
        if not is_users(code.co_filename):
            return
        name = path or code.co_name
        self.add(f"{name}.__defaults__", value.__defaults__)
        self.add(f"{name}.__kwdefaults__", value.__kwdefaults__)
        for free, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            self._cell(free, cell)
        names, attributes = _names(code)
        for global_ in names:
            if global_ in value.__globals__:
                found = value.__globals__[global_]
                self.add(global_, found)
                if isinstance(found, types.ModuleType) and is_users(getattr(found, "__file__", None) or "<frozen"):
                    for attribute in sorted(attributes & vars(found).keys()):
                        self.add(f"{global_}.{attribute}", vars(found)[attribute])
            else:
                self._token(global_, "absent")

    def _cell(self, name: str, cell: types.CellType) -> None:
        try:
            content = cell.cell_contents
        except ValueError:
            self._token(name, "absent")
            return
        self.add(name, content)

    def method(self, path: str, value: types.MethodType) -> None:
        self._token(path, "method")
        self.add(f"{path}.__self__", value.__self__)
        self.add(path, value.__func__)

    def builtin(self, path: str, value: types.BuiltinFunctionType) -> None:
        self._token(path, "builtin", value.__qualname__)
        if isinstance(value.__self__, _GENERATORS):
            self.generator(f"{path}.__self__", value.__self__)
        elif not isinstance(value.__self__, types.ModuleType | type(None)):
            self.add(f"{path}.__self__", value.__self__)

    def partial(self, path: str, value: functools.partial[Any]) -> None:
        self._token(path, "partial")
        for name in ("func", "args", "keywords"):
            self.add(f"{path}.{name}", getattr(value, name))

    def accessor(self, path: str, value: Any) -> None:
        """Properties, class and static methods: by their functions."""
        self._token(path, "accessor", type(value))
        for name in ("fget", "__func__", "func"):
            if callable(function := getattr(value, name, None)):
                self.add(path, function)

    def class_(self, path: str, value: type) -> None:
        self._token(path, "class", Same(value))
        for one in value.__mro__:
            if is_users(_file_of(one)):
                for name, part in sorted(vars(one).items()):
                    if name not in _OF_CLASSES:
                        self.add(f"{path}.{name}", part)

    # ---- objects ----

    def generator(self, path: str, value: Any) -> None:
        """Generators of random numbers, by their state."""
        if isinstance(value, random.Random):
            state: Any = value.getstate()
        elif isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
        else:
            state = value.bit_generator.state
        self._token(path, "generator", Same(value), repr(state))

    def instance(self, path: str, value: Any) -> None:
        """An object: of a class of the user's by its attributes, any other by itself."""
        kind = type(cast(object, value))
        wrapped = getattr(value, "__dict__", {}).get("__wrapped__") if kind.__module__.startswith("gcomp.") else None
        if wrapped is not None:  # a function of `gcomp.function`
            self._token(path, "wrapper", Same(kind))
            self.add(path, wrapped)
        elif is_users(_file_of(kind)) or isinstance(value, types.SimpleNamespace | argparse.Namespace):
            self._token(path, "instance", None if _is_plain(kind) else Same(value))
            self.add(f"type({path})", kind)
            self._attributes(path, value)
        else:
            self._token(path, "object", Same(value))

    def _attributes(self, path: str, value: Any) -> None:
        slots = [s for one in type(value).__mro__ for s in _slots(one)]
        parts = {**{s: getattr(value, s) for s in slots if hasattr(value, s)}, **getattr(value, "__dict__", {})}
        for name, part in parts.items():
            self.add(f"{path}.{name}", part)


def _is_plain(kind: type) -> bool:
    """Whether Python attributes are all that objects of a class have: none of its bases is written in C."""
    return all(one is object or one.__flags__ & 1 << 9 for one in kind.__mro__)


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(s for s in found if s not in _OF_CLASSES)


def _hash_key(key: Any) -> Any:
    return (type(key), key) if isinstance(key, _PLAIN) else Same(key)


@lru_cache(4096)
def _file_of(kind: type) -> str:
    """The file of a class's module; "<frozen" for one that has none."""
    module = sys.modules.get(kind.__module__)
    if module is not None and (file := getattr(module, "__file__", None)):
        return str(file)
    return "<user>" if kind.__module__ == "__main__" else "<frozen"


@lru_cache(4096)
def _names(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """The global names that code uses, and all attributes that it names, functions inside of it included."""
    names: dict[str, None] = {}
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
            names[instruction.argval] = None
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "STORE_ATTR", "DELETE_ATTR"):
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, inner_attributes = _names(constant)
            names.update(dict.fromkeys(inner))
            attributes |= inner_attributes
    return tuple(names), frozenset(attributes)


_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
_Visit = Callable[[_Walk, str, Any], None]
_VISITS = cast(
    "tuple[tuple[Any, _Visit], ...]",
    (
        (Tensor, _Walk.tensor),
        (np.ndarray, _Walk.array),
        (np.generic, _Walk.number),
        (enum.Enum, _Walk.constant),
        ((np.dtype, Dim), _Walk.by_value),
        (types.ModuleType, _Walk.constant),
        (type, _Walk.class_),
        (types.FunctionType, _Walk.function),
        (types.MethodType, _Walk.method),
        (types.BuiltinFunctionType, _Walk.builtin),
        (functools.partial, _Walk.partial),
        ((property, classmethod, staticmethod, functools.cached_property), _Walk.accessor),
        (_GENERATORS, _Walk.generator),
        ((tuple, list), _Walk.sequence),
        ((set, frozenset), _Walk.walk_unordered),
        (dict, _Walk.mapping),
    ),
)
"""What a value is -> how it is walked; the first that fits."""
