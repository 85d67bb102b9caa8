"""Shardy in xDSL: meshes of devices, how values lie on them, and computations that are written for one device.

`from gcomp.ir import sdy` gives each op as `sdy.MeshOp`, `sdy.ManualComputationOp`, ...; attributes are around values
of `gcomp.sharding`. `sdy.sharding_of` and its kind read and write what functions and ops say of their values.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from gcomp.ir.sdy.attributes import (
    ATTRIBUTES,
    SHARDING,
    ManualAxesAttr,
    MeshAttr,
    ShardingAttr,
    ShardingPerValueAttr,
)
from gcomp.ir.sdy.ops import (
    OPS,
    ManualComputationOp,
    MeshOp,
    PlacingOp,
    ReshardOp,
    ReturnOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from gcomp.ir.sdy.placing import (
    add_mesh,
    all_meshes,
    argument_shardings,
    folded_op,
    is_sharded,
    mesh_of,
    meshes_of,
    result_shardings,
    set_argument_shardings,
    set_result_shardings,
    set_sharding,
    sharding_of,
)

SDY = Dialect("sdy", [*OPS], [*ATTRIBUTES])
"""The ops and attributes of Shardy that programs hold."""

__all__ = [
    "SDY",
    "SHARDING",
    "ManualAxesAttr",
    "ManualComputationOp",
    "MeshAttr",
    "MeshOp",
    "PlacingOp",
    "ReshardOp",
    "ReturnOp",
    "ShardingAttr",
    "ShardingConstraintOp",
    "ShardingGroupOp",
    "ShardingPerValueAttr",
    "add_mesh",
    "all_meshes",
    "argument_shardings",
    "folded_op",
    "is_sharded",
    "mesh_of",
    "meshes_of",
    "result_shardings",
    "set_argument_shardings",
    "set_result_shardings",
    "set_sharding",
    "sharding_of",
]
