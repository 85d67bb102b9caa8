"""`verify`: every pass is held to its promises by the reference, and the target to the program as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcomp.ir.program import Program
from gcomp.options import Array, Options
from gcomp.passes.manager import Instrument
from gcomp.runtime.model import Model
from gcomp.runtime.stateful import without_state
from gcomp.stages.base import Stage
from gcomp.stages.padding import within_buckets

if TYPE_CHECKING:
    from gcomp.runtime.strict_json import Json


class Verifying(Stage):
    """Compares what each pass made with what was there; with `full`, the model's answers with the program's, too."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._original: Program | None = None
        self._inputs: list[Array] | None = None

    def before_passes(self, program: Program) -> None:
        if self.options.verify == "full":
            self._original = program.clone()
        if self.options.verify_inputs is not None:
            from gcomp.passes.checking import named_inputs

            self._inputs = named_inputs(program, self.options.verify_inputs)

    def instruments(self) -> Sequence[Instrument]:
        # It is much that few compilations need, and is imported here.
        from gcomp.passes.verifying import JudgeEach

        # Padding gives the program other inputs than the user's.
        self._judge = JudgeEach(None if self.options.buckets else self._inputs)
        return [self._judge]

    def on_model(self, model: Model) -> None:
        found: dict[str, Json] = {"passes": self._judge.follower.to_json()}
        if self._original is not None:
            found["target"] = self._held(self._original, model)
        model.verified = found

    def _held(self, original: Program, model: Model) -> Json:
        """Hold what the model gives, but for what was fetched, to the reference; what was compared."""
        from gcomp.judging.targets import hold_target

        if self.options.buckets:
            original = within_buckets(original, self.options.buckets)
        flat, count = without_state(model).flat, len(original.outputs())
        return hold_target(original, lambda values: list(flat(values)[:count]), self._inputs).to_json(original.ranges)
