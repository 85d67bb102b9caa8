"""LLVM IR as text becomes relocatable objects, by LLVM's code generation alone.

What the printers write is what runs: none of LLVM's passes on IR is asked for. Objects depend on the text, the variant
and LLVM's version, and not on the machine that makes them, so they are kept on disk. LLVM runs in child processes:
several modules are compiled at once, and a failure of LLVM, which ends its process, is an error that says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from gcomp.errors import InternalError, UnsupportedError
from gcomp.lowering.llvm.emitter import Request
from gcomp.lowering.llvm.image import Image, link
from gcomp.lowering.llvm.moving import memory_functions
from gcomp.lowering.llvm.process import CHILDREN, Died, Refused
from gcomp.lowering.llvm.threads import thread_pool
from gcomp.processors import processors
from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.cpu.variants import Variant
from gcomp.runtime.folders import Cache

FORMAT = 3
"""Raised by one whenever the same module would be compiled to something else."""

OBJECTS = Cache("objects", 1 << 30)

TESTED = ((0, 50), (0, 50))
"""The oldest and the newest llvmlite, whose LLVM decides what the objects are."""

_ABI = {"riscv64": "lp64d"}
"""How functions get floats, on machines where LLVM's features do not say it."""
_OPTIMIZATION = 2


@record
class Module:
    """A module of LLVM IR, without a triple and a data layout. `source` says what it was printed from, to report bugs.

    All that is not local to it is visible to the other modules of an image, and to nobody else.
    """

    name: str
    text: str
    source: Callable[[], str] = str


def prepare() -> None:
    """Start what compiles modules, if it is not there: it gets ready while this process does something else.

    Raises UnsupportedError without LLVM.
    """
    llvmlite_version()
    CHILDREN.prepare(min(STARTED, processors()))


STARTED = 2
"""Processes that are started before there are modules: every image has more of these."""


_support_objects: dict[str, bytes] = {}
"""What `support` became in this process, by its modules' keys: every image has it, also where no disk keeps objects."""


class Compilation:
    """Compiles modules for a kind of processor on all cores, from when they are begun: others may still be written.

    As a context: what nobody will ask for any more is not begun. Raises UnsupportedError without LLVM.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self._version = llvmlite_version()
        self._begun: dict[str, Future[bytes]] = {}
        self._objects: dict[str, bytes] = {}
        self._pool = ThreadPoolExecutor(processors())

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def begin(self, module: Module) -> str:
        """Have a module's object made, if it is neither being made nor on disk; the object's key."""
        key = _key(module, self.variant, self._version)
        if key not in self._objects and key not in self._begun:
            found = _support_objects.get(key) or OBJECTS.load(key)
            if found is None:
                self._begun[key] = self._pool.submit(_emit, module, self.variant, form="object")
            else:
                self._objects[key] = found
        return key

    def objects(self, modules: Sequence[Module]) -> list[bytes]:
        """An ELF object for each module. Raises InternalError for the first that LLVM refuses."""
        keys = [self.begin(module) for module in modules]
        missing = [key for key in dict.fromkeys(keys) if key not in self._objects]
        for key in missing:
            self._objects[key] = self._begun[key].result()
            OBJECTS.store(key, self._objects[key])
        if missing:
            OBJECTS.trim()
        return [self._objects[key] for key in keys]

    def image(self, modules: Sequence[Module]) -> Image:
        """The image of modules, which refer to each other and to `support`."""
        shared = support(self.variant)
        made = self.objects([*modules, *shared])
        _support_objects.update(zip(map(self.begin, shared), made[-len(shared) :], strict=True))
        return link(made)


def support(variant: Variant) -> Sequence[Module]:
    """The modules that are in every image: the pool of threads, and C's functions that move memory."""
    return Module("memory", memory_functions(variant)), Module("threads", thread_pool(variant))


def compile_objects(modules: Sequence[Module], variant: Variant) -> list[bytes]:
    """An ELF object for each module. Raises UnsupportedError without LLVM, InternalError for what LLVM refuses."""
    with Compilation(variant) as compilation:
        return compilation.objects(modules)


def compile_image(modules: Sequence[Module], variant: Variant) -> Image:
    """The image of modules, which refer to each other and to `support`."""
    with Compilation(variant) as compilation:
        return compilation.image(modules)


def emit_object(module: Module, variant: Variant) -> bytes:
    """A module's ELF object, made anew. Raises InternalError for what LLVM refuses."""
    return _emit(module, variant, form="object")


def assembly(module: Module, variant: Variant) -> str:
    """A module in the machine's assembly language, to be read."""
    return _emit(module, variant, form="assembly").decode()


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


def _emit(module: Module, variant: Variant, *, form: str) -> bytes:
    """A module's object, or assembly. Raises InternalError, with a file to reproduce it, where LLVM refuses it.

    LLVM has mistakes in what it does to make code fast, at which its process ends. What it does without computes the
    same bits, more slowly: a warning says so.
    """
    try:
        return CHILDREN.ask(_request(module, variant, form, _OPTIMIZATION))
    except Refused as refused:
        raise _refusal(module, variant, "refuses the code", str(refused)) from None
    except Died as died:
        failure = died
    with contextlib.suppress(Died, Refused):
        if not failure.late:
            found = CHILDREN.ask(_request(module, variant, form, 0))
            warnings.warn(f"LLVM fails at the fast code of {module.name}, which is slower now: {failure}", stacklevel=2)
            return found
    raise _refusal(module, variant, "fails at the code", str(failure)) from None


def _request(module: Module, variant: Variant, form: str, optimization: int) -> Request:
    options = {
        "cpu": variant.cpu, "features": variant.features, "abiname": _ABI.get(variant.machine, ""),
        "opt": optimization, "reloc": "pic", "codemodel": "small",
    }  # fmt: skip
    return {"name": module.name, "text": module.text, "triple": variant.triple, "options": options, "form": form}


def _refusal(module: Module, variant: Variant, what: str, why: str) -> InternalError:
    """The error for a module that LLVM does not take, which is written to a file, together with its source."""
    source = "".join(f"; {line}\n" for line in module.source().splitlines())
    target = f'target triple = "{variant.triple}"\n; {variant.name}: -mcpu={variant.cpu} -mattr={variant.features}\n'
    where = "(not written: there is no place for files)"
    with contextlib.suppress(OSError):
        descriptor, where = tempfile.mkstemp(
            prefix=f"gcomp-{re.sub(r'[^A-Za-z0-9_]', '_', module.name)[:40]}-", suffix=".ll"
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{source}{target}{module.text}")
    return InternalError(
        f"LLVM {what} of {module.name}.", where=where, why=why.strip(), fix="Report it with that file."
    )


__all__ = [
    "Compilation",
    "Module",
    "assembly",
    "compile_image",
    "compile_objects",
    "emit_object",
    "llvmlite_version",
    "prepare",
    "support",
]
