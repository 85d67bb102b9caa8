"""Mutants of the ONNX suite's own models, and what gcomp and its peers make of one.

Each mutant must end in one GcompError that is no InternalError, or in results that agree with ONNX Runtime's where
that accepts the mutant too. Where ONNX Runtime and the onnx package's reference evaluator disagree with each other the
mutant is counted apart: ONNX then leaves its meaning open, or one of the two is wrong.

Known noise: what ONNX leaves undefined, and what docs/semantics.md decides otherwise than both peers do. Such mutants
are told by their operators and inputs, see `OPEN`, and counted as `open` where they differ.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader as loader
from onnx import TensorProto, numpy_helper

from gcomp.testing.mutate import nodes

Array = np.ndarray[Any, Any]
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
STRICT = "InvalidModelError, and ONNX Runtime runs it"
RANDOM = {
    "Bernoulli",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Dropout",
}
ROUNDED = ("Quantize", "QLinear", "Integer")
IR_VERSION = 13
LARGEST = 1 << 20
"""Models of more bytes, and inputs of more elements, are left out: they only take time."""


@dataclass(frozen=True)
class Sample:
    """A model of the suite with inputs for it; None for what is no tensor."""

    name: str
    model: onnx.ModelProto
    inputs: Sequence[Array | None]


@dataclass(frozen=True)
class Mutant:
    """A mutated model with inputs by name, and how it was made."""

    name: str
    mutators: str
    model: onnx.ModelProto
    inputs: dict[str, Array] | None


@dataclass
class Verdict:
    """How a mutant ended, in a word or two; `problem` says what is wrong, if anything is."""

    outcome: str
    problem: str = ""
    note: str = ""


# ---- samples ----


@lru_cache(1)
def samples() -> tuple[list[Sample], nodes.Pool]:
    """The suite's models that are small enough, and what they use."""
    found: list[Sample] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for case in loader.load_model_tests(kind=kind):
                sample = _sample(case)
                if sample is not None and sample.model.ByteSize() <= LARGEST:
                    found.append(sample)
    return found, nodes.Pool.of(s.model for s in found)


def _sample(case: Any) -> Sample | None:
    if case.model is not None:
        return Sample(case.name, case.model, [_array(x) for x in case.data_sets[0][0]])
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    files = sorted((folder / "test_data_set_0").glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    try:
        return Sample(case.name, model, [numpy_helper.to_array(onnx.load_tensor(str(f))) for f in files])
    except (TypeError, ValueError):
        return None


def _array(value: Any) -> Array | None:
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    if value is None or isinstance(value, (list, dict)):
        return None
    array = np.asarray(value)
    return None if array.dtype.kind in "OUS" else array


# ---- making mutants ----


def mutant(seed: int, number: int) -> Mutant:
    """Mutant `number` of a seed: the same each time."""
    found, pool = samples()
    chance = Random(f"{seed} {number}")
    sample = found[chance.randrange(len(found))]
    model, inputs = onnx.ModelProto(), dict[str, Array | None]()
    model.CopyFrom(sample.model)
    # The newest that ONNX Runtime reads; what IR versions add is not what is tried here.
    model.ir_version = min(model.ir_version, IR_VERSION)
    inputs.update({v.name: x for v, x in zip(model.graph.input, sample.inputs, strict=False)})
    raw(model)
    _fix_inputs(chance, model, inputs)
    if chance.random() < 0.85:
        for value in model.graph.output:
            value.ClearField("type")
    changed, names = nodes.mutate(chance, model, pool)
    return Mutant(sample.name, names, changed, _inputs(chance, changed, inputs))


def raw(model: onnx.ModelProto) -> None:
    """Keep all constants as raw bytes, which the mutators know."""
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    for tensor in tensors:
        if tensor.data_type != TensorProto.STRING and not tensor.HasField("raw_data"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))


def _fix_inputs(chance: Random, model: onnx.ModelProto, inputs: dict[str, Array | None]) -> None:
    """Make constants of inputs that hold axes, shapes and the like: gcomp must know them when it compiles."""
    values = list(model.graph.input)
    for value in values[1:]:
        array = inputs.get(value.name)
        if array is None or array.size > 64 or chance.random() < 0.15:
            continue
        if array.dtype.kind in "iub" or (array.ndim == 0 and chance.random() < 0.5):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            model.graph.input.remove(value)


def _inputs(chance: Random, model: onnx.ModelProto, given: dict[str, Array | None]) -> dict[str, Array] | None:
    """Arrays for the mutant's inputs: those of the sample where they fit, and others of the stated types."""
    fixed, sizes, arrays = {t.name for t in model.graph.initializer}, dict[str, int](), dict[str, Array]()
    rng = np.random.default_rng(chance.randrange(1 << 32))
    for value in model.graph.input:
        if value.name in fixed:
            continue
        kind, old = value.type.tensor_type, given.get(value.name)
        if not value.type.HasField("tensor_type") or kind.elem_type in (0, TensorProto.STRING):
            return None
        shape = _shape(kind.shape.dim, old, sizes)
        if int(np.prod(shape, dtype=np.float64)) > LARGEST or min(shape, default=0) < 0 or len(shape) > 32:
            return None
        arrays[value.name] = _data(chance, rng, shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), old)
    return arrays


