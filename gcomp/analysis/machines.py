"""What cost models know of the machines that kernels run on: public figures, in one table."""

from __future__ import annotations

from dataclasses import replace

from gcomp.errors import UsageError
from gcomp.records import record

PANELS = (32, 16)
"""Columns of a panel that weights are stored in for any processor, the best first: two vectors of 16 floats, or one."""

KEPT_ROW = 4096
"""Elements of a row that a processor's kernels keep in the nearest cache, at most."""


@record
class Machine:
    """A machine for a roofline: `bandwidth` in bytes per second, `flops` per second, `launch` in seconds per kernel.

    `contraction` is the rate of matrix units on 16-bit floats, `wide_contraction` on f32 (without lower-precision
    substitutes). `row_bytes` is how much of a row a kernel keeps between its passes over it (registers and shared
    memory of a GPU's multiprocessor, a core's cache); `parallel` is how many rows at a time keep all of it busy.
    `kept` is how many elements of a row a kernel keeps with all that is computed of them, so that no pass computes
    them again (0: none). `columns` is how many columns, or rows, of a product are computed together: what comes before
    it is computed anew for each such block. `panels` are the columns of panels that weights are stored in, the best
    first. `borders` says that products write their results into larger ones, around which kernels of their own write
    what pads them.
    """

    name: str
    bandwidth: float
    flops: float
    contraction: float
    wide_contraction: float
    launch: float
    row_bytes: int
    parallel: int
    columns: int = 128
    panels: tuple[int, ...] = PANELS
    borders: bool = False
    kept: int = 0

    def rate(self, *, narrow: bool) -> float:
        """Flops a second of a kernel, by whether it computes on 16-bit floats or narrower ones."""
        return self.contraction if narrow else self.wide_contraction

    def seconds(self, flops: int, moved: int, *, narrow: bool = False) -> float:
        """The least time of a launch, by the roofline: it computes so much, and moves so many bytes."""
        return self.launch + max(moved / self.bandwidth, flops / self.rate(narrow=narrow))


_MORE = {"x86-64-v3": "x86-64-v3+vnni", "x86-64-v4": "x86-64-v4+vnni", "aarch64": "aarch64+i8mm"}
"""Machines that have more instructions, of which this model knows nothing: kernels are cut as without them."""

_MODELS: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine("cpu", 2.0e10, 1.0e11, 1.0e11, 1.0e11, 1.0e-6, 1 << 20, 1),
        Machine(
            "x86-64-v3", 2.0e10, 2.0e10, 5.0e10, 5.0e10, 1.0e-7, 1 << 18, 1, 16, (24, 16), kept=KEPT_ROW, borders=True
        ),
        Machine("x86-64-v4", 2.0e10, 2.0e10, 1.0e11, 1.0e11, 1.0e-7, 1 << 20, 1, 32, kept=KEPT_ROW, borders=True),
        Machine("aarch64", 2.0e10, 1.0e10, 4.0e10, 4.0e10, 1.0e-7, 1 << 19, 1, 8, kept=KEPT_ROW, borders=True),
        Machine("riscv64", 5.0e9, 2.0e9, 4.0e9, 4.0e9, 1.0e-7, 1 << 18, 1, 8, kept=KEPT_ROW, borders=True),
        Machine("sm_80", 1.94e12, 1.95e13, 3.12e14, 1.95e13, 3.0e-6, 1 << 16, 108),
        Machine("sm_90", 4.8e12, 6.7e13, 9.9e14, 6.7e13, 2.5e-6, 1 << 17, 132),
        Machine("sm_100", 8.0e12, 8.0e13, 2.25e15, 8.0e13, 2.5e-6, 1 << 17, 148),
    )
}
MACHINES: dict[str, Machine] = {
    **_MODELS, **{name: replace(_MODELS[plain], name=name) for plain, name in _MORE.items()}
}  # fmt: skip
"""By name: A100 80 GB, H200 and B200 from NVIDIA's data sheets; processors are one core, rounded: two FMA units at
3 GHz for products, of which other arithmetic gets a fifth, the cache of its own, and its share of the memory. `cpu` is
what XLA runs on: a core with AVX-512."""


def machine_named(name: str) -> Machine:
    """The machine of a name. UsageError, with the names there are, for another."""
    if name not in MACHINES:
        raise UsageError(f"there is no machine {name!r}", fix=f"the machines are: {', '.join(MACHINES)}")
    return MACHINES[name]
