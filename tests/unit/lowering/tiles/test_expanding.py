"""Functions expanded into basic ones: how exact they are, where they are special, and that nothing else is left."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.evaluate import Memory, run
from gcomp.lowering.tiles.expanding import EXPANSIONS, expand
from gcomp.lowering.tiles.functions import FUNCTIONS
from tests.support.elementary import EXACT, applied, distances, kernel_of, meaning, record_underflows, samples
from tests.unit.lowering.triton.tiles import kernel

BASIC = {
    "add", "subtract", "multiply", "divide", "negate", "abs", "sign", "maximum", "minimum", "fma", "sqrt", "square",
    "floor", "ceil", "round_nearest_even", "is_finite", "is_inf", "is_pos_inf", "is_neg_inf", "select", "eq", "ne",
    "lt", "le", "gt", "ge", "and", "or", "xor", "not", "shift_left", "shift_right_logical", "shift_right_arithmetic",
    "divide_positive", "modulo_positive", "divide_floor", "modulo_floor",
}  # fmt: skip
EACH = pytest.mark.parametrize(("name", "dtype"), sorted(EXPANSIONS))


@EACH
def test_results_are_as_exact_as_the_table_says(name: str, dtype: str) -> None:
    if name not in EXACT:
        return
    operands = samples(name, dtype, 256)
    found = applied(name, *operands)
    far = distances(name, found, *operands)
    worst = int(far.argmax())
    assert far[worst] <= EXPANSIONS[name, dtype].ulps, [x[worst] for x in (*operands, found)]


@pytest.mark.parametrize("name", ["exponential", "exponential2", "logistic"])
def test_what_is_far_below_does_not_underflow_on_the_way_to_zero(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors take long for that, and masks are such numbers: a masked softmax took five times as long."""
    underflows = record_underflows(monkeypatch)
    assert not applied(name, np.array([-152, -1e9, np.finfo(np.float32).min, -np.inf], np.float32)).any()
    assert not underflows


def specials(dtype: str) -> np.ndarray:
    info = np.finfo(dtype_of(dtype))
    sizes = [0.0, float(info.smallest_subnormal), float(info.tiny), 1e-5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e5]
    sizes += [float(1 - info.epsneg), float(1 + info.eps), 2.0**24 + 1, float(info.max), np.inf, np.nan]
    return np.array([*sizes, *(-s for s in sizes)], dtype_of(dtype))


@EACH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_are_those_of_the_reference(name: str, dtype: str) -> None:
    """Where an operand is no number or infinite, or the result is 0, infinite or no number."""
    edges = specials(dtype)
    pairs = np.array([*product(edges, edges)], edges.dtype).T
    operands = [edges] if FUNCTIONS[name].arity == 1 else [*pairs]
    found, wanted = applied(name, *operands), meaning(name, *operands)
    odd = ~np.isfinite(wanted) | (wanted == 0) | np.any([~np.isfinite(x) for x in operands], 0) | (name not in EXACT)
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | (np.isnan(found) & np.isnan(wanted))
    # Angles at infinity are numbers as others.
    near = (name in EXACT) & (wanted != 0) & (np.abs(found - wanted) <= 2 * np.spacing(np.abs(wanted)))
    wrong = np.flatnonzero(odd & ~same & ~near)
    assert not wrong.size, [[x[i] for x in (*operands, found, wanted)] for i in wrong[:5]]


@EACH
def test_only_basic_functions_are_left_and_expanding_again_changes_nothing(name: str, dtype: str) -> None:
    found = kernel_of(name, dtype, FUNCTIONS[name].arity, 8)
    expand(found)
    found.verify()
    assert {op.function_name for op in found.walk() if isinstance(op, tile.ElementwiseOp)} <= BASIC
    once = str(found)
    expand(found)
    assert str(found) == once


def test_every_function_is_basic_or_has_an_expansion_for_each_type() -> None:
    floats = {(name, kind) for name, f in FUNCTIONS.items() for kind in f.kinds if kind in ("f32", "f64")}
    assert {*EXPANSIONS} == {(name, kind) for name, kind in floats if name not in BASIC}
    assert {name for name in FUNCTIONS if not floats & {(name, "f32")}} <= BASIC
    assert {name for name, _ in EXPANSIONS} - {*EXACT} == {"remainder", "next_after", "round_nearest_afz"}


def test_functions_in_regions_are_expanded_where_they_are() -> None:
    """In a loop and in a fold, which sees nothing of what is around it."""

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        x = b.load(arguments[0], b.iota(8, 0, 1), None)
        start = b.apply("exponential", b.reduce([x], 0, lambda p, q: [b.apply("exponential", b.add(p[0], q[0]))])[0])
        (total,) = b.loop(b.position(0), b.position(3), 1, [start], lambda i, c: [b.apply("exponential", c[0])])
        b.store(arguments[1], b.iota(1, 0, 1), total, None)

    x = np.linspace(-4, -3, 8, dtype=np.float32)
    targets: list[float] = []
    for expanded in (False, True):
        found, target = kernel(body, ["in", "out"], [f32, f32]), Memory.empty(1, "f32")
        if expanded:
            expand(found)
            assert not any(
                op.function_name == "exponential" for op in found.walk() if isinstance(op, tile.ElementwiseOp)
            )
        found.verify()
        run(found, (1,), [Memory.of(x), target])
        targets.append(float(target.data[0]))
    assert targets[0] == pytest.approx(targets[1], rel=1e-5)


def test_the_page_is_of_this_table() -> None:
    """docs/generated/functions.md, which tools/function_table.py writes."""
    page = (Path(__file__).parents[4] / "docs" / "generated" / "functions.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert {(name, kind): stated for name, kind, stated, *_ in rows[1:]} == {
        key: f"{expansion.ulps:g}" for key, expansion in EXPANSIONS.items()
    }
    assert all(float(measured) <= float(stated) <= 2 for _, _, stated, measured, *_ in rows[1:])
