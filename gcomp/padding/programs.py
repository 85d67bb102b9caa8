"""Padded programs: the same outputs for inputs that are longer than their data, given how long the data is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.dims import Range, Ranges, symbols_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of, tensor
from gcomp.padding import rows as rows  # fills the table
from gcomp.padding.layouts import Sizes
from gcomp.padding.sweep import Padded, Sweep
from gcomp.padding.table import ROWS


def input_of(symbol: str) -> str:
    """The name of the input that holds a padded symbol's true value."""
    return f"length({symbol})"


def pad_program(program: Program, symbols: Sequence[str], most: Mapping[str, int] | None = None) -> None:
    """Let symbols be padded: each is the size of what inputs hold, and `length(symbol)` says how much of it is data.

    Of an output, the elements are real whose indices are below the output's size with the lengths in place of the
    symbols; they are what they were. `most` has the greatest sizes that there will be. Raises UsageError for what is no
    symbol of an input, UnsupportedError for an op whose results would not be the same.
    """
    _check(program, symbols)
    ports, outputs = program.inputs(), [port.name for port in program.outputs()]
    program.donate({port.name for port in ports if port.donated})  # names that stand for positions are written down
    program.argument_structure = None
    program.names.clear()  # what they name is built anew
    for symbol in symbols:
        program.add_input(input_of(symbol), tensor((), "i64"))
    old = program.main.body.block
    new = Block(arg_types=old.arg_types)
    for before, after in zip(old.args, new.args, strict=True):
        after.name_hint = before.name_hint
    lengths = dict(zip(symbols, new.args[len(ports) :], strict=True))
    results = _build(program, old, new, Sizes(lengths, _limit_ranges(program.ranges, most or {})), lengths)
    body = program.main.body
    body.detach_block(old)
    body.add_block(new)
    old.erase(safe_erase=False)  # ops that a frontend made and dropped may still use its values
    program.finish([(name, x.value) for name, x in zip(outputs, results, strict=True)])
    _drop_unused(program)


def _limit_ranges(ranges: Ranges, most: Mapping[str, int]) -> Ranges:
    """The ranges, none of which goes beyond these sizes."""
    return ranges.with_ranges({name: Range(ranges[name].lo, n, ranges[name].multiple_of) for name, n in most.items()})


def _build(program: Program, old: Block, new: Block, sizes: Sizes, lengths: Mapping[str, SSAValue]) -> list[Padded]:
    """What the padded program returns; its ops are put into `new`."""
    for port in program.inputs():
        if shrinking := [size for size in port.shape if not sizes.grows(size)]:
            what = f"the size {shrinking[0]} of the input {port.name!r} may be less for a longer one"
            raise UnsupportedError(
                f"{', '.join(lengths)} cannot be padded: {what}", fix="leave that symbol out of the buckets"
            )
    b = Builder(program, new)
    sweep = Sweep(b, sizes, lengths, ROWS)
    arguments = [Padded(arg, sweep.plain(arg)) for arg in new.args]
    return [sweep.compact(x) for x in sweep.block(old, arguments)]


def _check(program: Program, symbols: Sequence[str]) -> None:
    known = {s for arg in program.block.args for size in shape_of(arg) for s in symbols_of(size)}
    for symbol in symbols:
        if symbol not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"there is no symbolic dimension {symbol!r} to pad", fix=f"its symbols are: {listed}")
    if len(set(symbols)) < len(symbols):
        raise UsageError("a dimension to pad is named twice", where=", ".join(symbols))
    names = {port.name for port in program.inputs()}
    if taken := next((s for s in symbols if input_of(s) in names), None):
        raise UsageError(f"the program has an input {input_of(taken)!r} already", why=f"{taken} may be padded already")


def _drop_unused(program: Program) -> None:
    """Remove functions that nothing calls any more, because they were built in place of their calls."""
    while True:
        used = {name for _, name in program.callees()}
        used |= {op.decomposition_name for op in program.ops() if isinstance(op, hlo.CompositeOp)}
        unused = [f for f in program.functions() if f is not program.main and f.sym_name.data not in used]
        if not unused:
            return
        for function in unused:
            Rewriter.erase_op(function)
