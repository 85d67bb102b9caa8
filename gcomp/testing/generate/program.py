"""Random programs over the whole op set: `random_program` for bulk runs, `programs` for Hypothesis.

A program grows step by step, mostly from its latest value, so that ops chain. What nothing uses at the end is mostly
returned, so that little is dead; some of it stays dead on purpose, and some outputs are inputs, inner values, or twice
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from gcomp import dims
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, tensor
from gcomp.testing.generate.choices import Choices, Drawn, Seeded
from gcomp.testing.generate.growth import MANY_ELEMENTS, STEPS, Growth

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_FAMILIES = (
    "elementwise", "constants", "movement", "indexing", "contraction", "reduction", "control", "composites",
    "structure", "directed", "dynamic", "linalg", "legacy",
)  # fmt: skip
for _family in _FAMILIES:
    import_module(f"gcomp.testing.generate.{_family}")
_PLACES = {f"gcomp.testing.generate.{family}": place for place, family in enumerate(_FAMILIES)}
# A number makes the same program whichever family was imported first; those of others come after.
for _name in sorted(STEPS, key=lambda name: _PLACES.get(STEPS[name].grow.__module__, len(_PLACES))):
    STEPS[_name] = STEPS.pop(_name)

_PALETTES = (
    ("f32",), ("f32", "i32"), ("i32",), ("f32", "f16", "i32"), ("f32", "bf16", "i8"), ("i32", "i64", "ui8", "i1"),
    ("f64", "f32"), ("i8", "ui8", "i32", "f32"), ("complex<f32>", "f32"), ("i4", "ui4", "i16"), ("bf16",),
    ("f16", "f64"), ("f32", "ui32", "i1"), ("i64", "ui64", "f64"), ("f8E4M3FN", "f32"), ("complex<f64>", "f64", "i32"),
    ("f8E5M2", "f16", "ui16"), ("i2", "ui2", "i8"),
)  # fmt: skip
_PALETTE_WEIGHTS = (16, 16, 10, 9, 8, 8, 6, 6, 3, 3, 3, 3, 4, 3, 2, 2, 1.5, 1.5)
_LOWS, _HIGHS = (1, 1, 1, 2, 0), (3, 4, 2, 6)
_SYMBOLIC, _LARGE = 0.15, 0.04
_MAIN, _PUBLIC, _NO_TYPE = StringAttr("main"), StringAttr("public"), FunctionType.from_lists([], [])


class Shown(Program):
    """A program that Hypothesis shows as its text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text())


def random_program(choices: Choices, size: int = 15, *, verify: bool = False) -> Program:
    """A program of about `size` ops. It verifies; `verify` makes sure, which takes longer than making it."""
    return grow(choices, size, verify=verify).program


def programs(size: int = 10) -> SearchStrategy[Program]:
    """Programs of about `size` ops, for Hypothesis."""
    return strategy(lambda choices: random_program(choices, size, verify=True))


def strategy(make: Callable[[Choices], Program]) -> SearchStrategy[Program]:
    """The Hypothesis strategy of what `make` makes of choices."""
    from hypothesis import strategies

    @strategies.composite
    def build(draw: Callable[[SearchStrategy[Any]], Any]) -> Program:
        program = make(Drawn(draw))
        return Shown(program.module, program.weights)

    return build()


def seeded_program(seed: int, size: int = 15) -> Program:
    """The program of a seed."""
    return random_program(Seeded(seed), size)


def grow(
    choices: Choices, size: int, *, verify: bool = False, symbolic: float | None = None, sizes: Sequence[int] = ()
) -> Growth:
    """A finished growth: the program, and the steps that made it."""
    growth = start_growth(choices, size, symbolic=symbolic, sizes=sizes)
    while growth.b.made < size and choices.span(lambda: choices.more() and growth.take(nested=True)):
        pass
    finish(growth)
    if verify:
        growth.program.verify("as generated")
    return growth


def start_growth(
    choices: Choices, size: int, palette: Sequence[str] | None = None, *, symbolic: float | None = None,
    sizes: Sequence[int] = (),
) -> Growth:  # fmt: skip
    """A growth with its palette (or the one that is given), its symbols (with a probability) and its first input. Most
    of its sizes are among `sizes`, where there are any."""
    program = _empty()
    growth = Growth(program, choices, size, palette or _PALETTES[choices.weighted(_palette_totals())])
    growth.preferred = sizes
    if choices.flag(_LARGE):
        growth.most = MANY_ELEMENTS
    if choices.flag(_SYMBOLIC if symbolic is None else symbolic):
        names = ("n", "m")[: choices.integer(1, 2)]
        ranges = {name: _range(choices) for name in names}
        program.ranges = dims.Ranges(ranges)
        growth.symbols = {name: known.hi or known.lo for name, known in ranges.items()}
        growth.least = {name: known.lo for name, known in ranges.items()}
        for name in names:
            # Every symbol is bound by an input that has it bare.
            others = growth.shape(most=1)
            shape = (dims.symbol(name), *others) if growth.fits((dims.symbol(name), *others)) else (dims.symbol(name),)
            growth.fresh(tensor(shape if choices.flag() else shape[::-1], growth.text_among(None)))
    for _ in range(choices.integer(1, 2)):
        growth.fresh(tensor(growth.shape(), growth.text_among(None)))
    return growth


def _empty() -> Program:
    """`Program.empty` without inputs, made as ops are in bulk."""
    properties = {"sym_name": _MAIN, "sym_visibility": _PUBLIC, "function_type": _NO_TYPE}
    main = FuncOp.create(properties=properties, regions=[Region(Block())])
    return Program(ModuleOp.create(regions=[Region(Block([main]))]))


def _range(choices: Choices) -> dims.Range:
    low = choices.chosen(_LOWS)
    return dims.Range(low, max(low, choices.chosen(_HIGHS)))


@lru_cache(maxsize=1)
def _palette_totals() -> list[float]:
    return [float(sum(_PALETTE_WEIGHTS[: i + 1])) for i in range(len(_PALETTE_WEIGHTS))]


def finish(growth: Growth, kept: Sequence[SSAValue] = ()) -> None:
    """Return `kept` and what nothing uses, mostly, and now and then an inner value, an input, or a value twice."""
    choices, block = growth.choices, growth.entry
    results: list[SSAValue] = [
        *kept,
        *(
            result
            for op in block.ops
            for result in op.results
            if result.first_use is None and result not in kept and is_tensor(result.type) and not choices.flag(0.08)
        ),
    ]
    if choices.flag(0.3):
        results.append(choices.chosen(growth.values))
    if results and choices.flag(0.1):
        results.append(choices.chosen(results))
    if block.args and choices.flag(0.1):
        results.append(choices.chosen(block.args))
    if not results:
        results.append(growth.values[-1])
    if choices.flag(0.2):
        results.reverse()
    block.add_op(ReturnOp.create(operands=results))
    main = cast(FuncOp, block.parent_op())
    main.function_type = FunctionType.from_lists([a.type for a in block.args], [r.type for r in results])
    main.arg_attrs, main.res_attrs = _names("x", len(block.args)), _names("r", len(results))


def donate_inputs(program: Program, choices: Choices) -> Program:
    """The program, some of whose inputs may be given away: their memory may hold outputs."""
    if choices.flag():
        program.donate({port.name for port in program.inputs() if choices.flag(0.7)})
    return program


@lru_cache(maxsize=256)
def _names(letter: str, count: int) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({"gcomp.name": StringAttr(f"{letter}{i}")}) for i in range(count)])


__all__ = ["STEPS", "donate_inputs", "grow", "programs", "random_program", "seeded_program"]
