"""What gcomp and its peers make of a mutant.

Each mutant must end in one GcompError that is no InternalError and that says where and why, or in results that agree
with ONNX Runtime's where that accepts the mutant too. Where ONNX Runtime and the onnx package's reference evaluator
disagree with each other the mutant is counted apart: ONNX then leaves its meaning open, or one of the two is wrong.

Known noise: what ONNX leaves undefined, and what docs/guides/semantics.md decides otherwise than both peers do. Such
mutants are told by their operators and inputs, see `OPEN`, and counted as `open` where they differ.
"""

from __future__ import annotations

import logging
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tools.onnx_mutants import Array, Input, Mutant, all_nodes

FAILED = "FAILED"
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


@dataclass
class Verdict:
    """How a mutant ended, in a word or two; `problem` says what is wrong, if anything is."""

    outcome: str
    problem: str = ""
    note: str = ""


def judge(case: Mutant, with_target: bool, report: Callable[[str], None]) -> Verdict:
    """What gcomp makes of a mutant, next to its peers. `report` hears of each step before it is taken."""
    from gcomp.errors import GcompError, InvalidModelError

    report("gcomp")
    try:
        results = _gcomp(case, with_target, report)
    except GcompError as error:
        if problem := _problem(error):
            return Verdict(FAILED, problem)
        outcome, note = type(error).__name__, f"{error.what} ({error.why})"
        if isinstance(error, InvalidModelError) and case.inputs is not None:
            report("peer")
            outcome = outcome if isinstance(runtime(case), str) else STRICT
        return Verdict(outcome, note=note)
    except Exception as error:
        return Verdict(FAILED, f"{type(error).__name__}: {_root(error)}")
    if isinstance(results, Verdict):
        return results
    report("peer")
    return _compared(case, results)


def _problem(error: Exception) -> str:
    """What is wrong with a GcompError, as an answer to a bad model; the empty text if nothing is."""
    from gcomp.errors import GcompError, InputError, InternalError

    assert isinstance(error, GcompError)
    if isinstance(error, InternalError):
        return f"InternalError: {_root(error)}"
    if not error.what or not (error.where or isinstance(error, InputError)):
        return f"{type(error).__name__} does not say where: {error.what} ({error.why})"
    # What is wrong with a node says why; what is wrong with names or the whole model may be its own reason.
    if "node `" in (error.where or "") and not (error.why or error.fix):
        return f"{type(error).__name__} does not say why: {error.what} ({error.where})"
    return ""


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__}: {str(error)[:300]} at {' < '.join(frames[:-4:-1])}"


def _gcomp(case: Mutant, with_target: bool, report: Callable[[str], None]) -> list[Array] | Verdict:
    from gcomp.frontends.onnx import import_onnx
    from gcomp.reference.interpreter import interpret

    inputs = case.inputs or {}
    structures = _structures(case.model, inputs)
    program = import_onnx(case.model, structures=structures)
    arrays = dict(_leaves(inputs))
    # What has a default (the seed) may be left out.
    names = [port.name for port in program.inputs() if port.default is None]
    if case.inputs is None or any(name not in arrays for name in names):
        return Verdict("imported")
    with np.errstate(all="ignore"):
        results = interpret(program, [arrays[name] for name in names], max_steps=200_000)
    if with_target:
        report("target")
        import gcomp

        found = list(_flat(gcomp.compile(case.model, structures=structures)(**{name: arrays[name] for name in names})))
        if problem := _differences([np.asarray(x) for x in found], results, case.model):
            return Verdict(FAILED, f"the target differs from the interpreter: {problem}")
    return results


def _structures(model: onnx.ModelProto, inputs: Mapping[str, Input]) -> dict[str, Any]:
    """What the inputs hold that are no tensors, as `import_onnx` takes it."""
    found: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in inputs and not value.type.HasField("tensor_type"):
            given = inputs[value.name]
            items = given if isinstance(given, list) else [given]
            found[value.name] = None if given is None else [item.shape for item in items if item is not None]
    return found


