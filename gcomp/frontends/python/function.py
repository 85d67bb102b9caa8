"""Python functions as programs: traced on the types of their tensors and the values of everything else.

Tensors and arrays among the arguments, in any nested structure, are inputs; so are tensors that the function sees as
globals, closure cells or attributes. Python numbers and all other objects are static: each value has its own trace.
"""

from __future__ import annotations

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.dtypes import text_of
from gcomp.errors import InputError, UnsupportedError, UsageError
from gcomp.frontends.python.flow import convert_function
from gcomp.frontends.python.state import State, differences, generator_states, state_of
from gcomp.frontends.python.variables import Undefined
from gcomp.ir.program import Program
from gcomp.ir.types import tensor, tensor_of
from gcomp.tensors import trees
from gcomp.tensors.eager import Array, Known, eager, known_value
from gcomp.tensors.lifting import array_of, lift_operands
from gcomp.tensors.promotion import name_of
from gcomp.tensors.site import where_here
from gcomp.tensors.tensor import Tensor, refuse
from gcomp.tensors.tracing import Trace

SizeSpec = Any
"""A size of an argument: a number, or a name (or formula) of symbols."""
Shapes = Mapping[str, Sequence[SizeSpec]]
"""The shapes of arguments, by parameter or place (`"x"`, `"params['w']"`), where sizes are to be symbols."""


class Abstract(NamedTuple):
    """What a trace knows of a tensor: its element type and shape."""

    element: str
    shape: tuple[Size, ...]

    def __repr__(self) -> str:
        return f"{name_of(self.element)}[{', '.join(map(str, self.shape))}]"


class Call(NamedTuple):
    """A call: its tensors' arrays in order, and what decides which trace it needs."""

    arrays: tuple[Array, ...]
    abstract: tuple[tuple[str, Abstract], ...]
    """For each of them its name (`params['w']`), and what a trace knows of it."""
    parameters: tuple[str, ...]
    structure: Any
    """The structure of the arguments, a list by parameter."""
    leaves: tuple[Any, ...]
    """The arguments' leaves; `TENSOR` for those that are arrays."""
    state: State
    """The static leaves, and what the function sees beside its arguments."""

    @property
    def key(self) -> Any:
        """Equal keys need one trace."""
        return self.abstract, self.parameters, self.structure, self.state.tokens


TENSOR: Any = object()


@dataclass(frozen=True)
class Traced:
    """A function's program for one kind of call, and how its results become what the function returns."""

    program: Program | None
    """None where no result is a tensor that a run computes."""
    reads: tuple[int, ...]
    """Which tensors of the call's state are inputs, after its arrays."""
    structure: Any
    leaves: tuple[Any, ...]
    """The results: what stands for the place of a program's output, or a static value."""

    def inputs(self, call: Call) -> list[Array]:
        """The program's inputs for a call."""
        return [*call.arrays, *(call.state.tensors[i].numpy() for i in self.reads)]

    def results(self, outputs: Sequence[Array]) -> Any:
        """The function's results, its tensors from the program's outputs."""
        b = eager()
        made = [Tensor(b, known_value(outputs[one.place])) if isinstance(one, Output) else one for one in self.leaves]
        return trees.unflatten(self.structure, made)


class Output(NamedTuple):
    """The place of a program's output among a function's results."""

    place: int


