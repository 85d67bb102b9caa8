"""What a training makes small: a model's program, and behind it the loss of its outputs and of labels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.errors import UsageError, did_you_mean
from gcomp.gradients import output_name
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.tensors.promotion import element_text
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import Trace, Value
from gcomp.training import losses, specs
from gcomp.training.forward import Forward

Loss = Callable[..., Any]
LabelSpec = tuple[Any, Sequence[int | str]]
Labels = str | Mapping[str, LabelSpec]

LOSSES: Mapping[str, Loss] = {
    "cross_entropy": losses.cross_entropy,
    "nll": losses.nll,
    "mse": losses.mse,
    "l1": losses.l1,
    "huber": losses.huber,
    "bce_with_logits": losses.bce_with_logits,
}
OUTPUT = "output"
"""The name that stands for no loss: an output of the model is the loss."""
_OF_CLASSES = ("cross_entropy", "nll")
"""Losses whose labels are classes, unless they are asked to be probabilities."""


class Scored:
    """The program of the loss: a model's, and behind it loss and accuracy."""

    def __init__(
        self, model: Forward, loss: str | Loss, output: str | int | None, labels: Labels,
        accurate: bool,
    ) -> None:  # fmt: skip
        self.model, self.trace = model, Trace()
        program = model.program
        self.ports = program.inputs()
        self.arguments: dict[str, Value] = {p.name: self._input(p.name, p.dtype, p.shape) for p in self.ports}
        results = self.trace.inline(program, list(self.arguments.values()))
        names = [port.name for port in program.outputs()]
        self.results = {name: Tensor(self.trace, value) for name, value in zip(names, results, strict=True)}
        self.outputs = [name for name in names if name not in set(model.updates.values())]
        self.labels: list[tuple[str, Any, tuple[Size, ...]]] = []
        with self.trace.open():
            self.loss, self.accuracy = self._loss(loss, output, labels, accurate)
        self._check_loss()

    def _input(self, name: str, element: str, shape: Sequence[Size]) -> Value:
        return self.trace.add_input(tensor(shape, element))

    def _loss(
        self, loss: str | Loss, output: str | int | None, labels: Labels, accurate: bool
    ) -> tuple[Any, Tensor | None]:
        name, compute = ("", loss) if callable(loss) else (loss.partition(":")[0], None)
        if name == OUTPUT:
            if labels or accurate:
                raise UsageError("an output that is the loss has no labels", fix="leave labels and accuracy out")
            return self.results[self._chosen(output)], None
        if compute is None:
            compute = cast(
                "functools.partial[Any]", specs.make_by_name("loss", {**LOSSES, OUTPUT: Scored}, cast(str, loss))
            )
        chosen = self.outputs if callable(loss) and output is None else [self._chosen(output)]
        scores = [self.results[one] for one in chosen]
        if name == "cross_entropy":
            scores = [self._logits(chosen[0], compute)]
        targets = self._targets(name, labels, scores, compute)
        settings = {k: v for k, v in getattr(compute, "keywords", {}).items() if k in ("axis", "ignore_index")}
        found = losses.accuracy(scores[0], targets[0], **settings) if accurate and name in _OF_CLASSES else None
        if accurate and found is None:
            raise UsageError("there is no accuracy of this loss", fix="it is for cross_entropy and nll")
        return compute(*scores, *targets), found

    def _chosen(self, output: str | int | None) -> str:
        """The output that a loss is of."""
        if output is None and len(self.outputs) > 1:
            raise UsageError("it is not said of which output the loss is", why=f"there are {', '.join(self.outputs)}",
                             fix="name one: output=")  # fmt: skip
        if output is None or isinstance(output, int):
            name = output_name(self.model.program, output or 0)
        else:
            name = output
        if name not in self.outputs:
            raise UsageError(f"the model has no output {name!r}", fix=did_you_mean(name, self.outputs))
        return name

    def _logits(self, name: str, compute: Any) -> Tensor:
        """The scores of an output; where it is their softmax over the classes, those that went into it."""
        given = self.results[name]
        op: Any = given.value.owner
        if getattr(op, "name", "") != "stablehlo.composite" or op.value("name") != "gcomp.softmax":
            return given
        axis = losses.class_axis(given, compute.keywords.get("axis"))
        own = op.attributes_of()["axis"]
        return Tensor(self.trace, op.operands[0]) if own % len(given.shape) == axis else given

    def _targets(self, name: str, labels: Labels, scores: Sequence[Tensor], compute: Any) -> list[Tensor]:
        """The inputs for labels."""
        if isinstance(labels, Mapping):
            rows = [(key, element_text(dtype), tuple(map(_size, shape))) for key, (dtype, shape) in labels.items()]
        elif not name:
            raise UsageError("the labels of a loss of yours have no type", fix='labels={"y": ("float32", ("batch",))}')
        else:
            rows = [("labels", *self._label_type(name, labels, scores[0], compute))]
        for key, _, _ in rows:
            if key in self.arguments:
                raise UsageError(f"the model has an input {key!r} already", fix='name them: labels={"targets": ...}')
        self.labels = rows
        self.arguments |= {key: self._input(key, element, shape) for key, element, shape in rows}
        return [Tensor(self.trace, self.arguments[key]) for key, _, _ in rows]

    def _label_type(self, name: str, labels: str, scores: Tensor, compute: Any) -> tuple[str, tuple[Size, ...]]:
        shape = tuple(scores.shape)
        if name not in _OF_CLASSES or labels == "probabilities":
            if labels not in ("", "probabilities"):
                return element_text(labels), shape
            return scores.element, shape
        element = element_text(labels or "int64")
        if is_float(element) or element == "i1" or element.startswith("complex"):
            raise UsageError(f"labels of {element} are no classes", fix="give an integer type, or 'probabilities'")
        axis = losses.class_axis(scores, compute.keywords.get("axis"))
        return element, (*shape[:axis], *shape[axis + 1 :])

    def _check_loss(self) -> None:
        loss: object = self.loss
        if not isinstance(loss, Tensor) or not loss.is_traced:
            raise UsageError("the loss is no tensor that depends on the model", why=f"it is {str(loss)[:80]}")
        if loss.shape or not is_float(loss.element):
            raise UsageError(
                "the loss is no number of floats",
                why=f"it is {loss.element}[{', '.join(map(str, loss.shape))}]",
                fix="reduce it, say by a mean",
            )

    def trained(self) -> tuple[list[str], list[str]]:
        """The parameters with a gradient, and those that the loss does not depend on."""
        needed = set(self.trace.missing([self.loss.value], []))
        names = [name for name in self.model.parameters if name not in self.model.updates]
        used = [name for name in names if self.arguments[name] in needed]
        return used, [name for name in names if name not in used]

    def program(self, kept: Sequence[str]) -> tuple[Program, list[tuple[str, Value]]]:
        """The program of the loss, accuracy and statistics; and its inputs: those given, and `kept` parameters."""
        own = set(self.model.parameters)
        inputs = [(name, value) for name, value in self.arguments.items() if name not in own or name in kept]
        outputs = [("loss", self.loss.value)]
        if self.accuracy is not None:
            outputs.append(("accuracy", self.accuracy.value))
        outputs += [(following, self.results[following].value) for following in self.model.updates.values()]
        return self.trace.extract(inputs, outputs), inputs


def _size(size: int | str) -> Size:
    return dims.parse(size) if isinstance(size, str) else size
