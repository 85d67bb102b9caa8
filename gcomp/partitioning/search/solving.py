"""The integer program, and its solution by HiGHS.

A variable says which strategy a class of nodes chooses. Along an edge, the layout that is given becomes the one that is
wanted: a flow from layouts to layouts, whose sums are the choices at both ends, which makes the relaxation tight. What
several users want of one value in one layout is sent once. For the moments of a program with the most in memory, what
lies there on each device must fit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp  # pyright: ignore[reportUnknownVariableType]
from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]
from xdsl.ir import SSAValue

from gcomp.errors import UnsupportedError
from gcomp.partitioning.search.classes import Allowed, Classes
from gcomp.partitioning.search.layouts import Layout, pieces, seconds
from gcomp.partitioning.search.problem import Edge, Problem

Kind = Callable[[Problem, Collection[SSAValue]], Allowed]
"""A kind of plans: what nodes of a problem, some of whose arguments are weights, may choose."""
MOMENTS = 24
"""Moments of the program whose memory is bounded at once; those that are found to be too full are added."""


@dataclass(frozen=True)
class Solution:
    """What each class of nodes chooses, the seconds that this takes, and a bound below which no choice can be."""

    chosen: Sequence[int]
    seconds: float
    bound: float
    variables: int


Row = tuple[dict[int, float], float, float]


@dataclass
class _Rows:
    """Constraints, row by row."""

    columns: list[Row] = field(default_factory=list[Row])

    def add(self, terms: Mapping[int, float], low: float, high: float) -> None:
        self.columns.append((dict(terms), low, high))

    def constraint(self, variables: int) -> LinearConstraint:
        rows = [i for i, (terms, _, _) in enumerate(self.columns) for _ in terms]
        places = [k for terms, _, _ in self.columns for k in terms]
        values = [v for terms, _, _ in self.columns for v in terms.values()]
        matrix = csr_matrix((values, (rows, places)), shape=(len(self.columns), variables))
        lows, highs = (np.asarray([row[k] for row in self.columns]) for k in (1, 2))
        return LinearConstraint(matrix, lows, highs)  # pyright: ignore[reportArgumentType]


class Model:
    """The integer program of a problem."""

    def __init__(self, problem: Problem, classes: Classes, allowed: Allowed | None = None) -> None:
        self.problem, self.classes = problem, classes
        self.costs: list[float] = []
        self.binary: list[int] = []
        self.rows = _Rows()
        self.choices: list[dict[int, int]] = []
        """For each class, choice -> variable."""
        for c, node in enumerate(classes.first):
            kept = [k for k, s in enumerate(node.choices) if allowed is None or allowed(node, s)] or [0]
            following = sum(n.following for n, own in classes.of.items() if own == c) / classes.counts[c]
            self.choices.append({
                k: self._variable(classes.counts[c] * (
                    node.choices[k].seconds + following / pieces(node.choices[k].results[0], problem.network.mesh)
                ), binary=True) for k in kept
            })  # fmt: skip
            self.rows.add(dict.fromkeys(self.choices[c].values(), 1.0), 1, 1)
        self._edges()

    def _variable(self, cost: float, *, binary: bool = False) -> int:
        self.costs.append(cost)
        self.binary.append(int(binary))
        return len(self.costs) - 1

    def _edges(self) -> None:
        flows = {key: self._flows(alike.edge, key[0], key[1]) for key, alike in self.classes.edges.items()}
        users: dict[SSAValue, list[tuple[int, int, str]]] = defaultdict(list)
        for key, alike in self.classes.edges.items():
            for value in alike.values:
                users[value].append(key)
        # Values with the same classes of users are sent alike, each once for every layout that it is wanted in.
        for keys, count in Counter(map(tuple, users.values())).items():
            edge = self.classes.edges[keys[0]].edge
            for pair in dict.fromkeys(pair for key in keys for pair in flows[key]):
                if cost := self._sending(edge, *pair) * count:
                    self._send([flows[key][pair] for key in keys if pair in flows[key]], cost)

    def _send(self, flows: Sequence[int], cost: float) -> None:
        """Count what is sent if any of these flows is."""
        if len(flows) == 1:
            self.costs[flows[0]] += cost
            return
        once = self._variable(cost)
        for flow in flows:
            self.rows.add({once: 1.0, flow: -1.0}, 0, np.inf)

    def _flows(self, edge: Edge, source: int, target: int) -> dict[tuple[Layout, Layout], int]:
        """A variable for each pair of layouts: given, and wanted."""
        given = _by_layout(self.choices[source], lambda k: edge.source.layout(self.classes.first[source].choices[k]))
        wanted = _by_layout(self.choices[target], lambda k: edge.wanted(self.classes.first[target].choices[k]))
        flows = {(a, b): self._variable(0.0) for a in given for b in wanted}
        for a, own in given.items():
            terms = dict.fromkeys((flows[a, b] for b in wanted), 1.0)
            self.rows.add({**terms, **_minus(own)}, 0, 0)
        for b, own in wanted.items():
            terms = dict.fromkeys((flows[a, b] for a in given), 1.0)
            self.rows.add({**terms, **_minus(own)}, 0, 0)
        return flows

    def _sending(self, edge: Edge, given: Layout, wanted: Layout) -> float:
        return seconds(self.problem.sending(edge.value, given, wanted))

    # ---- memory ----

    def bound_memory(self, live: Sequence[SSAValue], most: float) -> None:
        """At one moment, what lies in memory must fit."""
        terms: dict[int, float] = defaultdict(float)
        for value in live:
            place = self.problem.places[value]
            c = self.classes.of[place.node]
            size = self.problem.nominal.bytes(value)
            for k, variable in self.choices[c].items():
                cut = pieces(place.layout(self.classes.first[c].choices[k]), self.problem.network.mesh)
                terms[variable] += size / cut / most
        self.rows.add(terms, 0, 1)

    # ---- solving ----

    def solve(self, limit: float, gap: float) -> Solution:
        """The best choices, or those within a gap of them, or the best that are found in so many seconds.

        UnsupportedError where nothing fits.
        """
        scale = max(1e-12, max(self.costs, default=1.0))
        found: Any = milp(
            np.asarray(self.costs) / scale,
            integrality=np.asarray(self.binary),
            bounds=Bounds(0, 1),
            constraints=self.rows.constraint(len(self.costs)),
            options={"time_limit": limit, "mip_rel_gap": gap},
        )
        if found.x is None:
            raise UnsupportedError(
                "no plan was found that fits in memory", why=str(found.message),
                fix="take more devices, or devices with more memory; or let the search take longer",
            )  # fmt: skip
        chosen = [max(own, key=lambda k: found.x[own[k]]) for own in self.choices]
        bound = found.mip_dual_bound if found.mip_dual_bound is not None else found.fun
        return Solution(chosen, float(found.fun) * scale, float(bound) * scale, len(self.costs))


def _by_layout(choices: Mapping[int, int], layout: Callable[[int], Layout]) -> dict[Layout, list[int]]:
    found: dict[Layout, list[int]] = defaultdict(list)
    for k, variable in choices.items():
        found[layout(k)].append(variable)
    return found


def _minus(variables: Sequence[int]) -> dict[int, float]:
    return dict.fromkeys(variables, -1.0)
