"""Cases run by the reference interpreter: counterexamples confirmed, small types exhausted, the rest sampled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation

from gcomp import dims
from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float, real_of, text_of
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.checking import PASS_ROUNDINGS
from gcomp.reference.contract import Mismatch, compare
from gcomp.reference.freedom import open_elements
from gcomp.reference.interpreter import interpret
from gcomp.reference.noise import FUNCTIONS
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.dtypes import float_format
from gcomp.reference.numpy.rounding import from_value_bits
from gcomp.reference.table import Scope, Value
from gcomp.reference.varied import PlainRow, VariedInterpreter, short_name
from gcomp.reference.wider import interpret_wider
from gcomp.testing.prove.cases import Case, Leaf, Node, Plan, Splat, Subject, left_side, make_case
from gcomp.testing.prove.choices import Shape, Type
from gcomp.testing.prove.obligation import Instance

Array = np.ndarray[Any, Any]

LARGEST = 1 << 16
"""The elements of an input up to which a counterexample is run."""

_ULPS, _RUNS, _MARGIN = 2.0, 8, 4.0
"""NumPy's functions in double are off by so many ulps, in so many runs; what is so many times as far is no error of
theirs."""
_EXACT = frozenset(("sqrt",))

EXHAUSTIBLE = 16
"""The bits of all inputs together up to which every combination is run."""


def width(element: str) -> int:
    """The bits of one element, both parts of a complex one."""
    return 2 * bit_width(real_of(element)) if is_complex(element) else bit_width(element)


def from_bits(bits: Array, element: str) -> Array:
    """Elements from their bits (a complex number's real part in the lower half)."""
    if is_complex(element):
        half, mask = bit_width(real_of(element)), (1 << bit_width(real_of(element))) - 1
        whole = bits.astype(object)
        low, high = (np.asarray(part, object).astype(np.uint64) for part in (whole & mask, whole >> half))
        return from_parts(from_bits(low, real_of(element)), from_bits(high, real_of(element)))
    return from_value_bits(bits.astype(np.uint64), dtype_of(element))


def _random_bits(element: str, count: int, rng: np.random.Generator) -> Array:
    """Bits of so many elements, as many as they have: those of complex<f64> are more than an integer's of NumPy."""
    words: Array = rng.integers(0, 1 << 64, (2, count), np.uint64, False).astype(object)
    return (words[0] | words[1] << 64) & ((1 << width(element)) - 1)


def run(case: Case, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[Array, Array]:
    """What both sides of a case compute. Raises a GcompError where one cannot be run."""
    assert case.after is not None
    if not isinstance(case.program.block.last_op, ReturnOp):
        case.program.finish([("before", case.before), ("after", case.after)])
    before, after = interpret(case.program, _arrays(case, inputs, sizes))
    return before, after


def replay(case: Case, instance: Instance, tries: int = 24) -> str | None:
    """A text that shows both sides differ where the solver says so; None where the reference does not show it."""
    if case.after is None:
        return case.failure
    sizes = {s: instance.sizes.get(s, 2) for s in case.symbols}
    shapes = [[dims.evaluate(s, sizes) for s in type.shape] for type in case.leaves.values()]
    if any(math.prod(shape) > LARGEST for shape in shapes):
        return None
    rng = np.random.default_rng(0)
    for attempt in range(tries):
        if attempt == 1 and len(instance.bits) == len(case.leaves):
            return None  # the inputs are what the solver says, and nothing is left to vary
        inputs = {name: _fill(type, sizes, instance.bits.get(name), rng) for name, type in case.leaves.items()}
        if (text := difference(case, inputs, sizes)) is not None:
            return text
    return None


def _fill(type: Type, sizes: Mapping[str, int], bits: int | None, rng: np.random.Generator) -> Array:
    shape = tuple(dims.evaluate(s, sizes) for s in type.shape)
    if bits is not None:
        return from_bits(np.full(shape, bits, object), type.element)
    if type.element == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    count = int(np.prod(shape))
    # Small different numbers are easy to follow.
    return ((rng.integers(100) + rng.permutation(count)) % 100).reshape(shape).astype(dtype_of(type.element))


def difference(case: Case, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> str | None:
    """The first place where both sides differ on some inputs, as text; None where they agree within the contract."""
    shown = ", ".join(f"{name} = {_show_array(array)}" for name, array in inputs.items())
    known = "".join(f"; {name} = {size}" for name, size in sizes.items())
    try:
        before, after = run(case, inputs, sizes)
    except (GcompError, LookupError, ValueError, TypeError) as error:
        return f"{shown}{known}: it cannot be run any more: {str(error).splitlines()[0]}"
    mismatches = _mismatches(case, inputs, sizes, before, after)
    if not mismatches or _is_rounding(case, inputs, sizes, before, after):
        return None
    first = mismatches[0]
    if first.index is not None and before.size > 64:
        shown = ", ".join(
            f"{name} = {_show_array(a[first.index])}" for name, a in inputs.items() if a.shape == before.shape
        )
    place = "" if not first.index else f" at {list(first.index)}"
    return f"{shown}{known}: {first.reason}{place}: before {first.expected}, after {first.actual}"


class _OtherFunctions(VariedInterpreter):
    """The reference with its functions in double off by what NumPy's are at most: only narrower ones are exactly
    rounded."""

    def __init__(self, program: Program, seed: int) -> None:
        self.happened = False
        self._random = np.random.default_rng(seed)
        super().__init__(program)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            return [self._off(value) for value in results] if short_name(op) in FUNCTIONS - _EXACT else results

        return run

    def _off(self, value: Value) -> Value:
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        if text_of(array.dtype) not in ("f64", "complex<f64>"):
            return array
        self.happened = True
        noise = cast(Array, self._random.uniform(-_ULPS, _ULPS, array.shape)) * float_format(array.dtype).epsilon
        with np.errstate(all="ignore"):
            return np.asarray(array * (1 + noise)).astype(array.dtype)


def _is_rounding(
    case: Case, inputs: Mapping[str, Array], sizes: Mapping[str, int], before: Array, after: Array
) -> bool:
    """Whether both sides are as far apart as the errors of the reference's own functions in double bring them."""
    if not (is_float(dtype_text(case.before.type)) or is_complex(dtype_text(case.before.type))):
        return False
    arrays = _arrays(case, inputs, sizes)
    far = np.zeros(before.shape)
    with np.errstate(all="ignore"):
        for seed in range(_RUNS):
            other = _OtherFunctions(case.program, seed)
            pairs = zip((before, after), other.run(arrays), strict=True)
            if not other.happened:
                return False
            far = np.maximum(far, sum(np.nan_to_num(np.abs(old - new)) for old, new in pairs))
        apart = np.abs(before - after)
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        return bool((same | (np.isfinite(apart) & (apart <= _MARGIN * far))).all())


def _mismatches(
    case: Case, inputs: Mapping[str, Array], sizes: Mapping[str, int], before: Array, after: Array
) -> list[Mismatch]:
    """How both sides differ by more than the rule's class allows."""
    exactness = case.rule.exactness
    found = compare(before, after, Exactness.E1 if exactness is Exactness.E2 else exactness)
    if not found or exactness is not Exactness.E2 or before.shape != after.shape:
        return found
    arrays = _arrays(case, inputs, sizes)
    wider = interpret_wider(case.program, arrays)[0]
    found = compare(before, after, exactness, wider=wider, roundings=PASS_ROUNDINGS)
    if not found:
        return found
    mask = open_elements(case.program, exactness, arrays, [before, after], [after, after])[0]
    return compare(before, np.where(mask, before, after), exactness, wider=wider, roundings=PASS_ROUNDINGS)


def _arrays(case: Case, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> list[Array]:
    return [*(inputs[name] for name in case.leaves), np.zeros([sizes[s] for s in case.symbols], np.bool_)]


def _show_array(array: Array) -> str:
    values = np.asarray(array)
    if values.size > 1 and (values.reshape(-1)[:1].tobytes() * values.size) == np.ascontiguousarray(values).tobytes():
        return f"{_number(values.reshape(-1)[0])} everywhere"
    if values.ndim == 0 or values.size == 1:
        return _number(values.reshape(-1)[0])
    return np.array2string(values, separator=", ", threshold=64).replace("\n", "")


def _number(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind in "fV" and not is_number(array):
        return f"NaN (bits {int.from_bytes(array.tobytes(), 'little'):#x})"
    return str(value)


def is_number(array: Array) -> bool:
    """Whether a scalar equals itself."""
    return bool(array == array)


# ---- all values, and some ----------------------------------------------------------------------------------------


def is_scalar(plan: Plan) -> bool:
    """Whether a plan works on one element at a time."""
    from gcomp.testing.prove.translation import ELEMENTWISE

    match plan:
        case Leaf() | Splat():
            return True
        case Node():
            return issubclass(plan.op, (*ELEMENTWISE, hlo.SelectOp)) and all(map(is_scalar, plan.operands))


class NotApplied(Exception):
    """A rule that asks for some shape does not apply to a list of values."""


def exhaust(rule: Subject, case: Case) -> str | None:
    """Runs an elementwise case on every combination of its inputs, at most 2**16; the first difference.

    NotApplied where the rule does not take them in a row.
    """
    widths = {name: width(type.element) for name, type in case.leaves.items()}
    count = 1 << sum(widths.values())
    return _on_bits(rule, case, _split(np.arange(count, dtype=np.uint64), widths))


def sample(rule: Subject, case: Case, count: int = 1 << 14) -> str | None:
    """Runs an elementwise case on random bits and on edge values; the first difference. NotApplied as `exhaust`."""
    rng = np.random.default_rng(0)
    inputs: dict[str, Array] = {}
    for name, type in case.leaves.items():
        ends = rng.choice(edges(type.element), count // 2)
        inputs[name] = np.concatenate([ends, _random_bits(type.element, count - count // 2, rng)])
    return _on_bits(rule, case, inputs)


def _split(codes: Array, widths: Mapping[str, int]) -> dict[str, Array]:
    bits: dict[str, Array] = {}
    for name, size in widths.items():
        bits[name] = codes & np.uint64((1 << size) - 1)
        codes = codes >> np.uint64(size)
    return bits


def edges(element: str) -> Array:
    """The bits of values at the ends and in the middle of a type, NaNs of several payloads among them."""
    if is_complex(element):
        half = edges(real_of(element))
        return np.asarray([int(a) | int(b) << bit_width(real_of(element)) for a in half for b in half], object)
    size = bit_width(element)
    ends = [0, 1, 2, 3, (1 << size) - 1, (1 << size) - 2, 1 << (size - 1), (1 << (size - 1)) - 1]
    if not is_float(element):
        return np.asarray(ends, np.uint64)
    numbers = np.asarray([0.0, 0.5, 1, 1.5, 2, 3, np.inf, np.nan, 0.1, 1e-3, 1e3]).astype(dtype_of(element))
    raw = numbers.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[numbers.itemsize]).astype(np.uint64)
    sign = np.uint64(1 << (size - 1))
    return np.concatenate([np.asarray(ends, np.uint64), raw, raw ^ sign, np.asarray([raw[6] + 1], np.uint64)])


def _on_bits(rule: Subject, case: Case, bits: Mapping[str, Array]) -> str | None:
    count = len(next(iter(bits.values()), np.zeros(1)))
    static = make_case(rule, as_node(with_shape(case.plan, (count,))))
    if static is None:
        raise NotApplied
    if static.after is None:
        return static.failure
    inputs = {name: from_bits(values, case.leaves[name].element) for name, values in bits.items()}
    return difference(static, inputs, {})


def with_shape(plan: Plan, shape: Shape) -> Plan:
    """An elementwise plan on another shape."""
    changed = replace(plan, type=Type(shape, plan.type.element))
    if isinstance(changed, Node):
        return replace(changed, operands=tuple(with_shape(p, shape) for p in changed.operands))
    return changed


def as_node(plan: Plan) -> Node:
    """A plan that is known to be an op."""
    assert isinstance(plan, Node)
    return plan


def small_sizes(case: Case, tries: Sequence[int] = (2, 3, 1, 0)) -> Iterator[dict[str, int]]:
    """A few sizes for the symbols of a case."""
    for base in tries:
        yield dict.fromkeys(case.symbols, base)
    yield {name: 1 + position for position, name in enumerate(case.symbols)}


def sample_inputs(case: Case, sizes: Mapping[str, int]) -> dict[str, Array] | None:
    """Inputs for a case; None where its left side has no meaning for these sizes."""
    rng = np.random.default_rng(0)
    try:
        inputs = {name: _fill(type, sizes, None, rng) for name, type in case.leaves.items()}
        before, value = left_side(case.plan, case.leaves)
        before.finish([("before", value)])
        interpret(before, [*inputs.values(), np.zeros([sizes[s] for s in case.symbols], np.bool_)])
    except (GcompError, ValueError):
        return None
    return inputs
