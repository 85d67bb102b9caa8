"""The processors that models are compiled for, and which of them this machine's is."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from gcomp.errors import UnsupportedError
from gcomp.records import record

SYSTEM = "linux"
"""Images call futexes, so they run on this system (`sys.platform`) only."""


@record
class Variant:
    """A kind of processor: what LLVM compiles for, and what a processor must have to run the code.

    `machine` is as `platform.machine()` says it, `bits` the width of vectors. `needs` are words of `Features` for x86
    and ARM, letters of the instruction set for RISC-V. `words` is how bytes are multiplied by fours: `vnni`, `usdot`,
    `pairs` (of 16-bit integers), or one by one (none of these).
    """

    name: str
    machine: str
    triple: str
    cpu: str
    features: str
    bits: int
    needs: tuple[str, ...]
    words: str = ""


_V3 = (
    "sse3", "ssse3", "sse4_1", "sse4_2", "cx16", "popcnt", "lahf_lm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma",
    "lzcnt", "movbe",
)  # fmt: skip
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

_LINUX = "x86_64-unknown-linux-gnu"

VARIANTS: Mapping[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("x86-64-v3", "x86_64", _LINUX, "x86-64-v3", "", 256, _V3, "pairs"),
        Variant("x86-64-v3+vnni", "x86_64", _LINUX, "x86-64-v3", "+avxvnni", 256, (*_V3, "avx_vnni"), "vnni"),
        Variant("x86-64-v4", "x86_64", _LINUX, "x86-64-v4", "-prefer-256-bit", 512, _V4, "pairs"),
        Variant(
            "x86-64-v4+vnni",
            "x86_64",
            _LINUX,
            "x86-64-v4",
            "-prefer-256-bit,+avx512vnni",
            512,
            (*_V4, "avx512_vnni"),
            "vnni",
        ),
        Variant("aarch64", "aarch64", "aarch64-unknown-linux-gnu", "generic", "+fp-armv8,+neon", 128, ("fp", "asimd")),
        Variant(
            "aarch64+i8mm",
            "aarch64",
            "aarch64-unknown-linux-gnu",
            "generic",
            "+fp-armv8,+neon,+i8mm",
            128,
            ("fp", "asimd", "i8mm"),
            "usdot",
        ),
        Variant(
            "riscv64", "riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 128, tuple("imafdc")
        ),
    )
}
"""By name; of those for one machine, later ones are better. What follows a `+` is had beyond the processor's level:
`vnni` is AVX-VNNI with 256 bits, AVX512-VNNI with 512."""


def this_machine() -> str:
    """The best variant that runs here. Raises UnsupportedError where none does."""
    return chosen(VARIANTS, "gcomp's code for processors", fix="Compile for xla:cpu.")


def chosen(names: Iterable[str], what: str, *, fix: str | None = None) -> str:
    """The variant for the newest processor generation among `names` that this machine can run.

    Raises UnsupportedError, which says what `what` needs, what this machine has, and how to get what runs here.
    """
    variants = [variant for name, variant in VARIANTS.items() if name in set(names)]
    fitting = [variant.name for variant in variants if runs(variant)]
    if fitting:
        return fitting[-1]
    why = "; ".join(f"{variant.name}: {_reason(variant)}" for variant in variants)
    raise UnsupportedError(
        f"{what} does not run on this machine", where=describe(), why=why or None, fix=fix or _instead()
    )


def runs(variant: Variant) -> bool:
    """Whether this machine runs code for a variant."""
    return not _lacking(variant)


def describe() -> str:
    """This machine, in words."""
    best = [variant.name for variant in VARIANTS.values() if runs(variant)]
    return f"{platform.machine()} with {platform.system()}" + (f" ({best[-1]})" if best else "")


def _instead() -> str:
    best = [variant.name for variant in VARIANTS.values() if runs(variant)]
    return f"compile for cpu:{best[-1]} instead" if best else "compile for xla:cpu instead"


def _reason(variant: Variant) -> str:
    lacking = _lacking(variant)
    if lacking == (variant.machine,) or lacking == (SYSTEM,):
        return f"it needs {lacking[0]}"
    return f"this processor has no {', '.join(lacking)}"


def _lacking(variant: Variant) -> tuple[str, ...]:
    """What this machine has not got of what a variant needs."""
    if sys.platform != SYSTEM:
        return (SYSTEM,)
    if platform.machine() != variant.machine:
        return (variant.machine,)
    have = features()
    return tuple(name for name in variant.needs if name not in have)


@cache
def features() -> frozenset[str]:
    """What this processor can do, and the system lets it, in the words of `Variant.needs`."""
    read = _READERS.get(platform.machine())
    return read() if read is not None and sys.platform == SYSTEM else frozenset()


_X86 = {"sse3": "pni", "lzcnt": "abm"}
"""Features that Linux has other words for."""


def _x86() -> frozenset[str]:
    """The system lists the features of all processors, less those whose registers it does not keep."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        rows = [set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")]
    common = set[str].intersection(*rows) if rows else set[str]()
    return frozenset(common | {name for name, word in _X86.items() if word in common})


_AT_HWCAP, _AT_HWCAP2 = 16, 26


def _hwcap(which: int = _AT_HWCAP) -> int:
    read = ctypes.CDLL(None).getauxval
    read.restype, read.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return int(read(which))


def _aarch64() -> frozenset[str]:
    words = {_AT_HWCAP: {"fp": 0, "asimd": 1}, _AT_HWCAP2: {"i8mm": 13}}  # Linux: HWCAP_FP, HWCAP_ASIMD, HWCAP2_I8MM
    return frozenset(name for which, bits in words.items() for name, bit in bits.items() if _hwcap(which) >> bit & 1)


def _riscv64() -> frozenset[str]:
    """Linux has one bit for each letter."""
    word = _hwcap()
    return frozenset(chr(ord("a") + bit) for bit in range(26) if word >> bit & 1)


_READERS: Mapping[str, Callable[[], frozenset[str]]] = {"x86_64": _x86, "aarch64": _aarch64, "riscv64": _riscv64}

__all__ = ["VARIANTS", "Variant", "chosen", "describe", "features", "runs", "this_machine"]
