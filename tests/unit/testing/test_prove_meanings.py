"""The prover's own tables, op by op, against the NumPy reference: index functions and exact scalars."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import z3
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Op, Rule, Var
from gcomp.ir.types import dtype_text, element_type, tensor
from gcomp.reference.interpreter import evaluate_op, interpret
from gcomp.reference.numpy.conversion import convert as reference
from gcomp.reference.numpy.rounding import value_bits
from gcomp.testing.prove.cases import Node, leaves_of, left_side
from gcomp.testing.prove.cases import plans as left_sides
from gcomp.testing.prove.choices import ROWS, Scope, Type
from gcomp.testing.prove.movement import FOLDS, MOVEMENT
from gcomp.testing.prove.replay import edges, from_bits, width
from gcomp.testing.prove.scalars import SCALARS, convert, has_theory, kind_of
from gcomp.testing.prove.translation import Abstract, Exact, Translation
from gcomp.testing.prove.views import Facts, View

# ---- movement ----------------------------------------------------------------------------------------------------

ARITY = {hlo.SelectOp: 3, hlo.ConcatenateOp: 2, hlo.PadOp: 2, hlo.DotGeneralOp: 2}
SHAPES = [(), (0,), (3,), (1, 2), (2, 3), (2, 1, 3)]
MOVED = [op for op in MOVEMENT if op not in FOLDS]


def plans(op: type[GraphOp]) -> Iterator[Node]:
    """Uses of one op on static shapes; the sizes that the enumeration brings in are symbols."""
    names = [Var(n) for n in "xyz"[: ARITY.get(op, 1)]]
    for shape in SHAPES:
        yield from left_sides(Rule("use", Op(op, *names), Var("x")), Scope((shape,), "i32", 3))


def looked_up(term: Any, arrays: dict[str, np.ndarray]) -> int:
    """The number that a ground term names: an element of an input at an index."""
    term = z3.simplify(term)
    index = tuple(term.arg(i).as_long() for i in range(term.num_args()))
    array = arrays[term.decl().name()]
    assert all(0 <= i < n for i, n in zip(index, array.shape, strict=True)), "the index is out of range"
    return int(array[index])


def sizes_for(names: list[str]) -> Iterator[dict[str, int]]:
    rng = np.random.default_rng(0)
    for values in product((2, 3, 1, 0), repeat=len(names)) if len(names) < 3 else rng.integers(0, 4, (12, len(names))):
        yield {name: int(value) for name, value in zip(names, values, strict=True)}


@pytest.mark.parametrize("op", MOVED, ids=lambda op: op.name)
def test_index_functions_are_what_the_reference_does(op: type[GraphOp]) -> None:
    tried = 0
    found = list(plans(op))
    for plan in found[:: len(found) // 60 + 1]:
        leaves = dict(leaves_of(plan))
        try:
            program, value = left_side(plan, leaves)
        except VerifyException:
            continue  # sizes that do not fit
        names = sorted({n for p in program.inputs() for s in p.shape for n in dims.symbols_of(s)})
        program.finish([("r", value)])
        for sizes in list(sizes_for(names))[:12]:
            tried += compare_movement(program, value, leaves, names, sizes)
    assert tried >= min(len(found), 10)


def compare_movement(
    program: Any, value: Any, leaves: dict[str, Type], names: list[str], sizes: dict[str, int]
) -> bool:
    """Whether these sizes make the op valid; then every element of the reference's result is the one the row names."""
    theory = Abstract()
    facts = Facts(theory.sort)
    arrays, inputs = {}, {}
    for position, (name, type) in enumerate(leaves.items()):
        shape = tuple(dims.evaluate(s, sizes) for s in type.shape)
        count = int(np.prod(shape))
        array = np.arange(count).reshape(shape) % 2 if type.element == "i1" else np.arange(count).reshape(shape)
        arrays[name] = (array + 100 * position * (type.element != "i1")).astype(dtype_of(type.element))
        function = theory.variable(name, type.element, len(shape))
        at = (lambda f: lambda index: f(*index) if index else f)(function)
        inputs[program.block.args[position]] = View(type.shape, type.element, at)
    view = Translation(theory, facts, inputs).view(value)
    known = [(z3.Int(n), z3.IntVal(s)) for n, s in sizes.items()]
    if not all(z3.is_true(z3.simplify(z3.substitute(r, *known))) for r in facts.requires):
        return False
    given = dict(value.op.properties)
    if isinstance(value.op, hlo.PadOp):
        # The prover's gaps may be symbols, which no program has.
        gaps = [dims.evaluate(s, sizes) for s in value.op.value("interior_padding")]
        value.op.properties["interior_padding"] = encode("interior_padding", gaps)
    expected = interpret(program, [*arrays.values(), np.zeros([sizes[n] for n in names], np.bool_)])[0]
    value.op.properties.update(given)
    places = list(np.ndindex(expected.shape))
    for index in places[:: len(places) // 16 + 1]:
        term = z3.substitute(view.at(tuple(map(z3.IntVal, index))), *known)
        term = divided(with_predicates(term, arrays["x"]))
        assert looked_up(term, arrays) == int(expected[index])
    return True


FOLDED = {
    "reduce": """stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2]
      : (tensor<3x4x2xi32>, tensor<i32>) -> tensor<4xi32>""",
    "reduce_window": """"stablehlo.reduce_window"(%x, %z) <{
      window_dimensions = array<i64: 2, 3, 1>, window_strides = array<i64: 1, 2, 1>,
      base_dilations = array<i64: 2, 1, 1>, window_dilations = array<i64: 1, 2, 1>,
      padding = dense<[[1, 0], [2, 1], [0, 0]]> : tensor<3x2xi64>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %s = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }) : (tensor<3x4x2xi32>, tensor<i32>) -> tensor<5x2x2xi32>""",
}


@pytest.mark.parametrize("text", FOLDED.values(), ids=FOLDED)
def test_folds_are_over_the_elements_that_the_reference_adds(text: str) -> None:
    result = text.rpartition("-> ")[2]
    program = Program.parse(f"""func.func @main(%x: tensor<3x4x2xi32>, %z: tensor<i32>) -> {result} {{
      %0 = {text}
      return %0 : {result}
    }}""")
    theory = Abstract()
    x, z = (theory.variable("x", "i32", 3), theory.variable("z", "i32", 0))
    views = [View((3, 4, 2), "i32", lambda index: x(*index)), View((), "i32", lambda index: z)]
    inputs = dict(zip(program.block.args, views, strict=True))
    view = Translation(theory, Facts(theory.sort), inputs).view(program.returned.operands[0])
    arrays = {"x": np.arange(1, 25, dtype=np.int32).reshape(3, 4, 2), "z": np.array(0, np.int32)}
    (expected,) = interpret(program, list(arrays.values()))
    for index in np.ndindex(expected.shape):
        *sizes, elements, _ = z3.simplify(view.at(tuple(map(z3.IntVal, index)))).children()
        places = product(*(range(size.as_long()) for size in sizes))
        assert sum(looked_up(z3.Select(elements, *k), arrays) for k in places) == expected[index]


def with_predicates(term: Any, x: np.ndarray) -> Any:
    """A term in which the booleans of `x` are known."""
    if x.dtype != np.bool_:
        return term
    if x.ndim == 0:
        return z3.substitute(term, (z3.Const("x", z3.BitVecSort(1)), z3.BitVecVal(int(x), 1)))
    function = z3.Function("x", *[z3.IntSort()] * x.ndim, z3.BitVecSort(1))
    body = z3.BitVecVal(0, 1)
    for index in np.ndindex(x.shape):
        here = z3.And(*[z3.Var(k, z3.IntSort()) == i for k, i in enumerate(index)])
        body = z3.If(here, z3.BitVecVal(int(x[index]), 1), body)
    return z3.substitute_funs(z3.simplify(term), (function, body))


def divided(term: Any) -> Any:
    """A term in which symbolic digits are divisions."""
    place, stride, size = (z3.Var(k, z3.IntSort()) for k in range(3))
    digit = z3.Function("digit", *[z3.IntSort()] * 4)
    return z3.substitute_funs(z3.simplify(term), (digit, place / stride % size))


def test_every_row_of_choices_has_a_meaning() -> None:
    elementwise = {hlo.CompareOp, hlo.IsFiniteOp, hlo.ConvertOp, hlo.ClampOp, hlo.AbsOp, hlo.RealOp, hlo.ImagOp,
                   hlo.ComplexOp}  # fmt: skip
    assert set(ROWS) - elementwise == set(MOVEMENT)


# ---- scalars -----------------------------------------------------------------------------------------------------

ELEMENTS = {
    "bool": ("i1",),
    "int": ("i4", "ui4", "i8", "ui16", "i32", "ui64"),
    "float": ("f16", "bf16", "f32", "f64", "f8E4M3"),
    "complex": ("complex<f32>",),
}


def bits_of(array: np.ndarray) -> list[int]:
    if array.dtype.kind == "c":
        real, imag = (value_bits(np.ascontiguousarray(p)).reshape(-1) for p in (array.real, array.imag))
        half = real.dtype.itemsize * 8
        return [int(r) | int(i) << half for r, i in zip(real, imag, strict=True)]
    return [int(b) for b in value_bits(array).reshape(-1)]


def pairs(element: str, arity: int) -> list[np.ndarray]:
    chosen = np.unique(edges(element) & np.uint64((1 << width(element)) - 1))
    rng = np.random.default_rng(0)
    chosen = rng.choice(chosen, min(len(chosen), 14), replace=False)
    grid = np.meshgrid(*[chosen] * arity, indexing="ij")
    return [g.reshape(-1) for g in grid]


@pytest.mark.parametrize(("op", "kind"), SCALARS, ids=lambda v: v if isinstance(v, str) else v.name)
def test_scalars_are_what_the_reference_computes(op: type[GraphOp], kind: str) -> None:
    tried = 0
    for element in ELEMENTS[kind]:
        if element_type(element) not in op.ELEMENTS:
            continue
        arity = 2 if len(op.get_irdl_definition().operands) == 2 else 1
        variants: list[dict[str, Any]] = [{}]
        if op is hlo.CompareOp:
            kinds = {"float": ["FLOAT", "TOTALORDER"], "complex": ["FLOAT"]}.get(kind, [None])
            variants = [{"comparison_direction": d, "compare_type": k} for k in kinds for d in ("EQ", "NE", "GE", "LT")]
        for properties in variants:
            tried += compare_scalar(op, element, arity, properties)
    assert tried


def compare_scalar(op: type[GraphOp], element: str, arity: int, properties: dict[str, Any]) -> int:
    bits = pairs(element, arity)
    arrays = [from_bits(b, element) for b in bits]
    built = built_op(op, element, arity, len(bits[0]), properties)
    expected = bits_of(np.asarray(evaluate_op(built, arrays)[0]))
    args = [z3.BitVec(f"a{i}", width(element)) for i in range(arity)]
    result = Exact().apply(built, args, [element] * arity, str(result_element(built)))
    for place, wanted in enumerate(expected):
        known = [(a, z3.BitVecVal(int(b[place]), a.size())) for a, b in zip(args, bits, strict=True)]
        found = z3.simplify(z3.substitute(result, *known))
        assert found.as_long() == wanted, f"{op.name} of {[a[place] for a in arrays]} in {element}"
    return len(expected)


def built_op(op: type[GraphOp], element: str, arity: int, count: int, properties: dict[str, Any]) -> GraphOp:
    program = Program.empty([(f"a{i}", tensor((count,), element)) for i in range(arity)])
    given = {k: v for k, v in properties.items() if v is not None}
    return op.of(*program.block.args, **given)


def result_element(op: GraphOp) -> str:
    return dtype_text(op.results[0].type)


@pytest.mark.parametrize("source", ["i1", "i4", "ui8", "i32", "i64", "ui64", "f16", "bf16", "f32", "f64", "f8E4M3"])
def test_conversions_are_what_the_reference_computes(source: str) -> None:
    bits = pairs(source, 1)[0]
    array = from_bits(bits, source)
    for target in ("i1", "i4", "ui8", "i32", "ui64", "f16", "bf16", "f32", "f64", "f8E4M3"):
        assert has_theory(target)
        expected = bits_of(reference(array, dtype=dtype_of(target)))
        for b, wanted in zip(bits, expected, strict=True):
            term = convert(z3.BitVecVal(int(b), width(source)), kind_of(source), kind_of(target))
            assert z3.simplify(term).as_long() == wanted, f"{source} {int(b):#x} to {target}"
