"""What proofs of sharding rules take for granted, held to the reference: an element of a result is a function of what
it reads, of its place along the dimensions that its law names, and of nothing else.

Operands are of few different numbers, so that many elements read the same; the reference interpreter is the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from gcomp.analysis.indexing import IndexingMap, operand_maps
from gcomp.analysis.indexing.evaluation import accesses
from gcomp.dims import evaluate
from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, static_shape
from gcomp.ir.walking import captures
from gcomp.partitioning import RULES
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import evaluate_op
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.prove.sharding.laws import LAWS, Element
from tests.support.samples import samples

Array = np.ndarray[Any, Any]
_MOST = 1 << 16
"""So many (element, member) pairs are looked at."""


def few_numbers(op: Operation, seed: int, ones: float) -> list[Array]:
    """Operands of the numbers 0 and 1, that share of them 1; where data are indices or sizes, too."""
    rng = np.random.default_rng(seed)
    return [(rng.random(static_shape(v) or ()) < ones).astype(dtype_of(dtype_text(v.type))) for v in op.operands]


def families(op: Operation, i: int, args: Sequence[Array], places: frozenset[tuple[int, int]]) -> Array:
    """For each element of a result: what it reads of each operand, and its place along some dimensions, as one row."""
    shape = static_shape(op.results[i]) or ()
    count = int(np.prod(shape))
    columns: list[Array] = []
    for m, value in zip(operand_maps(op)[i], args, strict=True):
        if m is not None:
            columns += _members(m, value, shape, count)
    grid = np.indices(shape).reshape(len(shape), count)
    columns += [grid[dim, :, None].astype(np.complex128) for t, dim in sorted(places) if t == len(args) + i]
    return np.concatenate([np.zeros((count, 1), np.complex128), *columns], axis=1)


def _members(m: IndexingMap, value: Array, shape: Sequence[int], count: int) -> list[Array]:
    inside, indices = accesses(m, {}, [np.arange(n) for n in shape])
    clipped = tuple([np.clip(index, 0, n - 1) for index, n in zip(indices, value.shape, strict=True)])
    read = np.broadcast_to(np.asarray(value[clipped], np.complex128), inside.shape)
    return [np.where(inside, read, 0).reshape(count, -1), inside.reshape(count, -1).astype(np.complex128)]


def is_small(op: Operation) -> bool:
    """Whether all sizes are numbers, and few."""
    if any(static_shape(v) is None or 0 in (static_shape(v) or ()) for v in (*op.operands, *op.results)):
        return False
    pairs = [
        np.prod([evaluate(n, {}) for n in (*m.domain, *m.ranges)])
        for row in operand_maps(op) for m in row if m is not None
    ]  # fmt: skip
    return bool(pairs) and max(pairs) <= _MOST


def mismatches(op: Operation, law: Element, seed: int) -> tuple[list[str], int]:
    """Elements that read the same, and are not the same; and how many read what another one reads."""
    runs = [few_numbers(op, seed, ones) for ones in (0, 0.1, 0.5, 0.5, 1)]
    whole = [evaluate_op(op, args) for args in runs]
    found, alike = list[str](), 0
    for i in range(len(op.results)):
        keys = np.concatenate([families(op, i, args, law.places) for args in runs])
        flat = np.concatenate([np.asarray(results[i]).reshape(-1) for results in whole])
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        alike += len(flat) - len(first)
        wrong = compare(flat[first[inverse.reshape(-1)]], flat, Exactness.E1, limit=1)
        # Vectorized functions may round an element in another way at another place of an array.
        if wrong and (wrong[0].ulps is None or wrong[0].ulps > 4):
            found.append(f"{op}: result {i}: {wrong[0]}")
    return found, alike


def ops(seeds: range) -> Iterator[tuple[Operation, int]]:
    """Ops of the samples and of random programs."""
    for number, text in enumerate(samples().values()):
        yield from ((op, number) for op in Program.parse(text).module.walk())
    for seed in seeds:
        yield from ((op, seed) for op in seeded_program(seed).block.ops)


def held(seeds: range) -> tuple[list[str], Counter[str]]:
    """What is wrong, and how often each law was held to elements that read the same."""
    wrong, alike = list[str](), Counter[str]()
    with np.errstate(all="ignore"):
        for op, seed in ops(seeds):
            row = LAWS.get(type(op))
            if row is None or captures(op) or not is_small(op):
                continue
            try:
                found, count = mismatches(op, row(op), seed)
            except (GcompError, KeyError, TypeError):
                continue  # it has no meaning on these inputs
            wrong += found
            alike[op.name] += count
    return wrong, alike


def test_elements_that_read_the_same_are_the_same() -> None:
    wrong, alike = held(range(30))
    assert wrong == []
    assert alike.total() > 10_000
    # These read nothing.
    assert {op.name for op in LAWS if op in RULES} - {*+alike} == {"stablehlo.iota", "stablehlo.get_dimension_size"}


def test_laws_name_no_more_places_than_matter() -> None:
    """Without its places, a law is wrong of some op; of matrices what is read tells the place more often than not."""
    wrong = Counter[str]()
    for op, seed in ops(range(60)):
        row = LAWS.get(type(op))
        if row is not None and not captures(op) and is_small(op) and row(op).places:
            try:
                wrong[op.name] += bool(mismatches(op, Element(), seed)[0])
            except (GcompError, KeyError, TypeError):
                continue
    never = {name for name, count in wrong.items() if not count}
    assert never <= {"stablehlo.triangular_solve", "stablehlo.cholesky"} and len(wrong) > 8


@pytest.mark.slow
def test_elements_of_many_programs() -> None:
    wrong, _ = held(range(1000))
    assert wrong == []
