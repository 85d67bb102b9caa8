"""What was compared: the passes, the inputs and the sizes behind a verdict, and what was left out of it and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from gcomp.dims import Ranges
from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.reference.inputs import InputSet

Array = np.ndarray[Any, Any]
_SHOWN = 12
"""So many sizes of a symbol are listed."""


@dataclass
class Compared:
    """What stands behind a verdict that nothing is wrong."""

    passes: int = 0
    """The passes that were judged, ..."""
    changing: int = 0
    """... those of them that changed the program, ..."""
    rewrites: int = 0
    """... and the rewrites that these applied."""
    outputs: int = 0
    """How many outputs were compared, over all passes and sets of inputs."""
    sets: dict[str, set[tuple[str, int]]] = field(default_factory=dict[str, set[tuple[str, int]]])
    """The sets of inputs by their kind ("given": the caller's own): what each is, and its seed."""
    only_nan: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Those of them on which nothing but NaN came out: they say little."""
    sizes: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """The sizes of each symbol."""
    left_out: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Sets of inputs that were not compared, by the reason."""
    deviations: Counter[str] = field(default_factory=Counter[str])
    """On how many sets of inputs a target differed in each way that is known, which is no mistake."""

    def saw(self, inputs: InputSet | None, outputs: Sequence[Array]) -> None:
        """Note a comparison on a set of inputs (None: the caller's own)."""
        kind, key = ("given", ("given", 0)) if inputs is None else (inputs.kind, (str(inputs), inputs.seed))
        self.sets.setdefault(kind, set()).add(key)
        self.outputs += len(outputs)
        if outputs and all(map(_is_nan, outputs)):
            self.only_nan.add(key)
        for name, value in () if inputs is None else inputs.sizes.items():
            self.sizes.setdefault(name, set()).add(value)

    def left(self, inputs: InputSet | None, why: str) -> None:
        """Note a set of inputs that was not compared."""
        self.left_out.setdefault(why, Counter())["given" if inputs is None else str(inputs)] += 1

    def told(self, ranges: Ranges) -> str:
        """It in words, with the ranges that the sizes are of."""
        parts = [self._inputs(), *([self._sizes(ranges)] if self.sizes else [])]
        parts += [f"differs in a known way ({name})" for name in self.deviations]
        parts += [f"left out: {_join_names(list(names))} ({why})" for why, names in self.left_out.items()]
        return "; ".join(parts)

    def told_of_passes(self, ranges: Ranges) -> str:
        """It in words, the passes first."""
        judged = f"{_count(self.passes, 'pass', 'passes')}, {self.changing} of which changed the program"
        return f"{judged} ({_count(self.rewrites, 'rewrite')}), compared on {self.told(ranges)}"

    def _inputs(self) -> str:
        if not self.sets:
            return "no inputs"
        kinds = [f"{len(keys)} {kind}{self._nan(keys)}" for kind, keys in self.sets.items()]
        total = sum(map(len, self.sets.values()))
        return (
            "the inputs given"
            if set(self.sets) == {"given"}
            else f"{_count(total, 'set')} of inputs: {', '.join(kinds)}"
        )

    def _nan(self, keys: set[tuple[str, int]]) -> str:
        count = len(keys & self.only_nan)
        return f" ({count} gave only NaN)" if count else ""

    def _sizes(self, ranges: Ranges) -> str:
        texts: list[str] = []
        for name, values in self.sizes.items():
            known, shown = ranges[name], sorted(values)
            if known.lo == known.hi:
                continue
            some = [str(v) for v in (shown if len(shown) <= _SHOWN else [*shown[: _SHOWN - 2], "...", shown[-1]])]
            texts.append(f"{name} = {', '.join(some)} of {known}")
        return "; ".join(texts)

    def to_json(self, ranges: Ranges) -> dict[str, Any]:
        """It as JSON, with the words for it."""
        return {
            "told": self.told_of_passes(ranges) if self.passes else self.told(ranges),
            "passes": self.passes,
            "changing": self.changing,
            "rewrites": self.rewrites,
            "outputs": self.outputs,
            "inputs": {kind: len(keys) for kind, keys in sorted(self.sets.items())},
            "only_nan": len(self.only_nan),
            "sizes": {name: sorted(values) for name, values in sorted(self.sizes.items())},
            "deviations": dict(sorted(self.deviations.items())),
            "left_out": {why: sum(names.values()) for why, names in sorted(self.left_out.items())},
        }


def _is_nan(array: Array) -> bool:
    text = text_of(array.dtype)
    if not array.size or not (is_float(text) or is_complex(text)):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isnan(cast(Array, array.astype(np.complex128))).all())


def _join_names(names: Sequence[str]) -> str:
    shown = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
    return ", ".join(shown)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


__all__ = ["Compared"]
