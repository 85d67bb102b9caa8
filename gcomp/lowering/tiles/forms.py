"""What a launch computes, as a key: launches of equal layers have equal forms, and share kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import cast

from gcomp.dims import Dim, Ranges, symbol, symbols_of
from gcomp.ir.forms import block_form
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import is_tensor, shape_of


def form_of(launch: LaunchOp) -> Hashable:
    """Kind, types and ops of a launch, without its names and places. Equal forms have equal schedules."""
    return launch.kind_name, launch.label_name, block_form(launch.block)


def symbols_of_launch(launch: LaunchOp) -> dict[str, Dim]:
    """The symbols of a launch's sizes, by name."""
    values = [*launch.block.args, *(result for op in launch.block.ops for result in op.results)]
    sizes = [size for value in values if is_tensor(value.type) for size in shape_of(value)]
    return {name: symbol(name) for name in sorted({name for size in sizes for name in symbols_of(size)})}


def digest_of(launch: LaunchOp, ranges: Ranges) -> str:
    """A launch's form, and the ranges of its symbols, as a hash: the same in every process."""
    known = [f"{name} in {ranges[name]}" for name in symbols_of_launch(launch)]
    return hashlib.sha256("\n".join([_text(form_of(launch)), *known]).encode()).hexdigest()


def _text(form: Hashable) -> str:
    """A form's canonical text; attributes have one of their own."""
    if isinstance(form, tuple):
        return f"({', '.join(_text(part) for part in cast('tuple[Hashable, ...]', form))})"
    return repr(form) if isinstance(form, str | int) else str(form)
