"""The runtime: compiled models called at many sizes, saved and loaded, with buckets and checks, beside the reference.

Programs have symbols for sizes and move whole numbers about, which XLA computes to the reference's bits: what differs
is no rounding. Some are written by hand around what plans can get wrong: weights, host steps, state of loops, donated
inputs. A model must also refuse what is not its input.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation

import gcomp
from gcomp import dims
from gcomp.errors import CheckError, GcompError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.judging.targets import target_failure
from gcomp.lowering.xla import lower
from gcomp.reference.inputs import InputSet
from gcomp.reference.interpreter import interpret
from gcomp.reference.sizes import size_choices, symbols_in
from gcomp.runtime.model import Model
from gcomp.runtime.xla import padded
from gcomp.testing.fuzz.door import MAX_STEPS, ProgramDoor, Seen, Undefined, Wrong
from gcomp.testing.fuzz.exhibits import exhibits
from gcomp.testing.fuzz.numbers import base_of
from gcomp.testing.fuzz.refusals import PADDING
from gcomp.testing.fuzz.ways import Fetched, OtherArrays
from gcomp.testing.generate.around import around, topic_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.weighted import with_weights

Array = np.ndarray[Any, Any]
Make = Callable[[Program], Any]
"""Makes a model, or what has `flat` and can be called as one."""

STEPS = (
    "dim", "transpose", "reshape", "broadcast", "slice", "pad", "reverse", "concatenate", "iota", "gather",
    "dynamic-slice", "dynamic-update-slice", "select", "dimension-size", "split-and-join", "through-view", "relu",
)  # fmt: skip
"""Steps whose results XLA computes to the bit on whole numbers."""
_WEIGHTED = 0.3
"""How often some of a program's inputs are weights."""
CALLS = 3
"""How many sizes a model is called at."""


def _plain(program: Program) -> Model:
    return Model(lower(program), dict(program.weights.items()))


