"""Samples for frontends: ONNX nodes, JAX functions, torch functions, with what their own evaluators compute."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from gcomp.ir.program import Program
from gcomp.sources import import_model
from gcomp.testing.fuzz.door import Undefined
from gcomp.testing.oracles.near import apart

Array = np.ndarray[Any, Any]

_SUITE = 2
"""Every so many-th ONNX sample is a case of ONNX's suite."""
_FORMS = 2
"""Each node is imported with sizes that are known, and with symbols for some."""
_JAX = ("primitive", "harness", "family", "primitive", "harness", "random")
"""What JAX functions are by turns: of one primitive, of JAX's harnesses, of a table of families, of random steps."""
_EXPORTED = 5
_SYMBOLIC = (1, 3)
"""Every so many-th of them is imported as `jax.export` writes it, and some with symbols for sizes."""
_OF_TABLE = 3
"""Every so many-th torch function is of a table, the others are of torch's database."""
_AS_BYTES = 4
"""Every so many-th ONNX model is imported from the bytes of its file."""
_UNKNOWN_SIZES = (
    "symbolic", "Symbolic", "depends on", "depend on", "inconclusive", "goes from", "did not end within",
)  # fmt: skip
"""So it is said that a size must be known."""
_OF_SUITE = ("Optional(", "depend on", "depends on")
_OF_JAX = _UNKNOWN_SIZES
_OF_EXPORTS = ("stablehlo.custom_call has no reference meaning",)
_GENERATORS = frozenset({
    "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Dropout",
})  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A model to import: its description, the import, its inputs, and the results of which it must compute one.
    Computing that raises Undefined where there is nothing to hold to."""

    about: tuple[str, ...]
    text: str
    load: Callable[[], Program]
    inputs: Sequence[Array]
    expected: Callable[[], Sequence[Sequence[Array]]]
    rtol: float = 0.0
    """What is allowed beyond rounding: of literals of few digits, and where sums cancel."""
    refusals: Sequence[str] = ("",)
    """Words of the reasons for which the frontend may refuse it: another refusal is wrong, and without any, each is."""
    names: tuple[str, ...] = ()
    """What its inputs are called, if that is known."""
    is_broken: bool = False
    """Whether it may be refused as a whole, and says nothing of results."""


class Origin(ABC):
    """Where samples are from."""

    name: ClassVar[str]

    def missing(self) -> str:
        """Why there are none here; empty where there are."""
        return ""

    @abstractmethod
    def sample(self, number: int, steps: int | None = None) -> Sample:
        """The sample of a number; of a function of several steps, the first `steps`. Undefined where there is none."""

    def steps(self, number: int) -> int:
        """Of how many steps the sample of a number is."""
        return 1

    def topic(self, number: int) -> str:
        """What the sample of a number is about, which is cheaply known; empty where it is not."""
        return ""


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    return find_spec(package) is not None


def _form(number: int, count: int) -> int:
    """Which of so many forms a sample has: by chance, since by turns a kind would have one form for ever where there
    are as many kinds as forms divide."""
    return int(np.random.default_rng(number).integers(count))


class OnnxNodes(Origin):
    """Nodes with attributes at random, and the node cases of ONNX's suite."""

    name: ClassVar[str] = "onnx"

    def sample(self, number: int, steps: int | None = None) -> Sample:
        turn, place = divmod(number, _SUITE)
        found = _case(turn) if place == 0 else _node(turn)
        return _from_bytes(found) if _form(number, _AS_BYTES) == 1 else found

    def topic(self, number: int) -> str:
        from gcomp.testing.foreign.onnx_nodes import makers

        turn, place = divmod(number, _SUITE)
        if place:
            return makers()[turn // _FORMS % len(makers())][1].__name__
        return _suite_topics()[turn % len(_suite_topics())]


def _from_bytes(sample: Sample) -> Sample:
    """The sample, imported from what would be its file."""
    (model,) = cast("partial[Any]", sample.load).args
    return replace(sample, load=lambda: import_model(model.SerializeToString()), text=f"{sample.text}, from bytes")


def _node(number: int) -> Sample:
    from gcomp.testing.foreign.onnx_nodes import model_of, with_symbols

    number, form = divmod(number, _FORMS)
    model = model_of(number)
    inputs = dict(model.inputs)
    given = [*inputs.values()]

    def results() -> list[list[Array]]:
        found = [r for r in (_evaluate(model.proto, inputs), _run(model.proto, inputs)) if r is not None]
        if not found or (len(found) > 1 and apart(found[0], found[1], given)):
            raise Undefined("nobody runs it, or two run it to other ends")
        return found

    named = tuple(inputs)
    if form == 0:
        load = partial(import_model, model.proto)
        return Sample((model.operator,), model.text, load, given, results, refusals=(), names=named)
    symbolic = with_symbols(model, np.random.default_rng([number, form]))
    return Sample((model.operator,), f"{model.text}, sizes unknown", partial(import_model, symbolic), given, results,
                  refusals=_UNKNOWN_SIZES, names=named)  # fmt: skip


def _evaluate(model: Any, inputs: Mapping[str, Array]) -> list[Array] | None:
    """What ONNX's reference evaluator computes; None where it fails."""
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator: Any = ReferenceEvaluator(model)
            return [np.asarray(x) for x in evaluator.run(None, dict(inputs))]
    except Exception:
        return None


def _run(model: Any, inputs: Mapping[str, Array]) -> list[Array] | None:
    """What ONNX Runtime computes; None where it is not installed, or refuses."""
    if not is_installed("onnxruntime"):
        return None
    import onnxruntime

    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(x) for x in session.run(None, dict(inputs))]
    except Exception:
        return None


