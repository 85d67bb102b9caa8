"""Gradients of programs, against finite differences and each other.

A program of the generator, in f64, gets one scalar output: the sum of its outputs of floats, each times fixed weights.
Along a random direction t, at inputs x of ordinary numbers,

    <gradient, t>  ==  directional derivative by forward mode  ==  (f(x + h t) - f(x - h t)) / 2 h

The first two hold to rounding wherever they are finite. The third needs a function that is smooth there, which two
steps h show by giving the same: where they do not, the program counts as not smooth, and only the first is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

import ml_dtypes
import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from gcomp import dims
from gcomp.analysis.work import Nominal
from gcomp.autodiff.programs import differentiate, differentiate_back, finish
from gcomp.autodiff.sweeps import differentiable
from gcomp.dtypes import dtype_of, is_complex, is_float, real_of
from gcomp.errors import GcompError, UnsupportedError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, rank_of, shape_of, with_element
from gcomp.reference.interpreter import Interpreter, interpret
from gcomp.reference.noise import NoisyInterpreter
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import sizes_for
from gcomp.testing.generate.weighted import with_weights

Array = np.ndarray[Any, Any]
Outcome = Literal["agrees", "not smooth", "not finite", "refused", "rounded", "left open", "no gradient", "wrong"]
MAX_STEPS = 200_000
RUNS, DEVIATIONS = 8, 6
"""Runs that measure rounding, and how many standard deviations of it the gap between both modes may be."""


@dataclass
class Found:
    """What came of one program."""

    outcome: Outcome
    why: str = ""
    ops: set[str] = field(default_factory=set[str])
    """The ops that the program has."""


def scalarize(program: Program) -> bool:
    """Make the program return one real number of all its outputs of floats; False where it has none."""
    b = Builder(program, InsertPoint.before(program.returned))
    total: SSAValue | None = None
    for k, (_, value) in enumerate(program.named_outputs()):
        if differentiable(value):
            part = _weigh(b, value, k)
            total = part if total is None else b.add(total, part)
    if total is None:
        return False
    finish(program, [("loss", total)])
    return True


def _weigh(b: Builder, value: SSAValue, k: int) -> SSAValue:
    """The sum of the elements times numbers that differ from each other, in f64."""
    flat = b.reshape(value, (dims.product(shape_of(value)),)) if rank_of(value) != 1 else value
    angles = b.convert(b.iota(shape_of(flat), 0, "i64"), "f64")
    angles = b.add(angles, b.full_like(angles, 0.5 + k))
    weights = b.emit(hlo.CosineOp, angles)
    if is_complex(dtype_text(flat.type)):
        flat = b.convert(flat, "complex<f64>")
        weights = b.emit(hlo.ComplexOp, weights, b.emit(hlo.SineOp, angles))
        return b.reduce(hlo.AddOp, b.emit(hlo.RealOp, b.multiply(flat, weights)), [0])
    wide = b.emit(hlo.ConvertOp, flat, types=(with_element(flat.type, "f64"),))
    return b.reduce(hlo.AddOp, b.multiply(wide, weights), [0])


def inputs_of(program: Program, seed: int) -> list[Array]:
    """Ordinary numbers that fit the signature: of both signs, positive, below 1, or greater ones."""
    ports = program.inputs()
    sizes = sizes_for(program, Seeded(seed), ports)
    rng = np.random.default_rng(seed)
    made: list[Array] = []
    for port in ports:
        shape = tuple(dims.evaluate(s, sizes) for s in port.shape)
        made.append(_among[seed % len(_among)](_ordinary(port.dtype, shape, rng)))
    return made


def _ordinary(text: str, shape: Sequence[int], rng: np.random.Generator) -> Array:
    dtype = dtype_of(text)
    if text == "i1":
        return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
    if is_complex(text):
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if is_float(text):
        return np.asarray(rng.normal(size=shape)).astype(dtype)
    return np.asarray(rng.integers(0, 4, shape)).astype(dtype)


def _positive(x: Array) -> Array:
    return np.asarray(np.abs(x) + 0.5).astype(x.dtype) if x.dtype == np.float64 else x


def _below_one(x: Array) -> Array:
    return np.asarray(0.95 * np.tanh(x)) if x.dtype == np.float64 else x


def _greater(x: Array) -> Array:
    return np.asarray(4 * x) if x.dtype == np.float64 else x


_among: Sequence[Callable[[Array], Array]] = (np.asarray, _positive, _below_one, _greater)
"""Logarithms ask for positive numbers, inverse sines for those below 1."""


def _pair(a: Sequence[Array], b: Sequence[Array]) -> float:
    parts = [float(np.real(np.sum(x.astype(np.complex128) * y))) for x, y in zip(a, b, strict=True)]
    return float(sum(parts))


def least_bits(program: Program) -> int:
    """The bits of the shortest mantissa that anything is rounded to."""
    bits = 52
    for op in program.ops():
        if isinstance(op, hlo.ReducePrecisionOp):
            bits = min(bits, op.value("mantissa_bits"), 10 if op.value("exponent_bits") < 11 else 52)
        for value in op.results:
            if differentiable(value) and is_float(text := real_of(dtype_text(value.type))):
                limits = cast(Any, ml_dtypes.finfo(dtype_of(text)))
                bits = min(bits, int(limits.nmant))
    return bits


_FOLDS = (hlo.ReduceOp, hlo.ReduceWindowOp, hlo.SelectAndScatterOp)
_ORDERLESS = (hlo.AddOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp)


def depends_on_order(program: Program) -> bool:
    """Whether a fold's value depends on the order that the specification leaves open: its body is not associative."""
    for op in program.ops():
        if isinstance(op, _FOLDS) and any(map(differentiable, op.results)):
            inner = [o for o in op.regions[-1].block.ops if any(map(differentiable, o.results))]
            chooses = all(isinstance(o, hlo.SelectOp) for o in inner)
            if not chooses and not (len(inner) == 1 and isinstance(inner[0], _ORDERLESS)):
                return True
    return False