def _leaves(inputs: Mapping[str, Input]) -> Iterator[tuple[str, Array]]:
    """The tensors of inputs, by the names that programs give them."""
    for name, value in inputs.items():
        if isinstance(value, list):
            yield from ((f"{name}.{i}", item) for i, item in enumerate(value))
        elif value is not None:
            yield name, value


def _flat(results: Any) -> Iterator[Any]:
    """The tensors among results that may be sequences, or nothing."""
    for result in results:
        if isinstance(result, (list, tuple)):
            yield from _flat(result)
        elif result is not None:
            yield result


def _compared(case: Mutant, results: Sequence[Array]) -> Verdict:
    peer = runtime(case)
    if isinstance(peer, str):
        evaluated = evaluator(case)
        if isinstance(evaluated, str):
            return Verdict("ran, no peer does", note=f"ORT: {peer[-200:]}; reference: {evaluated[:150]}")
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
        return Verdict(FAILED, f"differs from ONNX Runtime: {problem} (the reference evaluator: {evaluated[:100]})")
    if not _differences(results, evaluated, case.model):
        return Verdict("peers differ, agrees with the reference evaluator", note=problem)
    if _differences(peer, evaluated, case.model):
        return Verdict("peers differ", note=problem)
    return Verdict(FAILED, f"differs from both peers: {problem}")


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
    ("pools of SAME padding and dilations: ONNX Runtime pads as without them",
     frozenset({"AveragePool", "MaxPool", "LpPool"}), "same"),
    ("MaxUnpool with output_shape: which shape the places count in", frozenset({"MaxUnpool"}), "shaped"),
    ("rounding of what rounds differently", frozenset({"Cast", "CastLike", "Floor", "Ceil", "Round", "Sign"}), "any"),
)  # fmt: skip
"""What is open: a name, the operators of which one is in the mutant, and whether its inputs or constants must hold
infinities or NaN (`infinite`), those or numbers beyond a byte (`wild`), or integers (`integer`), or its nodes have
padding of mode SAME and dilations (`same`), or a third input (`shaped`)."""


def _open(case: Mutant) -> str:
    """Why the meaning of a mutant is open, or the empty text."""
    operators = {n.op_type for n in all_nodes(case.model)}
    arrays = [array for _, array in _leaves(case.inputs or {})]
    arrays += [numpy_helper.to_array(t) for t in case.model.graph.initializer if t.data_type != TensorProto.STRING]
    kinds = {"any"} if len(list(all_nodes(case.model))) > 1 else set[str]()
    kinds |= {"integer"} if any(a.dtype.kind in "iu" for a in arrays) else set()
    kinds |= {"infinite"} if any(_beyond(a, np.inf) for a in arrays) else set()
    kinds |= {"wild"} if any(_beyond(a, 256) for a in arrays) else set()
    found = list(all_nodes(case.model))
    kinds |= {"same"} if any(_is_same_dilated(node) for node in found) else set()
    kinds |= {"shaped"} if any(node.op_type == "MaxUnpool" and len(node.input) > 2 for node in found) else set()
    return next((name for name, names, kind in OPEN if names & operators and kind in kinds), "")


def _is_same_dilated(node: onnx.NodeProto) -> bool:
    attributes = {attribute.name: attribute for attribute in node.attribute}
    same = "auto_pad" in attributes and attributes["auto_pad"].s.startswith(b"SAME")
    return same and "dilations" in attributes and any(d != 1 for d in attributes["dilations"].ints)


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
        results = [np.asarray(x) for x in _flat(session.run(None, case.inputs or {}))]
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
            return [np.asarray(x) for x in _flat(ReferenceEvaluator(case.model).run(None, case.inputs or {}))]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


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
    operators = {n.op_type for n in all_nodes(model)}
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


def quieten() -> None:
    """Silence the libraries' logs in a worker."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