@cache
def suite() -> list[Any]:
    """The node cases of ONNX's suite whose inputs and outputs are tensors, and not random."""
    from onnx.backend.test import loader

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = sorted(loader.load_model_tests(kind="node"), key=lambda case: case.name)
    found = [case for case in cases if case.model is not None and not (_operators(case.model) & _GENERATORS)]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[i] for i in order]


@cache
def _suite_topics() -> list[str]:
    return [" ".join(sorted(_operators(case.model))) for case in suite()]


def _operators(model: Any) -> frozenset[str]:
    return frozenset(node.op_type for node in model.graph.node)


def _case(number: int) -> Sample:
    case = suite()[number % len(suite())]
    inputs, expected = cast("tuple[list[Any], list[Any]]", case.data_sets[0])
    if not all(_is_numbers(x) for x in (*inputs, *expected)):
        raise Undefined("it is not of tensors of numbers")
    about = tuple(sorted(_operators(case.model)))
    return Sample(about, case.name, partial(import_model, case.model), inputs, lambda: [expected], 2e-3, _OF_SUITE)


def _is_numbers(value: Any) -> bool:
    """Whether a value is a tensor of numbers (not of strings)."""
    return type(value) is np.ndarray and np.asarray(value).dtype.kind not in "OSU"


class JaxFunctions(Origin):
    """Random functions of a few steps, a table of functions by families, and JAX's own harnesses of primitives."""

    name: ClassVar[str] = "jaxpr"

    def steps(self, number: int) -> int:
        return 4 if _JAX[number % len(_JAX)] == "random" else 1

    def topic(self, number: int) -> str:
        return _drawn(number, lambda module, place: module.name_of(place)) or "random"

    def sample(self, number: int, steps: int | None = None) -> Sample:
        import jax

        from gcomp.testing.foreign.jax_random import function_of

        with jax.enable_x64(True):
            made = _drawn(number, lambda module, place: module.function_of(place))
            if made is None:
                function, args, names = function_of(number, steps or 4)
            else:
                name, function, args = made
                names = [name]
        form = _form(number, _EXPORTED)
        exported, symbolic = form == 0, form in _SYMBOLIC
        # An export leaves out the inputs that are not used.
        given = [*args, np.arange(3.0)] if exported else args
        load = partial(_export if exported else _trace, function, given)
        if symbolic:
            load = partial(_symbolic, function, args, number)

        def results() -> list[list[Array]]:
            with jax.enable_x64(True):
                compiled: Any = cast(Any, jax).jit(function)
                try:
                    return [[np.asarray(x) for x in jax.tree.leaves(compiled(*args))]]
                except (TypeError, NotImplementedError) as error:  # what JAX says of functions that it does not take
                    raise Undefined(str(error)) from None

        text = f"JAX{', exported' if exported else ', sizes unknown' if symbolic else ''}: {', '.join(names)}"
        shapes = [list(x.shape) for x in args]
        known = () if exported else _parameter_names(function, args)
        return Sample(
            tuple(names),
            f"{text} of {shapes}",
            load,
            given,
            results,
            1e-8,
            _OF_JAX if symbolic else _OF_EXPORTS if exported else (),
            known,
        )


Drawn = TypeVar("Drawn")


def _drawn(number: int, of: Callable[[Any, int], Drawn]) -> Drawn | None:
    """Something of the table of functions that has its turn, and of its number there; None for a random function."""
    from gcomp.testing.foreign import jax_families, jax_harnesses, jax_primitives

    tables = {"primitive": jax_primitives, "harness": jax_harnesses, "family": jax_families}
    turn, place = divmod(number, len(_JAX))
    kind = _JAX[place]
    if kind not in tables:
        return None
    return of(tables[kind], turn * _JAX.count(kind) + _JAX[:place].count(kind))


