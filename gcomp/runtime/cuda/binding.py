"""A plan at sizes that are known: numbers in place of formulas, each of them checked before a GPU sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from gcomp import dims
from gcomp.runtime.cuda.plan import SCALARS, CudaPlan, Kernel, Parameter
from gcomp.runtime.spans import Misplaced, Span, count_of, is_copied, place_buffers, placing
from gcomp.runtime.steps import Case, Copy, Fill, HostCall, Launch, Loop, Step, While

Grid = tuple[int, int, int]
GRID_LIMITS: Grid = ((1 << 31) - 1, 65_535, 65_535)


@dataclass(frozen=True)
class BoundLaunch:
    """A launch; `arguments` are spans where the kernel takes pointers, and integers elsewhere.

    `scratch` is how many bytes of scratch memory all of its blocks need. `step` is the plan's, for reports.
    """

    kernel: Kernel
    grid: Grid
    arguments: tuple[Span | int, ...]
    scratch: int
    step: Launch = field(compare=False)


@dataclass(frozen=True)
class BoundFill:
    """Every byte of a span is set."""

    span: Span
    byte: int


@dataclass(frozen=True)
class BoundCopy:
    """A span is copied to another of the same size."""

    source: Span
    target: Span


Work = BoundLaunch | BoundFill | BoundCopy


@dataclass(frozen=True)
class Stretch:
    """Work without decisions, which a GPU replays as one graph."""

    works: tuple[Work, ...]


@dataclass(frozen=True)
class BoundLoop:
    """See `Loop`."""

    count: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class BoundWhile:
    """See `While`."""

    condition: Span
    before: tuple[Node, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True)
class BoundCase:
    """See `Case`."""

    selector: Span
    branches: tuple[tuple[Node, ...], ...]


Node = Stretch | BoundLoop | BoundWhile | BoundCase


@dataclass(frozen=True)
class Bound:
    """A plan at known sizes: the bytes of its arena, those of its scratch memory, and what to do."""

    arena: int
    scratch: int
    nodes: tuple[Node, ...]

    @cached_property
    def stretches(self) -> int:
        """How many stretches there are, those in loops and cases included."""
        return sum(isinstance(node, Stretch) for node in _all(self.nodes))


def _all(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        match node:
            case Stretch():
                pass
            case BoundLoop():
                yield from _all(node.body)
            case BoundWhile():
                yield from _all((*node.before, *node.body))
            case BoundCase():
                yield from (inner for branch in node.branches for inner in _all(branch))


def bind(plan: CudaPlan, env: Mapping[str, int], sizes: Mapping[str, Sequence[int]]) -> Bound:
    """A checked plan at sizes. `sizes` are the bytes of each `input`, `output` and `weight`. Raises ArtifactError."""
    with placing("GPU", plan.architecture, env):
        return _Binder(plan, env, sizes).bound()


class _Binder:
    def __init__(self, plan: CudaPlan, env: Mapping[str, int], sizes: Mapping[str, Sequence[int]]) -> None:
        self._plan, self._env = plan, env
        self._arena, self._spans = place_buffers(plan.arena, plan.buffers, env, sizes)

    def bound(self) -> Bound:
        nodes = self._nodes(self._plan.steps)
        works = [work for node in _all(nodes) if isinstance(node, Stretch) for work in node.works]
        scratch = max((work.scratch for work in works if isinstance(work, BoundLaunch)), default=0)
        return Bound(self._arena, scratch, nodes)

    def _nodes(self, steps: Iterable[Step]) -> tuple[Node, ...]:
        """Steps with the work between decisions gathered."""
        nodes: list[Node] = []
        works: list[Work] = []
        for step in steps:
            if isinstance(step, Launch | Fill | Copy):
                works += self._works(step)
                continue
            if works:
                nodes.append(Stretch(tuple(works)))
                works = []
            nodes.append(self._decision(step))
        return (*nodes, Stretch(tuple(works))) if works else tuple(nodes)

    def _decision(self, step: Loop | While | Case | HostCall) -> Node:
        match step:
            case Loop():
                return BoundLoop(count_of(step.count, self._env, "a loop"), self._nodes(step.body))
            case While():
                return BoundWhile(self._spans[step.condition], self._nodes(step.before), self._nodes(step.body))
            case Case():
                return BoundCase(self._spans[step.selector], tuple(map(self._nodes, step.branches)))
            case HostCall():
                raise Misplaced("the host is called, which no GPU does")

    def _works(self, step: Launch | Fill | Copy) -> Iterator[Work]:
        """What is left to do: nothing where there are no elements."""
        match step:
            case Fill():
                if (span := self._spans[step.buffer]).bytes:
                    yield BoundFill(span, step.byte)
            case Copy():
                source, target = self._spans[step.source], self._spans[step.target]
                if not is_copied(source, target):
                    return
                yield BoundCopy(source, target)
            case Launch():
                yield from self._launch(step)

    def _launch(self, step: Launch) -> Iterator[BoundLaunch]:
        kernel = self._plan.kernels[step.kernel]
        sizes = [count_of(text, self._env, f"the grid of {kernel.name}") for text in step.grid]
        grid = cast(Grid, (*sizes, *(1 for _ in range(3 - len(sizes)))))
        clustered = (grid[0] * kernel.ctas, *grid[1:])
        if any(n > limit for n, limit in zip(clustered, GRID_LIMITS, strict=True)):
            raise Misplaced(f"the grid of {kernel.name} is {clustered}, more than {GRID_LIMITS}")
        pairs = zip(step.arguments, kernel.parameters, strict=True)
        arguments = tuple(self._argument(kernel, argument, parameter) for argument, parameter in pairs)
        if all(grid):
            yield BoundLaunch(kernel, grid, arguments, kernel.scratch * math.prod(clustered), step)

    def _argument(self, kernel: Kernel, argument: int | str, parameter: Parameter) -> Span | int:
        if isinstance(argument, int):
            self._check_alignment(kernel, self._spans[argument], parameter.alignment)
            return self._spans[argument]
        value = dims.evaluate(dims.parse(argument), self._env)
        signed = parameter.type.startswith("i")
        bits = 8 * SCALARS[parameter.type] - signed
        if not (-(1 << bits) if signed else 0) <= value < 1 << bits or value % parameter.alignment:
            what = f"a multiple of {parameter.alignment} that {parameter.type} holds"
            raise Misplaced(f"{kernel.name} takes {argument} = {value}, which is not {what}")
        return value

    def _check_alignment(self, kernel: Kernel, span: Span, alignment: int) -> None:
        # Inputs and outputs lie where the caller says, and are checked when that is known.
        if span.place == "arena" and span.at % alignment:
            raise Misplaced(f"{kernel.name} takes offset {span.at}, which is not a multiple of {alignment}")
