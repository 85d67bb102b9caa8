"""Gradients of programs, whatever they were made from: reverse mode (`grad`) and forward mode (`jvp`).

    step = gcomp.grad("model.onnx", wrt=["w1", "w2"], of="loss", value=True)
    model = gcomp.compile(step)

What comes out is a program again: it can be compiled, saved, and differentiated once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gcomp.analysis.work import Nominal
from gcomp.autodiff.programs import differentiate, differentiate_back
from gcomp.autodiff.saving import Save, saves_least
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.sources import import_model

_BEFORE = "infer-shapes"
"""What makes sizes known that a source leaves to run time."""


def grad(
    source: Any,
    *args: Any,
    wrt: Sequence[str] = (),
    of: str | int = "",
    value: bool = False,
    save: Save = "least",
    report: Callable[[str], object] | None = None,
    **options: Any,
) -> Program:
    """The program of the gradient of an output, for inputs and weights `wrt` (all inputs of floats if none is named).

    `source` is what `gcomp.compile` takes, and so are `args` and `options` (`dims`, ...). The outputs are called
    `grad(of, name)`; with `value`, the outputs of the source come first. An output that is no real scalar asks for its
    cotangent as one more input, `ct(of)`. `save` says what the way back finds saved of the way forward: the `least`
    bytes, where what is cheap is computed again, or `all` that it reads; `report` is told. Raises UsageError for names
    that there are not, and UnsupportedError, which names the op and its source, for what cannot be differentiated.
    """
    program = _prepare(source, args, options)
    sizes = Nominal(program.ranges).bytes if saves_least(save) else None
    saving = differentiate_back(program, output_name(program, of), names(wrt), value=value, bytes_of=sizes)
    if report is not None and saving is not None:
        report(saving.text())
    program.verify("after differentiation")
    return program


def jvp(source: Any, *args: Any, wrt: Sequence[str] = (), of: Sequence[str | int] = (), **options: Any) -> Program:
    """The program that computes the outputs, and tangents `jvp(name)` of those of floats (or `of`).

    Tangents of inputs and weights `wrt` (all inputs of floats if none is named) are inputs `t(name)`, after the others.
    """
    program = _prepare(source, args, options)
    chosen = (of,) if isinstance(of, str | int) else of
    differentiate(program, [output_name(program, name) for name in chosen], names(wrt))
    program.verify("after differentiation")
    return program


def _prepare(source: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Program:
    program = import_model(source, *args, **options)
    if program is source:
        program = program.clone()
    PassManager(parse_pipeline(_BEFORE)).run(program)
    return program


def names(given: Sequence[str]) -> Sequence[str]:
    """Names, where one may stand alone."""
    return (given,) if isinstance(given, str) else given


def output_name(program: Program, of: str | int) -> str:
    """The name of an output that is given by name or position."""
    if isinstance(of, str):
        return of
    ports = program.outputs()
    if not -len(ports) <= of < len(ports):
        raise UsageError(f"the program has no output {of}", why=f"it has {len(ports)}")
    return ports[of].name