def _symbolic(function: Callable[..., Any], args: list[Array], number: int) -> Any:
    """A function of sizes that are not known, where JAX can trace it so."""
    import jax

    from gcomp.testing.foreign.jax_primitives import with_symbols

    with jax.enable_x64(True):
        types = with_symbols(args, np.random.default_rng(number))
        try:
            cast(Any, jax).eval_shape(function, *types)
        except Exception as error:
            raise Undefined(str(error)) from None
        return import_model(function, *types)


def _parameter_names(function: Callable[..., Any], args: Sequence[Any]) -> tuple[str, ...]:
    """The names of a function's parameters, where each argument has one of its own."""
    known = inspect.signature(function).parameters.values()
    names = tuple(p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    return names[: len(args)] if len(names) >= len(args) else ()


def _export(function: Callable[..., Any], args: list[Array]) -> Any:
    """What `jax.export` makes of a function, with an input more, as it is read from its file."""
    import jax
    from jax import export

    def taking_more(*values: Any) -> Any:
        return function(*values[:-1])

    with jax.enable_x64(True):
        jitted: Any = cast(Any, jax).jit(taking_more)
        try:
            exported: Any = cast(Any, export).export(jitted, platforms=["cpu"])(*args)
        except ValueError as error:  # JAX does not promise that what it calls stays as it is
            raise Undefined(str(error)) from None
        return import_model(exported)


def _trace(function: Callable[..., Any], args: list[Array]) -> Any:
    import jax

    with jax.enable_x64(True):
        return import_model(function, *args)


class TorchFunctions(Origin):
    """Torch functions of a table, with arguments and attributes at random, and of torch's own database."""

    name: ClassVar[str] = "torch"

    def missing(self) -> str:
        return "" if is_installed("torch") else "torch is not installed"

    def topic(self, number: int) -> str:
        from gcomp.testing.foreign import torch_database, torch_functions

        turn, place = divmod(number, _OF_TABLE)
        return torch_functions.name_of(turn) if place == 0 else torch_database.name_of(_in_database(number))

    def sample(self, number: int, steps: int | None = None) -> Sample:
        import torch

        from gcomp.testing.foreign import torch_database, torch_functions

        turn, place = divmod(number, _OF_TABLE)
        try:
            name, function, args = (
                torch_functions.function_of(turn) if place == 0 else torch_database.function_of(_in_database(number))
            )
        except Exception as error:  # it has no sample that is of tensors that NumPy has
            raise Undefined(str(error)) from None

        class Module(torch.nn.Module):
            def forward(self, *values: Any) -> Any:
                return function(*values)

        tensors = [cast(Any, torch).from_numpy(x) for x in args]

        def expected() -> list[list[Array]]:
            try:
                with torch.no_grad():
                    return [_arrays(torch, function(*(t.clone() for t in tensors)))]
            except Exception as error:  # torch refuses what was drawn, or gives what is no tensor
                raise Undefined(str(error)) from None

        text = f"torch: {name} of {[list(x.shape) for x in args]}"
        if _form(number, _FORMS):
            load = partial(_with_symbols, torch, Module().eval(), tensors)
            refusals = _UNKNOWN_SIZES if place == 0 else ("",)
            return Sample((name,), f"{text}, sizes unknown", load, args, expected, 1e-4, refusals)
        load = partial(import_model, Module().eval(), *tensors)
        return Sample((name,), text, load, args, expected, 1e-4, () if place == 0 else ("",))


def _with_symbols(torch: Any, module: Any, tensors: Sequence[Any]) -> Program:
    """A module exported with symbols for the sizes that torch lets differ."""
    auto = torch.export.Dim.AUTO
    shapes = tuple(dict.fromkeys(range(tensor.ndim), auto) for tensor in tensors)
    try:
        exported = torch.export.export(module, tuple(tensors), dynamic_shapes=(shapes,))
    except Exception as error:  # torch does not export it so
        raise Undefined(str(error)) from None
    return import_model(exported)


def _in_database(number: int) -> int:
    turn, place = divmod(number, _OF_TABLE)
    return turn * (_OF_TABLE - 1) + place - 1


def _arrays(torch: Any, value: Any) -> list[Array]:
    """The tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [_array(torch, value)]
    return [array for part in value for array in _arrays(torch, part)]


def _array(torch: Any, value: Any) -> Array:
    import ml_dtypes

    value = value.detach().contiguous()
    if value.dtype == torch.bfloat16:
        return np.asarray(value.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
    return np.asarray(value.numpy())


ORIGINS: Mapping[str, type[Origin]] = {"onnx": OnnxNodes, "jaxpr": JaxFunctions, "torch": TorchFunctions}
"""Origins by name. Broken files are another (`broken`)."""
