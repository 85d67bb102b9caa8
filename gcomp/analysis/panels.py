"""Products by weights in panels whose last one zeros fill up: how many columns are taken.

`pack-dot-weights` makes the product of whole panels `[..., p, c]`, reshapes it to `[..., p * c]`, and slices off what
the zeros give. As one kernel the product computes the columns that are taken, and no others.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.types import shape_of


def columns_taken(product: SSAValue) -> Size | None:
    """How many elements are all that is read of the last two dimensions of a product, seen as one: the first ones."""
    user = product.get_user_of_unique_use()
    if not isinstance(user, hlo.ReshapeOp) or len(shape := shape_of(product)) < 2:
        return None
    whole = shape_of(user.result)
    user = user.result.get_user_of_unique_use()
    if not isinstance(user, hlo.SliceOp) or whole != (*shape[:-2], shape[-2] * shape[-1]) or not takes_first(user):
        return None
    taken = shape_of(user.result)
    return taken[-1] if taken[:-1] == whole[:-1] else None


def takes_first(op: hlo.SliceOp) -> bool:
    """Whether a slice takes neighbours from the first on, in each dimension."""
    return all(n == 0 for n in sizes_of(op.start_indices)) and all(n == 1 for n in op.value("strides"))
