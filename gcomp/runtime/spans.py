"""A plan's buffers at sizes that are known: spans in place of formulas, each of them checked before anything runs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from gcomp import dims
from gcomp.dims import DimError
from gcomp.errors import ArtifactError
from gcomp.records import record
from gcomp.runtime.steps import Buffer


@record
class Span:
    """A span of memory (see `Buffer`), `bytes` long."""

    place: str
    at: int
    bytes: int


class Misplaced(Exception):
    """What does not hold at these sizes, in words."""


@contextmanager
def placing(machine: str, where: str, env: Mapping[str, int]) -> Generator[None]:
    """Raises ArtifactError for what is misplaced in a plan for a kind of machine, at the sizes of `env`."""
    try:
        yield
    except (DimError, Misplaced) as error:
        at = ", ".join(f"{name} = {value}" for name, value in sorted(env.items()))
        raise ArtifactError(
            f"The plan for the {machine} does not hold at these sizes.",
            where=f"{where}{' with ' if at else ''}{at}",
            why=str(error),
            fix="Compile the model again.",
        ) from None


def place_buffers(
    arena: str, buffers: Sequence[Buffer], env: Mapping[str, int], limits: Mapping[str, Sequence[int]]
) -> tuple[int, list[Span]]:
    """The bytes of the arena, and the spans of the buffers; `limits` are the bytes of each `input`, `output` and
    `weight`. Raises Misplaced, DimError."""
    size = count_of(arena, env, "the arena")
    return size, [_span(i, buffer, size, env, limits) for i, buffer in enumerate(buffers)]


def _span(i: int, buffer: Buffer, arena: int, env: Mapping[str, int], limits: Mapping[str, Sequence[int]]) -> Span:
    size = count_of(buffer.bytes, env, f"buffer {i}")
    end, limit = buffer.at + size, arena
    if buffer.place != "arena":
        end, limit = size, limits[buffer.place][buffer.at]
    if end > limit:
        raise Misplaced(f"buffer {i} ends at byte {end} of the {limit} of its {buffer.place}")
    return Span(buffer.place, buffer.at, size)


def count_of(text: str, env: Mapping[str, int], what: str) -> int:
    """The value of a formula, which is no less than 0. Raises Misplaced, DimError."""
    value = dims.evaluate(dims.parse(text), env)
    if value < 0:
        raise Misplaced(f"the size of {what}, {text}, is {value}")
    return value


def is_copied(source: Span, target: Span) -> bool:
    """Whether a copy has anything to do. Raises Misplaced for spans of different sizes, or one over the other."""
    if source.bytes != target.bytes:
        raise Misplaced(f"{source.bytes} bytes are copied to {target.bytes}")
    if source == target or not source.bytes:
        return False
    if source.place == target.place == "arena" and abs(source.at - target.at) < source.bytes:
        raise Misplaced(f"{source.bytes} bytes at {source.at} are copied to {target.at}, over themselves")
    return True


__all__ = ["Misplaced", "Span", "count_of", "is_copied", "place_buffers", "placing"]