_KINKED = (hlo.MaximumOp, hlo.MinimumOp, hlo.ClampOp)
_TOOTHED = (hlo.RemainderOp, chlo.BroadcastRemainderOp)
_STEPPED = (hlo.CeilOp, hlo.FloorOp, hlo.RoundNearestEvenOp, hlo.RoundNearestAfzOp)
_CHOOSING = (hlo.ScatterOp, hlo.ReduceWindowOp, hlo.SelectAndScatterOp, hlo.SortOp, chlo.TopKOp)


class Ties:
    """Whether a run met equal operands where a function has a kink, or kinks too close to each other; and `largest`,
    the magnitude of what it summed: sums that cancel keep the rounding of their terms."""

    def __init__(self, program: Program, inputs: Sequence[Array]) -> None:
        self.met = False
        self.largest = 0.0
        self.known: dict[SSAValue, Any] = dict(zip(program.block.args, inputs, strict=True))

    def __call__(self, op: Any, results: Sequence[Any]) -> None:
        self.known.update(zip(op.results, results, strict=True))
        for value, result in zip(op.results, results, strict=True):
            if differentiable(value):
                sizes = np.abs(result)
                self.largest = max(self.largest, float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))))
        if isinstance(op, _KINKED):
            arrays = [self.known[v] for v in op.operands if v in self.known]
            # What a loop carries is not known here.
            self.met = self.met or len(arrays) < len(op.operands)
            pairs = [(a, b) for i, a in enumerate(arrays) for b in arrays[:i]]
            self.met = self.met or any(np.any(a == b) for a, b in pairs)
        if isinstance(op, _TOOTHED) and differentiable(op.rhs) and {op.lhs, op.rhs} <= self.known.keys():
            # Teeth that are finer than the step, or of what was scaled up.
            x, y = (np.abs(self.known[v]) for v in (op.lhs, op.rhs))
            least = np.min(y, initial=np.inf)
            self.met = self.met or bool(least < 1e-2 or np.max(x, initial=0) > 1e3 * least)
        if isinstance(op, _STEPPED) and op.operands[0] in self.known:
            # So are the stairs of what was scaled up.
            self.met = self.met or bool(np.any(np.abs(self.known[op.operands[0]]) > 1e3))
        if isinstance(op, hlo.BitcastConvertOp):
            # Bits of numbers are no smooth function of them, however they are read again.
            self.met = self.met or op.operand.type != op.result.type
        if isinstance(op, _FOLDS):
            # Where elements are chosen, the order decides whether a NaN is taken or passed by: it is neither less nor
            # greater, and complex maxima do not pass it on.
            arrays = [self.known[v] for v in op.operands if v in self.known and differentiable(v)]
            self.met = self.met or any(np.isnan(a).any() for a in arrays)
        if isinstance(op, _CHOOSING):
            arrays = [np.ravel(self.known[v]) for v in op.operands if v in self.known and differentiable(v)]
            elements = np.concatenate(arrays) if arrays else np.zeros(0)
            self.met = self.met or np.unique(elements).size < elements.size


