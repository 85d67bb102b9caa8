"""From drafts of Triton kernels to a plan with compiled kernels: what a lowering calls last."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from gcomp.errors import UnsupportedError
from gcomp.lowering.tiles.drafts import Draft, Part
from gcomp.lowering.triton.aot import Compiled, Compiler, Progress
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import architecture, parse_target
from gcomp.runtime.cuda.plan import CudaPlan, Kernel, Parameter, to_text
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.signature import Signature


def package(
    target: str,
    signature: Signature,
    parts: Sequence[Part[KernelSource] | HostStep],
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
        self,
        names: Sequence[str],
        parts: Sequence[Part[KernelSource] | HostStep],
        compiler: Compiler,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._names = names
        self.texts: dict[str, str] = {}
        self.binaries: dict[str, bytes] = {}
        self._compiled: dict[tuple[str, KernelSource], Compiled] = {}
        for name in names:
            sources = self._sources(parts, name)
            found = compiler.compile(sources, architecture(name), progress)
            self._compiled |= {(name, s): c for s, c in zip(sources, found, strict=True)}

    def _sources(self, parts: Sequence[Part[KernelSource] | HostStep], name: str) -> list[KernelSource]:
        drafts = [part.drafts[name] for part in parts if isinstance(part, Part)]
        return list(dict.fromkeys(source for draft in drafts for source in draft.kernels))

    def step(self, part: Part[KernelSource] | HostStep) -> DeviceSegment | HostStep:
        """The plan's step for a part."""
        if isinstance(part, HostStep):
            return part
        number = sum(name.endswith(".json") for name in self.texts)
        text = f"plan{number or ''}.json"
        self.texts[text] = to_text({name: self._plan(part.drafts[name], name) for name in self._names})
        return DeviceSegment(text, part.inputs, part.weights, part.outputs, part.aliases)

    def _plan(self, draft: Draft[KernelSource], name: str) -> CudaPlan:
        kernels = tuple(self._kernel(self._compiled[name, source]) for source in draft.kernels)
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
