"""A kernel as Triton source text, with all that is needed to compile and to launch it.

What prints kernels makes these, what compiles them takes these; neither knows the other.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from gcomp.dims import Size


@dataclass(frozen=True)
class Argument:
    """One parameter of a kernel.

    `type` is Triton's spelling: `*fp32`, `*bf16`, `*i1`, `i32`, `i64`, `fp32`. `alignment` is what a pointer,
    counted in bytes, or a size may be assumed to be a multiple of; 1 assumes nothing. `role` is one of `tile.ROLES`.
    """

    name: str
    type: str
    role: str
    alignment: int = 16


@dataclass(frozen=True)
class Configuration:
    """How a kernel is compiled and launched. `fp_fusion` rounds a * b + c once, where the graph does so twice."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    fp_fusion: bool = False


@dataclass(frozen=True)
class KernelSource:
    """A kernel: the text of a `@triton.jit` function called `name`, its import lines included.

    Sizes that are known stand in the text as literals. `grid` has one to three sizes, which may have symbols. `needs`
    are the features that an architecture must have.
    """

    name: str
    text: str = field(compare=False)
    arguments: tuple[Argument, ...]
    grid: tuple[Size, ...]
    configuration: Configuration = Configuration()
    needs: tuple[str, ...] = ()
    code: str = field(init=False)
    """The text without its comments, which say where a kernel comes from: equal layers have equal kernels."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", re.sub(r"^ *#.*\n", "", self.text, flags=re.MULTILINE))

    @property
    def member(self) -> str:
        """The name under which an artifact has the text."""
        return f"{self.name}.{hashlib.sha256(self.text.encode()).hexdigest()[:16]}.py"
