"""Reductions: over dimensions, over windows, scans, and scattering to the chosen element of a window."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates, scalar
from gcomp.analysis.indexing.movement import inside
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size, ceildiv, floordiv
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of

Shape = tuple[Size, ...]


@maps(hlo.ReduceOp)
def reduce(op: hlo.ReduceOp) -> list[Maps]:
    """All inputs along the reduced dimensions, and the init values."""
    shape, dimensions = shape_of(op.inputs[0]), op.value("dimensions")
    domain = shape_of(op.result[0])
    row: Maps = [*[reduction_map(domain, shape, dimensions)] * len(op.inputs), *[scalar(domain)] * len(op.inputs)]
    return [row] * len(op.result)


def reduction_map(domain: Shape, shape: Shape, dimensions: tuple[int, ...]) -> IndexingMap:
    """All elements along `dimensions`; the others are the result's, in order."""
    kept, ranging = iter(coordinates(domain)), Ranging()
    indices = tuple([ranging(size) if k in dimensions else next(kept) for k, size in enumerate(shape)])
    return IndexingMap(domain, shape, indices, tuple(ranging.sizes))


@maps(hlo.ReduceWindowOp)
def reduce_window(op: hlo.ReduceWindowOp) -> list[Maps]:
    """The elements of all inputs in the window, and the init values."""
    domain, shape, w = shape_of(op.result[0]), shape_of(op.inputs[0]), op.window()
    own, ranging = coordinates(domain), Ranging()
    indices: list[Size] = []
    conditions: list[Condition] = []
    for i, size in enumerate(shape):
        offset = ranging(w["window_dimensions"][i])
        position = own[i] * w["window_strides"][i] + offset * w["window_dilations"][i] - w["padding"][i][0]
        indices.append(inside(position, size, w["base_dilations"][i], conditions))
    found = simplify(IndexingMap(domain, shape, tuple(indices), tuple(ranging.sizes), tuple(conditions)))
    row: Maps = [*[found] * len(op.inputs), *[scalar(domain)] * len(op.inputs)]
    return [row] * len(op.result)


@maps(hlo.SelectAndScatterOp)
def select_and_scatter(op: hlo.SelectAndScatterOp) -> list[Maps]:
    """The sources of the windows that hold the element, and all operand elements of these windows."""
    domain, source, w = shape_of(op.operand), shape_of(op.source), op.window()
    own, ranging = coordinates(domain), Ranging()
    conditions: list[Condition] = []
    windows: list[Size] = []
    sides = list(zip(w["window_dimensions"], w["window_strides"], w["padding"], strict=True))
    for x, count, (width, stride, (low, _)) in zip(own, source, sides, strict=True):
        # The windows that hold x are among the last ones that begin at it or before.
        window = floordiv(x + low, stride) - ranging(ceildiv(width, stride))
        conditions += [Condition(window, 0, count), Condition(x + low - window * stride, 0, width)]
        windows.append(window)
    chosen = IndexingMap(domain, source, tuple(windows), tuple(ranging.sizes), tuple(conditions))
    indices: list[Size] = []
    for window, size, (width, stride, (low, _)) in zip(windows, domain, sides, strict=True):
        indices.append(window * stride - low + ranging(width))
        conditions.append(Condition(indices[-1], 0, size))
    compared = IndexingMap(domain, domain, tuple(indices), tuple(ranging.sizes), tuple(conditions))
    spread = [i for i, (width, _, _) in enumerate(sides) if width > 1]
    return [[simplify(compared), simplify(chosen).loosen(*spread), scalar(domain)]]
