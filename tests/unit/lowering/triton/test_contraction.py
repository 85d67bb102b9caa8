"""Matrix products in all their forms: blocks, sums in pieces, persistent programs, and operands in boxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gcomp.analysis.indexing.maps import d
from gcomp.dims import Range, Ranges, Size, floordiv, symbol
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.descriptors import LoadBoxOp
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import Scheduled, Settings
from gcomp.lowering.tiles.schedules.boxes import strides_of
from gcomp.lowering.triton.aot import Compiler, KernelError
from gcomp.lowering.triton.choose import candidates, trials
from gcomp.lowering.triton.estimates import predict_seconds, rank_settings
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.targets import ARCHITECTURES
from gcomp.testing.printed import cross_check
from gcomp.testing.tiles import as_kernel, check_kernel
from tests.support.thinning import swept
from tests.unit.lowering.triton.launches import launched, numbers

SMALL = {"rows": 16, "columns": 16, "terms": 16}
LARGE = {"rows": 128, "columns": 256, "terms": 64, "warps": 8, "stages": 3}
FORMS = {
    "pieces": {"pieces": 3}, "persistent": {"programs": 3}, "boxes": {"boxes": 1},
    "persistent boxes": {"programs": 3, "boxes": 1}, "boxes in pieces": {"pieces": 2, "boxes": 1},
}  # fmt: skip


def product(
    m: int, k: int, n: int, dtype: str = "bf16", *, batch: int | None = None, lhs: str = "mk", rhs: str = "kn"
) -> tuple[Program, list[tuple[int, ...]]]:
    """tanh(x @ y), whose operands' dimensions come in an order, and the shapes of x and y."""
    sizes = {"m": m, "k": k, "n": n}
    left, right, out = ([batch] * (batch is not None) + [sizes[s] for s in order] for order in (lhs, rhs, "mn"))
    x, y, z = (f"tensor<{'x'.join(map(str, shape))}x{dtype}>" for shape in (left, right, out))
    first = int(batch is not None)
    batching = "batching_dims = [0] x [0], " if first else ""
    dims = f"{batching}contracting_dims = [{first + lhs.index('k')}] x [{first + rhs.index('k')}]"
    text = f"""func.func @main(%x: {x}, %y: {y}) -> {z} {{
  %p = stablehlo.dot_general %x, %y, {dims} : ({x}, {y}) -> {z}
  %r = stablehlo.tanh %p : {z}
  return %r : {z}
}}"""
    return Program.parse(text), [tuple(left), tuple(right)]


def launch_of(program: Program) -> LaunchOp:
    (found,) = [op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp)]
    return found


@pytest.mark.parametrize("form", [{}, {"pieces": 2}, {"programs": 2}])
def test_a_padded_result_is_written_in_its_place_and_its_border_apart(form: dict[str, int]) -> None:
    program = Program.parse("""func.func @main(%x: tensor<6x40xf32>, %y: tensor<40x9xf32>, %z: tensor<f32>)
        -> (tensor<6x9xf32>, tensor<3x5x13xf32>) {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<6x40xf32>, tensor<40x9xf32>) -> tensor<6x9xf32>
      %1 = stablehlo.reshape %0 : (tensor<6x9xf32>) -> tensor<2x3x9xf32>
      %2 = stablehlo.pad %1, %z, low = [1, 2, 0], high = [0, 0, 4], interior = [0, 0, 0]
        : (tensor<2x3x9xf32>, tensor<f32>) -> tensor<3x5x13xf32>
      return %0, %2 : tensor<6x9xf32>, tensor<3x5x13xf32>
    }""")
    inputs = [numbers(0, (6, 40), "f32"), numbers(1, (40, 9), "f32"), numbers(2, (), "f32")]
    assert check_kernel(program, "matmul", inputs, Settings(SMALL | form)) == []
    _, scheduled = launched(program, "matmul", **SMALL, **form)
    assert [step.kernel.kernel_name[-13:] for step in scheduled.steps[-3:]] == [
        "_border1_0low",
        "_border1_1low",
        "border1_2high",
    ]


def boxes_in(scheduled: Scheduled) -> int:
    return sum(isinstance(op, LoadBoxOp) for step in scheduled.steps for op in step.kernel.block.walk())


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as found:
        yield found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("batch", "lhs", "rhs"), [(None, "mk", "kn"), (3, "mk", "kn"), (None, "km", "nk"), (2, "km", "nk")]
)
def test_all_forms_mean_the_product(form: str, batch: int | None, lhs: str, rhs: str, interpreter: Interpreter) -> None:
    program, shapes = product(40, 104, 24, batch=batch, lhs=lhs, rhs=rhs)
    inputs = [numbers(seed, shape, "bf16") for seed, shape in enumerate(shapes)]
    settings = SMALL | FORMS[form]
    assert check_kernel(program, "matmul", inputs, Settings(settings)) == []
    launch, scheduled = launched(program, "matmul", **settings)
    assert len(scheduled.steps) == (2 if "pieces" in settings else 1)
    assert boxes_in(scheduled) == (2 if "boxes" in settings else 0)
    assert cross_check(launch, scheduled, inputs, {}, interpreter) == []


