"""What a set of ops would be as one kernel: its kind, what it reads and writes, its time by a roofline; or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.fusion.dataflow import Dataflow, Read
from gcomp.analysis.fusion.groups import WINDOW
from gcomp.analysis.fusion.rows import Rows, rows_of
from gcomp.analysis.indexing.maps import is_permutation
from gcomp.analysis.machines import Machine
from gcomp.analysis.panels import columns_taken, takes_first
from gcomp.dims import product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.roles import KIND_OF, PER_ELEMENT, Role
from gcomp.ir.types import shape_of
from gcomp.records import record

_MOVES = frozenset({Role.GENERATOR, Role.VIEW, Role.MOVEMENT})

PROLOGUES: dict[str, frozenset[Role]] = {
    "matmul": PER_ELEMENT,
    "convolution": PER_ELEMENT,
    "window": PER_ELEMENT,
    "attention": _MOVES,
    "winograd": frozenset(),
    "scan": PER_ELEMENT,
    "sort": PER_ELEMENT,
    "scatter": PER_ELEMENT,
    "library": frozenset(),
    "host": frozenset(),
}
"""Kind of kernel -> what may come between its inputs and the op that makes it this kind."""

EPILOGUES: dict[str, frozenset[Role]] = {
    "matmul": PER_ELEMENT,
    "convolution": PER_ELEMENT,
    "window": PER_ELEMENT,
    "attention": PER_ELEMENT,
    "winograd": PER_ELEMENT,
    "scan": PER_ELEMENT,
    "sort": frozenset(),
    "scatter": frozenset(),
    "library": frozenset(),
    "host": frozenset(),
}
"""Kind of kernel -> what may come between that op and its outputs, element by element."""


BORDERED = frozenset({"matmul", "convolution", "winograd"})
"""Kinds of kernels that may write a result into a larger one, and what is around it apart."""


@record
class Kernel:
    """A set of ops as one kernel."""

    kind: str
    read_bytes: int
    written_bytes: int
    flops: int
    seconds: float

    @property
    def moved_bytes(self) -> int:
        """Bytes that go to or come from memory."""
        return self.read_bytes + self.written_bytes


@record
class Refusal:
    """Why a set of ops cannot be one kernel."""

    reason: str


def kernel_of(flow: Dataflow, members: Sequence[int], outputs: Sequence[int], machine: Machine) -> Kernel | Refusal:
    """The kernel that fusing `members` (in order) gives on a machine, or why they cannot be one.

    `outputs` are the members whose results are used outside of the kernel.
    """
    combines = flow.combines
    anchors = [i for i in members if combines[i]]
    kinds = {KIND_OF[flow.roles[i]] for i in anchors}
    rows: Rows | None = None
    if not outputs:
        return Refusal("nothing reads its results")
    if machine.borders and (reason := _window_refusal(flow, members, kinds)):
        return Refusal(reason)
    if machine.borders and (reason := _pieces_refusal(flow, members)):
        return Refusal(reason)
    if not anchors:
        if reason := _loop_refusal(flow, members, outputs, machine):
            return Refusal(reason)
    elif kinds == {"reduction"}:
        found = rows_of(flow, members, outputs)
        if isinstance(found, str):
            return Refusal(found)
        rows = found
    elif len(anchors) > 1:
        names = " and ".join(dict.fromkeys(flow.ops[i].name for i in anchors))
        return Refusal(f"{names} do not share a kernel")
    elif reason := _anchored_refusal(flow, members, outputs, anchors[0], machine):
        return Refusal(reason)
    kind = next(iter(kinds), "loop")
    return _price(flow, members, outputs, kind, rows, machine)


# ---- legality -----------------------------------------------------------------------------------------------------


def _window_refusal(flow: Dataflow, members: Sequence[int], kinds: set[str]) -> str | None:
    """A window reads what pads its input from memory, without asking, and is computed for several elements together:
    neither passes over rows nor products would do so."""
    slices = Counter(
        flow.ops[i].operands[0] for i in members if isinstance(flow.ops[i], hlo.SliceOp) and not flow.free[i]
    )
    windows = {value for value, count in slices.items() if count >= WINDOW}
    if not windows:
        return None
    inside = set(members)
    if any(isinstance(v.owner, hlo.PadOp) and flow.producer.get(v) in inside for v in windows):
        return "what pads the input of a window is written once"
    if "reduction" in kinds:
        return "a reduction would compute a window in each of its passes"
    return "a product would compute a window element by element" if kinds & BORDERED else None


PIECES = 4096
"""Elements of a concatenation that is computed piece by piece, at least."""


def _pieces_refusal(flow: Dataflow, members: Sequence[int]) -> str | None:
    """Pieces of a concatenation are computed apart, each where it lies; what reads them elsewhere waits for all."""
    reshaped: dict[SSAValue, bool] = {}
    for i in members:
        op = flow.ops[i]
        read = [reshaped[v] for v in op.operands if v in reshaped]
        if read:
            moves = flow.roles[i] is not Role.ELEMENTWISE and not isinstance(op, hlo.ReshapeOp | hlo.TransposeOp)
            if (moves and not _combines_or_pads(flow, i)) or (isinstance(op, hlo.TransposeOp) and any(read)):
                return f"{op.name} would ask of each element which piece of a concatenation it is of"
            if moves:
                continue
        if read or (isinstance(op, hlo.ConcatenateOp) and not flow.free[i] and flow.elements[i] >= PIECES):
            reshaped[op.results[0]] = any(read) or isinstance(op, hlo.ReshapeOp)
    return None


def _combines_or_pads(flow: Dataflow, i: int) -> bool:
    """Whether an op combines elements, or puts others around them."""
    return flow.combines[i] or isinstance(flow.ops[i], hlo.PadOp)


def _loop_refusal(flow: Dataflow, members: Sequence[int], outputs: Sequence[int], machine: Machine) -> str | None:
    """A loop goes over one space: all that it writes has as many elements, apart from what is around them."""
    written = [flow.ops[i].results[0] for i in outputs]
    spaces = {product(shape_of(v)) for v in written}
    if len(spaces) > 1 and machine.borders:
        read = {v for i in members for v in flow.ops[i].operands}
        within = [
            v.op.operand if isinstance(v.op, hlo.PadOp) and v.op.surrounds and v not in read else v for v in written
        ]
        spaces = {product(shape_of(v)) for v in within}
    return None if len(spaces) < 2 else f"its outputs have {' and '.join(sorted(map(str, spaces)))} elements"


def _anchored_refusal(
    flow: Dataflow, members: Sequence[int], outputs: Sequence[int], anchor: int, machine: Machine
) -> str | None:
    kind = KIND_OF[flow.roles[anchor]]
    if kind == "sort" and outputs and all(keeps_first(flow.ops[i], flow.ops[anchor]) for i in outputs):
        limits = {shape_of(flow.ops[i].results[0]) for i in outputs}
        outputs, members = [anchor], [i for i in members if i not in outputs]
        if len(limits) > 1:
            return "the first elements that are kept differ"
    after: set[int] = {anchor}
    surrounded: set[int] = set()
    for i in members:
        sources = [(n, p) for n, v in enumerate(flow.ops[i].operands) if (p := flow.producer.get(v)) in after]
        if i == anchor or not sources:
            continue
        if flow.roles[i] not in EPILOGUES[kind]:
            return f"{flow.ops[i].name} cannot follow in a kernel of kind {kind}"
        if any(p in surrounded for _, p in sources):
            return "what pads a result is written beside the kernel, which cannot read it"
        if machine.borders and kind in BORDERED and _is_surrounded(flow, i, [n for n, _ in sources]):
            surrounded.add(i)
        elif not all(_keeps_elements(flow, i, n) for n, _ in sources):
            return f"{flow.ops[i].name} does not take the elements of the {kind}'s result one by one"
        after.add(i)
    before = _ancestors(flow, members, anchor)
    odd = next((i for i in sorted(before) if flow.roles[i] not in PROLOGUES[kind] and not flow.free[i]), None)
    if odd is not None:
        return f"{flow.ops[odd].name} cannot come first in a kernel of kind {kind}"
    if (
        machine.borders
        and kind in BORDERED
        and any(isinstance(flow.ops[i], hlo.ConcatenateOp) and not flow.free[i] for i in before)
    ):
        return "a product would ask of each element which piece of a concatenation it is of"
    image = flow.producer.get(flow.ops[anchor].operands[0])
    if machine.borders and image in before and not flow.free[image]:
        if kind == "convolution" and isinstance(flow.ops[image], hlo.TransposeOp):
            return "a convolution would gather what is transposed at each point of its window"
        if kind == "matmul" and _ends_otherwise(flow.ops[image]):
            return "a product would gather what is transposed for each block of its columns"
    odd = next((i for i in outputs if i not in after), None)
    if odd is not None:
        return f"{flow.ops[odd].name} is needed outside too"
    return None


def keeps_first(op: Operation, sort: Operation) -> bool:
    """Whether an op takes the first elements of each row that is sorted: then the sort keeps no others."""
    if not isinstance(op, hlo.SliceOp) or not isinstance(sort, hlo.SortOp) or op.operand.owner is not sort:
        return False
    shapes = zip(shape_of(op.operand), shape_of(op.result), strict=True)
    cut = {k for k, (size, kept) in enumerate(shapes) if size != kept}
    return takes_first(op) and cut <= {sort.value("dimension") % max(1, len(shape_of(op.operand)))}


def _ends_otherwise(op: Operation) -> bool:
    """Whether an op is a transpose of which neighbours in memory were none before."""
    if not isinstance(op, hlo.TransposeOp):
        return False
    moved: list[int] = [q for q in op.value("permutation") if shape_of(op.operand)[q] != 1]
    return bool(moved) and moved[-1] != max(moved)


def _is_surrounded(flow: Dataflow, i: int, read: Sequence[int]) -> bool:
    """Whether an op puts around the elements of what it reads others that are no results."""
    op = flow.ops[i]
    return isinstance(op, hlo.PadOp) and op.surrounds and 1 not in read


def _keeps_elements(flow: Dataflow, i: int, operand: int) -> bool:
    """Whether each element of the operand is used for exactly one element of the result."""
    op = flow.ops[i]
    if isinstance(op, hlo.ReshapeOp):
        return True
    if isinstance(op, hlo.SliceOp) and isinstance(whole := op.operand.owner, hlo.ReshapeOp):
        return columns_taken(whole.operand) is not None
    if flow.pointwise(i, operand):
        # What takes the first elements alone, as a slice does, reads each at its own place too.
        return shape_of(op.operands[operand]) == shape_of(op.results[0])
    return all((m := row[operand]) is not None and is_permutation(m) for row in flow.maps(i))


def _ancestors(flow: Dataflow, members: Sequence[int], anchor: int) -> set[int]:
    inside, found, pending = set(members), set[int](), [anchor]
    while pending:
        for v in flow.ops[pending.pop()].operands:
            p = flow.producer.get(v)
            if p is not None and p in inside and p not in found:
                found.add(p)
                pending.append(p)
    return found


# ---- cost ---------------------------------------------------------------------------------------------------------


def _price(
    flow: Dataflow, members: Sequence[int], outputs: Sequence[int], kind: str, rows: Rows | None, machine: Machine
) -> Kernel:
    read, counts = _evaluations(flow, members, outputs, machine.columns)
    nominal = flow.nominal
    if rows is not None and rows.length is not None and rows.length <= machine.kept:
        counts = {i: min(count, flow.elements[i]) for i, count in counts.items()}
    written = sum([flow.written[i] for i in outputs])
    scalar = sum([count * (flow.flops(i) + flow.choices[i]) for i, count in counts.items() if not flow.combines[i]])
    heavy = sum([flow.flops(i) for i in members if flow.combines[i]])
    bandwidth = machine.bandwidth
    if rows is not None and rows.passes > 1:
        # What waits for a reduction of its row runs row by row: few rows leave most of the machine idle.
        bandwidth *= min(1.0, max(1, nominal.size(rows.count)) / machine.parallel)
        row_bytes = read // max(1, nominal.size(rows.count))
        read *= rows.passes if row_bytes > machine.row_bytes else 1
    seconds = machine.launch + max(
        (read + written) / bandwidth, scalar / machine.flops + heavy / _rate(flow, members, machine)
    )
    return Kernel(kind, read, written, scalar + heavy, seconds)


def _rate(flow: Dataflow, members: Sequence[int], machine: Machine) -> float:
    units = (Role.CONTRACTION, Role.CONVOLUTION, Role.WINOGRAD, Role.ATTENTION)
    anchor = next((i for i in members if flow.roles[i] in units), None)
    if anchor is None:
        return machine.flops
    narrow = flow.operands[anchor][0].element_bytes < 4
    return machine.contraction if narrow else machine.wide_contraction


Accesses = dict[tuple[int, ...], int]
"""Ways in which the elements of a value are reached, each with how many evaluations it takes."""


def _evaluations(
    flow: Dataflow, members: Sequence[int], outputs: Sequence[int], columns: int
) -> tuple[int, dict[int, int]]:
    """How many bytes the kernel reads of outer values, and how often it computes each op's element.

    A product takes each element of an operand once for so many `columns` (or rows) of its result.
    An op that is read in two ways (itself and transposed, or by two passes of a row) is computed for each.
    """
    ways: dict[int, Accesses] = {i: {} for i in members}
    for i in outputs:
        ways[i][-1, flow.elements[i]] = flow.elements[i]
    reads: dict[int, tuple[Read, int]] = {}
    counts: dict[int, int] = {}
    for i in reversed(members):
        own = ways[i]
        counts[i] = sum(own.values())
        for n, read in enumerate(flow.operands[i]):
            reached = _reach(flow, i, n, own, columns)
            target = ways.get(read.producer)
            if target is None:
                touched = sum(reached.values())
                reads[read.value] = read, touched + (reads[read.value][1] if read.value in reads else 0)
            elif not target:
                target.update(reached)
            else:
                for way, count in reached.items():
                    target[way] = max(count, target.get(way, 0))
    return sum([min(read.elements, touched) * read.element_bytes for read, touched in reads.values()]), counts


def _reach(flow: Dataflow, i: int, n: int, ways: Accesses, columns: int) -> Accesses:
    """How an op reaches the elements of an operand, if its own are reached in these ways."""
    if flow.combines[i]:
        return {(i, n): flow.operands[i][n].elements * _repeats(flow, i, n, columns)}
    if flow.roles[i] is Role.ELEMENTWISE and flow.pointwise(i, n):
        return ways
    if flow.repeats[i]:
        return {(i, n, *way): count for way, count in ways.items()}
    # Of a piece of a concatenation, or what is padded, no more is computed than there is.
    size, whole = flow.operands[i][n].elements, max(1, flow.elements[i])
    return {(i, n, *way): min(count, -(-count * size // whole)) for way, count in ways.items()}


def _repeats(flow: Dataflow, i: int, n: int, columns: int) -> int:
    """How often an op that combines elements takes each element of an operand through what computes it."""
    op = flow.ops[i]
    if isinstance(op, hlo.DotGeneralOp) and n < 2:
        shape = [flow.nominal.size(s) for s in shape_of(op.operands[1 - n])]
        free = (op.dimensions.rhs_free if n == 0 else op.dimensions.lhs_free)(len(shape))
        return max(1, -(-prod(shape[k] for k in free) // columns))
    if isinstance(op, hlo.ConvolutionOp) and n == 0:
        d = op.dimensions
        kernel = [flow.nominal.size(s) for s in shape_of(op.rhs)]
        window = prod(kernel[k] for k in d.kernel_spatial_dimensions)
        return window * max(1, -(-kernel[d.kernel_output_feature_dimension] // columns))
    return 1