def check(
    program: Program, seed: int, inputs: Sequence[Array] | None = None, *, differences: bool = True, verify: bool = True
) -> Found:
    """Hold reverse mode against forward mode, and (`differences`) against finite differences, on inputs of the seed.

    `verify` holds the derivatives to being valid programs, which takes a third of all the time.
    """
    ops = {op.name for op in program.ops()}
    loss = program.clone()
    inputs = inputs_of(program, seed) if inputs is None else inputs
    if not scalarize(loss):
        return Found("no gradient", "no output of floats", ops)
    wrt = _inputs_wrt(loss)
    places = [i for i, port in enumerate(loss.inputs()) if port.name in wrt]
    if not wrt:
        return Found("no gradient", "no input of f64", ops)
    if depends_on_order(loss):
        return Found("left open", "", ops)
    try:
        back, forth = _both(loss, wrt)
    except UnsupportedError as error:
        return Found("refused", f"{error.what}: {error.why}", ops)
    if verify:
        back.verify("of the gradient")
        forth.verify("of the tangent")
    rng = np.random.default_rng(seed + 1)
    direction = [_ordinary(loss.inputs()[i].dtype, inputs[i].shape, rng) for i in places]

    def at(step: float) -> float:
        moved = list(inputs)
        for i, t in zip(places, direction, strict=True):
            moved[i] = inputs[i] + step * t
        return float(interpret(loss, moved, max_steps=MAX_STEPS)[0])

    with np.errstate(all="ignore"):
        try:
            ties = Ties(loss, inputs)
            value = float(Interpreter(loss, observer=ties, max_steps=MAX_STEPS).run(inputs)[0])
        except GcompError as error:
            return Found("no gradient", f"the program does not run: {error.what}", ops)
        if not np.isfinite(value):
            return Found("not finite", "", ops)
        try:
            gradients = interpret(back, inputs, max_steps=20 * MAX_STEPS)
            tangent = float(interpret(forth, [*inputs, *direction], max_steps=20 * MAX_STEPS)[-1])
        except GcompError as error:
            return Found("wrong", f"derivatives that do not run: {error}", ops)
        slope = _pair(gradients, direction)
        bits = least_bits(program)
        # Where there are ties, a last bit decides which side is taken: that is no rounding.
        noise = partial(_noise, back, forth, inputs, direction) if not ties.met else lambda: 0.0
        return _judge(
            value, slope, tangent, gradients, direction, None if ties.met or not differences else at, ops, bits,
            ties.largest, noise,
        )  # fmt: skip


def derivatives(program: Program) -> tuple[Program, Program] | None:
    """The gradient and the tangent that `check` compares; None where there is none. UnsupportedError where refused."""
    loss = program.clone()
    return _both(loss, wrt) if scalarize(loss) and (wrt := _inputs_wrt(loss)) else None


def weights_differ(program: Program, inputs: Sequence[Array], seed: int) -> str:
    """How gradients for inputs differ where these are weights of the program: by no more than another order of sums.

    Empty where they do not, or where gcomp says that it has none (weights that a function reads).
    """
    loss = program.clone()
    if not scalarize(loss) or not (wrt := _inputs_wrt(loss)):
        return ""
    ports = loss.inputs()
    given = {port.name: x for port, x in zip(ports, inputs, strict=True)}
    back, twin = loss.clone(), loss.clone()
    moved = with_weights(twin, Seeded(seed), lambda port: given[port.name] if port.name in wrt else None)
    names = {ports[i].name: f"w_{ports[i].name}" for i in moved}
    differentiate_back(back, "loss", wrt, bytes_of=Nominal(back.ranges).bytes)
    refused = {op.symbol for op in twin.ops() if isinstance(op, WeightOp) and not twin.main.is_ancestor(op)}
    try:
        differentiate_back(twin, "loss", [names.get(n, n) for n in wrt], bytes_of=Nominal(twin.ranges).bytes)
    except UnsupportedError as error:
        return "" if refused else f"there is no gradient for weights: {error}"
    rest = [x for i, x in enumerate(inputs) if i not in moved]
    with np.errstate(all="ignore"):
        wanted = interpret(back, inputs, max_steps=20 * MAX_STEPS)
        found = interpret(twin, rest, max_steps=20 * MAX_STEPS)
    for name, x, y in zip(wrt, wanted, found, strict=True):
        size = float(np.max(np.abs(x), initial=1.0, where=np.isfinite(x)))
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-9, atol=1e-9 * size, equal_nan=True):
            return f"gradient for the weight {name}: expected {x!r}, got {y!r}"
    return ""


