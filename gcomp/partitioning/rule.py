"""Sharding rules: which dimensions of an op's operands and results may be cut together.

    dot = ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}

A factor is a number of indices that dimensions share. A dimension is made of factors, the major one first; tensors that
have the same factor are cut along it at the same places. The terms and the text are Shardy's
(https://openxla.org/shardy/propagation); what the kinds promise is stricter, and checked:

    pass-through      each device computes its part of the results from its parts of the operands, and nothing is sent
    reduction         each device computes a part of a sum: results are combined by `combine`
    permutation       a part of the results needs parts of the operands that lie elsewhere, but not all of them
    need-replication  a part of the results may need all of an operand along the factor
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gcomp.dims import Size

Factors = tuple[int, ...]
"""The factors of one dimension, the major one first."""
Mapped = tuple[Factors, ...]
"""The factors of each dimension of one tensor."""


class Kind(StrEnum):
    """What has to be sent where a factor is cut."""

    PASS_THROUGH = "pass-through"
    REDUCTION = "reduction"
    PERMUTATION = "permutation"
    NEED_REPLICATION = "need-replication"


LOCAL = frozenset({Kind.PASS_THROUGH, Kind.REDUCTION})
"""Kinds whose parts are computed from parts of the operands alone."""


@dataclass(frozen=True, slots=True)
class Factor:
    """How many indices, and what cutting them means. `combine` names the reducer of a reduction: an op of StableHLO on
    two scalars (`add`), or `body` for the reducer of the op itself."""

    size: Size
    kind: Kind = Kind.PASS_THROUGH
    combine: str | None = None


@dataclass(frozen=True, slots=True)
class ShardingRule:
    """The factors of each dimension of each operand and each result of an op; what is no tensor has no dimensions."""

    factors: tuple[Factor, ...]
    operands: tuple[Mapped, ...]
    results: tuple[Mapped, ...]

    def __str__(self) -> str:
        names = [letter(i) for i in range(len(self.factors))]

        def text(tensors: tuple[Mapped, ...]) -> str:
            return ", ".join(f"[{', '.join(''.join(names[f] for f in dim) for dim in t)}]" for t in tensors)

        sizes = ", ".join(f"{name}={factor.size}" for name, factor in zip(names, self.factors, strict=True))
        shown = f"({text(self.operands)})->({text(self.results)}) {{{sizes}}}"
        for kind in (Kind.REDUCTION, Kind.NEED_REPLICATION, Kind.PERMUTATION):
            found = [name for name, factor in zip(names, self.factors, strict=True) if factor.kind is kind]
            shown += f" {kind.replace('-', '_')}={{{', '.join(found)}}}" if found else ""
        return shown

    @property
    def tensors(self) -> tuple[Mapped, ...]:
        """The dimensions of all operands, then of all results."""
        return (*self.operands, *self.results)

    def places(self, factor: int) -> Iterator[tuple[int, int]]:
        """(tensor, dimension) of all that have a factor; results are counted after operands."""
        for t, dims in enumerate(self.tensors):
            yield from ((t, d) for d, factors in enumerate(dims) if factor in factors)

    def is_cuttable(self, factor: int) -> bool:
        """Whether parts along a factor need nothing else, and all dimensions that have it have it as the major one."""
        found = self.factors[factor]
        own = found.kind in LOCAL and found.combine != "body"
        return own and all(self.tensors[t][d][0] == factor for t, d in self.places(factor))

    def changed(self, factors: Mapping[int, Factor]) -> ShardingRule:
        """The rule with other factors at these positions."""
        return replace(self, factors=tuple([factors.get(i, f) for i, f in enumerate(self.factors)]))


def letter(i: int) -> str:
    """Shardy's name of the i-th factor: i, j, ..., z, and then z_1, z_2, ..."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"
