"""From a program of planned kernels to a plan for processors: each launch as a tile program, as LLVM IR, as code.

All kernels of one kind of processor, and the entries of its segments, are one image. Kernels whose text is the same are
one function.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import cached_property
from typing import Protocol

from gcomp.dims import Ranges, Size, parse, symbols_of
from gcomp.errors import UnsupportedError
from gcomp.ir.host import HostOp
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.codegen import Compilation, Module, support
from gcomp.lowering.llvm.entry import ENTRY, Segment, print_entry
from gcomp.lowering.llvm.image import Image
from gcomp.lowering.llvm.printing import print_kernel
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.llvm.streaming import streamed_arguments, streamed_results
from gcomp.lowering.signatures import signature_of
from gcomp.lowering.tiles.drafts import Draft, Part
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.tiles.naming import with_named_sizes
from gcomp.lowering.tiles.printing import kernel_text
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.tiles.schedules.kernel import Scheduled, Settings, Step
from gcomp.lowering.tiles.segments import LoweredLaunch, Lowering, Numbers, check_planned, drafts, launch_name
from gcomp.lowering.tiles.tile import KernelOp
from gcomp.records import record
from gcomp.runtime.cpu.plan import Code, CpuPlan, Kernel, from_text, to_text
from gcomp.runtime.cpu.variants import Variant
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan
from gcomp.runtime.steps import SLOT, HostCall, Launch, Loop, walk


class Tuned(Protocol):
    """What was measured to be the fastest (`gcomp.lowering.tuned.Results`), on a kind of processor."""

    @property
    def target(self) -> str: ...

    def settings(self, launch: LaunchOp, ranges: Ranges) -> Settings | None:
        """The settings of a launch; None where it was not measured."""
        ...


Progress = Callable[[str], object]
"""Is told what is being done."""

_PLACEHOLDER = "kernel"
"""What a kernel is called until its text, which its name depends on, is known."""


@record
class Argument:
    """A parameter of a kernel."""

    name: str
    role: str


@record
class Function:
    """A kernel as LLVM IR; those of equal code are equal, whatever they are called. `kernel` is its tile program."""

    name: str = field(compare=False)
    code: str
    arguments: tuple[Argument, ...]
    grid: tuple[Size, ...] = field(compare=False)
    kernel: KernelOp = field(compare=False)

    @cached_property
    def source(self) -> str:
        """The tile program's text, for the artifact: written while LLVM works on what was begun."""
        return kernel_text(self.kernel)

    @property
    def text(self) -> str:
        """The module with its function."""
        return self.code.replace(f"define void @{_PLACEHOLDER}(", f"define void @{self.name}(", 1)

    @property
    def module(self) -> Module:
        """What LLVM is given."""
        return Module(self.name, self.text, lambda: self.source)

    @property
    def member(self) -> str:
        """The name under which an artifact has its source."""
        return f"{self.name}.mlir"


@record
class Unprinted:
    """A kernel as a tile program alone, to be evaluated; each is equal to itself only."""

    kernel: KernelOp
    grid: tuple[Size, ...] = field(compare=False)

    @property
    def name(self) -> str:
        """The tile program's."""
        return self.kernel.kernel_name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What it takes, in order."""
        return _arguments(self.kernel)


def lower(
    program: Program, target: str, variants: Sequence[Variant], *, progress: Progress = lambda _: None,
    tuned: Tuned | None = None,
) -> Plan:  # fmt: skip
    """The plan that runs a program of planned kernels on processors; weights stay in `program.weights`. Kernels are
    made in the settings that `tuned` knows of them.

    Raises UnsupportedError, naming op and place, for what has no kernel.
    """
    check_planned(program)
    with ExitStack() as stack:
        # LLVM compiles what is made while others are made.
        compilations = {v.name: stack.enter_context(Compilation(v)) for v in variants}
        functions: dict[Function, Function] = {}
        found: dict[str, list[Lowering[Function] | HostOp]] = {}
        for variant in variants:
            compilation = compilations[variant.name]
            for module in support(variant):
                compilation.begin(module)
            progress(f"making kernels for {variant.name}")

            def begin(function: Function, compilation: Compilation = compilation) -> None:
                compilation.begin(functions.setdefault(function, function).module)

            found[variant.name] = lowerings(program, variant, begin, tuned)
            for step in found[variant.name]:
                if isinstance(step, Lowering):
                    _refuse_too_large(step.draft, program.ranges)
        numbers = Numbers(program)
        parts = [numbers.part(dict(zip(found, steps, strict=True))) for steps in zip(*found.values(), strict=True)]
        packer = _Packer(parts, functions, compilations, progress)
    return Plan(
        target=target,
        signature=signature_of(program, [pair for part in parts if isinstance(part, Part) for pair in part.aliases]),
        steps=tuple(packer.steps()),
        results=tuple(numbers.results()),
        texts=packer.texts,
        weights=numbers.weights,
        binaries=packer.binaries,
    )


def rename_images(plan: Plan, name: str) -> tuple[Plan, Mapping[str, str]]:
    """A plan whose images are called after `name`, and new names for its segments' texts, to be beside another."""
    segments = [step.text for step in plan.segments]
    images = {member: member.replace("code.", f"{name}.", 1) for member in plan.binaries}
    texts = dict(plan.texts)
    for text in segments:
        plans = from_text(plan.texts[text], text)
        texts[text] = to_text({
            key: replace(found, code=replace(found.code, image=images[found.code.image]))
            for key, found in plans.items()
        })  # fmt: skip
    binaries = {images[member]: data for member, data in plan.binaries.items()}
    return replace(plan, texts=texts, binaries=binaries), {t: f"{name}{i or ''}.json" for i, t in enumerate(segments)}