def _inputs_wrt(loss: Program) -> list[str]:
    return [port.name for port in loss.inputs() if port.dtype in ("f64", "complex<f64>")]


def _both(loss: Program, wrt: Sequence[str]) -> tuple[Program, Program]:
    back, forth = loss.clone(), loss.clone()
    differentiate_back(back, "loss", wrt, bytes_of=Nominal(back.ranges).bytes)
    differentiate(forth, ("loss",), wrt)
    return back, forth


def _noise(back: Program, forth: Program, inputs: Sequence[Array], direction: Sequence[Array]) -> float:
    """The standard deviation of the gap between both modes when each result of arithmetic is off by some ulps."""
    gaps: list[float] = []
    for seed in range(RUNS):
        gradients = NoisyInterpreter(back, seed, max_steps=20 * MAX_STEPS).run(inputs)
        tangent = NoisyInterpreter(forth, seed, max_steps=20 * MAX_STEPS).run([*inputs, *direction])[-1]
        gaps.append(_pair(gradients, direction) - float(tangent))
    return float(np.std(gaps))


def _judge(
    value: float, slope: float, tangent: float, gradients: Sequence[Array], direction: Sequence[Array],
    at: Callable[[float], float] | None, ops: set[str], bits: int, largest: float,
    noise: Callable[[], float],
) -> Found:  # fmt: skip
    size = float(sum(np.abs(g.astype(np.complex128) * t).sum() for g, t in zip(gradients, direction, strict=True)))
    if not (np.isfinite(slope) and np.isfinite(tangent)):
        # Infinite on one side and not on the other, it is NaN times 0 that was left out: both are without meaning.
        return Found("not finite", "", ops)
    exact = bits == 52
    if bits < 20:
        # What is rounded that much goes its own way in each direction.
        return Found("rounded", "", ops)
    rounding = 64 * np.finfo(np.float64).eps * largest
    if rounding > 1e-3 * (1 + abs(tangent)):
        return Found("rounded", "", ops)
    if abs(slope - tangent) > (1e-8 if exact else 1e-3) * (1 + size + abs(tangent)) + rounding:
        told = f"gradient {slope!r}, forward mode {tangent!r}"
        return Found("rounded" if abs(slope - tangent) <= DEVIATIONS * noise() else "wrong", told, ops)
    if at is None or not exact:
        return Found("agrees", "", ops)
    steps = [(at(h) - at(-h)) / (2 * h) for h in (1e-5, 5e-6)]
    ones = [(at(h) - value) / h for h in (1e-5, -1e-5)]
    spread = max(abs(steps[0] - steps[1]), abs(ones[0] - ones[1]) * 1e-2)
    allowed = 1e-5 * (1 + size + abs(value) * 1e-5 + abs(steps[0])) + rounding / 1e-5
    if not np.isfinite(steps).all() or not np.isfinite(ones).all() or spread > allowed:
        return Found("not smooth", "", ops)
    if abs(steps[1] - tangent) > 20 * allowed:
        if abs(tangent) * 1e-7 > 1 + abs(steps[1]) * 1e-5:
            return Found("not smooth", "", ops)  # so steep that it has teeth finer than any step
        return Found("wrong", f"derivative {tangent!r}, finite difference {steps[1]!r}", ops)
    return Found("agrees", "", ops)


__all__ = ["Found", "check", "derivatives", "inputs_of", "scalarize", "weights_differ"]
