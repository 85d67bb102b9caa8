"""The text of tile kernels against the evaluator, in Triton's interpreter; and what is printed for what."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import cast

import numpy as np
import pytest

from gcomp.errors import UnsupportedError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles import functions
from gcomp.lowering.tiles.schedules import Settings, schedule
from gcomp.lowering.tiles.tile import HELD
from gcomp.lowering.triton import standins, texts
from gcomp.lowering.triton.aot import Compiler, KernelError
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture, architecture
from gcomp.testing.printed import cross_check
from gcomp.testing.tiles import as_kernel, settings_for
from tests.support.thinning import thinned
from tests.unit.lowering.triton import elementwise
from tests.unit.lowering.triton.test_elements import CASES


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as found:
        yield found


def launch_of(program: Program, kind: str) -> LaunchOp:
    return cast(LaunchOp, next(op for op in as_kernel(program, kind).block.ops if isinstance(op, LaunchOp)))


def test_types_that_the_language_lacks_are_refused() -> None:
    for dtype in ("f8E8M0FNU", "f8E5M2FNUZ", "f4E2M1FN"):
        type = f"tensor<2x{dtype}>"
        op = f"%y = stablehlo.reverse %x, dims = [0] : {type}"
        program = Program.parse(f"func.func @main(%x: {type}) -> {type} {{\n{op}\nreturn %y : {type}\n}}")
        scheduled = schedule(launch_of(program, "loop"), "kernel", program.ranges)
        with pytest.raises(UnsupportedError, match=f"there is no {dtype} in a kernel for GPUs"):
            print_kernel(scheduled.steps[0])


@pytest.mark.parametrize("dtype", thinned(elementwise.DTYPES, elementwise.QUICK.__contains__))
def test_functions_are_the_evaluators_on_all_pairs_of_edge_values(dtype: str, interpreter: Interpreter) -> None:
    program, names = elementwise.functions(dtype)
    launch = launch_of(program, "loop")
    scheduled = schedule(launch, "kernel", program.ranges, elementwise.WHOLE)
    found = cross_check(launch, scheduled, elementwise.inputs(dtype), {}, interpreter)
    assert found == [], [names[int(why.split()[1].rstrip(":"))] for why in found]


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, interpreter: Interpreter) -> None:
    kind, program, inputs = CASES[name]
    launch = launch_of(program, kind)
    for settings in (None, settings_for(launch, Random(name))):
        scheduled = schedule(launch, "kernel", program.ranges, settings)
        assert cross_check(launch, scheduled, inputs, {}, interpreter) == []


PRODUCT = """func.func @main(%x: tensor<37x40x{0}>, %y: tensor<40x30x{0}>) -> tensor<37x30x{1}> {{
  %z = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<37x40x{0}>, tensor<40x30x{0}>) ->
      tensor<37x30x{1}>
  return %z : tensor<37x30x{1}>
}}"""


@pytest.mark.parametrize(("dtype", "result"), [("bf16", "bf16"), ("f16", "f32"), ("f32", "f32"), ("i8", "i32")])
def test_products(dtype: str, result: str, interpreter: Interpreter) -> None:
    program = Program.parse(PRODUCT.format(dtype, result))
    random = np.random.default_rng(0)
    inputs = [elementwise.whole(random.integers(-4, 5, port.shape), port.dtype) for port in program.inputs()]  # type: ignore[arg-type]
    launch = launch_of(program, "matmul")
    settings = Settings({"rows": 16, "columns": 32, "terms": 32})
    assert cross_check(launch, schedule(launch, "kernel", program.ranges, settings), inputs, {}, interpreter) == []


def test_every_function_has_a_text_for_each_kind_of_element_that_it_takes() -> None:
    for name, function in functions.FUNCTIONS.items():
        assert set(texts.TEXTS[name]) == ({"any"} if function.picks else set(function.kinds)), name
    assert not texts.TEXTS.keys() - functions.FUNCTIONS.keys()


def test_every_function_of_libdevice_has_a_stand_in() -> None:
    used = {
        text[len("libdevice.") :].partition("(")[0]
        for templates in texts.TEXTS.values()
        for template in templates.values()
        for text in template.replace("tl.", " ").split()
        if text.startswith("libdevice.")
    }
    assert used and used <= standins.FUNCTIONS.keys()


def test_the_text_is_deterministic_and_says_where_ops_come_from() -> None:
    program, _ = elementwise.functions("f32")
    found = [
        print_kernel(schedule(launch_of(program, "loop"), "kernel", program.ranges).steps[0]).text for _ in range(2)
    ]
    assert found[0] == found[1]
    assert "propagate_nan=tl.PropagateNan.ALL" in found[0] and "tl.div_rn" in found[0]


# ---- compiled -----------------------------------------------------------------------------------------------------

MEMORY_NAMES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
CHUNK = 6
WITHOUT = {"gfx942": "libdevice.cbrt"}
"""What an architecture's libdevice does not have."""


def held_by(name: str, target: Architecture) -> bool:
    """Whether an architecture's memory holds an element type."""
    held = HELD.get(name, name)
    return MEMORY_NAMES.get(held, held.replace("ui", "u")) in target.dtypes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("dtype", elementwise.DTYPES)
def test_functions_compile_without_spilling(dtype: str, name: str) -> None:
    target = architecture(name)
    if not held_by(dtype, target):
        pytest.skip(f"{name} has no {dtype}")
    dtypes = [to for to in elementwise.DTYPES if held_by(to, target)]
    sources: list[KernelSource] = []
    for first in range(0, 200, CHUNK):
        program, names = elementwise.functions(dtype, dtypes, slice(first, first + CHUNK))
        if names:
            sources += [
                print_kernel(step) for step in schedule(launch_of(program, "loop"), "kernel", program.ranges).steps
            ]
    chosen = [source for source in sources if name not in WITHOUT or WITHOUT[name] not in source.text]
    assert len(chosen) >= len(sources) - 1
    with Compiler(1) as compiler:
        found = compiler.attempt(chosen, target)
    assert [str(one) for one in found if isinstance(one, KernelError)] == []
    assert [one.source.text for one in found if not isinstance(one, KernelError) and one.spilled] == []