def lowerings(
    program: Program,
    variant: Variant,
    tell: Callable[[Function], object] = lambda _: None,
    tuned: Tuned | None = None,
) -> list[Lowering[Function] | HostOp]:
    """The device segments of a program, their kernels as LLVM IR, and its host steps, in order.

    Kernels are told when they are made.
    """

    def make(launch: LaunchOp) -> LoweredLaunch[Function]:
        known = tuned.settings(launch, program.ranges) if tuned and tuned.target == variant.name else None
        found = launch_kernels(launch, program.ranges, variant.bits, variant.words, known)
        for function in found.kernels:
            tell(function)
        return found

    def form(launch: LaunchOp) -> Hashable:
        return form_of(launch), streamed_results(launch, program.ranges)

    return drafts(program, make, calls_host=True, form=form)


def tile_programs(program: Program, variant: Variant) -> list[Lowering[Unprinted] | HostOp]:
    """The device segments of a program, their kernels as tile programs that nobody prints, and its host steps."""

    def make(launch: LaunchOp) -> LoweredLaunch[Unprinted]:
        scheduled = _scheduled(launch, program.ranges, variant.bits)
        return LoweredLaunch(scheduled, tuple([Unprinted(step.kernel, step.grid) for step in scheduled.steps]))

    return drafts(program, make, calls_host=True)


def code_texts(program: Program, variant: Variant) -> dict[str, str]:
    """The LLVM IR of a program's kernels by name."""
    found: dict[str, str] = {}
    lowerings(program, variant, lambda function: found.setdefault(function.name, function.text))
    return found


def launch_kernels(
    launch: LaunchOp, ranges: Ranges, bits: int, words: str = "", settings: Settings | None = None
) -> LoweredLaunch[Function]:
    """The kernels of a launch for vectors of so many bits, and a way to multiply bytes; their tile programs are
    expanded. Without `settings` they are those that are chosen without measurements."""
    scheduled = _scheduled(launch, ranges, bits, settings)
    streamed = streamed_results(launch, ranges)
    return LoweredLaunch(scheduled, tuple([_print_step(step, bits, words, streamed) for step in scheduled.steps]))


def _scheduled(launch: LaunchOp, ranges: Ranges, bits: int, settings: Settings | None = None) -> Scheduled:
    """A launch as tile programs, which are expanded."""
    named = with_named_sizes(launch, ranges)
    launch, ranges = named.launch, named.ranges
    settings = settings or settings_for(launch, ranges, bits)
    scheduled = named.at_call(schedule(launch, launch_name(launch), ranges, settings))
    for step in scheduled.steps:
        expand(step.kernel)
    return scheduled


def _print_step(step: Step, bits: int, words: str, streamed: frozenset[int]) -> Function:
    kernel = step.kernel
    text = print_kernel(kernel, _PLACEHOLDER, bits, words, streamed_arguments(step, streamed))
    arguments = _arguments(kernel)
    digest = hashlib.sha256(f"{text}{arguments}".encode()).hexdigest()[:16]
    stem = re.sub(r"[^A-Za-z0-9_]", "_", kernel.kernel_name)
    return Function(f"k_{stem}.{digest}", text, arguments, step.grid, kernel)


def _arguments(kernel: KernelOp) -> tuple[Argument, ...]:
    return tuple([Argument(str(n), role) for n, role in enumerate(kernel.argument_roles)])


