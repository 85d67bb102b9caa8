"""Training steps: one program that computes the loss, its gradients, and the next values of all that is kept.

Its inputs are the state (parameters, what the optimizer keeps of each, the number of the step), the batch and labels;
its outputs the loss, metrics, and the next state, which takes the memory of the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gcomp import ops
from gcomp.dims import DimSpec, Size
from gcomp.driver import compile_with
from gcomp.dtypes import text_of
from gcomp.errors import UsageError, did_you_mean
from gcomp.gradients import Save, grad
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of, tensor
from gcomp.options import DEFAULT_TARGET, Options, Verify
from gcomp.owners import user_level
from gcomp.runtime.stateful import StatefulModel
from gcomp.sharding.text import MeshSpec
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import Trace
from gcomp.training import optimizers, schedules, specs
from gcomp.training.forward import ALL, Array, Forward, Selection, forward
from gcomp.training.optimizers import Optimizer
from gcomp.training.schedules import Schedule
from gcomp.training.scoring import Labels, Loss, Scored

OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {
    "sgd": optimizers.SGD,
    "adamw": optimizers.AdamW,
    "adafactor": optimizers.Adafactor,
    "lion": optimizers.Lion,
}
SCHEDULES: Mapping[str, Callable[..., Schedule]] = {
    "constant": schedules.Constant,
    "linear": schedules.Linear,
    "cosine": schedules.Cosine,
    "piecewise": schedules.Piecewise,
}
METRICS = ("accuracy", "grad_norm", "learning_rate")
STEP = "step"
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""Seeds of steps that follow each other differ by this odd number: runs of neighbouring seeds do not overlap."""


class TrainingWarning(UserWarning):
    """A training step does not do what one might expect of it."""


@dataclass(frozen=True)
class TrainingStep:
    """The program of a training step; the names of the weights that train; and why the others do not."""

    program: Program
    trained: tuple[str, ...]
    fixed: Mapping[str, str]


def train_step(
    source: Any, *args: Any, target: str = DEFAULT_TARGET, pipeline: str | None = None, verify: Verify = "off",
    progress: Callable[[str], object] | None = None, checks: Sequence[str] = (), mesh: MeshSpec | None = None,
    shardings: Mapping[str, Any] | None = None, prepare: bool = True, **options: Any,
) -> StatefulModel:  # fmt: skip
    """Compile a training step of a model: `loss = step(x, labels)` trains, and `step.state` has the parameters.

    `source` and `args` are what `gcomp.compile` takes, and so are `target`, `pipeline`, `verify`, `checks`, `prepare`,
    `mesh` and `shardings`, which speak of parameters, too; what an optimizer keeps of a parameter lies as that does.
    `options` are those of `training_step`. Raises GcompError.
    """
    step = training_step(source, *args, **options)
    chosen = Options(target=target, pipeline=pipeline, verify=verify, progress=progress, checks=checks, mesh=mesh,
                     shardings=shardings, prepare=prepare)  # fmt: skip
    return cast(StatefulModel, compile_with(step.program, (), chosen))


def training_step(
    source: Any,
    *args: Any,
    loss: str | Loss = "cross_entropy",
    optimizer: str | Optimizer = "adamw",
    schedule: str | Schedule = "constant",
    clip: float | None = None,
    output: str | int | None = None,
    labels: Labels = "",
    metrics: Sequence[str] = (),
    trainable: str | Sequence[str] = ALL,
    freeze: str | Sequence[str] = (),
    train_mode: bool = False,
    parameters: Mapping[str, Array] | None = None,
    save: Save = "all",
    dims: Mapping[str, DimSpec] | None = None,
    structures: Any = None,
    constants: Mapping[str, Array] | None = None,
) -> TrainingStep:
    """The program of a training step of a model.

    `loss`, `optimizer` and `schedule` are names with settings (`"adamw:lr=1e-3,weight_decay=0.01"`) or objects; a loss
    may be any function of the outputs and the labels over `gcomp.ops`. The loss is of `output` (the only one, or the
    one named). `labels` are classes of i64 for cross_entropy and nll, else of the output's type: give another element
    type (`"int32"`), `"probabilities"`, or for a function of yours names with types and shapes (`{"y": ("float32",
    ("batch", 3))}`). `metrics` are more outputs (`METRICS`). `clip` bounds the norm of the gradients. All weights of
    floats train, but for `freeze`; or those of `trainable`, both glob patterns. With `train_mode`, an ONNX model's
    BatchNormalization and Dropout do what they do in training. `parameters` gives first values to inputs that are to be
    parameters. `save` is as in `gcomp.grad`: `least` takes less memory, and may take more time. Raises GcompError.
    """
    selection = Selection(_as_patterns(trainable), _as_patterns(freeze))
    model = forward(
        source, args, selection, training=train_mode, parameters=parameters or {}, dims=dims, structures=structures,
        constants=constants,
    )  # fmt: skip
    rule = specs.make_by_name("optimizer", OPTIMIZERS, optimizer) if isinstance(optimizer, str) else optimizer
    rate = specs.make_by_name("schedule", SCHEDULES, schedule) if isinstance(schedule, str) else schedule
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"there is no metric {name!r}", fix=did_you_mean(name, METRICS))
    scored = Scored(model, loss, output, labels, "accuracy" in metrics)
    trained, unused = scored.trained()
    fixed = {**model.fixed, **dict.fromkeys(unused, "the loss does not depend on it")}
    selection.check(dict.fromkeys(trained), fixed)
    _warn(fixed)
    program = _Step(model, scored, trained, rule, rate, clip, metrics, save).build()
    return TrainingStep(program, tuple(trained), fixed)


