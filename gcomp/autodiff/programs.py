"""Programs of derivatives: a program's inputs, and the gradient of an output, or tangents of all outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.autodiff import rows as rows  # fills the table
from gcomp.autodiff.saving import BytesOf, Saving, save_least
from gcomp.autodiff.sweeps import Forward, Reverse, differentiable, reached_values, sweep_dead_block
from gcomp.dtypes import is_complex
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, rank_of, tensor_of

Named = tuple[str, SSAValue]


def differentiate_back(
    program: Program, of: str = "", wrt: Sequence[str] = (), *, value: bool = False, bytes_of: BytesOf | None = None
) -> Saving | None:
    """Make the program return the gradient of output `of` for inputs and weights `wrt`, called `grad(of, wrt)`.

    `of` may be left out where there is one output, and `wrt` where all inputs of floats are meant. With `value`, the
    outputs that there were come first. An output that is no real scalar asks for its cotangent, as the input `ct(of)`.
    Where `bytes_of` says how many bytes values take, what is cheap is computed again instead of saved (`saving`).
    """
    resolve_tuples(program)
    outputs = program.named_outputs()
    name, result = _output(outputs, of)
    sources = _sources(program, wrt)
    ops = list(program.block.ops)[:-1]
    seed = None
    if rank_of(result) or is_complex(dtype_text(result.type)):
        seed = _add(program, f"ct({name})", result)
    b = Builder(program, InsertPoint.before(program.returned))
    # Loops on the way forward are replaced in place, so an op says where the way back begins.
    border = b.constant(0.0, "f32").owner
    sweep = Reverse(b, reached_values(ops, [source for _, source in sources]))
    sweep.add(result, b.full_like(result, 1) if seed is None else seed)
    sweep.run(ops)
    gradients = [(f"grad({name}, {source})", sweep.derivative_at(v)) for source, v in sources]
    backward = [*takewhile(lambda op: op is not border, reversed(list(program.block.ops)))][:0:-1]
    finish(program, [*(program.named_outputs() if value else ()), *gradients])
    if bytes_of is None:
        return None
    return save_least(program, [op for op in backward if op.parent is program.block], bytes_of)


def differentiate(program: Program, of: Sequence[str] = (), wrt: Sequence[str] = ()) -> None:
    """Make the program return its outputs, and for those of floats (or `of`) their tangents, called `jvp(output)`.

    The tangents of inputs and weights `wrt` (or of all inputs of floats) are inputs `t(name)` after the others.
    """
    resolve_tuples(program)
    outputs = program.named_outputs()
    wanted = [_output(outputs, name) for name in of] or [out for out in outputs if differentiable(out[1])]
    sources = _sources(program, wrt)
    ops = list(program.block.ops)[:-1]
    b = Builder(program, InsertPoint.before(program.returned))
    sweep = Forward(b)
    for source, value in sources:
        sweep.put(value, _add(program, f"t({source})", value))
    names = {name for name, _ in wanted}
    sweep.run(ops)
    # Control flow was replaced by what computes tangents too, and so were its results.
    after = program.named_outputs()
    finish(program, [*after, *((f"jvp({name})", sweep.derivative_at(v)) for name, v in after if name in names)])


def finish(program: Program, outputs: Iterable[Named]) -> None:
    """Return other outputs, and remove what they do not need."""
    chosen = list(outputs)
    names = [name for name, _ in chosen]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two outputs would be called {twice!r}", fix="leave out the value of what has it already")
    Rewriter.erase_op(program.returned)
    program.finish(chosen)
    program.result_structure = None
    sweep_dead_block(program.block)


def resolve_tuples(program: Program) -> None:
    """Elements of tuples that are made in the same program are the values that went in."""
    for op in list(program.ops()):
        if isinstance(op, hlo.GetTupleElementOp) and isinstance(made := op.operand.owner, hlo.TupleOp):
            index: int = op.value("index")
            op.results[0].replace_all_uses_with(made.operands[index])
            Rewriter.erase_op(op)


# ---- what is asked for ----


def _output(outputs: Sequence[Named], name: str) -> Named:
    known = dict(outputs)
    if not name and len(outputs) > 1:
        names = ", ".join(known)
        raise UsageError("it is not said which output to differentiate", why=f"there are {names}", fix="name one: of=")
    if not outputs or (name and name not in known):
        raise UsageError(f"the program has no output {name!r}", why=f"its outputs are {', '.join(known) or 'none'}")
    found = (name, known[name]) if name else outputs[0]
    if not differentiable(found[1]):
        raise UsageError(
            f"the output {found[0]!r} cannot be differentiated",
            why=f"its elements are {dtype_text(found[1].type)}", fix="differentiate an output of floats",
        )  # fmt: skip
    return found


def _add(program: Program, name: str, like: SSAValue) -> SSAValue:
    """A new input. UsageError where there is one of this name."""
    if name in {port.name for port in program.inputs()}:
        raise UsageError(
            f"the program has an input {name!r} already", fix="rename it, or differentiate for all at once"
        )
    ensure_names(program)
    program.argument_structure = None
    return program.add_input(name, tensor_of(like))


def ensure_names(program: Program) -> None:
    """Write down the names of inputs that have them by position only, so that another input may come."""
    program.donate({port.name for port in program.inputs() if port.donated})


def _sources(program: Program, wrt: Sequence[str]) -> list[Named]:
    """What each name of an input or a weight stands for."""
    inputs = {port.name: arg for port, arg in zip(program.inputs(), program.block.args, strict=True)}
    if not wrt:
        wrt = [name for name, arg in inputs.items() if differentiable(arg)]
        if not wrt:
            raise UsageError("there is no input to differentiate for", fix="name weights: wrt=")
    found: list[Named] = []
    for name in wrt:
        if name in inputs:
            value = inputs[name]
        elif name in program.weights:
            value = _read(program, name)
        else:
            known = ", ".join([*inputs, *program.weights])
            raise UsageError(
                f"the program has no input or weight {name!r}", why=f"there are {known or 'none'}",
                fix="a small initializer is a constant without a name once it is imported: make it an input",
            )  # fmt: skip
        if not differentiable(value):
            text = dtype_text(value.type)
            raise UsageError(f"there is no gradient for {name!r}", why=f"its elements are {text}, not floats")
        found.append((name, value))
    if len({name for name, _ in found}) < len(found):
        raise UsageError("an input to differentiate for is named twice", where=", ".join(wrt))
    return found


def _read(program: Program, name: str) -> SSAValue:
    """The weight, read once, at the start of main, for all that reads it, inside functions and regions too."""
    reads = [op for op in program.ops() if isinstance(op, WeightOp) and op.symbol == name]
    inside = set(program.main.walk())
    for op in reads:
        if op not in inside:
            raise UnsupportedError(
                f"there is no gradient for the weight {name!r}", where=where(op),
                why="it is read inside a function that the program calls", fix="run the passes inline-composites first",
            )  # fmt: skip
    b = Builder(program, InsertPoint.at_start(program.block))
    value = b.read_weight(name)
    for op in reads:
        op.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(op)
    return value


__all__ = ["differentiate", "differentiate_back"]
