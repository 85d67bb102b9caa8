"""Models whose inputs are padded to one of a few sizes: one program for each, whatever the lengths of the data.

model = gcomp.compile("model.onnx", dims={"seq": "1..512"}, buckets={"seq": [64, 128, 512]})
model(ids)      # of any length up to 512: padded to a bucket, and the results cut to the true size
model.buckets   # how the buckets were used
"""

from __future__ import annotations

from dataclasses import replace

from gcomp.runtime.buckets import Buckets
from gcomp.runtime.executor import Executor
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Signature


def public(plan: Plan) -> Signature:
    """What callers give and get: all but the lengths, which the inputs' shapes say."""
    lengths = {bucketing.input for bucketing in plan.buckets.values()}
    inputs = tuple(spec for spec in plan.signature.inputs if spec.name not in lengths)
    return replace(plan.signature, inputs=inputs)


class BucketedModel(Model):
    """A model that pads its inputs."""

    def _start(self) -> tuple[Executor, Signature]:
        signature = public(self.plan)
        self._padding = self.on.padded_executor(self.plan, self.weights, signature)
        return self._padding, signature

    @property
    def buckets(self) -> Buckets:
        """The buckets, and how calls have used them."""
        return self._padding.buckets

    def text(self, **sizes: int) -> str:
        """The program that the target compiles for these lengths. Raises InputError."""
        env = self._padding.buckets.padded(self.signature.sizes(sizes))
        return "\n".join(self.plan.templates[step.text].fill(env) for step in self.plan.segments)


__all__ = ["BucketedModel", "public"]
