"""A cache of bounded size that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


_REMEMBERED = 4096


class Lru(Generic[K, V]):
    """At most `size` values by key; safe to use from several threads, which may make the same value twice.

    `again` is called, once, when a value is made that had been forgotten: `size` is too small for what is asked.
    """

    def __init__(self, size: int, again: Callable[[], None] | None = None) -> None:
        self.size = size
        self.made = 0
        """How many values were made so far."""
        self._again = again
        self._forgotten: set[int] = set()
        """Hashes of keys, as many as are worth a warning."""
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
                forgotten, _ = self._values.popitem(last=False)
                if self._again is not None and len(self._forgotten) < _REMEMBERED:
                    self._forgotten.add(hash(forgotten))
            told = self._again if hash(key) in self._forgotten else None
            if told is not None:
                self._again = None
        if told is not None:
            told()
        return value

    def __len__(self) -> int:
        return len(self._values)
