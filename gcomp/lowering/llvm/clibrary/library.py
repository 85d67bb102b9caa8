"""A model's plan as a library for C programs, which allocates nothing and needs nothing: the files of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gcomp.dims import Size, parse, product
from gcomp.dtypes import DTYPES
from gcomp.errors import UnsupportedError
from gcomp.lowering.llvm import elf
from gcomp.lowering.llvm.clibrary import texts
from gcomp.lowering.llvm.clibrary.containers import archive_of, object_of
from gcomp.lowering.llvm.clibrary.interface import ALIGNMENT, FUNCTIONS, Interface, Slot, print_interface
from gcomp.lowering.llvm.codegen import Module, compile_objects
from gcomp.lowering.llvm.entry import ENTRY
from gcomp.lowering.llvm.image import Image, link
from gcomp.lowering.llvm.moving import memory_functions
from gcomp.runtime.cpu.plan import CpuPlan, from_text
from gcomp.runtime.cpu.variants import VARIANTS, Variant
from gcomp.runtime.plan import DeviceSegment, HostStep, Plan, Value
from gcomp.runtime.steps import HostCall, walk
from gcomp.runtime.weights import Array

_POOL = ("gcomp_pool_start", "gcomp_pool_stop")


@dataclass(frozen=True)
class _Weights:
    """The file of weights: where each begins, and its bytes."""

    offsets: tuple[int, ...]
    data: bytes


def library_files(plan: Plan, weights: Mapping[str, Array], name: str) -> dict[str, bytes]:
    """The files of a library, by name; `name` begins the names of its files and functions.

    Raises UnsupportedError for a plan that is more than one call of machine code for one kind of processor.
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    word = word if word and not word[0].isdigit() else f"model_{word}"
    step, found = _segment(plan)
    variant = VARIANTS[found.variant]
    packed = _pack(step, weights)
    interface = _interface(plan, step, found, packed, word)
    code, flags, machine = _code(plan, found, variant, interface)
    names = [*FUNCTIONS, *(one.removeprefix("gcomp_") for one in _POOL)]
    inner = {f"{word}_{one.removeprefix('gcomp_')}": one for one in _POOL}
    functions = {f"{word}_{one}": code.entries[inner.get(f"{word}_{one}", f"{word}_{one}")] for one in names}
    data = object_of(code.code, functions, machine, flags)
    described = texts.Described(word, variant.name, plan.signature, interface, len(packed.data))
    return {
        f"{word}.h": texts.header(described).encode(),
        f"{word}.o": data,
        f"lib{word}.a": archive_of("model.o", data, functions),
        f"{word}.weights": packed.data,
        "example.c": texts.example(described).encode(),
        "Makefile": texts.makefile(described).encode(),
    }


def _segment(plan: Plan) -> tuple[DeviceSegment, CpuPlan]:
    """The one segment of a plan, and what it does on its one kind of processor."""
    for step in plan.steps:
        if isinstance(step, HostStep):
            raise _host_step(step.function)
    if len(plan.segments) != 1:
        raise _unsupported(f"{len(plan.segments)} segments", "A library is one call of machine code.")
    if plan.checks:
        raise _unsupported("checks", "Who calls a library would not look at them.", "Compile it without checks.")
    if plan.buckets:
        raise _unsupported("buckets", "Python pads inputs to them.", "Compile it without buckets.")
    (step,) = plan.segments
    found = from_text(plan.texts[step.text], step.text)
    if len(found) != 1:
        kinds = ", ".join(found)
        raise _unsupported(f"code for {kinds}", "A library is for one kind of processor.", "Compile it for one.")
    chosen = next(iter(found.values()))
    for inner in walk(chosen.steps):
        if isinstance(inner, HostCall):
            raise _host_step(inner.function)
    return step, chosen


def _host_step(function: str) -> UnsupportedError:
    return _unsupported("a step that no machine code does", f"{function} runs in Python.")


def _unsupported(what: str, why: str, fix: str | None = None) -> UnsupportedError:
    return UnsupportedError(f"A model with {what} cannot be a C library.", why=why, fix=fix)


def _pack(step: DeviceSegment, weights: Mapping[str, Array]) -> _Weights:
    """The weights one after the other, each at a multiple of the alignment."""
    data, offsets = bytearray(), list[int]()
    for name in step.weights:
        data += bytes(-len(data) % ALIGNMENT)
        offsets.append(len(data))
        data += np.ascontiguousarray(weights[name]).tobytes()
    return _Weights(tuple(offsets), bytes(data))


def _interface(plan: Plan, step: DeviceSegment, found: CpuPlan, weights: _Weights, word: str) -> Interface:
    signature = plan.signature
    names = sorted(signature.symbols)
    first = len(signature.inputs)
    results = plan.results[: len(signature.outputs)]
    # Where the results of the segment go: to the first output that is one.
    given = {value: number for number, value in reversed([*enumerate(results)]) if value >= first}
    if missing := [number for number in range(len(step.outputs)) if first + number not in given]:
        raise _unsupported(f"results that are not returned, {missing}", "There would be no memory for them.")
    slots = [Slot("input", number) for number in step.inputs]
    slots += [Slot("weight", offset) for offset in weights.offsets]
    slots += [Slot("output", given[first + number]) for number in range(len(step.outputs))]
    copies = [
        (number, Slot("input", value) if value < first else Slot("output", given[value]))
        for number, value in enumerate(results)
        if value < first or given[value] != number
    ]
    return Interface(
        name=word,
        ranges=tuple((name, signature.ranges[name]) for name in names),
        constraints=tuple(c for c in signature.constraints if c.symbols <= set(names)),
        arena=parse(found.arena),
        inputs=tuple(_bytes(Value(spec.dtype, spec.dims)) for spec in signature.inputs),
        outputs=tuple(_bytes(Value(spec.dtype, spec.dims)) for spec in signature.outputs),
        slots=tuple(slots),
        symbols=tuple(names.index(symbol) for symbol in found.symbols),
        copies=tuple(copies),
        shared=tuple((step.inputs[argument], given[first + result]) for argument, result in step.aliases),
    )


def _bytes(value: Value) -> Size:
    return product([*map(parse, value.dims), DTYPES[value.dtype].itemsize])


def _code(plan: Plan, found: CpuPlan, variant: Variant, interface: Interface) -> tuple[Image, int, int]:
    """The model's image with the interface behind it, and the flags and the machine of its objects."""
    at = found.code
    entries = {ENTRY: at.entry, **dict(zip(_POOL, (at.start, at.stop), strict=True))}
    modules = [Module("interface", print_interface(interface)), Module("memory", memory_functions(variant))]
    objects = compile_objects(modules, variant)
    read = elf.read_object(objects[0])
    base = Image(bytes(plan.binaries[at.image]), entries)
    return link(objects, base), read.flags, read.machine


__all__ = ["library_files"]