def _shape(dims: Sequence[Any], old: Array | None, sizes: dict[str, int]) -> list[int]:
    shape: list[int] = []
    for i, dim in enumerate(dims):
        if dim.WhichOneof("value") == "dim_value":
            shape.append(dim.dim_value)
        else:
            known = old.shape[i] if old is not None and i < old.ndim else 2
            shape.append(sizes.setdefault(dim.dim_param, known) if dim.dim_param else known)
    return shape


def _data(chance: Random, rng: np.random.Generator, shape: Sequence[int], dtype: Any, old: Array | None) -> Array:
    if old is not None and list(old.shape) == list(shape):
        if old.dtype.kind in "OUS":
            old = np.ones(old.shape)
        array = old if old.dtype == dtype else np.asarray(old.astype(np.float64).round(3), np.float64)
    elif np.dtype(dtype).kind in "iub":
        array = rng.integers(0, 4, shape)
    else:
        array = rng.standard_normal(shape) * 2
    with np.errstate(all="ignore"):
        array = np.array(np.clip(array, 0, 100) if np.dtype(dtype).kind == "u" else array).astype(dtype)
    if array.size and np.dtype(dtype).kind == "f" and chance.random() < 0.1:
        array = array.copy()
        array.reshape(-1)[chance.randrange(array.size)] = chance.choice((np.nan, np.inf, -np.inf, -0.0, 1e4))
    return array


# ---- judging ----


def judge(case: Mutant, with_target: bool, report: Callable[[str], None]) -> Verdict:
    """What gcomp makes of a mutant, next to its peers. `report` hears of each step before it is taken."""
    from gcomp.errors import GcompError, InternalError, InvalidModelError

    report("gcomp")
    try:
        results = _gcomp(case, with_target, report)
    except InternalError as error:
        return Verdict("FAILED", f"InternalError: {_root(error)}")
    except InvalidModelError as error:
        note = f"{error.what} ({error.why})"
        if case.inputs is not None:
            report("peer")
            return Verdict("InvalidModelError" if isinstance(runtime(case), str) else STRICT, note=note)
        return Verdict("InvalidModelError", note=note)
    except GcompError as error:
        return Verdict(type(error).__name__, note=f"{error.what} ({error.why})")
    except Exception as error:
        return Verdict("FAILED", f"{type(error).__name__}: {_root(error)}")
    if isinstance(results, Verdict):
        return results
    report("peer")
    return _compared(case, results)


def _root(error: BaseException) -> str:
    import traceback

    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__}: {str(error)[:300]} at {' < '.join(frames[:-4:-1])}"


def _gcomp(case: Mutant, with_target: bool, report: Callable[[str], None]) -> list[Array] | Verdict:
    from gcomp.frontends.onnx import import_onnx
    from gcomp.reference.interpreter import interpret

    program = import_onnx(case.model)
    if case.inputs is None:
        return Verdict("imported")
    # What has a default (the seed) may be left out.
    ports = [port for port in program.inputs() if port.default is None]
    if any(port.name not in case.inputs for port in ports):
        return Verdict("imported")
    with np.errstate(all="ignore"):
        results = interpret(program, [case.inputs[port.name] for port in ports], max_steps=200_000)
    if with_target:
        report("target")
        import gcomp

        found = gcomp.compile(case.model)(**{port.name: case.inputs[port.name] for port in ports})
        for i, (a, b) in enumerate(zip(found, results, strict=True)):
            if problem := difference(np.asarray(a), b, case.model):
                return Verdict("FAILED", f"the target differs from the interpreter in output {i}: {problem}")
    return results


def _compared(case: Mutant, results: Sequence[Array]) -> Verdict:
    peer = runtime(case)
    if isinstance(peer, str):
        evaluated = evaluator(case)
        if isinstance(evaluated, str):
            return Verdict("ran, no peer does")
        problem = _differences(results, evaluated, case.model)
        if problem:
            return Verdict("ran, the reference evaluator alone differs", note=f"{problem}; ORT: {peer[:150]}")
        return Verdict("agrees with the reference evaluator")
    problem = _differences(results, peer, case.model)
    if not problem:
        return Verdict("agrees with ONNX Runtime")
    if reason := _open(case):
        return Verdict(f"open: {reason}", note=problem)
    evaluated = evaluator(case)
    if isinstance(evaluated, str):
        return Verdict("FAILED", f"differs from ONNX Runtime: {problem} (the reference evaluator: {evaluated[:100]})")
    if not _differences(results, evaluated, case.model):
        return Verdict("peers differ, agrees with the reference evaluator", note=problem)
    if _differences(peer, evaluated, case.model):
        return Verdict("peers differ", note=problem)
    return Verdict("FAILED", f"differs from both peers: {problem}")


