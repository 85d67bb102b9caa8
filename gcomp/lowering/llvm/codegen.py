"""LLVM IR as text becomes relocatable objects, by LLVM's code generation alone.

What the printers write is what runs: none of LLVM's passes on IR is asked for. Objects depend on the text, the variant
and LLVM's version, and not on the machine that makes them, so they are kept on disk. Several are made at once: LLVM
runs outside of Python's lock, and each module has a context of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import importlib.metadata
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from gcomp.errors import InternalError, UnsupportedError
from gcomp.lowering.llvm.image import Image, link
from gcomp.lowering.llvm.moving import memory_functions
from gcomp.lowering.llvm.threads import thread_pool
from gcomp.runtime import strict_json
from gcomp.runtime.cpu.variants import Variant
from gcomp.runtime.folders import Cache

FORMAT = 1
"""Raised by one whenever the same module would be compiled to something else."""

OBJECTS = Cache("objects", 1 << 30)

TESTED = ((0, 50), (0, 50))
"""The oldest and the newest llvmlite, whose LLVM decides what the objects are."""

_ABI = {"riscv64": "lp64d"}
"""How functions get floats, on machines where LLVM's features do not say it."""
_OPTIMIZATION = 2


@dataclass(frozen=True)
class Module:
    """A module of LLVM IR, without a triple and a data layout. `source` is what it was printed from, to report bugs.

    All that is not local to it is visible to the other modules of an image, and to nobody else.
    """

    name: str
    text: str
    source: str = ""


def compile_objects(modules: Sequence[Module], variant: Variant) -> list[bytes]:
    """An ELF object for each module. Raises UnsupportedError without LLVM, InternalError for what LLVM refuses."""
    version = llvmlite_version()
    keys = [_key(module, variant, version) for module in modules]
    found = {key: data for key in keys if (data := OBJECTS.load(key)) is not None}
    missing = {key: module for key, module in zip(keys, modules, strict=True) if key not in found}
    if missing:
        _llvm()
        with ThreadPoolExecutor(min(len(missing), len(os.sched_getaffinity(0)))) as pool:
            made = list(pool.map(partial(_emitted, variant=variant, as_object=True), missing.values()))
        for key, data in zip(missing, made, strict=True):
            OBJECTS.store(key, data)
            found[key] = data
        OBJECTS.trim()
    return [found[key] for key in keys]


def compile_image(modules: Sequence[Module], variant: Variant) -> Image:
    """The image of modules that refer to each other, to the pool of threads and to C's functions that move memory."""
    own = (Module("memory", memory_functions(variant)), Module("threads", thread_pool(variant)))
    return link(compile_objects([*modules, *own], variant))


def assembly(module: Module, variant: Variant) -> str:
    """A module in the machine's assembly language, to be read."""
    return _emitted(module, variant, as_object=False).decode()


@cache
def llvmlite_version() -> str:
    """The installed llvmlite's version, without importing it. UnsupportedError without one, and for an untested one."""
    low, high = (f"{major}.{minor}" for major, minor in TESTED)
    fix = f'Install it with `pip install "llvmlite>={low},<{TESTED[1][0]}.{TESTED[1][1] + 1}"`.'
    try:
        version = importlib.metadata.version("llvmlite")
    except importlib.metadata.PackageNotFoundError:
        what = "Code for processors is made by LLVM, and llvmlite, which has it, is not installed."
        raise UnsupportedError(what, fix=fix) from None
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not TESTED[0] <= (int(found[1]), int(found[2])) <= TESTED[1]:
        why = f"Its tests cover llvmlite {low} to {high}; another one may make other code."
        raise UnsupportedError(f"gcomp has not been tested with llvmlite {version}.", why=why, fix=fix)
    return version


def _key(module: Module, variant: Variant, version: str) -> str:
    target = {"triple": variant.triple, "cpu": variant.cpu, "features": variant.features}
    parts = {"format": FORMAT, "name": module.name, "text": module.text, "target": target, "llvmlite": version}
    return hashlib.sha256(strict_json.dumps(parts)).hexdigest()


def _emitted(module: Module, variant: Variant, *, as_object: bool) -> bytes:
    """A module's object, or assembly. Raises InternalError, with a file to reproduce it, where LLVM refuses it."""
    llvm = _llvm()
    options = {"opt": _OPTIMIZATION, "reloc": "pic", "codemodel": "small", "abiname": _ABI.get(variant.machine, "")}
    triple = llvm.Target.from_triple(variant.triple)
    with triple.create_target_machine(cpu=variant.cpu, features=variant.features, **options) as target:
        # Sizes and alignments that a module leaves open are filled in as it is read.
        header = (
            f'source_filename = "{module.name}"\ntarget triple = "{variant.triple}"\n'
            f'target datalayout = "{target.target_data}"\n'
        )
        try:
            with llvm.create_context() as context, llvm.parse_assembly(header + module.text, context) as parsed:
                parsed.verify()
                _keep_inside(parsed)
                return _emit(target, parsed, as_object)
        except RuntimeError as error:
            raise _refused(module, variant, header, str(error)) from None


def _keep_inside(parsed: Any) -> None:
    """What is not local to a module is for its image: it is reached without a table of addresses."""
    for value in (*parsed.functions, *parsed.global_variables):
        if value.linkage.name not in ("internal", "private") and not value.name.startswith("llvm."):
            value.visibility = "hidden"


def _emit(target: Any, parsed: Any, as_object: bool) -> bytes:
    """As llvmlite's `emit_object` and `emit_assembly`, without the lock that lets one thread at a time into LLVM.

    LLVM asks no more than that threads share neither contexts nor target machines.
    """
    library = ctypes.CDLL(_llvm().ffi.lib._name)
    emit = library.LLVMPY_TargetMachineEmitToMemory
    emit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    emit.restype = ctypes.c_void_p
    why = ctypes.c_char_p()
    if (buffer := emit(target, parsed, int(as_object), ctypes.byref(why))) is None:
        raise RuntimeError((why.value or b"no reason given").decode(errors="replace"))
    for function in (library.LLVMPY_GetBufferStart, library.LLVMPY_GetBufferSize, library.LLVMPY_DisposeMemoryBuffer):
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer) or 0)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _llvm() -> Any:
    """llvmlite's binding of LLVM, which takes a while to load, ready for every machine."""
    binding: Any = importlib.import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _refused(module: Module, variant: Variant, header: str, why: str) -> InternalError:
    """The error for a module that LLVM does not take, which is written to a file, together with its source."""
    source = "".join(f"; {line}\n" for line in module.source.splitlines())
    text = f"; {variant.name}: llc -mcpu={variant.cpu} -mattr={variant.features}\n{source}{header}{module.text}"
    where = "(not written: there is no place for files)"
    with contextlib.suppress(OSError):
        descriptor, where = tempfile.mkstemp(prefix=f"gcomp-{module.name[:40]}-", suffix=".ll")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    return InternalError(
        f"LLVM refuses the code of {module.name}.", where=where, why=why.strip(), fix="Report it with that file."
    )


__all__ = ["Module", "assembly", "compile_image", "compile_objects", "llvmlite_version"]
