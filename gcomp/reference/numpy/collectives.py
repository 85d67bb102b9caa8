"""What collectives mean between the devices of one group: functions on the list of what each of them gives.

The specification leaves the order of folds open. Here it is that of the group, from the first device on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Groups = Sequence[Sequence[int]]


def all_gather(given: Sequence[Array], *, all_gather_dim: int) -> list[Array]:
    """All operands, concatenated, on each device."""
    return [np.concatenate(given, all_gather_dim)] * len(given)


def all_reduce(given: Sequence[Array], *, body: Callable[[Array, Array], Array], dtype: DType) -> list[Array]:
    """The fold of all operands, computed in `dtype`, on each device."""
    result = given[0].astype(dtype)
    for array in given[1:]:
        result = body(result, array.astype(dtype))
    return [result] * len(given)


def reduce_scatter(
    given: Sequence[Array], *, scatter_dimension: int, body: Callable[[Array, Array], Array], dtype: DType
) -> list[Array]:
    """The fold of all operands, one part on each device."""
    return np.split(all_reduce(given, body=body, dtype=dtype)[0], len(given), scatter_dimension)


def all_to_all(given: Sequence[Array], *, split_dimension: int, concat_dimension: int, split_count: int) -> list[Array]:
    """On each device, its part of all operands."""
    parts = [np.split(array, split_count, split_dimension) for array in given]
    return [np.concatenate([part[i] for part in parts], concat_dimension) for i in range(len(given))]


# ---- groups ----


def cross_replica(groups: Groups, replicas: int, partitions: int) -> list[list[int]]:
    """The processes of groups of replicas, for each partition; no groups is one of all."""
    groups = groups or [range(replicas)]
    return [[r * partitions + p for r in group] for group in groups for p in range(partitions)]


def cross_partition(groups: Groups, replicas: int, partitions: int) -> list[list[int]]:
    """The processes of groups of partitions, for each replica; no groups is one of all."""
    groups = groups or [range(partitions)]
    return [[r * partitions + p for p in group] for group in groups for r in range(replicas)]


def cross_replica_and_partition(groups: Groups, replicas: int, partitions: int) -> list[list[int]]:
    """The processes of groups of replicas, with all of their partitions; no groups is one of all."""
    groups = groups or [range(replicas)]
    return [[r * partitions + p for p in range(partitions) for r in group] for group in groups]


def flattened_ids(groups: Groups, replicas: int, partitions: int) -> list[list[int]]:
    """Groups of processes; no groups is one of all."""
    return [list(group) for group in groups] or [list(range(replicas * partitions))]