CASTS = {"Cast", "CastLike", "QuantizeLinear", "DynamicQuantizeLinear", "Range", "ConstantOfShape"}
CONVOLUTIONS = {"Conv", "ConvTranspose", "Col2Im", "DeformConv", "STFT", "DFT"}
OPEN: tuple[tuple[str, frozenset[str], str], ...] = (
    ("floats to integers out of range", frozenset(CASTS), "wild"),
    ("infinity and NaN times the padding of a convolution", frozenset(CONVOLUTIONS), "infinite"),
    ("NaN and infinity as places", frozenset({"GridSample", "AffineGrid", "RoiAlign", "Resize"}), "infinite"),
    ("NaN among extrema", frozenset({"ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "MaxPool", "Max", "Min",
                                     "Clip", "Hardmax", "GlobalMaxPool", "NonMaxSuppression"}), "infinite"),
    ("integer powers", frozenset({"Pow"}), "integer"),
    ("integer division by zero", frozenset({"Div", "Mod", "Reciprocal"}), "integer"),
    ("shifts past the width", frozenset({"BitShift"}), "integer"),
    ("rounding of what rounds differently", frozenset({"Cast", "CastLike", "Floor", "Ceil", "Round", "Sign"}), "any"),
)  # fmt: skip
"""What is open: a name, the operators of which one is in the mutant, and whether its inputs or constants must hold
infinities or NaN (`infinite`), those or numbers beyond a byte (`wild`), or integers (`integer`)."""


def _open(case: Mutant) -> str:
    """Why the meaning of a mutant is open, or the empty text."""
    operators = {n.op_type for n in _all_nodes(case.model)}
    arrays = [*(case.inputs or {}).values()]
    arrays += [numpy_helper.to_array(t) for t in case.model.graph.initializer if t.data_type != TensorProto.STRING]
    kinds = {"any"} if len(list(_all_nodes(case.model))) > 1 else set[str]()
    kinds |= {"integer"} if any(a.dtype.kind in "iu" for a in arrays) else set()
    kinds |= {"infinite"} if any(_beyond(a, np.inf) for a in arrays) else set()
    kinds |= {"wild"} if any(_beyond(a, 256) for a in arrays) else set()
    return next((name for name, found, kind in OPEN if found & operators and kind in kinds), "")


def _beyond(array: Array, bound: float) -> bool:
    """Whether an array has an element that is NaN, or of at least this size."""
    return array.dtype.kind not in "bcOU" and not bool(np.all(np.abs(array.astype(np.float64)) < bound))


def runtime(case: Mutant) -> list[Array] | str:
    """ONNX Runtime's results, or why it has none."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = [_tensor(x) for x in session.run(None, case.inputs or {})]
        stated = [o.type for o in session.get_outputs()]
        if any("float8" in t or "float4" in t or "int4" in t or "int2" in t or "bfloat16" in t for t in stated):
            return "its Python interface does not give these types back"
        return results
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def evaluator(case: Mutant) -> list[Array] | str:
    """The reference evaluator's results, or why it has none."""
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [_tensor(x) for x in ReferenceEvaluator(case.model).run(None, case.inputs or {})]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _tensor(value: Any) -> Array:
    if value is None or isinstance(value, (list, dict)):
        raise TypeError("a result is no tensor")
    return np.asarray(value)


def _differences(found: Sequence[Array], wanted: Sequence[Array], model: onnx.ModelProto) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} outputs, expected {len(wanted)}"
    problems = (difference(a, b, model) for a, b in zip(found, wanted, strict=True))
    return next((f"output {i}: {p}" for i, p in enumerate(problems) if p), "")


def difference(a: Array, b: Array, model: onnx.ModelProto) -> str:
    """How an array differs from another by more than its dtype explains; the empty text where it does not."""
    if a.shape != b.shape:
        return f"shape {a.shape}, expected {b.shape}"
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, expected {b.dtype}"
    operators = {n.op_type for n in _all_nodes(model)}
    if operators & RANDOM or not a.size:
        return ""
    if a.dtype.kind == "b" or a.dtype.name.startswith(("int", "uint")):
        rounded = a.dtype.itemsize <= 4 and any(text in o for o in operators for text in ROUNDED)
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
        return f"{int((a != b).sum())} of {a.size} elements" if gap.max() > (1 if rounded else 0) else ""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return f"NaN or infinity: {a[~finite][:3]}, expected {b[~finite][:3]}"
    if not finite.any():
        return ""
    scale, error = float(np.abs(y[finite]).max()), float(np.abs(x[finite] - y[finite]).max())
    bound = {"float64": 1e-6, "float32": 1e-4, "float16": 1e-2, "complex64": 1e-4}.get(a.dtype.name, 0.13)
    if any(text in o for o in operators for text in ROUNDED):
        bound = max(bound, 2e-2)
    return f"error {error:.3g} of {scale:.3g}" if error > bound * scale + 1e-12 else ""


def _all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    pending = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while pending:
        node = pending.pop()
        yield node
        pending += [n for a in node.attribute for n in a.g.node]


def quieten() -> None:
    """Silence the libraries' logs in a worker."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
