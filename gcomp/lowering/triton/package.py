"""From kernels' sources and the order in which they run to a plan with compiled kernels: what a lowering calls last.

    draft = Draft(arena=4096)
    x, y = draft.buffer("input", 0, 4 * n), draft.buffer("output", 0, 4 * n)
    t = draft.buffer("arena", 256, 4 * n)
    draft.launch(scale, {"x": x, "o": t, "n": n}, flops=n)
    draft.launch(softmax, {"x": t, "o": y, "n": n})
    part = Part(inputs=(0,), weights=(), outputs=(value,), drafts={"sm_90": draft})
    plan = package("triton:sm_90", signature, [part], results=(1,), weights={})
    Model(plan, {}).save("model.gcomp")

A draft is made for each architecture, since tiles, and with them grids, differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gcomp.dims import Size
from gcomp.errors import InternalError, UnsupportedError
from gcomp.lowering.triton.aot import Compiled, Compiler, Progress
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import architecture, parse_target
from gcomp.runtime.cuda.plan import CudaPlan, Kernel, Parameter, to_text
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.signature import Signature
from gcomp.runtime.steps import Buffer, Case, Copy, Fill, Launch, Loop, Step, While
from gcomp.runtime.strict_json import Json


@dataclass
class Draft:
    """A device segment for one architecture in the making. Steps run in the order in which they are added.

    `arena` is the size of the arena in bytes; kernels' scratch memory is not in it. Constants that are too large for a
    kernel's text are weights.
    """

    arena: Size = 0
    _sources: dict[KernelSource, int] = field(default_factory=dict[KernelSource, int])
    _buffers: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    _blocks: list[list[Step]] = field(default_factory=lambda: [list[Step]()])

    @property
    def sources(self) -> tuple[KernelSource, ...]:
        """The kernels that are launched, by number."""
        return tuple(self._sources)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers, by number."""
        return tuple(self._buffers)

    @property
    def steps(self) -> list[Step]:
        """The steps of the block that is being filled."""
        return self._blocks[-1]

    def buffer(self, place: str, at: int, size: Size) -> int:
        """The number of a buffer of `size` bytes: at an offset in the `arena`, or an `input`, `output` or `weight`."""
        return self._buffers.setdefault(Buffer(place, at, str(size)), len(self._buffers))

    def launch(
        self, source: KernelSource, arguments: Mapping[str, Size], *, label: str = "", flops: Size = 0, moved: Size = 0
    ) -> None:
        """Launch a kernel. By its arguments' names: numbers of buffers for pointers, sizes for sizes.

        `label` names the launch in reports, `flops` and `moved` (in bytes) say what it costs.
        """
        given: list[Json] = []
        for argument in source.arguments:
            if argument.name not in arguments or len(arguments) != len(source.arguments):
                raise InternalError(f"A launch of {source.name} gives {sorted(arguments)}.", where=argument.name)
            value = arguments[argument.name]
            given.append(str(value) if argument.role == "size" else value)
        # Two braces would begin a size in the text of the plan.
        label = label.replace("{{", "{ {")
        grid = tuple(map(str, source.grid))
        number = self._sources.setdefault(source, len(self._sources))
        self.steps.append(Launch(number, grid, tuple(given), label, str(flops), str(moved)))

    def fill(self, buffer: int, byte: int) -> None:
        """Set every byte of a buffer, such as one that atomic operations add to."""
        self.steps.append(Fill(buffer, byte))

    def copy(self, source: int, target: int) -> None:
        """Copy a buffer to one of the same size."""
        self.steps.append(Copy(source, target))

    @contextmanager
    def block(self) -> Generator[list[Step]]:
        """A list that takes the steps added inside of the `with`: the body of a loop, a branch of a case."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    def loop(self, count: Size, body: Sequence[Step]) -> None:
        """Run a block so many times."""
        self.steps.append(Loop(str(count), tuple(body)))

    def loop_while(self, condition: int, before: Sequence[Step], body: Sequence[Step]) -> None:
        """Run `before`, and as long as `condition` (one byte) then is not 0, the body and `before` again."""
        self.steps.append(While(condition, tuple(before), tuple(body)))

    def case(self, selector: int, branches: Sequence[Sequence[Step]]) -> None:
        """Run one of the branches (see `Case`)."""
        self.steps.append(Case(selector, tuple(map(tuple, branches))))


@dataclass(frozen=True)
class Part:
    """A device segment (see `DeviceSegment`), with a draft for each architecture by name."""

    inputs: tuple[int, ...]
    weights: tuple[str, ...]
    outputs: tuple[Value, ...]
    drafts: Mapping[str, Draft]
    aliases: tuple[tuple[int, int], ...] = ()


def package(
    target: str,
    signature: Signature,
    parts: Sequence[Part | HostStep],
    results: Sequence[int],
    weights: Mapping[str, Value],
    *,
    compiler: Compiler | None = None,
    progress: Progress | None = None,
) -> Plan:
    """The plan of parts in order, their kernels compiled. Raises KernelError, and UnsupportedError without Triton.

    `results` are the numbers of the values that the model returns: inputs come first, then each part's outputs.
    `progress` counts the kernels of one architecture after the other.
    """
    if compiler is None:
        with Compiler() as compiler:
            return package(target, signature, parts, results, weights, compiler=compiler, progress=progress)
    names = [found.name for found in parse_target(target)]
    if others := [name for name in names if architecture(name).backend != "cuda"]:
        raise UnsupportedError(
            f"gcomp compiles kernels for {others[0]}, and has nothing yet that runs them.",
            fix="Choose an architecture of NVIDIA's, or write the sources out with --emit triton-source.",
        )
    packer = _Packer(names, parts, compiler, progress)
    return Plan(
        target=f"triton:{','.join(names)}",
        signature=signature,
        steps=tuple(packer.step(part) for part in parts),
        results=tuple(results),
        texts=packer.texts,
        weights=weights,
        binaries=packer.binaries,
    )


class _Packer:
    """Compiles the kernels of all parts for all architectures, and gathers what the plan's steps need."""

    def __init__(
        self, names: Sequence[str], parts: Sequence[Part | HostStep], compiler: Compiler, progress: Progress | None
    ) -> None:
        self._names = names
        self.texts: dict[str, str] = {}
        self.binaries: dict[str, bytes] = {}
        self._compiled: dict[tuple[str, KernelSource], Compiled] = {}
        for name in names:
            sources = self._sources(parts, name)
            found = compiler.compile(sources, architecture(name), progress)
            self._compiled |= {(name, s): c for s, c in zip(sources, found, strict=True)}

    def _sources(self, parts: Sequence[Part | HostStep], name: str) -> list[KernelSource]:
        drafts = [part.drafts[name] for part in parts if isinstance(part, Part)]
        return list(dict.fromkeys(source for draft in drafts for source in draft.sources))

    def step(self, part: Part | HostStep) -> DeviceSegment | HostStep:
        """The plan's step for a part."""
        if isinstance(part, HostStep):
            return part
        number = sum(name.endswith(".json") for name in self.texts)
        text = f"plan{number or ''}.json"
        self.texts[text] = to_text({name: self._plan(part.drafts[name], name) for name in self._names})
        return DeviceSegment(text, part.inputs, part.weights, part.outputs, part.aliases)

    def _plan(self, draft: Draft, name: str) -> CudaPlan:
        kernels = tuple(self._kernel(self._compiled[name, source]) for source in draft.sources)
        return CudaPlan(name, str(draft.arena), kernels, draft.buffers, tuple(draft.steps))

    def _kernel(self, compiled: Compiled) -> Kernel:
        source = compiled.source
        text = source.member
        binary = f"{source.name}.{_digest(compiled.binary)}.{compiled.target}.cubin"
        self.texts[text], self.binaries[binary] = source.text, compiled.binary
        return Kernel(
            name=source.name,
            binary=binary,
            text=text,
            parameters=tuple(Parameter(a.type, a.role, a.alignment) for a in source.arguments),
            warps=compiled.warps,
            ctas=compiled.ctas,
            shared=compiled.shared,
            scratch=compiled.scratch,
            scratch_alignment=compiled.scratch_alignment,
            registers=compiled.registers,
            stack=compiled.stack,
        )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
