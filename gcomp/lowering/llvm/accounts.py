"""What is said of each kernel for processors: the choices that lowering makes, asked for their reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation, SSAValue

from gcomp.analysis.accounts import Account
from gcomp.analysis.machines import Machine, machine_named
from gcomp.analysis.work import Nominal, flops_of
from gcomp.dims import Size, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import decode
from gcomp.ir.composites import CONSIDERED, MEASURED
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import describe
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.choices import Choice
from gcomp.lowering.llvm.settings import choose, panel_of, stored_operand
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.tiles.naming import Named, with_named_sizes
from gcomp.lowering.tiles.schedules import Scheduled, Settings, schedule
from gcomp.lowering.tiles.schedules.borders import pads_of
from gcomp.lowering.tiles.schedules.contraction import Contraction
from gcomp.lowering.tiles.segments import launch_name
from gcomp.runtime.cpu.plan import SHARED_WORK
from gcomp.runtime.cpu.variants import Variant


def accounts(program: Program, variant: Variant) -> list[Account]:
    """What is said of the launches of a program after the pipeline, in order, those in loops and branches once."""
    machine, nominal = machine_named(variant.name), Nominal(program.ranges)
    made: dict[Hashable, tuple[Choice, Scheduled]] = {}
    found: list[Account] = []
    for op in program.ops():
        if isinstance(op, LaunchOp):
            form = form_of(op)
            if form not in made:  # layers repeat, and kernels of one form are made alike
                made[form] = _made(op, program, variant)
            found.append(_account(op, *made[form], variant, machine, nominal))
    return found


def _made(op: LaunchOp, program: Program, variant: Variant) -> tuple[Choice, Scheduled]:
    named, choice = _chosen(op, program, variant)
    return choice, named.at_call(schedule(named.launch, launch_name(op), named.ranges, Settings(choice.values)))


def _account(
    op: LaunchOp, choice: Choice, scheduled: Scheduled, variant: Variant, machine: Machine, nominal: Nominal
) -> Account:
    clock = _clock(machine, variant)
    grids = [[nominal.size(n) for n in step.grid] for step in scheduled.steps]
    programs = max((nominal.size(product(grid)) for grid in grids), default=0)
    considered = _considered(op)
    return Account(
        label=op.label_name,
        place=describe(op.location),
        algorithm=", ".join(filter(None, (_algorithm(choice, scheduled), _words(choice, variant)))),
        layouts=(*_operands(op), *_results(op)),
        tile=_tile(op, choice),
        programs=programs,
        threads=_threads(op, programs, nominal),
        seconds=predicted(op, choice, considered, nominal, machine, clock),
        because=(*_algorithms(op, considered), *(reason.text(clock) for reason in choice.because)),
    )


def predicted_seconds(op: LaunchOp, program: Program, variant: Variant) -> float:
    """The seconds of a launch by one thread, in the settings that are chosen without measurements."""
    machine, (_, choice) = machine_named(variant.name), _chosen(op, program, variant)
    return predicted(op, choice, _considered(op), Nominal(program.ranges), machine, _clock(machine, variant))


def _chosen(op: LaunchOp, program: Program, variant: Variant) -> tuple[Named, Choice]:
    """A launch with names for its sizes, and what is chosen for it without measurements."""
    named = with_named_sizes(op, program.ranges)
    return named, choose(named.launch, named.ranges, variant.bits)


def _clock(machine: Machine, variant: Variant) -> float:
    """Cycles a second, in each of which two vectors are multiplied and added."""
    return machine.wide_contraction / (4 * (variant.bits // 32))


def predicted(
    op: LaunchOp, choice: Choice, considered: Mapping[str, float], nominal: Nominal, machine: Machine, clock: float
) -> float:
    """The seconds of a launch by one thread: those of its products, by the model that chose their blocks or their
    algorithm, and of all else that it computes; or those of the bytes that it moves, whichever are more."""
    by_name = considered.get(f"winograd {_tile_of(op)}x{_tile_of(op)}", 0.0)
    cycles = next((reason.cycles * reason.turns for reason in choice.because if reason.turns), 0.0)
    products = by_name or cycles / clock
    anchor = _contraction(op)
    others = [inner for inner in op.block.ops if not (products and (inner is anchor or _is_winograd(inner)))]
    rest = sum(flops_of(inner, nominal) for inner in others)
    arithmetic = products + rest / (machine.wide_contraction if anchor is not None and not products else machine.flops)
    moved = sum(nominal.bytes(value) for value in (*op.operands, *op.results))
    return machine.launch + max(arithmetic, moved / machine.bandwidth)


def _is_winograd(op: Operation) -> bool:
    return isinstance(op, hlo.CompositeOp) and op.composite_name == "gcomp.winograd"


def _tile_of(op: LaunchOp) -> int:
    """The size of the tiles of products at points; 0 where there are none."""
    return next((op.attributes_of()["tile"] for op in op.block.ops if _is_winograd(op)), 0)  # type: ignore[attr-defined]


def _contraction(op: LaunchOp) -> Contraction | None:
    return next((inner for inner in op.block.ops if isinstance(inner, Contraction)), None)


# ---- in words -----------------------------------------------------------------------------------------------------


def _algorithm(choice: Choice, scheduled: Scheduled) -> str:
    """The form that a schedule took says more than that of single elements does."""
    return scheduled.form or choice.algorithm


def _words(choice: Choice, variant: Variant) -> str:
    return f"by {variant.words or 'one term at a time'}" if choice.values.get("words") else ""


def _considered(op: LaunchOp) -> Mapping[str, float]:
    """What `choose-convolutions` said of an op of the launch."""
    marks = (inner.attributes.get(CONSIDERED) for inner in op.block.ops)
    mark = next((mark for mark in marks if isinstance(mark, DictionaryAttr)), None)
    return {} if mark is None else {name: decode(value) for name, value in mark.data.items()}


def _algorithms(op: LaunchOp, considered: Mapping[str, float]) -> Iterator[str]:
    """Why sums are computed as they are, where there was a choice."""
    times = {name: seconds for name, seconds in considered.items() if not name.startswith("error")}
    if not times:
        return
    taken = f"winograd {_tile_of(op)}x{_tile_of(op)}" if _tile_of(op) else "sums"
    rest = sorted((name for name in times if name != taken), key=times.__getitem__)
    others = ", ".join(f"{name} {1e6 * times[name]:,.1f} us" for name in rest)
    said = f"algorithm: {taken}, {1e6 * times[taken]:,.1f} us ({others}"
    for name, ratio in considered.items():
        if name.startswith("error"):
            said += f"; the {name} is {ratio:.1f} times that of sums, which is too much"
    yield f"{said})"
    for inner in op.block.ops:
        if isinstance(mark := inner.attributes.get(MEASURED), DictionaryAttr):
            found = {name: decode(value) for name, value in mark.data.items()}
            yield f"error against f64: {found['error']:.1e}, that of sums {found['exact']:.1e}"


def _operands(op: LaunchOp) -> Iterator[str]:
    anchor = _contraction(op)
    stored = None if anchor is None else stored_operand(anchor)
    for value, argument in zip(op.operands, op.block.args, strict=True):
        if not shape_of(value):
            continue
        weight = isinstance(value.owner, WeightOp)
        said = [f"{'weight' if weight else 'reads'} {_type(value)}"]
        if anchor is not None and argument is stored and panel_of(anchor):
            said.append(f"panels of {panel_of(anchor)} columns")
        elif any(isinstance(use.operation, hlo.ConvolutionOp) and use.index == 0 for use in argument.uses):
            said.append("channels last" if anchor is not None and _is_channels_last(anchor) else "channels first")
        elif any(_is_winograd(use.operation) for use in argument.uses):
            said.append("values at points, in panels" if weight else "channels last")
        yield ", ".join(said)


def _is_channels_last(op: Contraction) -> bool:
    return isinstance(op, hlo.ConvolutionOp) and op.is_channels_last


def _results(op: LaunchOp) -> Iterator[str]:
    pads = pads_of(op)
    for j, value in enumerate(op.results):
        around = f", written with padding around {_sizes(shape_of(pads[j].operand))}" if j in pads else ""
        yield f"writes {_type(value)}{around}"


def _type(value: SSAValue) -> str:
    return f"{_sizes(shape_of(value))} {dtype_text(value.type)}"


def _sizes(shape: Sequence[Size]) -> str:
    return "x".join(map(str, shape)) or "1"


def _tile(op: LaunchOp, choice: Choice) -> str:
    """What a program computes, by the names of the schedule's settings."""
    shown = {name: n for name, n in choice.values.items() if name in _SHOWN.get(op.kind_name, ())}
    return ", ".join(f"{name} {n}" for name, n in shown.items())


_SHOWN: Mapping[str, Sequence[str]] = {
    "loop": ("block",),
    "reduction": ("rows", "columns", "persistent"),
    **dict.fromkeys(("matmul", "convolution"), ("rows", "columns", "terms", "together")),
    "attention": ("queries", "keys"),
    "winograd": ("rows", "blocks", "panels"),
    "scan": ("rows", "columns"),
    "sort": ("direct", "merge", "select"),
    **dict.fromkeys(("window", "scatter", "library"), ("block",)),
}
"""Kind of kernel -> the settings that say how large its tiles are."""


def _threads(op: LaunchOp, programs: int, nominal: Nominal) -> str:
    """How programs go to threads, by the rule of the code that runs a call."""
    flops = sum(flops_of(inner, nominal) for inner in op.block.ops)
    work = flops + 2 * sum(nominal.bytes(value) for value in (*op.operands, *op.results))
    if work < SHARED_WORK:
        return f"one thread: {work:,} of work, waking others takes {SHARED_WORK:,}"
    return "one thread: there is one program" if programs < 2 else "all threads, part by part"


__all__ = ["accounts", "predicted", "predicted_seconds"]
