"""Kernels compiled ahead of time, without a GPU: source text in, binaries and what a launch needs to know out.

Triton runs in processes of its own (`process`), several at a time. What they made is kept by content (`cache`).
Binaries depend on nothing but the source, the architecture and the versions of Triton and its assembler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from queue import LifoQueue
from typing import Any

from gcomp.errors import ArtifactError, InternalError, UnsupportedError
from gcomp.lowering.triton import cache, hsaco
from gcomp.lowering.triton.process import Died, Worker
from gcomp.lowering.triton.source import Argument, KernelSource
from gcomp.lowering.triton.targets import Architecture, architecture, triton_version
from gcomp.processors import processors
from gcomp.runtime.cuda import cubin
from gcomp.runtime.strict_json import Json

Progress = Callable[[int, int], object]
"""Told how many kernels are done, and how many there are."""

HIDDEN = (8, 8)
"""Bytes of the parameters that Triton adds to a kernel's own: pointers to its scratch memory and to a profiler's."""

_SIZES = {"i1": 1, "i8": 1, "u1": 1, "u8": 1, "i16": 2, "u16": 2, "fp16": 2, "bf16": 2, "i32": 4, "u32": 4, "fp32": 4,
          "i64": 8, "u64": 8, "fp64": 8}  # fmt: skip
"""Bytes that a scalar parameter takes, by its type; a pointer takes 8."""

_FACTS = (
    "name", "num_warps", "num_ctas", "shared", "tmem_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip
"""What is asked of Triton's metadata. Versions lack some of them."""


class KernelError(UnsupportedError):
    """Triton does not compile a kernel. `where` has the kernel, the line and its text."""


class ResourceError(KernelError):
    """A kernel needs more of something than its architecture has. Another configuration may need less."""


