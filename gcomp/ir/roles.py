"""The role of each op in a kernel: what kind of work it is, and so what it may be fused with.

`ROLES` is the whole table; an audit test finds the op that is missing. Roles are DNNFusion's operator classes
(Niu et al., PLDI 2021) made finer: what computes each element from elements, what combines many into one, and what only
a library or the host does.
"""

from __future__ import annotations

from enum import StrEnum

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.definitions import derives
from gcomp.ir.families import APPROXIMATED, PLAIN, SIMPLE
from gcomp.ir.host import HostOp
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp


class Role(StrEnum):
    """What kind of work an op is."""

    GENERATOR = "generator"
    """Elements from their position alone: constants, iota, sizes."""
    ELEMENTWISE = "elementwise"
    """Each element from the elements at its own position (or from scalars)."""
    VIEW = "view"
    """The same bytes under another shape; it costs nothing between kernels."""
    REINTERPRETATION = "reinterpretation"
    """The same bytes under another element type: between kernels only, as memory holds them."""
    MOVEMENT = "movement"
    """Each element from one place that its position determines, or from none (padding)."""
    INDIRECT = "indirect"
    """Each element from one place that other data determine."""
    REDUCTION = "reduction"
    """Each element from all elements along some dimensions."""
    WINDOW = "window"
    """Each element from a window of elements."""
    CONTRACTION = "contraction"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    WINOGRAD = "winograd"
    """A convolution by values at points (`gcomp.ir.winograd`)."""
    SCAN = "scan"
    SORT = "sort"
    SCATTER = "scatter"
    """Elements are written where data say."""
    LIBRARY = "library"
    """Work for a library call: factorizations, transforms, random bits, custom calls."""
    SOURCE = "source"
    """A value that lies in memory already: a weight."""
    CONTROL = "control"
    """Regions that run by data: they hold kernels of their own."""
    HOST = "host"
    EFFECT = "effect"
    """Communication, tokens and tuples: never inside a kernel."""


PER_ELEMENT = frozenset(
    {Role.GENERATOR, Role.ELEMENTWISE, Role.VIEW, Role.MOVEMENT, Role.INDIRECT},
)
"""Roles whose ops compute any single element alone: they fuse into every kernel that is not a call."""

KINDS: dict[str, frozenset[Role]] = {
    "loop": frozenset(),
    "reduction": frozenset({Role.REDUCTION}),
    "window": frozenset({Role.WINDOW}),
    "matmul": frozenset({Role.CONTRACTION}),
    "convolution": frozenset({Role.CONVOLUTION}),
    "attention": frozenset({Role.ATTENTION}),
    "winograd": frozenset({Role.WINOGRAD}),
    "scan": frozenset({Role.SCAN}),
    "sort": frozenset({Role.SORT}),
    "scatter": frozenset({Role.SCATTER}),
    "library": frozenset({Role.LIBRARY}),
    "host": frozenset({Role.HOST}),
}
"""Kind of kernel -> the roles that it holds beside those of `PER_ELEMENT`."""

KIND_OF: dict[Role, str] = {role: kind for kind, roles in KINDS.items() for role in roles}
"""Role -> the kind of kernel that it makes; roles of `PER_ELEMENT` make a loop."""

_NAMED: dict[Role, tuple[type[Operation], ...]] = {
    Role.GENERATOR: (hlo.ConstantOp, hlo.IotaOp, hlo.DynamicIotaOp, DimOp, chlo.ConstantOp, chlo.ConstantLikeOp,
                     hlo.GetDimensionSizeOp),
    Role.VIEW: (hlo.ReshapeOp,),
    Role.REINTERPRETATION: (ViewAsRealOp, ViewAsComplexOp),
    Role.MOVEMENT: (
        hlo.BroadcastInDimOp, hlo.BroadcastOp, hlo.ConcatenateOp, hlo.PadOp, hlo.ReverseOp, hlo.SliceOp,
        hlo.TransposeOp, hlo.DynamicBroadcastInDimOp, hlo.DynamicReshapeOp,
    ),
    Role.INDIRECT: (hlo.GatherOp, hlo.DynamicGatherOp, hlo.DynamicSliceOp, hlo.TorchIndexSelectOp, hlo.DynamicPadOp,
                    hlo.RealDynamicSliceOp),
    Role.REDUCTION: (hlo.ReduceOp,),
    Role.WINDOW: (hlo.ReduceWindowOp, hlo.SelectAndScatterOp),
    Role.CONTRACTION: (hlo.DotGeneralOp, hlo.DotOp, hlo.EinsumOp, hlo.UnaryEinsumOp, chlo.RaggedDotOp),
    Role.CONVOLUTION: (hlo.ConvolutionOp, hlo.DynamicConvOp),
    Role.SCAN: (chlo.ScanOp,),
    Role.SORT: (hlo.SortOp, chlo.TopKOp),
    Role.SCATTER: (hlo.ScatterOp, hlo.DynamicUpdateSliceOp),
    Role.LIBRARY: (
        hlo.CholeskyOp, hlo.TriangularSolveOp, hlo.FftOp, hlo.CustomCallOp, hlo.RngOp, hlo.RngBitGeneratorOp,
        hlo.BatchNormGradOp, hlo.BatchNormInferenceOp, hlo.BatchNormTrainingOp, hlo.MapOp,
        hlo.SetDimensionSizeOp, hlo.CompositeOp,
    ),
    Role.SOURCE: (WeightOp,),
    Role.CONTROL: (hlo.IfOp, hlo.CaseOp, hlo.WhileOp, CallOp),
    Role.HOST: (HostOp,),
    Role.EFFECT: (
        hlo.AfterAllOp, hlo.CreateTokenOp, hlo.TupleOp, hlo.GetTupleElementOp,
        hlo.OptimizationBarrierOp, hlo.ReturnOp, PrintOp,
    ),
}  # fmt: skip

_FILES = ("collectives", "asynchronous")
BETWEEN_DEVICES = (
    hlo.CrossReplicaSumOp, *(op for op in STABLEHLO.operations if op.__module__.rpartition(".")[2] in _FILES),
    *(op for op in SDY.operations if derives(op, GraphOp)),
)  # fmt: skip
"""Ops that talk to other devices, overlap with others, or say where values lie."""

ROLES: dict[type[Operation], Role] = {
    **dict.fromkeys((*SIMPLE, *APPROXIMATED, *PLAIN), Role.ELEMENTWISE),
    **dict.fromkeys(BETWEEN_DEVICES, Role.EFFECT),
    **{op: role for role, ops in _NAMED.items() for op in ops},
}
"""Op class -> role."""

COMPOSITES: dict[str, Role] = {"gcomp.attention": Role.ATTENTION, "gcomp.winograd": Role.WINOGRAD}
"""The role of a composite that a target knows by name; any other is a call of its decomposition."""


def role_of(op: Operation) -> Role:
    """The role of an op. An op of no dialect of the graph level is an effect: nothing is known of it."""
    # Not `isinstance` alone: of an abstract class it takes longer than all else, and passes ask ten thousand times.
    if op.name == hlo.CompositeOp.name and isinstance(op, hlo.CompositeOp):
        return COMPOSITES.get(op.composite_name, Role.LIBRARY)
    return ROLES.get(type(op), Role.EFFECT)