class _Packer:
    """Compiles the kernels of all parts for all kinds of processors, and gathers what the plan's steps need."""

    def __init__(
        self, parts: Sequence[Part[Function] | HostStep], functions: Mapping[Function, Function],
        compilations: Mapping[str, Compilation], tell: Progress,
    ) -> None:  # fmt: skip
        self._parts = parts
        self._functions = functions
        """The one of all that are equal."""
        self._variants = [compilation.variant for compilation in compilations.values()]
        self.texts: dict[str, str] = {}
        self.binaries: dict[str, bytes] = {}
        self._images = {name: self._image(compilation, tell) for name, compilation in compilations.items()}

    @property
    def _segments(self) -> list[Part[Function]]:
        return [part for part in self._parts if isinstance(part, Part)]

    def _image(self, compilation: Compilation, tell: Progress) -> Image:
        variant = compilation.variant
        found: dict[str, Function] = {}
        entries: list[Module] = []
        for n, part in enumerate(self._segments):
            draft, name = part.drafts[variant.name], _entry_name(n)
            functions = self._of(draft)
            found.update((function.name, function) for function in functions)
            entries.append(Module(name, print_entry(_segment(part, draft, functions), name)))
            compilation.begin(entries[-1])
        tell(f"compiling {len(found)} kernels for {variant.name}")
        self.texts.update((function.member, function.source) for function in found.values())
        image = compilation.image([*entries, *(function.module for function in found.values())])
        self.binaries[_member(variant.name)] = image.code
        return image

    def _of(self, draft: Draft[Function]) -> list[Function]:
        return [self._functions[kernel] for kernel in draft.kernels]

    def steps(self) -> list[DeviceSegment | HostStep]:
        """The plan's steps."""
        found: list[DeviceSegment | HostStep] = []
        for part in self._parts:
            found.append(part if isinstance(part, HostStep) else self._device(part))
        return found

    def _device(self, part: Part[Function]) -> DeviceSegment:
        number = sum(name.endswith(".json") for name in self.texts)
        text = f"plan{number or ''}.json"
        self.texts[text] = to_text({v.name: self._plan(part, v.name, number) for v in self._variants})
        return DeviceSegment(text, part.inputs, part.weights, part.outputs, part.aliases)

    def _plan(self, part: Part[Function], variant: str, number: int) -> CpuPlan:
        draft, image = part.drafts[variant], self._images[variant]
        at = image.entries
        functions = self._of(draft)
        return CpuPlan(
            variant=variant,
            code=Code(
                image=_member(variant),
                sha256=hashlib.sha256(image.code).hexdigest(),
                entry=at[_entry_name(number)],
                start=at["gcomp_pool_start"],
                stop=at["gcomp_pool_stop"],
                parallel=at["gcomp_parallel"],
            ),
            arena=str(draft.arena + sum(size + SLOT for size in draft.slots)),
            fixed=_fixed_bytes(draft),
            slots=tuple(map(str, draft.slots)),
            symbols=_symbols(draft),
            kernels=tuple([
                Kernel(f.name, at[f.name], f.member, tuple([a.role for a in f.arguments])) for f in functions
            ]),
            buffers=draft.buffers,
            steps=tuple(draft.steps),
        )  # fmt: skip


def _segment(part: Part[Function], draft: Draft[Function], functions: Sequence[Function]) -> Segment:
    return Segment(
        inputs=len(part.inputs),
        weights=len(part.weights),
        outputs=len(part.outputs),
        symbols=_symbols(draft),
        fixed=_fixed_bytes(draft),
        slots=tuple(draft.slots),
        buffers=draft.buffers,
        kernels=tuple([function.name for function in functions]),
        steps=tuple(draft.steps),
    )


def _symbols(draft: Draft[Function]) -> tuple[str, ...]:
    """The symbols that the formulas of a draft have."""
    texts = {*(buffer.bytes for buffer in draft.buffers), *map(str, draft.slots)}
    for step in walk(draft.steps):
        if isinstance(step, Launch):
            texts |= {*step.grid, step.flops, step.bytes, *(a for a in step.arguments if isinstance(a, str))}
        elif isinstance(step, Loop):
            texts.add(step.count)
        elif isinstance(step, HostCall):
            texts |= {size for value in step.values for size in value.dims}
    return tuple(sorted({name for text in texts for name in symbols_of(parse(text))}))


def _refuse_too_large(draft: Draft[Function], ranges: Ranges) -> None:
    """Raises UnsupportedError where the memory of a segment has more bytes than addresses reach, at the least sizes."""
    given = {(b.place, b.at): parse(b.bytes) for b in draft.buffers if b.place not in ("arena", "slot")}
    arena = _fixed_bytes(draft) + sum(ranges.bounds(size)[0] or 0 for size in draft.slots)
    total = arena + sum(ranges.bounds(size)[0] or 0 for size in given.values())
    if total > sys.maxsize:
        raise UnsupportedError(
            f"A call of the model takes {total:,} bytes of memory, more than there can be.",
            why=f"{arena:,} of them are for what it computes on the way",
            fix="Use smaller inputs, or check the sizes in the model.",
        )


def _fixed_bytes(draft: Draft[Function]) -> int:
    """The bytes of the arena before its slots, which are known: what has no bound lies in these."""
    assert isinstance(draft.arena, int)
    return draft.arena


def _entry_name(number: int) -> str:
    return f"{ENTRY}{number or ''}"


def _member(variant: str) -> str:
    """The member of an image: names of members have no `+`."""
    return f"code.{variant.replace('+', '.')}.image"


__all__ = ["Argument", "Function", "code_texts", "launch_kernels", "lower", "lowerings", "rename_images"]