def reload_model(model: Model) -> Model:
    """A model as it comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gcomp"
        model.save(path)
        return gcomp.load(path)


def _load(program: Program) -> Model:
    return reload_model(_plain(program))


def _load_bucketed(program: Program) -> Model:
    buckets = {name: _sizes_of(program, name) for name in symbols_in(program)[:1]}
    if not buckets:
        raise Undefined("no symbol to have buckets of")
    return gcomp.compile(program, target="xla:cpu", pipeline="", buckets=buckets)


def _sizes_of(program: Program, name: str) -> list[int]:
    """Buckets that hold all sizes of a symbol: some step, and the greatest."""
    known = program.ranges[name]
    high = known.hi if known.hi is not None else known.lo + 8
    return sorted({size for size in (known.lo + 1, (known.lo + high) // 2, high) if size > 0 and size <= high})


def _load_checked(program: Program) -> Model:
    return gcomp.compile(program, target="xla:cpu", pipeline="", checks=("nan", "index"))


def _other_arrays(program: Program) -> OtherArrays:
    return OtherArrays(_plain(program))


WAYS: Mapping[str, Make] = {
    "calls": _plain, "saving and loading": _load, "buckets": _load_bucketed, "checks": _load_checked,
    "other arrays": _other_arrays, "fetched values": partial(Fetched, target="xla:cpu"),
}  # fmt: skip
"""What a model is made by."""


_MAY_BE_REFUSED = (
    "a program with sizes that depend on data has no buckets", "XLA ends the process over slices of no elements",
)  # fmt: skip
"""What may be said of a program that is not taken, besides that it cannot be padded."""


class Runtime(ProgramDoor):
    """Compiled models."""

    name: ClassVar[str] = "runtime"
    summary: ClassVar[str] = "models called at many sizes, saved, bucketed and checked, beside the reference"
    components: ClassVar[str] = "ways of running"

    looks: ClassVar[bool] = False
    steps: ClassVar[Sequence[str]] = STEPS

    @property
    def ways(self) -> Mapping[str, Make]:
        """What a model is made by; the first is the plainest."""
        return WAYS

    def expected(self) -> Sequence[str]:
        return [*self.ways, "refusals"]

    def way_of(self, number: int) -> str:
        """What the model of a number is made by."""
        return [*self.ways][base_of(number) // 4 % len(self.ways)]

    def program(self, number: int, size: int) -> Program:
        turn, kind = divmod(number, 4)
        if kind == 0:
            return _exhibits()[turn % len(_exhibits())].clone()
        palette = (("i32", "f32"), ("f32",), ("i32",))[kind - 1]
        program = around(turn, Seeded(number), 4, palette, symbolic=0.9, steps=self.steps, closed=True)
        if (choices := Seeded(number)).flag(_WEIGHTED):
            with_weights(program, choices, lambda port: InputSet("whole", {}, (port,), number).arrays[0])
        return program

    def topic(self, number: int) -> str:
        turn, kind = divmod(number, 4)
        about = topic_of(turn, self.steps) if kind else turn % len(_exhibits())
        return f"{about}, {self.way_of(number)}"

    def inputs(self, number: int, program: Program) -> list[Array]:
        return self.sets(program, number, 1)[0]

    def sets(self, program: Program, number: int, count: int) -> list[list[Array]]:
        """Whole numbers at some sizes, one of which comes again."""
        choices, ports = Seeded(number), tuple(program.inputs())
        sizes = size_choices(program)
        chosen = [choices.chosen(sizes) for _ in range(count)]
        chosen[-1] = chosen[0] if choices.flag() else chosen[-1]
        return [InputSet("whole", one, ports, number + i).arrays for i, one in enumerate(chosen)]

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        with _garbage_in_padding():
            return self._judged(program, inputs, number, seen)

    def _judged(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        way = self.way_of(number)
        calls = [inputs, *self.sets(program, number, CALLS)]
        try:
            model = self.ways[way](program.clone())
        except Undefined:
            raise
        except UnsupportedError as error:
            if PADDING.allow(program, error) or any(words in str(error) for words in _MAY_BE_REFUSED):
                raise
            return Wrong("refused", str(error), error.what, way)
        except Exception as error:  # whatever the runtime makes of it
            return self._blamed(way, program, calls, Wrong("crash", f"{type(error).__name__}: {error}", _kind(error)))
        wrong = _call_model(model, program, calls)
        if wrong is not None:
            return self._blamed(way, program, calls, wrong)
        seen.components[way] += 1
        if not callable(model):
            return None
        for what, arrays in misfits(program, inputs):
            seen.components["refusals"] += 1
            try:
                model(*arrays)
            except GcompError:
                continue
            except Exception as error:
                return Wrong("crash", f"{what}: {type(error).__name__}: {error}", _kind(error), "refusals")
            return Wrong("accepted", f"a call with {what} is not refused", what, "refusals")
        return None

    def _blamed(self, way: str, program: Program, calls: Sequence[Sequence[Array]], wrong: Wrong) -> Wrong:
        """The failure, blamed on a way of running where a plain call is right."""
        plainest, make = next(iter(self.ways.items()))
        if way != plainest:
            try:
                plain = _call_model(make(program.clone()), program, calls)
            except Exception:
                plain = wrong
            if plain is not None:
                way = plainest
        return Wrong(wrong.kind, wrong.message, wrong.detail, way)

    def component(self, op: Operation) -> str:
        return ""


@cache
def _exhibits() -> list[Program]:
    return [program for _, program, _ in exhibits(0)]


@contextmanager
def _garbage_in_padding() -> Generator[None]:
    """What calls are padded with is anything, and no zeros that might do by chance."""
    known, padded.blank = padded.blank, _garbage
    try:
        yield
    finally:
        padded.blank = known


def _garbage(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    return np.full(tuple(shape), np.nan if dtype.kind in "fc" else True if dtype.kind == "b" else 97).astype(dtype)


def _kind(error: Exception) -> str:
    return type(error).__name__


def _call_model(model: Any, program: Program, calls: Sequence[Sequence[Array]]) -> Wrong | None:
    """What is wrong with what a model gives, if anything."""
    for arrays in calls:
        expected = interpret(program, arrays, max_steps=MAX_STEPS)
        given = [np.array(x) for x in arrays]
        try:
            found = [np.array(y) for y in model.flat([*given])]
        except CheckError:
            continue  # a NaN of a constant, or an index that the reference clamps
        except Exception as error:  # whatever the runtime makes of it
            sizes = [x.shape for x in arrays]
            return Wrong("crash", f"at {sizes}: {type(error).__name__}: {error}", _kind(error))
        donated = [port.donated for port in program.inputs()]
        if any(a.tobytes() != b.tobytes() for a, b, d in zip(given, arrays, donated, strict=True) if not d):
            return Wrong("meaning", "a call writes to its inputs", "inputs")
        for port, want, got in zip(program.outputs(), expected, found, strict=True):
            if not _same(want, got) and _is_wrong(program, arrays, expected, found):
                return Wrong("meaning", f"{port.name} at {[x.shape for x in arrays]}: expected {want!r}, got {got!r}")
    return None


def _is_wrong(program: Program, arrays: Sequence[Array], expected: Sequence[Array], found: Sequence[Array]) -> bool:
    """Whether it is more than rounding: constants are no whole numbers, and sums of these may cancel."""
    failure = target_failure(program, arrays, expected, found, max_steps=MAX_STEPS)
    return failure is not None and not failure.allowed


def _same(want: Array, got: Array) -> bool:
    if want.shape != got.shape or want.dtype != got.dtype:
        return False
    if want.dtype.kind not in "fV":
        return want.tobytes() == got.tobytes()
    with np.errstate(all="ignore"):
        return bool(np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, equal_nan=True))


def misfits(program: Program, inputs: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    """Inputs that a program does not take, each with what is wrong with them."""
    ports = program.inputs()
    if ports:
        yield "an input too few", [*inputs[:-1]]
    yield "an input too many", [*inputs, np.zeros(1, np.float32)]
    for i, (port, x) in enumerate(zip(ports, inputs, strict=True)):

        def other(y: Array, i: int = i) -> list[Array]:
            return [y if j == i else a for j, a in enumerate(inputs)]

        yield f"a rank of {x.ndim + 1} for {x.ndim}", other(x[None])
        if x.dtype.kind != "c":
            yield "complex numbers", other(x.astype(np.complex64))
        for axis, size in enumerate(port.shape):
            grown = np.concatenate(
                [x, x[tuple(slice(0, 1) if k == axis else slice(None) for k in range(x.ndim))]], axis
            )
            if isinstance(size, int):
                if grown.shape != x.shape:
                    yield f"another size than {size}", other(grown)
                continue
            name = str(size)
            known = program.ranges[name] if name in dims.symbols_of(size) else None
            if known is not None and known.hi is not None and known.hi < 64:
                many = np.resize(x, [known.hi + 1 if k == axis else n for k, n in enumerate(x.shape)])
                yield "a size beyond a symbol's range", other(many.astype(x.dtype))
            others = [(j, p) for j, p in enumerate(ports) if j != i and any(str(s) == name for s in p.shape)]
            if known is not None and others and grown.shape != x.shape:
                yield "two sizes of one symbol", other(grown)


__all__ = ["Runtime", "misfits", "reload_model"]
