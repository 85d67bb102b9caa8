"""Whether an op has effects; of most ops its class says it, and xDSL would look at all traits of each again."""

from __future__ import annotations

from functools import cache

from xdsl import traits
from xdsl.ir import Operation
from xdsl.traits import MemoryEffect, NoMemoryEffect, RecursiveMemoryEffect


def is_side_effect_free(op: Operation) -> bool:
    """Whether an op surely has no effects, as `xdsl.traits.is_side_effect_free` says."""
    kind = type(op)
    if _never_has_effects(kind):
        return True
    if _has_those_of_its_ops(kind):
        return all(is_side_effect_free(o) for region in op.regions for block in region.blocks for o in block.ops)
    return traits.is_side_effect_free(op)


@cache
def _never_has_effects(kind: type[Operation]) -> bool:
    found = kind.get_traits_of_type(MemoryEffect)
    return bool(found) and all(isinstance(trait, NoMemoryEffect) for trait in found)


@cache
def _has_those_of_its_ops(kind: type[Operation]) -> bool:
    return [type(trait) for trait in kind.get_traits_of_type(MemoryEffect)] == [RecursiveMemoryEffect]


__all__ = ["is_side_effect_free"]