@pytest.mark.parametrize("pieces", [2, 5, 7, 100])
@pytest.mark.parametrize("terms", [1, 16, 17, 96])
def test_pieces_may_be_more_than_there_are_turns(pieces: int, terms: int) -> None:
    program, shapes = product(5, terms, 9, "f32")
    inputs = [numbers(seed, shape, "f32") for seed, shape in enumerate(shapes)]
    assert check_kernel(program, "matmul", inputs, Settings({**SMALL, "pieces": pieces})) == []


def test_sums_in_pieces_have_one_order() -> None:
    program, shapes = product(16, 512, 16, "f32")
    inputs = [numbers(seed, shape, "f32", 1e3) for seed, shape in enumerate(shapes)]
    runs = [execute(*launched(program, "matmul", **SMALL, pieces=4), inputs, {})[0] for _ in range(2)]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_scratch_of_pieces_has_a_bound() -> None:
    """Without one the memory cannot be planned: such sums stay whole."""
    text = """func.func @main(%x: tensor<?x64xf32, ["n", "64"]>) -> tensor<?x?xf32, ["n", "n"]> {
  %r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] :
      (tensor<?x64xf32, ["n", "64"]>, tensor<?x64xf32, ["n", "64"]>) -> tensor<?x?xf32, ["n", "n"]>
  return %r : tensor<?x?xf32, ["n", "n"]>
}"""
    assert len(launched(Program.parse(text), "matmul", **SMALL, pieces=2)[1].steps) == 1


def grids(**settings: int) -> list[tuple[object, ...]]:
    program, _ = product(64, 64, 64)
    return [step.grid for step in launched(program, "matmul", **SMALL, **settings)[1].steps]


def test_a_persistent_kernel_has_no_more_programs_than_blocks() -> None:
    assert grids() == [(16,)]
    assert grids(programs=5) == [(5,)]
    assert grids(programs=132) == [(16,)]


# ---- boxes --------------------------------------------------------------------------------------------------------

BEFORE = """func.func @main(%x: tensor<64x{k}xbf16>, %y: tensor<{k}x32xbf16>) -> tensor<64x32xbf16> {{
  %v = {op}
  %r = stablehlo.dot_general %v, %y, contracting_dims = [1] x [0] :
      (tensor<64x{k}xbf16>, tensor<{k}x32xbf16>) -> tensor<64x32xbf16>
  return %r : tensor<64x32xbf16>
}}"""


@pytest.mark.parametrize(
    ("k", "op", "boxes"),
    [
        (48, "stablehlo.negate %x : tensor<64x48xbf16>", 2),
        # What comes before makes a number of the 0 beyond the last term.
        (40, "stablehlo.exponential %x : tensor<64x40xbf16>", 2),
        # Rows at no multiple of 16 bytes.
        (36, "stablehlo.negate %x : tensor<64x36xbf16>", 1),
        # Elements in another order.
        (48, "stablehlo.reverse %x, dims = [1] : tensor<64x48xbf16>", 1),
    ],
)
def test_operands_come_in_boxes_where_they_lie_so(k: int, op: str, boxes: int, interpreter: Interpreter) -> None:
    program = Program.parse(BEFORE.format(k=k, op=op))
    inputs = [numbers(0, (64, k), "bf16"), numbers(1, (k, 32), "bf16")]
    settings = {**SMALL, "boxes": 1}
    assert check_kernel(program, "matmul", inputs, Settings(settings)) == []
    launch, scheduled = launched(program, "matmul", **settings)
    assert boxes_in(scheduled) == boxes
    assert cross_check(launch, scheduled, inputs, {}, interpreter) == []


def test_a_size_that_calls_choose_is_a_size_of_the_box(interpreter: Interpreter) -> None:
    text = """func.func @main(%x: tensor<?x48xbf16, ["n", "48"]>, %y: tensor<48x32xbf16>)
      -> tensor<?x32xbf16, ["n", "32"]> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
      (tensor<?x48xbf16, ["n", "48"]>, tensor<48x32xbf16>) -> tensor<?x32xbf16, ["n", "32"]>
  return %r : tensor<?x32xbf16, ["n", "32"]>
}"""
    program = Program.parse(text)
    program.ranges = Ranges({"n": Range(1, 4096)})
    inputs = [numbers(0, (37, 48), "bf16"), numbers(1, (48, 32), "bf16")]
    settings = {**SMALL, "boxes": 1, "programs": 2}
    assert check_kernel(program, "matmul", inputs, Settings(settings)) == []
    launch, scheduled = launched(program, "matmul", **settings)
    assert boxes_in(scheduled) == 2
    assert cross_check(launch, scheduled, inputs, {"n": 37}, interpreter) == []