class Traceable:
    """A function, and how its arguments become inputs."""

    def __init__(self, function: Callable[..., Any], shapes: Shapes) -> None:
        self.function = function
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):
            raise UsageError(f"{function!r} has no signature that Python knows") from None
        self.shapes = {path: tuple(map(_size, shape)) for path, shape in shapes.items()}
        known_ = self.signature.parameters
        if unknown := [path for path in self.shapes if re.split(r"[\[.]", path)[0] not in known_]:
            raise UsageError(
                f"the function has no parameter {unknown[0]!r}", fix=f"its parameters are: {', '.join(known_)}"
            )

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """What one call is. Raises TypeError, as any function, for arguments that do not fit the signature."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        named = [pair for key, value in given.items() for pair in trees.paths(value, key)]
        _, structure = trees.flatten(list(given.values()))
        dynamic = [(name, _array(leaf)) for name, leaf in named if is_dynamic(leaf)]
        return Call(
            arrays=tuple(array for _, array in dynamic),
            abstract=tuple((name, self._abstract(name, array)) for name, array in dynamic),
            parameters=tuple(given),
            structure=structure,
            leaves=tuple(TENSOR if is_dynamic(leaf) else leaf for _, leaf in named),
            state=self._state([(name, leaf) for name, leaf in named if not is_dynamic(leaf)]),
        )

    def _state(self, static: Sequence[tuple[str, Any]]) -> State:
        return state_of([*static, ("", self.function)])

    def _abstract(self, name: str, array: Array) -> Abstract:
        shape = self.shapes.get(name)
        if shape is None:
            return Abstract(text_of(array.dtype), array.shape)
        fits = len(shape) == array.ndim and all(
            not isinstance(s, int) or s == n for s, n in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise InputError(
                f"the argument {name} has the shape {array.shape}", where=where_here(),
                why=f"it was declared as ({', '.join(map(str, shape))})",
            )  # fmt: skip
        return Abstract(text_of(array.dtype), shape)

    def trace(self, call: Call) -> Traced:
        """The program for calls like this one. Raises UnsupportedError, with the user's line, for what has none."""
        trace = FunctionTrace(call.state.tensors)
        inputs = [(name, Tensor(trace, trace.add_input(tensor(a.shape, a.element)))) for name, a in call.abstract]
        arguments = iter(inputs)
        leaves = [next(arguments)[1] if leaf is TENSOR else leaf for leaf in call.leaves]
        given = trees.unflatten(call.structure, leaves)
        bound = inspect.BoundArguments(self.signature, OrderedDict(zip(call.parameters, given, strict=True)))
        drawn = generator_states()
        try:
            with trace.open():
                result = convert_function(self.function)(*bound.args, **bound.kwargs)
                self._check_unchanged(call, leaves, given)
                if generator_states() != drawn:
                    raise UnsupportedError(
                        "the function draws random numbers of Python's or NumPy's",
                        where=self.where,
                        why="the compiled program would have the same ones at every call",
                        fix="draw them with ops.random, from a key that is an argument",
                    )
                return _finish(trace, inputs, result)
        finally:
            trace.closed = True

    def _check_unchanged(self, call: Call, leaves: Sequence[Any], given: Any) -> None:
        """Refuse a function that changed what it was given or sees: its program would not."""
        names = [name for key, value in zip(call.parameters, given, strict=True) for name, _ in trees.paths(value, key)]
        now, structure = trees.flatten(given)
        if structure != call.structure or any(a is not b for a, b in zip(now, leaves, strict=True)):
            raise UnsupportedError(
                "the function changes a list or dict that it was given",
                where=self.where,
                why="the compiled program would not",
                fix="return the changed structure",
            )
        kept = zip(names, call.leaves, strict=True)
        after = self._state([(name, leaf) for name, leaf in kept if leaf is not TENSOR])
        if changed := differences(call.state, after):
            raise UnsupportedError(
                "the function changes Python state, which the compiled program would not",
                where=self.where,
                why="; ".join(changed[:3]),
                fix="return the new value instead, or run the function op by op: `with gcomp.eager():`",
            )

    @property
    def where(self) -> str:
        """The function's first line."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)


class FunctionTrace(Trace):
    """The trace of a call. Tensors that were there before are inputs, if the function's state leads to them."""

    kind = "function"

    def __init__(self, state: Sequence[Tensor]) -> None:
        super().__init__()
        self._places = {id(t.value): i for i, t in enumerate(state)}
        self.used: list[SSAValue | None] = [None] * len(state)

    def outside(self, value: Known) -> SSAValue:
        place = self._places.get(id(value))
        if place is None:
            raise UnsupportedError(
                "the function uses a tensor that gcomp cannot find again at the next call",
                where=where_here(),
                why="it is neither an argument nor reached by globals, closures or attributes",
                fix="pass it as an argument",
            )
        found = self.used[place]
        if found is None:
            found = self.used[place] = self.add_input(tensor_of(value))
        return found

    def refuse_reading(self, value: SSAValue, what: str) -> NoReturn:
        refuse(what)


def is_dynamic(leaf: Any) -> bool:
    """Whether an argument is an input of the program: a tensor, or an array of NumPy or another library."""
    return isinstance(leaf, Tensor | np.ndarray | np.generic) or (
        hasattr(leaf, "__array__") and hasattr(leaf, "dtype") and not isinstance(leaf, type)
    )


def _array(leaf: Any) -> Array:
    return leaf.numpy() if isinstance(leaf, Tensor) else array_of(leaf)


def _size(spec: SizeSpec) -> Size:
    try:
        return dims.parse(spec) if isinstance(spec, str) else spec
    except dims.DimError as error:
        raise UsageError(f"{spec!r} is no size", why=str(error)) from None


def _label(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", ".", path).strip(".") or "x"


def _finish(trace: FunctionTrace, inputs: Sequence[tuple[str, Tensor]], result: Any) -> Traced:
    """The traced program of a result."""
    leaves, structure = trees.flatten(result)
    names = [name for name, _ in trees.paths(result, "result")]
    outputs: list[tuple[str, SSAValue]] = []
    kept: list[Any] = []
    for name, leaf in zip(names, leaves, strict=True):
        if isinstance(leaf, Undefined):
            raise leaf.refuse(leaf.place)
        if is_dynamic(leaf) or isinstance(leaf, Dim):
            outputs.append((_label(name), lift_operands(leaf, b=trace)[1][0]))
            kept.append(Output(len(outputs) - 1))
        elif type(leaf) in (bool, int, float, complex, str, bytes):
            kept.append(leaf)
        else:
            raise UnsupportedError(
                f"the function returns a {type(leaf).__name__}", why=f"it is {name}", fix="return tensors and numbers"
            )
    seen = [(i, value) for i, value in enumerate(trace.used) if value is not None]
    ports = [(_label(name), x.value) for name, x in inputs] + [(f"state_{i}", value) for i, value in seen]
    program = trace.extract(_unique(ports), _unique(outputs), prints="all") if outputs else None
    return Traced(program, tuple(i for i, _ in seen), structure, tuple(kept))


def _unique(named: Sequence[tuple[str, SSAValue]]) -> list[tuple[str, SSAValue]]:
    found: dict[str, SSAValue] = {}
    for base, value in named:
        label, count = base, 1
        while label in found:
            label, count = f"{base}_{count}", count + 1
        found[label] = value
    return list(found.items())
