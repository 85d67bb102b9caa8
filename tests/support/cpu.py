"""Runs a plan for processors without the runtime: its image mapped, its memory of NumPy, its entry called."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gcomp.dims import evaluate, parse
from gcomp.dtypes import dtype_of
from gcomp.lowering.llvm.image import Image
from gcomp.runtime.cpu.plan import from_text
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from gcomp.runtime.plan import DeviceSegment, Plan
from tests.mapped import Mapped, Pool

Array = np.ndarray[Any, Any]
HERE = [variant for variant in VARIANTS.values() if runs(variant)]
"""The kinds of processors whose code runs here."""


def of_each_width(variants: Sequence[Variant]) -> list[Variant]:
    """The last of those with vectors of one width, which differ in how they multiply bytes alone: all other kernels of
    theirs are one text, as `test_kinds_of_one_width_share_what_multiplies_no_bytes` shows."""
    return [*{variant.bits: variant for variant in variants}.values()]


def run(
    plan: Plan, variant: str, weights: Mapping[str, Array], inputs: Sequence[Array], threads: int = 0
) -> list[Array]:
    """The outputs of a plan of one device segment."""
    (segment,) = plan.steps
    assert isinstance(segment, DeviceSegment)
    native = from_text(plan.texts[segment.text], "plan")[variant]
    code = plan.binaries[native.code.image]
    entries = {"entry": native.code.entry, "gcomp_pool_start": native.code.start, "gcomp_pool_stop": native.code.stop}
    mapped = Mapped(Image(bytes(code), entries))
    sizes = plan.signature.bind(tuple([x.shape for x in inputs]))
    arena = np.full(evaluate(parse(native.arena), sizes) + 64, 0xA5, np.uint8)
    given = [np.ascontiguousarray(x) for x in inputs]
    held = [np.ascontiguousarray(weights[name]) for name in segment.weights]
    outputs = [
        np.empty([evaluate(parse(n), sizes) for n in value.dims], dtype_of(value.dtype)) for value in segment.outputs
    ]
    pool = Pool(mapped, threads) if threads else None
    slots = [-(-arena.ctypes.data // 64) * 64, pool.address if pool else 0]
    slots += [array.ctypes.data for array in (*given, *held, *outputs)]
    slots += [sizes[name] for name in native.symbols]
    assert mapped.function("entry", [ctypes.c_void_p], ctypes.c_int64)((ctypes.c_int64 * len(slots))(*slots)) == 0
    if pool:
        pool.stop()
    return outputs