N = symbol("n")


@pytest.mark.parametrize(
    ("place", "strides"),
    [
        (d(1) * 64 + d(3), {1: 64, 3: 1}),
        (d(0) * N * 64 + d(1) * N + d(3), {0: N * 64, 1: N, 3: 1}),
        (d(1) * 64 + d(3) + 5, None),
        (d(1) * d(3), None),
        (d(1) * d(1), None),
        (floordiv(d(1), 3) * 64 + d(3), None),
        (floordiv(d(1), 3) * d(3), None),
    ],
)
def test_strides_are_those_of_sums_of_coordinates(place: Size, strides: dict[int, Size] | None) -> None:
    assert strides_of(place) == strides


# ---- compiled -----------------------------------------------------------------------------------------------------


def compiled(target: str, **settings: int) -> tuple[list[int], str]:
    """For each kernel of a product its stack; and the assembler's text of the first."""
    program, _ = product(4096, 4096, 4096)
    sources = [print_kernel(step) for step in launched(program, "matmul", **LARGE, **settings)[1].steps]
    with Compiler(1) as compiler:
        found = compiler.compile(sources, ARCHITECTURES[target])
        return [one.stack for one in found], compiler.listing(sources[0], ARCHITECTURES[target])


@pytest.mark.parametrize("programs", [132, *swept(0)])
def test_hopper_brings_boxes_and_multiplies_by_groups_of_warps(programs: int) -> None:
    stacks, text = compiled("sm_90", programs=programs, boxes=1)
    assert stacks == [0]
    assert "cp.async.bulk.tensor" in text and "wgmma.mma_async" in text and "cp.async.cg" not in text


@pytest.mark.slow
def test_blackwell_brings_boxes_to_tensor_memory() -> None:
    stacks, text = compiled("sm_100", programs=148, boxes=1)
    assert stacks == [0]
    assert "cp.async.bulk.tensor" in text and "tcgen05.mma" in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_pieces_compile_everywhere(target: str) -> None:
    program, _ = product(64, 4096, 64)
    sources = [
        print_kernel(step) for step in launched(program, "matmul", rows=64, columns=64, terms=32, pieces=16)[1].steps
    ]
    with Compiler(1) as compiler:
        assert [one.stack for one in compiler.compile(sources, ARCHITECTURES[target])] == [0, 0]


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_boxes_are_refused_where_no_unit_brings_them(target: str) -> None:
    program, _ = product(64, 64, 64)
    sources = [print_kernel(step) for step in launched(program, "matmul", **SMALL, boxes=1)[1].steps]
    with Compiler(1) as compiler:
        (found,) = compiler.attempt(sources, ARCHITECTURES[target])
    assert isinstance(found, KernelError) and f"it needs tma, which {target} has not" in str(found)


# ---- choice -------------------------------------------------------------------------------------------------------


def best(m: int, k: int, n: int, target: str, dtype: str = "bf16") -> dict[str, int]:
    program, _ = product(m, k, n, dtype)
    return dict(candidates(launch_of(program), program.ranges, ARCHITECTURES[target])[0].values)


def test_the_model_chooses_forms_that_fit_machine_and_sizes() -> None:
    large = best(8192, 8192, 8192, "sm_90")
    assert (large["boxes"], large["programs"], large["pieces"]) == (1, 132, 1)
    assert large["rows"] * large["columns"] == 128 * 256
    assert best(8192, 8192, 8192, "sm_80")["boxes"] == 0
    assert best(8192, 8192, 8192, "sm_90", "f32")["boxes"] == 0
    for target in ("sm_80", "sm_90"):
        assert best(64, 65536, 64, target)["pieces"] > 1
        assert best(4096, 512, 4096, target)["pieces"] == 1


def test_trials_begin_with_the_choice_and_have_no_doubles() -> None:
    program, _ = product(256, 256, 256)
    launch, on = launch_of(program), ARCHITECTURES["sm_90"]
    found = trials(launch, program.ranges, on)
    assert found[0] == candidates(launch, program.ranges, on)[0]
    assert len(found) > 8 and len({tuple(sorted(s.values.items())) for s in found}) == len(found)
    whole = [s for s in rank_settings(launch, program.ranges, on) if s.values["pieces"] == 1]
    times = [predict_seconds(launch, program.ranges, on, s) for s in whole]
    assert times == sorted(times) and times[0] > 0
