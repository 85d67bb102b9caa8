"""Meshes of devices, and shardings of arrays on them, in Shardy's terms. Depends on nothing but Python.

`mesh` has meshes and references to their axes, `layout` shardings and their text, `checks` what makes them valid, and
`pieces` which part of an array each device holds.
"""

from __future__ import annotations

from gcomp.sharding.checks import check_axes, check_mesh, check_sharding
from gcomp.sharding.layout import DimensionSharding, Sharding
from gcomp.sharding.mesh import Axis, AxisRef, Mesh, SubAxis
from gcomp.sharding.pieces import local_shape, piece_of, places_of

__all__ = [
    "Axis",
    "AxisRef",
    "DimensionSharding",
    "Mesh",
    "Sharding",
    "SubAxis",
    "check_axes",
    "check_mesh",
    "check_sharding",
    "local_shape",
    "piece_of",
    "places_of",
]
