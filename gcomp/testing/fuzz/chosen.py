"""Which programs a campaign about lines of source looks at: new ones, and variations of those that ran the lines.

A program is made and transformed, which is cheaper than judging it, and judged only where a line ran. New ones are
taken from the topics that reach the lines (Thompson sampling); variations from all the ways that the lines' files were
gone through, each as often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from gcomp.testing.fuzz.numbers import vary_number
from gcomp.testing.fuzz.source_lines import parts

Way = tuple[int, ...]
"""Which lines of the files a program ran, as a hash of them, and whether it has to do with the words of the lines."""

_CANDIDATES = 256
"""Of so many new numbers, the one with the most promising topic is taken."""
_VARIED = 0.5
_FOCUSED = 0.75
_TRUSTED = 3
"""A topic whose words stand around the lines comes first so often; then it counts what it reached."""
_OF_A_WAY = 24
"""So many programs are kept of one way."""
_SURE = 40
"""So many programs say how many run the lines."""
_PATIENCE = 150
"""When so many programs did not reach the lines, others are judged too: the lines may run when gcomp is imported."""


@dataclass(frozen=True)
class Look:
    """What a program did when it ran: whether it reached one of the lines, used one of their names, and its path."""

    number: int
    reached: bool
    named: bool = False
    way: int = 0


@dataclass
class Chooser:
    """Chooses numbers, and learns from what they were seen to do."""

    seed: int
    topic: Callable[[int], str]
    vary: bool = True
    looks: bool = True
    """Whether programs are looked at before they are judged."""
    kin: frozenset[str] = frozenset()
    """Words around the lines: a topic of such words comes first."""
    first: int = 0
    """How many new numbers an earlier part of the campaign took."""
    stride: int = 1
    """New numbers are multiples of this."""
    looked: int = 0
    reached: int = 0
    _topics: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _ways: dict[Way, list[int]] = field(default_factory=dict[Way, list[int]])

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._next = self.first
        self._hints: dict[str, float] = {}
        self._taken = Counter[str]()

    @property
    def focused(self) -> bool:
        """Whether programs that have to do with the words of the lines are known: then they count most."""
        return any(named for named, _ in self._ways)

    @property
    def sure(self) -> bool:
        """Whether most programs run the lines: then it takes less time to judge all than to look first."""
        return self.looked >= _SURE and 2 * self.reached > self.looked and not self.focused

    @property
    def lost(self) -> bool:
        """Whether the lines seem to be out of reach."""
        return not self.reached and self.looked >= _PATIENCE

    def numbers(self, count: int) -> list[int]:
        """So many numbers to look at."""
        return [self._one() for _ in range(count)]

    def learn(self, looks: Sequence[Look]) -> None:
        """Take note of what programs did."""
        for look in looks:
            self.looked += 1
            self.reached += look.reached
            tried = self._topics.setdefault(self.topic(look.number), [0, 0])
            tried[look.reached] += 1
            if look.reached and self.vary:
                known = self._ways.setdefault((look.named, look.way), [])
                if len(known) < _OF_A_WAY:
                    known.append(look.number)
                else:
                    known[self._random.randrange(len(known))] = look.number

    def _one(self) -> int:
        if self._ways and self._random.random() < _VARIED:
            ways = [*self._ways]
            if self.focused and self._random.random() < _FOCUSED:
                ways = [way for way in ways if way[0]]
            known = self._ways[self._random.choice(ways)]
            return vary_number(self._random.choice(known), self._random.randrange(1 << 16))
        number = max(self._new(), key=self._promise)
        self._taken[self.topic(number)] += 1
        return number

    def _new(self) -> Iterator[int]:
        count = _CANDIDATES * self.stride
        first = (self.seed << 32) + self._next * count
        self._next += 1
        # In an order of chance: what a number stands for often depends on its last bits.
        yield from self._random.sample(range(first, first + count, self.stride), _CANDIDATES)

    def _promise(self, number: int) -> float:
        topic = self.topic(number)
        missed, reached = self._topics.get(topic, (0, 0))
        first = self._hint(topic) if self._taken[topic] < _TRUSTED else 0.0
        return first + self._random.betavariate(1 + reached, 1 + missed)

    def _hint(self, topic: str) -> float:
        if topic not in self._hints:
            words = parts(topic.rpartition(": ")[2])
            self._hints[topic] = (len(words & self.kin) / len(words)) ** 2 if words else 0.0
        return self._hints[topic]


__all__ = ["Chooser", "Look"]
