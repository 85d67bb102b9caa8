"""Stages of few lines: donated inputs, a budget of memory, and what a model keeps and compiles ahead."""

from __future__ import annotations

from gcomp.errors import UsageError
from gcomp.exactness import DEFAULT_NUMERICS
from gcomp.ir.composites import measured_in
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.options import Options
from gcomp.passes.memory.rematerialize import bytes_in, check_budget
from gcomp.runtime.engine import Ability
from gcomp.runtime.manifest import ChosenKernel, NumericsSpec
from gcomp.runtime.model import Model
from gcomp.stages.base import Stage


class Donating(Stage):
    """Notes the inputs whose memory may be reused."""

    def __init__(self, options: Options) -> None:
        self.names = options.donate

    def before_passes(self, program: Program) -> None:
        """Raises UsageError for names that are no inputs."""
        known = [port.name for port in program.inputs()]
        if unknown := [name for name in self.names if name not in known]:
            raise UsageError(f"cannot donate {unknown[0]!r}: no such input", fix=f"the inputs are: {', '.join(known)}")
        program.donate(set(self.names))


class Choosing(Stage):
    """Notes the class of numerics, and what was chosen for how fast it is, with its measured error."""

    def __init__(self, options: Options) -> None:
        # A pipeline says itself how exact it is.
        self.name = "pipeline" if options.pipeline is not None else options.numerics or DEFAULT_NUMERICS
        self._kernels: list[ChosenKernel] = []

    def after_passes(self, program: Program) -> None:
        self._kernels += [ChosenKernel(describe(op.location), **found) for op, found in measured_in(program)]

    def on_model(self, model: Model) -> None:
        model.numerics = NumericsSpec(self.name, tuple(self._kernels))


class Budgeting(Stage):
    """Holds the plan of memory to a budget."""

    def __init__(self, options: Options) -> None:
        self.bytes = None if options.memory_budget is None else bytes_in(options.memory_budget)

    def after_passes(self, program: Program) -> None:
        """Raises UnsupportedError where the budget cannot be kept."""
        check_budget(program, self.bytes)


class GettingReady(Stage):
    """Sets how much a model keeps, and compiles what is known to be needed."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def on_model(self, model: Model) -> None:
        if self.options.executables is not None:
            model.keep(self.options.executables)
        if self.options.prepare and model.signature.is_static and model.on.can(Ability.COMPILES_WHEN_LOADED):
            self.options.report(model.on.family)
            model.prepare()
