"""A cache of bounded size that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """At most `size` values by key; safe to use from several threads, which may make the same value twice."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.made = 0
        """How many values were made so far."""
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made on first use."""
        with self._lock:
            if (found := self._values.get(key)) is not None:
                self._values.move_to_end(key)
                return found
        value = make()
        with self._lock:
            self.made += 1
            self._values[key] = value
            while len(self._values) > self.size:
                self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._values)