def _as_patterns(patterns: str | Sequence[str]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def _warn(fixed: Mapping[str, str]) -> None:
    statistics = [name for name, why in fixed.items() if "statistic" in why]
    if statistics:
        warnings.warn(
            f"the statistics of BatchNormalization are frozen ({', '.join(statistics[:2])}, {len(statistics)} in all): "
            "the model was exported for inference. train_mode=True (--train-mode) normalizes by each batch's own.",
            TrainingWarning,
            stacklevel=user_level(),
        )


@dataclass
class _Step:
    """A training step in the making."""

    model: Forward
    scored: Scored
    trained: Sequence[str]
    rule: Optimizer
    schedule: Schedule
    clip: float | None
    metrics: Sequence[str]
    save: Save

    def __post_init__(self) -> None:
        self.trace = Trace()
        self.first = {name: self.model.parameters[name] for name in [*self.trained, *self.model.updates]}
        self.slots = {name: self.rule.slots(self.first[name].shape) for name in self.trained}

    def build(self) -> Program:
        """The program: the loss's gradient, and what becomes of the state."""
        program, inputs = self.scored.program(list(self.first))
        program = grad(program, wrt=self.trained, of="loss", value=True, save=self.save)
        state = {name: self._input(array.shape, text_of(array.dtype)) for name, array in self.first.items()}
        for name, slots in self.slots.items():
            state |= {f"{slot}({name})": self._input(shape, state[name].element) for slot, shape in slots.items()}
        state[STEP] = self._input((), "i64")
        optional = {port.name for port in self.scored.ports if port.default is not None}
        others = sorted((pair for pair in inputs if pair[0] not in state), key=lambda pair: pair[0] in optional)
        given = {name: self._input(shape_of(value), dtype_text(value.type)) for name, value in others}
        with self.trace.open():
            arguments = [self._argument(name, state, given) for name, _ in inputs]
            results = self.trace.inline(program, [argument.value for argument in arguments])
            found = {p.name: Tensor(self.trace, v) for p, v in zip(program.outputs(), results, strict=True)}
            outputs, following = self._updated(state, found)
        return self._finished(state, given, outputs, following)

    def _input(self, shape: Sequence[Size], element: str) -> Tensor:
        return Tensor(self.trace, self.trace.add_input(tensor(shape, element)))

    def _argument(self, name: str, state: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Tensor:
        """The tensor for an input of the loss: state, a given input, or a seed, which advances with the step."""
        if name in state:
            return state[name]
        if any(port.name == name and port.default is not None and port.dtype == "ui64" for port in self.scored.ports):
            return given[name] + ops.astype(state[STEP], np.uint64) * _STRIDE
        return given[name]

    def _updated(
        self, state: Mapping[str, Tensor], found: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The outputs, and the next state."""
        gradients = [found[f"grad(loss, {name})"] for name in self.trained]
        count = ops.astype(state[STEP], np.float64)
        rate = self.schedule(count) * self.rule.lr
        outputs = {name: found[name] for name in ("loss", "accuracy") if name in found}
        if "grad_norm" in self.metrics:
            outputs["grad_norm"] = optimizers.global_norm(gradients)
        if "learning_rate" in self.metrics:
            outputs["learning_rate"] = ops.astype(rate, np.float32)
        if self.clip is not None:
            gradients, _ = optimizers.clip_by_global_norm(gradients, self.clip)
        following = {name: found[output] for name, output in self.model.updates.items()}
        for name, gradient in zip(self.trained, gradients, strict=True):
            slots = {slot: state[f"{slot}({name})"] for slot in self.slots[name]}
            following[name], kept = self.rule.update(state[name], gradient, slots, count, rate)
            following |= {f"{slot}({name})": value for slot, value in kept.items()}
        following[STEP] = state[STEP] + 1
        return outputs, {name: ops.astype(value, state[name].dtype) for name, value in following.items()}

    def _finished(
        self, state: Mapping[str, Tensor], given: Mapping[str, Tensor], outputs: Mapping[str, Tensor],
        following: Mapping[str, Tensor],
    ) -> Program:  # fmt: skip
        """The trace as a program whose model keeps the state."""
        results = [*outputs.items(), *((f"next({name})", following[name]) for name in state)]
        program = self.trace.extract(
            [(name, one.value) for name, one in [*state.items(), *given.items()]],
            [(name, one.value) for name, one in results],
        )
        program.ranges = self.model.program.ranges
        program.constraints = list(dict.fromkeys([*self.model.program.constraints, *program.constraints]))
        for port in self.scored.ports:
            if port.default is not None and port.name in given:
                program.default(port.name, port.default)
        program.keep({name: f"next({name})" for name in state}, self.first)
        program.result_structure = 0 if len(outputs) == 1 else {"dict": [[n, i] for i, n in enumerate(outputs)]}
        return program
