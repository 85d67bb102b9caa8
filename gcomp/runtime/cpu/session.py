"""A plan on this machine: its code mapped, its weights where they lie, and its segments ready to be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gcomp.runtime.cpu.arrays import readable
from gcomp.runtime.cpu.calls import HostCalls
from gcomp.runtime.cpu.checking import arena_bytes
from gcomp.runtime.cpu.frames import Bound, Frames, Slots
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.memory import Array, address_of
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.cpu.threads import Pool
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import Plan
from gcomp.runtime.planned import SIZES_KEPT, Segment, Sizes

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording


class Session:
    """A segment that is ready to be called, with the threads of its image."""

    def __init__(self, segment: Segment[CpuPlan], plan: CpuPlan, image: Image, weights: Sequence[Array]) -> None:
        self._plan, self.image, self._weights = plan, image, list(weights)
        step = segment.step
        slots = Slots(len(step.inputs), len(weights), len(step.outputs), len(plan.symbols))
        self.frames = Frames(image, plan.code.entry, slots, [address_of(array) for array in weights], HostCalls(plan))
        self._limits = [array.nbytes for array in weights]
        self._bounds: Lru[object, Bound] = Lru(SIZES_KEPT)
        self.pool: Pool | None = None
        """The threads that it computes with; None where it is the caller's alone."""

    def bound(self, env: Mapping[str, int], sizes: Sizes) -> Bound:
        """The segment at the sizes of a call. Raises ArtifactError."""
        return self._bounds.get(tuple(sorted(env.items())), lambda: self._bind(env, sizes))

    def _bind(self, env: Mapping[str, int], sizes: Sizes) -> Bound:
        limits = {"input": sizes[0], "output": sizes[1], "weight": self._limits}
        return Bound(arena_bytes(self._plan, env, limits), tuple([env[name] for name in self._plan.symbols]))

    def prepare(self, env: Mapping[str, int], sizes: Sizes) -> None:
        """Have memory for a call. Raises UnsupportedError where there is none, ArtifactError."""
        self.frames.prepare(self.bound(env, sizes))

    def profile(self, bound: Bound, inputs: Sequence[Array], outputs: Sequence[Array], recording: Recording) -> None:
        """As `run`, step by step, and note what each step took. Raises GcompError."""
        from gcomp.runtime.cpu.stepping import Stepper  # few models are profiled

        addresses = {
            "input": [address_of(x) for x in inputs],
            "weight": [address_of(w) for w in self._weights],
            "output": [address_of(y) for y in outputs],
        }
        with self.frames.arena(bound) as arena:
            Stepper(self._plan, self.image, bound.sizes, arena, addresses, self.pool).run(recording)

    def run(self, bound: Bound, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute outputs from inputs, which are arrays that code can read and write. Raises GcompError."""
        self.frames.run(bound, self.pool, [address_of(x) for x in inputs], [address_of(y) for y in outputs])


def sessions_of(
    plan: Plan, segments: Sequence[Segment[CpuPlan]], variant: str, weights: Mapping[str, Array], threads: int
) -> list[Session]:
    """A plan's segments, ready to be called on a processor that runs the code of a variant. Raises GcompError."""
    images: dict[object, Image] = {}
    held: dict[str, Array] = {}
    sessions: list[Session] = []
    for segment in segments:
        chosen = segment.plans[variant]
        code = chosen.code
        key = (code.image, code.sha256, code.start, code.stop)
        if key not in images:
            images[key] = Image(code, plan.binaries[code.image])
        for name in segment.step.weights:
            if name not in held:
                held[name] = readable(weights[name])
        sessions.append(Session(segment, chosen, images[key], [held[name] for name in segment.step.weights]))
    set_threads(sessions, threads)
    return sessions


def set_threads(sessions: Sequence[Session], count: int) -> None:
    """Let sessions compute with so many threads from their next calls on; those of one image share them."""
    pools: dict[Image, Pool] = {}
    for session in sessions:
        if count > 1 and session.image not in pools:
            pools[session.image] = Pool(session.image, count)
        session.pool = pools.get(session.image)


__all__ = ["Session", "sessions_of", "set_threads"]
