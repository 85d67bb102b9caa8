"""Models whose inputs are padded to one of a few sizes: one program for each, whatever the lengths of the data.

model = gcomp.compile("model.onnx", dims={"seq": "1..512"}, buckets={"seq": [64, 128, 512]})
model(ids)      # of any length up to 512: padded to a bucket, and the results cut to the true size
model.buckets   # how the buckets were used
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gcomp.errors import UnsupportedError
from gcomp.runtime.buckets import Buckets
from gcomp.runtime.model import Array, Executor, Model
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Signature

if TYPE_CHECKING:
    from gcomp.runtime.xla.padded import PaddedExecutor


def public(plan: Plan) -> Signature:
    """What callers give and get: all but the lengths, which the inputs' shapes say."""
    lengths = {bucketing.input for bucketing in plan.buckets.values()}
    inputs = tuple(spec for spec in plan.signature.inputs if spec.name not in lengths)
    return replace(plan.signature, inputs=inputs)


class BucketedModel(Model):
    """A model that pads its inputs."""

    def _start(self, execute: Callable[[Plan, Mapping[str, Array]], Executor]) -> tuple[Executor, Signature]:
        signature = public(self.plan)
        self._padding = _padded(self.plan, self.weights, signature)
        return self._padding, signature

    @property
    def buckets(self) -> Buckets:
        """The buckets, and how calls have used them."""
        return self._padding.buckets

    def text(self, **sizes: int) -> str:
        """The program that the target compiles for these lengths. Raises InputError."""
        env = self._padding.buckets.padded(self.signature.sizes(sizes))
        return "\n".join(self.plan.templates[step.text].fill(env) for step in self.plan.segments)


def _padded(plan: Plan, weights: Mapping[str, Array], signature: Signature) -> PaddedExecutor:
    if not plan.target.startswith("xla:"):
        raise UnsupportedError(
            f"Models with buckets do not run on {plan.target[:80]!r}.", fix="Compile the model for: xla:cpu."
        )
    from gcomp.runtime.xla.padded import PaddedExecutor

    return PaddedExecutor(plan, weights, signature, plan.target.partition(":")[2])


__all__ = ["BucketedModel", "public"]
