"""The architectures that kernels are compiled for, what each can hold, and the versions of Triton that do it.

Triton enforces few of these limits without a GPU, so they stand here: from the CUDA C++ Programming Guide (technical
specifications per compute capability) and AMD's CDNA 3 instruction set manual.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass

from gcomp.errors import UnsupportedError, UsageError

PREFIX = "triton:"
TESTED = ((3, 6), (3, 9))
"""The oldest and the newest Triton, as (major, minor), that the tests have been run with."""

_FLOATS = frozenset({"fp16", "bf16", "fp32", "fp64"})
_INTEGERS = frozenset({"i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
_HOPPER = _FLOATS | _INTEGERS | {"fp8e4nv", "fp8e5"}


@dataclass(frozen=True)
class Architecture:
    """A GPU architecture: how Triton names it, what one block of threads can have, and what it can do.

    `shared` is in bytes and is what a kernel may ask for at launch; `tensor_memory` in columns; `ctas` in blocks of a
    cluster. `dtypes` are those that kernels may load, store and compute with; `products` those narrower than 16 bits
    that its matrix units multiply. `binary` is the suffix of a compiled kernel.
    """

    name: str
    backend: str
    number: int | str
    warp: int
    shared: int
    registers: int
    registers_per_thread: int
    threads: int
    tensor_memory: int
    ctas: int
    dtypes: frozenset[str]
    products: frozenset[str]
    features: frozenset[str]
    binary: str = "cubin"


ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        Architecture("sm_80", "cuda", 80, 32, 166_912, 65_536, 255, 1024, 0, 1, _FLOATS | _INTEGERS | {"fp8e5"},
                     frozenset({"i8"}), frozenset({"cp_async", "mma"})),
        Architecture("sm_90", "cuda", 90, 32, 232_448, 65_536, 255, 1024, 0, 8, _HOPPER,
                     frozenset({"i8", "fp8e4nv", "fp8e5"}), frozenset({"cp_async", "mma", "tma", "wgmma"})),
        Architecture("sm_100", "cuda", 100, 32, 232_448, 65_536, 255, 1024, 512, 8, _HOPPER,
                     frozenset({"i8", "fp8e4nv", "fp8e5"}), frozenset({"cp_async", "mma", "tma", "tcgen05"})),
        Architecture("gfx942", "hip", "gfx942", 64, 65_536, 131_072, 512, 1024, 0, 1,
                     _FLOATS | _INTEGERS | {"fp8e4b8", "fp8e5b16"}, frozenset({"i8", "fp8e4b8", "fp8e5b16"}),
                     frozenset({"mfma"}), "hsaco"),
    )
}  # fmt: skip
"""By name."""


def architecture(name: str) -> Architecture:
    """The architecture of a name. UnsupportedError, with the names there are, for another."""
    if name not in ARCHITECTURES:
        raise UnsupportedError(
            f"gcomp does not compile kernels for {name[:80]!r}.",
            fix=f"Choose among: {', '.join(ARCHITECTURES)}.",
        )
    return ARCHITECTURES[name]


def is_triton(target: str) -> bool:
    """Whether a target is one of Triton's: `triton:` and architectures."""
    return target.startswith(PREFIX)


def parse_target(target: str) -> tuple[Architecture, ...]:
    """The architectures of a target such as `triton:sm_90,sm_80`, in its order. UsageError, UnsupportedError."""
    names = [name.strip() for name in target.removeprefix(PREFIX).split(",")]
    if not is_triton(target) or not all(names):
        fix = f"Write {PREFIX} and names with commas between; the names are: {', '.join(ARCHITECTURES)}."
        raise UsageError(f"{target[:80]!r} is no target for Triton.", fix=fix)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"The target {target[:80]!r} names {twice[0]} twice.", fix="Name it once.")
    return tuple(architecture(name) for name in names)


def triton_version() -> str:
    """The installed Triton's version, without importing it. UnsupportedError without one, and for an untested one."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        raise UnsupportedError(
            "Kernels for GPUs are compiled by Triton, which is not installed.",
            fix='Install it with `pip install "gcomp[triton]"`; no GPU is needed.',
        ) from None
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not TESTED[0] <= (int(found[1]), int(found[2])) <= TESTED[1]:
        low, high = (f"{major}.{minor}" for major, minor in TESTED)
        raise UnsupportedError(
            f"gcomp has not been tested with Triton {version}.",
            why=f"Its tests cover Triton {low} to {high}; another one may compile kernels to something else.",
            fix=f'Install one of these: `pip install "triton>={low},<{TESTED[1][0]}.{TESTED[1][1] + 1}"`.',
        )
    return version