@dataclass(frozen=True)
class Compiled:
    """A kernel as a binary, and what a launch needs to know.

    `warps` may be more than were asked for. `shared` is in bytes for a block, `tensor_memory` in columns, `scratch` in
    bytes for each block of the grid, `registers` and `stack` for each thread (see `spilled`). `parameters` are the
    bytes of the kernel's own parameters and of the hidden ones, as the binary says.
    """

    source: KernelSource
    target: str
    binary: bytes
    warps: int
    ctas: int
    shared: int
    tensor_memory: int
    scratch: int
    scratch_alignment: int
    registers: int
    stack: int
    parameters: tuple[int, ...]

    @property
    def spilled(self) -> int:
        """Bytes of the stack, where registers were spilled to it: where a thread has as many as it can have.

        Below that the stack holds tables and arrays of the kernel's own, such as digits of pi for the sine of large
        angles.
        """
        on = architecture(self.target)
        most = min(on.registers_per_thread, on.registers // (self.warps * on.warp))
        # Registers are given out in eights.
        return self.stack if self.registers > most - 8 else 0


class Compiler:
    """Processes with Triton in them, started when there is something to compile. Close it, or use it with `with`."""

    def __init__(self, jobs: int | None = None) -> None:
        """`jobs` is the number of processes; None for one on each processor. Raises UnsupportedError without Triton."""
        triton_version()
        self._jobs = jobs or processors()
        # The last one used is the next: no more are started than work at a time.
        self._idle: LifoQueue[Worker] = LifoQueue()
        self._workers = [Worker("compile") for _ in range(self._jobs)]
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, and keep the cache within its bounds."""
        for worker in self._workers:
            worker.close()
        cache.KERNELS.trim()

    def compile(
        self, sources: Sequence[KernelSource], target: Architecture, progress: Progress | None = None
    ) -> list[Compiled]:
        """All kernels, in order. Raises the first KernelError among them."""
        found = self.attempt(sources, target, progress)
        for result in found:
            if isinstance(result, KernelError):
                raise result
        return [result for result in found if isinstance(result, Compiled)]

    def attempt(
        self, sources: Sequence[KernelSource], target: Architecture, progress: Progress | None = None
    ) -> list[Compiled | KernelError]:
        """All kernels in order, or why not: for who tries configurations of which some may not fit."""
        names = [cache.key(source, target) for source in sources]
        distinct = dict(zip(names, sources, strict=True))
        done, lock = 0, threading.Lock()

        def one(item: tuple[str, KernelSource]) -> Compiled | KernelError:
            nonlocal done
            try:
                result: Compiled | KernelError = self._one(*item, target)
            except KernelError as error:
                result = error
            with lock:
                done += 1
                if progress is not None:
                    progress(done, len(distinct))
            return result

        with ThreadPoolExecutor(self._jobs) as threads:
            results = dict(zip(distinct, threads.map(one, distinct.items()), strict=True))
        return [_for_source(results[name], source) for name, source in zip(names, sources, strict=True)]

    def listing(self, source: KernelSource, target: Architecture, stage: str = "ptx") -> str:
        """The text of a stage of compilation: `ttir`, `ttgir`, `llir`, `ptx`, `amdgcn`. Raises KernelError."""
        return self._ask(source, target, stage)[1].decode()

    def _one(self, name: str, source: KernelSource, target: Architecture) -> Compiled:
        if lacking := [feature for feature in source.needs if feature not in target.features]:
            # Triton would read element by element instead, through more registers than the kernel was made for.
            raise _refuse(source, target, f"it needs {lacking[0]}, which {target.name} has not", None)
        entry = cache.load(name)
        if entry is not None:
            return _finish(source, target, *entry)
        facts, binary = self._ask(source, target, target.binary)
        cache.store(name, facts, binary)
        return _finish(source, target, facts, binary)

    def _ask(self, source: KernelSource, target: Architecture, stage: str) -> tuple[Mapping[str, Json], bytes]:
        request = {
            "name": source.name,
            "text": source.text,
            "arguments": [asdict(argument) for argument in source.arguments],
            "target": [target.backend, target.number, target.warp],
            "options": _options(source),
            "facts": _FACTS,
            "stages": [stage],
        }
        worker = self._idle.get()
        try:
            answer, blobs = worker.ask(request)
        except Died as error:
            raise _refuse(source, target, f"Triton's process died: {error}", None) from None
        finally:
            self._idle.put(worker)
        if "error" in answer:
            raise _refuse(source, target, f"{answer['error']}: {answer['text']}", answer["line"])
        return answer, blobs[0]


def compile_kernels(
    sources: Sequence[KernelSource], target: Architecture, *, jobs: int | None = None, progress: Progress | None = None
) -> list[Compiled]:
    """All kernels, in order, by processes for the occasion. Raises KernelError; UnsupportedError without Triton."""
    with Compiler(jobs) as compiler:
        return compiler.compile(sources, target, progress)


def size_of(argument: Argument) -> int:
    """The bytes that an argument takes as a parameter. Raises InternalError for a type that kernels do not take."""
    if argument.type.startswith("*"):
        return 8
    if argument.type not in _SIZES:
        raise InternalError(f"A kernel's argument is of the unknown type {argument.type!r}.", where=argument.name)
    return _SIZES[argument.type]


def _for_source(result: Compiled | KernelError, source: KernelSource) -> Compiled | KernelError:
    """A result for one of the sources that share it: grids and roles are not compiled."""
    return replace(result, source=source) if isinstance(result, Compiled) else result


def _options(source: KernelSource) -> dict[str, Any]:
    chosen = source.configuration
    return {
        "num_warps": chosen.num_warps,
        "num_stages": chosen.num_stages,
        "num_ctas": chosen.num_ctas,
        "enable_fp_fusion": chosen.fp_fusion,
        # Functions of libdevice keep denormal numbers, as the graph does: without, the logarithm of one is -inf.
        "enable_reflect_ftz": False,
    }


def _refuse(source: KernelSource, target: Architecture, why: str, line: int | None) -> KernelError:
    where = f"kernel {source.name} for {target.name}"
    lines = source.text.splitlines()
    if line is not None and 0 < line <= len(lines):
        where += f", line {line}: {lines[line - 1].strip()}"
    return KernelError("Triton does not compile a kernel.", where=where, why=why[:2000])


def _finish(source: KernelSource, target: Architecture, facts: Mapping[str, Json], binary: bytes) -> Compiled:
    """The kernel, its limits checked, and its parameters compared with its arguments."""
    where = f"kernel {source.name} for {target.name}"
    for wish in ("launch_cooperative_grid", "launch_pdl"):
        if facts.get(wish):
            raise KernelError(f"A kernel asks for {wish}, which gcomp's runtime does not give.", where=where)
    if facts.get("profile_scratch_size"):
        raise KernelError("A kernel was compiled for a profiler.", where=where)
    table = _read(source, target, facts, binary, where)
    compiled = Compiled(
        source=source,
        target=target.name,
        binary=binary,
        warps=facts["num_warps"],
        ctas=facts.get("num_ctas", source.configuration.num_ctas),
        shared=facts["shared"],
        tensor_memory=facts.get("tmem_size") or 0,
        scratch=facts.get("global_scratch_size") or 0,
        scratch_alignment=facts.get("global_scratch_align") or 1,
        registers=table.registers,
        stack=table.stack,
        parameters=table.parameters,
    )
    _check_limits(compiled, target, where)
    return compiled


def _read(
    source: KernelSource, target: Architecture, facts: Mapping[str, Json], binary: bytes, where: str
) -> cubin.Table:
    """What the binary says of itself, which must be what it was made for."""
    table = _READERS[target.binary](binary, where)
    sizes = (*(size_of(argument) for argument in source.arguments), *HIDDEN)
    try:
        cubin.check(table, facts["name"], sizes, facts["num_warps"] * target.warp, where)
    except ArtifactError as error:
        raise InternalError("A kernel's parameters are not its arguments.", where=where, why=error.why) from None
    return table


_READERS: Mapping[str, Callable[[bytes, str], cubin.Table]] = {"cubin": cubin.read, "hsaco": hsaco.read}


def _check_limits(compiled: Compiled, target: Architecture, where: str) -> None:
    threads = compiled.warps * target.warp
    needs = (
        ("bytes of shared memory in a block", compiled.shared, target.shared),
        ("threads in a block", threads, target.threads),
        ("registers in a block", _registers(compiled.registers) * threads, target.registers),
        ("columns of tensor memory", compiled.tensor_memory, target.tensor_memory),
        ("blocks in a cluster", compiled.ctas, target.ctas),
    )
    for what, needed, limit in needs:
        if needed > limit:
            raise ResourceError(
                f"A kernel needs {needed:,} {what}, and {target.name} has {limit:,}.",
                where=where,
                why=f"Its configuration is {compiled.source.configuration}.",
                fix="Choose smaller tiles, or fewer stages.",
            )


def _registers(count: int) -> int:
    """What a thread's registers take: they are given out in eights."""
    return -(-count // 8) * 8
